/** @file What devices of a group get from each other, in doubles: the reference meanings of collectives. */
import { at } from "../../base/invariant.ts";
import type { Reference } from "../../ir/op.ts";

/** Everyone gets the combination of all, in the order of ranks. */
export function combined(all: readonly Reference[], both: (a: number, b: number) => number): readonly Reference[] {
  const [first, ...others] = all;
  const sum = Float64Array.from(first ?? []);
  for (const other of others) for (let e = 0; e < sum.length; e++) sum[e] = both(at(sum, e), at(other, e));
  return all.map(() => sum.slice());
}

/** Part `i` of `p` equal ones. */
const part = (x: Reference, i: number, p: number): Reference => x.slice((i * x.length) / p, ((i + 1) * x.length) / p);

const joined = (parts: readonly Reference[]): Reference => Float64Array.from(parts.flatMap((x) => [...x]));

export const gathered = (all: readonly Reference[]): readonly Reference[] => all.map(() => joined(all));

/** Device i gets part i of what everyone would. */
export const scattered = (all: readonly Reference[], both: (a: number, b: number) => number): readonly Reference[] =>
  combined(all, both).map((sum, i) => part(sum, i, all.length));

export const exchangedParts = (all: readonly Reference[]): readonly Reference[] =>
  all.map((_, i) => joined(all.map((x) => part(x, i, all.length))));

/** Zeros where nothing arrives. */
export const permuted = (
  all: readonly Reference[],
  pairs: readonly (readonly [number, number])[],
): readonly Reference[] =>
  all.map((x, to) => {
    const from = pairs.find((pair) => pair[1] === to)?.[0];
    return from === undefined ? new Float64Array(x.length) : at(all, from).slice();
  });

export const fromRoot = (all: readonly Reference[], root: number): readonly Reference[] =>
  all.map(() => at(all, root).slice());
