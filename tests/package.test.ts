/**
 * @file What people install works: the package is built, packed and installed into an empty project without a network,
 * then used from JavaScript and from TypeScript. The subpaths come from the exports map, so a new one is tested as soon
 * as it is listed. The build goes to a folder of its own: other tests may be reading dist/.
 */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type OutputChunk, rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildPackage } from "./support/build.ts";
import { effectsOf } from "./support/code-rules.ts";
import { ROOT, subpathSources } from "./support/project.ts";

interface Manifest {
  readonly scripts: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
  readonly sideEffects: readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** What the bundler adds to keep the name of a function: a change of that function alone. */
const isNaming = (statement: string): boolean => /^__name\([\w$]+, "[^"]*"\);$/.test(statement);

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

/** Runs a command; on failure the error carries everything it printed. */
function run(cwd: string, command: string, ...args: readonly string[]): string {
  try {
    return execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${command} ${args.join(" ")} failed:\n${stdout}${stderr}`);
  }
}

const tsc = (cwd: string, ...args: readonly string[]): string =>
  run(cwd, process.execPath, join(ROOT, "node_modules", "typescript", "bin", "tsc"), ...args);

/** Paths below a folder, with forward slashes. */
function filesBelow(folder: string): readonly string[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return names.map((name) => name.replaceAll("\\", "/")).sort();
}

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

  beforeAll(() => {
    mkdirSync(staging);
    for (const name of ["package.json", "bin", "README.md", "LICENSE", "CHANGELOG.md"]) {
      if (existsSync(join(ROOT, name))) cpSync(join(ROOT, name), join(staging, name), { recursive: true });
    }
    buildPackage(join(staging, "dist"));
    // Scripts are off because they would build; a person who installs the archive has none to switch off.
    run(staging, "npm", "pack", "--ignore-scripts", "--pack-destination", folder);
    const archive = readdirSync(folder).find((name) => name.endsWith(".tgz")) ?? "";
    cpSync(join(ROOT, "tests", "fixtures", "consumer"), consumer, { recursive: true });
    writeFileSync(join(consumer, "package.json"), '{ "name": "consumer", "private": true, "type": "module" }');
    run(consumer, "npm", "install", "--offline", "--no-audit", "--no-fund", join(folder, archive));
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("brings nothing with it but what its manifest calls optional", () => {
    const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const optional = Object.keys(manifest.optionalDependencies ?? {});
    expect(manifest.dependencies).toBeUndefined();
    const brought = readdirSync(join(consumer, "node_modules")).filter((name) => !name.startsWith("."));
    // koffi's compiled part for each system is a package of its own
    const parts = existsSync(join(consumer, "node_modules", "koffi")) ? ["@koromix"] : [];
    expect(brought.filter((name) => ![...optional, ...parts].includes(name))).toEqual(["tidemark"]);
  });

  const codeOf = (paths: readonly string[]) =>
    paths.filter((path) => path.endsWith(".js") && !path.endsWith(".bundle.js"));

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
    expect(files.length).toBeLessThan(8);
  });

  it("lists every file that does something when it is imported, and no other", () => {
    const code = filesBelow(installed).filter((path) => path.endsWith(".js"));
    const effects = code.filter((path) => {
      const file = { path, text: readFileSync(join(installed, path), "utf8").replace(/^#!.*/, "") };
      return effectsOf(file).some(({ start, end }) => !isNaming(file.text.slice(start, end)));
    });
    // an import of `tidemark` alone is an import of the shared file with the methods
    expect([...effects, "dist/api/index.js"].sort()).toEqual(
      manifest.sideEffects.map((path) => path.slice("./".length)).sort(),
    );
  });

  it("leaves nothing of an import in a bundle where nothing is used and nothing is done", async () => {
    for (const [name, source] of sources) {
      const { code, modules } = await bundled(join(consumer, "import.mjs"), `import ${JSON.stringify(name)};\n`);
      const entry = source.replace(/^src\/(.*)\.ts$/, "dist/$1.js");
      const left = Object.entries(modules).flatMap(([path, { renderedLength }]) => (renderedLength > 0 ? [path] : []));
      if (manifest.sideEffects.includes(`./${entry}`)) expect(code, name).toContain("prototype");
      else
        expect(
          left.filter((path) => path.endsWith(entry)),
          name,
        ).toEqual([]);
      // these do without tensors, and so without their methods
      if (/\/(ir|plan|wasm)$/.test(name)) expect(left, name).toEqual([]);
    }
  });

  it("works in a bundle, with what Node adds", async () => {
    const path = join(consumer, "bundled.mjs");
    const { code } = await bundled(path, readFileSync(path, "utf8"));
    writeFileSync(join(consumer, "bundle.mjs"), code);
    const found = JSON.parse(run(consumer, process.execPath, "bundle.mjs")) as Record<string, unknown>;
    expect(found.results).toEqual([2, 4]);
    expect(String(found.targetNote)).not.toContain("not imported");
    if (existsSync(join(consumer, "node_modules", "koffi"))) expect(found.target).toBe("native");
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

  it("type-checks in a strict project that checks the types of its libraries too", () => {
    const lines = subpaths.map((name, i) => `export * as subpath${i} from "${name}";`);
    writeFileSync(join(consumer, "subpaths.ts"), `${lines.join("\n")}\nexport {};\n`);
    expect(tsc(consumer, "-p", ".")).toBe("");
    writeFileSync(join(consumer, "wrong.ts"), 'import "tidemark/no-such-subpath";\n');
    expect(() => tsc(consumer, "-p", ".", "--noUncheckedSideEffectImports")).toThrow("tidemark/no-such-subpath");
  });
});
