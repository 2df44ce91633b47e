/** @file Maps, scans and scatters as WebAssembly. Reductions are in reduce.ts, products in contract.ts. */
import { call, type Expr, load } from "../../kernel/expr.ts";
import {
  asExpr,
  identityOf,
  type MapNest,
  nestExprs,
  type Operand,
  type ScanNest,
  type ScatterNest,
  type Store,
  scanExprs,
} from "../../kernel/loops.ts";
import { linearCoefficient } from "../intern.ts";
import { live, UNDIVIDED, type Units } from "../units.ts";
import { type Context, SINGLE, VECTOR } from "./addresses.ts";
import {
  contextsOf,
  emitCombine,
  emitCounters,
  emitStart,
  emitStores,
  emitStrides,
  emitUnits,
  operandType,
  storeTargets,
} from "./emit-loops.ts";
import { splatConstant } from "./scalar.ts";
import type { VectorEmitter } from "./vector.ts";

export function emitMap(em: VectorEmitter, nest: MapNest, operands: readonly Operand[]): Units {
  const loops = live(nest.loops);
  if (loops.some((v) => v.extent === 0)) return UNDIVIDED;
  const inner = loops.pop() ?? null;
  const shared = loops.length === 0 && inner !== null;
  em.vec = inner;
  const values = nest.stores.map((s) => s.value);
  const targets = storeTargets(nest.stores, operands);
  em.findClusters(values);
  const outer = emitUnits(em, loops, () => {
    em.countUses([...values, ...nestExprs(nest).elsewhere]);
    if (!inner) {
      emitStores(em, nest.stores, operands, SINGLE);
      return;
    }
    const start = em.code.local("i32");
    em.vars.set(inner, start);
    emitStart(em, start, shared);
    em.preparePointers(values, targets, inner);
    em.hoist(values, inner, [VECTOR]);
    emitStrides(em, inner, [em.lanes, 1], {
      body: (stride) => emitStores(em, nest.stores, operands, stride === 1 ? SINGLE : VECTOR),
      after: (stride) => em.bumpPointers(stride),
      shared,
    });
  });
  return shared ? { count: inner.extent, grain: em.lanes } : outer;
}

export function emitScan(em: VectorEmitter, nest: ScanNest, operands: readonly Operand[]): Units {
  if (nest.along.extent === 0 || nest.loops.some((v) => v.extent === 0)) return UNDIVIDED;
  const kept = live(nest.loops);
  const across = kept.pop() ?? null;
  const shared = kept.length === 0 && across !== null;
  const outer = emitUnits(em, kept, () => {
    em.vec = across;
    if (!across) {
      emitScanTile(em, nest, operands, [SINGLE]);
      return;
    }
    // Wide stripes use whole cache lines; where neighbours are far apart they would only crowd the cache.
    const dense = nest.stores.every((s) => linearCoefficient(em.interner, s.index, across) === 1);
    emitStrides(em, across, dense ? [em.lanes * 4, em.lanes, 1] : [em.lanes, 1], {
      body: (stride) => emitScanTile(em, nest, operands, contextsOf(em, stride)),
      shared,
    });
  });
  return shared ? { count: across.extent, grain: em.lanes * 4 } : outer;
}

function emitScanTile(
  em: VectorEmitter,
  nest: ScanNest,
  operands: readonly Operand[],
  contexts: readonly Context[],
): void {
  const { code } = em;
  const { combine = "add" } = nest;
  const exprs = [...scanExprs(nest), ...nest.stores.map((s) => s.value)];
  const accs = contexts.map(() => code.local("v128"));
  for (const acc of accs) code.v128Const(splatConstant(nest.dtype, identityOf(combine, nest.dtype))).set(acc);
  const local = code.local("i32");
  em.vars.set(nest.along, local);
  code.i32Const(0).set(local);
  em.countUses(exprs);
  em.preparePointers(exprs, storeTargets(nest.stores, operands), nest.along.extent === 1 ? null : nest.along);
  emitStrides(em, nest.along, [1], {
    body: () => {
      for (const [i, ctx] of contexts.entries()) {
        const acc = accs[i] as number;
        code.get(acc);
        if (nest.scale) {
          em.emit(nest.scale, ctx);
          emitCombine(em, "mul", nest.dtype);
        }
        em.emit(nest.body, ctx);
        emitCombine(em, combine, nest.dtype);
        code.set(acc);
        em.bind({ kind: "acc", dtype: nest.dtype }, ctx, acc);
        emitStores(em, nest.stores, operands, ctx);
      }
    },
    after: () => em.bumpPointers(1),
  });
}

/** One update after the other; elements of one row at once when they land side by side. */
export function emitScatter(em: VectorEmitter, nest: ScatterNest, operands: readonly Operand[]): Units {
  if (nest.loops.some((v) => v.extent === 0)) return UNDIVIDED;
  const storage = operandType(operands, nest.operand);
  const sum: Expr = call(nest.combine ?? "add", [load(storage, nest.operand, nest.index), nest.value]);
  const store: Store = { operand: nest.operand, index: nest.index, value: sum };
  const loops = live(nest.loops);
  const inner = loops.at(-1) ?? null;
  const dense =
    inner !== null &&
    linearCoefficient(em.interner, nest.index, inner) === 1 &&
    nest.bounds.every((b) => linearCoefficient(em.interner, b.index, inner) === 0);
  if (dense) loops.pop();
  em.vec = dense ? inner : null;
  emitCounters(em, loops, () => {
    em.countUses([sum, ...nest.bounds.map(({ index }) => asExpr(index))]);
    em.emitBounds(nest.bounds, SINGLE);
    em.code.if(null, () =>
      em.scope(() => {
        if (!dense || !inner) {
          emitStores(em, [store], operands, SINGLE);
          return;
        }
        const start = em.code.local("i32");
        em.vars.set(inner, start);
        em.code.i32Const(0).set(start);
        em.preparePointers([sum], [{ operand: nest.operand, index: nest.index, storage }], inner);
        emitStrides(em, inner, [em.lanes, 1], {
          body: (stride) => emitStores(em, [store], operands, stride === 1 ? SINGLE : VECTOR),
          after: (stride) => em.bumpPointers(stride),
        });
      }),
    );
  });
  return UNDIVIDED;
}
