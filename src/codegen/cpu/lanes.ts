/**
 * @file How an index changes from lane to lane of one register. Indices with divisions, as reshapes make them, are seldom
 * linear over a whole row, but they often are within a register that starts at a multiple of the number of lanes:
 *
 *   v = 32 h + d, 16 lanes      v div 32    the same in all lanes, since no multiple of 32 is inside of a register
 *                               v mod 32    one more from lane to lane
 *
 * Then a register is one load, and a bound at a multiple of the lanes holds in all of them or in none.
 */
import type { Bound, Expr, Index, LoopVar } from "../../kernel/expr.ts";

/** The lanes that indices are asked about. */
export interface LaneView {
  /** The counters that an expression, or an index, depends on. */
  readonly counters: { of(expr: Expr): ReadonlySet<LoopVar>; ofIndex(index: Index): ReadonlySet<LoopVar> };
  /** The counter in the lanes. */
  readonly vec: LoopVar | null;
  /** It is a multiple of this in lane 0; 1 where nothing is known. */
  readonly multiple: number;
  readonly lanes: number;
}

type Term = Index["terms"][number];

function dependsOn({ atom }: Term, { counters, vec }: LaneView): boolean {
  if (!vec || atom === vec) return vec !== null;
  if (atom.kind === "var") return false;
  return (atom.kind === "value" ? counters.of(atom.expr) : counters.ofIndex(atom.of)).has(vec);
}

/** Whether floor(of / by) is the same in all lanes: `of` starts at a multiple of its span, and so do the multiples of `by`. */
function staysWithin(of: Index, by: number, view: LaneView): boolean {
  const step = laneStep(of, view);
  if (step === 0) return true;
  if (step === null || step < 0 || view.multiple % view.lanes !== 0) return false;
  const span = step * view.lanes;
  const even = of.terms.every((term) => dependsOn(term, view) || term.coef % span === 0);
  return (
    even &&
    of.terms.filter((term) => dependsOn(term, view)).every((term) => startsEven(term, span, view)) &&
    of.offset % span === 0 &&
    by % span === 0
  );
}

/** Whether a term that changes from lane to lane is a multiple of `span` in lane 0. */
function startsEven({ atom, coef }: Term, span: number, view: LaneView): boolean {
  if (atom === view.vec) return (coef * view.multiple) % span === 0;
  // v mod m starts at a multiple of the register where v does and m is one
  return (
    atom.kind === "mod" &&
    atom.by % view.lanes === 0 &&
    staysWithin(atom.of, atom.by, view) &&
    (coef * view.lanes) % span === 0
  );
}

/** How much an index grows from lane to lane, or null where that is not even. */
export function laneStep(index: Index, view: LaneView): number | null {
  let step = 0;
  for (const term of index.terms) {
    const { atom, coef } = term;
    if (!dependsOn(term, view)) continue;
    if (atom.kind === "value") return null;
    if (atom.kind === "var") step += coef;
    else if (!staysWithin(atom.of, atom.by, view)) return null;
    else if (atom.kind === "mod") step += coef * (laneStep(atom.of, view) ?? 0);
  }
  return step;
}

/** Whether a bound holds in all lanes or in none. */
export function isEven({ index, lo, hi }: Bound, view: LaneView): boolean {
  const step = laneStep(index, view);
  if (step === 0) return true;
  if (step === null || step < 0) return false;
  const span = step * view.lanes;
  const shifted = { ...index, offset: 0 };
  return staysWithin(shifted, span, view) && (lo - index.offset) % span === 0 && (hi - index.offset) % span === 0;
}
