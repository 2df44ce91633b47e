/**
 * @file Merges adjacent loops that walk memory as one: when replacing (outer, inner) by (c div n, c mod n) leaves every
 * index linear in the single counter c, the two loops become one of their product's length. Long rows are what vector
 * code wants.
 *
 *   for i < 32: for j < 128: y[128 i + j] = max(x[128 i + j], 0)   →   for c < 4096: y[c] = max(x[c], 0)
 *
 * Only loops over results are merged, never reduce counters: which iteration computes an element is not observable,
 * the order of a sum is.
 */
import type { Expr, Index, LoopVar } from "./expr.ts";
import { divIndex, modIndex, substitute, varIndex } from "./index-math.ts";
import type { Kernel, MapNest, Nest, Store } from "./loops.ts";
import { mapIndices } from "./rewrite.ts";

/** Divisions and remainders in an index, those inside each other too. */
function divisions(index: Index): number {
  let n = 0;
  for (const { atom } of index.terms) {
    if (atom.kind === "div" || atom.kind === "mod") n += 1 + divisions(atom.of);
  }
  return n;
}

interface Merge {
  readonly index: (index: Index) => Index;
  readonly expr: (expr: Expr) => Expr;
  /** Whether everything so far stayed linear in the merged counter. */
  succeeded(): boolean;
}

function mergeOf(outer: LoopVar, inner: LoopVar, merged: LoopVar): Merge {
  const c = varIndex(merged);
  const [high, low] = [divIndex(c, inner.extent), modIndex(c, inner.extent)];
  const counter = (v: LoopVar): Index => {
    if (v === outer) return high;
    return v === inner ? low : varIndex(v);
  };
  let worse = false;
  const index = (old: Index, visit: (expr: Expr) => Expr): Index => {
    const made = substitute(old, counter, visit);
    if (divisions(made) > divisions(old)) worse = true;
    return made;
  };
  const expr = (e: Expr): Expr => mapIndices(e, index);
  return { expr, index: (i) => index(i, expr), succeeded: () => !worse };
}

function mapStores(stores: readonly Store[], m: Merge): readonly Store[] {
  return stores.map((s) => ({ ...s, index: m.index(s.index), value: m.expr(s.value) }));
}

function applyMerge(nest: Nest, loops: readonly LoopVar[], m: Merge): Nest {
  switch (nest.kind) {
    case "map":
      return { ...nest, loops, stores: mapStores(nest.stores, m) };
    case "reduce":
      return { ...nest, loops, body: m.expr(nest.body), stores: mapStores(nest.stores, m) };
    case "scan": {
      const scale = nest.scale && m.expr(nest.scale);
      return { ...nest, loops, scale, body: m.expr(nest.body), stores: mapStores(nest.stores, m) };
    }
    case "scatter":
      return {
        ...nest,
        loops,
        index: m.index(nest.index),
        value: m.expr(nest.value),
        bounds: nest.bounds.map((b) => ({ ...b, index: m.index(b.index) })),
      };
    case "sort":
      return { ...nest, loops, keys: nest.keys.map((key) => m.expr(key)), stores: mapStores(nest.stores, m) };
    default:
      return nest;
  }
}

function collapseNest(nest: Nest): Nest {
  if (nest.kind === "staged") return { ...nest, body: nest.body.map((map) => collapseNest(map) as MapNest) };
  if (!("loops" in nest) || nest.kind === "routine") return nest;
  const loops = nest.loops.filter((v) => v.extent !== 1);
  let result: Nest = { ...nest, loops };
  for (let i = loops.length - 2; i >= 0; i--) {
    const [outer, inner] = [loops[i], loops[i + 1]];
    if (!outer || !inner || outer.extent === 0 || inner.extent === 0) continue;
    const merged: LoopVar = { kind: "var", name: `${outer.name}${inner.name}`, extent: outer.extent * inner.extent };
    const shorter = [...loops.slice(0, i), merged, ...loops.slice(i + 2)];
    const merge = mergeOf(outer, inner, merged);
    const made = applyMerge(result, shorter, merge);
    if (!merge.succeeded()) continue;
    result = made;
    loops.splice(i, 2, merged);
  }
  return result;
}

/** The same kernel with as few loops as its indices allow. */
export function collapseLoops(kernel: Kernel): Kernel {
  return { ...kernel, nests: kernel.nests.map(collapseNest) };
}
