/** @file Which operands of a kernel may share storage: one nest, and a copy with what comes behind it. */
import { describe, expect, test } from "vitest";
import { call, type Expr, type Index, type LoopVar, load } from "./expr.ts";
import { addIndex, constIndex, offsetIndex, scaleIndex, valueIndex, varIndex } from "./index-math.ts";
import { inPlacePairs, type Kernel, type MapNest } from "./loops.ts";

const [X, S, Y] = [0, 1, 2];
const i: LoopVar = { kind: "var", name: "i", extent: 9 };
const u: LoopVar = { kind: "var", name: "u", extent: 3 };
const at = (operand: number, index: Index): Expr => load("f32", operand, index);

/** Operands x (9 elements), s (3), y (9), with nests that store to y. */
const kernel = (...nests: MapNest[]): Kernel => ({
  operands: [
    { dtype: "f32", elements: 9, role: "in" },
    { dtype: "f32", elements: 3, role: "in" },
    { dtype: "f32", elements: 9, role: "out" },
  ],
  nests,
});
const map = (v: LoopVar, index: Index, value: Expr): MapNest => {
  return { kind: "map", loops: [v], stores: [{ operand: Y, index, value }] };
};
const copy: MapNest = { ...map(i, varIndex(i), at(X, varIndex(i))), skipIfAliased: [X, Y] };
const window = offsetIndex(scaleIndex(varIndex(u), 2), 1);

describe("storage may be shared", () => {
  test("where an operand is read at the stored element alone", () => {
    expect(inPlacePairs(kernel(map(i, varIndex(i), at(X, varIndex(i)))))).toEqual([[X, Y]]);
    const turned = addIndex(constIndex(8), scaleIndex(varIndex(i), -1));
    expect(inPlacePairs(kernel(map(i, varIndex(i), at(X, turned))))).toEqual([]);
  });

  test("by a copy and a window behind it that does not read what was copied, or reads it where it stores", () => {
    expect(inPlacePairs(kernel(copy, map(u, window, at(S, varIndex(u)))))).toEqual([[X, Y]]);
    const product = call("mul", [at(X, window), at(S, varIndex(u))]);
    expect(inPlacePairs(kernel(copy, map(u, window, product)))).toEqual([[X, Y]]);
  });

  test("not where the window reads other elements of what was copied, or is placed by them", () => {
    expect(inPlacePairs(kernel(copy, map(u, window, at(X, offsetIndex(window, 1)))))).toEqual([]);
    const both = call("add", [at(X, window), at(X, varIndex(u))]);
    expect(inPlacePairs(kernel(copy, map(u, window, both)))).toEqual([]);
    const place = addIndex(varIndex(u), valueIndex(load("i32", X, constIndex(0)), 0, 6));
    expect(inPlacePairs(kernel(copy, map(u, place, at(S, varIndex(u)))))).toEqual([]);
  });

  test("by what a computation reads in front of a window, if the window does not read it again", () => {
    const first = map(i, varIndex(i), call("neg", [at(X, varIndex(i))]));
    expect(inPlacePairs(kernel(first, map(u, window, at(S, varIndex(u)))))).toEqual([[X, Y]]);
    expect(inPlacePairs(kernel(first, map(u, window, at(X, window))))).toEqual([]);
  });

  test("by parts of one result that each read what they store, and not if one reads elsewhere", () => {
    const [even, odd] = [scaleIndex(varIndex(u), 2), window];
    const part = (index: Index, from: Index): MapNest => map(u, index, at(X, from));
    const both = kernel(part(even, even), part(odd, odd));
    expect(inPlacePairs(both)).toEqual([]);
    expect(inPlacePairs({ ...both, disjoint: true })).toEqual([[X, Y]]);
    expect(inPlacePairs({ ...kernel(part(even, even), part(odd, even)), disjoint: true })).toEqual([]);
  });
});
