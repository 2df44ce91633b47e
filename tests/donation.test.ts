/**
 * @file Donated arguments: state that stays in a program's arena from call to call. Whatever is passed, in whatever order,
 * results are those of the same function without donation; what was given up says so when it is read; everything else
 * stays readable.
 */
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { type Compiled, compile, grad, random, type Tensor, tensor, valueAndGrad } from "../src/api/index.ts";
import { linear } from "../src/nn/linear.ts";
import { adam } from "../src/optim/adam.ts";

const row = (...values: number[]): Tensor => tensor(values);

/** State of several types and shapes, nested. */
interface State {
  readonly layers: readonly { readonly w: Tensor; readonly b: Tensor }[];
  readonly step: Tensor;
}

const inputs = random.normal(random.key(1), [8, 5]);
const targets = random.normal(random.key(2), [8, 3]);

function initial(): State {
  const [a, b] = random.split(random.key(3));
  return {
    layers: [
      { w: random.normal(a, [5, 7], { std: 0.3 }), b: tensor(new Float32Array(7)) },
      { w: random.normal(b, [7, 3], { std: 0.3 }), b: tensor(new Float32Array(3)) },
    ],
    step: tensor(0, { dtype: "i32" }),
  };
}

function loss(layers: State["layers"], x: Tensor, y: Tensor): Tensor {
  const [first, second] = layers as [State["layers"][0], State["layers"][0]];
  return x.matmul(first.w).add(first.b).tanh().matmul(second.w).add(second.b).sub(y).square().mean();
}

/** One step of gradient descent. */
function train(state: State, x: Tensor, y: Tensor): readonly [State, Tensor] {
  const [value, grads] = valueAndGrad(loss)(state.layers, x, y);
  const layers = state.layers.map(({ w, b }, i) => ({
    w: w.sub(grads[i]!.w.mul(0.1)),
    b: b.sub(grads[i]!.b.mul(0.1)),
  }));
  return [{ layers, step: state.step.add(1) }, value];
}

const leaves = ({ layers, step }: State): readonly Tensor[] => [...layers.flatMap(({ w, b }) => [w, b]), step];
const values = (state: State): readonly number[][] => leaves(state).map((x) => [...x.data()]);

describe("a training step with its state donated", () => {
  test("gives, a hundred times over, the bits of the same step without donation", () => {
    const plain = compile(train);
    const donating = compile(train, { donate: [0], validate: true });
    let [a, b] = [initial(), initial()];
    for (let i = 0; i < 100; i++) {
      const [next, value] = plain(a, inputs, targets);
      const [nextToo, valueToo] = donating(b, inputs, targets);
      expect(valueToo.item()).toBe(value.item());
      [a, b] = [next, nextToo];
    }
    expect(values(b)).toEqual(values(a));
    expect(b.step.item()).toBe(100);
  });

  test("keeps its state in one place: it is persistent, and no copy is left at the end", () => {
    const donating = compile(train, { donate: [0] });
    const { plan, persistentBytes } = donating.program(initial(), inputs, targets);
    expect(plan.copies).toEqual([]);
    expect(persistentBytes).toBe(4 * (5 * 7 + 7 + 7 * 3 + 3 + 1));
    const slots = plan.program.params.slice(0, 5).map((param) => plan.bufferOf.get(param));
    expect(plan.resultBuffers.slice(0, 5)).toEqual(slots);
  });

  test("leaves what was given up unreadable, and says who took it", () => {
    const donating = compile(train, { donate: [0], name: "step" });
    const [first] = donating(initial(), inputs, targets);
    const [second] = donating(first, inputs, targets);
    for (const x of leaves(first)) {
      expect(() => x.data()).toThrow(/DonatedTensor: this (f32|i32)\[.*\] was donated to step/);
      expect(() => x.add(x)).toThrow("DonatedTensor");
    }
    expect(() => donating(first, inputs, targets)).toThrow("DonatedTensor");
    // and the refused call has done nothing
    expect(second.step.item()).toBe(2);
    expect(donating(second, inputs, targets)[0].step.item()).toBe(3);
  });

  test("takes initial values away as well, computed already or not, at the first call and in the same words", () => {
    const donating = compile(train, { donate: [0], name: "step" });
    const state = initial();
    // of the two layers, the elements of one are read before
    values({ ...state, layers: state.layers.slice(1) });
    const [once] = donating(state, inputs, targets);
    const onceValues = values(once);
    for (const x of leaves(state)) {
      expect(() => x.data()).toThrow(/DonatedTensor: this (f32|i32)\[.*\] was donated to step at donation\.test\.ts/);
      expect(() => x.add(x)).toThrow("DonatedTensor");
    }
    expect(() => donating(state, inputs, targets)).toThrow("DonatedTensor");
    expect(values(once)).toEqual(onceValues);
    // what is not donated stays
    expect(inputs.data().length).toBe(40);
  });

  test("of which arrays that the user made are not written to", () => {
    const array = Float32Array.of(1, 2);
    const twice = compile((s: Tensor) => s.mul(2), { donate: [0] });
    expect(twice(tensor(array)).toArray()).toEqual([2, 4]);
    expect([...array]).toEqual([1, 2]);
  });
});

describe("several states of one program", () => {
  let add: Compiled<[Tensor, Tensor], Tensor>;

  beforeEach(() => {
    add = compile((s: Tensor, x: Tensor) => s.add(x), { donate: [0] });
  });

  test("move out of the way of each other and stay readable", () => {
    const a = add(row(1, 2), row(10, 10));
    const b = add(row(3, 4), row(10, 10));
    expect(a.toArray()).toEqual([11, 12]);
    expect(b.toArray()).toEqual([13, 14]);
    const a2 = add(a, row(1, 1));
    expect(b.toArray()).toEqual([13, 14]);
    expect(a2.toArray()).toEqual([12, 13]);
    // moved out of the arena or not, it was given up
    expect(() => a.toArray()).toThrow("DonatedTensor");
    expect(add(b, a2).toArray()).toEqual([25, 27]);
  });

  test("take turns for many steps", () => {
    let [a, b] = [row(0, 0), row(100, 200)];
    for (let i = 0; i < 20; i++) {
      a = add(a, row(1, 2));
      b = add(b, row(3, 4));
    }
    expect([a.toArray(), b.toArray()]).toEqual([
      [20, 40],
      [160, 280],
    ]);
  });

  test("serve as plain arguments of the same program", () => {
    const a = add(row(1, 2), row(10, 10));
    const b = add(row(5, 5), a);
    expect([a.toArray(), b.toArray()]).toEqual([
      [11, 12],
      [16, 17],
    ]);
    // donated and read in one call
    const c = add(b, b);
    expect(c.toArray()).toEqual([32, 34]);
    expect(() => b.item()).toThrow("DonatedTensor");
  });

  test("serve as arguments of other programs and of single operations", () => {
    const a = add(row(1, 2), row(10, 10));
    const other = compile((x: Tensor, y: Tensor) => x.mul(y).sum());
    expect(other(a, a).item()).toBe(265);
    expect(a.square().toArray()).toEqual([121, 144]);
    expect(grad((x: Tensor) => x.square().sum())(a).toArray()).toEqual([22, 24]);
    expect(add(a, row(1, 1)).toArray()).toEqual([12, 13]);
    expect(() => other(a, a)).toThrow("DonatedTensor");
  });

  test("move from one program's arena to another's", () => {
    const twice = compile((s: Tensor) => s.mul(2), { donate: [0], name: "twice" });
    let state = row(1, 2);
    for (let i = 0; i < 5; i++) {
      const before = state;
      state = twice(add(state, row(1, 1)));
      if (i > 0) expect(() => before.data()).toThrow("DonatedTensor");
    }
    expect(state.toArray()).toEqual([94, 126]);
  });
});

describe("arguments that are", () => {
  test("the same tensor twice", () => {
    const f = compile((a: Tensor, b: Tensor) => [a.add(b), a.mul(b)] as const, { donate: [0, 1] });
    const [sum, product] = f(row(3, 4), row(5, 6));
    expect([sum.toArray(), product.toArray()]).toEqual([
      [8, 10],
      [15, 24],
    ]);
    const [sum2, product2] = f(sum, sum);
    expect([sum2.toArray(), product2.toArray()]).toEqual([
      [16, 20],
      [64, 100],
    ]);
    // `product` kept its elements, `sum` did not
    expect(product.toArray()).toEqual([15, 24]);
    expect(() => sum.data()).toThrow("DonatedTensor");
    const literal = row(1, 1);
    expect(f(literal, literal)[0].toArray()).toEqual([2, 2]);
  });

  test("exchanged", () => {
    const f = compile((a: Tensor, b: Tensor) => [a.add(1), b.mul(2)] as const, { donate: [0, 1] });
    let [a, b] = f(row(0, 0), row(10, 20));
    [a, b] = f(b, a);
    expect([a.toArray(), b.toArray()]).toEqual([
      [21, 41],
      [2, 2],
    ]);
  });

  test("returned as they are, exchanged or twice", () => {
    const swap = compile((a: Tensor, b: Tensor) => [b, a] as const, { donate: [0, 1], validate: true });
    let [a, b] = swap(row(1, 2), row(3, 4));
    expect([a.toArray(), b.toArray()]).toEqual([
      [3, 4],
      [1, 2],
    ]);
    [a, b] = swap(a, b);
    expect([a.toArray(), b.toArray()]).toEqual([
      [1, 2],
      [3, 4],
    ]);
    const same = compile((x: Tensor) => x, { donate: [0] });
    let x = same(row(7, 8));
    for (let i = 0; i < 3; i++) x = same(x);
    expect(x.toArray()).toEqual([7, 8]);
    const copies = compile((s: Tensor, _t: Tensor) => [s, s, s.add(1)] as const, { donate: [0, 1], validate: true });
    let state = copies(row(1, 2), row(5, 5));
    state = copies(state[0], state[1]);
    expect(state.map((y) => y.toArray())).toEqual([
      [1, 2],
      [1, 2],
      [2, 3],
    ]);
  });

  test("not returned", () => {
    const f = compile((a: Tensor, b: Tensor) => a.mul(b).sum(), { donate: [0, 1] });
    expect(f(row(1, 2), row(3, 4)).item()).toBe(11);
    const make = compile((s: Tensor) => s.add(1), { donate: [0] });
    const resident = make(row(0, 1));
    expect(f(resident, row(3, 4)).item()).toBe(11);
    expect(() => resident.data()).toThrow("DonatedTensor");
    expect(make(row(0, 1)).toArray()).toEqual([1, 2]);
  });

  test("returned although they were not donated", () => {
    const f = compile((a: Tensor) => ({ a, twice: a.add(a) }));
    const a = row(1, 2);
    const made = f(a);
    expect([made.a.toArray(), made.twice.toArray()]).toEqual([
      [1, 2],
      [2, 4],
    ]);
    expect(f(row(5, 6)).a.toArray()).toEqual([5, 6]);
    expect(made.a.toArray()).toEqual([1, 2]);
  });

  test("empty, scalar, integer and bool", () => {
    const f = compile(
      (s: { e: Tensor; n: Tensor; m: Tensor }) => ({ e: s.e.mul(2), n: s.n.add(1), m: s.m.logicalNot() }),
      { donate: [0] },
    );
    let s = { e: tensor(new Float32Array(0)), n: tensor(0, { dtype: "i32" }), m: tensor([true, false, true]) };
    for (let i = 0; i < 3; i++) s = f(s);
    expect([s.e.toArray(), s.n.item(), s.m.toArray()]).toEqual([[], 3, [false, true, false]]);
  });
});

describe("captures", () => {
  test("are written once, whatever becomes of the tensor", () => {
    const scale = random.normal(random.key(7), [20]);
    const f = compile((x: Tensor) => x.mul(scale));
    const x = random.normal(random.key(8), [20]);
    const expected = x.mul(scale).toArray();
    for (let i = 0; i < 3; i++) expect(f(x).toArray()).toEqual(expected);
  });

  test("may be resident, and outlive their donation", () => {
    const add = compile((s: Tensor, x: Tensor) => s.add(x), { donate: [0] });
    const ramp = tensor(Float32Array.from({ length: 20 }, (_, i) => i));
    const state = add(tensor(ramp.data().slice()), ramp);
    const f = compile((x: Tensor) => x.add(state));
    expect(f(ramp).data()[3]).toBe(9);
    const next = add(state, ramp);
    expect(() => state.data()).toThrow("DonatedTensor");
    // the function has what it was given, and its other programs find it in the same arena
    expect(f(ramp).data()[3]).toBe(9);
    expect(next.data()[3]).toBe(9);
    expect(f(ramp.slice([[0, 20]]).reshape([20, 1])).shape).toEqual([20, 20]);
    expect(() => compile((x: Tensor) => x.add(state))(ramp)).toThrow("DonatedTensor");
  });

  test("may be an array of the user's, and outlive its donation", () => {
    const ramp = (from: number): Tensor => tensor(Float32Array.from({ length: 20 }, (_, i) => from + i));
    const [fixed, lazy] = [ramp(5), random.normal(random.key(3), [20])];
    const third = lazy.data()[3] as number;
    const f = compile((x: Tensor) => x.mul(1).add(fixed).add(lazy), { donate: [0] });
    expect(f(ramp(0)).data()[3]).toBeCloseTo(11 + third, 5);
    const take = compile((s: Tensor) => s.add(1), { donate: [0] });
    take(fixed);
    take(lazy);
    expect(() => fixed.data()).toThrow("DonatedTensor");
    expect(f(ramp(0)).data()[3]).toBeCloseTo(11 + third, 5);
    // another shape, whose program has them elsewhere
    expect(f(tensor(new Float32Array(60), { shape: [3, 20] })).data()[3]).toBeCloseTo(8 + third, 5);
    expect(f(ramp(0)).data()[3]).toBeCloseTo(11 + third, 5);
  });

  test("may be the state that is donated", () => {
    const ramp = tensor(Float32Array.from({ length: 20 }, (_, i) => i));
    const first = compile((s: Tensor) => s.add(1), { donate: [0] })(ramp);
    const f = compile((s: Tensor) => s.add(first), { donate: [0] });
    const second = f(first);
    expect(second.data()[3]).toBe(8);
    expect(f(second).data()[3]).toBe(12);
  });

  test("of small uniform tensors are constants of the program", () => {
    const two = row(2, 2);
    const { graph } = compile((x: Tensor) => x.mul(two)).program(row(1, 2));
    expect(graph.params.length).toBe(1);
  });
});

describe("plans", () => {
  test("are made for each structure, shape and element type, and all stay usable", () => {
    let traces = 0;
    const f = compile(
      (s: Tensor, x: Tensor) => {
        traces++;
        return s.add(x);
      },
      { donate: [0] },
    );
    let [a, b] = [row(1, 2), row(1, 2, 3)];
    let c = tensor([1, 2], { dtype: "f64" });
    for (let i = 0; i < 4; i++) {
      a = f(a, row(1, 1));
      b = f(b, row(1, 1, 1));
      c = f(c, tensor([0.5, 0.5], { dtype: "f64" }));
    }
    expect([a.toArray(), b.toArray(), c.toArray(), traces]).toEqual([[5, 6], [5, 6, 7], [3, 4], 3]);
  });

  test("depend on constants among the arguments: booleans, and numbers where they are static", () => {
    let traces = 0;
    const f = compile(
      (x: Tensor, options: { rate: number; on: boolean }) => {
        traces++;
        return options.on ? x.mul(options.rate) : x;
      },
      { static: [1] },
    );
    expect(f(row(1, 2), { rate: 2, on: true }).toArray()).toEqual([2, 4]);
    expect(f(row(1, 2), { rate: 3, on: true }).toArray()).toEqual([3, 6]);
    expect(f(row(1, 2), { rate: 3, on: false }).toArray()).toEqual([1, 2]);
    expect(f(row(5, 6), { rate: 2, on: true }).toArray()).toEqual([10, 12]);
    expect(traces).toBe(3);
  });

  test("of a compiled function inside another trace are the other's", () => {
    const inner = compile((s: Tensor, x: Tensor) => s.add(x.square()), { donate: [0] });
    const outer = compile((s: Tensor, x: Tensor) => inner(inner(s, x), x).mul(2));
    const s = row(1, 2);
    expect(outer(s, row(1, 2)).toArray()).toEqual([6, 20]);
    expect(s.toArray()).toEqual([1, 2]);
    expect(grad((x: Tensor) => inner(s, x).sum())(row(3, 4)).toArray()).toEqual([6, 8]);
    expect(compile(grad((x: Tensor) => inner(s, x).sum()))(row(3, 4)).toArray()).toEqual([6, 8]);
  });

  test("do not let an error in one call spoil the next", () => {
    const f = compile((s: Tensor, x: Tensor) => s.add(x), { donate: [0] });
    const state = f(row(1, 2), row(1, 1));
    expect(() => f(state, row(1, 2, 3))).toThrow("ShapeMismatch");
    expect(f(state, row(1, 1)).toArray()).toEqual([3, 4]);
  });
});

/** A tensor and what it must hold; `given` once it was passed to be donated, after which it may refuse to be read. */
interface Held {
  readonly tensor: Tensor;
  readonly values: readonly number[];
  given: boolean;
}

describe("any sequence of calls", () => {
  const both = (f: (a: number, b: number) => number) => (a: readonly number[], b: readonly number[]) =>
    a.map((v, i) => Math.fround(f(v, b[i]!)));
  const sum = both((a, b) => a + b);
  const difference = both((a, b) => a - b);

  /** Programs over two vectors, which arguments they take, and what they give. */
  const makePrograms = () => [
    { run: compile((a: Tensor, b: Tensor) => [a.add(b)], { donate: [0] }), donate: [0], model: [sum] },
    {
      run: compile((a: Tensor, b: Tensor) => [b, a.sub(b)], { donate: [0, 1] }),
      donate: [0, 1],
      model: [(_: readonly number[], b: readonly number[]) => b, difference],
    },
    {
      run: compile((a: Tensor, b: Tensor) => [a.sub(b), a.add(b)], { donate: [1] }),
      donate: [1],
      model: [difference, sum],
    },
    { run: compile((a: Tensor, b: Tensor) => [a.add(b)]), donate: [], model: [sum] },
    { run: (a: Tensor, b: Tensor) => [a.sub(b)], donate: [], model: [difference] },
  ];

  const readable = ({ tensor: x }: Held): boolean => {
    try {
      x.data();
      return true;
    } catch (error) {
      expect(String(error)).toContain("DonatedTensor");
      return false;
    }
  };

  const call = fc.tuple(fc.nat(4), fc.nat(), fc.nat());

  test("gives the right numbers, and only what was donated is ever lost", () => {
    fc.assert(
      fc.property(fc.array(call, { maxLength: 30 }), (calls) => {
        const programs = makePrograms();
        const held: Held[] = [1, 2, 3].map((n) => {
          const list = [n, 10 * n, -n];
          return { tensor: tensor(list), values: list, given: false };
        });
        for (const [which, i, j] of calls) {
          const { run, donate, model } = programs[which]!;
          const live = held.filter(readable);
          const args = [live[i % live.length]!, live[j % live.length]!] as const;
          const made = run(args[0].tensor, args[1].tensor);
          for (const position of donate) args[position as 0 | 1].given = true;
          made.forEach((x, r) => {
            const expected = model[r]!(args[0].values, args[1].values);
            held.push({ tensor: x, values: expected, given: false });
          });
          for (const item of held) {
            if (readable(item)) expect([...item.tensor.data()]).toEqual(item.values);
            else expect(item.given).toBe(true);
          }
        }
      }),
      { numRuns: 100, seed: 4 },
    );
  });
});

describe("state made by layers and optimizers", () => {
  const [features, mebibyte] = [512, 2 ** 20];
  const layer = linear(features, features);
  const optimizer = adam();
  const first = () => optimizer.init(layer.init(1));
  const x = random.normal(random.key(4), [2, features]);
  const step = compile(
    (state: ReturnType<typeof first>) => {
      const [value, grads] = valueAndGrad((p: typeof state.params) => layer.apply(p, x).square().mean())(state.params);
      return [optimizer.update(state, grads), value] as const;
    },
    { donate: [0] },
  );

  test("is computed where the program keeps it, and never twice in memory", () => {
    step.program(first());
    const before = process.memoryUsage().arrayBuffers;
    const given = first();
    const [, value] = step(given);
    expect(value.item()).toBeGreaterThan(0);
    // three matrices of one MiB each are in the arena alone
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(mebibyte / 2);
  });

  test("has the same values whether it is read before it is given or not", () => {
    const [unread, read] = [first(), first()];
    const before = read.params.w.data();
    const [a, b] = [unread, read].map((given) => step(given)[0].params.w.data());
    const same = (u?: ArrayLike<number>, v?: ArrayLike<number>) => Array.from(u ?? []).every((z, i) => z === v?.[i]);
    expect(same(a, b)).toBe(true);
    expect(same(before, first().params.w.data())).toBe(true);
    // and what was read before stays with those who read it
    expect(before.length).toBe(features * features);
  });
});
