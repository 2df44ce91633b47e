/**
 * @file Derivatives through loops and branches: against the loop written out, against central differences (which know
 * nothing of derivatives), forward against reverse mode, and once more of themselves.
 */
import { describe, expect, it } from "vitest";
import {
  compile,
  cond,
  dropout,
  forLoop,
  grad,
  jvp,
  matmul,
  random,
  scan,
  stack,
  switchCase,
  type Tensor,
  tensor,
  vjp,
  type WhileOptions,
  whileLoop,
} from "../../src/api/index.ts";
import { hostRandom } from "../../src/base/random.ts";
import { expectClose, expectSameBits } from "../functions/compare.ts";

type Scalar = (x: Tensor) => Tensor;

function draw(shape: readonly number[], seed: number, dtype: "f32" | "f64" = "f64", scale = 1): Tensor {
  const next = hostRandom(seed);
  const n = shape.reduce((a, b) => a * b, 1);
  const data = Float64Array.from({ length: n }, () => (next.next() * 2 - 1) * scale);
  return tensor(dtype === "f64" ? data : Float32Array.from(data)).reshape(shape);
}

const f64 = (value: number | readonly number[]): Tensor => tensor(value as number[], { dtype: "f64" });

/** Central differences of fourth order for every element: (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12h. */
function differences(f: Scalar, x: Tensor): Float64Array {
  const run = compile(f);
  const data = x.data() as Float64Array;
  const h = 1e-4;
  return data.map((_, i) => {
    const at = (by: number): number => {
      const moved = data.slice();
      moved[i] = (moved[i] ?? 0) + by;
      return run(tensor(moved).reshape(x.shape)).item();
    };
    return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
  });
}

const second = (f: Scalar): Scalar => grad((x: Tensor) => grad(f)(x).sin().sum());

/** All there is to ask of a scalar function, `plain` being the same one without control flow where that can be written. */
function expectDerivatives(name: string, f: Scalar, x: Tensor, plain?: Scalar): void {
  const reverse = compile((v: Tensor) => grad(f)(v), { validate: true })(x);
  expectClose(reverse.data(), differences(f, x), 1e-6, `${name}: against differences`);
  const t = draw(x.shape, 99);
  const [, forward] = jvp(f, [x], [t]);
  expectClose(forward.data(), reverse.mul(t).sum().data(), 1e-10, `${name}: forward against reverse`);
  const twice = second(f)(x);
  expectClose(
    twice.data(),
    differences((v) => grad(f)(v).sin().sum(), x),
    1e-5,
    `${name}: reverse over reverse`,
  );
  const direction =
    (g: Scalar): Scalar =>
    (v) =>
      jvp(g, [v], [t])[1];
  const over = jvp((v: Tensor) => grad(f)(v), [x], [t])[1];
  const under = grad(direction(f))(x);
  expectClose(over.data(), under.data(), 1e-10, `${name}: forward over reverse against reverse over forward`);
  if (!plain) return;
  expectClose(reverse.data(), grad(plain)(x).data(), 1e-12, `${name}: against the loop written out`);
  expectClose(twice.data(), second(plain)(x).data(), 1e-11, `${name}: twice, against the loop written out`);
}

describe("scan", () => {
  const w = draw([3, 3], 1, "f64", 0.6);

  it("with respect to the first state", () => {
    const f: Scalar = (h) =>
      forLoop(4, h, (_, s) => matmul(s, w).tanh())
        .square()
        .sum();
    const plain: Scalar = (h) => {
      let s = h;
      for (let n = 0; n < 4; n++) s = matmul(s, w).tanh();
      return s.square().sum();
    };
    expectDerivatives("state", f, draw([2, 3], 2), plain);
  });

  for (const reverse of [false, true]) {
    it(`with respect to rows and to a constant, through states and stacks, ${reverse ? "backwards" : "forwards"}`, () => {
      const of = (k: Tensor, xs: Tensor): Tensor => {
        const [last, ys] = scan<Tensor, Tensor, Tensor>(
          (s, x) => {
            const next = matmul(s, k).add(x).tanh();
            return [next, next.mul(s).add(k.sum())];
          },
          xs.slice([0]),
          xs,
          { reverse },
        );
        return last.sum().add(ys.square().sum());
      };
      const written = (k: Tensor, xs: Tensor): Tensor => {
        let s = xs.slice([0]);
        const ys: Tensor[] = [];
        for (let n = 0; n < 3; n++) {
          const next = matmul(s, k)
            .add(xs.slice([reverse ? 2 - n : n]))
            .tanh();
          ys.push(next.mul(s).add(k.sum()));
          s = next;
        }
        return s.sum().add(stack(ys).square().sum());
      };
      const xs = draw([3, 2, 3], 3);
      expectDerivatives(
        "rows",
        (x) => of(w, x),
        xs,
        (x) => written(w, x),
      );
      expectDerivatives(
        "constant",
        (k) => of(k, xs),
        w,
        (k) => written(k, xs),
      );
    });
  }

  it("of a constant read under two names and outside of the loop as well", () => {
    const f: Scalar = (k) =>
      forLoop(3, k.mul(1), (_, s) => s.mul(k).add(k.sin()))
        .mul(k)
        .sum();
    const plain: Scalar = (k) => {
      let s = k.mul(1);
      for (let n = 0; n < 3; n++) s = s.mul(k).add(k.sin());
      return s.mul(k).sum();
    };
    expectDerivatives("two names", f, draw([3], 4), plain);
  });

  it("through carries that others overwrite, that never change, and that are integers", () => {
    type State = { readonly a: Tensor; readonly b: Tensor; readonly n: Tensor; readonly same: Tensor };
    const f: Scalar = (x) => {
      const init: State = { a: x, b: x.mul(2), n: tensor(0, { dtype: "i32" }), same: x.cos() };
      const last = forLoop<State>(4, init, (_, { a, b, n, same }) => ({
        a: b,
        b: a.mul(same).add(n.cast("f64")),
        n: n.add(1),
        same,
      }));
      return last.a.add(last.b.mul(last.same)).sum();
    };
    const plain: Scalar = (x) => {
      let [a, b] = [x, x.mul(2)];
      for (let n = 0; n < 4; n++) [a, b] = [b, a.mul(x.cos()).add(n)];
      return a.add(b.mul(x.cos())).sum();
    };
    expectDerivatives("carries", f, draw([2], 5), plain);
  });

  it("that takes no turn is the derivative of what it is given", () => {
    const f: Scalar = (x) => forLoop(0, x.square(), (_, s) => s.mul(x)).sum();
    expect(grad(f)(f64([3, -2])).toArray()).toEqual([6, -4]);
    expect(second(f)(f64([0.5])).data()[0]).toBeCloseTo(2 * Math.cos(1), 12);
  });

  it("has the bits of the loop written out, for the state, the rows and the constants", () => {
    const of = (k: Tensor, h: Tensor, xs: Tensor): Tensor =>
      scan<Tensor, Tensor, readonly Tensor[]>((s, x) => [matmul(s, k).add(x).tanh(), []], h, xs)[0]
        .square()
        .sum();
    const written = (k: Tensor, h: Tensor, xs: Tensor): Tensor => {
      let s = h;
      for (let n = 0; n < 6; n++)
        s = matmul(s, k)
          .add(xs.slice([n]))
          .tanh();
      return s.square().sum();
    };
    const args = [draw([5, 5], 6, "f32"), draw([4, 5], 7, "f32"), draw([6, 4, 5], 8, "f32")] as const;
    const all = { argnums: [0, 1, 2] as const };
    const got = compile((k: Tensor, h: Tensor, x: Tensor) => grad(of, all)(k, h, x), { validate: true })(...args);
    const want = compile((k: Tensor, h: Tensor, x: Tensor) => grad(written, all)(k, h, x))(...args);
    got.forEach((g, n) => {
      expectSameBits(g, want[n] as Tensor, `gradient ${n}`);
    });
  });

  it("draws the same numbers again in the reverse", () => {
    const key = random.key(3);
    const f: Scalar = (x) =>
      scan<readonly [Tensor, Tensor], null, readonly Tensor[]>(
        ([s, k]) => {
          const [now, later] = random.split(k);
          return [[dropout(s.sin().mul(1.3), 0.3, now).add(x), later], []];
        },
        [x, key],
        null,
        { length: 4 },
      )[0][0].sum();
    const plain: Scalar = (x) => {
      let [s, k] = [x, key];
      for (let n = 0; n < 4; n++) {
        const [now, later] = random.split(k);
        [s, k] = [dropout(s.sin().mul(1.3), 0.3, now).add(x), later];
      }
      return s.sum();
    };
    expectDerivatives("dropout", f, draw([6], 9), plain);
  });

  it("of third order", () => {
    const power: Scalar = (x) => forLoop(5, f64(1), (_, s) => s.mul(x));
    expect(grad(grad(grad(power)))(f64(2)).item()).toBeCloseTo(60 * 4, 9);
    const cube = grad((x: Tensor) => jvp((v: Tensor) => grad(power)(v), [x], [f64(1)])[1]);
    expect(cube(f64(2)).item()).toBeCloseTo(60 * 4, 9);
  });
});

describe("while", () => {
  // Second derivatives of order one, or differences of them would say nothing.
  const SMALL = 1e-3;
  const turns = (x: Tensor): number => {
    let n = 0;
    for (let s = x; s.sum().item() < 30; n++) s = s.mul(x).add(s.sin());
    return n;
  };
  const of =
    (options: WhileOptions): Scalar =>
    (x) =>
      whileLoop<readonly [Tensor, Tensor]>(
        ([s]) => s.sum().less(30),
        ([s, k]) => [s.mul(x).add(s.sin()), k.add(s.mul(s).mul(0.01))],
        [x, x],
        options,
      )[1]
        .mul(SMALL)
        .sum();
  const written =
    (n: number): Scalar =>
    (x) => {
      let [s, k] = [x, x];
      for (let i = 0; i < n; i++) [s, k] = [s.mul(x).add(s.sin()), k.add(s.mul(s).mul(0.01))];
      return k.mul(SMALL).sum();
    };
  const x = f64([1.3, 1.1]);

  it.each<[string, WhileOptions]>([
    ["with a bound", { maxSteps: 40 }],
    ["without one", {}],
    ["with room for three states", { snapshots: 3 }],
    ["with room for one state", { snapshots: 1 }],
  ])("has exact derivatives %s", (name, options) => {
    expect(turns(x)).toBeGreaterThan(8);
    expectDerivatives(name, of(options), x, written(turns(x)));
  });

  it.each<[string, WhileOptions]>([
    ["with a bound", { maxSteps: 5 }],
    ["without one", {}],
  ])("that takes no turn is the derivative of what it is given, %s", (_, options) => {
    expect(grad(of(options))(f64([40, 50])).toArray()).toEqual([SMALL, SMALL]);
  });

  it("is cut off by its bound in both directions", () => {
    expectDerivatives("cut off", of({ maxSteps: 4 }), x, written(4));
  });

  it("gives the same bits whatever number of states is held", () => {
    const gradient = (options: WhileOptions): Tensor =>
      compile((v: Tensor) => grad(of(options))(v), { validate: true })(x);
    const want = gradient({ maxSteps: 64 });
    for (const snapshots of [1, 2, 3, 4, 7, 32]) {
      expectSameBits(gradient({ snapshots }), want, `${snapshots} states`);
    }
  });

  it("reverses a long loop in an arena that does not depend on its length", () => {
    const f = compile(
      (v: Tensor, n: Tensor) => grad((u: Tensor) => forLoop(n, u, (_, s) => s.mul(0.999).add(u.mul(0.001))).sum())(v),
      { validate: true },
    );
    const n = (value: number): Tensor => tensor(value, { dtype: "i32" });
    const { arenaBytes } = f.program(f64([1]), n(1));
    expect(arenaBytes).toBeLessThan(8192);
    // d/du (u·0.999ⁿ + u·0.001·Σ 0.999ᵏ) = 1
    for (const length of [0, 1, 33, 20_000]) expect(f(f64([2]), n(length)).item()).toBeCloseTo(1, 9);
  });
});

describe("branches", () => {
  const f: Scalar = (x) =>
    cond(
      x.sum().greater(0),
      (v: Tensor) => v.square().mul(v),
      (v: Tensor) => v.sin().mul(x),
      x,
    ).sum();

  it("have the derivative of the way that was taken", () => {
    expectDerivatives("true", f, f64([1, 2]), (x) => x.square().mul(x).sum());
    expectDerivatives("false", f, f64([-1, -2]), (x) => x.sin().mul(x).sum());
  });

  it("give zero where a way does not depend on an operand", () => {
    const g = (k: number): Scalar => {
      const index = tensor(k, { dtype: "i32" });
      return (x) => switchCase(index, [(v: Tensor) => v.sum(), () => f64(7), (v: Tensor) => v.exp().sum()], x);
    };
    expect([0, 1].map((k) => grad(g(k))(f64([1, 2])).toArray())).toEqual([
      [1, 1],
      [0, 0],
    ]);
    expectDerivatives("exp", g(2), f64([0.3, -0.2]), (x) => x.exp().sum());
  });

  it("inside of loops inside of branches", () => {
    const turn = (s: Tensor, x: Tensor): Tensor =>
      cond(
        s.sum().greater(1),
        (v: Tensor) => v.mul(0.5).mul(x),
        (v: Tensor) => v.mul(x).add(v.exp()),
        s,
      );
    const nested: Scalar = (x) =>
      cond(
        x.sum().greater(0),
        (v: Tensor) => forLoop(5, v, (_, s) => turn(s, x)).sum(),
        (v: Tensor) => v.cos().sum(),
        x,
      );
    const x0 = f64([0.4, 0.3]);
    const ways: boolean[] = [];
    let seen = x0;
    for (let n = 0; n < 5; n++) {
      const way = seen.sum().item() > 1;
      ways.push(way);
      seen = way ? seen.mul(0.5).mul(x0) : seen.mul(x0).add(seen.exp());
    }
    expect(new Set(ways).size).toBe(2);
    const written: Scalar = (x) => {
      let s = x;
      for (const way of ways) s = way ? s.mul(0.5).mul(x) : s.mul(x).add(s.exp());
      return s.sum();
    };
    expectDerivatives("nested", nested, x0, written);
    expectDerivatives("the other way", nested, f64([-0.4, -0.3]), (x) => x.cos().sum());
  });
});

describe("nesting", () => {
  it("three deep, with a while inside", () => {
    const f: Scalar = (x) =>
      forLoop(2, x, (_, a) => {
        const [b] = scan<Tensor, Tensor, Tensor>(
          (s, row) => [
            whileLoop(
              (c) => c.abs().sum().less(2),
              (c) => c.mul(1.7).add(row),
              s.add(row),
            ).tanh(),
            s,
          ],
          a,
          stack([x, x.mul(0.5)]),
        );
        return b.add(a);
      }).sum();
    expectDerivatives("three deep", f, f64([0.31, 0.22]));
  });

  it("keeps the pullback of several results apart", () => {
    const f = (x: Tensor): readonly [Tensor, Tensor] =>
      scan<Tensor, null, Tensor>((s) => [s.mul(x), s.sin()], x, null, { length: 3 });
    const x = f64([0.7]);
    const [[last], [rows]] = [f64([1]), f64([0])].map((seed) => {
      const [[, ys], pullback] = vjp(f, x);
      return pullback([seed, ys.sub(ys).add(1 - seed.data()[0]!)]);
    }) as unknown as readonly [readonly [Tensor], readonly [Tensor]];
    expectClose(last.data(), grad((v: Tensor) => f(v)[0].sum())(x).data(), 1e-12, "the last state");
    expectClose(rows.data(), grad((v: Tensor) => f(v)[1].sum())(x).data(), 1e-12, "the stack");
  });
});
