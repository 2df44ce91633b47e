/**
 * @file Solvers against closed forms, their orders by halving steps, gradients against closed forms, differences and
 * forward mode, and what happens when a solution cannot be completed.
 */
import { describe, expect, it } from "vitest";
import { sharePlans } from "../../tests/support/shared-plans.ts";
import { compile, forLoop, grad, jvp, plan, spec, stack, type Tensor, tensor, valueAndGrad } from "../api/index.ts";
import { type Method, odeint, odeSolve } from "./index.ts";

sharePlans();

const f64 = (data: number | number[]): Tensor => tensor(data, { dtype: "f64" });
const valuesOf = (x: Tensor): readonly number[] => [...x.data()];
const oscillator = ([q, v]: readonly [Tensor, Tensor]): readonly [Tensor, Tensor] => [v, q.neg()];
const START = [f64(1), f64(0)] as const;

/** How a method's error at t = 2 shrinks when steps are halved, as a power of two. */
function orderOf(method: Method, steps: number): number {
  const error = (count: number): number => {
    const [q, v] = odeint(oscillator, START, { from: 0, to: 2, steps: count }, { method });
    return Math.hypot(q.item() - Math.cos(2), v.item() + Math.sin(2));
  };
  return Math.log2(error(steps) / error(2 * steps));
}

describe("steps of equal size", () => {
  it.each([
    ["euler", 1, 200],
    ["leapfrog", 2, 40],
    ["rk4", 4, 20],
    ["dopri5", 5, 10],
  ] as const)("of %s have order %d", (method, order, steps) => {
    expect(orderOf(method, steps)).toBeGreaterThan(order - 0.15);
    expect(orderOf(method, steps)).toBeLessThan(order + 0.25);
  });

  it("have their order where the right side depends on time", () => {
    // y' = 2 t y from 1 is exp(t²).
    const error = (method: Method, steps: number): number => {
      const y = odeint((x: Tensor, t) => x.mul(t).mul(2), f64(1), { from: 0, to: 1, steps }, { method });
      return Math.abs(y.item() - Math.E);
    };
    expect(Math.log2(error("rk4", 20) / error("rk4", 40))).toBeCloseTo(4, 0);
    expect(Math.log2(error("dopri5", 10) / error("dopri5", 20))).toBeCloseTo(5, 0);
  });

  it("give the states at points, with steps between them, forwards and backwards", () => {
    const points = [0, 0.5, 1.5, 2];
    const [q] = odeint(oscillator, START, points, { method: "rk4", substeps: 50 });
    expect(q.shape).toEqual([4]);
    for (const [i, t] of points.entries()) expect(valuesOf(q)[i]).toBeCloseTo(Math.cos(t), 6);
    const [back] = odeint(oscillator, START, { from: 0, to: -2, steps: 100 });
    expect(back.item()).toBeCloseTo(Math.cos(2), 6);
  });

  it("of leapfrog keep the energy of an oscillator over a thousand periods, those of rk4 lose it", () => {
    const drifted = (method: Method): number => {
      const [q, v] = odeint(oscillator, START, { from: 0, to: 2000 * Math.PI, steps: 20_000 }, { method });
      return Math.abs(q.item() ** 2 + v.item() ** 2 - 1);
    };
    expect(drifted("leapfrog")).toBeLessThan(0.03);
    expect(drifted("rk4")).toBeGreaterThan(0.03);
  });

  it("in a program are one loop: neither code nor what is kept forward grows with them", () => {
    const info = (steps: number) =>
      compile((y: Tensor) => odeint((x: Tensor) => x.sin(), y, { from: 0, to: 1, steps })).program(spec([100]));
    const [few, many] = [info(10), info(100_000)];
    expect(many.arenaBytes).toBe(few.arenaBytes);
    expect(Math.abs(many.moduleBytes - few.moduleBytes)).toBeLessThan(64);
  });

  it("have the gradients of forward mode, of the unrolled steps and of differences", () => {
    const step = (y: Tensor, k: Tensor, h: number): Tensor => {
      const f = (x: Tensor): Tensor => x.sin().mul(k);
      const a = f(y);
      const b = f(y.add(a.mul(h / 2)));
      const c = f(y.add(b.mul(h / 2)));
      const d = f(y.add(c.mul(h)));
      return y.add(
        a
          .add(b.mul(2))
          .add(c.mul(2))
          .add(d)
          .mul(h / 6),
      );
    };
    const solved = (k: Tensor): Tensor =>
      odeint((x: Tensor) => x.sin().mul(k), f64([0.5, 1]), { from: 0, to: 1, steps: 10 })
        .square()
        .sum();
    const plain = (k: Tensor): Tensor =>
      forLoop(10, f64([0.5, 1]), (_, y) => step(y, k, 0.1))
        .square()
        .sum();
    const k = f64(0.7);
    const slope = grad(solved)(k).item();
    expect(slope).toBeCloseTo(grad(plain)(k).item(), 12);
    expect(slope).toBeCloseTo(jvp(solved, [k], [f64(1)])[1].item(), 12);
    const difference = (solved(f64(0.7 + 1e-5)).item() - solved(f64(0.7 - 1e-5)).item()) / 2e-5;
    expect(slope).toBeCloseTo(difference, 7);
  });
});

describe("steps chosen by a tolerance", () => {
  it("give the exponential within the tolerance, f32 and f64, both ways", () => {
    for (const to of [1, -1, 3]) {
      expect(odeint((y) => y, f64(1), { from: 0, to }).item() / Math.exp(to)).toBeCloseTo(1, 7);
      expect(odeint((y) => y, tensor(1), { from: 0, to }).item() / Math.exp(to)).toBeCloseTo(1, 4);
    }
  });

  it("keep what the predators and the prey of Lotka and Volterra conserve", () => {
    const eaten = ({ x, y }: { x: Tensor; y: Tensor }) => ({ x: x.sub(x.mul(y)), y: x.mul(y).sub(y) });
    const points = Array.from({ length: 21 }, (_, i) => i);
    const { x, y } = odeint(eaten, { x: f64(2), y: f64(1) }, points, { rtol: 1e-9, atol: 1e-9 });
    const kept = x.sub(x.log()).add(y.sub(y.log()));
    const [first] = valuesOf(kept);
    for (const value of valuesOf(kept)) expect(value).toBeCloseTo(first as number, 6);
    expect(Math.max(...valuesOf(x)) / Math.min(...valuesOf(x))).toBeGreaterThan(3);
  });

  it("read the states at points off the steps, with the accuracy of the steps", () => {
    const points = Array.from({ length: 101 }, (_, i) => i / 25);
    const { y, steps, status } = odeSolve(oscillator, START, points, { rtol: 1e-8, atol: 1e-8 });
    expect(status.item()).toBe(0);
    // Far fewer steps than points: most are read off.
    expect(steps.item()).toBeLessThan(60);
    for (const [i, t] of points.entries())
      expect(Math.abs((valuesOf(y[0])[i] as number) - Math.cos(t))).toBeLessThan(3e-7);
  });

  it("need about as many more as an order of five says, when the tolerance is a thousandth", () => {
    const count = (tol: number): number =>
      odeSolve(oscillator, START, { from: 0, to: 20 }, { rtol: tol, atol: tol }).steps.item();
    const factor = count(1e-10) / count(1e-7);
    expect(factor).toBeGreaterThan(1000 ** (1 / 5) * 0.8);
    expect(factor).toBeLessThan(1000 ** (1 / 5) * 1.2);
  });

  it("take none over an interval without length, and give the state back", () => {
    const { y, steps, status } = odeSolve((x) => x.neg(), f64([3, 4]), { from: 2, to: 2 });
    expect([valuesOf(y), steps.item(), status.item()]).toEqual([[3, 4], 0, 0]);
    expect(valuesOf(odeint((x) => x.neg(), f64(1), [1, 1, 2]).slice([[0, 2]]))).toEqual([1, 1]);
    expect(valuesOf(odeint((x) => x.neg(), f64(1), [1]))).toEqual([1]);
    expect(odeint((x) => x.neg(), f64(3), { from: 1, to: 1, steps: 4 }).item()).toBe(3);
  });

  it("begin with a size that the right side bears, and no larger than is asked for", () => {
    // A first attempt over all of the span would overflow at its fourth stage, and leave NaN in the gradient.
    const fall = (y: Tensor): Tensor =>
      odeint((x: Tensor) => x.mul(x).mul(x).mul(-1e6), y, { from: 0, to: 1e-3 }, { firstStep: 1 });
    // y = 1 / √(1 / y0² + 2e6 t), d y / d y0 = (y / y0)³.
    const wanted = 1 / Math.sqrt(1 + 2e3);
    expect(fall(f64(1)).item()).toBeCloseTo(wanted, 6);
    expect(grad(fall)(f64(1)).item() / wanted ** 3).toBeCloseTo(1, 5);
    const steps = (firstStep: number): number =>
      odeSolve((y) => y.neg(), f64(1), { from: 0, to: 1 }, { firstStep }).steps.item();
    expect(steps(1e-9)).toBeGreaterThan(steps(1));
  });
});

describe("gradients of steps chosen by a tolerance", () => {
  const decay = (y0: Tensor, k: Tensor): Tensor =>
    odeint((y: Tensor) => y.mul(k).neg(), y0, { from: 0, to: 2 }, { rtol: 1e-10, atol: 1e-12 });

  it("are those of the closed form", () => {
    const [dy, dk] = grad(decay, { argnums: [0, 1] })(f64(3), f64(0.5));
    expect(dy.item()).toBeCloseTo(Math.exp(-1), 9);
    expect(dk.item()).toBeCloseTo(-6 * Math.exp(-1), 8);
  });

  it("agree with forward mode to the last digits, and with differences to the tolerance", () => {
    const energy = (k: Tensor): Tensor => {
      const swing = ([q, v]: readonly [Tensor, Tensor]) => [v, q.sin().mul(k).neg()] as const;
      const [q] = odeint(swing, [f64([1, 2]), f64([0, 0.5])] as const, [0, 1, 2.5, 4], { rtol: 1e-9, atol: 1e-9 });
      return q.square().sum();
    };
    const slope = grad(energy)(f64(1.3)).item();
    expect(slope).toBeCloseTo(jvp(energy, [f64(1.3)], [f64(1)])[1].item(), 10);
    const difference = (energy(f64(1.3 + 1e-4)).item() - energy(f64(1.3 - 1e-4)).item()) / 2e-4;
    expect(slope).toBeCloseTo(difference, 4);
  });

  it("go to the times too", () => {
    const at = (from: Tensor, to: Tensor): Tensor =>
      odeint((y: Tensor, t) => y.mul(t), f64(1), { from, to }, { rtol: 1e-10, atol: 1e-12 });
    // y = exp((to² - from²) / 2).
    const [dFrom, dTo] = grad(at, { argnums: [0, 1] })(f64(0.5), f64(1));
    const y = Math.exp(0.375);
    expect(dFrom.item()).toBeCloseTo(-0.5 * y, 8);
    expect(dTo.item()).toBeCloseTo(y, 8);
    const between = (t: Tensor): Tensor =>
      odeint((y: Tensor) => y, f64(1), stack([f64(0), t, f64(3)]), { rtol: 1e-10, atol: 1e-12 })
        .slice([[1, 2]])
        .sum();
    expect(grad(between)(f64(1.1)).item()).toBeCloseTo(Math.exp(1.1), 6);
  });

  it("have the same bits however few states their reverse holds, in an arena that shows it", () => {
    const loss = (snapshots: number) => (y: Tensor) =>
      odeint((x: Tensor) => x.sin(), y, { from: 0, to: 20 }, { snapshots, rtol: 1e-8 }).sum();
    const y = f64([0.1, 1, 2]);
    const slopes = [1, 3, 200].map((snapshots) => valuesOf(compile(grad(loss(snapshots)))(y)));
    expect(slopes[0]).toEqual(slopes[2]);
    expect(slopes[1]).toEqual(slopes[2]);
    const bytes = (snapshots: number): number => plan(grad(loss(snapshots)))(spec([1000], "f64")).arenaBytes;
    expect(bytes(2)).toBeLessThan(bytes(40) / 3);
  });

  it("have the same bits at every budget, at one time and at many", () => {
    const y = f64(Array.from({ length: 50 }, (_, i) => i / 50));
    const field = (k: Tensor) => (x: Tensor) => x.sin().mul(k);
    const ends: readonly ((k: Tensor) => Tensor)[] = [
      (k) => odeint(field(k), y, { from: 0, to: 9 }).sum(),
      (k) => odeint(field(k), y, [0, 1, 2.5, 4, 9]).square().sum(),
    ];
    for (const end of ends) {
      const of = (options: object) => compile((k: Tensor) => grad(end)(k), { validate: true, ...options });
      const expected = of({})(f64(1.2)).item();
      const [plain, least] = [of({}), of({ memory: "min" })].map((made) => made.program(f64(1)).arenaBytes) as [
        number,
        number,
      ];
      expect(least).toBeLessThan(plain);
      for (const memory of [least, 2 * plain]) {
        const made = of({ memory });
        expect(made.program(f64(1)).arenaBytes).toBeLessThanOrEqual(memory);
        expect(made(f64(1.2)).item(), `${memory} bytes`).toBe(expected);
      }
    }
  });

  it("are finite where an attempt overflowed and was taken back", () => {
    // y' = k - exp(200 (y - 1)): steps grow on the way to 1, and the first one that goes far beyond overflows.
    const end = (k: Tensor, rate: number): Tensor =>
      odeint((y: Tensor) => k.sub(y.sub(1).mul(rate).exp()), f64(-5), { from: 0, to: 7 });
    expect(Math.exp(200 * 5)).toBe(Number.POSITIVE_INFINITY);
    // It comes to rest where k = exp(200 (y - 1)): dy/dk = 1 / (200 k).
    expect(end(f64(1), 200).item()).toBeCloseTo(1, 6);
    expect(grad((k: Tensor) => end(k, 200))(f64(1)).item()).toBeCloseTo(1 / 200, 5);
    const pushed = jvp((k: Tensor) => end(k, 200), [f64(1)], [f64(1)])[1] as Tensor;
    expect(pushed.item()).toBeCloseTo(1 / 200, 5);
    const slope = (q: Tensor): Tensor => grad((k: Tensor) => end(k, 200))(q);
    const [twice, mixed] = [grad(slope)(f64(1)), jvp(slope, [f64(1)], [f64(1)])[1] as Tensor];
    expect(twice.item() / mixed.item(), "reverse over reverse, forward over reverse").toBeCloseTo(1, 8);
  });

  it("are there for derivatives of second order", () => {
    const twice = grad((k: Tensor) => grad((q: Tensor) => decay(f64(3), q))(k));
    expect(twice(f64(0.5)).item()).toBeCloseTo(12 * Math.exp(-1), 6);
  });
});

describe("what cannot be solved", () => {
  const stiff = (y: Tensor): Tensor => y.sub(1).mul(-1e7);

  it("is an error that says how far it came", () => {
    const solve = (): Tensor => odeint(stiff, f64(0), { from: 0, to: 1 }, { maxSteps: 200 });
    expect(solve).toThrow(/odeint: 200 steps reached only t = \d/);
    expect(solve).toThrow(/raise maxSteps.*stiff/);
  });

  it("is a status in a solution, and NaN in a program", () => {
    const { status, steps, y } = odeSolve(stiff, f64(0), { from: 0, to: 1 }, { maxSteps: 200 });
    expect([status.item(), steps.item(), y.item()]).toEqual([1, 200, Number.NaN]);
    const inside = compile((y0: Tensor) => odeint(stiff, y0, [0, 1e-7, 1], { maxSteps: 200 }))(f64(0));
    expect(valuesOf(inside).map(Number.isNaN)).toEqual([false, false, true]);
  });

  it("ends where a solution does, however many steps are left", () => {
    // y' = y² from 1 is 1 / (1 - t): there is nothing at t = 1.
    const { status, reached } = odeSolve((y) => y.square(), f64(1), { from: 0, to: 2 });
    expect(status.item()).toBeGreaterThan(0);
    expect(reached.item()).toBeCloseTo(1, 4);
    expect(() => odeint(() => f64(Number.NaN), f64(1), { from: 0, to: 1 })).toThrow(/no step is small enough at t = 0/);
  });

  it("is refused where the question is wrong", () => {
    const f = (y: Tensor): Tensor => y.neg();
    const y = tensor(1);
    const wrong: readonly (readonly [() => unknown, RegExp])[] = [
      [() => odeint(f, y, [0, 2, 1]), /time 2 is 1 after 2/],
      [() => odeint(f, y, []), /there are no times/],
      [() => odeint(f, y, [0, Number.NaN]), /time 1 is NaN/],
      [() => odeint(f, y, { from: 0, to: 1 }, { method: "rk4" }), /"rk4" without a number of steps/],
      [() => odeint(f, y, { from: 0, to: 1, steps: 0 }), /steps is 0/],
      [() => odeint(f, y, { from: 0, to: 1 }, { method: "rk5" as Method }), /euler, leapfrog, rk4, dopri5/],
      [() => odeint(f, y, { from: 0, to: 1 }, { rtol: -1 }), /rtol is -1/],
      [() => odeint(f, y, { from: 0, to: 1, steps: 3 }, { method: "leapfrog" }), /positions, velocities/],
      [() => odeint(() => tensor([1, 2]), y, { from: 0, to: 1 }), /rate of change of y0 is f32\[2\]/],
      [() => odeint(f, tensor(1, { dtype: "i32" }), { from: 0, to: 1 }), /no rate of change can be added/],
      [() => odeint(f, y, { from: 0, to: 1 }, { tol: 1 } as object), /there is no option tol/],
    ];
    for (const [run, message] of wrong) expect(run).toThrow(message);
  });
});

describe("in training", () => {
  it("a rate is found again from points of a solution", () => {
    const points = [0, 0.5, 1, 1.5, 2];
    const model = (k: Tensor): Tensor => odeint((y: Tensor) => y.mul(k).neg(), f64(1), points);
    const wanted = f64(points.map((t) => Math.exp(-0.8 * t)));
    const step = compile((k: Tensor) => {
      const [loss, slope] = valueAndGrad((q: Tensor) => model(q).sub(wanted).square().sum())(k);
      return [k.sub(slope.mul(0.5)), loss] as const;
    });
    let k = f64(0.2);
    for (let i = 0; i < 60; i++) [k] = step(k);
    expect(k.item()).toBeCloseTo(0.8, 5);
  });
});
