/**
 * @file The loop-nest form: what every operation becomes before a target sees it, and all that a target has to render.
 *
 * A kernel is a list of nests run one after the other over numbered operands. A nest is one of a handful of shapes:
 *
 *   map       for loops:                       stores
 *   reduce    for loops: acc = ⊕ over reduce of body;   stores (which may use acc)
 *   scan      for loops: acc = 0; for along: acc += body; stores
 *   contract  for batch, rows, cols: acc = Σ over depth of a · b;   stores
 *   scatter   for loops: if bounds: operand[index] += value          in loop order, one after the other
 *   shuffle   the permutation that a sequence of random bits encodes
 *
 * All stores of one iteration happen after all its loads, which is what makes in-place execution legal when an operand
 * is read only at the element that is stored.
 *
 * The order of arithmetic is part of a nest's meaning, never a choice of the target or of what was fused into it:
 * `reduce` with lanes "loops" adds sequentially, with lanes "reduce" in a fixed interleaving over its last counter (see
 * REDUCE_LANES); `contract` adds along depth sequentially; `scan` and `scatter` in loop order.
 */

import type { ScalarType } from "./dtype.ts";
import type { Bound, Expr, Index, LoopVar } from "./expr.ts";
import { walkExpr } from "./expr.ts";

export interface Operand {
  readonly dtype: ScalarType;
  readonly elements: number;
  /** `scratch` is workspace that lives only while the kernel runs; it is planned like any other buffer. */
  readonly role: "in" | "out" | "scratch";
}

export interface Store {
  readonly operand: number;
  readonly index: Index;
  readonly value: Expr;
}

export type Combine = "add" | "mul" | "max" | "min" | "or" | "and";

export interface MapNest {
  readonly kind: "map";
  readonly loops: readonly LoopVar[];
  readonly stores: readonly Store[];
  /** Skip the nest when these two operands turn out to share storage (a copy onto itself). */
  readonly unlessSame?: readonly [number, number];
}

/**
 * With lanes "reduce": partial accumulators over the last reduce counter r are kept per r mod 16 for the part of the
 * range that fills sixteen, then per r mod 4 (joining accumulators 0-3), then one by one into accumulator 0; they are
 * joined as ((q0+q1)+(q2+q3)) over the four groups of four, then lane 0+lane 2, lane 1+lane 3, and the two sums. For
 * f64 the numbers are 8 and 2. Outer reduce counters run sequentially on the same accumulators.
 */
export interface ReduceNest {
  readonly kind: "reduce";
  readonly loops: readonly LoopVar[];
  readonly reduce: readonly LoopVar[];
  readonly lanes: "loops" | "reduce";
  readonly combine: Combine;
  readonly dtype: ScalarType;
  readonly body: Expr;
  readonly stores: readonly Store[];
}

export interface ScanNest {
  readonly kind: "scan";
  readonly loops: readonly LoopVar[];
  readonly along: LoopVar;
  readonly dtype: ScalarType;
  readonly body: Expr;
  readonly stores: readonly Store[];
}

export interface ContractNest {
  readonly kind: "contract";
  readonly batch: readonly LoopVar[];
  readonly rows: LoopVar;
  readonly cols: LoopVar;
  readonly depth: LoopVar;
  /** When given, `a` and `b` use these two counters in place of depth: depth = outer · inner.extent + inner. */
  readonly split: readonly [outer: LoopVar, inner: LoopVar] | null;
  readonly dtype: ScalarType;
  /** Over batch, rows, depth. */
  readonly a: Expr;
  /** Over batch, depth, cols. */
  readonly b: Expr;
  readonly stores: readonly Store[];
  /** Operand number of the workspace for packed panels. */
  readonly scratch: number;
}

export interface ScatterNest {
  readonly kind: "scatter";
  readonly loops: readonly LoopVar[];
  readonly bounds: readonly Bound[];
  readonly operand: number;
  readonly index: Index;
  readonly value: Expr;
}

export interface ShuffleNest {
  readonly kind: "shuffle";
  /** Counter over the elements; `bits` gives an i32 for each. */
  readonly along: LoopVar;
  readonly bits: Expr;
  readonly operand: number;
}

export type Nest = MapNest | ReduceNest | ScanNest | ContractNest | ScatterNest | ShuffleNest;

export interface Kernel {
  readonly operands: readonly Operand[];
  readonly nests: readonly Nest[];
}

/** The value that changes nothing when combined. */
export function identityOf(combine: Combine, dtype: ScalarType): number {
  switch (combine) {
    case "add":
    case "or":
      return 0;
    case "mul":
    case "and":
      return 1;
    case "max":
      return dtype === "i32" ? -0x80000000 : Number.NEGATIVE_INFINITY;
    case "min":
      return dtype === "i32" ? 0x7fffffff : Number.POSITIVE_INFINITY;
  }
}

/** Expressions evaluated at the stored element, and those evaluated elsewhere (reduction bodies, panels, addresses). */
export function nestExprs(nest: Nest): { readonly atStore: readonly Expr[]; readonly elsewhere: readonly Expr[] } {
  switch (nest.kind) {
    case "map":
      return { atStore: nest.stores.map((s) => s.value), elsewhere: [] };
    case "reduce":
      return { atStore: nest.stores.map((s) => s.value), elsewhere: [nest.body] };
    case "scan":
      return { atStore: [...nest.stores.map((s) => s.value), nest.body], elsewhere: [] };
    case "contract":
      return { atStore: nest.stores.map((s) => s.value), elsewhere: [nest.a, nest.b] };
    case "scatter":
      return {
        atStore: [],
        elsewhere: [
          nest.value,
          { kind: "index", dtype: "i32", index: nest.index },
          ...nest.bounds.map((b) => ({ kind: "index", dtype: "i32", index: b.index }) as const),
        ],
      };
    case "shuffle":
      return { atStore: [], elsewhere: [nest.bits] };
  }
}

/**
 * Pairs [in, out] of operands that may share storage: the input is read only at the very element that is stored, in the
 * same iteration. A kernel of several nests allows it only for the pair of its `unlessSame` copy.
 */
export function inPlacePairs(kernel: Kernel): readonly (readonly [number, number])[] {
  const first = kernel.nests[0];
  if (!first) return [];
  if (kernel.nests.length > 1) {
    return first.kind === "map" && first.unlessSame && onlyReadBy(kernel, first.unlessSame[0])
      ? [first.unlessSame]
      : [];
  }
  const { atStore, elsewhere } = nestExprs(first);
  const stores = "stores" in first ? first.stores : [];
  const reads = new Map<number, Set<string>>();
  const barred = new Set<number>();
  const seen = new Set<Expr>();
  for (const expr of elsewhere)
    walkExpr(expr, (e) => {
      if (e.kind === "load") barred.add(e.operand);
    });
  for (const expr of atStore) {
    walkExpr(
      expr,
      (e) => {
        if (e.kind !== "load") return;
        const keys = reads.get(e.operand) ?? new Set();
        keys.add(e.index.key);
        reads.set(e.operand, keys);
      },
      seen,
    );
  }
  const pairs: (readonly [number, number])[] = [];
  kernel.operands.forEach((input, i) => {
    const keys = reads.get(i);
    if (input.role !== "in" || barred.has(i) || !keys || keys.size !== 1) return;
    for (const store of stores) {
      const out = kernel.operands[store.operand];
      if (out && out.dtype === input.dtype && out.elements === input.elements && keys.has(store.index.key)) {
        pairs.push([i, store.operand]);
      }
    }
  });
  return pairs;
}

/** Whether an operand is read by the first nest alone. */
function onlyReadBy(kernel: Kernel, operand: number): boolean {
  return kernel.nests.slice(1).every((nest) => {
    const { atStore, elsewhere } = nestExprs(nest);
    let read = false;
    for (const expr of [...atStore, ...elsewhere]) {
      walkExpr(expr, (e) => {
        if (e.kind === "load" && e.operand === operand) read = true;
      });
    }
    return !read;
  });
}
