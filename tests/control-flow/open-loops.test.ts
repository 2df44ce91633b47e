/**
 * @file Loops without a bound, reversed under a budget in bytes: the program is compiled before anybody knows how many turns
 * there will be, and one compiled program meets none, one, and many more than it can hold states for. Gradients are compared
 * bit by bit with those of the same loop with a bound, which keeps everything.
 */
import { describe, expect, it } from "vitest";
import {
  compile,
  forLoop,
  grad,
  matmul,
  type PlanningOptions,
  type ProgramInfo,
  scan,
  type Tensor,
  tensor,
  valueAndGrad,
  type WhileOptions,
  whileLoop,
} from "../../src/api/index.ts";
import { hostRandom } from "../../src/base/random.ts";
import type { Node } from "../../src/ir/graph.ts";
import { allNodes } from "../../src/ir/walk.ts";
import { record } from "../../src/ops/record.ts";
import { rewind } from "../../src/ops/rewind.ts";
import { sharePlans } from "../support/shared-plans.ts";

sharePlans();

type Params = Readonly<Record<string, Tensor>>;

function draw(shape: readonly number[], seed: number, scale: number): Tensor {
  const next = hostRandom(seed);
  const n = shape.reduce((a, b) => a * b, 1);
  return tensor(Float64Array.from({ length: n }, () => (next.next() * 2 - 1) * scale)).reshape(shape);
}

const f64 = (value: number): Tensor => tensor(value, { dtype: "f64" });

const bitsOf = (tree: Params): readonly string[] =>
  Object.values(tree).map((leaf) => {
    const { buffer, byteOffset, byteLength } = leaf.data() as Float64Array;
    return [...new Uint8Array(buffer, byteOffset, byteLength)].join(" ");
  });

const nodesOf = ({ graph }: ProgramInfo, op: object): readonly Node[] =>
  [...allNodes(graph)].filter((node) => node.op === op);

interface State {
  readonly s: Tensor;
  readonly left: Tensor;
}

/** As many turns as `turns` says, which is data. */
const counted =
  (options: WhileOptions = {}) =>
  ({ w, h, k, turns }: Params): Tensor =>
    whileLoop<State>(
      ({ left }) => left.greater(0),
      ({ s, left }) => ({
        s: matmul(s, w as Tensor)
          .add(s.mul(0.1))
          .tanh()
          .mul(k as Tensor),
        left: left.sub(1),
      }),
      { s: h as Tensor, left: turns as Tensor },
      options,
    )
      .s.square()
      .sum();

const params = (turns: number): Params => ({
  w: draw([6, 6], 1, 0.6),
  h: draw([5, 6], 2, 1),
  k: draw([6], 4, 0.1).add(1),
  turns: f64(turns),
});

type Compiled = ReturnType<typeof gradientOf>;

function gradientOf(loss: (p: Params) => Tensor, options: PlanningOptions = {}) {
  return compile(
    (p: Params) => {
      const { turns, ...rest } = p;
      const [value, d] = valueAndGrad((q: Params) => loss({ ...q, turns: turns as Tensor }))(rest);
      return { ...d, value } as Params;
    },
    { validate: true, ...options },
  );
}

const COUNTS = [0, 1, 2, 3, 7, 40, 333];

describe("a loop without a bound", () => {
  const stored = gradientOf(counted({ maxSteps: 400 }));
  const expected = COUNTS.map((turns) => bitsOf(stored(params(turns))));
  const check = (compiled: Compiled): void => {
    COUNTS.forEach((turns, i) => {
      expect(bitsOf(compiled(params(turns))), `${turns} turns`).toEqual(expected[i]);
    });
  };
  const free = gradientOf(counted());
  const infoOf = (options: PlanningOptions): ProgramInfo => gradientOf(counted(), options).program(params(0));
  const checkpointsOf = (info: ProgramInfo): number => Number(nodesOf(info, rewind)[0]?.attrs.checkpoints);

  it("has the bits of the one that keeps everything, for any number of turns", () => {
    check(free);
    const info = free.program(params(0));
    expect(nodesOf(info, record)).toHaveLength(1);
    expect(nodesOf(info, rewind).map(({ attrs }) => attrs.recorded)).toEqual([true]);
    expect(checkpointsOf(info)).toBe(32);
  });

  it.each([1, 2, 5, 100])("has them with %i snapshots", (snapshots) => {
    check(gradientOf(counted({ snapshots })));
  });

  it("holds as many states as fit its budget, from one to hundreds, at the same bits", () => {
    const least = infoOf({ memory: "min" }).arenaBytes;
    const found = [least, 4000, 20_000, 100_000].map((memory) => {
      const compiled = gradientOf(counted(), { memory });
      const info = compiled.program(params(0));
      expect(info.arenaBytes).toBeLessThanOrEqual(memory);
      check(compiled);
      return checkpointsOf(info);
    });
    expect(found).toEqual([...found].sort((a, b) => a - b));
    expect(found[0]).toBeLessThan(9);
    expect(found.at(-1)).toBeGreaterThan(300);
    const [stateBytes, memory] = [5 * 6 * 8, 20_000];
    const { arenaBytes } = infoOf({ memory });
    expect(arenaBytes, "another state would not fit").toBeGreaterThan(memory - 2 * stateBytes);
  });

  it("is refused with a number where not even one state fits", () => {
    expect(() => infoOf({ memory: 600 })).toThrow("PlanInfeasible");
  });

  it("keeps its size of code whatever it holds", () => {
    const sizes = [4000, 100_000].map((memory) => infoOf({ memory }).moduleBytes);
    expect(Math.abs((sizes[1] as number) - (sizes[0] as number))).toBeLessThan(160);
  });
});

describe("what a reverse needs and its loop has lost", () => {
  it("is carried along by the loop that holds states", () => {
    // Of the last state only the sum matters, and the number of turns does not depend on it.
    const loss = (x: Tensor, turns: Tensor, options: WhileOptions): Tensor =>
      whileLoop<State>(
        ({ left }) => left.greater(0),
        ({ s, left }) => ({ s: s.sin().mul(1.1), left: left.sub(1) }),
        { s: x, left: turns },
        options,
      ).s.sum();
    const gradient = (options: WhileOptions) =>
      compile((x: Tensor, turns: Tensor) => grad((y: Tensor) => loss(y, turns, options))(x));
    const [open, bounded] = [gradient({ snapshots: 3 }), gradient({ maxSteps: 100 })];
    const x = draw([7], 5, 1);
    const [node] = nodesOf(open.program(x, f64(9)), record);
    expect(node?.attrs).toMatchObject({ carries: 2, checkpoints: 3 });
    for (const turns of [0, 1, 50]) {
      expect([...open(x, f64(turns)).data()]).toEqual([...bounded(x, f64(turns)).data()]);
    }
  });

  it("is told apart where states begin with one value", () => {
    const loss = (x: Tensor, turns: Tensor, options: WhileOptions): Tensor => {
      const { a, b } = whileLoop<{ readonly a: Tensor; readonly b: Tensor; readonly left: Tensor }>(
        ({ left }) => left.greater(0),
        ({ a, b, left }) => ({ a: b.mul(0.9), b: a.sin().add(b), left: left.sub(1) }),
        { a: x, b: x, left: turns },
        options,
      );
      return a.square().add(b).sum();
    };
    const gradient = (options: WhileOptions) =>
      compile((x: Tensor, turns: Tensor) => grad((y: Tensor) => loss(y, turns, options))(x));
    const x = draw([4], 6, 1);
    const [open, bounded] = [gradient({ snapshots: 2 }), gradient({ maxSteps: 100 })];
    for (const turns of [0, 1, 30]) {
      expect([...open(x, f64(turns)).data()]).toEqual([...bounded(x, f64(turns)).data()]);
    }
  });
});

describe("loops without a bound in loops", () => {
  const inner = (s: Tensor, x: Tensor, options: WhileOptions): Tensor =>
    whileLoop(
      (c: Tensor) => c.square().sum().greater(0.2),
      (c: Tensor) => c.mul(x.add(0.8)).tanh(),
      s,
      options,
    );
  const outer =
    (options: WhileOptions) =>
    ({ h, xs }: Params): Tensor =>
      scan<Tensor, Tensor, Tensor>(
        (s, x) => {
          const c = inner(s, x, options).add(x.mul(4));
          return [c, c.square().sum()];
        },
        h as Tensor,
        xs as Tensor,
      )[1].sum();
  const p: Params = { h: draw([8], 1, 1), xs: draw([20, 8], 2, 0.15) };
  const of = (options: WhileOptions, planning: PlanningOptions = {}) =>
    compile((q: Params) => grad(outer(options))(q) as Params, { validate: true, ...planning });

  it("keep every bit at every budget", () => {
    const stored = of({ maxSteps: 200 });
    const expected = bitsOf(stored(p));
    const plain = of({});
    expect(bitsOf(plain(p))).toEqual(expected);
    const { arenaBytes } = plain.program(p);
    const least = of({}, { memory: "min" }).program(p).arenaBytes;
    expect(least).toBeLessThan(arenaBytes);
    for (const memory of [arenaBytes * 4, Math.ceil((arenaBytes + least) / 2), least]) {
      const compiled = of({}, { memory });
      expect(compiled.program(p).arenaBytes).toBeLessThanOrEqual(memory);
      expect(bitsOf(compiled(p)), `${memory} bytes`).toEqual(expected);
    }
  });

  it("have second derivatives at a budget", () => {
    const cube = (x: Tensor): Tensor =>
      whileLoop<State>(
        ({ left }) => left.greater(0),
        ({ s, left }) => ({ s: s.mul(x), left: left.sub(1) }),
        { s: f64(1), left: f64(5) },
      ).s;
    const twice = (y: Tensor): Tensor => grad((x: Tensor) => grad(cube)(x))(y);
    expect(compile(twice, { memory: "4kB" })(f64(1.5)).item()).toBeCloseTo(20 * 1.5 ** 3, 10);
    const threeDeep = (x: Tensor): Tensor =>
      forLoop(3, x, (_, a) => forLoop(2, a, (_, b) => inner(b, x, {}).add(0.5).mul(1.1)));
    const slope = compile((x: Tensor) => grad((y: Tensor) => threeDeep(y).sum())(x), { memory: "min" })(
      draw([8], 3, 0.2),
    );
    const bounded = (x: Tensor): Tensor =>
      forLoop(3, x, (_, a) => forLoop(2, a, (_, b) => inner(b, x, { maxSteps: 300 }).add(0.5).mul(1.1)));
    const same = compile((x: Tensor) => grad((y: Tensor) => bounded(y).sum())(x))(draw([8], 3, 0.2));
    expect([...slope.data()]).toEqual([...same.data()]);
  });
});

describe("derivatives of higher order of a loop without a bound", () => {
  const power = (x: Tensor, turns: Tensor): Tensor =>
    whileLoop<State>(
      ({ left }) => left.greater(0),
      ({ s, left }) => ({ s: s.mul(x), left: left.sub(1) }),
      { s: f64(1), left: turns },
    ).s;
  const first = (x: Tensor, n: Tensor): Tensor => grad((y: Tensor) => power(y, n))(x);
  const second = (x: Tensor, n: Tensor): Tensor => grad((y: Tensor) => first(y, n))(x);
  const third = (x: Tensor, n: Tensor): Tensor => grad((y: Tensor) => second(y, n))(x);

  it("are those of the power that it computes", () => {
    const x = f64(1.01);
    for (const n of [0, 1, 2, 5, 300]) {
      const exact = (order: number): number =>
        Array.from({ length: order }, (_, k) => n - k).reduce((a, b) => a * b, 1) * 1.01 ** (n - order);
      for (const [order, of] of [
        [1, first],
        [2, second],
        [3, third],
      ] as const) {
        const made = compile(of)(x, f64(n)).item();
        expect(Math.abs(made - exact(order)), `order ${order}, ${n} turns`).toBeLessThanOrEqual(
          1e-10 * Math.abs(exact(order)),
        );
      }
    }
  });

  it("are loops one after the other and none in another: their turns are a few times the loop's", () => {
    for (const of of [first, second, third]) {
      const info = compile(of).program(f64(1), f64(1));
      const loops = [...allNodes(info.graph)].filter(({ op }) => op.lower.kind === "control");
      const inner = loops.flatMap(({ regions }) => regions.flatMap((region) => [...allNodes(region)]));
      expect(loops.length).toBeGreaterThan(1);
      expect(inner.filter(({ op }) => op.lower.kind === "control")).toEqual([]);
    }
  });
});
