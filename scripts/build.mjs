/**
 * @file Builds the published files: types from the compiler, code in a few files from the bundler, the page of
 * `tidemark view`, the playground.
 *
 *   node scripts/build.mjs [--out FOLDER]          FOLDER is dist/ by default
 *
 * The sources are more than a thousand modules, and Node takes a third of a millisecond for each that it loads. So code is
 * bundled; every entry point keeps its place, and what several of them need lies in files that they share, so that each
 * module exists once whatever is imported (docs/decisions/0026-bundled-package.md).
 *
 *   tidemark/ir ──→ ir       what `tidemark` and tidemark/ir need
 *                    ▲
 *   tidemark/plan ─→ plan    what `tidemark` and tidemark/plan need besides; wasm likewise
 *                    ▲
 *   tidemark ──────→ core    the rest of what `tidemark` needs
 *                    ▲
 *   others ────────→ …-more  what they share among themselves, without `tidemark`
 *
 * Names of functions are kept, and nothing is squeezed: graphs show the names of functions and of their parameters, and
 * a stack trace should lead to a line. Files of an earlier build that this one has not written are removed.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build, rolldown } from "rolldown";
import { AHEAD_OUTPUT, aheadRuntime } from "./ahead-runtime.mjs";
import { buildPlayground, PLAYGROUND_FILES } from "./playground-files.mjs";
import { pureValues } from "./pure-values.mjs";
import { WORKER_SOURCE_FILE, workerSource } from "./worker-source.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SRC = join(ROOT, "src/");
/** Parts whose code the entry point `tidemark` shares with them, so that they can be had without it. */
const APART = ["ir", "plan", "codegen/wasm"];
/** Its methods for tensors are an effect of `tidemark` alone, and in its own file. */
const OWN = ["api/methods.ts", "api/method-hints.ts"].map((path) => join(SRC, path));

const { values: options } = parseArgs({ options: { out: { type: "string", default: join(ROOT, "dist") } } });
const out = resolve(options.out);

/**
 * Entry points by the paths of what is made of them. The built-in programs are users of the library: their lines are shown
 * as a user's would be, which takes files of their own.
 */
function entryPoints() {
  const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const published = Object.values(exports).flatMap((target) => target.default ?? []);
  const programs = readdirSync(join(SRC, "cli", "programs")).filter((name) => !/^program\.ts$|\.test\./.test(name));
  const names = [
    ...published.map((path) => path.replace(/^\.\/dist\/(.*)\.js$/, "$1")),
    "cli/main",
    "cli/view-worker",
    "node/plan-process",
    ...programs.map((name) => `cli/programs/${name.replace(/\.ts$/, "")}`),
  ];
  const inputs = Object.fromEntries(names.map((name) => [name, join(SRC, `${name}.ts`)]));
  return { ...inputs, "bench/insides": join(ROOT, "bench", "insides.ts") };
}

/** Modules with effects count even where nothing of them is used: methods of tensors, and the host of Node. */
const INPUT = {
  platform: "neutral",
  external: [/^node:/, "highs", "koffi"],
  treeshake: { moduleSideEffects: (id) => id.startsWith(ROOT) },
  preserveEntrySignatures: "strict",
  logLevel: "warn",
  // on a busy machine the worker's text takes long
  checks: { bundlerTimings: false },
  plugins: [workerSource()],
};

/** How modules open that nothing of the package imports, which tests/architecture.test.ts checks: what results are compared with. */
const TESTS_ONLY = /^\/\*\*\s+(\* )?@file Tests only\./;

/** Of everything that decides about plans: a cache of plans is for one planner (src/node/plan-store.ts). */
function sourcesDigest() {
  const hash = createHash("sha256");
  const paths = readdirSync(SRC, { recursive: true }).map(slashed);
  for (const path of paths.filter((name) => /(?<!\.test)\.ts$/.test(name)).sort()) {
    const text = readFileSync(join(SRC, path), "utf8");
    if (!TESTS_ONLY.test(text)) hash.update(`${path}\n`).update(text);
  }
  return hash.digest("hex");
}

/** What is loaded later is no part of an entry point. */
const withoutLater = { name: "without-later", resolveDynamicImport: () => false };

/** All modules that an entry point is made of. */
async function modulesOf(path) {
  const bundle = await rolldown({ ...INPUT, input: path, plugins: [withoutLater, ...INPUT.plugins] });
  const { output } = await bundle.generate({ codeSplitting: false });
  await bundle.close();
  return new Set(output[0].moduleIds);
}

/** The shared files, first come first served, each with what goes to it; see the picture above. */
async function sharedFiles(inputs) {
  // the text of the worker is loaded when it is first needed
  const entries = new Set([...Object.values(inputs), WORKER_SOURCE_FILE]);
  const needs = new Map();
  for (const [name, path] of Object.entries(inputs)) needs.set(name, await modulesOf(path));
  const needed = (id) => [...needs].filter(([, modules]) => modules.has(id)).map(([name]) => name);
  const [main, core] = [needs.get("api/index"), needs.get("core/index")];
  // loaded later, and without what else needs parts of it
  const webgpu = await modulesOf(join(SRC, "runtime", "webgpu", "target.ts"));
  const rest = Object.keys(inputs).filter((name) => name.endsWith("/index") && name !== "api/index");
  const inMain = (part) => (id) => main.has(id) && needs.get(`${part}/index`).has(id);
  const shared = (name) => (id) => !main.has(id) && needs.get(name).has(id) && needed(id).length > 1;
  const files = [
    ...APART.map((part) => ({ name: basename(part), holds: (id) => inMain(part)(id) && core.has(id) })),
    { name: "core", holds: inMain("core") },
    { name: "search", holds: inMain("plan") },
    { name: "budget", holds: (id) => main.has(id) && needs.get("core/budget").has(id) },
    { name: "more", holds: (id) => main.has(id) && !OWN.includes(id) },
    { name: "webgpu", holds: (id) => webgpu.has(id) },
    ...rest.map((name) => ({ name: `${basename(dirname(name))}-more`, holds: shared(name) })),
    { name: "cli", holds: shared("cli/main") },
  ];
  return files.map(({ name, holds }, i) => {
    return { name: `tidemark-${name}`, priority: files.length - i, test: (id) => !entries.has(id) && holds(id) };
  });
}

/** A source as it lies from its map in the package, wherever this build goes. */
function fromPackage(source, map) {
  const place = join(ROOT, "dist", relative(out, dirname(map)));
  return slashed(relative(place, resolve(dirname(map), source)));
}

/** Paths of the code and of its maps. */
async function writeCode() {
  const input = entryPoints();
  const { output } = await build({
    ...INPUT,
    input,
    transform: { define: { TIDEMARK_SOURCES: JSON.stringify(sourcesDigest()) } },
    output: {
      dir: out,
      entryFileNames: "[name].js",
      chunkFileNames: "shared/[name].js",
      // Without a comment in the code that would point to them: they stay behind when the package is packed.
      sourcemap: "hidden",
      sourcemapPathTransform: fromPackage,
      keepNames: true,
      comments: { annotation: true, jsdoc: false, legal: false },
      minifyInternalExports: false,
      codeSplitting: { groups: await sharedFiles(input) },
      plugins: [pureValues()],
    },
  });
  return output.map(({ fileName }) => fileName);
}

/** The page's script: alone in its file, since it is put into pages. */
async function writePage() {
  const file = "view/page.bundle.js";
  const input = join(SRC, "view", "page", "main.ts");
  await build({ input, output: { file: join(out, file), format: "iife", minify: true }, logLevel: "silent" });
  return [file];
}

/** The playground's pages, which complete names from the types that were just written. */
async function writePlayground() {
  await buildPlayground(join(out, "playground"), out);
  return PLAYGROUND_FILES.map((name) => `playground/${name}`);
}

/** The runtime of programs that are compiled ahead of time: alone in its file, since `tidemark build` copies it. */
async function writeAheadRuntime() {
  const file = "ahead/runtime.bundle.js";
  await build({ ...aheadRuntime(), output: { ...AHEAD_OUTPUT, file: join(out, file) } });
  return [file];
}

/** Paths of the types. */
function writeTypes() {
  const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const words = [tsc, "-p", join(ROOT, "tsconfig.build.json"), "--outDir", out, "--listEmittedFiles"];
  try {
    const listed = execFileSync(process.execPath, words, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
    return [...listed.matchAll(/^TSFILE: (.*)$/gm)].map(([, path]) => slashed(resolve(path)).slice(out.length + 1));
  } catch (error) {
    process.stdout.write(error.stdout ?? `${error.message}\n`);
    return process.exit(1);
  }
}

const slashed = (path) => path.replaceAll("\\", "/");

function removeOthers(written) {
  const keep = new Set(written);
  for (const entry of readdirSync(out, { recursive: true, withFileTypes: true })) {
    const path = slashed(join(entry.parentPath, entry.name)).slice(out.length + 1);
    if (!entry.isFile() || keep.has(path)) continue;
    rmSync(join(out, path));
  }
}

const types = writeTypes();
const written = [
  ...types,
  ...(await writeCode()),
  ...(await writePage()),
  ...(await writePlayground()),
  ...(await writeAheadRuntime()),
];
const missing = written.filter((path) => !existsSync(join(out, path)));
if (missing.length > 0) throw new Error(`not written: ${missing.join(", ")}`);
removeOthers(written);
