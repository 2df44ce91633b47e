/**
 * @file Attention as stages: what a nest of kind `attend` does, in the order of arithmetic that all targets keep.
 *
 * Queries and keys are cut into blocks of 64, the last one shorter. A tile of 64 × 64 scores at a time is computed, used, and
 * overwritten by the next; no more of the scores is ever held. A unit is one block of queries (or keys), independent of all
 * others; it goes through the blocks of keys (or queries) in ascending order, those left out that the limits of the nest hide
 * from it entirely, and those of keys from its length on:
 *
 *   forward, for a block of queries          s = score(q·kᵀ)               m' = max(m, max s)      α = exp(m - m')
 *     for each block of keys                 p = exp(s - m')               l = l · α + Σ p         o = (o · α) + p·v
 *     at the end                             out = o / l                   logsum = m + log l
 *
 *   backward, for a block of keys            p = exp(score(q·kᵀ) - logsum) d = p ∘ (g·vᵀ - delta)
 *     for each block of queries              dv = dv + pᵀ·g                dk = dk + dᵀ·q
 *   backward, for a block of queries         the same p and d
 *     for each block of keys                 dq = dq + d·k
 *
 * where every product is summed as one of its own, from zero, in runs along its depth (`depthRun`), and every sum over keys
 * of one block goes up element by element. So bits depend on shapes alone, not on how many blocks are computed at once.
 *
 * A stage is a nest over the kernel's operands and over tiles, which are numbered behind the operands. The counter that is
 * the same in all products of a unit is the last axis of every tile, so that it can be in the lanes: that of queries going
 * forward, for instance. A query that sees no key has m = -∞, l = 0, out = 0 and logsum = -∞. Where weights have factors w (dropout),
 * p·v is (p∘w)·v, g·vᵀ is w∘(g·vᵀ), and pᵀ·g is (p∘w)ᵀ·g.
 */
import { at, invariant } from "../base/invariant.ts";
import {
  ATTEND_BLOCK,
  type AttendStages,
  accOf,
  type Band,
  type Factor,
  finite,
  type IsApart,
  ONCE,
  type Place,
  type Sides,
  type Stage,
  type StagedUnits,
  Stages,
  type TileName,
} from "./attend-stages.ts";
import { constant, type Expr, type Index, load } from "./expr.ts";
import { addIndex, scaleIndex, ZERO } from "./index-math.ts";
import type { AttendNest, Nest } from "./loops.ts";
import { exp, log } from "./math.ts";
import { mapIndices } from "./rewrite.ts";
import { add, div, eq, max, mul, pick, sub } from "./scalar-ops.ts";

// ---- forward --------------------------------------------------------------------------------------------------------

function forward(s: Stages): readonly StagedUnits[] {
  const { nest } = s;
  const { rows, cols, depth, width, sees } = nest;
  const [q, o] = [s.tile("own"), s.tile("sum")];
  const [m, l] = [s.tile("m"), s.tile("l")];
  return s.units([...nest.batch, nest.group], rows, (number, own) => [
    s.turned(q, rows, { of: nest.q, inside: depth }, own),
    s.filled(o, width.extent, own.length),
    s.filled(m, 1, own.length, Number.NEGATIVE_INFINITY),
    s.filled(l, 1, own.length),
    ...s.repeats(number, own, [cols, ...sees, s.keyBlocks()], (other) =>
      keys(s, { own, other, ownVar: rows, otherVar: cols }),
    ),
    s.result(at(nest.stores, 0), rows, { inside: width, place: own }, (c, x) => {
      const total = s.read(l, ZERO, x);
      return div(s.read(o, c, x), pick(eq(total, 0), 1, total));
    }),
    s.result(at(nest.stores, 1), rows, { inside: ONCE, place: own }, (_, x) =>
      add(s.read(m, ZERO, x), log(s.read(l, ZERO, x))),
    ),
  ]);
}

/** One block of keys. */
function keys(s: Stages, sides: Sides): readonly Nest[] {
  const { nest } = s;
  const acc = accOf(nest);
  const p = s.tile("p");
  const [m, l, shift, alpha] = [s.tile("m"), s.tile("l"), s.tile("shift"), s.tile("alpha")];
  const q = { of: s.tile("own"), inside: nest.depth };
  const scores = s.pairs(p, sides, [{ of: nest.k, inside: nest.depth }, q], (at) => s.expr(nest.score, at, acc));
  const maxima = s.down("max", p, sides, (x) => {
    const before = s.read(m, ZERO, x);
    const most = max(before, acc);
    return [
      s.write(m, ZERO, x, most),
      s.write(shift, ZERO, x, finite(most)),
      s.write(alpha, ZERO, x, exp(sub(before, finite(most)))),
    ];
  });
  const weights = s.each(p, sides, (_, y, x) => exp(sub(s.read(p, y, x), s.read(shift, ZERO, x))));
  const totals = s.down("add", p, sides, (i) => [
    s.write(l, ZERO, i, add(mul(s.read(l, ZERO, i), s.read(alpha, ZERO, i)), acc)),
  ]);
  const scaled = s.scaled(s.tile("sum"), nest.width.extent, alpha, sides.own.length);
  return [
    ...[scores, maxima, weights, totals, ...dropped(s, p, sides), scaled],
    s.sums(s.tile("sum"), sides, [{ of: nest.v, inside: nest.width }, p]),
  ];
}

/** Weights times their own factors, where there are any. */
function dropped(s: Stages, p: number, sides: Sides): readonly Nest[] {
  const { weight } = s.nest;
  return weight ? [s.each(p, sides, (places, y, x) => mul(s.read(p, y, x), s.expr(weight, places)))] : [];
}

// ---- backward -------------------------------------------------------------------------------------------------------

/** Expressions of the other side, and tiles of the unit's own: of scores, then of their derivatives. */
type Factors = readonly (readonly [Factor<Expr>, Factor<number>])[];

/** Weights and derivatives of scores as tiles p and d. */
function derivatives(s: Stages, sides: Sides, factors: Factors): readonly Nest[] {
  const { nest } = s;
  const acc = accOf(nest);
  const { logsum, delta } = backwardOf(nest);
  const [p, d] = [s.tile("p"), s.tile("d")];
  const { weight } = nest;
  const factor = weight ? [s.each(s.tile("keep"), sides, (places) => s.expr(weight, places))] : [];
  const slope = (y: Index, x: Index): Expr => (weight ? mul(s.read(s.tile("keep"), y, x), acc) : acc);
  return [
    ...factor,
    s.pairs(p, sides, at(factors, 0), (places) =>
      exp(sub(s.expr(nest.score, places, acc), finite(s.expr(logsum, places)))),
    ),
    s.pairs(d, sides, at(factors, 1), (places, y, x) => mul(s.read(p, y, x), sub(slope(y, x), s.expr(delta, places)))),
  ];
}

/** Weights as they were multiplied with values: times the factors of the tile `keep`. */
function kept(s: Stages, sides: Sides): readonly Nest[] {
  if (!s.nest.weight) return [];
  const [p, keep] = [s.tile("p"), s.tile("keep")];
  return [s.each(p, sides, (_, y, x) => mul(s.read(p, y, x), s.read(keep, y, x)))];
}

function backwardOf(nest: AttendNest): NonNullable<AttendNest["backward"]> {
  invariant(nest.backward, () => "attention forward has no derivatives");
  return nest.backward;
}

/** dk and dv of a block of keys, and more with the tiles of each pair of blocks. */
function keyBlock(s: Stages, number: Index, own: Place, more: (sides: Sides) => readonly Nest[]): readonly Stage[] {
  const { nest } = s;
  const { rows, cols, depth, width, group, sees } = nest;
  const [q, g] = [
    { of: nest.q, inside: depth },
    { of: backwardOf(nest).g, inside: width },
  ];
  const [k, v] = [s.tile("own"), s.tile("own2")];
  const [dk, dv] = [s.tile("sum"), s.tile("sum2")];
  const [most, least] = [sees[1], sees[0]].map((limit) => limit && scaleIndex(limit, -1));
  const band: Band = [rows, most ?? null, least ?? null];
  const factors: Factors = [
    [q, { of: k, inside: depth }],
    [g, { of: v, inside: width }],
  ];
  const queries = s.repeats(number, own, band, (other) => {
    const sides = { own, other, ownVar: cols, otherVar: rows };
    return [
      ...derivatives(s, sides, factors),
      ...kept(s, sides),
      s.sums(dv, sides, [g, s.tile("p")]),
      s.sums(dk, sides, [q, s.tile("d")]),
      ...more(sides),
    ];
  });
  return [
    s.turned(k, cols, { of: nest.k, inside: depth }, own),
    s.turned(v, cols, { of: nest.v, inside: width }, own),
    s.filled(dk, depth.extent, own.length),
    s.filled(dv, width.extent, own.length),
    { kind: "repeat", counter: group, first: 0, last: group.extent, from: null, to: within(s, number), body: queries },
    s.result(at(nest.stores, 1), cols, { inside: depth, place: own }, (c, x) => s.read(dk, c, x)),
    s.result(at(nest.stores, 2), cols, { inside: width, place: own }, (c, x) => s.read(dv, c, x)),
  ];
}

/** Limits of the loop over query heads: there are none for a block of keys beyond the length. */
function within(s: Stages, number: Index): readonly Index[] {
  const blocks = s.keyBlocks();
  return blocks ? [scaleIndex(addIndex(blocks, scaleIndex(number, -1)), s.nest.group.extent)] : [];
}

/** dk and dv of all keys. */
const ofKeys = (s: Stages): readonly StagedUnits[] =>
  s.units(s.nest.batch, s.nest.cols, (number, own) => keyBlock(s, number, own, () => []));

/** dq of a block of queries. */
function ofQueries(s: Stages): readonly StagedUnits[] {
  const { nest } = s;
  const { rows, cols, depth, width } = nest;
  const [k, v] = [
    { of: nest.k, inside: depth },
    { of: nest.v, inside: width },
  ];
  const [q, g] = [s.tile("own"), s.tile("own2")];
  const dq = s.tile("sum");
  return s.units([...nest.batch, nest.group], rows, (number, own) => [
    s.turned(q, rows, { of: nest.q, inside: depth }, own),
    s.turned(g, rows, { of: backwardOf(nest).g, inside: width }, own),
    s.filled(dq, depth.extent, own.length),
    ...s.repeats(number, own, [cols, ...nest.sees, s.keyBlocks()], (other) => {
      const sides = { own, other, ownVar: rows, otherVar: cols };
      const factors: Factors = [
        [k, { of: q, inside: depth }],
        [v, { of: g, inside: width }],
      ];
      return [...derivatives(s, sides, factors), s.sums(dq, sides, [k, s.tile("d")])];
    }),
    s.result(at(nest.stores, 0), rows, { inside: depth, place: own }, (c, x) => s.read(dq, c, x)),
  ]);
}

/** Rows of each tile, those first that are read most. */
function tileRowsOf(nest: AttendNest): Partial<Record<TileName, number>> {
  const [depth, width, p] = [nest.depth.extent, nest.width.extent, ATTEND_BLOCK];
  return nest.backward
    ? { p, d: p, ...(nest.weight ? { keep: p } : {}), own: depth, own2: width, sum: depth, sum2: width }
    : { p, m: 1, l: 1, shift: 1, alpha: 1, own: depth, sum: width };
}

/** The stages of a nest in a kernel of so many operands. */
export function attendStages(nest: AttendNest, operands: number, isApart: IsApart = () => false): AttendStages {
  const s = new Stages(nest, operands, tileRowsOf(nest), isApart);
  const programs = nest.backward ? [...ofKeys(s), ...ofQueries(s)] : forward(s);
  return { tiles: s.tiles, apart: new Set(s.offsets.keys()), unitElements: s.unitElements, programs };
}

/**
 * The stages backward with all of a head as one unit: dq is summed in place, as blocks of keys go by, from the same tiles as dk
 * and dv. Five products for each pair of blocks instead of seven, and the same sums in the same order. The result dq has
 * elements of the nest's own type.
 */
export function attendByHeads(nest: AttendNest, operands: number): AttendStages {
  const s = new Stages(nest, operands, tileRowsOf(nest), () => false);
  const { rows, cols, depth, group, dtype } = nest;
  const dq = at(nest.stores, 0);
  const loops = [group, rows, depth];
  const held = load(dtype, dq.operand, dq.index);
  const body: readonly Stage[] = [
    { kind: "map", loops, stores: [{ ...dq, value: constant(dtype, 0) }] },
    ...s.repeats(ZERO, { start: ZERO, length: 0 }, [cols, null, null], (own, number) =>
      keyBlock(s, number, own, (sides) => [s.sumsInPlace(dq, sides, [{ of: nest.k, inside: depth }, s.tile("d")])]),
    ),
    { kind: "map", loops, stores: [{ ...dq, value: mapIndices(dq.value, (index) => index, held) }] },
  ];
  return { tiles: s.tiles, apart: new Set(), unitElements: 0, programs: [{ units: nest.batch, body }] };
}
