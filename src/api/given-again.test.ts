/** @file Arguments that are given again: what is still in the arena is not copied, and results are as if it were. */
import { describe, expect, it } from "vitest";
import { untouchedParams } from "../plan/untouched.ts";
import { tensor } from "../trace/literal.ts";
import type { Tensor } from "../trace/tensor.ts";
import { compile } from "./compile.ts";
import "./methods.ts";
import { testHost } from "../../tests/support/host.ts";

void testHost;

const numbers = (n: number, seed: number): Float32Array =>
  Float32Array.from({ length: n }, (_, i) => Math.sin(i * seed));
const matrix = (rows: number, columns: number, seed: number): Tensor =>
  tensor(numbers(rows * columns, seed), { shape: [rows, columns] });

const network = (w: Tensor, v: Tensor, x: Tensor): Tensor => x.matmul(w).relu().matmul(v);

describe("arguments that are given again", () => {
  const [w, v, other] = [matrix(32, 64, 1), matrix(64, 8, 2), matrix(64, 8, 3)];

  it("have the results of a program that was given them for the first time", () => {
    const run = compile(network);
    const expected = (a: Tensor, b: Tensor, x: Tensor) => compile(network)(a, b, x).data();
    const [x, y] = [matrix(1, 32, 4), matrix(1, 32, 5)];
    for (const [b, input] of [
      [v, x],
      [v, x],
      [v, y],
      [other, y],
      [v, x],
      [other, x],
    ] as const) {
      expect(run(w, b, input).data()).toEqual(expected(w, b, input));
    }
    // a program for another batch runs in the same arena
    const two = matrix(2, 32, 6);
    expect(run(w, v, two).data()).toEqual(expected(w, v, two));
    expect(run(w, v, x).data()).toEqual(expected(w, v, x));
  });

  it("are left where they are: weights, unless something is written over them", () => {
    const { plan } = compile(network).program(w, v, matrix(1, 32, 4));
    expect(untouchedParams(plan)).toContain(1);
    const over = compile((x: Tensor) => x.add(1)).program(matrix(64, 64, 7));
    expect(untouchedParams(over.plan)).toEqual([]);
  });

  it("stay where they are asked to, and the results are the same", () => {
    const stays = compile(network, { resident: [0, 1], validate: true });
    const [x, y] = [matrix(1, 32, 4), matrix(1, 32, 5)];
    expect(untouchedParams(stays.program(w, v, x).plan)).toEqual(expect.arrayContaining([0, 1]));
    for (const [b, input] of [
      [v, x],
      [v, y],
      [other, y],
      [v, y],
    ] as const) {
      expect(stays(w, b, input).data()).toEqual(compile(network)(w, b, input).data());
    }
    expect(() => compile(network, { resident: [3] })(w, v, x)).toThrow("resident names argument 3 of a call with 3");
    expect(() => compile(network, { resident: [0], donate: [0] })).toThrow("argument 0 is donated and resident");
    expect(() => compile(network, { resident: [-1] })).toThrow("compile: resident is [-1]");
  });

  it("are refused once they were donated elsewhere", () => {
    const run = compile(network);
    const x = matrix(1, 32, 4);
    const mine = matrix(64, 8, 2);
    run(w, mine, x);
    compile((t: Tensor) => t.mul(2), { donate: [0] })(mine);
    expect(() => run(w, mine, x)).toThrow(/was donated to/);
  });
});
