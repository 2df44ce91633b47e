/**
 * @file Programs for several extents of named dimensions: planned together before the first run, in one arena of the largest one's
 * size; other lengths are refused, or padded and the function told their length.
 */
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  arange,
  type CompileOptions,
  compile,
  compileAsync,
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
import { ResidentStorage } from "../src/runtime/resident.ts";
import { storageOf } from "../src/trace/tensor.ts";
import "./support/host.ts";

const weights = (): Tensor => random.normal(random.key(0), [6, 4]);
const rows = (n: number): Tensor => random.normal(random.key(n), [n, 6]);

/** A step whose loss is the mean over the rows that count. */
function masked(w: Tensor, x: Tensor, { T }: Lengths<"T">): readonly [Tensor, Tensor] {
  const counts = arange(x.shape[0] as number)
    .less(T)
    .cast("f32");
  const [loss, dw] = valueAndGrad((v: Tensor) =>
    x.matmul(v).tanh().square().mean(1).mul(counts).sum().div(T.cast("f32")),
  )(w);
  return [w.sub(dw.mul(0.1)), loss];
}

function train(w: Tensor, x: Tensor): readonly [Tensor, Tensor] {
  return masked(w, x, { T: tensor(x.shape[0] as number, { dtype: "i32" }) });
}

const SHAPES = { shapes: { T: [8, 16, 32] }, axes: [null, ["T", null]] } as const satisfies CompileOptions;

afterEach(() => vi.restoreAllMocks());

describe("a family of shapes", () => {
  test("is planned before the first run: its arena is the largest member's and never grows", () => {
    const step = compile(train, { ...SHAPES, donate: [0] });
    const info = step.family(spec([6, 4]), spec([1, 6]));
    expect(info.members.map(({ extents }) => extents)).toEqual([{ T: 8 }, { T: 16 }, { T: 32 }]);
    const alone = info.members.map(({ extents }) =>
      compile(train, { donate: [0] }).program(weights(), rows(extents.T as number)),
    );
    expect(info.members.map(({ arenaBytes }) => arenaBytes)).toEqual(alone.map(({ arenaBytes }) => arenaBytes));
    expect(info.arenaBytes).toBe(alone[2]?.arenaBytes);
    expect(step.stats()).toMatchObject({ planned: 3, compiled: 0, arenaBytes: 0 });
    let [w] = step(weights(), rows(8));
    for (const n of [16, 8, 32, 16]) {
      expect(step.usage().arenaBytes).toBe(info.arenaBytes);
      [w] = step(w, rows(n));
    }
    expect(step.stats()).toMatchObject({ calls: 5, planned: 3, compiled: 3, programs: 3, dropped: 0 });
  });

  test("plans all members at the first call, and nothing after it", () => {
    const assemble = vi.spyOn(budgetPlanner, "assemble");
    const step = compile(train, { ...SHAPES, donate: [0] });
    let [w] = step(weights(), rows(16));
    expect(assemble).toHaveBeenCalledTimes(3);
    for (const n of [8, 32, 16, 8]) [w] = step(w, rows(n));
    expect(assemble).toHaveBeenCalledTimes(3);
    expect(step.stats()).toMatchObject({ planned: 3, compiled: 3 });
  });

  test("has the bits of programs for one shape each, and state stays where it is without a copy", () => {
    const table = random.normal(random.key(9), [6, 4]);
    const fn = (w: Tensor, x: Tensor) => {
      const [next, loss] = train(w, x);
      return [next.add(table.mul(0.01)), loss] as const;
    };
    const [family, plain] = [compile(fn, { ...SHAPES, donate: [0] }), compile(fn, { donate: [0] })];
    let [[a], [b]] = [family(weights(), rows(32)), plain(weights(), rows(32))];
    const place = (x: Tensor) => (storageOf(x) as ResidentStorage).place?.address;
    const address = place(a);
    for (const n of [8, 16, 8, 32]) [a, b] = [family(a, rows(n))[0], plain(b, rows(n))[0]];
    expect(a.data()).toEqual(b.data());
    for (const n of [8, 16, 8, 32]) {
      const x = rows(n);
      x.data();
      const moved = vi.spyOn(ResidentStorage.prototype, "moveOut");
      const written = vi.spyOn(Arena.prototype, "write");
      [a] = family(a, x);
      expect(place(a)).toBe(address);
      expect(moved).not.toHaveBeenCalled();
      // the rows alone: neither the state nor the constant
      expect(written.mock.calls.map(([type]) => type.shape)).toEqual([[n, 6]]);
      vi.restoreAllMocks();
    }
  });

  test("is planned by compileAsync in all its members", async () => {
    const step = await compileAsync(train, [spec([6, 4]), spec([8, 6])], { ...SHAPES, donate: [0] });
    const { arenaBytes } = step.usage();
    expect(step.stats()).toMatchObject({ programs: 3, planned: 3, compiled: 3 });
    let w = weights();
    for (const n of [8, 32, 16]) [w] = step(w, rows(n));
    expect(step.stats()).toMatchObject({ planned: 3, compiled: 3, arenaBytes });
    expect(arenaBytes).toBe(step.family(w, rows(8)).arenaBytes);
  });

  test("has several dimensions, trees of arguments, and axes of one name twice", () => {
    const fn = ({ x, mask }: { x: Tensor; mask: Tensor }, [y]: readonly [Tensor]) => x.matmul(mask).add(y).sum();
    const f = compile(fn, {
      shapes: { B: [2, 4], T: [3, 5] },
      axes: [{ x: ["B", "T"], mask: ["T", "T"] }, [["B", "T"]]],
    });
    const call = (b: number, t: number) =>
      [
        { x: random.normal(random.key(1), [b, t]), mask: random.normal(random.key(2), [t, t]) },
        [random.normal(random.key(3), [b, t])],
      ] as const;
    for (const [b, t] of [
      [2, 3],
      [4, 5],
      [2, 5],
    ] as const) {
      const [a, y] = call(b, t);
      expect(f(a, y as [Tensor]).item()).toBeCloseTo(fn(a, y as [Tensor]).item(), 4);
    }
    expect(f.stats()).toMatchObject({ planned: 4, compiled: 3 });
    const text = String(f.family(...call(1, 1)));
    expect(text.split("\n")[0]).toMatch(/^B = 2, T = 3 +[\d,]+ bytes/);
    expect(text).toContain("one arena of");
  });

  test("plans each set of other shapes once", () => {
    const f = compile((x: Tensor, y: Tensor) => x.sum().add(y.sum()), { shapes: { T: [2, 3] }, axes: [["T"]] });
    for (const n of [1, 2]) for (const t of [2, 3, 2]) f(arange(t).cast("f32"), rows(n));
    expect(f.stats()).toMatchObject({ planned: 4, compiled: 4 });
  });

  test("stays within a budget, or names the member that does not fit", () => {
    const wide = (x: Tensor) => grad((v: Tensor) => v.tanh().exp().tanh().exp().tanh().sum())(x);
    const options = { shapes: { T: [64, 4096] }, axes: [["T"]] } as const;
    const free = compile(wide, options).family(spec([1])).arenaBytes;
    const f = compile(wide, { ...options, memory: free });
    f(random.normal(random.key(0), [64]));
    expect(f.stats().arenaBytes).toBeLessThanOrEqual(free);
    const small = compile(wide, { ...options, memory: 10_000 });
    expect(() => small(random.normal(random.key(0), [64]))).toThrow(/PlanInfeasible: for T = 4096: /);
    expect(small.usage().arenaBytes).toBe(0);
  });

  test("is the function itself inside another trace", () => {
    const f = compile((x: Tensor, lengths: Lengths<"T">) => x.sum().mul(lengths.T.cast("f32")), {
      ...{ shapes: { T: [4] }, axes: [["T"]], pad: true },
    });
    expect(grad((x: Tensor) => f(x))(tensor([1, 2, 3])).toArray()).toEqual([3, 3, 3]);
  });
});

const hasCompiler = typeof systemCompiler() !== "string";
const targets: readonly CompileOptions[] = [
  { target: "wasm", threads: 2 },
  ...(hasCompiler ? [{ target: "native" } as const] : []),
];

describe.each(targets)("a family on $target", (where) => {
  test("has the bits of single programs, in an arena that never grows", () => {
    const [family, plain] = [
      compile(train, { ...SHAPES, ...where, donate: [0] }),
      compile(train, { ...where, donate: [0] }),
    ];
    let [[a], [b]] = [family(weights(), rows(8)), plain(weights(), rows(8))];
    const { arenaBytes } = family.usage();
    expect(arenaBytes).toBe(family.family(a, rows(8)).arenaBytes);
    for (const n of [32, 16, 8]) [a, b] = [family(a, rows(n))[0], plain(b, rows(n))[0]];
    expect(a.data()).toEqual(b.data());
    expect(family.usage().arenaBytes).toBe(arenaBytes);
    family.dispose();
    plain.dispose();
  });
});

describe("padding", () => {
  const padded = () => compile(masked, { ...SHAPES, donate: [0], pad: true });

  test("gives the function the length before it, and compiles nothing for it", () => {
    const step = padded();
    const exact = compile(train, { programs: 8 });
    for (const n of [1, 7, 8, 9, 31, 32, 20, 3]) {
      const [w, loss] = step(weights(), rows(n));
      const [want, wantLoss] = exact(weights(), rows(n));
      expect(Math.abs(loss.item() - wantLoss.item())).toBeLessThanOrEqual(1e-6 * wantLoss.item());
      for (const [i, value] of w.data().entries())
        expect(Math.abs(value - (want.data()[i] as number))).toBeLessThan(1e-6);
    }
    expect(step.stats()).toMatchObject({ planned: 3, compiled: 3, calls: 8 });
  });

  test("keeps every element in its place, for every type", () => {
    for (const dtype of ["f32", "f64", "i32", "bool"] as const) {
      const f = compile((x: Tensor, { A, B }: Lengths<"A" | "B">) => [x, A, B] as const, {
        ...{ shapes: { A: [3], B: [4, 5] }, axes: [["A", null, "B"]], pad: true },
      });
      const x = arange(1, 1 + 2 * 2 * 3)
        .reshape([2, 2, 3])
        .cast(dtype);
      const [y, a, b] = f(x);
      expect(y.shape).toEqual([3, 2, 4]);
      expect([a.item(), b.item()]).toEqual([2, 3]);
      expect(y.slice([[0, 2], null, [0, 3]]).toArray()).toEqual(x.toArray());
      const sum = (v: Tensor) => [...v.data()].reduce((all, own) => all + Number(own), 0);
      expect(sum(y)).toBe(sum(x));
    }
  });

  test("comes behind arguments that a call leaves out", () => {
    const f = compile(
      (x: Tensor, scale: Tensor | undefined, lengths: Lengths<"T">) =>
        x
          .mul(scale ?? 2)
          .sum()
          .add(lengths.T.cast("f32")),
      { shapes: { T: [4] }, axes: [["T"]], pad: true },
    );
    expect(f(tensor([1, 2]), undefined).item()).toBe(8);
    expect(f(tensor([1, 2]), tensor(3)).item()).toBe(11);
  });
});

describe("a language model with buckets of lengths", () => {
  const size = { batch: 2, time: 64, width: 32, heads: 2, blocks: 2, vocabulary: 64, tied: false };
  const model = languageModel("gpt", "a small one", size);
  type State = ReturnType<typeof model.init>;
  type Step = (state: State, x: Tensor, y: Tensor, lengths: Lengths<"T">) => readonly [State, Tensor];
  const fn = model.step as unknown as Step;
  const axes = model.axes as NonNullable<typeof model.axes>;
  const state = model.init();
  const [x, y] = model.batch() as [Tensor, Tensor];
  const first = (t: Tensor, n: number): Tensor => t.slice([null, [0, n]]).copy();

  /** The tokens of a text, and numbers behind them up to a length. */
  function filled(t: Tensor, n: number, length: number, key: number): Tensor {
    const noise = random.randint(random.key(key), [size.batch, length], 0, size.vocabulary);
    const data = Int32Array.from(noise.data());
    const own = t.data();
    for (let b = 0; b < size.batch; b++)
      for (let i = 0; i < n; i++) data[b * length + i] = own[b * size.time + i] as number;
    return tensor(data).reshape([size.batch, length]);
  }

  test("has the same bits whatever the padding holds, and the loss of the exact length", () => {
    const family = compile(fn, { shapes: { T: [16, 32, 64] }, axes, pad: true });
    const inner = compile(fn, { programs: 8 });
    const exactly = compile((s: State, a: Tensor, b: Tensor) => model.step(s, a, b), { programs: 8 });
    for (const [i, n] of [1, 16, 23, 32, 50].entries()) {
      const [next, loss] = family(state, first(x, n), first(y, n));
      const length = [16, 32, 64].find((t) => t >= n) as number;
      const noisy = inner(state, filled(x, n, length, i), filled(y, n, length, 99 + i), {
        T: tensor(n, { dtype: "i32" }),
      });
      expect(noisy[1].item()).toBe(loss.item());
      for (const part of ["tok", "pos", "head"] as const)
        expect(noisy[0].params[part]?.data()).toEqual(next.params[part]?.data());
      const [, exact] = exactly(state, first(x, n), first(y, n));
      expect(Math.abs(loss.item() - exact.item())).toBeLessThanOrEqual(1e-6 * exact.item());
    }
    expect(family.stats()).toMatchObject({ planned: 3, compiled: 3 });
  });
});

describe("the peak of gpt by length", () => {
  const model = languageModel("gpt", "as the built-in one, with 512 positions", {
    ...{ batch: 8, time: 512, width: 128, heads: 4, blocks: 4, vocabulary: 512, tied: false },
  });
  const family = (T: readonly number[]) =>
    compile(model.step as (...args: unknown[]) => unknown as never, {
      donate: [0],
      shapes: { T },
      axes: model.axes as never,
    }) as unknown as {
      family(...args: readonly unknown[]): import("../src/api/index.ts").ShapeFamilyInfo;
    };
  const specs = (model.specs as NonNullable<typeof model.specs>)();

  test("is at most 1.01 of the largest member's for buckets from 64 to 512, known without running", () => {
    const info = family([64, 128, 256, 512]).family(...specs);
    const [largest] = family([512]).family(...specs).members;
    expect(info.arenaBytes).toBeLessThanOrEqual(1.01 * (largest?.arenaBytes as number));
    expect(new Set(info.members.map(({ persistentBytes }) => persistentBytes)).size).toBe(1);
    // between members the peak is about on the line through both
    const lengths = info.members.map(({ extents }) => extents.T as number);
    for (const { extents, arenaBytes } of family([96, 320, 448]).family(...specs).members) {
      const T = extents.T as number;
      const i = lengths.findIndex((n) => n > T);
      const [a, b] = [info.members[i - 1], info.members[i]];
      if (!a || !b) throw new Error("outside");
      const [from, to] = [lengths[i - 1] as number, lengths[i] as number];
      const line = a.arenaBytes + ((b.arenaBytes - a.arenaBytes) * (T - from)) / (to - from);
      expect(Math.abs(line - arenaBytes)).toBeLessThan(0.05 * arenaBytes);
    }
  });
});

describe("many programs of one function", () => {
  const warning = () => vi.spyOn(console, "warn").mockImplementation(() => undefined);

  test("are told of once, at the eighth, with the argument that differs", () => {
    const warn = warning();
    const f = compile(function scale(w: Tensor, x: Tensor) {
      return x.matmul(w);
    });
    for (let n = 1; n <= 7; n++) f(weights(), rows(n));
    expect(warn).not.toHaveBeenCalled();
    for (let n = 8; n <= 12; n++) f(weights(), rows(n));
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]?.[0]).toMatch(
      /scale has been compiled for 8 kinds.*this time x is f32\[8,6\] and was f32\[7,6\]/,
    );
  });

  test("are told of where a constant differs", () => {
    const warn = warning();
    const f = compile((x: Tensor, n: number) => x.slice([[0, n]]), { static: [1] });
    for (let n = 1; n <= 8; n++) f(arange(20), n);
    expect(warn.mock.calls[0]?.[0]).toMatch(/this time n is 8 and was 7/);
  });

  test("are no surprise where they are asked for, or are members of a family", () => {
    const warn = warning();
    const f = compile((x: Tensor) => x.sum(), { programs: 20 });
    const sizes = Array.from({ length: 10 }, (_, i) => i + 1);
    const g = compile((x: Tensor) => x.sum(), { shapes: { T: sizes }, axes: [["T"]] });
    for (const n of sizes) [f, g].map((own) => own(arange(n)));
    expect(warn).not.toHaveBeenCalled();
  });
});
