/**
 * @file Plain numbers among the arguments of compiled functions: one program for all values, each as precise as the constant
 * that it would otherwise be, checked where whole numbers are met, and refused with the way out where a constant is needed.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  checkpoint,
  clamp,
  compile,
  cond,
  customJvp,
  customVjp,
  type DType,
  dynamicSlice,
  forLoop,
  full,
  grad,
  plan,
  pow,
  random,
  reversible,
  scan,
  spec,
  sqrt,
  type Tensor,
  tensor,
  valueAndGrad,
  where,
} from "../src/api/index.ts";
import { adam, adamw, clipByGlobalNorm, constant, rmsprop, sgd } from "../src/optim/index.ts";
import { odeint } from "../src/sim/index.ts";

const row = (...values: number[]): Tensor => tensor(values);
const noise = (dtype: "f32" | "f64"): Tensor => random.normal(random.key(7), [37], { dtype });

/** A stand-in that says nothing of its parameters. */
const hidden = <A extends unknown[], R>(fn: (...args: A) => R): ((...args: A) => R) => new Proxy(fn, {});

/** Counts how often a function is traced. */
function counted<A extends unknown[], R>(fn: (...args: A) => R): { fn: (...args: A) => R; traces: () => number } {
  let traces = 0;
  const wrapped = (...args: A): R => {
    traces++;
    return fn(...args);
  };
  return { fn: wrapped, traces: () => traces };
}

describe("a number among the arguments", () => {
  test("may differ from call to call: one program serves all", () => {
    let traces = 0;
    const f = compile((x: Tensor, options: { rate: number; on: boolean }) => {
      traces++;
      return options.on ? x.mul(options.rate) : x;
    });
    for (let i = 0; i < 20; i++) {
      expect(f(row(1, 2), { rate: i / 4, on: true }).toArray()).toEqual([i / 4, i / 2]);
    }
    expect(traces).toBe(1);
    expect(f.usage().programs).toBe(1);
    // booleans are constants
    expect(f(row(1, 2), { rate: 3, on: false }).toArray()).toEqual([1, 2]);
    expect(f.program(row(1, 2), { rate: 3, on: true }).paths).toEqual(["x", "options.rate"]);
    expect(f(row(1, 2), { rate: 5, on: true }).toArray()).toEqual([5, 10]);
    // the structure with `on` off is traced again, as it makes no use of the rate
    expect(traces).toBe(3);
  });

  test.each(["f32", "f64"] as const)("has the bits of the constant it replaces, beside %s", (dtype) => {
    const fn = (x: Tensor, a: number, b: number): Tensor => x.mul(a).add(b).tanh().sub(x.div(b));
    const [traced, fixed] = [compile(fn), compile(fn, { static: [1, 2], programs: 4 })];
    const value = fc.double({ noNaN: true, min: -1e6, max: 1e6 }).filter((x) => Math.abs(x) > 1e-6 && x !== 1);
    fc.assert(
      fc.property(value, value, (a, b) => {
        const x = noise(dtype);
        expect(traced(x, a, b).data()).toEqual(fixed(x, a, b).data());
      }),
      { numRuns: 20 },
    );
    expect(traced.usage().programs).toBe(1);
  });

  test("takes the type of what it meets, several in one program", () => {
    const f = compile(
      (n: number, a: Tensor, b: Tensor, c: Tensor) =>
        [a.mul(n), b.mul(n), c.mul(n), sqrt(n), n as unknown as Tensor] as const,
    );
    const types = (["f32", "f64", "i32"] as const).map((dtype: DType) => tensor([1, 2], { dtype })) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    const made = f(16, ...types);
    expect(made.map((x) => x.dtype)).toEqual(["f32", "f64", "i32", "f32", "f32"]);
    expect(made.map((x) => x.toArray())).toEqual([[16, 32], [16, 32], [16, 32], 4, 16]);
    expect(f(9, ...types)[3].item()).toBe(3);
    expect(f.usage().programs).toBe(1);
    const third = compile((n: number, x: Tensor) => x.mul(n))(1 / 3, tensor([1], { dtype: "f64" }));
    expect(third.item()).toBe(1 / 3);
  });

  test("must be whole where it meets whole numbers, at every call", () => {
    const f = compile((x: Tensor, n: number) => x.add(n));
    const x = tensor([1, 2], { dtype: "i32" });
    expect(f(x, 3).toArray()).toEqual([4, 5]);
    expect(() => f(x, 0.5)).toThrow("DtypeMismatch: n: 0.5 is not a whole number that fits i32");
    expect(() => f(x, 2 ** 31)).toThrow("DtypeMismatch");
    expect(f(x, -7).toArray()).toEqual([-6, -5]);
  });

  test("goes wherever numbers go", () => {
    const f = compile((x: Tensor, n: number) => [
      x.add(n),
      where(x.greater(n), n, x),
      clamp(x, 0, n),
      pow(x, n),
      full([2], n),
      full([2], n, "f64"),
      dynamicSlice(x, [n], [2]),
      random.uniform(random.foldIn(random.key(1), n), [1]),
      x.copy().setAt(0, n),
      forLoop(3, x, (_, s) => s.mul(n)),
      scan((s: Tensor, v: Tensor) => [s.add(v.mul(n)), s] as const, n as unknown as Tensor, x)[0],
      cond(
        x.sum().greater(0),
        (v: Tensor) => v.mul(n),
        (v: Tensor) => v.sub(n),
        x,
      ),
      checkpoint((v: Tensor, k: number) => v.mul(k).sin())(x, n),
      grad((v: Tensor, k: number) => v.square().mul(k).sum())(x, n),
    ]);
    const x = row(1, 2, 3, 4);
    for (const n of [2, 3, 1]) {
      const fixed = compile((v: Tensor) => [
        v.add(n),
        where(v.greater(n), n, v),
        clamp(v, 0, n),
        pow(v, tensor(n)),
        full([2], n),
        full([2], n, "f64"),
        dynamicSlice(v, [n], [2]),
        random.uniform(random.foldIn(random.key(1), n), [1]),
        v.copy().setAt(0, n),
        forLoop(3, v, (_, s) => s.mul(n)),
        scan((s: Tensor, w: Tensor) => [s.add(w.mul(n)), s] as const, n as unknown as Tensor, v)[0],
        cond(
          v.sum().greater(0),
          (w: Tensor) => w.mul(n),
          (w: Tensor) => w.sub(n),
          v,
        ),
        checkpoint((w: Tensor, k: number) => w.mul(k).sin())(v, n),
        grad((w: Tensor, k: number) => w.square().mul(k).sum())(v, n),
      ])(x);
      expect(f(x, n).map((y) => y.toArray())).toEqual(fixed.map((y) => y.toArray()));
    }
    expect(f.usage().programs).toBe(1);
  });

  test("passes through derivatives and other compiled functions", () => {
    const scaled = compile((v: Tensor, k: number) => v.mul(k));
    const { fn, traces } = counted((w: Tensor, lr: number) => {
      const [loss, dw] = valueAndGrad((v: Tensor, k: number) => scaled(v, k).square().sum())(w, lr);
      return [w.sub(dw.mul(lr)), loss] as const;
    });
    const step = compile(fn, { donate: [0] });
    let w = tensor([1, 2], { dtype: "f64" });
    let want = [1, 2];
    for (const lr of [0.1, 0.2, 0.05]) {
      [w] = step(w, lr);
      want = want.map((v) => v - 2 * (v * lr) * lr * lr);
    }
    w.data().forEach((v, i) => {
      expect(v).toBeCloseTo(want[i] as number, 12);
    });
    expect(traces()).toBe(1);
  });

  test("is a constant to derivatives that users give, and to those of solvers", () => {
    const scaled = customVjp((v: Tensor, k: number) => v.mul(k), {
      forward: (v: Tensor, k: number) => [v.mul(k), { k: k as unknown as Tensor }],
      backward: ({ k }, ct) => [ct.mul(k), 0],
    });
    const bent = customJvp(
      (v: Tensor, k: number) => v.mul(k).sin(),
      ([v, k], [t]) => t.mul(k).mul(v.mul(k).cos()),
    );
    const decay = (v: Tensor, k: number): Tensor => odeint((y) => y.mul(-1), v, { from: 0, to: k, steps: 4 }).sum();
    const both = reversible(
      (v: Tensor) => v.add(1),
      (v: Tensor) => v.sub(1),
    );
    const fn = (v: Tensor, n: number) =>
      grad((u: Tensor) => {
        const inner = (w: Tensor): Tensor => scaled(w, n).add(bent(w, n)).sum();
        return inner(both(u)).add(decay(u, n)).add(grad(inner)(u).sum());
      })(v);
    const [traced, fixed] = [compile(fn), compile(fn, { static: [1] })];
    for (const n of [0.5, 1.5, 0.25]) {
      const want = fixed(row(1, 2, 3), n).data();
      traced(row(1, 2, 3), n)
        .data()
        .forEach((v, i) => {
          expect(v).toBeCloseTo(want[i] as number, 5);
        });
    }
    expect([traced.usage().programs, fixed.usage().programs]).toEqual([1, 3]);
  });

  test.each([
    ["sgd", (lr: number) => sgd({ lr, momentum: 0.9 })],
    ["adam", (lr: number) => adam({ lr })],
    ["adamw", (lr: number) => adamw({ lr, weightDecay: 0.1 })],
    ["rmsprop with a schedule", (lr: number) => rmsprop({ lr: constant(lr) })],
    ["sgd, clipped", (lr: number) => sgd({ lr, clip: clipByGlobalNorm(lr) })],
  ] as const)("is a learning rate: %s", (_, optimizer) => {
    const params = { w: row(1, -2, 3), v: tensor([0.5], { dtype: "f64" }) };
    const slope = grad((p: typeof params) => p.w.square().sum().add(p.v.square().sum().cast("f32")));
    const update = (s: ReturnType<typeof init>, lr: number) => optimizer(lr).update(s, slope(s.params));
    const init = () => optimizer(0.1).init(params);
    const [traced, fixed] = [compile(update), compile(update, { static: [1] })];
    let [a, b] = [init(), init()];
    for (const lr of [0.1, 0.05, 0.01]) {
      [a, b] = [traced(a, lr), fixed(b, lr)];
      expect(a.params.v.item()).toBeCloseTo(b.params.v.item(), 6);
      a.params.w.data().forEach((w, i) => {
        expect(w).toBeCloseTo(b.params.w.data()[i] as number, 6);
      });
    }
    expect([traced.usage().programs, fixed.usage().programs]).toEqual([1, 3]);
  });

  test("is planned as it is compiled", () => {
    const fn = (x: Tensor, n: number): Tensor => x.mul(n);
    expect(plan(fn)(spec([1000]), 2).arenaBytes).toBe(
      compile(fn).program(tensor(new Float32Array(1000)), 2).arenaBytes,
    );
  });
});

describe("a number that has to be known", () => {
  const refused = (fn: (x: Tensor, n: number) => unknown, code: string): void => {
    expect(() => compile(fn)(row(1, 2), 1)).toThrow(code);
    expect(() => compile(fn)(row(1, 2), 1)).toThrow("static: [1]");
    expect(() => compile(fn, { static: [1] })(row(1, 2), 1)).not.toThrow();
  };

  test("is refused with the way out: as an axis, an extent, a count, in JavaScript's arithmetic and comparisons", () => {
    refused((x, n) => x.expandDims(n), "InvalidAxis");
    refused((x, n) => x.reshape([n, 2]), "SideEffect");
    refused((x, n) => full([n], 1).add(x), "SideEffect");
    refused((x, n) => forLoop(n, x, (_, s) => s), "InvalidArgument");
    refused((x, n) => x.mul(n * 2), "SideEffect: conversion to a number of n");
    refused((x, n) => (n > 0 ? x : x.neg()), "SideEffect");
    refused((x, n) => x.mul(-n), "SideEffect");
    refused((x, n) => x.mul(Math.exp(n)), "SideEffect");
    refused((x, n) => Array.from({ length: n }).reduce<Tensor>((y) => y.mul(2), x), "SideEffect");
  });

  test("is a constant with `static`, also inside of an argument beside tensors", () => {
    const { fn, traces } = counted((p: { w: Tensor; heads: number }, lr: number) => p.w.reshape([p.heads, -1]).mul(lr));
    const f = compile(fn, { static: [0] });
    expect(f({ w: row(1, 2, 3, 4), heads: 2 }, 0.5).shape).toEqual([2, 2]);
    expect(f({ w: row(1, 2, 3, 4), heads: 2 }, 2).toArray()).toEqual([
      [2, 4],
      [6, 8],
    ]);
    expect(f({ w: row(1, 2, 3, 4), heads: 4 }, 2).shape).toEqual([4, 1]);
    expect(traces()).toBe(2);
    expect(() => compile(fn, { static: [-1] })).toThrow("static is [-1]");
  });

  test("is one by itself where no operation meets it: it may have decided something unseen", () => {
    const f = compile((x: Tensor, mode: number) => {
      if (mode === 1) return x.mul(10);
      return mode ? x.neg() : x;
    });
    for (let i = 0; i < 2; i++) {
      expect(f(row(1, 2), 1).toArray()).toEqual([10, 20]);
      expect(f(row(1, 2), 2).toArray()).toEqual([-1, -2]);
      expect(f(row(1, 2), 0).toArray()).toEqual([1, 2]);
    }
    expect(f.usage().programs).toBe(3);
  });
});

describe("numbers that a function has no parameter for", () => {
  const calls = (fn: (...args: never[]) => Tensor): number => {
    const step = compile(fn as (x: Tensor, i: number) => Tensor);
    for (let i = 0; i < 4; i++) step(row(1), i);
    return step.stats().planned;
  };

  test("make no programs", () => {
    expect(calls((x: Tensor) => x.add(1))).toBe(1);
    expect(
      calls(function plusOne(x: Tensor) {
        return x.add(1);
      }),
    ).toBe(1);
    expect(calls({ step: (x: Tensor) => x.add(1) }.step)).toBe(1);
  });

  test("are seen where it may look at them in another way", () => {
    expect(calls((x: Tensor, i = 0) => x.add(i ? 1 : 2))).toBe(4);
    expect(calls((...all: [Tensor, number]) => all[0].add(all[1] ? 1 : 2))).toBe(4);
    expect(calls(new Function("x", "return x.add(arguments[1] ? 1 : 2);") as (x: Tensor) => Tensor)).toBe(4);
    expect(calls(hidden((x: Tensor) => x.add(1)))).toBe(4);
    const bracket = ({ rank }: Tensor, _ = ")", ...rest: number[]): Tensor => row(rest.length).add(rank);
    expect(calls(bracket)).toBe(4);
  });
});
