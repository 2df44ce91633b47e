/**
 * @file Loops and branches in compiled programs: the same bits as the program written out, whatever the nesting, in one
 * arena whose plan the validator accepts, with code that does not grow with the number of turns.
 */
import { describe, expect, it } from "vitest";
import {
  compile,
  cond,
  dropout,
  forLoop,
  matmul,
  random,
  scan,
  stack,
  switchCase,
  type Tensor,
  tensor,
  where,
  whileLoop,
} from "../../src/api/index.ts";
import { hostRandom } from "../../src/base/random.ts";
import { expectSameBits } from "../functions/compare.ts";

function draw(shape: readonly number[], seed: number, scale = 1): Tensor {
  const next = hostRandom(seed);
  const n = shape.reduce((a, b) => a * b, 1);
  return tensor(Float32Array.from({ length: n }, () => (next.next() * 2 - 1) * scale)).reshape(shape);
}

const i32 = (value: number): Tensor => tensor(value, { dtype: "i32" });

/** Both functions compiled, with plans checked, on the same arguments. */
function expectSame<A extends readonly Tensor[]>(
  name: string,
  loop: (...args: A) => readonly Tensor[],
  plain: (...args: A) => readonly Tensor[],
  ...args: A
): void {
  const got = compile(loop, { validate: true })(...args);
  const want = compile(plain, { validate: true })(...args);
  expect(got.length).toBe(want.length);
  got.forEach((tensor, i) => {
    expectSameBits(tensor, want[i] as Tensor, `${name}, result ${i}`);
  });
}

describe("scan", () => {
  const w = draw([5, 5], 1, 0.5);
  const step = (h: Tensor, x: Tensor): Tensor => matmul(h, w).add(x).tanh();

  for (const reverse of [false, true]) {
    it(`has the bits of the unrolled loop, ${reverse ? "backwards" : "forwards"}`, () => {
      const loop = (h: Tensor, xs: Tensor): readonly Tensor[] =>
        scan<Tensor, Tensor, Tensor>((s, x) => [step(s, x), s.mul(x)], h, xs, { reverse });
      const plain = (h: Tensor, xs: Tensor): readonly Tensor[] => {
        let s = h;
        const ys: Tensor[] = [];
        for (let n = 0; n < 7; n++) {
          const x = xs.slice([reverse ? 6 - n : n]);
          ys.push(s.mul(x));
          s = step(s, x);
        }
        return [s, stack(reverse ? ys.reverse() : ys)];
      };
      expectSame("scan", loop, plain, draw([3, 5], 2), draw([7, 3, 5], 3));
    });
  }

  it("swaps, keeps and copies carries as the body says", () => {
    type State = { readonly a: Tensor; readonly b: Tensor; readonly c: Tensor };
    const next = ({ a, b, c }: State): State => ({ a: b, b: a.add(c), c });
    const init = (x: Tensor): State => ({ a: x, b: x.mul(2), c: x.add(1) });
    const loop = (x: Tensor): readonly Tensor[] => {
      const [{ a, b, c }, ys] = scan<State, null, Tensor>((s) => [next(s), s.a], init(x), null, { length: 5 });
      return [a, b, c, ys];
    };
    const plain = (x: Tensor): readonly Tensor[] => {
      let s = init(x);
      const ys: Tensor[] = [];
      for (let n = 0; n < 5; n++) {
        ys.push(s.a);
        s = next(s);
      }
      return [s.a, s.b, s.c, stack(ys)];
    };
    expectSame("carries", loop, plain, draw([3], 4));
  });

  it("reads and writes rows of every element type at odd offsets", () => {
    const xs = draw([6, 3], 5);
    const loop = (x: Tensor): readonly Tensor[] => {
      const flags = x.greater(0);
      const numbers = x.mul(100).cast("i32");
      const [n, ys] = scan(
        (s: Tensor, row: readonly [Tensor, Tensor, Tensor]) => {
          const [f, k, v] = row;
          const picked = where(f, k, k.neg());
          return [s.add(picked), [f.logicalNot(), picked, v.cast("f64")] as const] as const;
        },
        i32(0).broadcastTo([3]),
        [flags, numbers, x] as const,
      );
      const [a, b, c] = ys as unknown as readonly [Tensor, Tensor, Tensor];
      return [n, a, b, c];
    };
    const plain = (x: Tensor): readonly Tensor[] => {
      const k = x.mul(100).cast("i32");
      const picked = where(x.greater(0), k, k.neg());
      return [picked.sum(0), x.greater(0).logicalNot(), picked, x.cast("f64")];
    };
    expectSame("rows", loop, plain, xs);
  });

  it("of no turns gives the first state, and stacks without rows", () => {
    const [last, ys] = compile(
      (s: Tensor, xs: Tensor) => scan<Tensor, Tensor, Tensor>((c, x) => [c.add(x), c], s, xs),
      { validate: true },
    )(tensor([1, 2]), draw([0, 2], 1));
    expect(last.toArray()).toEqual([1, 2]);
    expect(ys.shape).toEqual([0, 2]);
    expect(forLoop(0, tensor([3, 4]), (_, s) => s.mul(2)).toArray()).toEqual([3, 4]);
  });

  it("reads a reshaped, a constant and a repeated input without a copy of it in the graph's results", () => {
    const loop = (x: Tensor): readonly Tensor[] =>
      scan<Tensor, readonly Tensor[], Tensor>(
        (s, [row, one, same]) => [s.add(row as Tensor).mul(one as Tensor), s.sub(same as Tensor)],
        x.reshape([2, 6]).slice([0]).reshape([3, 2]),
        [
          x.reshape([2, 3, 2]),
          tensor(2).broadcastTo([2, 3, 2]),
          x.slice([0]).reshape([1, 3, 1]).broadcastTo([2, 3, 2]),
        ],
      );
    const plain = (x: Tensor): readonly Tensor[] => {
      let s = x.reshape([2, 6]).slice([0]).reshape([3, 2]);
      const ys: Tensor[] = [];
      for (let n = 0; n < 2; n++) {
        ys.push(s.sub(x.slice([0]).reshape([3, 1])));
        s = s.add(x.reshape([2, 3, 2]).slice([n])).mul(2);
      }
      return [s, stack(ys)];
    };
    expectSame("views", loop, plain, draw([4, 3], 6));
  });

  it("draws fresh numbers in every turn from a key in its state", () => {
    const next = (x: Tensor, key: Tensor): readonly [Tensor, Tensor] => {
      const [now, later] = random.split(key);
      return [dropout(x, 0.5, now).add(0.1), later];
    };
    const loop = (x: Tensor): readonly Tensor[] =>
      scan<readonly [Tensor, Tensor], null, Tensor>(([s, k]) => [next(s, k), s], [x, random.key(7)], null, {
        length: 6,
      })[0];
    const plain = (x: Tensor): readonly Tensor[] => {
      let state: readonly [Tensor, Tensor] = [x, random.key(7)];
      for (let n = 0; n < 6; n++) state = next(...state);
      return state;
    };
    expectSame("dropout", loop, plain, draw([40], 8));
  });

  it("with more kernels in its body than one function has still runs them all", () => {
    const turns = (s: Tensor, n: number): Tensor => {
      let now = s;
      for (let k = 0; k < n; k++) now = matmul(now, w).tanh();
      return now;
    };
    const loop = (s: Tensor): readonly Tensor[] => [forLoop(2, s, (_, c) => turns(c, 600))];
    expectSame("many kernels", loop, (s: Tensor) => [turns(s, 1200)], draw([2, 5], 9));
  });
});

describe("while", () => {
  it("takes as many turns as its data ask for, from none to the most allowed", () => {
    const halve = compile(
      (x: Tensor, least: Tensor) =>
        whileLoop<{ readonly x: Tensor; readonly n: Tensor }>(
          (s) => s.x.greater(least),
          (s) => ({ x: s.x.div(2), n: s.n.add(1) }),
          { x, n: i32(0) },
          { maxSteps: 20 },
        ),
      { validate: true },
    );
    const run = (x: number, least: number): readonly number[] => {
      const state = halve(tensor(x), tensor(least));
      return [state.x.item(), state.n.item()];
    };
    expect(run(64, 1)).toEqual([1, 6]);
    expect(run(1, 1)).toEqual([1, 0]);
    expect(run(2 ** 30, 1)).toEqual([2 ** 10, 20]);
  });

  it("ends at once for maxSteps 0", () => {
    const never = whileLoop(
      () => tensor(true),
      (s) => s.add(1),
      tensor(5),
      { maxSteps: 0 },
    );
    expect(never.item()).toBe(5);
  });

  it("counts with a tensor in forLoop", () => {
    const powers = compile((x: Tensor, n: Tensor) => forLoop(n, x, (i, s) => s.mul(2).add(i.cast("f32"))), {
      validate: true,
    });
    const want = (n: number): number => {
      let s = 1;
      for (let i = 0; i < n; i++) s = s * 2 + i;
      return s;
    };
    for (const n of [0, 1, 5, 12]) expect(powers(tensor(1), i32(n)).item()).toBe(want(n));
    expect(powers(tensor(1), i32(-3)).item()).toBe(1);
  });
});

describe("branches", () => {
  it("run the one that is chosen, or the nearest", () => {
    const chosen = compile(
      (k: Tensor, x: Tensor) => switchCase(k, [(v: Tensor) => v.neg(), (v: Tensor) => v.square(), (v: Tensor) => v], x),
      { validate: true },
    );
    expect([-9, 0, 1, 2, 9].map((k) => chosen(i32(k), tensor(3)).item())).toEqual([-3, -3, 9, 3, 3]);
  });

  it("leave an operand that is handed through as it was for other readers", () => {
    const f = compile(
      (p: Tensor, x: Tensor) => {
        const y = cond(
          p,
          (v: Tensor) => v.add(1),
          (v: Tensor) => v,
          x,
        );
        return [y, x.mul(2)] as const;
      },
      { validate: true },
    );
    for (const p of [true, false]) {
      const [y, twice] = f(tensor(p), tensor([1, 2]));
      expect([y.toArray(), twice.toArray()]).toEqual([p ? [2, 3] : [1, 2], [2, 4]]);
    }
  });

  it("inside of loops inside of branches go the way the data go", () => {
    const collatz = (n: Tensor): Tensor =>
      cond(
        n.greater(0),
        (start: Tensor) =>
          whileLoop<readonly [Tensor, Tensor]>(
            ([v]) => v.notEqual(1),
            ([v, count]) => [
              cond(
                v.sub(v.div(2).floor().mul(2)).equal(0),
                (even: Tensor) => even.div(2),
                (odd: Tensor) => odd.mul(3).add(1),
                v,
              ),
              count.add(1),
            ],
            [start, start.sub(start)],
          )[1],
        (other: Tensor) => other.sub(other).sub(1),
        n,
      );
    const f = compile(collatz, { validate: true });
    expect([27, 1, 6, 97, -4].map((n) => f(tensor(n)).item())).toEqual([111, 0, 8, 118, -1]);
  });
});

describe("nesting", () => {
  it("three deep has the bits of the loops written out", () => {
    const inner = (s: Tensor, k: number): Tensor => s.mul(0.9).add(k * 0.01);
    const loop = (x: Tensor): readonly Tensor[] => [
      forLoop(3, x, (_, a) => {
        const [b] = scan<Tensor, Tensor, Tensor>(
          (s, row) => [forLoop(2, s.add(row), (_, c) => inner(c, 1)).tanh(), s],
          a,
          x.reshape([2, 1, 2]).broadcastTo([2, 2, 2]).mul(0.5),
        );
        return b.add(a);
      }),
    ];
    const plain = (x: Tensor): readonly Tensor[] => {
      let a = x;
      const rows = x.reshape([2, 1, 2]).broadcastTo([2, 2, 2]).mul(0.5);
      for (let n = 0; n < 3; n++) {
        let s = a;
        for (let t = 0; t < 2; t++) s = inner(inner(s.add(rows.slice([t])), 1), 1).tanh();
        a = s.add(a);
      }
      return [a];
    };
    expectSame("three deep", loop, plain, draw([2, 2], 10));
  });
});

describe("memory and code", () => {
  const recurrence = (turns: number) =>
    compile((x: Tensor) => forLoop(turns, x, (i, s) => s.mul(0.999999).add(i.cast("f32").mul(1e-9))), {
      validate: true,
    });

  it("of a million turns are those of one turn", () => {
    const one = recurrence(1).program(tensor(1));
    const million = recurrence(1_000_000).program(tensor(1));
    expect(million.arenaBytes).toBe(one.arenaBytes);
    expect(million.arenaBytes).toBeLessThanOrEqual(256);
    // the number of turns itself is written with more digits
    expect(million.moduleBytes - one.moduleBytes).toBeLessThanOrEqual(4);
    let s = Math.fround(1);
    const [decay, rate] = [Math.fround(0.999999), Math.fround(1e-9)];
    for (let i = 0; i < 1_000_000; i++) {
      s = Math.fround(Math.fround(s * decay) + Math.fround(Math.fround(i) * rate));
    }
    expect(recurrence(1_000_000)(tensor(1)).item()).toBe(s);
  });

  it("keeps a large state in one place when it is donated", () => {
    const grow = (s: Tensor): Tensor => forLoop(10, s, (_, c) => c.mul(1.5).add(1));
    const state = draw([4096], 11);
    const f = compile((s: Tensor) => [grow(s)] as const, { donate: [0], validate: true });
    const { arenaBytes } = f.program(state);
    expect(arenaBytes).toBeLessThan(4096 * 4 + 256);
    const kept = compile((s: Tensor) => grow(s))(state);
    expectSameBits(f(state)[0], kept, "donated");
  });

  it("finds NaN that a loop makes", () => {
    const f = compile((x: Tensor) => forLoop(3, x, (_, s) => s.sub(1).sqrt()).sum(), { checkNaN: true });
    expect(() => f(tensor([1.5]))).toThrow(/scan\(.*made 1 NaN/);
  });

  it("lie in one buffer without reuse of a carry that is read later", () => {
    const f = compile((x: Tensor) => [forLoop(4, x, (_, s) => s.add(x)), x.mul(1)] as const, { validate: true });
    const [sum, same] = f(tensor([1, 2]));
    expect([sum.toArray(), same.toArray()]).toEqual([
      [5, 10],
      [1, 2],
    ]);
  });
});
