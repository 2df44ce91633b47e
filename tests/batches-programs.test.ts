/**
 * @file Random programs of users (tests/fuzz) over a batch: loops, branches, checkpoints, custom derivatives, mutation, random numbers.
 * Values and derivatives are those of one call for each element.
 */
import { describe, expect, test } from "vitest";
import { compile, stack, type Tensor, type Tree, vmap } from "../src/api/index.ts";
import { at } from "../src/base/invariant.ts";
import { type Arguments, drawRecipe, fuzzProgram, leavesOf, type Mode, stepNames } from "./fuzz/program.ts";

const SIZE = 3;
const MODES: readonly Mode[] = ["forward", "gradient", "jvp"];

/** Trees of one structure as one with stacked tensors. */
const stacked = (trees: readonly Tree[]): readonly Tensor[] =>
  leavesOf(at(trees, 0)).map((_, leaf) => stack(trees.map((tree) => at(leavesOf(tree), leaf))));

function expectNear(got: Tensor, wanted: Tensor, about: string): void {
  expect(got.shape, about).toEqual(wanted.shape);
  const [a, b] = [Float64Array.from(got.data()), Float64Array.from(wanted.data())];
  const scale = b.reduce((most, x) => (Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most), 1);
  for (let i = 0; i < b.length; i++) {
    const [x, y] = [at(a, i), at(b, i)];
    if (Object.is(x, y) || (!Number.isFinite(x) && !Number.isFinite(y))) continue;
    expect(Math.abs(x - y) / scale, about).toBeLessThanOrEqual(1e-9);
  }
}

describe("random programs over a batch", () => {
  test.each([5, 8, 11, 14])("of seed %i are one call for each element", (seed) => {
    const mode = at(MODES, seed % MODES.length);
    const recipe = drawRecipe(seed, { mode, size: seed % 5 === 0 ? "edge" : "small", mostSteps: 5, dtype: "f64" });
    const { fn, args } = fuzzProgram(recipe);
    // inputs are the same for all elements in some
    const isShared = seed % 2 === 0;
    const all = Array.from({ length: SIZE }, (_, n): Arguments => {
      const [params, inputs, key, indices] = args(n);
      return [params, isShared ? args(0)[1] : inputs, key, indices];
    });
    const single = compile(fn);
    const each = all.map((one) => single(...one));
    const [params, inputs, key, indices] = [0, 1, 2, 3].map((i) => stacked(all.map((one) => one[i] as Tree)));
    const given = isShared ? at(all, 0)[1] : (inputs as readonly Tensor[]);
    const over = compile(vmap(fn, { in: [0, isShared ? null : 0, 0, 0] }));
    const got = leavesOf(over(params as Tree, given, at(key ?? [], 0), at(indices ?? [], 0)));
    stacked(each).forEach((wanted, leaf) => {
      expectNear(at(got, leaf), wanted, stepNames(recipe).join(", "));
    });
  });
});
