/**
 * @file Random programs on tapes, with reads in the middle, changes in place and second gradients: results and gradients have the bits of the
 * program that is differentiated as a whole, however operations run and however little memory there is.
 */
import { describe, expect, it } from "vitest";
import { checkpoint, concat, cond, grad, scan, type Tensor, tensor, where, whileLoop, zeros } from "../api/index.ts";
import { threefry } from "../base/random.ts";
import { type TapeOptions, tape } from "./tape.ts";

const randomFrom = (seed: number): (() => number) => {
  let count = 0;
  return () => (threefry([seed, 5], [count++, 0])[0] >>> 0) / 2 ** 32;
};

interface Params {
  readonly a: Tensor;
  readonly b: Tensor;
  readonly c: Tensor;
}

type Step = (x: Tensor, y: Tensor, n: number) => Tensor;
const STEPS: readonly Step[] = [
  (x, y) => x.add(y),
  (x, y) => x.mul(y),
  (x) => x.sin(),
  (x, y) => x.matmul(y).mul(0.1),
  (x) => x.T,
  (x, y) => x.sub(y.sum(0)),
  (x, _, n) =>
    x
      .reshape([n * n])
      .reshape([n, n])
      .tanh(),
  (x, y) => where(x.greater(y), x, y.mul(2)),
  (x, y, n) => concat([x.slice([[0, 2]]), y.slice([[2, n]])], 0),
  (x) => x.sigmoid().mul(x.gelu()),
  (x) => x.square().add(1).sqrt(),
  (x) => {
    const own = x.mul(1);
    own.slice([[0, 1]]).addInPlace(0.5);
    return own;
  },
  (x, y) => x.max(1, { keepDims: true }).mul(y),
  (x, y) => x.div(y.square().add(1)),
  // operations with regions, whose reverses continue the sums of what they close over
  (x, y) => {
    const [z] = whileLoop(
      ([, i]: readonly [Tensor, Tensor]) => i.less(3),
      ([p, i]: readonly [Tensor, Tensor]) => [p.sin().add(y.mul(0.1)), i.add(1)] as const,
      [x, tensor(0, { dtype: "i32" })] as const,
    );
    return z;
  },
  (x, y) =>
    scan(
      (carry: Tensor, row: Tensor) => [carry.mul(0.5).add(row).tanh(), carry.mul(y.mean(0))] as const,
      x.slice([0]),
      y,
    )[1],
  (x, y) => checkpoint((p: Tensor, q: Tensor) => p.mul(q).tanh().mul(p).add(y.sum().mul(0.01)))(x, x),
  (x, y) =>
    cond(
      x.sum().greater(y.sum()),
      (p: Tensor) => p.sin().mul(y),
      (p: Tensor) => p.cos().add(y),
      x,
    ),
  (x, y) => grad((v: Tensor) => v.sin().mul(y).sum())(x),
  (x, y) => zeros(x.shape).assign(x).addInPlace(y.copy()),
];

function programOf(seed: number, n: number): (p: Params, read: (x: Tensor) => void) => Tensor {
  return (p, read) => {
    const next = randomFrom(seed);
    const values: Tensor[] = [p.a, p.b, p.a.add(p.c)];
    const pick = (): Tensor => values[Math.floor(next() * values.length)]!;
    let total = p.a.sum().mul(0);
    const steps = 5 + Math.floor(30 * next());
    for (let i = 0; i < steps; i++) {
      const made = STEPS[Math.floor(next() * STEPS.length)]!(pick(), pick(), n);
      values.push(made);
      if (next() < 0.25) read(made.sum());
      if (next() < 0.2) total = total.add(made.mean());
    }
    return total.add(values.at(-1)!.sum());
  };
}

function checkProgram(seed: number): void {
  const next = randomFrom(seed + 1000);
  // from 32 on, results are stored over what is not read any more
  const n = (seed % 2 === 0 ? 4 : 32) + Math.floor(next() * 8);
  const draw = (...shape: number[]): Tensor =>
    tensor(
      Float32Array.from({ length: shape.reduce((a, b) => a * b) }, () => next() - 0.5),
      { shape },
    );
  const params: Params = { a: draw(n, n), b: draw(n, n), c: draw(n) };
  const program = programOf(seed, n);
  const whole = grad((p: Params) => program(p, () => undefined))(params);
  const bytes = 4 * n * n;
  const modes: readonly TapeOptions[] = [
    {},
    {},
    { compileRuns: false },
    { memory: 45 * bytes + 24_000, recompute: true },
  ];
  modes.forEach((options, mode) => {
    const choose = randomFrom(10 * seed + mode);
    const grads = tape((t) => {
      const loss = program(params, (x) => choose() < 0.5 && x.item());
      if (choose() < 0.5) loss.item();
      const first = t.gradient(loss, params);
      if (choose() < 0.3) t.gradient(first.a.square().sum(), params).c.data();
      const updated = { a: params.a.sub(first.a.mul(0.5)), b: params.b.mul(0.5).add(first.b) };
      return { ...first, updated };
    }, options);
    for (const name of ["a", "b", "c"] as const) {
      expect(grads[name].data(), `d_${name}, mode ${mode}`).toEqual(whole[name].data());
    }
    expect(grads.updated.a.data()).toEqual(params.a.sub(whole.a.mul(0.5)).data());
    expect(grads.updated.b.data()).toEqual(params.b.mul(0.5).add(whole.b).data());
  });
}

describe("random programs on tapes", () => {
  it.each(Array.from({ length: 12 }, (_, seed) => seed))("have the bits of the whole: seed %i", checkProgram);
});
