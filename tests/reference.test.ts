/**
 * @file Every export of every entry point is described, and shown in an example: a value in its own comment, a type by the example of
 * a value whose declaration leads to it. tests/docs.test.ts runs the examples. A function says which errors it throws, in its comment
 * or by what the site computes from its example (site/facts.ts), or leads to none. One of tensors says what memory it takes.
 */
import { describe, expect, it } from "vitest";
import { type Facts, factsOf } from "../site/facts.ts";
import { isProduct, projectFiles, ROOT, subpathSources } from "./support/project.ts";
import { type PublicExport, PublicExports } from "./support/public-exports.ts";
import { RaisedErrors } from "./support/raised-errors.ts";
import { type Ast, isAst, parse } from "./support/syntax.ts";

const files = projectFiles(ROOT);
const entries = subpathSources(files.find(({ path }) => path === "package.json")?.text ?? "");

function exportsOf(sources: ReadonlyMap<string, string>, all = files): readonly PublicExport[] {
  const exports = new PublicExports(all);
  const found = [...sources].flatMap(([entry, path]) => exports.of(entry, path));
  return found.filter(({ comment }) => !comment.includes("@internal"));
}

const place = ({ entry, name, path, line }: PublicExport): string => `${entry} ${name} (${path}:${line})`;
const hasExample = ({ comment }: PublicExport): boolean => comment.includes("@example");

/** What a comment says before its tags. */
const summary = ({ comment }: PublicExport): string => comment.split(/^@/m)[0]?.trim() ?? "";

/** Types that no declaration of a value with an example leads to. */
function unshown(all: readonly PublicExport[]): readonly PublicExport[] {
  const words = (text: string): readonly string[] => text.match(/[A-Za-z_]\w*/g) ?? [];
  const types = new Map(all.filter(({ isType }) => isType).map((type) => [`${type.path} ${type.name}`, type]));
  let reached = new Set(
    all.filter((each) => !each.isType && hasExample(each)).flatMap((each) => words(each.declaration)),
  );
  for (let size = 0; size !== reached.size; ) {
    size = reached.size;
    const found = [...types.values()].filter(
      ({ name, declaration }) => reached.has(name) || reached.has(nameIn(declaration)),
    );
    reached = new Set([...reached, ...found.flatMap(({ declaration }) => words(declaration))]);
  }
  return [...types.values()].filter(
    (type) => !hasExample(type) && !reached.has(type.name) && !reached.has(nameIn(type.declaration)),
  );
}

/** The name at home of a type that is exported under another. */
const nameIn = (declaration: string): string => /^(?:interface|type) (\w+)/.exec(declaration)?.[1] ?? "";

const isFunction = ({ declaration }: PublicExport): boolean =>
  /^(async function|function|class|abstract class)\b|^const \w+[^=]*= (async )?(\(|<)/.test(declaration);

const homeName = ({ declaration, name }: PublicExport): string =>
  /^(?:async function|function|class|abstract class|const) (\w+)/.exec(declaration)?.[1] ?? name;

/** Of a type as it is written: whether tensors are taken. */
function takesTensor(type: unknown): boolean {
  if (!isAst(type)) return false;
  if (type.type === "TSUnionType") return (type.types as readonly unknown[]).some(takesTensor);
  const name = isAst(type.typeName) ? type.typeName.name : null;
  return name === "Tensor" || name === "TensorLike";
}

/** What the parameters of a function are called, and which of them take tensors. */
function paramsOf({ declaration }: PublicExport) {
  if (!/^(async )?function/.test(declaration)) return [];
  const [fn] = parse({ path: "declaration.ts", text: `${declaration}{}` }).body as readonly Ast[];
  return ((fn?.params ?? []) as readonly Ast[]).map((param) => {
    const { left, argument } = param as { left?: Ast; argument?: Ast };
    const name = String((left ?? argument ?? param).name ?? "options");
    const annotation = (left ?? param).typeAnnotation;
    return { name, isTensor: takesTensor(isAst(annotation) ? annotation.typeAnnotation : null), isRest: !!argument };
  });
}

/** Of each declaration, what the site computes from its example; null where that says nothing. */
function computedFacts(all: readonly PublicExport[]): (each: PublicExport) => Facts | null {
  const key = ({ path, line }: PublicExport): string => `${path}:${line}`;
  const found = new Map<string, Facts>();
  for (const each of all.filter((one) => isFunction(one) && !/^(abstract )?class/.test(one.declaration))) {
    const example = (each.comment.split("@example")[1] ?? "").replace(/```\w*\n|```/g, "");
    const request = { module: each.entry, path: each.name.split("."), example, params: paramsOf(each) };
    const facts =
      found.has(key(each)) || !example.includes(each.name.split(".").at(-1) ?? "") ? null : factsOf(request);
    if (facts) found.set(key(each), facts);
  }
  return (each) => found.get(key(each)) ?? null;
}

/** What follows a tag of a comment, to the next one. */
const said = ({ comment }: PublicExport, tag: string): string => comment.split(tag)[1]?.split(/^@/m)[0]?.trim() ?? "";

/** Entry points about programs and plans, which are no functions of tensors. */
const WITHOUT_TENSORS: ReadonlySet<string> = new Set([
  "tidemark/ir",
  "tidemark/plan",
  "tidemark/remat",
  "tidemark/wasm",
]);

/** Functions that lead to errors by name alone, and why they throw none. */
const NEVER: Readonly<Record<string, string>> = {
  exactPlanner: "takes a solver, and gives its strategy by itself, not by a name",
  highsSolver: "does what exactPlanner does",
  detectFeatures: "makes modules of a few bytes",
  orderSteps: "places within bounds that it has computed",
  tapeCounts: "reads numbers; an engine that it makes for that runs nothing",
};

describe("the reference", () => {
  it("finds exports through every form, and what is missing", () => {
    const text = [
      "/** A thing. */",
      "export interface Thing {}",
      "export interface Other {}",
      "/**\n * Makes one.\n *\n * @example\n * make();\n */",
      "export function make(): Thing {\n  return {};\n}",
      "/** @internal */",
      "export const hidden = 1;",
    ].join("\n");
    const all = [
      { path: "src/a.ts", text },
      { path: "src/b.ts", text: 'import { make } from "./a.ts";\nexport { make };\n' },
      {
        path: "src/i.ts",
        text: 'export * from "./a.ts";\nexport * as sub from "./b.ts";\nexport { make as built } from "./b.ts";\n',
      },
    ];
    const found = exportsOf(new Map([["x", "src/i.ts"]]), all);
    expect(found.map(({ name }) => name)).toEqual(["Thing", "Other", "make", "sub.make", "built"]);
    expect(found.filter((each) => summary(each) === "").map(({ name }) => name)).toEqual(["Other"]);
    expect(found.filter((each) => !each.isType && !hasExample(each)).map(({ name }) => name)).toEqual([]);
    expect(unshown(found).map(({ name }) => name)).toEqual(["Other"]);
    expect(() => exportsOf(new Map([["x", "src/c.ts"]]), [{ path: "src/c.ts", text: "export { gone };" }])).toThrow(
      "gone",
    );
  });

  const all = exportsOf(entries);

  it("has every export of every entry point", () => {
    expect(entries.size).toBeGreaterThan(12);
    expect(all.length).toBeGreaterThan(900);
  });

  it("describes every export", () => {
    expect(all.filter((each) => summary(each) === "").map(place)).toEqual([]);
  });

  it("shows every value in an example of its own", () => {
    expect(all.filter((each) => !each.isType && !hasExample(each)).map(place)).toEqual([]);
  });

  it("shows every type in the example of something that takes or gives it", () => {
    expect(unshown(all).map(place)).toEqual([]);
  });

  const codesText = files
    .find(({ path }) => path === "src/base/errors.ts")
    ?.text.split("ErrorCode =")[1]
    ?.split(";")[0];
  const codes = new Set(codesText?.match(/\w+/g) ?? []);
  // its 64-bit integers refuse to be read as numbers where they are none; nothing that asks a type for its size reads elements
  const raised = new RaisedErrors(
    files.filter(({ path }) => isProduct(path)),
    codes,
    new Set(["src/kernel/dtype.ts exactNumber"]),
  );
  const facts = computedFacts(all);
  const leads = (each: PublicExport): ReadonlyMap<string, readonly string[]> => raised.of(each.path, homeName(each));
  const states = (each: PublicExport): boolean => said(each, "@throws") !== "" || (facts(each)?.errors.size ?? 0) > 0;

  it("follows names to codes of errors, and no types", () => {
    const text = [
      'import * as inner from "./b.ts";',
      'import { type Odd, other } from "./b.ts";',
      'export function direct(x: "Odd" | Odd) { throw fail("Odd", x); }',
      "export const through = () => inner.other();",
      "export const named = () => other;",
      'export const late = async () => (await import("./b.ts")).other();',
      'export function plain(x: Odd, kind: "Odd"): Odd { return x; }',
    ].join("\n");
    const b = 'export type Odd = "Odd";\nexport { far as other };\nfunction far() { return new Failure("Even"); }';
    const found = new RaisedErrors(
      [
        { path: "a.ts", text },
        { path: "b.ts", text: b },
      ],
      new Set(["Odd", "Even"]),
    );
    const of = (name: string): readonly string[] => [...found.of("a.ts", name).keys()];
    expect(["direct", "through", "named", "late", "plain"].map(of)).toEqual([
      ["Odd"],
      ["Even"],
      ["Even"],
      ["Even"],
      [],
    ]);
    expect(found.of("a.ts", "through").get("Even")).toEqual(["through", "other", "far"]);
  });

  it("says of every function which errors it throws, where it leads to any", () => {
    const silent = all.filter((each) => isFunction(each) && !states(each) && leads(each).size > 0);
    const ways = (each: PublicExport): string =>
      [...leads(each)].map(([code, way]) => `${code} by ${way.join(" > ")}`).join();
    expect(silent.filter(({ name }) => !(name in NEVER)).map((each) => `${place(each)}: ${ways(each)}`)).toEqual([]);
    expect(Object.keys(NEVER).filter((name) => !silent.some((each) => each.name === name))).toEqual([]);
  });

  it("says of no function an error that it does not lead to", () => {
    const wrong = all.flatMap((each) => {
      const named = (said(each, "@throws").match(/\b[A-Z]\w+/g) ?? []).filter((word) => codes.has(word));
      const unknown = named.length > 0 ? named.filter((code) => !leads(each).has(code)) : [];
      return unknown.length > 0 ? [`${place(each)}: ${unknown.join()}`] : [];
    });
    expect(wrong).toEqual([]);
  });

  it("says of every function of tensors what memory it takes", () => {
    const ofTensors = (each: PublicExport): boolean =>
      isFunction(each) && !WITHOUT_TENSORS.has(each.entry) && /\b(Tensor|TensorLike)\b/.test(each.declaration);
    const silent = all.filter((each) => ofTensors(each) && said(each, "@memory") === "" && !facts(each)?.memory);
    expect(silent.map(place)).toEqual([]);
  });
});
