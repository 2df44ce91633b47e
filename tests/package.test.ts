/**
 * @file What people install works: the package is built, packed and installed into an empty project without a network,
 * then used from JavaScript and from TypeScript. The subpaths come from the exports map, so a new one is tested as soon
 * as it is listed. The build goes to a folder of its own: other tests may be reading dist/.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { type OutputChunk, rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TEAM } from "../src/codegen/wasm/team.ts";
import { systemCompiler } from "../src/node/native/compiler.ts";
import { effectsOf } from "./support/code-rules.ts";
import { linkViolations } from "./support/document-rules.ts";
import { filesBelow, installPackage, run, testedTool } from "./support/installed-package.ts";
import { ROOT, subpathSources } from "./support/project.ts";

interface Manifest {
  readonly scripts: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
  readonly sideEffects: readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional: boolean }>>;
}

/** Limits of bundles that use some functions, minified and compressed, in kB. */
const BUNDLES = { tensor: 6.5, core: 161, budget: 187, "budget, later": 73, tidemark: 275 };

/** What the bundler adds to keep the name of a function: a change of that function alone. */
const isNaming = (statement: string): boolean =>
  /^(?:\/\* @__PURE__ \*\/ )?__name\([\w$]+, "[^"]*"\);$/.test(statement);

/** The module at `path`, with a text, as users' bundlers see it. */
async function bundled(path: string, text: string): Promise<OutputChunk> {
  writeFileSync(path, text);
  const bundle = await rolldown({ input: path, platform: "node", external: ["koffi", "highs"], logLevel: "silent" });
  const { output } = await bundle.generate({ codeSplitting: false });
  await bundle.close();
  return output[0];
}

interface SourceMap {
  readonly sources: readonly string[];
  readonly sourcesContent: readonly string[];
}

const manifestText = readFileSync(join(ROOT, "package.json"), "utf8");
const manifest = JSON.parse(manifestText) as Manifest;
const sources = subpathSources(manifestText);
const subpaths = [...sources].filter(([, source]) => existsSync(join(ROOT, source))).map(([name]) => name);

/**
 * Documents for people who change the library cite its sources and tests, which are in a checkout and not in the package.
 * All that documents for users link to is in the package.
 */
const isForContributors = (violation: string): boolean =>
  /^(ARCHITECTURE|docs\/(adding-a|testing|decisions\/|lab\/|tutorial\/))/.test(violation) &&
  /the link (\.\.\/)*(src|tests|bench|scripts|examples|vitest)\b/.test(violation);

/**
 * What @arethetypeswrong/core reports and is meant to be: the package is for module resolution by `exports` (README), which
 * `node10` has not, and it is modules only, which CommonJS loads by `import()` or by `require` of Node 20.19.
 */
const IGNORED_KINDS: ReadonlySet<string> = new Set(["NoResolution", "CJSResolvesToESM"]);

const tsc = (cwd: string, ...args: readonly string[]): string =>
  run(cwd, process.execPath, join(ROOT, "node_modules", "typescript", "bin", "tsc"), ...args);

describe("the manifest", () => {
  it("exports only what has a source", () => {
    const missing = [...sources].filter(([, source]) => !existsSync(join(ROOT, source)));
    expect(missing.map(([name, source]) => `package.json exports ${name}, but there is no ${source}`)).toEqual([]);
  });

  it("runs nothing on the machine of a person who installs it", () => {
    const scripts = ["preinstall", "install", "postinstall"].filter((name) => name in manifest.scripts);
    expect(scripts).toEqual([]);
    expect(manifest.dependencies ?? {}).toEqual({});
  });
});

describe("the installed package", () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-package-"));
  const staging = join(folder, "staging");
  const consumer = join(folder, "consumer");
  const installed = join(consumer, "node_modules", "tidemark");
  let archive = "";

  beforeAll(() => {
    archive = installPackage({ folder, staging, consumer });
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("brings nothing with it: what some programs need is named as an optional peer", () => {
    const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = manifest;
    expect([dependencies, optionalDependencies]).toEqual([undefined, undefined]);
    const optional = Object.entries(peerDependenciesMeta).flatMap(([name, meta]) => (meta.optional ? [name] : []));
    expect(optional).toEqual(Object.keys(peerDependencies));
    expect(readdirSync(join(consumer, "node_modules")).filter((name) => !name.startsWith("."))).toEqual(["tidemark"]);
  });

  const codeOf = (paths: readonly string[]) =>
    paths.filter((path) => path.endsWith(".js") && !/\.bundle\.js$|\bplayground\//.test(path));

  it("carries code and types, and neither maps, tests, sources nor benchmarks", () => {
    const paths = filesBelow(installed);
    expect(paths).toContain("LICENSE");
    expect(paths.filter((path) => /\.test\.|\.map$|^src\b|^tests\b|^dist\/bench\b/.test(path))).toEqual([]);
    const entries = Object.values(manifest.exports).flatMap((target) => (typeof target === "string" ? [] : [target]));
    const named = entries.flatMap(({ types, default: code }) => [types, code].map((path) => path.slice("./".length)));
    expect(named.filter((path) => !paths.includes(path))).toEqual([]);
    // a comment that names a map which is not there makes bundlers and browsers look for it
    const code = paths.filter((path) => /\.(js|d\.ts)$/.test(path));
    expect(code.filter((path) => readFileSync(join(installed, path), "utf8").includes("sourceMappingURL="))).toEqual(
      [],
    );
  });

  it("is built with maps that know all of its code", () => {
    const paths = filesBelow(join(staging, "dist"));
    // what has nothing to map: an entry point that only passes on, and the bundler's own few lines
    const ours = codeOf(paths).filter((path) => !path.endsWith("/rolldown-runtime.js"));
    const mapless = ours.filter((path) => !paths.includes(`${path}.map`));
    const passes = (path: string) =>
      !/^(?!import |export \{|$)/m.test(readFileSync(join(staging, "dist", path), "utf8"));
    expect(mapless.filter((path) => !passes(path))).toEqual([]);
  });

  it("has every source in one file alone, so that no class or registry exists twice", () => {
    const homes = new Map<string, string>();
    for (const path of filesBelow(staging).filter((p) => /^dist\/.*\.js\.map$/.test(p))) {
      const map = JSON.parse(readFileSync(join(staging, path), "utf8")) as SourceMap;
      map.sources.forEach((source, i) => {
        const name = join(path, "..", source).replaceAll("\\", "/");
        expect(homes.get(name), name).toBeUndefined();
        homes.set(name, path);
        expect(map.sourcesContent[i]).toContain("@file");
      });
    }
    for (const source of sources.values()) expect(existsSync(join(ROOT, source))).toBe(true);
    expect([...homes.keys()].filter((name) => !existsSync(join(ROOT, name)))).toEqual([]);
    expect(homes.has("src/trace/tensor.ts")).toBe(true);
  });

  it("takes no more than a few files for an import, and none of Node's for its core", () => {
    const reached = (path: string, seen = new Set<string>()): ReadonlySet<string> => {
      if (seen.has(path)) return seen;
      seen.add(path);
      if (path.startsWith("node:")) return seen;
      const text = readFileSync(path, "utf8");
      for (const [, to = ""] of text.matchAll(/^(?:import|export) (?:[^;"]*? from )?"([^"]+)";$/gm)) {
        reached(to.startsWith(".") ? join(path, "..", to) : to, seen);
      }
      return seen;
    };
    const files = [...reached(join(installed, "dist", "api", "index.js"))];
    expect(files.filter((path) => path.startsWith("node:"))).toEqual([]);
    expect(files.length).toBeGreaterThan(2);
    expect(files.length).toBeLessThan(10);
  });

  it("lists every file that does something when it is imported, and no other", () => {
    const code = filesBelow(installed).filter((path) => path.endsWith(".js"));
    const files = code.map((path) => ({
      path,
      text: readFileSync(join(installed, path), "utf8").replace(/^#!.*/, ""),
    }));
    const does = (file: (typeof files)[number]) =>
      effectsOf(file).some(({ start, end }) => !isNaming(file.text.slice(start, end)));
    const effects = new Set(files.filter(does).map(({ path }) => path));
    // an entry point that imports such a file for its effect has that effect
    for (const { path, text } of files) {
      const imported = [...text.matchAll(/^import "([^"]+)";$/gm)].map(([, to = ""]) => join(path, "..", to));
      if (imported.some((to) => effects.has(to.replaceAll("\\", "/")))) effects.add(path);
    }
    expect([...effects].sort()).toEqual(manifest.sideEffects.map((path) => path.slice("./".length)).sort());
  });

  it("leaves nothing of an import in a bundle where nothing is used and nothing is done", async () => {
    for (const [name, source] of sources) {
      const { code, modules } = await bundled(join(consumer, "import.mjs"), `import ${JSON.stringify(name)};\n`);
      const entry = source.replace(/^src\/(.*)\.ts$/, "dist/$1.js");
      const left = Object.entries(modules).flatMap(([path, { renderedLength }]) => (renderedLength > 0 ? [path] : []));
      if (manifest.sideEffects.includes(`./${entry}`)) expect(code, name).toMatch(/prototype|installPart/);
      else
        expect(
          left.filter((path) => path.endsWith(entry)),
          name,
        ).toEqual([]);
      // these do without tensors, and so without their methods
      if (/\/(ir|plan|wasm)$/.test(name)) expect(left, name).toEqual([]);
    }
  });

  it("is no larger in a bundle than what is used of it", async () => {
    const step = "compile(grad((w) => matmul(tensor([[1, 2]]), w)))";
    const used = "import { compile, grad, matmul, tensor } from";
    const sizes: Record<string, number> = {};
    for (const [name, text] of Object.entries({
      tensor: 'import { tensor } from "tidemark/core"; console.log(tensor([1]));',
      core: `${used} "tidemark/core"; console.log(${step});`,
      budget: `${used} "tidemark/core"; await import("tidemark/core/budget"); console.log(${step});`,
      tidemark: `${used} "tidemark"; console.log(${step});`,
    })) {
      const path = join(consumer, "size.mjs");
      writeFileSync(path, text);
      const bundle = await rolldown({ input: path, logLevel: "silent" });
      const { output } = await bundle.generate({ minify: true });
      await bundle.close();
      const atFirst = new Set([output[0].fileName, ...output[0].imports]);
      for (const chunk of output.filter((each) => each.type === "chunk")) {
        const when = atFirst.has(chunk.fileName) ? name : `${name}, later`;
        sizes[when] = (sizes[when] ?? 0) + gzipSync(chunk.code, { level: 9 }).length;
      }
    }
    // what a page loads at first does not grow by what it loads later
    console.log("bytes of bundles, gzip:", JSON.stringify(sizes));
    for (const [name, limit] of Object.entries(BUNDLES)) expect(sizes[name], name).toBeLessThan(1000 * limit);
  });

  it("works in a bundle, with what Node adds, and says which package to install for native code", async () => {
    const path = join(consumer, "bundled.mjs");
    const { code } = await bundled(path, readFileSync(path, "utf8"));
    writeFileSync(join(consumer, "bundle.mjs"), code);
    const answer = () => JSON.parse(run(consumer, process.execPath, "bundle.mjs")) as Record<string, unknown>;
    const without = answer();
    expect(without).toMatchObject({ results: [2, 4], target: "wasm" });
    expect(String(without.targetNote)).not.toContain("not imported");
    const doctor = JSON.parse(
      run(consumer, process.execPath, join(installed, "bin", "tidemark.js"), "doctor", "--json"),
    );
    expect(doctor.solver).toEqual({ available: false, note: "the package highs is not installed: npm install highs" });
    if (typeof systemCompiler() === "string") return;
    const note = "the package koffi is not installed: npm install koffi";
    expect(without.targetNote).toBe(`wasm, not native: ${note}`);
    expect(doctor.targets).toContainEqual({ name: "native", available: false, note });
    for (const name of ["koffi", "@koromix"]) {
      cpSync(join(ROOT, "node_modules", name), join(consumer, "node_modules", name), { recursive: true });
    }
    expect(answer()).toMatchObject({ results: [2, 4], target: "native", targetNote: null });
  });

  it("carries what its command imports", () => {
    const command = readFileSync(join(installed, "bin", "tidemark.js"), "utf8");
    const imported = [...command.matchAll(/from "\.\.\/(.*)"/g)].map((match) => match[1] ?? "");
    expect(imported).toHaveLength(1);
    expect(imported.filter((path) => !existsSync(join(installed, path)))).toEqual([]);
  });

  it("shows a plan as a page that needs no other file", () => {
    const page = join(consumer, "page.html");
    run(
      consumer,
      process.execPath,
      join(installed, "bin", "tidemark.js"),
      "view",
      "mlp",
      "--html",
      page,
      "--points",
      "2",
    );
    const html = readFileSync(page, "utf8");
    expect(html).toContain("<title>mlp · Tidemark</title>");
    expect(html).not.toMatch(/\b(?:src|href)=/);
  });

  it("is imported from JavaScript by every subpath, which exports what its source does", async () => {
    const output = run(consumer, process.execPath, "use.mjs", ...subpaths);
    const found = JSON.parse(output.trim().split("\n").at(-1) ?? "") as Record<string, readonly string[]>;
    expect(Object.keys(found)).toEqual(subpaths);
    for (const [name, source] of sources) {
      const written = (await import(pathToFileURL(join(ROOT, source)).href)) as object;
      expect(found[name], name).toEqual(Object.keys(written).sort());
    }
  });

  it("says the lines of its user, and not its own", () => {
    const [first] = run(consumer, process.execPath, "lines.mjs").split("\n");
    expect(first).toBe("lines.mjs:8:42 in twice");
    const [mapped] = run(consumer, process.execPath, "--enable-source-maps", "lines.mjs").split("\n");
    expect(mapped).toBe("lines.mjs:8:42 in twice");
  });

  describe("type-checks in a strict project that checks the types of its libraries too", () => {
    const KINDS = [
      ["--module", "nodenext", "--moduleResolution", "nodenext"],
      ["--module", "esnext", "--moduleResolution", "bundler"],
    ];

    beforeAll(() => {
      const lines = subpaths.map((name, i) => `export * as subpath${i} from "${name}";`);
      writeFileSync(join(consumer, "subpaths.ts"), `${lines.join("\n")}\nexport {};\n`);
    });

    it("with the current TypeScript", () => {
      for (const kind of KINDS) expect(tsc(consumer, "-p", ".", ...kind), kind.join(" ")).toBe("");
      expect(tsc(consumer, "-p", "core"), "functions alone").toBe("");
      const [path, text] = [join(consumer, "wrong.ts"), 'import "tidemark/no-such-subpath";\n'];
      writeFileSync(path, text);
      expect(() => tsc(consumer, "-p", ".", "--noUncheckedSideEffectImports")).toThrow("tidemark/no-such-subpath");
      rmSync(path);
    });

    const least = testedTool("typescript");
    it.skipIf(least.missing)("with the least that README names", () => {
      const { title, command, args } = least.found();
      const [stated] = readFileSync(join(installed, "README.md"), "utf8").match(/TypeScript \d+\.\d+/) ?? [];
      expect(title).toMatch(new RegExp(`^${stated}\\.`));
      for (const kind of KINDS) expect(run(consumer, command, ...args, "-p", ".", ...kind), kind.join(" ")).toBe("");
    });
  });

  describe.each(["deno", "bun"])("runs on %s", (name) => {
    const engine = testedTool(name);
    const asked = name === "deno" ? ["run", "-A"] : [];

    it.skipIf(engine.missing).each(["with tidemark/node", "plain"])("%s", (kind) => {
      const { command } = engine.found();
      const words = [...asked, "engine.mjs", String(TEAM.helped), kind];
      const env = { ...process.env, NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1", TIDEMARK_PLAN_CACHE: "off" };
      const { stdout, stderr, status } = spawnSync(command, words, { cwd: consumer, encoding: "utf8", env });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      const found = JSON.parse(stdout);
      expect(new Set(found.results).size).toBe(1);
      expect(found).toMatchObject({ target: "wasm", stages: ["trace", "plan", "generate", "load"], notes: [] });
      for (const bytes of [found.budgetBytes, found.laterBytes]) expect(bytes).toBeLessThan(0.7 * found.arenaBytes);
      const hint = "one thread, not 2: there are no workers here; in Node, Deno and Bun they come with tidemark/node";
      expect(found).toMatchObject(
        kind === "plain" ? { targetNote: hint, helped: false } : { targetNote: null, helped: true },
      );
    });
  });

  it("carries the documents that it refers to", () => {
    const files = filesBelow(installed)
      .filter((path) => statSync(join(installed, path)).isFile())
      .map((path) => ({ path, text: /\.(md|js)$/.test(path) ? readFileSync(join(installed, path), "utf8") : "" }));
    const dangling = linkViolations(files).filter((violation) => !isForContributors(violation));
    expect(dangling).toEqual([]);
    const named = files
      .filter(({ path }) => path.endsWith(".js"))
      .flatMap(({ text }) => [...text.matchAll(/\bdocs\/[\w/-]+\.md/g)].map(([path]) => path));
    expect(named).toContain("docs/plan-json.md");
    expect(named.filter((path) => !files.some((file) => file.path === path))).toEqual([]);
  });

  it("has nothing that checkers of packages complain about", async () => {
    const bytes = new Uint8Array(readFileSync(archive));
    const { messages } = await publint({ pack: { tarball: bytes.buffer }, strict: true });
    expect(messages.map((message) => formatMessage(message, JSON.parse(manifestText)))).toEqual([]);
    const checked = await checkPackage(createPackageFromTarballData(bytes));
    expect(checked.types).toMatchObject({ kind: "included" });
    const problems = "problems" in checked ? checked.problems : [];
    expect(problems.filter(({ kind }) => !IGNORED_KINDS.has(kind))).toEqual([]);
    // what is ignored is still found: the list has nothing that could go
    expect(new Set(problems.map(({ kind }) => kind))).toEqual(IGNORED_KINDS);
  });
});
