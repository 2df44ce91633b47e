/**
 * @file Every export of every entry point is described, and shown in an example: a value in its own comment, a type by the example of
 * a value whose declaration leads to it. tests/docs.test.ts runs the examples.
 */
import { describe, expect, it } from "vitest";
import { projectFiles, ROOT, subpathSources } from "./support/project.ts";
import { type PublicExport, PublicExports } from "./support/public-exports.ts";

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
});
