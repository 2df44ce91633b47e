/**
 * @file The transforms of Winograd's convolution and of its gradient to weights along one axis, as operations on registers:
 * every target writes them out, so that all compute the same bits.
 *
 *   Y  = Aᵀ [ Σ over channels of (G g Gᵀ) ⊙ (Bᵀ d B) ] A        d 6 × 6 of the image, g 3 × 3 weights, Y 4 × 4
 *   dg = Gᵀ [ Σ over tiles of (A dY Aᵀ) ⊙ (Bᵀ d B) ] G
 *
 * A convolution of polynomials is a product of their values at as many points as the result has coefficients: 36 products
 * for 16 results, where the definition takes 144. Points (Toom, Cook; for images Winograd 1980 and Lavin, Gray 2015,
 * arxiv.org/abs/1509.09308) are usually 0, ±1, ±2, ∞, which lose a decimal digit; 0, ±3/4, ±3/2, ∞ lose half of one, since
 * their powers stay near 1. All coefficients of A and B are exact in f32:
 *
 *   a = 3/4, b = 3/2:   a² = 9/16   b² = 9/4   a² b² = 81/64   a² + b² = 45/16   a³ = 27/64   b³ = 8 a³
 *
 * Points come in pairs ±p, and so every transform is an even and an odd half, once added and once subtracted.
 *
 * Invariant: multiplications and additions are not contracted.
 */

/** Operations on registers, by whatever a target calls them. */
export interface RegisterOps<T> {
  add(a: T, b: T): T;
  sub(a: T, b: T): T;
  /** a times the f32 nearest to numerator / denominator. */
  scale(a: T, numerator: number, denominator: number): T;
}

/** A transform of some registers to others. */
export type Axis = <T>(ops: RegisterOps<T>, given: readonly T[]) => readonly T[];

/** e ± f, g ± h between the first and the last. */
function pairs<T>(ops: RegisterOps<T>, [e, f]: readonly [T, T], [g, h]: readonly [T, T]): readonly T[] {
  return [ops.add(e, f), ops.sub(e, f), ops.add(g, h), ops.sub(g, h)];
}

type Three<T> = readonly [T, T, T];
type Four<T> = readonly [T, T, T, T];
type Six<T> = readonly [T, T, T, T, T, T];

/** Bᵀ of six. */
export function imageAxis<T>(ops: RegisterOps<T>, given: readonly T[]): readonly T[] {
  const { add, sub, scale } = ops;
  const [d0, d1, d2, d3, d4, d5] = given as Six<T>;
  const e = sub(d4, scale(d2, 9, 4));
  const f = scale(sub(d3, scale(d1, 9, 4)), 3, 4);
  const g = sub(d4, scale(d2, 9, 16));
  const h = scale(sub(d3, scale(d1, 9, 16)), 3, 2);
  const end = (x: T, y: T, z: T): T => add(sub(scale(x, 81, 64), scale(y, 45, 16)), z);
  return [end(d0, d2, d4), ...pairs(ops, [e, f], [g, h]), end(d1, d3, d5)];
}

/** G of three. */
export function weightAxis<T>(ops: RegisterOps<T>, given: readonly T[]): readonly T[] {
  const { add, scale } = ops;
  const [g0, g1, g2] = given as Three<T>;
  const e = scale(add(g0, scale(g2, 9, 16)), -128, 243);
  const f = scale(g1, -96, 243);
  const p = scale(add(g0, scale(g2, 9, 4)), 32, 243);
  const q = scale(g1, 48, 243);
  return [scale(g0, 64, 81), ...pairs(ops, [e, f], [p, q]), g2];
}

/** Aᵀ of six. */
export function sumAxis<T>({ add, sub, scale }: RegisterOps<T>, given: readonly T[]): readonly T[] {
  const [m0, m1, m2, m3, m4, m5] = given as Six<T>;
  const [e, f, g, h] = [add(m1, m2), sub(m1, m2), add(m3, m4), sub(m3, m4)];
  return [
    add(add(m0, e), g),
    scale(add(f, scale(h, 2, 1)), 3, 4),
    scale(add(e, scale(g, 4, 1)), 9, 16),
    add(scale(add(f, scale(h, 8, 1)), 27, 64), m5),
  ];
}

/** A of four: a gradient as the transpose of the sums sees it. */
export function gradientAxis<T>(ops: RegisterOps<T>, given: readonly T[]): readonly T[] {
  const { add, scale } = ops;
  const [y0, y1, y2, y3] = given as Four<T>;
  const e = add(y0, scale(y2, 9, 16));
  const f = scale(add(y1, scale(y3, 9, 16)), 3, 4);
  const g = add(y0, scale(y2, 9, 4));
  const h = scale(add(y1, scale(y3, 9, 4)), 3, 2);
  return [y0, ...pairs(ops, [e, f], [g, h]), y3];
}

/** Gᵀ of six. */
export function weightSumAxis<T>({ add, sub, scale }: RegisterOps<T>, given: readonly T[]): readonly T[] {
  const [m0, m1, m2, m3, m4, m5] = given as Six<T>;
  const e = scale(add(m1, m2), -128, 243);
  const g = scale(add(m3, m4), 32, 243);
  return [
    add(add(scale(m0, 64, 81), e), g),
    sub(scale(sub(m3, m4), 48, 243), scale(sub(m1, m2), 96, 243)),
    add(add(scale(e, 9, 16), scale(g, 9, 4)), m5),
  ];
}
