/**
 * @file Who may import whom. A file imports from its own layer and from layers before it in `LAYERS`; layers of one row do not
 * see each other. Types count like values here: a type that points right is a dependency of ideas. Inside one layer types may
 * refer to each other in circles, values may not.
 */
import { isProduct, isTest, type ProjectFile } from "./project.ts";
import { importsOf, resolveImport } from "./syntax.ts";

export const LAYERS: readonly (readonly string[])[] = [
  ["base"],
  ["kernel", "pool"],
  ["target"],
  ["ir"],
  ["ops"],
  ["trace", "autodiff", "batching", "passes", "lower", "formats"],
  ["plan"],
  ["codegen", "remat"],
  ["loops"],
  ["compiler"],
  ["runtime"],
  ["api"],
  ["core", "exchange", "nn", "optim", "sim", "tape", "view"],
  ["fit", "parallel"],
  ["node", "playground"],
  ["cli"],
];

/** The layers on lines of text, for the code map of ARCHITECTURE.md. */
export function layersText(): string {
  const rows = LAYERS.map((row) => (row.length === 1 ? row.join() : `{${row.join(", ")}}`));
  const half = Math.ceil(rows.length / 2);
  return [`${rows.slice(0, half).join(" → ")} →`, rows.slice(half).join(" → ")].join("\n");
}

/** Layers that the code map of ARCHITECTURE.md has no paragraph about. */
export function codeMapViolations(text: string): readonly string[] {
  return LAYERS.flat()
    .filter((layer) => !text.includes(`**src/${layer}**`))
    .map((layer) => `ARCHITECTURE.md: the code map does not say what src/${layer} is`);
}

/** The layers that may use Node. */
const ON_NODE: readonly string[] = ["node", "cli"];

/** Packages with the files that may import them, by how both begin; `highs` is not imported but read (src/node/highs.ts). */
const ADAPTERS: readonly (readonly [string, string])[] = [
  ["sucrase", "src/playground/strip.ts"],
  ["@codemirror/", "src/playground/page/editor"],
  ["@lezer/highlight", "src/playground/page/editor-theme.ts"],
];

/** Files that hand entry points to users: what is typed in the editor imports them by their names. */
const HANDING_OUT: readonly string[] = ["src/playground/user-code.ts"];

export function layerOf(path: string): string {
  return path.split("/")[1] ?? "";
}

function rankOf(layer: string): number {
  return LAYERS.findIndex((group) => group.includes(layer));
}

export function layerViolations(files: readonly ProjectFile[]): readonly string[] {
  const paths = new Set(files.map((file) => file.path));
  return files
    .filter((file) => isProduct(file.path))
    .flatMap((file) => {
      const from = layerOf(file.path);
      if (rankOf(from) < 0) return [`${file.path}: belongs to no layer; the layers are ${LAYERS.flat().join(", ")}`];
      return importsOf(file).flatMap(({ specifier, line }) => {
        const place = `${file.path}:${line}: imports ${specifier}`;
        const target = resolveImport(file.path, specifier);
        if (target === null) {
          const node = specifier.startsWith("node:") && ON_NODE.includes(from);
          const allowed =
            node || ADAPTERS.some(([name, place]) => specifier.startsWith(name) && file.path.startsWith(place));
          return allowed ? [] : [`${place}: ${from}/ has no Node modules and the package has no dependencies`];
        }
        return targetViolations(place, file.path, target, paths);
      });
    });
}

function targetViolations(place: string, path: string, target: string, paths: ReadonlySet<string>): readonly string[] {
  if (!paths.has(target)) return [`${place}: there is no ${target}`];
  if (isTest(target)) return [`${place}: only tests import tests`];
  if (!target.startsWith("src/")) return [`${place}: the product imports only from src/`];
  if (target.endsWith("/index.ts") && !HANDING_OUT.includes(path))
    return [`${place}: index.ts is an entry point for users; import the file itself`];
  const [from, to] = [layerOf(path), layerOf(target)];
  if (from === to || rankOf(to) < rankOf(from)) return [];
  const why = rankOf(to) === rankOf(from) ? "siblings do not see each other" : `${to}/ is to the right of ${from}/`;
  return [`${place}: ${why}`];
}

/** What a layer may import of some layers to its left: these files, or none. */
const KNOWS: readonly {
  readonly layer: string;
  readonly of: readonly string[];
  readonly files: readonly string[];
  readonly why: string;
}[] = [
  {
    layer: "plan",
    of: ["kernel", "lower", "passes", "target", "autodiff", "trace"],
    files: ["src/target/space.ts", "src/target/work.ts"],
    why: "the planner knows memory spaces and work, and neither kernels nor targets",
  },
  {
    layer: "runtime",
    of: ["plan", "loops", "compiler", "passes", "lower", "autodiff", "ops"],
    files: [],
    why: "the runtime decides nothing: it runs placed programs",
  },
  {
    layer: "codegen",
    of: ["lower", "passes", "autodiff", "trace", "ops"],
    files: [],
    why: "a target sees placed kernels and no operations",
  },
];

/** What layers must not know, although it is to their left. */
export function knowledgeViolations(files: readonly ProjectFile[]): readonly string[] {
  return files
    .filter((file) => isProduct(file.path))
    .flatMap((file) => {
      const rules = KNOWS.filter(({ layer }) => layer === layerOf(file.path));
      return importsOf(file).flatMap(({ specifier, line }) => {
        const target = resolveImport(file.path, specifier) ?? "";
        return rules
          .filter((rule) => rule.of.includes(layerOf(target)) && !rule.files.includes(target))
          .map(({ why }) => `${file.path}:${line}: imports ${specifier}: ${why}`);
      });
    });
}

/** Benchmarks, examples and scripts are no tests, so they do not import any. */
export function testImportViolations(files: readonly ProjectFile[]): readonly string[] {
  return files
    .filter((file) => /\.m?[jt]s$/.test(file.path) && !isTest(file.path) && !isProduct(file.path))
    .flatMap((file) =>
      importsOf(file)
        .filter(({ specifier }) => isTest(resolveImport(file.path, specifier) ?? ""))
        .map(({ specifier, line }) => `${file.path}:${line}: imports ${specifier}: only tests import tests`),
    );
}

const isTestsOnly = ({ text }: ProjectFile): boolean => /^\/\*\*\s+(\* )?@file Tests only\./.test(text);

/**
 * What opens with `Tests only.` is no part of the planner's digest (scripts/build.mjs), so no other module may import it; and what
 * such modules alone import says so too.
 */
export function testsOnlyViolations(files: readonly ProjectFile[]): readonly string[] {
  const product = files.filter(({ path }) => isProduct(path));
  const marked = new Set(product.filter(isTestsOnly).map(({ path }) => path));
  const importers = new Map<string, string[]>();
  for (const file of product) {
    for (const { specifier } of importsOf(file)) {
      const target = resolveImport(file.path, specifier);
      if (target !== null) importers.set(target, [...(importers.get(target) ?? []), file.path]);
    }
  }
  return [...importers].flatMap(([path, from]) => {
    const others = from.filter((each) => !marked.has(each));
    if (marked.has(path)) return others.map((each) => `${each}: imports ${path}, which is for tests only`);
    return others.length === 0 ? [`${path}: is for tests only, as ${from[0]} is, and does not say so`] : [];
  });
}

/** Each cycle once, as `a.ts → b.ts → a.ts`, found by depth-first search from every file in order of path. */
export function cycleViolations(files: readonly ProjectFile[]): readonly string[] {
  const edges = new Map<string, readonly string[]>();
  for (const file of files.filter((f) => isProduct(f.path))) {
    const targets = importsOf(file).flatMap(({ specifier, typeOnly }) => {
      const target = resolveImport(file.path, specifier);
      return target === null || (typeOnly && layerOf(target) === layerOf(file.path)) ? [] : [target];
    });
    edges.set(file.path, targets);
  }
  const finished = new Set<string>();
  const open: string[] = [];
  const cycles: string[] = [];
  const visit = (path: string): void => {
    const start = open.indexOf(path);
    if (start >= 0) cycles.push(`import cycle: ${[...open.slice(start), path].join(" → ")}`);
    if (start >= 0 || finished.has(path)) return;
    open.push(path);
    for (const next of edges.get(path) ?? []) visit(next);
    open.pop();
    finished.add(path);
  };
  for (const path of edges.keys()) visit(path);
  return cycles;
}
