/**
 * @file Long trajectories in the memory of one state. A step of leapfrog is half a drift, a kick, half a drift; each
 * adds to one half of the state a function of the other, so it can be undone (api/coupling.ts):
 *
 *   q ── + ───┬──────── + ── q'        q ← q + ½h v
 *       ½h    a        ½h              v ← v + h a(q)
 *   v ──┴──── + ────────┴─── v'        q ← q + ½h v
 *
 * With positions and velocities on a grid every step is undone bit by bit, so that the backward pass sees the same
 * trajectory (D. Levesque, L. Verlet, J. Stat. Phys. 72, 1993); off a grid rounding errors grow as the motion spreads
 * them, which for chaotic motion is fast.
 */
import { additiveCoupling, type CouplingOptions, type Halves, onGrid } from "../api/coupling.ts";
import { add, mul, sub } from "../api/elementwise.ts";
import { type Reversible, reversible, reversibleChain, reversibleLoop } from "../api/reversible.ts";
import { map as mapTrees } from "../api/tree.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import { requirePositive } from "./times.ts";

/** Options of {@link reversibleLeapfrog}. */
export interface ReversibleLeapfrogOptions {
  readonly dt: number;
  readonly steps: number;
  /** A power of two to whose multiples kicks and drifts are rounded; `onGrid` puts the first state there. */
  readonly grid?: number;
}

const OPTIONS: OptionKinds<ReversibleLeapfrogOptions> = { dt: "a number", steps: "a number", grid: "a number" };

/** [q, v] → [q + ½h v, v]. */
function halfDrift<Q extends Tree>(dt: number, { grid }: CouplingOptions): Reversible<Halves<Q>, Halves<Q>> {
  const way = (v: Q): Q => {
    const scaled = mapTrees((x) => mul(x, dt / 2), v);
    return grid === undefined ? scaled : onGrid(scaled, grid);
  };
  return reversible<Halves<Q>>(
    ([q, v]) => [mapTrees((x, d) => add(x, d), q, way(v)), v],
    ([q, v]) => [mapTrees((x, d) => sub(x, d), q, way(v)), v],
  );
}

/**
 * The motion of [positions, velocities] under an acceleration a(q, params), as a reversible block: the backward pass
 * keeps the last state alone and runs the motion backwards, so its memory does not depend on the number of steps.
 *
 * @memory Its derivative keeps the last state alone, whatever the number of steps.
 *
 * @example
 * import { drift, onGrid, type Tensor, tensor } from "tidemark";
 * import { reversibleLeapfrog } from "tidemark/sim";
 *
 * const spring = (q: Tensor, k: Tensor) => q.mul(k).neg();
 * const swing = reversibleLeapfrog(spring, { dt: 0.01, steps: 1000, grid: 2 ** -18 });
 * const start = onGrid([tensor([1]), tensor([0])] as const, 2 ** -18);
 * console.log(drift(swing, start, tensor([4])).item()); // 0
 */
export function reversibleLeapfrog<Q extends Tree = Tensor, P extends Tree = Tree>(
  acceleration: (q: Q, params: P) => Q,
  options: ReversibleLeapfrogOptions,
): Reversible<Halves<Q>, Halves<Q>, P> {
  const name = "reversibleLeapfrog";
  requireFunction(name, "the acceleration", acceleration, `${name}((q) => q.neg(), { dt: 0.01, steps: 1000 })`);
  requireOptions(name, options, OPTIONS);
  const { dt, steps, grid } = options;
  requirePositive(name, "steps", steps);
  if (!Number.isFinite(dt)) fail("InvalidArgument", `${name}: dt is ${describe(dt)}`, "give the size of a step");
  const coupling: CouplingOptions = grid === undefined ? {} : { grid };
  const drifted = (v: Q): Q => mapTrees((x) => mul(x, dt / 2), v);
  const kicked = (q: Q, params: P): Q => mapTrees((a) => mul(a, dt), acceleration(q, params));
  const first = additiveCoupling<Q, Tree, P>(drifted, kicked, coupling);
  const second = halfDrift<Q>(dt, coupling);
  const { rule } = reversibleLoop(
    reversibleChain<Halves<Q>, Tree>(first as unknown as Reversible<Halves<Q>>, second),
    steps,
  );
  // The parameters of the two parts: [] for the drifts.
  const parts = (params: P): readonly Tree[] => [[[], params], []];
  return reversible<Halves<Q>, P>(
    (x, params) => rule.forward(x, parts(params)),
    (y, params) => rule.inverse(y, parts(params)),
    {
      backward: (y, params, cotangent) => {
        const [x, dx, slopes] = rule.backward(y, parts(params), cotangent);
        return [x, dx, (slopes[0] as readonly [Tree, P])[1]];
      },
    },
  );
}
