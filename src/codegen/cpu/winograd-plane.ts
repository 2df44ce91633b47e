/**
 * @file A row of an image as a convolution sees it, with what lies around it, as expressions: the right side of a product, with
 * its fused prologue, over counters of a place and of a tap.
 *
 *   places 0 … W-1, three taps     →     positions 0 … W+1: position z is place z-1 through the middle tap, but
 *                                        the first is place 0 through an outer tap, the last place W-1 through the other
 *
 *   z     0   1 2 3 … W   W+1
 *   p     0   0 1 2 … W-1 W-1            p = z - 1 within the places,  t = 1 + slides · (z - 1 - p)
 *   t     0   1 1 1 … 1   2              (slides 1)
 *
 * So the expression is only ever asked for counters in their ranges. Padding shows as a guard around it; where its bounds
 * leave one run of columns, as they do for a window, that run is computed without a test and the rest stays zero.
 */
import type { Bound, Expr, Index, LoopVar } from "../../kernel/expr.ts";
import { addIndex, constIndex, linearIndex, scaleIndex, varIndex } from "../../kernel/index-math.ts";
import type { ContractNest } from "../../kernel/loops.ts";
import type { Interner } from "../intern.ts";
import { loopVar, replaceCounters, UNIT } from "./counters.ts";
import type { WinogradWeightsShape } from "./winograd-weights-choice.ts";

/** The right side of a product over the counters of a place and of a tap in place of the flat ones. */
export interface Plane {
  /** Through the middle column of taps; `x` runs over places. */
  readonly middle: Expr;
  /** Positions 0 and W+1 of a row. */
  readonly ends: readonly [Expr, Expr];
  readonly y: LoopVar;
  readonly x: LoopVar;
  readonly tap: LoopVar;
  /** Whether taps move along with places, or against them. */
  readonly slides: 1 | -1;
}

/** The column of an end, of which there is one. */
export const ONE: LoopVar = loopVar("one", 1);

/** Flat counters in terms of a place and a tap, each a row and a column. */
export type Apart = (place: readonly [Index, Index], tap: readonly [Index, Index]) => ReadonlyMap<LoopVar, Index>;

/** Takes flat counters of places and of 3 × 3 taps apart. */
export function planeOf(expr: Expr, [height, across]: readonly [number, number], slides: 1 | -1, apart: Apart): Plane {
  const [y, x, tap] = [loopVar("place_y", height), loopVar("place_x", across), loopVar("tap_y", 3)];
  const at = (column: Index, tapColumn: number): Expr =>
    replaceCounters(expr, apart([varIndex(y), column], [varIndex(tap), constIndex(tapColumn)]));
  const ends = [at(constIndex(0), 1 - slides), at(constIndex(across - 1), 1 + slides)] as const;
  return { middle: at(varIndex(x), 1), ends, y, x, tap, slides };
}

/** The two sides of a gradient to weights, over counters of an image, a channel, a place and a tap. */
export interface WeightsSides {
  readonly image: LoopVar;
  readonly channel: LoopVar;
  /** The image as the taps see it, and the gradient over the same counters of a place. */
  readonly plane: Plane;
  readonly gradient: Expr;
}

/** Takes the counters of a gradient to weights apart: its depth is images × places, its columns are channels × taps. */
export function weightsSides(nest: ContractNest, { images, channels, places }: WinogradWeightsShape): WeightsSides {
  const [image, channel] = [loopVar("image", images), loopVar("channel", channels)];
  const [outer, inner] = nest.split ?? [nest.depth, nest.depth];
  const depthAt = (y: Index, x: Index): readonly (readonly [LoopVar, Index])[] => [
    [outer, addIndex(scaleIndex(varIndex(image), places[0]), y)],
    [inner, x],
  ];
  const plane = planeOf(nest.b, places, 1, ([y, x], tap) => {
    const column = addIndex(scaleIndex(varIndex(channel), 9), linearIndex(tap, [3, 3]));
    return new Map([...depthAt(y, x), [nest.cols, column]]);
  });
  const gradient = replaceCounters(nest.a, new Map(depthAt(varIndex(plane.y), varIndex(plane.x))));
  return { image, channel, plane, gradient };
}

/** An expression that is zero unless `bounds` hold and the column is in [from, to). */
export interface Run {
  readonly expr: Expr;
  readonly bounds: readonly Bound[];
  readonly from: number;
  readonly to: number;
}

/** Takes a guard off that leaves one run of columns. */
export function runOf(interner: Interner, expr: Expr, x: LoopVar): Run {
  const whole = { expr, bounds: [], from: 0, to: x.extent };
  if (expr.kind !== "guard" || expr.otherwise.kind !== "const" || !Object.is(expr.otherwise.value, 0)) return whole;
  const bounds: Bound[] = [];
  let [from, to] = [0, x.extent];
  for (const bound of expr.bounds) {
    const { index, lo, hi } = bound;
    const [only, ...more] = index.terms.filter(({ atom }) => atom !== UNIT);
    const offset = index.offset + (index.terms.find(({ atom }) => atom === UNIT)?.coef ?? 0);
    if (!only) {
      if (offset < lo || offset >= hi) to = from;
    } else if (more.length === 0 && only.atom === x && only.coef === 1) {
      from = Math.max(from, lo - offset);
      to = Math.min(to, hi - offset);
    } else if (interner.ofIndex(index).has(x)) return whole;
    else bounds.push(bound);
  }
  return { expr: expr.then, bounds, from, to: Math.max(from, to) };
}
