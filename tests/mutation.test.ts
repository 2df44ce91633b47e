/**
 * @file Tensors that change, inside of traced functions: random programs of views, reads and changes against a machine
 * that has one store for each tensor; forward, backward, with and without donation. Then plans: what is written in place,
 * and when a copy is due.
 */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  checkpoint,
  compile,
  concat,
  customVjp,
  dropout,
  einsum,
  grad,
  jvp,
  ones,
  random,
  type Tensor,
  tensor,
  vjp,
  zeros,
} from "../src/api/index.ts";
import { loadGraph } from "../src/api/load-graph.ts";
import { hostRandom } from "../src/base/random.ts";
import { pipeline } from "../src/passes/pipeline.ts";
import { validate } from "../src/plan/validate.ts";
import type { Executable } from "../src/runtime/executable.ts";
import { traceFunction } from "../src/trace/function.ts";
import {
  elements,
  type Machine,
  placesOf,
  plain,
  programs,
  runProgram,
  type Step,
} from "./support/mutation-programs.ts";

const SHAPES = [
  [2, 3, 4],
  [3, 4],
] as const;

const draw = (seed: number, n: number): Float64Array => {
  const numbers = hostRandom(seed);
  return Float64Array.from({ length: n }, () => numbers.next() * 2 - 1);
};
const dataOf = (seed: number): readonly Float64Array[] =>
  SHAPES.map((shape, i) => draw(seed + i, shape.length === 3 ? 24 : 12));
const tensorsOf = (data: readonly Float64Array[]): [Tensor, Tensor] =>
  data.map((values, i) => tensor(values, { shape: SHAPES[i]! })) as [Tensor, Tensor];

const i32 = (values: number | number[]): Tensor => tensor(values, { dtype: "i32" });

const traced: Machine<Tensor> = {
  shape: (x) => x.shape,
  reshape: (x, shape) => x.reshape(shape),
  transpose: (x, perm) => x.transpose(perm),
  slice: (x, ranges) => x.slice(ranges),
  flip: (x, axes) => x.flip(axes),
  copy: (x) => x.copy(),
  sin: (x) => x.sin(),
  mul: (x, y) => x.mul(y),
  add: (x, y) => x.add(y),
  sum: (x) => x.sum(),
  setAt: (x, place, value) => {
    if (typeof place === "object" && "row" in place) x.setAt(i32(place.row), value);
    else if (typeof place === "number" || Array.isArray(place)) x.setAt(place as number, value);
  },
  addAt: (x, place, value) => {
    if (typeof place === "number") x.addAt(place, value);
    else if ("row" in place) x.addAt(i32(place.row), value);
    else if ("rows" in place) x.addAt(i32([...place.rows]), value);
    else x.addAt(place, value);
  },
  assign: (x, value) => void x.assign(value),
  fill: (x, value) => void x.fill(value),
  inPlace: (x, how, y) => void x[`${how}InPlace`](y),
};

const program = (steps: readonly Step[]) => (x: Tensor, y: Tensor) => runProgram(traced, steps, [x, y]);

/** Loss and all tensors of the machine with stores. */
function expected(steps: readonly Step[], data: readonly Float64Array[]): { loss: number; tensors: number[][] } {
  const args = data.map((values, i) => placesOf(values, SHAPES[i]!));
  const { loss, tensors } = runProgram(plain, steps, args);
  return { loss: elements(loss)[0]!, tensors: tensors.map(elements) };
}

function expectClose(got: ArrayLike<number>, want: ArrayLike<number>, tolerance: number, what: string): void {
  expect(got.length, what).toBe(want.length);
  for (let e = 0; e < want.length; e++) {
    const scale = Math.max(1, Math.abs(want[e]!));
    if (!(Math.abs(got[e]! - want[e]!) <= tolerance * scale)) expect(got[e], `${what}, element ${e}`).toBe(want[e]);
  }
}

describe("random programs of views, reads and changes", () => {
  test("have the values of a machine with stores, with and without donation", () => {
    fc.assert(
      fc.property(programs(14), fc.nat({ max: 1000 }), (steps, seed) => {
        const data = dataOf(seed);
        const want = expected(steps, data);
        for (const donate of [[], [0], [0, 1]]) {
          const run = compile(program(steps), { donate, validate: true });
          // twice, in an arena that was used
          for (const time of ["first", "second"]) {
            const { loss, tensors } = run(...tensorsOf(data));
            expectClose(loss.data(), [want.loss], 1e-9, `loss of the ${time} run, donating ${donate}`);
            tensors.forEach((x, i) => {
              expectClose(x.data(), want.tensors[i]!, 1e-9, `tensor ${i} of the ${time} run, donating ${donate}`);
            });
          }
        }
      }),
      { seed: 11, numRuns: 50 },
    );
  });

  test("have the same bits fused, not fused, in place, not in place, and in a poisoned arena", () => {
    fc.assert(
      fc.property(programs(14), fc.nat({ max: 1000 }), (steps, seed) => {
        const data = dataOf(seed);
        const { graph, captures } = traceFunction(program(steps), tensorsOf(data));
        const inputs = [...data, ...captures.map((capture) => capture.tensor.data())];
        const bitsOf = (executable: Executable): unknown => {
          const { params, results, plan } = executable.placed;
          expect(validate(plan.program, plan)).toEqual([]);
          executable.poison();
          graph.params.forEach(({ type }, i) => {
            executable.write(type, params[i]!, inputs[i]!);
          });
          executable.run();
          return graph.results.map(({ type }, i) => executable.read(type, results[i]!));
        };
        const want = bitsOf(loadGraph(graph, { passes: pipeline }));
        expect(bitsOf(loadGraph(graph))).toEqual(want);
        const donated = new Map([[0, 1]]);
        expect(bitsOf(loadGraph(graph, { donated, persistent: new Set([0]) }))).toEqual(want);
        expect(bitsOf(loadGraph(graph, { donated, persistent: new Set([0]), passes: pipeline }))).toEqual(want);
      }),
      { seed: 12, numRuns: 25 },
    );
  });

  test("have the derivatives that differences give, in both modes and recomputed", () => {
    fc.assert(
      fc.property(programs(12), fc.nat({ max: 1000 }), (steps, seed) => {
        const data = dataOf(seed);
        const along = dataOf(seed + 5000);
        const h = 1e-5;
        const moved = (t: number): number =>
          expected(
            steps,
            data.map((values, i) => values.map((v, e) => v + t * along[i]![e]!)),
          ).loss;
        const want = (moved(h) - moved(-h)) / (2 * h);
        const dot = (grads: readonly Tensor[]): number =>
          grads.reduce((sum, g, i) => Array.from(g.data()).reduce((s, v, e) => s + v * along[i]![e]!, sum), 0);
        const loss = (x: Tensor, y: Tensor): Tensor => program(steps)(x, y).loss;
        const args = tensorsOf(data);
        expectClose([dot(grad(loss, { argnums: [0, 1] })(...args))], [want], 2e-6, "reverse");
        expectClose(jvp(loss, args, tensorsOf(along))[1].data(), [want], 2e-6, "forward");
        // arguments that were changed must be returned from it
        const again = checkpoint(program(steps));
        const twice = grad((x: Tensor, y: Tensor) => again(x, y).loss, { argnums: [0, 1] });
        expectClose([dot(compile(twice)(...args))], [want], 2e-6, "recomputed");
      }),
      { seed: 13, numRuns: 40 },
    );
  });
});

const row = (...values: number[]): Tensor => tensor(values);

describe("a change", () => {
  test("shows in every view of the tensor, made before or after, and in no copy", () => {
    const f = compile((x: Tensor) => {
      const [column, turned, old] = [x.slice([null, 0]), x.T, x.copy()];
      x.setAt(1, 7);
      turned.setAt([2, 0], -1);
      return [x, column, turned, old, x.reshape([-1])];
    });
    const [x, column, turned, old, flat] = f(
      tensor([
        [1, 2, 3],
        [4, 5, 6],
      ]),
    );
    expect(x!.toArray()).toEqual([
      [1, 2, -1],
      [7, 7, 7],
    ]);
    expect(column!.toArray()).toEqual([1, 7]);
    expect(turned!.toArray()).toEqual([
      [1, 7],
      [2, 7],
      [-1, 7],
    ]);
    expect(old!.toArray()).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    expect(flat!.toArray()).toEqual([1, 2, -1, 7, 7, 7]);
  });

  test("through overlapping views reads everything before it writes", () => {
    const f = compile(
      (x: Tensor) => {
        x.slice([[1, null]]).assign(x.slice([[0, -1]]));
        return x;
      },
      { donate: [0] },
    );
    expect(f(row(1, 2, 3, 4)).toArray()).toEqual([1, 1, 2, 3]);
    const sums = compile(
      (x: Tensor) => {
        const [low, high] = [x.slice([[0, -1]]), x.slice([[1, null]])];
        high.assign(low.mul(10).add(high));
        return x;
      },
      { donate: [0] },
    );
    expect(sums(row(1, 2, 3, 4)).toArray()).toEqual([1, 12, 23, 34]);
    const turn = compile((x: Tensor) => x.assign(x.T), { donate: [0] });
    expect(
      turn(
        tensor([
          [1, 2],
          [3, 4],
        ]),
      ).toArray(),
    ).toEqual([
      [1, 3],
      [2, 4],
    ]);
  });

  test("of a broadcast's base shows in the broadcast", () => {
    const f = compile((x: Tensor) => {
      const wide = x.broadcastTo([2, 2]);
      x.addInPlace(1);
      return [x, wide];
    });
    expect(f(row(1, 2))[1]!.toArray()).toEqual([
      [2, 3],
      [2, 3],
    ]);
  });

  test("of what any other operation made does not show in its operand", () => {
    const key = random.key(1);
    const makers: Record<string, (x: Tensor) => Tensor> = {
      cast: (x) => x.cast("f32"),
      pow: (x) => x.pow(1),
      pad: (x) => x.pad(0),
      tile: (x) => x.tile([1]),
      repeat: (x) => x.repeat(1),
      repeatTwice: (x) => x.repeat(2),
      dropout: (x) => dropout(x, 0, key),
      concat: (x) => concat([x]),
      einsum: (x) => einsum("i->i", x),
      sum: (x) => x.sum([]),
      add: (x) => x.add(0),
      clamp: (x) => x.clamp(-9, 9),
      stopGradient: (x) => x.stopGradient(),
      take: (x) => x.take(i32([0, 1])),
      dynamicSlice: (x) => x.dynamicSlice([0], [2]),
      copy: (x) => x.copy(),
    };
    for (const [name, make] of Object.entries(makers)) {
      const f = compile((x: Tensor) => [x, make(x).fill(9)]);
      expect(f(row(1, 2))[0]!.toArray(), name).toEqual([1, 2]);
    }
  });

  test("of an argument stays inside of grad, vjp, jvp and compiled functions", () => {
    const spoil = (x: Tensor): Tensor => x.mulInPlace(x).sum();
    const f = compile((x: Tensor) => {
      const [value, pull] = vjp(spoil, x);
      const before = [grad(spoil)(x), jvp(spoil, [x], [x])[1], value].map((t) => t.copy());
      const doubled = compile((v: Tensor) => v.mulInPlace(2))(x);
      x.fill(0);
      // the pullback is that of the x it was made for
      return [...before, pull(tensor(1))[0], doubled, x];
    });
    expect(f(row(1, 2)).map((t) => t.toArray())).toEqual([[2, 4], 10, 5, [2, 4], [2, 4], [0, 0]]);
  });

  test("of a closure's tensor between two uses is seen by the second alone", () => {
    const f = compile((x: Tensor) => {
      const scaled = (v: Tensor): Tensor => v.mul(x).sum();
      const first = grad(scaled)(x);
      x.addInPlace(1);
      return [first, grad(scaled)(x), x];
    });
    expect(f(row(1, 2)).map((t) => t.toArray())).toEqual([
      [1, 2],
      [2, 3],
      [2, 3],
    ]);
  });

  test("inside of a rule for derivatives is its own affair", () => {
    const f = customVjp((x: Tensor) => x.square(), {
      forward: (x) => [x.square().addInPlace(0), [x]] as const,
      backward: ([x], ct) => [ct.mulInPlace((x as Tensor).mul(2))],
    });
    expect(compile(grad((x: Tensor) => f(x).sum()))(row(1, 2)).toArray()).toEqual([2, 4]);
  });

  test("keeps integers and bools what they are", () => {
    const f = compile((n: Tensor, m: Tensor) => {
      n.setAt(0, 5)
        .addAt([[1, null]], n.slice([0]))
        .divInPlace(2);
      m.setAt(0, false);
      return [n, m];
    });
    const [n, m] = f(i32([1, 2, 3]), tensor([true, true]));
    expect([n!.toArray(), m!.toArray()]).toEqual([
      [2, 3, 4],
      [false, true],
    ]);
  });
});

const ROWS = 100;
const table = (): Tensor =>
  tensor(
    Float32Array.from({ length: ROWS * 16 }, (_, i) => i % 7),
    { shape: [ROWS, 16] },
  );
const BYTES = 4 * ROWS * 16;
const vector = tensor(Float32Array.from({ length: 16 }, (_, i) => i));

describe("a plan", () => {
  test("writes a hundred rows of a donated buffer in place", () => {
    const f = compile(
      (x: Tensor, v: Tensor) => {
        for (let i = 0; i < ROWS; i++) x.setAt(i, v.mul(i));
        return x;
      },
      { donate: [0], validate: true },
    );
    const { plan, arenaBytes, kernelCalls } = f.program(table(), vector);
    expect(plan.copies).toEqual([]);
    expect([kernelCalls, plan.inPlace.size]).toEqual([ROWS, ROWS]);
    expect(arenaBytes).toBe(BYTES + 64);
    expect(f(table(), vector).slice([99]).toArray()).toEqual(vector.mul(99).toArray());
  });

  test("stays in place where rows are read and changed in between", () => {
    const body = (x: Tensor, v: Tensor): readonly [Tensor, Tensor] => {
      const seen: Tensor[] = [];
      for (let i = 0; i < 30; i++) {
        seen.push(x.slice([0]).copy());
        x.setAt(i, v.mul(i)).addAt(0, 1);
        x.slice([[0, 2]]).mulInPlace(0.5);
        seen.push(x.slice([[3, 9], 2]).sum());
      }
      return [x, seen.reduce((a, b) => a.add(b))];
    };
    const f = compile(body, { donate: [0], validate: true });
    const { plan, arenaBytes } = f.program(table(), vector);
    expect(plan.copies).toEqual([]);
    expect(plan.problem.buffers.filter((buffer) => buffer.bytes >= BYTES).length).toBe(1);
    // what was seen on the way is small
    expect(arenaBytes).toBeLessThan(2 * BYTES);
    const apart = compile(body)(table(), vector);
    expect(f(table(), vector).map((x) => x.toArray())).toEqual(apart.map((x) => x.toArray()));
  });

  test("writes a row at a place known at run time in place: a cache of keys and values", () => {
    const f = compile((x: Tensor, at: Tensor, v: Tensor) => x.setAt(at, v), { donate: [0], validate: true });
    const { plan, arenaBytes } = f.program(table(), i32(0), vector);
    expect(plan.copies).toEqual([]);
    expect(arenaBytes).toBeLessThan(1.2 * BYTES);
    let cache = table();
    for (const place of [3, -1, 99, 100, 5]) cache = f(cache, i32(place), vector);
    const want = table().toArray() as number[][];
    for (const place of [3, 99, 5]) want[place] = vector.toArray() as number[];
    expect(cache.toArray()).toEqual(want);
  });

  test("adds at rows known at run time in place", () => {
    const f = compile((x: Tensor, rows: Tensor) => x.addAt(rows, 1).addAt(rows, 1), { donate: [0], validate: true });
    expect(f.program(table(), i32([1, 2, 1])).plan.copies).toEqual([]);
    expect(f(zeros([4, 2]), i32([1, 2, 1, 9])).toArray()).toEqual([
      [0, 0],
      [4, 4],
      [2, 2],
      [0, 0],
    ]);
  });

  test("does not take a copy in another order for no copy", () => {
    // the rows of the transpose are read from x across, so that x cannot be overwritten meanwhile
    const f = compile((x: Tensor, rows: Tensor) => x.T.scatterAdd(rows, ones([1, 3])), { donate: [0], validate: true });
    const x = tensor([
      [1, 2, 3],
      [4, 5, 6],
      [7, 8, 9],
    ]);
    expect(f(x, i32([1])).toArray()).toEqual([
      [1, 4, 7],
      [3, 6, 9],
      [3, 6, 9],
    ]);
  });

  test("copies where the old version is needed later, and gives both", () => {
    const f = compile(
      (x: Tensor) => {
        const old = x.copy();
        x.setAt(0, 0);
        return [x, old.mul(x)];
      },
      { donate: [0], validate: true },
    );
    const { arenaBytes } = f.program(table());
    expect(arenaBytes).toBeGreaterThanOrEqual(2 * BYTES);
    const [x, product] = f(row(2, 3));
    expect([x!.toArray(), product!.toArray()]).toEqual([
      [0, 3],
      [0, 9],
    ]);
    const kept = compile((v: Tensor) => [v.copy(), v.setAt(0, 0)], { donate: [0], validate: true });
    expect(kept(row(2, 3)).map((v) => v.toArray())).toEqual([
      [2, 3],
      [0, 3],
    ]);
  });

  test("keeps no version for the backward pass that it does not need", () => {
    const f = compile(
      grad((v: Tensor) => {
        const x = ones([ROWS, 16]);
        for (let i = 0; i < 40; i++) x.setAt(i, v.mul(i)).addAt(i + 1, v);
        return x.mul(table()).sum();
      }),
      { validate: true },
    );
    // a version each would be 80 · BYTES
    expect(f.program(vector).arenaBytes).toBeLessThan(4 * BYTES);
    // row i is i · v, row 40 is 1 + v, the rest is constant
    const factor = (i: number): number => (i < 40 ? i : Number(i === 40));
    const sums = (table().toArray() as number[][]).map((r, i) => r.map((t) => t * factor(i)));
    const want = vector.data().map((_, c) => sums.reduce((s, r) => s + r[c]!, 0));
    expect(Array.from(f(vector).data())).toEqual(Array.from(want));
  });
});
