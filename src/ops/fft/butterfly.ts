/**
 * @file Fourier transforms of a few numbers as expressions: y_j = Σ_k x_k · e^(±2πi·jk/r), all r of them at once.
 *
 * Primes add and subtract the pairs k and r - k first, which halves the products:
 *
 *   y_j, y_(r-j) = x_0 + Σ cos(2πjk/r) (x_k + x_(r-k))  ±  i Σ sin(2πjk/r) (x_k - x_(r-k))       k from 1 to (r - 1) / 2
 *
 * Other numbers r = p · q are p-point transforms, factors that are constants, and q-point transforms. The order of the sums is part of
 * the operation.
 */
import { at, invariant } from "../../base/invariant.ts";
import type { Expr } from "../../kernel/expr.ts";
import * as scalar from "../../kernel/scalar-ops.ts";
import { type Root, rootNumber } from "./roots.ts";

/** Null is zero. */
type Part = Expr | null;

export interface Complex {
  readonly re: Part;
  readonly im: Part;
}

/** The sign of the exponent: -1 forward, 1 in the inverse. */
export type Sign = 1 | -1;

/** What an expression negates: a sum with -x is a difference, to the last bit. */
const negated = (a: Expr): Expr | undefined => (a.kind === "call" && a.fn === "neg" ? a.args[0] : undefined);
const negPart = (a: Part): Part => a && (negated(a) ?? scalar.neg(a));

function addPart(a: Part, b: Part): Part {
  if (!a || !b) return a ?? b;
  const minus = negated(b);
  return minus ? scalar.sub(a, minus) : scalar.add(a, b);
}

function subPart(a: Part, b: Part): Part {
  if (!a || !b) return a ?? negPart(b);
  const minus = negated(b);
  return minus ? scalar.add(a, minus) : scalar.sub(a, b);
}

const mulPart = (a: Part, by: number | Expr): Part => a && scalar.mul(a, by);

export const addComplex = (a: Complex, b: Complex): Complex => ({ re: addPart(a.re, b.re), im: addPart(a.im, b.im) });
export const subComplex = (a: Complex, b: Complex): Complex => ({ re: subPart(a.re, b.re), im: subPart(a.im, b.im) });
export const conjugate = ({ re, im }: Complex): Complex => ({ re, im: negPart(im) });
export const scaleComplex = ({ re, im }: Complex, by: number): Complex =>
  by === 1 ? { re, im } : { re: mulPart(re, by), im: mulPart(im, by) };

/** i · a, or -i · a. */
export const timesI = ({ re, im }: Complex, sign: Sign): Complex =>
  sign > 0 ? { re: negPart(im), im: re } : { re: im, im: negPart(re) };

/** a · (cos ± i sin). */
export function timesRoot({ re, im }: Complex, { cos, sin }: Root<number | Expr>, sign: Sign): Complex {
  const [x, y] = [mulPart(im, sin), mulPart(re, sin)];
  return sign > 0
    ? { re: subPart(mulPart(re, cos), x), im: addPart(mulPart(im, cos), y) }
    : { re: addPart(mulPart(re, cos), x), im: subPart(mulPart(im, cos), y) };
}

/** The product of two numbers that have both parts. */
export function mulComplex(a: Complex, b: Complex): Complex {
  invariant(b.re && b.im, () => "a factor without parts");
  return {
    re: subPart(mulPart(a.re, b.re), mulPart(a.im, b.im)),
    im: addPart(mulPart(a.re, b.im), mulPart(a.im, b.re)),
  };
}

/** a · e^(±2πi·t/r), without products where there is nothing to multiply. */
function timesConstant(a: Complex, t: number, r: number, sign: Sign): Complex {
  const eighth = (8 * t) / r;
  if (eighth === 0) return a;
  if (eighth === 2) return timesI(a, sign);
  if (eighth === 4) return { re: negPart(a.re), im: negPart(a.im) };
  if (eighth === 6) return timesI(a, sign > 0 ? -1 : 1);
  if (Number.isInteger(eighth)) {
    // (±1 ± i) / √2 · a is a sum and a difference, times one number
    const turned = timesI(a, sign);
    const whole = eighth === 1 || eighth === 7 ? a : { re: negPart(a.re), im: negPart(a.im) };
    const sum = eighth < 4 ? addComplex(whole, turned) : subComplex(whole, turned);
    return scaleComplex(sum, Math.SQRT1_2);
  }
  return timesRoot(a, rootNumber(t, r), sign);
}

function ofTwo([a, b]: readonly Complex[]): readonly Complex[] {
  invariant(a && b, () => "two numbers");
  return [addComplex(a, b), subComplex(a, b)];
}

function ofPrime(x: readonly Complex[], sign: Sign): readonly Complex[] {
  const r = x.length;
  const half = (r - 1) / 2;
  const first = at(x, 0);
  const sums = Array.from({ length: half }, (_, k) => addComplex(at(x, k + 1), at(x, r - 1 - k)));
  const differences = Array.from({ length: half }, (_, k) => subComplex(at(x, k + 1), at(x, r - 1 - k)));
  const y: Complex[] = new Array(r);
  y[0] = sums.reduce(addComplex, first);
  for (let j = 1; j <= half; j++) {
    const even = sums.reduce((sum, s, k) => addComplex(sum, scaleComplex(s, rootNumber(j * (k + 1), r).cos)), first);
    const odd = differences
      .map((d, k) => scaleComplex(d, rootNumber(j * (k + 1), r).sin))
      .reduce((sum, d) => addComplex(sum, d));
    const turned = timesI(odd, sign);
    y[j] = addComplex(even, turned);
    y[r - j] = subComplex(even, turned);
  }
  return y;
}

/** The greatest divisor that is at most the root, 1 for primes; 4 · 4, 4 · 2, 4 · 3 and not 2 · 8 or 2 · 6. */
function divisorOf(r: number): number {
  if (r > 4 && r % 4 === 0) return 4;
  for (let p = Math.floor(Math.sqrt(r)); p > 1; p--) if (r % p === 0) return p;
  return 1;
}

/** The transform of a few numbers. */
export function butterfly(x: readonly Complex[], sign: Sign): readonly Complex[] {
  const r = x.length;
  if (r === 1) return x;
  if (r === 2) return ofTwo(x);
  const p = r === 4 ? 2 : divisorOf(r);
  if (p === 1) return ofPrime(x, sign);
  const q = r / p;
  const y: Complex[] = new Array(r);
  const rows = Array.from({ length: q }, (_, k2) =>
    butterfly(
      Array.from({ length: p }, (_, k1) => at(x, q * k1 + k2)),
      sign,
    ).map((a, j1) => timesConstant(a, k2 * j1, r, sign)),
  );
  for (let j1 = 0; j1 < p; j1++) {
    const column = butterfly(
      rows.map((row) => at(row, j1)),
      sign,
    );
    column.forEach((value, j2) => {
      y[j1 + p * j2] = value;
    });
  }
  return y;
}
