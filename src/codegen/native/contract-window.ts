/**
 * @file Packs the windows of a convolution along its places. A place is a row and a column; along a row the image is read
 * contiguously, and padding is zeros before and after one run of columns:
 *
 *   places   p  p+1 …                        0  0 | x x x x x x x | 0        one tap of one channel, one row of places
 *
 * Splitting the flat counter of places, which would otherwise be divided for each lane, makes a register one load; and where
 * bounds are linear in the column their run is computed once a row. A fused prologue is computed on these registers, as
 * everywhere.
 */
import type { Bound, Expr, LoopVar } from "../../kernel/expr.ts";
import { addIndex, scaleIndex, varIndex } from "../../kernel/index-math.ts";
import { loopVar, replaceCounters, UNIT } from "../cpu/counters.ts";
import { indexOf } from "./contract-access.ts";
import { eachDepth, type Fill, fillDepthMajor } from "./contract-fill.ts";
import type { Product } from "./contract-plan.ts";
import type { Context, VectorEmitter } from "./emitter.ts";

/** Columns of a row of places, where a counter counts places of a window; null otherwise. */
export function columnsOf({ window, cols }: Product, lane: LoopVar): number | null {
  const columns = window?.sums === "channels" && lane === cols ? window.places.at(-1) : undefined;
  return columns !== undefined && columns > 1 ? columns : null;
}

/** Cache of a pure function: the same two variables for a variable, whenever it is split. */
const apart = new WeakMap<LoopVar, readonly [LoopVar, LoopVar]>();

/** The row and column counters of a counter of places: always the same, since expressions are interned by counter names. */
function rowAndColumn(places: LoopVar, columns: number): readonly [LoopVar, LoopVar] {
  const known = apart.get(places);
  if (known) return known;
  const made = [loopVar("place_y", places.extent / columns), loopVar("place_x", columns)] as const;
  apart.set(places, made);
  return made;
}

/** dst[(k - origin) · stride + (lane - from)], by rows of places where there are any. */
export function fillLanes(em: VectorEmitter, fill: Fill): void {
  const columns = columnsOf(fill.nest, fill.lane);
  if (columns === null) fillDepthMajor(em, fill);
  else fillWindow(em, fill, columns);
}

function fillWindow(em: VectorEmitter, fill: Fill, columns: number): void {
  const { code } = em;
  const { nest, lane, from, to, dst, stride } = fill;
  const [y, x] = rowAndColumn(lane, columns);
  const place = addIndex(scaleIndex(varIndex(y), columns), varIndex(x));
  const expr = replaceCounters(fill.expr, new Map([[lane, place]]));
  em.vars.set(UNIT, "1");
  eachDepth(em, nest, fill, (position) => {
    const [p, x0, x1, row] = [code.name("p"), code.name("x"), code.name("x"), code.name("row")];
    em.block(`for (idx ${p} = ${from}; ${p} < ${to};)`, () => {
      const name = em.counter(y);
      code.line(`const idx ${name} = ${p} / ${columns}, ${x0} = ${p} - ${name} * ${columns};`);
      code.line(`const idx ${x1} = ${x0} + ${to} - ${p} < ${columns} ? ${x0} + ${to} - ${p} : ${columns};`);
      const at = `${dst} + ${position} * ${stride} + (${p} - (${from})) - ${x0}`;
      code.line(`${nest.dtype} *const ${row} = ${at};`);
      fillRow(em, expr, x, { row, first: x0, end: x1 });
      code.line(`${p} += ${x1} - ${x0};`);
    });
  });
}

interface Row {
  readonly row: string;
  readonly first: string;
  readonly end: string;
}

/** Columns [first, end): zeros, the run inside the image, zeros. Up to a register after the end is overwritten. */
function fillRow(em: VectorEmitter, expr: Expr, x: LoopVar, { row, first, end }: Row): void {
  const { code } = em;
  const guarded = zeroOutside(expr) && expr.bounds.every((bound) => isRun(em, bound, x)) ? expr : null;
  const [lo, hi] = [code.name("lo"), code.name("hi")];
  code.line(`idx ${lo} = ${first}, ${hi} = ${end};`);
  if (guarded) {
    const rest: Bound[] = [];
    for (const bound of guarded.bounds) {
      if (!em.interner.ofIndex(bound.index).has(x)) rest.push(bound);
      else narrow(em, bound, x, [lo, hi]);
    }
    const holds = em.condition(rest, em.all);
    code.line(`if (${hi} < ${lo} || !(${holds})) ${hi} = ${lo} = ${first};`);
    code.line(`for (idx z = ${first}; z < ${lo}; z++) ${row}[z] = 0;`);
  }
  const value = guarded ? guarded.then : expr;
  const name = em.counter(x);
  const type = em.type(expr.dtype);
  const put = (ctx: Context): void => code.line(`*(${type}_mem *)(${row} + ${name}) = ${em.emit(value, ctx)};`);
  em.vec = x;
  code.line(`idx ${name} = ${lo};`);
  em.block(`for (; ${name} + ${em.lanes} <= ${hi}; ${name} += ${em.lanes})`, () => put(em.all));
  em.block(`if (${name} < ${hi})`, () => {
    const mask = code.name("t");
    code.line(`const ${em.type("bool")} ${mask} = ${em.type("bool")}_first((int)(${hi} - ${name}));`);
    put({ count: em.lanes, mask });
  });
  em.vec = null;
  if (guarded) code.line(`for (idx z = ${hi}; z < ${end}; z++) ${row}[z] = 0;`);
}

type Guard = Extract<Expr, { kind: "guard" }>;

function zeroOutside(expr: Expr): expr is Guard {
  return expr.kind === "guard" && expr.otherwise.kind === "const" && Object.is(expr.otherwise.value, 0);
}

/** Whether a bound does not depend on the column, or holds for a run of columns. */
function isRun(em: VectorEmitter, { index }: Bound, x: LoopVar): boolean {
  if (!em.interner.ofIndex(index).has(x)) return true;
  const own = index.terms.filter((term) => em.interner.ofIndex(indexOf([term])).has(x));
  return own.length === 1 && own[0]?.atom === x && own[0].coef === 1;
}

/** Narrows a run of columns to where a bound holds. */
function narrow(em: VectorEmitter, { index, lo, hi }: Bound, x: LoopVar, [from, to]: readonly [string, string]): void {
  const { code } = em;
  const others = indexOf(index.terms.filter(({ atom }) => atom !== x));
  const name = code.name("i");
  code.line(`const idx ${name} = ${em.index(others, em.all)} + ${index.offset};`);
  code.line(`if (${from} < ${lo} - ${name}) ${from} = ${lo} - ${name};`);
  code.line(`if (${to} > ${hi} - ${name}) ${to} = ${hi} - ${name};`);
}
