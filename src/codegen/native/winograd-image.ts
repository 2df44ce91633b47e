/**
 * @file A row of an image as a convolution sees it, with what lies around it: written into the workspace from the expression
 * of a product's right side, with its fused prologue.
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
import { constIndex, varIndex } from "../../kernel/index-math.ts";
import type { Interner } from "../intern.ts";
import { loopVar, replaceCounters, UNIT } from "./counters.ts";
import type { Context, VectorEmitter } from "./emitter.ts";
import type { Strips } from "./winograd-choice.ts";

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
const ONE = loopVar("one", 1);

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

/** An expression that is zero unless `bounds` hold and the column is in [from, to). */
interface Run {
  readonly expr: Expr;
  readonly bounds: readonly Bound[];
  readonly from: number;
  readonly to: number;
}

/** Takes a guard off that leaves one run of columns. */
function runOf(interner: Interner, expr: Expr, x: LoopVar): Run {
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

/**
 * Writes positions 0 … W+1 of row `z` of the image to `row`. What is outside of the runs is zero and stays so: it is not
 * written where the row is inside of the image, and cleared with the rest of the row where it is not.
 */
export function emitImageRow(em: VectorEmitter, plane: Plane, z: string, row: string): void {
  const { code } = em;
  const { x, y, tap, slides } = plane;
  const [py, ty] = [em.counter(y), em.counter(tap)];
  em.vars.set(UNIT, "1");
  const last = y.extent - 1;
  code.line(`const idx ${py} = ${z} < 1 ? 0 : ${z} > ${last + 1} ? ${last} : ${z} - 1;`);
  code.line(`const idx ${ty} = 1 + (${slides}) * (${z} - 1 - ${py});`);
  const clear = `memset(${row}, 0, ${x.extent + 2} * sizeof(f32));`;
  em.block(`if (${z} > ${last + 2})`, () => code.line(clear));
  em.block("else", () => {
    const parts = [
      { ...runOf(em.interner, plane.middle, x), at: `${row} + 1` },
      ...plane.ends.map((expr, i) => ({
        ...runOf(em.interner, expr, ONE),
        at: `${row} + ${i === 0 ? 0 : x.extent + 1}`,
      })),
    ];
    for (const part of parts) {
      if (part.from >= part.to) continue;
      em.block("", () => {
        const holds = em.condition(part.bounds, em.all);
        em.block(`if (${holds})`, () => emitRun(em, x, part, part.at));
        if (holds !== "1") {
          const bytes = `${part.to - part.from} * sizeof(f32)`;
          em.block("else", () => code.line(`memset(${part.at} + ${part.from}, 0, ${bytes});`));
        }
      });
    }
  });
}

/** Writes an expression over the columns `x` to `row`, as many as there are. */
export function emitRow(em: VectorEmitter, expr: Expr, x: LoopVar, row: string): void {
  em.vars.set(UNIT, "1");
  emitRun(em, x, { expr, bounds: [], from: 0, to: x.extent }, row);
}

function emitRun(em: VectorEmitter, x: LoopVar, { expr, from, to }: Run, at: string): void {
  const type = em.type(expr.dtype);
  const put = (name: string, ctx: Context): void => {
    const value = em.code.name("e");
    em.code.line(`const ${type} ${value} = ${em.emit(expr, ctx)};`);
    if (ctx.count === em.lanes) em.code.line(`${type}_store(${at} + ${name}, ${value});`);
    else em.code.line(`${type}_store_first(${at} + ${name}, ${value}, ${ctx.count});`);
  };
  const whole = from + Math.floor((to - from) / em.lanes) * em.lanes;
  em.vec = x;
  const name = em.counter(x);
  if (whole > from) {
    em.block(`for (idx ${name} = ${from}; ${name} < ${whole}; ${name} += ${em.lanes})`, () => put(name, em.all));
  }
  if (to > whole) {
    em.block("", () => {
      em.code.line(`const idx ${name} = ${whole};`);
      put(name, em.first(to - whole));
    });
  }
  em.vec = null;
}

/**
 * Runs `body` for stretches of strips [strip0, strip1) that are of one piece of one image. In C: `st` is the first of them,
 * `q0` to `q1` are its rows of tiles, `image` and `piece` its numbers, `across` the tiles of a row of it.
 */
export function emitStretches(em: VectorEmitter, { tiles, pieces, across }: Strips, body: () => void): void {
  const { code } = em;
  const [each, wide] = tiles;
  em.block("for (idx st = strip0; st < strip1;)", () => {
    code.line(`const idx row = st / ${each}, q0 = st - row * ${each};`);
    code.line(`const idx q1 = q0 + strip1 - st < ${each} ? q0 + strip1 - st : ${each};`);
    code.line(`const idx image = row / ${pieces}, piece = row - image * ${pieces};`);
    code.line(`const idx across = piece < ${pieces - 1} ? ${across} : ${wide - (pieces - 1) * across};`);
    body();
    code.line("st += q1 - q0;");
  });
}
