/** @file Structural identity: what counts and what does not. */
import { describe, expect, test } from "vitest";
import { randomGraph } from "../../tests/support/random-graph.ts";
import { allOps } from "../ops/all.ts";
import { hashGraph, hashText, KnownTexts, sameGraph, structuralKey } from "./hash.ts";
import { parse } from "./parse.ts";

const graphOf = (text: string) => parse(text, allOps)[0]!;
const base = graphOf("func f(a: f32[4]) { b: f32[4] = clamp(a) {min=0, max=1} c: f32[4] = add(a, b) return c }");

describe("structural identity", () => {
  test.each([
    ["names", "func g(x: f32[4]) { y: f32[4] = clamp(x) {max=1, min=0} z: f32[4] = add(x, y) return z }"],
    ["phases", "func f(a: f32[4]) { b: f32[4] = clamp(a) {min=0, max=1}\n// update\nc: f32[4] = add(a, b) return c }"],
  ])("does not depend on %s", (_, text) => {
    expect(sameGraph(base, graphOf(text))).toBe(true);
    expect(hashGraph(base)).toBe(hashGraph(graphOf(text)));
  });

  test.each([
    ["types", "func f(a: f32[5]) { b: f32[5] = clamp(a) {min=0, max=1} c: f32[5] = add(a, b) return c }"],
    ["the sign of zero", "func f(a: f32[4]) { b: f32[4] = clamp(a) {min=-0, max=1} c: f32[4] = add(a, b) return c }"],
    ["the order of inputs", "func f(a: f32[4]) { b: f32[4] = clamp(a) {min=0, max=1} c: f32[4] = add(b, a) return c }"],
    ["operations", "func f(a: f32[4]) { b: f32[4] = clamp(a) {min=0, max=1} c: f32[4] = sub(a, b) return c }"],
    ["results", "func f(a: f32[4]) { b: f32[4] = clamp(a) {min=0, max=1} c: f32[4] = add(a, b) return b }"],
    ["replays", "func f(a: f32[4]) { b: f32[4] = clamp(a) {min=0, max=1} ~1 c: f32[4] = add(a, b) return c }"],
  ])("depends on %s", (_, text) => {
    expect(sameGraph(base, graphOf(text))).toBe(false);
    expect(hashGraph(base)).not.toBe(hashGraph(graphOf(text)));
  });

  test("depends on regions", () => {
    const call = (body: string) =>
      graphOf(`func f(a: f32[4]) { b: f32[4] = call(a) { func g(p: f32[4]) { ${body} } } return b }`);
    expect(sameGraph(call("return p"), call("q: f32[4] = neg(p) return q"))).toBe(false);
    expect(sameGraph(call("q: f32[4] = neg(p) return q"), call("r: f32[4] = neg(p) return r"))).toBe(true);
  });

  test("keys with texts that are known from other graphs are the same", () => {
    const texts = new KnownTexts();
    const byName = (op: { readonly name: string }): string => op.name;
    // attributes of two operations, one object, to which each adds defaults of its own
    const [first] = base.nodes;
    const shared = graphOf(
      "func f(a: f32[4,4], b: f32[4,4]) { c: f32[4,4] = matmul(a, b) d: f32[4,4] = neg(c) return d }",
    );
    const nodes = shared.nodes.map((node) => ({ ...node, attrs: shared.nodes[1]!.attrs }));
    for (const graph of [base, shared, { ...shared, nodes }, { ...base, nodes: [first!] }, base]) {
      expect(structuralKey(graph, byName, texts)).toBe(structuralKey(graph, byName));
    }
  });

  test("hashes of different random graphs differ", () => {
    const keys = new Set<string>();
    const hashes = new Set<string>();
    for (let seed = 0; seed < 300; seed++) {
      const graph = randomGraph(seed);
      keys.add(structuralKey(graph));
      hashes.add(hashGraph(graph));
      expect(structuralKey(graph)).toBe(structuralKey(randomGraph(seed)));
    }
    expect(hashes.size).toBe(keys.size);
  });

  test("one changed character changes about half of the bits", () => {
    const bits = (hex: string) =>
      [...hex].flatMap((digit) => [1, 2, 4, 8].map((bit) => Number.parseInt(digit, 16) & bit));
    let differing = 0;
    for (let i = 0; i < 200; i++) {
      const [a, b] = [bits(hashText(`text ${i} x`)), bits(hashText(`text ${i} y`))];
      differing += a.filter((bit, at) => bit !== b[at]).length;
    }
    expect(differing / 200).toBeGreaterThan(56);
    expect(differing / 200).toBeLessThan(72);
  });
});
