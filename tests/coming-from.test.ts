/** @file The tables of docs/coming-from.md: every name in their last column is one that this library has. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import * as aliases from "../src/api/aliases.ts";
import * as tidemark from "../src/api/index.ts";
import * as nn from "../src/nn/index.ts";
import * as optim from "../src/optim/index.ts";
import { ROOT } from "./support/project.ts";

const HOMES: Readonly<Record<string, object>> = {
  x: tidemark.ones([2]),
  nn,
  optim,
  random: tidemark.random,
  linalg: tidemark.linalg,
};

function isKnown(name: string): boolean {
  const [home = "", member] = name.split(".");
  if (member === undefined) return home in tidemark;
  return member in (HOMES[home] ?? {});
}

const page = readFileSync(join(ROOT, "docs", "coming-from.md"), "utf8");
const rows = page.split("\n").filter((line) => line.startsWith("|") && !/^\| (---|PyTorch)/.test(line));
const namesIn = (text: string): readonly string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);

describe("names in other libraries", () => {
  it("have a name here, in four columns", () => {
    expect(rows.length).toBeGreaterThan(80);
    expect(rows.filter((row) => row.split("|").length !== 6)).toEqual([]);
    const here = rows.flatMap((row) => namesIn(row.split("|")[4] ?? ""));
    expect(here.length).toBeGreaterThan(rows.length);
    expect(here.filter((name) => !isKnown(name))).toEqual([]);
    expect(["nonsense", "x.nonsense", "nn.nonsense"].filter(isKnown)).toEqual([]);
  });

  it("that work as they are include all second names", () => {
    const listed = namesIn(/work as they are:([\s\S]*?)\. Shapes/.exec(page)?.[1] ?? "");
    expect(Object.keys(aliases).filter((name) => !listed.includes(name))).toEqual([]);
    expect(listed.filter((name) => !(name in tidemark && name in tidemark.Tensor.prototype))).toEqual([]);
  });
});
