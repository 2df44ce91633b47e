/**
 * @file Fourier transforms between real sequences of length n and the first half of their transforms, which has the rest as conjugates.
 * Those of even length are complex sequences of half the length, z_k = x_(2k) + i·x_(2k+1), of which the transforms of both halves come apart:
 *
 *   2 X_k = (Z_k + conj Z_(h-k)) - i e^(-2πi·k/n) (Z_k - conj Z_(h-k))        h = n / 2, k ≤ h
 */
import { at } from "../../base/invariant.ts";
import type { Expr, Index } from "../../kernel/expr.ts";
import { addIndex, constIndex, scaleIndex, varIndex, ZERO } from "../../kernel/index-math.ts";
import type { Store } from "../../kernel/loops.ts";
import * as scalar from "../../kernel/scalar-ops.ts";
import { guarded } from "../guard.ts";
import { addComplex, type Complex, conjugate, scaleComplex, subComplex, timesI } from "./butterfly.ts";
import { radicesOf, tableRow } from "./plan.ts";
import type { Buffer, Sink, Source } from "./stages.ts";
import { guardedPlace, type Transforms } from "./transforms.ts";

type RealSource = (place: Index) => Expr;
type RealSink = (place: Index, value: Expr) => readonly Store[];

/** Length, the factor of elements that stand for themselves alone, and the memory of the result where it can be workspace. */
export interface RealPart {
  readonly n: number;
  readonly ends: number;
  readonly spare: Buffer | undefined;
}

/** The first half of the transform of real sequences of length n, forward. `spare`: the memory of the result. */
export function ofReal(t: Transforms, { n, ends, spare }: RealPart, source: RealSource, sink: Sink): void {
  if (n % 2 === 1) {
    ofOdd(t, { n, ends }, source, sink);
    return;
  }
  const h = n / 2;
  const packed: Source = (place) => {
    const even = scaleIndex(place, 2);
    return { re: source(even), im: source(addIndex(even, constIndex(1))) };
  };
  // one more element, so that place h - k is there for k = 0
  const z = t.buffer(h + 1);
  t.transform(h, -1, { source: packed, sink: t.sink(z) }, { read: spare, other: z });
  const read = t.source(z);
  const { re, im } = t.filled(read(ZERO));
  const edge = scaleComplex({ re: scalar.sub(re as Expr, im as Expr), im: null }, ends);
  t.map([], [...t.sink(z)(constIndex(h), { re, im }), ...sink(constIndex(h), edge)]);
  const { loops, place } = t.inRows(h);
  const table = at(t.table(1, h, n), 0);
  const mirrored = conjugate(read(addIndex(constIndex(h), scaleIndex(place, -1))));
  const [even, odd] = [addComplex(read(place), mirrored), timesI(subComplex(read(place), mirrored), -1)];
  const sum = addComplex(even, t.turned(odd, table, place, -1));
  t.map(loops, sink(place, endedBy([ends, n], place, scaleComplex(sum, 0.5))));
}

/** A number of the result, times a factor at place 0. */
function endedBy([ends, n]: readonly [ends: number, n: number], place: Index, value: Complex): Complex {
  if (ends === 1) return value;
  const part = (own: Expr | null): Expr | null => {
    return own && guarded([{ index: place, lo: 1, hi: n }], () => own, scalar.mul(own, ends));
  };
  return { re: part(value.re), im: part(value.im) };
}

/** All of the transform but what its symmetry repeats. */
function ofOdd(t: Transforms, { n, ends }: Pick<RealPart, "n" | "ends">, source: RealSource, sink: Sink): void {
  const all = t.buffer(n);
  const complex: Source = (place) => ({ re: source(place), im: null });
  t.transform(n, -1, { source: complex, sink: t.sink(all) }, { other: all });
  const k = t.counter((n + 1) / 2);
  t.map([k], sink(varIndex(k), endedBy([ends, n], varIndex(k), t.source(all)(varIndex(k)))));
}

/**
 * Real sequences of length n from the first half of their transform, not divided by n. The imaginary parts at 0, and at n / 2 for even
 * n, are not read.
 */
export function toReal(t: Transforms, { n, ends, spare }: RealPart, half: Source, sink: RealSink): void {
  const zero: Complex = { re: t.zero, im: t.zero };
  const last = Math.floor(n / 2);
  const inside: Source = (place) => {
    const bounds = [{ index: place, lo: 1, hi: Math.ceil(n / 2) }];
    const re = half(place).re as Expr;
    const own = ends === 1 ? re : guarded(bounds, () => re, scalar.mul(re, ends));
    return { re: own, im: guarded(bounds, () => half(place).im as Expr, t.zero) };
  };
  if (n % 2 === 1) {
    const whole: Source = (place) => {
      const mirrored = addIndex(constIndex(n), scaleIndex(place, -1));
      const second = guardedPlace(mirrored, last + 1, () => t.filled(conjugate(half(mirrored))), zero);
      return guardedPlace(place, last + 1, () => inside(place), second);
    };
    t.transform(n, 1, { source: whole, sink: (place, { re }) => sink(place, re ?? t.zero) });
    return;
  }
  const [first = 1] = radicesOf(last) ?? [];
  const table = at(t.table(1, last, n, tableRow(last / first)), 0);
  const packed: Source = (place) => {
    const mirrored = conjugate(inside(addIndex(constIndex(last), scaleIndex(place, -1))));
    const [even, odd] = [addComplex(inside(place), mirrored), subComplex(inside(place), mirrored)];
    return addComplex(even, timesI(t.turned(odd, table, place, 1), 1));
  };
  const pairs: Sink = (place, value) => {
    const { re, im } = t.filled(value);
    const even = scaleIndex(place, 2);
    return [...sink(even, re as Expr), ...sink(addIndex(even, constIndex(1)), im as Expr)];
  };
  t.transform(last, 1, { source: packed, sink: pairs }, { other: spare });
}
