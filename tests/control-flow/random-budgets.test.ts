/**
 * @file Loops with bodies drawn at random, nested or not, forwards or backwards, counted or not, at budgets from twice what
 * everything stored takes down to the least: whatever a loop keeps, value and gradients have the same bits, and the arena is
 * within the budget.
 */
import { describe, expect, it } from "vitest";
import {
  compile,
  forLoop,
  matmul,
  type PlanningOptions,
  scan,
  type Tensor,
  tensor,
  valueAndGrad,
  whileLoop,
} from "../../src/api/index.ts";
import { at } from "../../src/base/invariant.ts";
import { hostRandom } from "../../src/base/random.ts";
import { sharePlans } from "../support/shared-plans.ts";

sharePlans();

interface Params {
  readonly w: Tensor;
  readonly h: Tensor;
  readonly xs: Tensor;
}

function draw(shape: readonly number[], seed: number): Tensor {
  const next = hostRandom(seed);
  const n = shape.reduce((a, b) => a * b, 1);
  return tensor(Float64Array.from({ length: n }, () => next.next() - 0.5)).reshape(shape);
}

const P: Params = { w: draw([3, 3], 1), h: draw([2, 3], 2), xs: draw([40, 2, 3], 3) };

type Pick = (n: number) => number;
type Mix = (a: Tensor, b: Tensor) => Tensor;

/** A few operations on two values. */
function drawnMix(pick: Pick, w: Tensor): Mix {
  const plan = Array.from({ length: 3 + pick(4) }, () => [pick(6), pick(99), pick(99)] as const);
  const ops: readonly ((a: Tensor, b: Tensor) => Tensor)[] = [
    (a) => a.tanh(),
    (a, b) => a.sigmoid().mul(b),
    (a, b) => a.mul(b).sin(),
    (a, b) => a.add(b).mul(0.5),
    (a) => matmul(a, w),
    (a, b) => a.sub(b).exp().mul(0.1),
  ];
  return (first, second) => {
    const values = [first, second];
    for (const [op, i, j] of plan)
      values.push(at(ops, op)(at(values, i % values.length), at(values, j % values.length)));
    return at(values, values.length - 1);
  };
}

interface Pair {
  readonly a: Tensor;
  readonly b: Tensor;
  readonly left: Tensor;
}

/** `turns` is data; counted loops take no notice of it. */
function lossOf(seed: number, { w, h, xs }: Params, turns: Tensor): Tensor {
  const next = hostRandom(seed);
  const pick: Pick = (n) => Math.floor(next.next() * n);
  const [kind, length, reverse, isNested] = [pick(4), 3 + pick(30), pick(2) === 1, pick(2) === 1];
  const mix = drawnMix(pick, w);
  const turn: Mix = (a, x) =>
    isNested ? forLoop(4, a, (i, s) => mix(s, x).tanh().add(i.cast("f64").mul(0.01))) : mix(a, x);
  if (kind === 3) {
    const last = whileLoop<Pair>(
      ({ left }) => left.greater(0),
      ({ a, b, left }) => ({ a: turn(a, b).tanh(), b: a.mul(0.5), left: left.sub(1) }),
      { a: h, b: h, left: turns },
      pick(2) === 1 ? { maxSteps: 40 } : {},
    );
    return last.a.square().sum().add(last.b.sum());
  }
  const [[a, b], ys] = scan<readonly [Tensor, Tensor], Tensor, Tensor>(
    ([before, other], x) => {
      const made = turn(before, x);
      const kept = kind === 1 ? before : other.mul(0.9).add(made.mul(0.1));
      return [[made.add(before).tanh(), kept], kind === 2 ? made.mul(other) : x];
    },
    [h, h.mul(2)],
    xs.slice([[0, length]]),
    { reverse },
  );
  return a.square().sum().add(b.sum()).add(ys.square().sum());
}

function compiled(seed: number, options: PlanningOptions = {}) {
  return compile((p: Params, n: Tensor) => valueAndGrad((q: Params) => lossOf(seed, q, n))(p), {
    validate: true,
    ...options,
  });
}

const COUNTS = [0, 1, 33].map((n) => tensor(n, { dtype: "f64" }));

function bitsOf([value, d]: readonly [Tensor, Params]): readonly string[] {
  return [value, d.w, d.h, d.xs].map((leaf) => {
    const { buffer, byteOffset, byteLength } = leaf.data() as Float64Array;
    return Buffer.from(buffer, byteOffset, byteLength).toString("hex");
  });
}

describe("random loops", () => {
  it.each([1, 2, 3, 5, 8, 11, 14, 17])("have the same bits at every budget: seed %i", (seed) => {
    const stored = compiled(seed);
    const expected = COUNTS.map((n) => bitsOf(stored(P, n)));
    const { arenaBytes } = stored.program(P, at(COUNTS, 0));
    const least = compiled(seed, { memory: "min" }).program(P, at(COUNTS, 0)).arenaBytes;
    for (const share of [2, 0.7, 0.3, 0]) {
      const memory = Math.ceil(least + share * (arenaBytes - least));
      const fitted = compiled(seed, { memory });
      expect(fitted.program(P, at(COUNTS, 0)).arenaBytes).toBeLessThanOrEqual(memory);
      expect(
        COUNTS.map((n) => bitsOf(fitted(P, n))),
        `${memory} bytes`,
      ).toEqual(expected);
    }
  });
});
