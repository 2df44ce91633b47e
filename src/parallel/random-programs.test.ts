/**
 * @file Random programs on rows that are cut over devices, against the same on all rows: values and gradients of the weights. Every
 * operation is there twice, for a device's rows with collectives, and for all rows without.
 */
import { describe, expect, it } from "vitest";
import { leavesOf, onDevices } from "../../tests/support/devices.ts";
import { Random } from "../../tests/support/random.ts";
import { checkpoint, concat, cond, scan, type Tensor, tensor, valueAndGrad, vmap } from "../api/index.ts";
import { evaluate } from "../ir/evaluate.ts";
import { type AnyFunction, traceFunction } from "../trace/function.ts";
import { allGather, allReduce, allToAll, broadcast, permute, reduceScatter } from "./collectives.ts";
import { mesh } from "./mesh.ts";

const D = { over: "d" };
const [ROWS, WIDTH] = [2, 4];

/** A step of a program on rows h [rows, WIDTH] and a weight [WIDTH, WIDTH], on p devices and on one. */
interface Step {
  readonly name: string;
  readonly own: (h: Tensor, w: Tensor, p: number) => Tensor;
  readonly whole: (h: Tensor, w: Tensor, p: number) => Tensor;
}

const both = (name: string, fn: (h: Tensor, w: Tensor) => Tensor): Step => ({ name, own: fn, whole: fn });

/** Blocks of rows, one for each device, moved along by one. */
const rolled = (h: Tensor, p: number): Tensor => {
  const n = (h.shape[0] as number) / p;
  return concat([h.slice([[(p - 1) * n, p * n]]), h.slice([[0, (p - 1) * n]])], 0);
};

const STEPS: readonly Step[] = [
  both("product", (h, w) => h.matmul(w).tanh()),
  both("used twice", (h, w) =>
    h
      .matmul(w)
      .add(h.mul(w.sum(0)))
      .mul(0.3),
  ),
  both("in a loop", (h, w) => scan((s) => [s.matmul(w).tanh(), []], h, null, { length: 3 })[0] as Tensor),
  both("in a checkpoint", (h, w) => checkpoint((u: Tensor, v: Tensor) => u.matmul(v).sin())(h, w)),
  both("row by row", (h, w) => vmap((row: Tensor) => row.mul(w.sum(1)).tanh())(h)),
  both("in a branch of all", (h, w) =>
    cond(
      w.sum().greater(0),
      (u: Tensor) => u.mul(2).tanh(),
      (u: Tensor) => u.sin(),
      h,
    ),
  ),
  {
    name: "less the mean",
    own: (h) => h.sub(allReduce(h.sum(0), D).mul(1 / ROWS)),
    whole: (h, _, p) => h.sub(h.sum(0).mul(p / ROWS / p)),
  },
  {
    name: "attends to all",
    own: (h) => h.matmul(allGather(h, D).transpose()).softmax().matmul(allGather(h, D)),
    whole: (h) => h.matmul(h.transpose()).softmax().matmul(h),
  },
  { name: "moved along", own: (h) => permute(h, { ...D, shift: 1 }), whole: (h, _, p) => rolled(h, p) },
  {
    name: "of the first",
    own: (h, w) => h.add(broadcast(h, D).matmul(w)),
    whole: (h, w, p) =>
      h.add(
        concat(
          Array.from({ length: p }, () => h.slice([[0, ROWS]])),
          0,
        ).matmul(w),
      ),
  },
  {
    name: "largest of all",
    own: (h) => h.sub(allReduce(h.max(0), { ...D, op: "max" })),
    whole: (h) => h.sub(h.max(0)),
  },
  { name: "turned and back", own: (h, _, p) => turned(h, p), whole: (h, _, p) => h.mul(p === 3 ? 1 : 2) },
  {
    name: "summed and cut",
    own: (h) => reduceScatter(allGather(h, D).mul(0.5), D),
    whole: (h, _, p) => h.mul(0.5 * p),
  },
];

/** Columns of all rows, twice as large where they come out even, and rows again. */
function turned(h: Tensor, p: number): Tensor {
  if (p === 3) return h;
  const columns = allToAll(h, { ...D, split: 1, join: 0 }).mul(2);
  return allToAll(columns, { ...D, split: 0, join: 1 });
}

const draws = (shape: readonly number[], random: Random): Tensor =>
  tensor(Array.from({ length: shape.reduce((n, e) => n * e, 1) }, () => random.next() - 0.5)).reshape(shape);

describe("random programs on rows that are cut", () => {
  it.each(Array.from({ length: 16 }, (_, seed) => seed))(
    "have the values and gradients of all rows, seed %i",
    (seed) => {
      const random = new Random(seed);
      const p = [2, 3, 4][seed % 3] as number;
      const steps = Array.from({ length: 4 }, () => random.pick(STEPS));
      const weights = steps.map(() => draws([WIDTH, WIDTH], random));
      const parts = Array.from({ length: p }, () => draws([ROWS, WIDTH], random));
      const own = (ws: readonly Tensor[], x: Tensor) =>
        allReduce(
          steps
            .reduce((h, step, i) => step.own(h, ws[i] as Tensor, p), x)
            .square()
            .sum(),
          D,
        );
      const whole = (ws: readonly Tensor[], x: Tensor) =>
        steps
          .reduce((h, step, i) => step.whole(h, ws[i] as Tensor, p), x)
          .square()
          .sum();
      const all = concat(parts, 0);
      const { graph, captures } = traceFunction(
        ((ws: Tensor[], x: Tensor) => valueAndGrad((v: Tensor[]) => whole(v, x))(ws)) as AnyFunction,
        [weights, all],
      );
      const expected = evaluate(graph, [...leavesOf([weights, all]), ...leavesOf(captures.map((c) => c.tensor))]);
      const { results } = onDevices(
        ((ws: Tensor[], x: Tensor) => valueAndGrad((v: Tensor[]) => own(v, x))(ws)) as never,
        { mesh: mesh({ d: p }), in: [[], "d"], out: [] },
        (rank) => [weights, parts[rank]],
      );
      for (const made of results) {
        for (const [i, leaf] of made.entries()) {
          const text = `${steps.map(({ name }) => name).join(", ")} on ${p}: result ${i}`;
          for (const [e, value] of leaf.entries()) {
            expect(Math.abs(value - (expected[i]?.[e] ?? 0)), text).toBeLessThan(1e-9 * (1 + Math.abs(value)));
          }
        }
      }
    },
  );
});
