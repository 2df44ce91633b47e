/** @file Updates of the rows that a step has looked up: the bits of the dense update, what waits, and what is refused. */
import { describe, expect, it } from "vitest";
import { compile, grad, plan, random, type Tensor, tensor, valueAndGrad } from "../api/index.ts";
import { embeddingBag } from "../nn/index.ts";
import * as optim from "./index.ts";

const [ROWS, WIDTH] = [64, 5];
const table = random.normal(random.key(1), [ROWS, WIDTH]);
const i32 = (values: readonly number[], shape: readonly number[] = [values.length]): Tensor =>
  tensor(Int32Array.from(values)).reshape(shape);

/** Rows that repeat within a look-up and between two, and numbers of no row. */
const [ONE, TWO] = [i32([3, 7, 3, 63, -1, 3]), i32([7, 0, 64, 7], [2, 2])];

type Params = { readonly table: Tensor; readonly gain: Tensor };
const params: Params = { table, gain: tensor(1.5) };

function loss({ table: t, gain }: Params, one: Tensor, two: Tensor): Tensor {
  const inside = (ids: Tensor): Tensor => ids.maximum(0).minimum(ROWS - 1);
  const first = t.take(inside(one)).mul(gain).tanh();
  return first
    .square()
    .sum()
    .add(t.take(inside(two)).exp().sum());
}

type State = ReturnType<optim.Optimizer["init"]>;

/** A step whose gradient is as `through` makes it. */
function steps(optimizer: optim.Optimizer, through: (g: Params) => Params, count = 3): State {
  const step = compile((state: State, one: Tensor, two: Tensor) => {
    const [, g] = valueAndGrad(loss)(state.params as Params, one, two);
    return optimizer.update(state as never, through(g) as never) as State;
  });
  let state = optimizer.init(params) as State;
  for (let i = 0; i < count; i++) state = step(state as never, ONE as never, TWO as never) as State;
  return state;
}

const sparse = (g: Params): Params => g;
/** The same numbers, not seen to be made of look-ups. */
const dense = (g: Params): Params => ({ ...g, table: g.table.mul(1) });
const bits = (state: State): unknown => JSON.parse(JSON.stringify(state, (_, v) => (v?.data ? [...v.data()] : v)));

const isTable = (path: string): boolean => path === "params.table";

/** The step as one function, on a larger table. */
const large = (optimizer: optim.Optimizer, through: (g: Params) => Params): number => {
  const state = optimizer.init({ table: random.normal(random.key(1), [4096, 16]), gain: tensor(1) }) as State;
  const step = (before: State, one: Tensor, two: Tensor): State =>
    optimizer.update(before as never, through(grad(loss)(before.params as Params, one, two)) as never) as State;
  const planned = plan(step as (...args: never[]) => unknown, { donate: [0] });
  return planned(state as never, ONE as never, TWO as never).arenaBytes;
};

describe("rows that were looked up", () => {
  for (const [name, optimizer] of [
    ["sgd", optim.sgd({ lr: 0.1 })],
    ["adagrad", optim.adagrad({ lr: 0.1 })],
    ["adagrad with a rate that decays", optim.adagrad({ lr: optim.exponential(0.1, 0.9), lrDecay: 0.1 })],
  ] as const) {
    it(`are updated alone by ${name}, with the bits of updating all`, () => {
      expect(bits(steps(optimizer, sparse))).toEqual(bits(steps(optimizer, dense)));
    });
  }

  it("are updated in place, and no gradient of the table is made", () => {
    const bytes = 4096 * 16 * 4;
    expect(large(optim.sgd(), sparse)).toBeLessThan(1.1 * bytes);
    expect(large(optim.sgd(), dense)).toBeGreaterThan(2 * bytes);
    expect(large(optim.adagrad(), sparse)).toBeLessThan(2.1 * bytes);
    expect(large(optim.adam({ lazy: isTable }), sparse)).toBeLessThan(3.1 * bytes);
  });

  for (const [name, lazy, plain] of [
    ["adam", optim.adam({ lazy: isTable }), optim.adam()],
    ["adam with a penalty", optim.adam({ lazy: isTable, weightDecay: 0.1, decays: (path) => !isTable(path) }), null],
    ["rmsprop", optim.rmsprop({ lazy: isTable }), optim.rmsprop()],
  ] as const) {
    it(`are those of ${name} in its first step, and others wait in later ones`, () => {
      if (plain) expect(bits(steps(lazy, sparse, 1))).toEqual(bits(steps(plain, dense, 1)));
      const other = compile((state: State, one: Tensor, two: Tensor) => {
        const g = grad(loss)(state.params as Params, one, two);
        return lazy.update(state as never, g as never) as State;
      });
      const before = steps(lazy, sparse, 2);
      const after = other(before as never, i32([5, 5]) as never, i32([6]) as never) as State;
      const rows = (state: State, of: "params" | "m" | "v" | "squares"): readonly (readonly number[])[] => {
        const tree = of === "params" ? state.params : state.slots[of];
        return (tree as Params).table.toArray() as number[][];
      };
      for (const of of name === "rmsprop" ? (["params", "squares"] as const) : (["params", "m", "v"] as const)) {
        rows(after, of).forEach((row, r) => {
          const isSame = JSON.stringify(row) === JSON.stringify(rows(before, of)[r]);
          expect(isSame, `${of} of row ${r}`).toBe(r !== 5 && r !== 6);
        });
      }
    });
  }

  it("decay alone where adamw is lazy", () => {
    const state = steps(optim.adamw({ lr: 0.1, lazy: isTable, weightDecay: 0.5 }), sparse, 1);
    const after = (state.params as Params).table.toArray() as number[][];
    const given = table.toArray() as number[][];
    expect(after[1]).toEqual(given[1]);
    expect(Math.abs(after[3]![0]! - 0.95 * given[3]![0]!)).toBeLessThan(0.11);
  });

  it("may be those of bags, and of one look-up of one row", () => {
    const bag = embeddingBag(500, 8, { mode: "sum" });
    const own = { table: random.normal(random.key(4), [500, 8]) };
    const optimizer = optim.sgd({ lr: 0.5 });
    const stepOf = (through: (g: Tensor) => Tensor) =>
      compile((p: Tensor, ids: Tensor) => {
        const lossOf = (weight: Tensor): Tensor =>
          bag
            .apply({ ...own, weight } as never, ids)
            .square()
            .sum();
        return optimizer.update(optimizer.init({ p }), { p: through(grad(lossOf)(p)) }).params.p;
      });
    for (const ids of [i32([4, 9, 4, 4, 17, 30], [2, 3]), i32([499], [1, 1])]) {
      const [alone, all] = [stepOf((g) => g), stepOf((g) => g.mul(1))].map((step) => step(own.table, ids).data());
      expect(alone).toEqual(all);
    }
  });

  it("are none for numbers of no row", () => {
    const optimizer = optim.sgd({ lr: 0.5 });
    const step = compile((p: Tensor, ids: Tensor) => {
      const g = grad((t: Tensor) => t.take(ids).mul(3).sum())(p);
      return optimizer.update(optimizer.init({ p }), { p: g }).params.p;
    });
    const changed = step(table, i32([3, -1, ROWS, 3]))
      .sub(table)
      .abs()
      .sum(1)
      .toArray() as number[];
    expect(changed.flatMap((by, row) => (by > 0 ? [row] : []))).toEqual([3]);
  });

  it("are asked for by lazy optimizers: what is not made by look-ups is refused", () => {
    const lazy = optim.adam({ lazy: isTable });
    const state = lazy.init(params);
    const eager = () => lazy.update(state, grad(loss)(params, ONE, TWO));
    expect(eager).toThrow("adam: params.table is lazy, and its gradient is not made by look-ups of its rows");
    expect(() => steps(lazy, dense)).toThrow("clip no gradients");
    expect(() => optim.sgd({ momentum: 0.9, lazy: isTable })).toThrow("sgd: lazy with momentum");
    expect(() => optim.rmsprop({ centered: true, lazy: isTable })).toThrow("rmsprop: lazy with centered");
    expect(() => optim.lamb({ lazy: isTable } as never)).toThrow("lazy");
  });
});
