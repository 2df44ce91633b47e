/** @file The examples of docs/ir.md: every function in it is canonical text. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { allOps } from "../ops/all.ts";
import { parse } from "./parse.ts";
import { print } from "./print.ts";

test("the functions in docs/ir.md are what the printer writes", () => {
  const text = readFileSync(new URL("../../docs/ir.md", import.meta.url), "utf8");
  const funcs = text.match(/^func \w+\([\s\S]*?^}\n/gm) ?? [];
  expect(funcs.length).toBeGreaterThanOrEqual(5);
  for (const func of funcs) expect(print(parse(func, allOps))).toBe(func);
});
