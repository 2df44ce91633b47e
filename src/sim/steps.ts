/**
 * @file One step of a method, from (t, y) to t + h. Explicit Runge-Kutta methods are rows of numbers:
 *
 *   c₂ │ a₂₁
 *   c₃ │ a₃₁ a₃₂              kᵢ = f(y + h Σ aᵢⱼ kⱼ, t + cᵢ h)
 *   …  │                      y' = y + h Σ bᵢ kᵢ
 *   ───┼───────────
 *      │ b₁  b₂  b₃
 *
 * J. R. Dormand, P. J. Prince, J. Comput. Appl. Math. 6, 1980; the polynomial between the ends of a step is the one of
 * E. Hairer, S. Nørsett, G. Wanner, "Solving Ordinary Differential Equations I", II.6.
 */
import { add, mul } from "../api/elementwise.ts";
import { at } from "../base/invariant.ts";
import type { Tensor } from "../trace/tensor.ts";
import { advance, type Field, type Leaves, type Term } from "./state.ts";

export interface Tableau {
  /** Where in the step each stage is, from the second on. */
  readonly c: readonly number[];
  readonly a: readonly (readonly number[])[];
  readonly b: readonly number[];
}

export const EULER: Tableau = { c: [], a: [], b: [1] };

export const RK4: Tableau = {
  c: [1 / 2, 1 / 2, 1],
  a: [[1 / 2], [0, 1 / 2], [0, 0, 1]],
  b: [1 / 6, 1 / 3, 1 / 3, 1 / 6],
};

/** Its last stage is the first of the next step. */
export const DOPRI5: Tableau = {
  c: [1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1],
  a: [
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
  ],
  b: [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
};

/** Weights of order four in addition to those of order five: their difference estimates the error of a step. */
export const DOPRI5_EMBEDDED: readonly number[] = [
  5179 / 57600,
  0,
  7571 / 16695,
  393 / 640,
  -92097 / 339200,
  187 / 2100,
  1 / 40,
];

/** Weights of the term of the highest order in the polynomial over a step. */
export const DOPRI5_BEND: readonly number[] = [
  -12715105075 / 11282082432,
  0,
  87487479700 / 32700410799,
  -10690763975 / 1880347072,
  701980252875 / 199316789632,
  -1453857185 / 822651844,
  69997945 / 29380423,
];

export const weighted = (weights: readonly number[], ks: readonly Leaves[]): readonly Term[] =>
  weights.map((weight, i) => [weight, at(ks, i)] as const);

/** Where a step starts: the state y at t, and its slope k. */
export interface StepStart {
  readonly t: Tensor;
  readonly y: Leaves;
  readonly k: Leaves;
}

/** The slopes at all stages; the first is given, since some methods know it from the step before. */
export function stages({ c, a }: Tableau, field: Field, { t, y, k }: StepStart, h: Tensor): readonly Leaves[] {
  const ks: Leaves[] = [k];
  for (const [i, row] of a.entries()) ks.push(field(advance(y, h, weighted(row, ks)), add(t, mul(h, at(c, i)))));
  return ks;
}

/** A step of fixed size. */
export type Step = (field: Field, y: Leaves, t: Tensor, h: Tensor) => Leaves;

export function rungeKutta(tableau: Tableau): Step {
  const used = tableau.b.findLastIndex((weight) => weight !== 0) + 1;
  const short = { c: tableau.c.slice(0, used - 1), a: tableau.a.slice(0, used - 1), b: tableau.b.slice(0, used) };
  return (field, y, t, h) => advance(y, h, weighted(short.b, stages(short, field, { t, y, k: field(y, t) }, h)));
}

/**
 * Half a drift, a kick, half a drift: the first half of the state (positions) and the second (velocities) in turn, each
 * moved by its own part of the field. Second order, and symplectic if each part depends only on the other half; the
 * unused part of the field's result is removed as dead code.
 */
export const leapfrog: Step = (field, y, t, h) => {
  const half = y.length / 2;
  const drift = (state: Leaves, at: Tensor): Leaves => {
    const rates = field(state, at).slice(0, half);
    return [...advance(state.slice(0, half), mul(h, 0.5), [[1, rates]]), ...state.slice(half)];
  };
  const first = drift(y, t);
  const rates = field(first, add(t, mul(h, 0.5))).slice(half);
  const kicked = [...first.slice(0, half), ...advance(first.slice(half), h, [[1, rates]])];
  return drift(kicked, add(t, h));
};
