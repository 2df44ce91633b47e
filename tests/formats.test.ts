/** @file The documents of the two formats say what the code reads and writes: fields, types of elements, versions, examples. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { allOps, compile, grad, type Tensor, zeros } from "../src/api/index.ts";
import { parse, print } from "../src/ir/index.ts";
import { DTYPES } from "../src/kernel/dtype.ts";
import { PLAN_JSON_VERSION, planJson, readPlanJson } from "../src/plan/index.ts";
import { ROOT } from "./support/project.ts";

const page = (name: string): string => readFileSync(join(ROOT, "docs", name), "utf8");

/** The newest version in a page's table of versions. */
const newestVersion = (text: string): number =>
  Math.max(
    ...[...(text.split(/^## Versions$/m)[1] ?? "").matchAll(/^\| (\d+) \|/gm)].map(([, number]) => Number(number)),
  );

/** Names of all fields of some data, however deep. */
function fieldsOf(data: unknown): readonly string[] {
  if (Array.isArray(data)) return data.flatMap(fieldsOf);
  if (typeof data !== "object" || data === null) return [];
  return Object.entries(data).flatMap(([name, field]) => [name, ...fieldsOf(field)]);
}

describe("docs/plan-json.md", () => {
  const text = page("plan-json.md");

  it("has the newest version, and an example that is read", () => {
    expect(newestVersion(text)).toBe(PLAN_JSON_VERSION);
    const example = /^```json\n([\s\S]*?)^```/m.exec(text)?.[1] ?? "";
    expect(readPlanJson(example).name).toBe("p");
    expect(() => readPlanJson(example.replace('"version": 1', '"version": 2'))).toThrow("version");
  });

  it("names every field that is written", () => {
    const step = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
    const { plan } = step.program(zeros([64, 16]), zeros([32, 64]));
    const fields = new Set(fieldsOf(planJson(plan, { stories: true })));
    expect(fields.size).toBeGreaterThan(25);
    expect([...fields].filter((field) => !text.includes(`\`${field}\``))).toEqual([]);
  });
});

describe("docs/ir.md", () => {
  const text = page("ir.md");

  it("has a table of versions and every type of elements", () => {
    expect(newestVersion(text)).toBe(1);
    expect(/dtype: ([\w ]+)$/m.exec(text)?.[1]?.split(" ").sort()).toEqual([...DTYPES].sort());
  });

  it("has examples that are read and print as the same text", () => {
    const examples = [...text.matchAll(/^```\n(func [\s\S]*?)^```/gm)].map(([, example = ""]) => example);
    expect(examples.length).toBeGreaterThan(2);
    for (const example of examples) {
      const printed = print(parse(example, allOps));
      expect(print(parse(printed, allOps))).toBe(printed);
    }
  });
});
