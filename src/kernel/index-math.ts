/**
 * @file Arithmetic on indices with simplification. Everything is exact integer arithmetic on a normal form, so that the
 * index of a reshape of a transpose of a slice comes out as plain strides wherever it can.
 *
 *   div(12 a + 4 b + c, 4) = 3 a + b                 when 0 ≤ c < 4
 *   mod(12 a + 4 b + c, 4) = c                       when 0 ≤ c < 4
 *   div(4 a + b, 12) = div(a, 3)                    when 0 ≤ b < 4
 *   4 (x div 4) + (x mod 4) = x
 *   4 ((x div 4) mod 3) + (x mod 4) = x mod 12
 *   (x mod 12) div 4 = (x div 4) mod 3,  (x div 3) div 4 = x div 12
 *
 * Invariant: `of` inside div and mod atoms is non-negative (shifted by a multiple of the divisor when made).
 */
import type { Atom, Expr, Index, LoopVar, Term } from "./expr.ts";

function atomKey(atom: Atom): string {
  switch (atom.kind) {
    case "var":
      return atom.name;
    case "div":
      return `(${atom.of.key})/${atom.by}`;
    case "mod":
      return `(${atom.of.key})%${atom.by}`;
    case "value":
      return `$${atom.id}`;
  }
}

function make(terms: readonly Term[], rawOffset: number): Index {
  // Not -0, which would make equal indices look different.
  const offset = rawOffset + 0;
  const sorted = terms.length < 2 ? terms : [...terms].sort((a, b) => (atomKey(a.atom) < atomKey(b.atom) ? -1 : 1));
  let key = sorted.map((t) => `${t.coef}*${atomKey(t.atom)}`).join("+");
  if (offset !== 0 || sorted.length === 0) key += `+${offset}`;
  return { terms: sorted, offset, key };
}

export const ZERO: Index = make([], 0);

export function constIndex(n: number): Index {
  return make([], n);
}

export function varIndex(v: LoopVar): Index {
  // A loop that runs once has its counter at zero throughout.
  return v.extent === 1 ? ZERO : make([{ atom: v, coef: 1 }], 0);
}

/** Numbers for expressions, in the order of first use. */
let nextValueId = 0;
const valueIds = new WeakMap<Expr, number>();

/** An index read at run time; `lo` and `hi` are inclusive and must hold wherever the index is used to address memory. */
export function valueIndex(expr: Expr, lo: number, hi: number): Index {
  let id = valueIds.get(expr);
  if (id === undefined) {
    id = nextValueId++;
    valueIds.set(expr, id);
  }
  return make([{ atom: { kind: "value", expr, lo, hi, id }, coef: 1 }], 0);
}

/**
 * Finds a remainder with its quotient, takes both out and returns what they add up to.
 *
 *   c·n·(x div n) + c·(x mod n) = c·x
 *   c·n·((x div n) mod m) + c·(x mod n) = c·(x mod n·m)
 */
function joinRemainder(terms: Map<string, Term>): Index | null {
  for (const [key, { atom, coef }] of terms) {
    if (atom.kind !== "mod" || coef === 0) continue;
    const partners = [...terms].filter(([, term]) => term.coef === coef * atom.by);
    if (partners.length === 0) continue;
    const quotient = divIndex(atom.of, atom.by);
    for (const [partnerKey, { atom: partner }] of partners) {
      const isQuotient = quotient.key === `1*${partnerKey}`;
      const isPart = partner.kind === "mod" && partner.of.key === quotient.key;
      if (!isQuotient && !isPart) continue;
      terms.delete(key);
      terms.delete(partnerKey);
      return scaleIndex(isPart ? modIndex(atom.of, atom.by * partner.by) : atom.of, coef);
    }
  }
  return null;
}

export function addIndex(...parts: readonly Index[]): Index {
  const byKey = new Map<string, { atom: Atom; coef: number }>();
  let offset = 0;
  const put = (atom: Atom, coef: number): void => {
    const key = atomKey(atom);
    const entry = byKey.get(key);
    if (entry) entry.coef += coef;
    else byKey.set(key, { atom, coef });
  };
  for (const part of parts) {
    offset += part.offset;
    for (const { atom, coef } of part.terms) put(atom, coef);
  }
  for (let whole = joinRemainder(byKey); whole; whole = joinRemainder(byKey)) {
    offset += whole.offset;
    for (const term of whole.terms) put(term.atom, term.coef);
  }
  return make(
    [...byKey.values()].filter((t) => t.coef !== 0),
    offset,
  );
}

export function scaleIndex(index: Index, by: number): Index {
  if (by === 0) return ZERO;
  if (by === 1) return index;
  return make(
    index.terms.map((t) => ({ atom: t.atom, coef: t.coef * by })),
    index.offset * by,
  );
}

export function offsetIndex(index: Index, by: number): Index {
  return by === 0 ? index : make(index.terms, index.offset + by);
}

function atomRange(atom: Atom): readonly [number, number] {
  switch (atom.kind) {
    case "var":
      return [0, Math.max(0, atom.extent - 1)];
    case "div": {
      const [lo, hi] = rangeOf(atom.of);
      return [Math.floor(lo / atom.by), Math.floor(hi / atom.by)];
    }
    case "mod":
      return [0, Math.min(atom.by - 1, rangeOf(atom.of)[1])];
    case "value":
      return [atom.lo, atom.hi];
  }
}

/** Least and greatest value, inclusive; an over-estimate when atoms are related. */
export function rangeOf(index: Index): readonly [number, number] {
  let lo = index.offset;
  let hi = index.offset;
  for (const { atom, coef } of index.terms) {
    const [a, b] = atomRange(atom);
    lo += coef > 0 ? coef * a : coef * b;
    hi += coef > 0 ? coef * b : coef * a;
  }
  return [lo, hi];
}

function splitByDivisor(index: Index, by: number): { whole: Term[]; rest: Index; wholeOffset: number } {
  const whole: Term[] = [];
  const rest: Term[] = [];
  for (const term of index.terms) {
    if (term.coef % by === 0) whole.push({ atom: term.atom, coef: term.coef / by });
    else rest.push(term);
  }
  const wholeOffset = Math.floor(index.offset / by);
  return { whole, rest: make(rest, index.offset - wholeOffset * by), wholeOffset };
}

function gcdAll(by: number, terms: readonly Pick<Term, "coef">[]): number {
  let g = by;
  for (const { coef } of terms) {
    let a = Math.abs(coef);
    while (a) [g, a] = [a, g % a];
  }
  return g;
}

/**
 * Cuts an index into high · by + low with 0 ≤ low < by, for the greatest divisor `by` of a number that allows it.
 *
 *   28 a + b, 0 ≤ b < 28, and 784:   high a, low b, by 28
 */
function cutAt(
  index: Index,
  number: number,
): { readonly high: Index; readonly low: Index; readonly by: number } | null {
  const divisors = new Set(index.terms.map(({ coef }) => gcdAll(number, [{ coef }])));
  for (const by of [...divisors].sort((a, b) => b - a)) {
    if (by === 1 || by === number) continue;
    const high = index.terms.filter((t) => t.coef % by === 0).map((t) => ({ atom: t.atom, coef: t.coef / by }));
    const low = index.terms.filter((t) => t.coef % by !== 0);
    const shift = Math.floor(index.offset / by);
    const rest = make(low, index.offset - shift * by);
    const [least, most] = rangeOf(rest);
    if (least >= 0 && most < by) return { high: make(high, shift), low: rest, by };
  }
  return null;
}

/** floor(index / by). */
export function divIndex(index: Index, by: number): Index {
  if (by === 1) return index;
  const { whole, rest, wholeOffset } = splitByDivisor(index, by);
  const [lo, hi] = rangeOf(rest);
  if (Math.floor(lo / by) === Math.floor(hi / by)) return make(whole, wholeOffset + Math.floor(lo / by));
  const g = gcdAll(by, rest.terms);
  if (g > 1) {
    // floor((g x + r) / (g m)) = floor(x / m) for 0 ≤ r < g
    const r = ((rest.offset % g) + g) % g;
    const reduced = make(
      rest.terms.map((t) => ({ atom: t.atom, coef: t.coef / g })),
      (rest.offset - r) / g,
    );
    return addIndex(make(whole, wholeOffset), divIndex(reduced, by / g));
  }
  // floor((g x + r) / (g m)) = floor(x / m) for 0 ≤ r < g
  const cut = cutAt(rest, by);
  if (cut) return addIndex(make(whole, wholeOffset), divIndex(cut.high, by / cut.by));
  const only = rest.terms.length === 1 && rest.offset === 0 && rest.terms[0]?.coef === 1 ? rest.terms[0].atom : null;
  if (only?.kind === "div") return addIndex(make(whole, wholeOffset), divIndex(only.of, only.by * by));
  if (only?.kind === "mod" && only.by % by === 0) {
    return addIndex(make(whole, wholeOffset), modIndex(divIndex(only.of, by), only.by / by));
  }
  const shift = lo < 0 ? Math.ceil(-lo / by) : 0;
  const of = offsetIndex(rest, shift * by);
  return addIndex(make(whole, wholeOffset - shift), make([{ atom: { kind: "div", of, by }, coef: 1 }], 0));
}

/** index - by · floor(index / by), in [0, by). */
export function modIndex(index: Index, by: number): Index {
  if (by === 1) return ZERO;
  const { rest } = splitByDivisor(index, by);
  const [lo, hi] = rangeOf(rest);
  const q = Math.floor(lo / by);
  if (q === Math.floor(hi / by)) return offsetIndex(rest, -q * by);
  const g = gcdAll(by, rest.terms);
  if (g > 1) {
    const r = ((rest.offset % g) + g) % g;
    const reduced = make(
      rest.terms.map((t) => ({ atom: t.atom, coef: t.coef / g })),
      (rest.offset - r) / g,
    );
    return offsetIndex(scaleIndex(modIndex(reduced, by / g), g), r);
  }
  // (g x + r) mod (g m) = g (x mod m) + r for 0 ≤ r < g
  const cut = cutAt(rest, by);
  if (cut) return addIndex(scaleIndex(modIndex(cut.high, by / cut.by), cut.by), cut.low);
  const only = rest.terms.length === 1 && rest.offset === 0 && rest.terms[0]?.coef === 1 ? rest.terms[0].atom : null;
  if (only?.kind === "mod" && only.by % by === 0) return modIndex(only.of, by);
  const shift = lo < 0 ? Math.ceil(-lo / by) : 0;
  return make([{ atom: { kind: "mod", of: offsetIndex(rest, shift * by), by }, coef: 1 }], 0);
}

/** Row-major element number of a multi-index. */
export function linearIndex(idx: readonly Index[], shape: readonly number[]): Index {
  let result = ZERO;
  for (let axis = 0; axis < shape.length; axis++) {
    result = addIndex(scaleIndex(result, shape[axis] ?? 1), idx[axis] ?? ZERO);
  }
  return result;
}

/** The multi-index of a row-major element number. */
export function splitIndex(linear: Index, shape: readonly number[]): readonly Index[] {
  const out: Index[] = new Array(shape.length);
  let rest = linear;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const extent = shape[axis] ?? 1;
    if (axis === 0) {
      out[axis] = extent === 1 ? ZERO : rest;
    } else {
      out[axis] = extent <= 1 ? ZERO : modIndex(rest, extent);
      rest = extent <= 1 ? rest : divIndex(rest, extent);
    }
  }
  return out;
}

/** Replaces loop counters by indices, inside div and mod too; `mapExpr` rewrites the expressions of value atoms. */
export function substitute(index: Index, map: (v: LoopVar) => Index, mapExpr: (expr: Expr) => Expr): Index {
  const parts: Index[] = [constIndex(index.offset)];
  for (const { atom, coef } of index.terms) {
    let part: Index;
    if (atom.kind === "var") part = map(atom);
    else if (atom.kind === "div") part = divIndex(substitute(atom.of, map, mapExpr), atom.by);
    else if (atom.kind === "mod") part = modIndex(substitute(atom.of, map, mapExpr), atom.by);
    else {
      const expr = mapExpr(atom.expr);
      part = expr === atom.expr ? make([{ atom, coef: 1 }], 0) : valueIndex(expr, atom.lo, atom.hi);
    }
    parts.push(scaleIndex(part, coef));
  }
  return addIndex(...parts);
}

/** Whether the counter occurs anywhere in the index, run-time values included. */
export function indexDependsOn(index: Index, v: LoopVar, exprDependsOn: (expr: Expr) => boolean): boolean {
  return index.terms.some(({ atom }) => {
    if (atom.kind === "var") return atom === v;
    if (atom.kind === "value") return exprDependsOn(atom.expr);
    return indexDependsOn(atom.of, v, exprDependsOn);
  });
}
