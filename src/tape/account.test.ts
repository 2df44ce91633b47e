/** @file What ways of differentiating hold, against PyTorch's own count (`python3 bench/tape-saves.py`, PyTorch 1.13) and against the tape itself. */
import { expect, it } from "vitest";
import { grad, spec, type Tensor, tensor, where } from "../api/index.ts";
import { type AnyFunction, traceFunction } from "../trace/function.ts";
import { tapeAccount } from "./account-function.ts";
import { planOf, programAccount } from "./account-program.ts";
import { tape } from "./tape.ts";

const draw = (...shape: number[]): Tensor => {
  const count = shape.reduce((a, b) => a * b, 1);
  return tensor(
    Float32Array.from({ length: count }, (_, i) => 0.1 + ((i * 37) % 101) / 101),
    { shape },
  );
};

const part = (x: Tensor, i: number, width: number): Tensor => x.slice([null, [i * width, (i + 1) * width]]);

type Params = readonly Tensor[];
const programs: Readonly<
  Record<string, { fn: (p: Params, ...rest: Tensor[]) => Tensor; args: readonly [Params, ...Tensor[]] }>
> = {
  mlp: {
    fn: ([w1, b1, w2, b2], x) => x!.matmul(w1!).add(b1!).relu().matmul(w2!).add(b2!).square().mean(),
    args: [[draw(64, 128), draw(128), draw(128, 10), draw(10)], draw(32, 64)],
  },
  elementwise: {
    fn: ([x]) => {
      const y = x!.sigmoid().mul(x!.tanh());
      const z = y.exp().add(1).log().div(x!.sqrt());
      return z.sin().sub(z.cos().abs()).sum();
    },
    args: [[draw(1000)]],
  },
  norm: {
    fn: ([x, g, b]) => {
      const centred = x!.sub(x!.mean(-1, { keepDims: true }));
      return centred
        .mul(centred.mul(centred).mean(-1, { keepDims: true }).add(1e-5).rsqrt())
        .mul(g!)
        .add(b!)
        .sum();
    },
    args: [[draw(32, 64), draw(64), draw(64)]],
  },
  attention: {
    fn: ([w], x) => {
      const all = x!.matmul(w!);
      const [q, k, v] = [part(all, 0, 16), part(all, 1, 16), part(all, 2, 16)];
      const s = q.matmul(k.transpose()).mul(0.25);
      const e = s.sub(s.max(-1, { keepDims: true }).stopGradient()).exp();
      return e
        .div(e.sum(-1, { keepDims: true }))
        .matmul(v)
        .sum();
    },
    args: [[draw(64, 48)], draw(8, 64)],
  },
  activations: {
    fn: ([x]) => {
      const y = x!.gelu().add(x!.mul(2).silu());
      return y
        .clamp(-1, 1)
        .exp()
        .sum()
        .add(where(x!.greater(0.5), y, x!).sum());
    },
    args: [[draw(500)]],
  },
  cell: {
    fn: ([u, b, c], h) => {
      const gates = h!.matmul(u!).add(b!);
      const d = part(gates, 0, 32)
        .sigmoid()
        .mul(part(gates, 3, 32).tanh())
        .add(part(gates, 1, 32).sigmoid().mul(c!));
      return part(gates, 2, 32).sigmoid().mul(d.tanh()).sum();
    },
    args: [[draw(64, 128), draw(128), draw(4, 32)], draw(4, 64)],
  },
};

/** Printed by bench/tape-saves.py. */
const TORCH: Readonly<Record<string, number>> = {
  mlp: 17664,
  elementwise: 32000,
  norm: 16512,
  attention: 2080,
  activations: 6500,
  cell: 2560,
};

const accountOf = (name: string) => {
  const { fn, args } = programs[name]!;
  return tapeAccount(fn as (...given: typeof args) => Tensor)(...args);
};

it("named saves are what PyTorch saves", () => {
  const found = Object.fromEntries(Object.keys(programs).map((name) => [name, accountOf(name).namedSavesBytes]));
  expect(found).toEqual(TORCH);
});

it("every way holds no more than the one before it, but for plans of programs that fuse otherwise", () => {
  for (const name of Object.keys(programs)) {
    const { overloadBytes, namedSavesBytes, tapeBytes, plannedBytes, rows } = accountOf(name);
    expect(namedSavesBytes, name).toBeLessThan(overloadBytes);
    expect(tapeBytes, name).toBeLessThanOrEqual(namedSavesBytes);
    expect(plannedBytes, name).toBeLessThanOrEqual(tapeBytes);
    expect(rows.reduce((sum, row) => sum + row.tapeBytes, 0)).toBe(tapeBytes);
  }
});

it("the tape holds what its column says", () => {
  const { fn, args } = programs.norm!;
  const [params, ...rest] = args;
  const { tapeBytes } = accountOf("norm");
  let held = 0;
  tape((t) => {
    fn(params, ...rest).item();
    held = t.memory().allocated;
  });
  const argumentBytes = params.reduce((sum, { elements }) => sum + 4 * elements, 0);
  // beside what reverses read: the loss, numbers, and sums of rows, which are small enough to be kept a while
  expect(held).toBeGreaterThanOrEqual(tapeBytes);
  expect(held).toBeLessThanOrEqual(tapeBytes + argumentBytes + 2048);
});

it("orders of differentiation hold what they hold, one beside the other", () => {
  const inner = (w: Tensor): Tensor => w.sin().exp().sum();
  const once = tapeAccount(inner)(spec([1000]));
  expect(once.orders).toEqual([
    { overloadBytes: 8004, namedSavesBytes: 4000, tapeBytes: 4000, plannedBytes: once.plannedBytes },
  ]);
  const { orders, tapeBytes } = tapeAccount((w: Tensor) => grad(inner)(w).square().sum())(spec([1000]));
  expect(orders).toHaveLength(2);
  expect(orders[0]).toMatchObject({ namedSavesBytes: 4000, tapeBytes: 4000 });
  // a step that takes the gradient of that one has the same two backward passes
  const step = (w: Tensor): Tensor => w.sub(grad((v: Tensor) => grad(inner)(v).square().sum())(w));
  const { graph } = traceFunction(step as AnyFunction, [spec([1000])]);
  expect(programAccount(graph, planOf(graph)).passes).toEqual(orders);
  // the gradient of the gradient reads what the gradient computed, too
  expect(tapeBytes).toBe(orders[1]?.tapeBytes);
  expect(tapeBytes).toBeGreaterThan(2 * 4000);
  expect(() => tapeAccount((w: Tensor) => w.mul(2))(spec([2]))).toThrow("ShapeMismatch: tapeAccount");
});
