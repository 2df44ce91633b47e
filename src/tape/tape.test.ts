/**
 * @file Programs that are decided as they run: gradients of trees, iterations and games against compiled forms and differences; changes in
 * place, loops and custom rules on a tape; misuse.
 */
import { describe, expect, it } from "vitest";
import {
  attention,
  autocast,
  checkpoint,
  compile,
  concat,
  cond,
  customVjp,
  grad,
  hessian,
  reversible,
  scan,
  type Tensor,
  tensor,
  valueAndGrad,
  where,
  whileLoop,
} from "../api/index.ts";
import { threefry } from "../base/random.ts";
import { maskedSelect, nonzeroPositions, uniqueValues } from "./data-sizes.ts";
import { type Tape, tape, tapeCounts } from "./tape.ts";

const noise = (seed: number, i: number): number => (threefry([seed, 3], [i, 0])[0] >>> 0) / 2 ** 32;
const draw = (seed: number, ...shape: number[]): Tensor => {
  const count = shape.reduce((a, b) => a * b, 1);
  return tensor(
    Float32Array.from({ length: count }, (_, i) => noise(seed, i) - 0.5),
    { shape },
  );
};

type Node = number | readonly [Node, Node];

function randomTree(leaves: number, seed: number): Node {
  if (leaves === 1) return seed % 7;
  const left = 1 + Math.floor(noise(seed, leaves) * (leaves - 1));
  return [randomTree(left, 2 * seed + 1), randomTree(leaves - left, 2 * seed + 2)];
}

const WIDTH = 8;
const lstm = { leaf: draw(1, WIDTH, 3 * WIDTH), inner: draw(2, 2 * WIDTH, 5 * WIDTH), bias: draw(3, 5 * WIDTH) };
const words = draw(4, 7, WIDTH);

interface State {
  readonly h: Tensor;
  readonly c: Tensor;
}

/** The TreeLSTM of Tai, Socher and Manning (2015) for binary trees. */
function treeState(p: typeof lstm, node: Node): State {
  const part = (x: Tensor, i: number): Tensor => x.slice([null, [i * WIDTH, (i + 1) * WIDTH]]);
  if (typeof node === "number") {
    const gates = words.take(tensor([node], { dtype: "i32" })).matmul(p.leaf);
    const c = part(gates, 0).sigmoid().mul(part(gates, 2).tanh());
    return { c, h: part(gates, 1).sigmoid().mul(c.tanh()) };
  }
  const [left, right] = [treeState(p, node[0]), treeState(p, node[1])];
  const gates = concat([left.h, right.h], 1).matmul(p.inner).add(p.bias);
  const kept = part(gates, 1).sigmoid().mul(left.c).add(part(gates, 2).sigmoid().mul(right.c));
  const c = part(gates, 0).sigmoid().mul(part(gates, 4).tanh()).add(kept);
  return { c, h: part(gates, 3).sigmoid().mul(c.tanh()) };
}

const treeLoss = (p: typeof lstm, tree: Node): Tensor => treeState(p, tree).h.square().sum();

describe("gradients on a tape", () => {
  it("of a TreeLSTM over random trees have the bits of the compiled function, one by one and together", () => {
    const before = tapeCounts();
    for (let seed = 0; seed < 4; seed++) {
      const tree = randomTree(4 + seed, seed);
      const [loss, grads] = compile(valueAndGrad((p: typeof lstm) => treeLoss(p, tree)))(lstm);
      for (const compileRuns of [false, true, true]) {
        const taped = tape(
          (t) => {
            const own = treeLoss(lstm, tree);
            return { loss: own, grads: t.gradient(own, lstm) };
          },
          { compileRuns },
        );
        expect(taped.loss.data()).toEqual(loss.data());
        for (const name of ["leaf", "inner", "bias"] as const)
          expect(taped.grads[name].data()).toEqual(grads[name].data());
      }
    }
    const after = tapeCounts();
    expect(after.inRuns - before.inRuns).toBeGreaterThan(300);
    expect(after.recomputed).toBe(before.recomputed);
  });

  it("of a recursion that stops early on values agree with differences", () => {
    const leaves = draw(7, 16);
    /** A branch whose first value is small is cut. */
    const total = (x: Tensor, from: number, to: number): Tensor => {
      const first = x.slice([from]);
      if (Math.abs(first.item()) < 0.1) return first.mul(0);
      if (to - from === 1) return first.square();
      const middle = (from + to) >> 1;
      return total(x, from, middle).add(total(x, middle, to).mul(first));
    };
    const wide = leaves.cast("f64");
    const value = (x: Tensor): number => tape(() => total(x, 0, 16)).item();
    const slope = tape((t) => t.gradient(total(wide, 0, 16), wide)).data();
    const data = wide.data();
    for (let i = 0; i < 16; i++) {
      const at = (by: number): number => value(tensor(data.map((x, k) => (k === i ? x + by : x)) as Float64Array));
      expect(slope[i]).toBeCloseTo((at(1e-6) - at(-1e-6)) / 2e-6, 5);
    }
  });

  it("of Newton's iteration with a count that depends on data", () => {
    const steps: number[] = [];
    for (const number of [1.5, 100, 1e6]) {
      const a = tensor(number, { dtype: "f64" });
      const { root, slope, count } = tape((t) => {
        let x = a.mul(0).add(1);
        let count = 0;
        while (Math.abs(x.square().sub(a).item()) > 1e-12 * number) {
          x = x.add(a.div(x)).mul(0.5);
          count += 1;
        }
        return { root: x, slope: t.gradient(x, a), count };
      });
      expect(root.item()).toBeCloseTo(Math.sqrt(number), 10);
      expect(slope.item()).toBeCloseTo(0.5 / Math.sqrt(number), 8);
      steps.push(count);
    }
    expect(new Set(steps).size).toBe(3);
  });

  it("of a game tree flow along the line that both players choose", () => {
    const scores = draw(9, 16);
    const best = (from: number, to: number, isMax: boolean): Tensor => {
      if (to - from === 1) return scores.slice([from]).mul(3);
      const middle = (from + to) >> 1;
      const left = best(from, middle, !isMax);
      const right = best(middle, to, !isMax);
      return left.item() > right.item() === isMax ? left : right;
    };
    const { value, slope } = tape((t) => {
      const value = best(0, 16, true).reshape([]);
      return { value, slope: t.gradient(value, scores) };
    });
    const data = scores.data();
    const chosen = [...slope.data()].findIndex((x) => x !== 0);
    expect(value.item()).toBeCloseTo(3 * data[chosen]!, 6);
    expect([...slope.data()]).toEqual(Array.from({ length: 16 }, (_, i) => (i === chosen ? 3 : 0)));
  });

  it("are on the tape too: second and third derivatives", () => {
    const f = (x: Tensor): Tensor => x.sin().mul(x.exp()).sum();
    const x = draw(11, 4);
    const taped = tape((t) => {
      const first = t.gradient(f(x), x);
      const second = t.gradient(first.sum(), x);
      return [first, second, t.gradient(second.sum(), x)] as const;
    });
    const g1 = grad(f);
    const g2 = grad((y: Tensor) => g1(y).sum());
    const g3 = grad((y: Tensor) => g2(y).sum());
    for (const [i, whole] of [g1(x), g2(x), g3(x)].entries()) expect(taped[i]!.data()).toEqual(whole.data());
    expect(tape(() => hessian(f)(x)).data()).toEqual(hessian(f)(x).data());
  });

  it("may be taken several times, after other reads, with respect to values in the middle", () => {
    const x = tensor([1, 2, 3]);
    const result = tape((t) => {
      const y = x.square();
      const z = y.mul(x).sum();
      expect(z.item()).toBe(36);
      const first = t.gradient(z, [x, y]);
      expect([...first[0]!.data()]).toEqual([3, 12, 27]);
      const again = t.gradient(z, [x, y]);
      return { first, again, unused: t.gradient(z, tensor([5, 5])) };
    });
    expect(result.first.map((g) => [...g.data()])).toEqual([
      [3, 12, 27],
      [1, 2, 3],
    ]);
    expect(result.again.map((g) => [...g.data()])).toEqual([
      [3, 12, 27],
      [1, 2, 3],
    ]);
    expect([...result.unused.data()]).toEqual([0, 0]);
  });
});

describe("gradients under autocast", () => {
  const [w, x] = [draw(21, 8, 8), draw(22, 5, 8)];
  const losses: Record<string, (v: Tensor) => Tensor> = {
    "of one product": (v) => x.matmul(v).square().mean(),
    "of several products of a weight": (v) => x.matmul(v).gelu().matmul(v).add(x.matmul(v)).square().mean(),
    "of operands of attention": (v) => attention(x.matmul(v), x, x.matmul(v)).square().mean(),
    "where types meet": (v) =>
      concat([where(x.greater(0), x.matmul(v), x), x])
        .square()
        .mean(),
  };
  it.each(Object.entries(losses))("are sums in f32 of bf16 products, %s", (_, loss) => {
    for (const products of ["bf16", "f16"] as const) {
      const own = autocast(loss, { products });
      expect(tape((t) => t.gradient(own(w), w)).data()).toEqual(grad(own)(w).data());
    }
  });
});

describe("on a tape", () => {
  it("tensors may be changed in place; what a gradient needs is what it was", () => {
    const x = tensor([1, 2, 3]);
    const { y, slope } = tape((t) => {
      const y = x.mul(2);
      const z = y.square().sum(); // its reverse reads y as it is here
      y.setAt(0, 100)
        .slice([[1, 3]])
        .addInPlace(10);
      return { y, slope: t.gradient(z, x) };
    });
    expect([...y.data()]).toEqual([100, 14, 16]);
    expect([...slope.data()]).toEqual([8, 16, 24]);
  });

  it("loops, branches, checkpoints and custom rules work as in compiled functions", () => {
    const x = draw(12, 5);
    const clipped = customVjp((v: Tensor) => v.mul(2), {
      forward: (v) => [v.mul(2), [v]] as const,
      backward: ([v], ct) => [ct.mul(v.sign())],
    });
    const f = (v: Tensor): Tensor => {
      const [sum] = scan((carry: Tensor, row: Tensor) => [carry.add(row.square()), row] as const, tensor(0), v);
      const twice = whileLoop(
        (s: Tensor) => s.less(10),
        (s: Tensor) => s.mul(2),
        sum.add(1),
      );
      const chosen = cond(
        v.sum().greater(0),
        (a: Tensor) => a.exp().sum(),
        (a: Tensor) => a.sin().sum(),
        v,
      );
      return twice
        .add(chosen)
        .add(checkpoint((a: Tensor) => a.tanh().sum())(v))
        .add(clipped(v).sum());
    };
    const [value, slope] = valueAndGrad(f)(x);
    const taped = tape((t) => {
      const own = f(x);
      return [own, t.gradient(own, x)] as const;
    });
    expect(taped[0].item()).toBeCloseTo(value.item(), 5);
    const expected = slope.data();
    for (const [i, g] of taped[1].data().entries()) expect(g).toBeCloseTo(expected[i]!, 5);
  });

  it("reversible blocks are checked and differentiated as in compiled functions", () => {
    const block = reversible(
      (v: Tensor, p: Tensor) => v.add(p),
      (y: Tensor, p: Tensor) => y.sub(p),
    );
    const [x, w] = [draw(25, 6), draw(26, 6)];
    const f = (v: Tensor): Tensor => block(v.sin(), w).square().sum();
    expect(tape((t) => t.gradient(f(x), x)).data()).toEqual(grad(f)(x).data());
    expect(tape(() => grad(f)(x.mul(1))).data()).toEqual(grad(f)(x).data());
    const wrong = reversible(
      (v: Tensor, p: Tensor) => v.add(p),
      (y: Tensor, p: Tensor) => y.add(p),
    );
    expect(() => tape(() => wrong(x.sin(), w))).toThrow(/inverse/);
  });

  it("sizes may depend on data", () => {
    const x = draw(17, 6, 2);
    const { rows, slope } = tape((t) => {
      const rows = maskedSelect(x, x.slice([null, 0]).reshape([6]).greater(0));
      return { rows, slope: t.gradient(rows.square().sum(), x) };
    });
    const data = x.data();
    const kept = [0, 1, 2, 3, 4, 5].filter((i) => data[2 * i]! > 0);
    expect(rows.shape).toEqual([kept.length, 2]);
    const expected = [...data].map((value, i) => (kept.includes(i >> 1) ? 2 * value : 0));
    expect([...slope.data()]).toEqual(expected.map(Math.fround));
    expect(
      tape(() =>
        uniqueValues(
          nonzeroPositions(
            tensor([
              [1, 0],
              [0, 0],
            ]).mul(1),
          ),
        ),
      ).toArray(),
    ).toEqual([0]);
    expect(tape(() => maskedSelect(x, x.greater(9))).shape).toEqual([0]);
    expect(() => maskedSelect(x, x)).toThrow("DtypeMismatch: maskedSelect");
    expect(() => maskedSelect(x, tensor([true]))).toThrow("ShapeMismatch: maskedSelect: a mask bool[1] for f32[6,2]");
    const traced = (f: (v: Tensor) => Tensor) => () => compile(f)(x);
    expect(traced((v) => maskedSelect(v, v.greater(0)))).toThrow(
      /SideEffect: maskedSelect: the size of its result depends on values[\s\S]*where\(mask, x, 0\)/,
    );
    expect(traced(uniqueValues)).toThrow(/SideEffect: uniqueValues[\s\S]*unique\(x, size\)/);
    expect(() => grad((v: Tensor) => v.take(nonzeroPositions(v).reshape([-1])).sum())(x)).toThrow(
      /SideEffect: nonzeroPositions[\s\S]*nonzero\(x, size\)/,
    );
  });

  it("compiled functions are part of it", () => {
    const double = compile((v: Tensor) => v.mul(2).sum());
    const x = tensor([1, 2]);
    expect([...tape((t) => t.gradient(double(x), x)).data()]).toEqual([2, 2]);
  });

  it("plain numbers are data: another number compiles nothing", () => {
    const run = (k: number): number => tape(() => tensor([1, 2]).mul(k).add(k).sum()).item();
    run(1);
    run(2);
    const { programs } = tapeCounts();
    for (let k = 3; k < 20; k++) expect(run(k)).toBe(5 * k);
    expect(tapeCounts().programs).toBe(programs);
  });

  it("elements can be read of values of any size, whether anything else reads them or not", () => {
    for (const [round, n] of [1, 200, 257, 300, 1000, 5000, 300, 1000].entries()) {
      const x = draw(31 + round, n);
      const from = [...x.data()];
      tape((t) => {
        const y = x.mul(2);
        const slope = t.gradient(y.square().sum(), x);
        expect([...slope.data()]).toEqual(from.map((value) => 8 * value));
        expect([...x.mul(3).data()]).toEqual(from.map((value) => Math.fround(3 * value)));
        expect([...y.data()]).toEqual(from.map((value) => 2 * value));
        expect([...slope.data()]).toEqual(from.map((value) => 8 * value));
      });
    }
  });

  it("a value that was given back and is read again is recomputed, and then lives longer", () => {
    const x = draw(13, 1000);
    const before = tapeCounts().recomputed;
    tape((t) => {
      t.watch([]);
      const y = x.exp();
      const total = y.neg().sum().item();
      for (let i = 0; i < 5; i++) expect(y.data()[0]).toBeCloseTo(Math.exp(x.data()[0]!), 5);
      expect(y.sum().item()).toBe(-total);
      expect(y.max().item()).toBeGreaterThan(1);
    });
    expect(tapeCounts().recomputed - before).toBe(1);
  });

  it("the state of a loop is kept from one iteration to the next, and no further", () => {
    const before = tapeCounts().recomputed;
    tape((t) => {
      t.watch([]);
      let y = draw(14, 2000);
      const held: number[] = [];
      for (let i = 0; i < 40; i++) {
        y = y.mul(0.99).add(0.01).sin();
        if (y.sum().item() > 1e9) break;
        held.push(t.memory().allocated);
      }
      expect(held[39]).toBeLessThan(4 * 8000);
    });
    expect(tapeCounts().recomputed - before).toBeLessThan(30);
  });
});

describe("misuse of a tape", () => {
  const x = tensor([1, 2]);

  it("after it has ended", () => {
    const kept: { t?: Tape; y?: Tensor } = {};
    tape((t) => {
      kept.t = t;
      kept.y = x.mul(2);
    });
    expect(() => kept.t!.gradient(x.sum(), x)).toThrow(/TraceLeak: tape.gradient: the tape has ended/);
    expect(() => kept.y!.data()).toThrow(/TraceLeak: f32\[2\] was made on a tape that has ended/);
    expect(() => kept.y!.add(1)).toThrow(/TraceLeak/);
    expect(() => tape(() => kept.y!.add(1))).toThrow(/on a tape that has ended/);
    expect(() => tape((t) => t.gradient(x.sum(), kept.y!))).toThrow(
      /gradient: sources f32\[2\] is of another tape that has ended/,
    );
    expect(() => tape((t) => t.gradient(kept.y!, x))).toThrow(/the target f32\[2\] is of another tape that has ended/);
  });

  it("with values of another tape", () => {
    tape(() => {
      const outer = x.mul(2);
      const loss = outer.sum();
      expect(tape(() => loss.mul(2)).item()).toBe(12);
      expect(() => tape((t) => t.gradient(loss, x))).toThrow(/is of another tape around this one/);
    });
  });

  it("with changes to what comes from outside", () => {
    const outside = tensor([1, 2]);
    expect(() => tape(() => outside.addInPlace(1))).toThrow(
      /SideEffect: addInPlace: f32\[2\] is defined outside of the tape[\s\S]*tape\.test\.ts/,
    );
    expect([...outside.data()]).toEqual([1, 2]);
  });

  it("with traced tensors, or inside of what is traced", () => {
    const f = compile((v: Tensor) => tape(() => v.mul(2)));
    expect(() => f(x)).toThrow(/SideEffect: tape: inside of .*being traced/);
    expect(() => grad((v: Tensor) => tape((t) => t.gradient(v.sum(), v)).sum())(x)).toThrow(/SideEffect/);
    expect(() =>
      tape(() => {
        let leaked: Tensor | undefined;
        grad((v: Tensor) => {
          leaked = v;
          return v.sum();
        })(x);
        return leaked!.add(1);
      }),
    ).toThrow(/TraceLeak/);
  });

  it("with a target or sources that have no gradient", () => {
    expect(() => tape((t) => t.gradient(x.mul(2), x))).toThrow(
      /ShapeMismatch: gradient: the target must be a scalar, got f32\[2\]/,
    );
    expect(() => tape((t) => t.gradient(x.argmax(0), x))).toThrow(/NotDifferentiable/);
    expect(() => tape((t) => t.gradient(x.sum(), tensor([1], { dtype: "i32" })))).toThrow(
      /NotDifferentiable: gradient: sources/,
    );
    expect(() => tape((t) => t.gradient(x.sum(), { w: "x" } as never))).toThrow(/InvalidTree/);
    expect(() => tape((t) => t.gradient(x.mul(2), x, { cotangent: tensor([1]) }))).toThrow(
      /a cotangent f32\[1\] for a target f32\[2\]/,
    );
  });

  it("with promises, wrong options and shapes that do not fit", () => {
    expect(() => tape(async () => x)).toThrow(/InvalidArgument: tape: the function returned a promise/);
    expect(() => tape(() => x, { memroy: 1 } as never)).toThrow(/there is no option memroy/);
    for (const target of ["cuda", "webgpu", "native"]) {
      expect(() => tape(() => x, { target } as never)).toThrow(
        new RegExp(`TargetUnsupported: tape: the target is .*${target}.*, and tapes run on wasm`),
      );
    }
    expect(() => tape(5 as never)).toThrow(/InvalidArgument/);
    expect(() => tape(() => x, null as never)).toThrow(/InvalidArgument: tape: options must be an object, got null/);
    for (const history of [-5, 1.5, Number.NaN, 1e12]) {
      expect(() => tape(() => x, { memory: 64, history })).toThrow(/InvalidArgument: tape: a history of/);
    }
    expect(() => tape(() => x.mul(2), { memory: 0 })).toThrow(/PoolExhausted[\s\S]*tape\.test\.ts/);
    expect(() => tape(() => x.mul(2), { memory: "many" })).toThrow(/InvalidArgument/);
    expect([...tape(() => x.mul(2)).data()]).toEqual([2, 4]);
    expect(() => tape(() => x.add(tensor([1, 2, 3])))).toThrow(/ShapeMismatch: add: shapes do not broadcast/);
  });
});
