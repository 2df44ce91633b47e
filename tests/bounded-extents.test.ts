/**
 * @file A named dimension with a maximum: the program of the maximum is planned before the first run, those of smaller extents run in
 * its arena, unpadded and with the bits of programs of their own.
 */
import { describe, expect, test, vi } from "vitest";
import {
  type CompileOptions,
  compile,
  compileAsync,
  concat,
  grad,
  type Lengths,
  random,
  spec,
  type Tensor,
  tensor,
  valueAndGrad,
} from "../src/api/index.ts";
import { languageModel } from "../src/cli/programs/gpt.ts";
import { budgetPlanner } from "../src/compiler/assemble.ts";
import { systemCompiler } from "../src/node/native/compiler.ts";
import { Arena } from "../src/runtime/arena.ts";
import "./support/host.ts";

const weights = (): Tensor => random.normal(random.key(0), [6, 4]);
const rows = (n: number): Tensor => random.normal(random.key(n), [n, 6]);

function train(w: Tensor, x: Tensor): readonly [Tensor, Tensor] {
  const [loss, dw] = valueAndGrad((v: Tensor) => x.matmul(v).tanh().square().mean())(w);
  return [w.sub(dw.mul(0.1)), loss];
}

const BOUNDED = { shapes: { T: { max: 32 } }, axes: [null, ["T", null]] } as const satisfies CompileOptions;

const hasCompiler = typeof systemCompiler() !== "string";
const targets: readonly CompileOptions[] = [
  { target: "wasm" },
  { target: "wasm", threads: 2 },
  ...(hasCompiler ? [{ target: "native" } as const] : []),
];

describe.each(targets)("up to a maximum on $target, $threads threads", (where) => {
  test("every extent has the bits of a program of its own, in an arena that never grows", () => {
    const [bounded, plain] = [
      compile(train, { ...BOUNDED, ...where, donate: [0] }),
      compile(train, { ...where, donate: [0], programs: 8 }),
    ];
    const { arenaBytes } = bounded.family(spec([6, 4]), spec([1, 6]));
    let [a, b] = [weights(), weights()];
    for (const n of [1, 31, 32, 7, 16, 31]) {
      const [next, loss] = bounded(a, rows(n));
      const [other, want] = plain(b, rows(n));
      expect(loss.item()).toBe(want.item());
      expect(bounded.usage().arenaBytes).toBe(arenaBytes);
      [a, b] = [next, other];
    }
    expect(a.data()).toEqual(b.data());
    expect(bounded.stats()).toMatchObject({ calls: 6, planned: 5, compiled: 5 });
    bounded.dispose();
    plain.dispose();
  });
});

describe("a dimension with a maximum", () => {
  test("is planned at the maximum before the first run, and once for each extent that comes", () => {
    // operations outside of the function are programs too
    const given = new Map([5, 9, 32].map((n) => [n, rows(n)]));
    const w0 = weights();
    for (const x of [...given.values(), w0]) x.data();
    const assemble = vi.spyOn(budgetPlanner, "assemble");
    const step = compile(train, { ...BOUNDED, donate: [0] });
    const info = step.family(spec([6, 4]), spec([1, 6]));
    expect(info.members.map(({ extents }) => extents)).toEqual([{ T: 32 }]);
    expect(String(info)).toMatch(/^T ≤ 32 +[\d,]+ bytes/);
    expect(assemble).toHaveBeenCalledTimes(1);
    let w = w0;
    for (const n of [5, 9, 5, 32, 9]) [w] = step(w, given.get(n) as Tensor);
    expect(assemble).toHaveBeenCalledTimes(3);
    expect(step.stats()).toMatchObject({ compiled: 3, dropped: 0, arenaBytes: info.arenaBytes });
    vi.restoreAllMocks();
  });

  test("changes extents without moving state", () => {
    const step = compile(train, { ...BOUNDED, donate: [0] });
    let [w] = step(weights(), rows(32));
    for (const n of [3, 17, 32]) [w] = step(w, rows(n));
    for (const n of [17, 3, 32]) {
      const x = rows(n);
      x.data();
      const written = vi.spyOn(Arena.prototype, "write");
      [w] = step(w, x);
      expect(written.mock.calls.map(([type]) => type.shape)).toEqual([[n, 6]]);
      vi.restoreAllMocks();
    }
  });

  test("stays within the arena of the maximum where a smaller extent needs more, or refuses it", () => {
    const deeper = (layers: number) => (w: Tensor, x: Tensor) => {
      const depth = (x.shape[0] as number) <= 60 ? layers : 2;
      return grad((v: Tensor) => {
        let h = x;
        for (let i = 0; i < depth; i++) h = h.matmul(v).tanh();
        return h.sum();
      })(w);
    };
    const w = random.normal(random.key(1), [8, 8]);
    const [short, long] = [60, 64].map((n) => random.normal(random.key(n), [n, 8])) as [Tensor, Tensor];
    const named = { shapes: { T: { max: 64 } }, axes: [null, ["T", null]] } as const satisfies CompileOptions;
    const fits = compile(deeper(5), named);
    const { arenaBytes } = fits.family(w, short);
    expect(compile(deeper(5)).program(w, short).arenaBytes).toBeGreaterThan(arenaBytes);
    expect(fits(w, short).data()).toEqual(compile(deeper(5))(w, short).data());
    expect(fits.usage().arenaBytes).toBe(arenaBytes);
    const longer = (x: Tensor) => concat(Array.from({ length: (x.shape[0] as number) <= 60 ? 9 : 1 }, () => x));
    const refused = compile(longer, { shapes: { T: { max: 64 } }, axes: [["T", null]] });
    expect(() => refused(short)).toThrow(/PlanInfeasible: for T = 60: .*list it: shapes: \{ T: \[60, 64\] \}/s);
    expect(refused(long).data()).toEqual(long.data());
  });

  test("goes with lists of others and with budgets", () => {
    const wide = (x: Tensor) => grad((v: Tensor) => v.tanh().exp().tanh().exp().tanh().sum())(x);
    const options = { shapes: { B: [2, 4], T: { max: 512 } }, axes: [["B", "T"]] } as const;
    const f = compile(wide, options);
    const info = f.family(spec([1, 1]));
    expect(info.members.map(({ extents }) => extents)).toEqual([
      { B: 2, T: 512 },
      { B: 4, T: 512 },
    ]);
    const x = random.normal(random.key(1), [2, 100]);
    expect(f(x).data()).toEqual(compile(wide)(x).data());
    expect(() => f(random.normal(random.key(1), [3, 100]))).toThrow(/its members are 2, 4/);
    const small = compile(wide, { ...options, memory: info.arenaBytes });
    expect(small(x).data()).toEqual(f(x).data());
    expect(small.stats().arenaBytes).toBeLessThanOrEqual(info.arenaBytes);
    const none = compile(wide, { ...options, memory: 4000 });
    expect(() => none(x)).toThrow(/PlanInfeasible: for B = 4, T = 512: /);
  });

  test("is not padded; with pad the function is told its extent", () => {
    const f = compile((x: Tensor, { B, T }: Lengths<"B" | "T">) => [x.sum(), B, T] as const, {
      shapes: { B: [4], T: { max: 8 } },
      axes: [["B", "T"]],
      pad: true,
    });
    const [sum, b, t] = f(tensor([1, 2, 3]).reshape([1, 3]));
    expect([sum.item(), b.item(), t.item()]).toEqual([6, 1, 3]);
  });

  test("is compiled ahead by compileAsync at its maximum", async () => {
    const step = await compileAsync(train, [spec([6, 4]), spec([8, 6])], { ...BOUNDED, donate: [0] });
    const { arenaBytes } = step.usage();
    expect(step.stats()).toMatchObject({ planned: 1, compiled: 1 });
    const [w] = step(weights(), rows(9));
    expect(w.data()).toEqual(compile(train)(weights(), rows(9))[0].data());
    expect(step.stats()).toMatchObject({ planned: 2, compiled: 2, arenaBytes });
  });
});

test("a language model up to 64 positions has the bits of exact lengths", () => {
  const size = { batch: 2, time: 64, width: 32, heads: 2, blocks: 1, vocabulary: 64, tied: false };
  const model = languageModel("gpt", "a small one", size);
  type State = ReturnType<typeof model.init>;
  const fn = (s: State, a: Tensor, b: Tensor) => model.step(s, a, b);
  const axes = model.axes as NonNullable<typeof model.axes>;
  const [x, y] = model.batch() as [Tensor, Tensor];
  const first = (t: Tensor, n: number): Tensor => t.slice([null, [0, n]]).copy();
  const bounded = compile(fn, { shapes: { T: { max: 64 } }, axes });
  const exact = compile(fn, { programs: 8 });
  const state = model.init();
  for (const n of [1, 23, 64]) {
    const [next, loss] = bounded(state, first(x, n), first(y, n));
    const [want, wantLoss] = exact(state, first(x, n), first(y, n));
    expect(loss.item()).toBe(wantLoss.item());
    for (const part of ["tok", "pos", "head"] as const)
      expect(next.params[part]?.data()).toEqual(want.params[part]?.data());
  }
});
