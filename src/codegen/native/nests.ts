/** @file Maps, scans, scatters and shuffles as C. Reductions are in reduce.ts, products in contract.ts. */
import { call, type Expr, type LoopVar, load } from "../../kernel/expr.ts";
import {
  identityOf,
  type MapNest,
  type ScanNest,
  type ScatterNest,
  type ShuffleNest,
  type Store,
} from "../../kernel/loops.ts";
import { live, UNDIVIDED, type Units } from "../units.ts";
import { emitOuter, emitRow, emitStores, operandType } from "./emit-loops.ts";
import type { Context, VectorEmitter } from "./emitter.ts";
import { emitTransposedMap, transposedMap } from "./map-transposed.ts";
import type { CFile } from "./options.ts";
import { combineText, constantText } from "./scalar.ts";

/** Rows of maps: over all counters but the last, then along it. */
function emitRows(
  em: VectorEmitter,
  loops: readonly LoopVar[],
  values: readonly Expr[],
  body: (ctx: Context) => void,
): Units {
  const outer = live(loops);
  const inner = outer.pop() ?? null;
  em.vec = inner;
  if (!inner) {
    body(em.first(1));
    return UNDIVIDED;
  }
  const row = (shared: boolean): void => {
    em.hoist(values, inner, em.all);
    emitRow(em, inner, shared, body);
  };
  if (outer.length > 0) return emitOuter(em, outer, () => row(false));
  row(true);
  return { count: inner.extent, grain: em.lanes };
}

export function emitMap(em: VectorEmitter, nest: MapNest, { options, share }: CFile): Units {
  if (nest.loops.some((v) => v.extent === 0)) return { count: 0, grain: 1 };
  const transposed = transposedMap(em, nest, options);
  if (transposed) return emitTransposedMap(em, nest, transposed, share);
  const values = nest.stores.map((s) => s.value);
  em.vec = live(nest.loops).at(-1) ?? null;
  em.findClusters(values);
  return emitRows(em, nest.loops, values, (ctx) => emitStores(em, nest.stores, ctx));
}

/** Rows that are summed up side by side where they lie apart: more would push each other out of the cache. */
const ABREAST = 4;

export function emitScan(em: VectorEmitter, nest: ScanNest): Units {
  if (nest.along.extent === 0 || nest.loops.some((v) => v.extent === 0)) return { count: 0, grain: 1 };
  const body = (ctx: Context): void => {
    const acc = em.code.name("acc");
    const { combine = "add", dtype } = nest;
    em.code.line(`${em.type(dtype)} ${acc} = ${constantText(dtype, identityOf(combine, dtype), em.lanes)};`);
    em.loop(nest.along, () => {
      const scaled = nest.scale ? `${acc} * ${em.emit(nest.scale, ctx)}` : acc;
      const body = em.emit(nest.body, ctx);
      const next = combine === "add" ? `${scaled} + ${body}` : combineText({ combine, dtype }, scaled, body, em.lanes);
      em.code.line(`${acc} = ${next};`);
      em.bind({ kind: "acc", dtype: nest.dtype }, acc);
      emitStores(em, nest.stores, ctx);
    });
  };
  const outer = live(nest.loops);
  em.vec = outer.at(-1) ?? null;
  const dense = nest.stores.every((store) => em.coefficient(store.index) === 1);
  if (dense || !em.vec) return emitRows(em, nest.loops, [], body);
  return emitAbreast(em, outer, body);
}

/** A few elements of the last counter at a time, then one at a time. */
function emitAbreast(em: VectorEmitter, counters: readonly LoopVar[], body: (ctx: Context) => void): Units {
  const outer = [...counters];
  const inner = outer.pop() as LoopVar;
  const walk = (from: string, to: string): void => {
    const row = em.counter(inner);
    em.code.line(`idx ${row} = ${from};`);
    em.block(`for (; ${row} + ${ABREAST} <= ${to}; ${row} += ${ABREAST})`, () => body(em.first(ABREAST)));
    em.block(`for (; ${row} < ${to}; ${row}++)`, () => body(em.first(1)));
  };
  if (outer.length > 0) return emitOuter(em, outer, () => walk("0", String(inner.extent)));
  walk("lo", "hi");
  return { count: inner.extent, grain: ABREAST };
}

/** One update after the other; elements of one row at once when they land side by side. */
export function emitScatter(em: VectorEmitter, nest: ScatterNest): Units {
  if (nest.loops.some((v) => v.extent === 0)) return { count: 0, grain: 1 };
  const dtype = operandType(em.operands, nest.operand);
  const sum: Expr = call(nest.combine ?? "add", [load(dtype, nest.operand, nest.index), nest.value]);
  const store: Store = { operand: nest.operand, index: nest.index, value: sum };
  const loops = live(nest.loops);
  const inner = loops.at(-1) ?? null;
  em.vec = inner;
  const dense =
    inner !== null && em.coefficient(nest.index) === 1 && nest.bounds.every((b) => em.coefficient(b.index) === 0);
  if (dense) loops.pop();
  else em.vec = null;
  em.loops(loops, () => {
    const holds = em.condition(nest.bounds, em.first(1));
    em.block(`if (${holds})`, () => {
      if (!dense || !inner) emitStores(em, [store], em.first(1));
      else emitRow(em, inner, false, (ctx) => emitStores(em, [store], ctx));
    });
  });
  return UNDIVIDED;
}

/**
 * Fisher-Yates from random bits: the output starts as 0, 1, 2, …; for i from the last element down, element i changes
 * places with element floor(bits_i · (i + 1) / 2³²), bits taken as an unsigned number.
 */
export function emitShuffle(em: VectorEmitter, nest: ShuffleNest): Units {
  const n = nest.along.extent;
  const out = em.pointer(nest.operand, 0);
  em.vec = null;
  em.code.line(`for (idx e = 0; e < ${n}; e++) ${out}[e] = (i32)e;`);
  const i = em.counter(nest.along);
  em.block(`for (idx ${i} = ${n - 1}; ${i} > 0; ${i}--)`, () => {
    const bits = em.emit(nest.bits, em.first(1));
    em.code.line(`const idx other = (idx)(((u64)(u32)(${bits}[0]) * (u64)(${i} + 1)) >> 32);`);
    em.code.line(`const i32 moved = ${out}[${i}];`);
    em.code.line(`${out}[${i}] = ${out}[other];`);
    em.code.line(`${out}[other] = moved;`);
  });
  return UNDIVIDED;
}
