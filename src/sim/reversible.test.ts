/** @file Leapfrog that is run backwards: bits on a grid, gradients against the kept trajectory, memory. */
import { describe, expect, it } from "vitest";
import { compile, drift, grad, onGrid, spec, type Tensor, tensor } from "../api/index.ts";
import { odeint, reversibleLeapfrog } from "./index.ts";

type State = readonly [Tensor, Tensor];

const f64 = (data: number | number[]): Tensor => tensor(data, { dtype: "f64" });
/** Two springs to a wall and one that is not linear between the masses: chaotic enough to spread errors. */
const acceleration = (q: Tensor, k: Tensor): Tensor => q.mul(k).neg().sub(q.mul(q).mul(q)).add(q.flip());
const START: State = [f64([1, -0.4]), f64([0.3, 0])];

describe("reversible leapfrog", () => {
  it("moves like the leapfrog of odeint", () => {
    const motion = reversibleLeapfrog(acceleration, { dt: 0.01, steps: 300 });
    const [q, v] = motion(START, f64(1.5));
    const rates = ([x, y]: State): State => [y, acceleration(x, f64(1.5))];
    const [wantedQ, wantedV] = odeint(rates, START, { from: 0, to: 3, steps: 300 }, { method: "leapfrog" });
    expect(q.sub(wantedQ).abs().max().item()).toBeLessThan(1e-12);
    expect(v.sub(wantedV).abs().max().item()).toBeLessThan(1e-12);
  });

  it("on a grid goes 20,000 steps there and back to the same bits, f64 and f32", () => {
    for (const [dtype, grid] of [
      ["f64", 2 ** -40],
      ["f32", 2 ** -18],
    ] as const) {
      const motion = reversibleLeapfrog(acceleration, { dt: 0.01, steps: 20_000, grid });
      const start = onGrid(START.map((half) => half.cast(dtype)) as unknown as State, grid);
      expect(drift(motion, start, tensor(1.5, { dtype })).item()).toBe(0);
      const loose = reversibleLeapfrog(acceleration, { dt: 0.01, steps: 20_000 });
      expect(drift(loose, start, tensor(1.5, { dtype })).item()).toBeGreaterThan(0);
    }
  });

  it("has the gradient of the trajectory that was kept, to the last digits on a grid", () => {
    const grid = 2 ** -44;
    const loss = ([q, v]: State): Tensor => q.square().sum().add(v.sum());
    const motion = reversibleLeapfrog(acceleration, { dt: 0.01, steps: 500, grid });
    const { forward } = motion.rule;
    const slopes = (run: (s: State, k: Tensor) => State) =>
      grad((s: State, k: Tensor) => loss(run(s, k)), { argnums: [0, 1] })(onGrid(START, grid), f64(1.5));
    // The rule's forward is the plain function: differentiated as a loop, it keeps every step.
    const [[ownState, ownK], [wantedState, wantedK]] = [slopes(motion), slopes(forward)];
    expect(ownK.item() / wantedK.item()).toBeCloseTo(1, 12);
    for (const half of [0, 1] as const) {
      expect(ownState[half].sub(wantedState[half]).abs().max().item()).toBeLessThan(1e-11);
    }
  });

  it("is differentiated in an arena that does not depend on the number of steps", () => {
    const bytes = (steps: number): number => {
      const motion = reversibleLeapfrog((q: Tensor) => q.sin().neg(), { dt: 0.01, steps });
      const slope = (s: State) => grad((w: State) => motion(w)[0].sum())(s);
      return compile(slope).program([spec([1000]), spec([1000])]).arenaBytes;
    };
    expect(bytes(1_000_000)).toBe(bytes(10));
  });

  it("refuses steps that are none", () => {
    expect(() => reversibleLeapfrog((q) => q, { dt: 0.1, steps: 0 })).toThrow(/steps is 0/);
    expect(() => reversibleLeapfrog((q) => q, { dt: Number.NaN, steps: 1 })).toThrow(/dt is NaN/);
    expect(() => reversibleLeapfrog((q) => q, { dt: 0.1, steps: 1, grid: 0.1 })).toThrow(/power of two/);
  });
});
