/**
 * @file GaLore (J. Zhao and others, ICML 2024): Adam on gradients of matrices that are projected to a few dimensions. The moments of a
 * matrix n × m with n ≤ m are r × m, and so is the projection n × r; a matrix with n > m is projected from the other side.
 *
 *   R = Pᵀ·G      m ← β₁·m + (1-β₁)·R      v ← β₂·v + (1-β₂)·R²
 *   p ← p·(1 - lr·λ) - lr/(1-β₁ᵗ) · α·P·(m / (√v/√(1-β₂ᵗ) + ε))
 *
 * Every `every` steps P becomes a basis of the largest left singular vectors of G. The publication computes a whole singular value
 * decomposition; here it is two steps of subspace iteration from columns drawn with one key (N. Halko and
 * others, Finding structure with randomness, 2011, algorithm 4.4), which is a few products and triangular factors of n × r.
 */
import { remainder } from "../api/arithmetic.ts";
import { cond } from "../api/control.ts";
import { normal } from "../api/draws.ts";
import { add, div, equal, mul, sqrt, square, sub } from "../api/elementwise.ts";
import { key } from "../api/keys.ts";
import { qr } from "../api/linalg.ts";
import { matmul } from "../api/linear.ts";
import { at } from "../base/invariant.ts";
import { type Shape, type TensorType, tensorType } from "../ir/type.ts";
import type { FloatType } from "../kernel/dtype.ts";
import { fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { type AdamScalars, adamScalars, MOMENT_OPTIONS, type MomentOptions, momentSettings } from "./adam.ts";
import { type Leaf, type Optimizer, optimizer, requireRanges } from "./optimizer.ts";

/** Options of {@link galore}. */
export interface GaloreOptions extends MomentOptions {
  /** Dimensions that gradients are projected to; 128 by default. */
  readonly rank?: number;
  /** Steps between two projections; 200 by default. */
  readonly every?: number;
  /** The factor α of projected updates; 0.25 by default. */
  readonly scale?: number;
  /** Which matrices are projected, by path; by default all whose extents are both above the rank. */
  readonly projects?: (path: string) => boolean;
}

const OPTIONS: OptionKinds<GaloreOptions> = {
  ...MOMENT_OPTIONS,
  rank: "a number",
  every: "a number",
  scale: "a number",
  projects: "a function",
};

/** Steps of subspace iteration after the first product. */
const ITERATIONS = 2;
const SEED = 0x6a10;

interface Scalars extends AdamScalars {
  /** Whether this update computes projections. */
  readonly refreshes: Tensor;
}

/** Of a matrix that is projected: the side, and types of its projection and moments; null for others. */
interface Projection {
  readonly isWide: boolean;
  readonly projection: Shape;
  readonly moments: Shape;
}

/** A basis of the largest left singular vectors of a matrix with at least as many columns as rows, or of its transpose. */
function basisOf(g: Tensor, rank: number, isWide: boolean): Tensor {
  const [rows, columns] = [at(g.shape, 0), at(g.shape, 1)];
  const times = (x: Tensor): Tensor => matmul(g, x, { ta: !isWide });
  const back = (x: Tensor): Tensor => matmul(g, x, { ta: isWide });
  let q = qr(times(normal(key(SEED), [isWide ? columns : rows, rank], g.dtype as FloatType))).q;
  for (let i = 0; i < ITERATIONS; i++) q = qr(times(back(q))).q;
  return q;
}

/**
 * Adam in a space of `rank` dimensions for each matrix, which is chosen every few steps: for a matrix n × m with n ≤ m the state is
 * n·r + 2·m·r numbers where Adam has 2·n·m. Weight decay is apart from the gradient, 0 by default. The rate is 0.001 by default.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { galore } from "tidemark/optim";
 *
 * const optimizer = galore({ lr: 0.1, rank: 1 });
 * const params = { w: tensor([[1, -2], [3, 4]]) };
 * const state = optimizer.update(optimizer.init(params), params);
 * console.log(state.params.w.toArray()); // → [[1.0062, -1.9938], [2.97578, 3.97578]]
 */
export function galore(options: GaloreOptions = {}): Optimizer {
  requireOptions("galore", options, OPTIONS);
  const settings = momentSettings("galore", options);
  const { beta1, beta2, eps, weightDecay } = settings;
  const { rank = 128, every = 200, scale = 0.25, projects } = options;
  for (const [what, value] of [
    ["rank", rank],
    ["every", every],
  ] as const) {
    if (Number.isInteger(value) && value >= 1) continue;
    fail("InvalidArgument", `galore: ${what} ${value}`, "give a whole number from 1 up");
  }
  requireRanges("galore", [["scale", scale, Number.MIN_VALUE, Number.POSITIVE_INFINITY]]);

  const projectionOf = (path: string, shape: Shape): Projection | null => {
    const [n = 0, m = 0] = shape;
    if (shape.length !== 2 || Math.min(n, m) <= rank || projects?.(path) === false) return null;
    const isWide = n <= m;
    return { isWide, projection: [isWide ? n : m, rank], moments: isWide ? [rank, m] : [n, rank] };
  };
  const slotType = (slot: string, param: TensorType, path: string): TensorType => {
    const projected = projectionOf(path, param.shape);
    if (!projected) return slot === "p" ? tensorType(param.dtype, [0]) : param;
    return tensorType(param.dtype, slot === "p" ? projected.projection : projected.moments);
  };
  const update = ({ path, param, grad, slots }: Leaf, { stepSize, inverse, shrink, refreshes }: Scalars) => {
    const projected = projectionOf(path, param.shape);
    const { isWide = true } = projected ?? {};
    const p = projected
      ? cond<[Tensor, Tensor]>(
          refreshes,
          (g) => basisOf(g, rank, isWide),
          (_, past) => past,
          ...([grad, slots.p as Tensor] as const),
        )
      : (slots.p as Tensor);
    const within = isWide ? (x: Tensor) => matmul(p, x, { ta: true }) : (x: Tensor) => matmul(x, p);
    const outside = isWide ? (x: Tensor) => matmul(p, x) : (x: Tensor) => matmul(x, p, { tb: true });
    const g = projected ? within(grad) : grad;
    const m = add(mul(slots.m as Tensor, beta1), mul(g, 1 - beta1));
    const v = add(mul(slots.v as Tensor, beta2), mul(square(g), 1 - beta2));
    const direction = div(m, add(mul(sqrt(v), inverse), eps));
    const step = projected ? mul(outside(direction), scale) : direction;
    const decayed = weightDecay > 0 && options.decays?.(path) !== false ? mul(param, shrink) : param;
    return { param: sub(decayed, mul(step, stepSize)), slots: { m, v, p } };
  };
  const rule = {
    name: "galore",
    slots: { m: 0, v: 0, p: 0 },
    slotType,
    scalars: (rate: Tensor | number, t: Tensor): Scalars => ({
      ...adamScalars(settings, rate, t),
      refreshes: equal(remainder(sub(t, 1), every), 0),
    }),
    update,
  };
  return optimizer(rule, options.lr ?? 0.001, options);
}
