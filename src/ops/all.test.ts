/** @file The list of operations is complete: nothing that is declared in this directory is missing from it. */
import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { AnyOp } from "../ir/op.ts";
import { allOps } from "./all.ts";

function isOp(value: unknown): value is AnyOp {
  return typeof value === "object" && value !== null && "infer" in value && "lower" in value && "samples" in value;
}

const here = new URL(".", import.meta.url);
const files = readdirSync(here, { recursive: true, encoding: "utf8" }).filter(
  (name) => name.endsWith(".ts") && !name.endsWith(".test.ts") && name !== "all.ts",
);

describe("allOps", () => {
  it("lists every operation that a file of this directory exports, and nothing else", async () => {
    const declared = new Map<AnyOp, string>();
    for (const file of files) {
      const exports = Object.entries((await import(new URL(file, here).href)) as Record<string, unknown>);
      for (const [name, value] of exports) if (isOp(value)) declared.set(value, `${file}: ${name}`);
    }
    expect([...declared].filter(([op]) => !allOps.includes(op)).map(([, where]) => where)).toEqual([]);
    expect(allOps.filter((op) => !declared.has(op)).map((op) => op.name)).toEqual([]);
  });

  it("has unique names in snake_case", () => {
    const names = allOps.map((op) => op.name);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
    expect(names.filter((name) => !/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(name))).toEqual([]);
  });

  it("has samples of every operation that is not made of regions, and each of them has a type", () => {
    expect(
      allOps.filter((op) => op.derivative.kind !== "region" && op.samples().length === 0).map((op) => op.name),
    ).toEqual([]);
    for (const op of allOps) {
      if (op.derivative.kind === "region") continue;
      for (const { inputs, attrs } of op.samples())
        expect(op.infer(inputs, attrs, []).length, op.name).toBeGreaterThan(0);
    }
  });
});
