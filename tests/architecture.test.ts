/**
 * @file The rules of the house, checked on the project's own files. Each rule is a pure function from files to
 * violations; it runs here on the project, where it must find nothing, and on a small wrong example, where it must find
 * something.
 */
import { describe, expect, it } from "vitest";
import {
  anyViolations,
  errorViolations,
  headerViolations,
  type ImportEffect,
  INSTALLER,
  importEffectViolations,
  opIdentityViolations,
  opNameViolations,
  type ParameterException,
  parameterViolations,
  providerViolations,
  type SizeException,
  sizeViolations,
  typeNameViolations,
} from "./support/code-rules.ts";
import {
  dialectViolations,
  errorCodes,
  errorSectionViolations,
  linkViolations,
  lockViolations,
  machineViolations,
  passNames,
  passViolations,
  sourceNameViolations,
} from "./support/document-rules.ts";
import {
  codeMapViolations,
  cycleViolations,
  knowledgeViolations,
  layerViolations,
  testImportViolations,
  testsOnlyViolations,
} from "./support/layer-rules.ts";
import { type ProjectFile, projectFiles } from "./support/project.ts";

/** Code that may be longer than 500 lines a file or 60 lines a function, each with its reason. */
const LONGER: readonly SizeException[] = [];

/** Where functions may have more than four parameters, and why. Empty is best. */
const MORE_PARAMETERS: readonly ParameterException[] = [];

/**
 * Files and folders whose prose is checked for plain words: all documents, the command line with its help, and the sources
 * that are clean so far. Add a folder once it is.
 */
const IN_PLAIN_WORDS: readonly string[] = [
  ...["README.md", "ARCHITECTURE.md", "CHANGELOG.md"],
  ...["docs/", "bench/", "examples/", "scripts/", "site/explainer/", "src/"],
];

/** Files in which such words stand for something else. */
const OTHER_WORDS: readonly string[] = [
  "src/plan/explain.ts", // sentences of plan files, whose texts stay as they are
  "src/playground/models.ts", // a text that a network learns
];

/** What happens on import, by file. Users import `methods.ts` and `node/index.ts` by entry points; the others run in places of their own. */
const IMPORT_EFFECTS: readonly ImportEffect[] = [
  { path: "src/api/methods.ts", effect: "gives tensors their methods" },
  { path: "src/api/budgets.ts", effect: "installs the planner of budgets" },
  { path: "src/api/compile-worker.ts", effect: "is a worker" },
  { path: "src/node/index.ts", effect: "installs Node as the host" },
  { path: "src/node/plan-process.ts", effect: "is a process" },
  { path: "src/cli/view-worker.ts", effect: "is a thread" },
  { path: "src/view/page/main.ts", effect: "is the script of a page" },
  { path: "src/playground/page/edit.ts", effect: "is the script of a page" },
  { path: "src/playground/page/train.ts", effect: "is the script of a page" },
  { path: "src/playground/page/worker.ts", effect: "is a thread of a page" },
];

const files = projectFiles();

/** Small files for the wrong examples: `path → text`. */
function made(texts: Readonly<Record<string, string>>): readonly ProjectFile[] {
  return Object.entries(texts).map(([path, text]) => ({ path, text }));
}

function fileAt(path: string): ProjectFile {
  const file = files.find((f) => f.path === path);
  if (!file) throw new Error(`the project has no ${path}`);
  return file;
}

describe("layers", () => {
  it("import only from their own layer or to the left", () => {
    expect(layerViolations(files)).toEqual([]);
  });

  it("are all in the code map, and one that is not is named", () => {
    const { text } = fileAt("ARCHITECTURE.md");
    expect(codeMapViolations(text)).toEqual([]);
    expect(codeMapViolations(text.replace("**src/core**", ""))).toEqual([
      "ARCHITECTURE.md: the code map does not say what src/core is",
    ]);
  });

  it("are refused when an arrow points right, to a sibling, to a test, to an entry point or to Node", () => {
    const wrong = made({
      "src/base/a.ts": 'import type { B } from "../ir/b.ts";',
      "src/ir/b.ts": 'export type B = import("../plan/p.ts").P;',
      "src/plan/p.ts": 'export * from "./index.ts";',
      "src/plan/index.ts": "export type P = 1;",
      "src/trace/t.ts": 'import "../passes/x.ts";',
      "src/passes/x.ts": 'import { readFileSync } from "node:fs"; import "../ir/b.test.ts";',
      "src/ir/b.test.ts": 'import "../api/missing.ts";',
      "src/elsewhere/y.ts": "",
      "src/cli/main.ts": 'import "node:fs"; import "highs"; await import("./missing.ts");',
    });
    expect(layerViolations(wrong)).toEqual([
      "src/base/a.ts:1: imports ../ir/b.ts: ir/ is to the right of base/",
      "src/ir/b.ts:1: imports ../plan/p.ts: plan/ is to the right of ir/",
      "src/plan/p.ts:1: imports ./index.ts: index.ts is an entry point for users; import the file itself",
      "src/trace/t.ts:1: imports ../passes/x.ts: siblings do not see each other",
      "src/passes/x.ts:1: imports node:fs: passes/ has no Node modules and the package has no dependencies",
      "src/passes/x.ts:1: imports ../ir/b.test.ts: only tests import tests",
      expect.stringContaining("src/elsewhere/y.ts: belongs to no layer"),
      "src/cli/main.ts:1: imports highs: cli/ has no Node modules and the package has no dependencies",
      "src/cli/main.ts:1: imports ./missing.ts: there is no src/cli/missing.ts",
    ]);
  });

  it("do not know what they have no business with, even to the left", () => {
    expect(knowledgeViolations(files)).toEqual([]);
    const wrong = made({
      "src/plan/a.ts": 'import type { Kernel } from "../kernel/loops.ts"; import "../target/space.ts";',
      "src/plan/b.ts": 'import "../target/description.ts";',
      "src/runtime/c.ts": 'import type { Plan } from "../plan/problem.ts";',
    });
    expect(knowledgeViolations(wrong).map((v) => v.split(": ")[0])).toEqual([
      "src/plan/a.ts:1",
      "src/plan/b.ts:1",
      "src/runtime/c.ts:1",
    ]);
  });

  it("and everything else that is not a test import no tests", () => {
    expect(testImportViolations(files)).toEqual([]);
    const wrong = made({ "bench/run.ts": 'import { x } from "../tests/support/x.ts";' });
    expect(testImportViolations(wrong)).toHaveLength(1);
  });

  it("do not import what is for tests only", () => {
    expect(testsOnlyViolations(files)).toEqual([]);
    const oracle = "/** @file Tests only. An oracle. */\n";
    const wrong = made({
      "src/ir/oracle.ts": `${oracle}import { b } from "./b.ts";\nimport { c } from "./c.ts";`,
      "src/ir/b.ts": "/** @file Of the oracle. */",
      "src/ir/c.ts": "/** @file Of both. */",
      "src/ir/d.ts": '/** @file A pass. */\nimport { c } from "./c.ts";\nimport type { Run } from "./oracle.ts";',
      "src/ir/oracle.test.ts": 'import { run } from "./oracle.ts";',
    });
    expect(testsOnlyViolations(wrong)).toEqual([
      "src/ir/b.ts: is for tests only, as src/ir/oracle.ts is, and does not say so",
      "src/ir/d.ts: imports src/ir/oracle.ts, which is for tests only",
    ]);
  });

  it("have no import cycles", () => {
    expect(cycleViolations(files)).toEqual([]);
  });

  it("have a cycle when values import each other, and none when types of one layer do", () => {
    const pair = (how: string): readonly ProjectFile[] =>
      made({
        "src/ir/a.ts": 'import { b } from "./b.ts";',
        "src/ir/b.ts": 'export * from "./c.ts";',
        "src/ir/c.ts": `${how} { a } from "./a.ts";`,
      });
    expect(cycleViolations(pair("import"))).toEqual([
      "import cycle: src/ir/a.ts → src/ir/b.ts → src/ir/c.ts → src/ir/a.ts",
    ]);
    expect(cycleViolations(pair("import type"))).toEqual([]);
    expect(cycleViolations(pair("export type"))).toEqual([]);
  });
});

describe("code", () => {
  it("keeps to 500 lines a file and 60 lines a function", () => {
    expect(sizeViolations(files, LONGER)).toEqual([]);
  });

  it("is refused beyond that, unless it is a listed exception that is still needed", () => {
    const body = "x();\n".repeat(60);
    const wrong = made({
      "src/ir/long.ts": `${"\n".repeat(500)}f();`,
      "src/ir/a.ts": `function declared() {\n${body}}\nconst arrow = () => {\n${body}};\nclass C { method() {\n${body}} }`,
      "src/ir/a.test.ts": `describe("it", () => {\n${body}});`,
    });
    expect(sizeViolations(wrong, [])).toEqual([
      "src/ir/long.ts: 501 lines, the limit is 500",
      "src/ir/a.ts:1: declared has 62 lines, the limit is 60",
      "src/ir/a.ts:63: arrow has 62 lines, the limit is 60",
      "src/ir/a.ts:125: method has 62 lines, the limit is 60",
    ]);
    const exceptions: readonly SizeException[] = [
      { path: "src/ir/long.ts", reason: "a table" },
      { path: "src/ir/a.ts", name: "declared", reason: "one switch" },
      { path: "src/ir/gone.ts", reason: "a table" },
    ];
    const left = sizeViolations(wrong, exceptions);
    expect(left).toHaveLength(3);
    expect(left).toContain("src/ir/gone.ts: the exception for the file (a table) is no longer needed");
  });

  it("has at most four parameters a function", () => {
    expect(parameterViolations(files, MORE_PARAMETERS)).toEqual([]);
    const wrong = made({
      "src/ir/a.ts": "function f(a, b, c, d, e) {}\nconst g = (a, b, c, d) => a;\nlist.map((a, b, c, d, e) => e);",
      "src/ir/b.ts": "interface I {\n  m(a: A, b: A, c: A, d: A, e: A, f: A): A;\n}",
      "src/ir/c.ts": "class C {\n  m(a, b, c, d, e) {}\n}\ntype F = (a: A, b: A, c: A, d: A, e: A) => A;",
      "src/plan/old.ts": "function f(a, b, c, d, e) {}",
    });
    const exceptions = [
      { prefix: "src/plan/", reason: "rewritten soon" },
      { prefix: "src/loops/", reason: "rewritten" },
    ];
    expect(parameterViolations(wrong, exceptions)).toEqual([
      "src/ir/a.ts:1: 5 parameters, the limit is 4",
      "src/ir/a.ts:3: 5 parameters, the limit is 4",
      "src/ir/b.ts:2: 6 parameters, the limit is 4",
      "src/ir/c.ts:2: 5 parameters, the limit is 4",
      "src/ir/c.ts:4: 5 parameters, the limit is 4",
      "src/loops/: the exception (rewritten) is no longer needed",
    ]);
  });

  it("opens every file by saying what it is for", () => {
    expect(headerViolations(files)).toEqual([]);
    const wrong = made({
      "src/a.ts": "export {};",
      "b.mjs": "#!/usr/bin/env node\n/** @file Good. */",
      "c.ts": "/**\n * @file Good.\n */",
    });
    expect(headerViolations(wrong)).toEqual(["src/a.ts: does not open with /** @file … */"]);
  });

  it("throws only TidemarkError and InternalError", () => {
    expect(errorViolations(files)).toEqual([]);
    const wrong = made({
      "src/ir/a.ts":
        'throw new Error("bad");\nthrow RangeError("bad");\nclass Own extends Error {}\nclass InternalError extends Error {}',
    });
    expect(errorViolations(wrong).map((v) => v.slice(0, "src/ir/a.ts:1".length))).toEqual([
      "src/ir/a.ts:1",
      "src/ir/a.ts:2",
      "src/ir/a.ts:3",
    ]);
  });

  it("keeps nothing that it was given in variables of a module, but the parts of a host", () => {
    expect(providerViolations(files)).toEqual([]);
    const wrong = [
      "let store: Store | null = null;",
      "let count = 0;",
      "export function provide(given: Store): void { store = given; }",
      "export const set = ({ part }: Parts) => { store ??= made(part); };",
      "export const next = (by: number): number => { count += 1; let store = by; return store + by; };",
      "export function known(): Store { store ??= newStore(); return store; }",
    ].join("\n");
    expect(providerViolations(made({ "src/plan/a.ts": wrong })).map((v) => v.split(": ")[0])).toEqual([
      "src/plan/a.ts:3",
      "src/plan/a.ts:4",
    ]);
    const { path, name } = INSTALLER;
    const record = [
      "const parts: Parts = { store: null };",
      `export function ${name}(key: Key, part: Part): void { parts[key] = part; }`,
      "export function other(part: Part): void { parts.store = part; }",
      "export function local(part: Part): Parts { const parts = { store: null }; parts.count = 0; return parts; }",
    ].join("\n");
    expect(providerViolations(made({ [path]: record, "src/plan/a.test.ts": wrong }))).toEqual([
      `${path}:3: an argument becomes a variable of the module; pass it down`,
    ]);
    expect(providerViolations(made({ "src/plan/a.ts": record }))).toHaveLength(2);
  });

  it("does nothing when it is imported, but where that is listed", () => {
    expect(importEffectViolations(files, IMPORT_EFFECTS)).toEqual([]);
    const wrong = made({
      "src/ir/a.ts": 'import "./b.ts";\nregister(op);\nexport const x = 1;\nif (x) f();\nconst y = await z;',
      "src/ir/b.ts":
        "export const f = async () => { await g(); };\nexport default class {}\ndeclare const WORD: string;",
      "src/ir/c.ts": 'Object.defineProperty(A.prototype, "b", {});',
    });
    const listed: readonly ImportEffect[] = [
      { path: "src/ir/c.ts", effect: "methods" },
      { path: "src/ir/b.ts", effect: "nothing" },
    ];
    expect(importEffectViolations(wrong, listed).map((v) => v.split(": ")[0])).toEqual([
      "src/ir/a.ts:2",
      "src/ir/a.ts:4",
      "src/ir/a.ts:5",
      "src/ir/b.ts",
    ]);
  });

  it("has one `any`", () => {
    expect(anyViolations(files)).toEqual([]);
    const wrong = made({
      "src/ir/op.ts": "type AnyOp = OpDef<any>;\nconst x = 1 as any;",
      "src/ir/b.ts": "type AnyOp = OpDef<any>;\n// any word\nexpect.any(Number);",
    });
    expect(anyViolations(wrong).map((v) => v.split(": ")[0])).toEqual(["src/ir/op.ts:2", "src/ir/b.ts:1"]);
  });

  it("never asks an operation for its name", () => {
    expect(opNameViolations(files)).toEqual([]);
    const asked = [
      'if (node.op.name === "add") f();',
      'if ("add" != op.name) f();',
      "switch (node.op.name) {}",
      "if (names.has(node.op.name)) f();",
      'if (innerOp.name.startsWith("a")) f();',
    ];
    const text = [...asked, "label(node.op.name);", "if (node.name === x.name) f();"].join("\n");
    expect(opNameViolations(made({ "src/plan/a.ts": text }))).toHaveLength(asked.length);
    expect(opNameViolations(made({ "src/ir/print.ts": text }))).toEqual([]);
  });

  it("never asks which operation it is, but in the operations", () => {
    expect(opIdentityViolations(files)).toEqual([]);
    const asked = [
      "if (node.op === full) f();",
      "if (full !== op) f();",
      "if (b.producer(x)?.op !== iota) f();",
      "if ([full, iota].includes(node.op)) f();",
      "switch (op) { case full: f(); }",
    ];
    const allowed = ["if (a.op === b.op) f();", "call(full);", "if (op === stage) f();", "if (full === other) f();"];
    const text = ['import { full, iota } from "../ops/create.ts";', ...asked, ...allowed].join("\n");
    expect(opIdentityViolations(made({ "src/plan/a.ts": text })).map((v) => v.split(": ")[0])).toEqual(
      asked.map((_, n) => `src/plan/a.ts:${n + 2}`),
    );
    expect(opIdentityViolations(made({ "src/ops/a.ts": text, "src/plan/a.test.ts": text }))).toEqual([]);
  });

  it("never compares an element type with a name", () => {
    expect(typeNameViolations(files)).toEqual([]);
    const asked = [
      'const bytes = dtype === "f64" ? 8 : 4;',
      'if ("bool" != x.dtype) f();',
      'switch (dtype) { case "f32": return 4; default: return 8; }',
      'if (["f32", "i64"].includes(dtype)) f();',
      'if (from.type.startsWith("i32")) f();',
    ];
    const fine = ['full("f32", [], 0);', 'switch (dtype) { case "f32": f(); }', 'if (word === "f") f();'];
    const text = `function all() {\n${[...asked, ...fine].join("\n")}\n}`;
    expect(typeNameViolations(made({ "src/plan/a.ts": text }))).toHaveLength(asked.length);
    expect(typeNameViolations(made({ "src/kernel/dtype.ts": text, "src/plan/a.test.ts": text }))).toEqual([]);
  });
});

describe("documents", () => {
  it("have a test in text for every pass", () => {
    expect(passViolations(files)).toEqual([]);
    const pass = made({
      "src/passes/fold.ts":
        "export const constantFold: Pass = {};\nexport const other: Graph = {};\nconst inner: Pass = {};",
      "src/passes/fuse.ts": "export function fuse(options: Options): Pass { return x; }",
      "src/passes/pipeline.ts":
        "export const pipeline: readonly Pass[] = [];\nexport function named(name: string): Pass {}",
      "tests/passes/fuse.ir": "",
    });
    expect(pass.slice(0, 3).map(passNames)).toEqual([["constant-fold"], ["fuse"], []]);
    expect(passViolations(pass)).toEqual(["src/passes/fold.ts: the pass has no tests/passes/constant-fold.ir"]);
  });

  it("explain every error code with a wrong and a right example", () => {
    const codes = errorCodes(fileAt("src/base/errors.ts"));
    expect(codes).toContain("ShapeMismatch");
    expect(errorSectionViolations(codes, fileAt("docs/errors.md"))).toEqual([]);
    const text = "# Errors\n\n## A\n\nWrong:\n\n```ts\n```\n\nRight:\n\n```ts\n```\n\n## C\n\nWords.\n";
    expect(errorSectionViolations(["A", "B"], { path: "e.md", text })).toEqual([
      "e.md: has no section '## B'",
      "e.md: 'C' is no ErrorCode",
      "e.md: 'C' lacks a block after 'Wrong:' or 'Right:'",
    ]);
  });

  it("have links that lead somewhere", () => {
    expect(linkViolations(files)).toEqual([]);
    const wrong = made({
      "docs/a.md":
        "[b](b.md#the-end) [up](../README.md) [dir](../docs/) [x](gone.md) [y](b.md#gone) `[c](code.md)` [w](https://doi.org/1)",
      "docs/b.md": "## The end!\n\n```\n[not](a-link.md)\n```\n",
      "README.md": "[docs]: docs/gone.md\n",
    });
    expect(linkViolations(wrong)).toEqual([
      "docs/a.md:1: the link gone.md leads nowhere",
      "docs/a.md:1: the link b.md#gone names a heading that docs/b.md does not have",
      "README.md:1: the link docs/gone.md leads nowhere",
    ]);
  });

  it("name sources that are there, and so do comments", () => {
    expect(sourceNameViolations(files)).toEqual([]);
    const wrong = made({
      "docs/decisions/1.md":
        "`known.ts`, [`a/kept.ts`](../../src/a/kept.ts), `b/kept.ts`, `index.d.ts`, `*.ts`, `train.mjs`\n",
      "docs/a.md": "`model.ts`\n",
      "src/a/kept.ts": "/**\n * @file As kept.ts, not as\n * lost.ts; kept.test.ts tests it.\n */\n",
      "src/a/other.test.ts": "// lost.ts\n",
    });
    expect(sourceNameViolations(wrong)).toEqual([
      "docs/decisions/1.md:1: there is no known.ts",
      "docs/decisions/1.md:1: there is no b/kept.ts",
      "src/a/kept.ts:3: there is no lost.ts",
      "src/a/kept.ts:3: there is no kept.test.ts",
    ]);
  });

  it("are in plain words", () => {
    const checked = files.filter(({ path }) => !OTHER_WORDS.includes(path));
    expect(dialectViolations(checked, IN_PLAIN_WORDS)).toEqual([]);
    const wrong = made({
      "docs/a.md": "It is computed\nagain, and `nobody` in code counts.\n\n```\nwhoever\n```\n\nStarts anew.\n",
      "src/cli/help.ts": '/** A mistake\n * of ours. */\nconst help = "in vain";',
      "src/other/a.ts": "// nobody looks here",
    });
    expect(dialectViolations(wrong, ["docs/", "src/cli/"])).toEqual([
      "docs/a.md:8: \"anew\": 'again'",
      "docs/a.md:1: \"computed again\": 'recompute'",
      "src/cli/help.ts:2: \"of ours\": 'internal' or 'of this project'",
      "src/cli/help.ts:3: \"in vain\": 'unsuccessfully'",
    ]);
  });

  it("and all other files mention no machine's paths, no unlisted hosts and no registry", () => {
    expect(machineViolations(files)).toEqual([]);
    const path = ["", "home", "someone", "model.ts"].join("/");
    const wrong = made({
      "a.ts": `// see ${path}\nimport "../home/someone/b.ts";\nconst url = "${["https:", "", "example.org"].join("/")}";`,
      "package-lock.json": '"resolved": "x"',
    });
    expect(machineViolations(wrong).map((v) => v.split(": ")[0])).toEqual(["a.ts:1", "a.ts:3", "package-lock.json:1"]);
  });

  it("and the lock has an entry for every dependency", () => {
    expect(lockViolations(fileAt("package-lock.json"))).toEqual([]);
    const packages = { "node_modules/a": { optionalDependencies: { b: "1", c: "1" } }, "node_modules/b": {} };
    const text = JSON.stringify({ packages });
    expect(lockViolations({ path: "lock", text })).toEqual(["lock: node_modules/a depends on c, which has no entry"]);
  });
});
