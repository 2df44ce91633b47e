/**
 * @file Ordinary differential equations y' = f(y, t) inside of programs. Steps of equal size are a `scan`, steps chosen by
 * a tolerance a `whileLoop`; both are loops of the module, so programs do not grow with the number of steps, and both
 * are differentiated like any other loop: gradients are those of the steps taken (discrete adjoints), not of another
 * equation solved backwards, and the planner decides what of the trajectory is kept.
 */

import { forLoop, scan } from "../api/control.ts";
import { add, cast, mul, sub } from "../api/elementwise.ts";
import { concat } from "../api/join.ts";
import { fullOf } from "../api/operands.ts";
import { expandDims, reshape, slice } from "../api/shape.ts";
import { grouped } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import type { FloatScalar } from "../kernel/dtype.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { currentTrace } from "../trace/trace.ts";
import type { Tree } from "../trace/tree.ts";
import { begin, type Control, type Cursor, goalOf, proceed, stateAt, statusOf } from "./adaptive.ts";
import { type Leaves, type System, systemOf } from "./state.ts";
import { DOPRI5, EULER, leapfrog, RK4, rungeKutta, type Step } from "./steps.ts";
import { type ReadTimes, readTimes, requirePositive, type Times } from "./times.ts";

/** Methods of integration. */
export type Method = "euler" | "leapfrog" | "rk4" | "dopri5";

/** Options of {@link odeint} and {@link odeSolve}. */
export interface OdeOptions {
  /** "dopri5" by default, or "rk4" where the number of steps is given. */
  readonly method?: Method;
  /** Equal steps between two points, for methods other than "dopri5"; 1 by default. */
  readonly substeps?: number;
  /** Error of a step that "dopri5" tolerates: atol + rtol · |y|. By default 1e-5 and 1e-7; for f64 1e-8 and 1e-10. */
  readonly rtol?: number;
  readonly atol?: number;
  /** Attempts that "dopri5" has for the whole solution; 10,000 by default. */
  readonly maxSteps?: number;
  /** The largest first attempt of "dopri5"; tolerance and curvature may require less. */
  readonly firstStep?: number;
  /**
   * States that the reverse of "dopri5" keeps at once; others are recomputed. By default as many as `memory` of
   * `compile` allows.
   */
  readonly snapshots?: number;
}

const OPTIONS: OptionKinds<OdeOptions> = {
  method: "anything",
  substeps: "a number",
  rtol: "a number",
  atol: "a number",
  maxSteps: "a number",
  firstStep: "a number",
  snapshots: "a number",
};

/** A solution with how it was reached. */
export interface Solution<S extends Tree> {
  /** The state at the end of a span, or at all points along a first axis; NaN if not reached. */
  readonly y: S;
  /** 0: complete. 1: not within maxSteps. 2: steps became too small to move. i32[]. */
  readonly status: Tensor;
  /** Steps, including rejected attempts, i32[]. */
  readonly steps: Tensor;
  /** The time reached, f64[]. */
  readonly reached: Tensor;
}

const STEPS: Readonly<Record<Method, Step>> = {
  euler: rungeKutta(EULER),
  leapfrog,
  rk4: rungeKutta(RK4),
  dopri5: rungeKutta(DOPRI5),
};

/** Leaves of a solution, in place of the tree. */
type Solved = Omit<Solution<Tree>, "y"> & { readonly y: Leaves };

function requireHalves(name: string, { y0 }: System<Tree>, state: unknown): void {
  const half = y0.length / 2;
  const same = (a: Tensor, b: Tensor | undefined): boolean => a.dtype === b?.dtype && `${a.shape}` === `${b.shape}`;
  const isPair = Array.isArray(state) && state.length === 2 && Number.isInteger(half);
  if (isPair && y0.slice(0, half).every((leaf, i) => same(leaf, y0[half + i]))) return;
  const summary = `${name}: "leapfrog" on a state that is ${describe(state)}`;
  fail("InvalidTree", summary, "give [positions, velocities], two trees of one structure and type");
}

const i32 = (value: number): Tensor => fullOf("i32", [], value);
const complete = (y: Leaves, steps: number, reached: Tensor): Solved => ({
  y,
  status: i32(0),
  steps: i32(steps),
  reached,
});

/** `count` equal steps from one time to another. */
interface Stretch {
  readonly from: Tensor;
  readonly to: Tensor;
  readonly count: number;
}

function march({ field }: System<Tree>, step: Step, y: Leaves, { from, to, count }: Stretch): Leaves {
  const h = mul(sub(to, from), 1 / count);
  if (count === 1) return step(field, y, from, h);
  return forLoop<Leaves>(count, y, (i, state) => step(field, state, add(from, mul(cast(i, "f64"), h)), h));
}

/** Consecutive points as pairs of stacks. */
function intervals(points: Tensor, count: number): readonly [Tensor, Tensor] {
  return [slice(points, [[0, count - 1]]), slice(points, [[1, count]])];
}

const pointAt = (points: Tensor, i: number): Tensor => reshape(slice(points, [[i, i + 1]]), []);

/** The first state before the stack of the others. */
const following = (y0: Leaves, stacks: Leaves): Leaves =>
  y0.map((leaf, i) => concat([expandDims(leaf, 0), at(stacks, i)], 0));

function fixed(system: System<Tree>, method: Method, times: ReadTimes, substeps: number): Solved {
  const step = STEPS[method];
  if (times.kind === "span") {
    const steps = times.steps ?? substeps;
    const { from, to } = times;
    return complete(march(system, step, system.y0, { from, to, count: steps }), steps, to);
  }
  const { points, count } = times;
  const rows = intervals(points, count);
  const [, stacks] = scan<Leaves, readonly [Tensor, Tensor], Leaves>(
    (y, [from, to]) => {
      const next = march(system, step, y, { from, to, count: substeps });
      return [next, next];
    },
    system.y0,
    rows,
  );
  return complete(following(system.y0, stacks), (count - 1) * substeps, pointAt(points, count - 1));
}

function adaptive(system: System<Tree>, control: Control, times: ReadTimes): Solved {
  const { field, y0 } = system;
  const reads = times.kind === "points";
  const from = reads ? pointAt(times.points, 0) : times.from;
  const goal = goalOf(from, reads ? pointAt(times.points, times.count - 1) : times.to);
  const integration = { field, control, goal };
  const start = begin(integration, from, y0, reads);
  const solved = (cursor: Cursor, y: Leaves): Solved => {
    return { y, status: statusOf(control, goal, cursor), steps: cursor.tries, reached: cursor.t };
  };
  if (!reads) {
    const cursor = proceed(integration, goal.end, start);
    return solved(cursor, stateAt(goal, goal.end, cursor));
  }
  const [, targets] = intervals(times.points, times.count);
  const [cursor, stacks] = scan<Cursor, Tensor, Leaves>(
    (before, target) => {
      const after = proceed(integration, target, before);
      return [after, stateAt(goal, target, after)];
    },
    start,
    targets,
  );
  return solved(cursor, following(y0, stacks));
}

/** Relative and absolute, by the type that states are added up in. */
const TOLERANCES: Readonly<Record<FloatScalar, readonly [number, number]>> = { f32: [1e-5, 1e-7], f64: [1e-8, 1e-10] };

function controlOf(name: string, options: OdeOptions, dtype: FloatScalar): Control {
  const [rtol, atol] = TOLERANCES[dtype];
  const { maxSteps = 10_000, snapshots, firstStep = Number.MAX_VALUE } = options;
  const control = { rtol: options.rtol ?? rtol, atol: options.atol ?? atol, maxSteps, snapshots, firstStep };
  requirePositive(name, "maxSteps", maxSteps);
  if (snapshots !== undefined) requirePositive(name, "snapshots", snapshots);
  for (const what of ["rtol", "atol", "firstStep"] as const) {
    const value = control[what];
    if (value > 0 && Number.isFinite(value)) continue;
    fail("InvalidArgument", `${name}: ${what} is ${value}`, "give a number above 0: { rtol: 1e-6, atol: 1e-8 }");
  }
  return control;
}

function methodOf(name: string, { method }: OdeOptions, times: ReadTimes): Method {
  const steps = times.kind === "span" ? times.steps : undefined;
  const chosen = method ?? (steps === undefined ? "dopri5" : "rk4");
  if (!Object.hasOwn(STEPS, chosen)) {
    fail("InvalidArgument", `${name}: method is ${describe(chosen)}`, `give one of ${Object.keys(STEPS).join(", ")}`);
  }
  if (times.kind === "span" && steps === undefined && chosen !== "dopri5") {
    fail(
      "InvalidArgument",
      `${name}: "${chosen}" without a number of steps`,
      "give it: { from: 0, to: 1, steps: 100 }",
    );
  }
  return chosen;
}

/** y' = f(y, t) from the state y0. */
interface InitialValueProblem<S> {
  readonly f: (y: S, t: Tensor) => S;
  readonly y0: S;
}

function solveAs<S extends Tree>(
  name: string,
  { f, y0 }: InitialValueProblem<S>,
  times: Times,
  options: OdeOptions,
): Solution<S> {
  requireFunction(name, "the right side", f, `${name}((y, t) => y.neg(), tensor(1), { from: 0, to: 1 })`);
  requireOptions(name, options, OPTIONS);
  const { substeps = 1 } = options;
  requirePositive(name, "substeps", substeps);
  const read = readTimes(name, times);
  const method = methodOf(name, options, read);
  const system = systemOf(name, f, y0);
  const inner = system as unknown as System<Tree>;
  if (method === "leapfrog") requireHalves(name, inner, y0);
  const isFixed = method !== "dopri5" || (read.kind === "span" && read.steps !== undefined);
  const solved = isFixed
    ? fixed(inner, method, read, substeps)
    : adaptive(inner, controlOf(name, options, system.dtype), read);
  return { ...solved, y: system.tree(solved.y) };
}

/**
 * Solves y' = f(y, t) like `odeint`, and returns a status instead of throwing.
 *
 * @example import { tensor } from "tidemark"; import { odeSolve } from "tidemark/sim";
 *
 * const stiff = odeSolve((y) => y.mul(-1e6), tensor(1), { from: 0, to: 1 }, { maxSteps: 50 });
 * console.log(stiff.status.item(), stiff.steps.item()); // 1 50
 */
export function odeSolve<S extends Tree = Tensor>(
  f: (y: S, t: Tensor) => S,
  y0: S,
  times: Times,
  options: OdeOptions = {},
): Solution<S> {
  return solveAs("odeSolve", { f, y0 }, times, options);
}

/** Throws if a solution is incomplete, which is known only outside programs. */
function requireComplete({ status, steps, reached }: Solution<Tree>): void {
  const [code, tried, time] = [status.item(), steps.item(), reached.item()];
  if (code === 0) return;
  const stiff = "the equation may be stiff for an explicit method, or its solution may end there";
  if (code === 1) {
    const summary = `odeint: ${grouped(tried)} steps reached only t = ${time}`;
    fail("InvalidArgument", summary, `raise maxSteps, or rtol and atol; ${stiff}`);
  }
  fail("InvalidArgument", `odeint: after ${grouped(tried)} steps no step is small enough at t = ${time}`, stiff);
}

/**
 * Solves y' = f(y, t) from y0 on. Of a span the result is the state at its end; of points it is the states at all of
 * them (the first of which is y0), along a new first axis. States are trees of f32 or f64; time may run backwards.
 * Derivatives flow to y0, to values captured by f, and to times that are tensors.
 *
 * An incomplete solution is an error outside programs; inside, states that were not reached are NaN (`odeSolve` returns
 * a status).
 *
 * @example import { grad, tensor } from "tidemark"; import { odeint } from "tidemark/sim";
 *
 * const decay = (rate: ReturnType<typeof tensor>) => odeint((y) => y.mul(rate).neg(), tensor(2), { from: 0, to: 1 });
 * console.log(decay(tensor(1)).item().toFixed(4)); // "0.7358" console.log(grad(decay)(tensor(1)).item().toFixed(4));
 * // "-0.7358" console.log(odeint((y) => y, tensor(1), [0, 0.5, 1]).shape); // [3]
 */
export function odeint<S extends Tree = Tensor>(
  f: (y: S, t: Tensor) => S,
  y0: S,
  times: Times,
  options: OdeOptions = {},
): S {
  const solution = solveAs("odeint", { f, y0 }, times, options);
  if (!currentTrace()) requireComplete(solution);
  return solution.y;
}
