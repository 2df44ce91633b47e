/**
 * @file Emission of loops as WebAssembly, for every kind of nest: counters, strides, stores. A row of n elements is processed
 * in strides: as many whole registers as fit (several at a time where accumulators would wait for each other), then single
 * elements in lane 0:
 *
 *   n = 23:   [0..15] four registers   [16..19] one register   20  21  22
 */
import { at, invariant } from "../../base/invariant.ts";
import { type DType, laneBytes, type ScalarType, typeOf } from "../../kernel/dtype.ts";
import type { Index, LoopVar } from "../../kernel/expr.ts";
import type { Combine, Operand, Store } from "../../kernel/loops.ts";
import { storeClusters } from "../cpu/strided.ts";
import { product, splitCounters, UNDIVIDED, type Units } from "../units.ts";
import { type Context, SINGLE, VECTOR } from "./addresses.ts";
import { OP } from "./encoder.ts";
import { emitScalarFn } from "./scalar.ts";
import type { VectorEmitter } from "./vector.ts";

/** for counters: body. Counters that run once are not loops. */
export function emitCounters(em: VectorEmitter, loops: readonly LoopVar[], body: () => void): void {
  const [first, ...rest] = loops;
  if (!first) {
    body();
    return;
  }
  const { code } = em;
  const local = code.local("i32");
  em.vars.set(first, local);
  code.i32Const(0).set(local);
  code.while(
    () => code.get(local).i32Const(first.extent).op(OP.i32LtS),
    () => {
      em.scope(() => emitCounters(em, rest, body));
      code.increment(local, 1);
    },
  );
}

/** Counters of which the outermost become units where threads share them. */
export function emitUnits(em: VectorEmitter, counters: readonly LoopVar[], body: () => void): Units {
  const { code, share } = em;
  const [shared, rest] = splitCounters(counters);
  if (!share || shared.length === 0) {
    emitCounters(em, counters, body);
    return UNDIVIDED;
  }
  const unit = code.local("i32");
  code.get(share.lo).set(unit);
  code.while(
    () => code.get(unit).get(share.hi).op(OP.i32LtU),
    () => {
      em.scope(() => {
        emitSplit(em, unit, shared);
        emitCounters(em, rest, body);
      });
      code.increment(unit, 1);
    },
  );
  return { count: product(shared), grain: 1 };
}

/** Counters from the number of a unit, the last one running fastest. */
export function emitSplit(em: VectorEmitter, unit: number, counters: readonly LoopVar[]): void {
  const { code } = em;
  let inner = 1;
  for (const [i, v] of [...counters.entries()].reverse()) {
    const local = code.local("i32");
    em.vars.set(v, local);
    code.get(unit);
    if (inner > 1) code.i32Const(inner).op(OP.i32DivU);
    if (i > 0) code.i32Const(v.extent).op(OP.i32RemU);
    code.set(local);
    inner *= v.extent;
  }
}

/** Sets a local to where a row starts: at 0, or at the first unit where threads share the row itself. */
export function emitStart(em: VectorEmitter, local: number, shared: boolean): void {
  if (shared && em.share) em.code.get(em.share.lo).set(local);
  else em.code.i32Const(0).set(local);
}

/** Code after every `run` elements of a counter; `run` is a multiple of the widest stride. */
export interface Runs {
  readonly run: number;
  emit(): void;
}

/** Code at each stride, after it, and after runs; and whether the elements are the units that threads share. */
export interface StrideSteps {
  body(stride: number): void;
  after?(stride: number): void;
  readonly runs?: Runs | undefined;
  readonly shared?: boolean;
}

/**
 * Emits a loop over a counter in strides, widest first; `body` runs with the counter's local set and must leave it alone. Pieces of a
 * shared one are cut at multiples of the widest stride, so that all but the last consist of those.
 */
export function emitStrides(em: VectorEmitter, v: LoopVar, strides: readonly number[], steps: StrideSteps): void {
  const { code } = em;
  const { runs, shared = false } = steps;
  const hi = shared ? em.share?.hi : undefined;
  const local = code.local("i32");
  em.vars.set(v, local);
  emitStart(em, local, shared);
  const before = em.multiple;
  // Registers come before single elements, in rows that begin at 0 and pieces that begin at a multiple of a register.
  if (v === em.vec) em.multiple = em.lanes;
  const iteration = (stride: number): void => {
    em.scope(() => steps.body(stride));
    steps.after?.(stride);
    code.increment(local, stride);
  };
  let left = v.extent;
  const [widest] = strides;
  if (runs && widest && left >= runs.run) {
    left %= runs.run;
    const end = code.local("i32");
    code.while(
      () =>
        code
          .get(local)
          .i32Const(v.extent - runs.run)
          .op(OP.i32LeS),
      () => {
        code.get(local).i32Const(runs.run).op(OP.i32Add).set(end);
        code.while(
          () => code.get(local).get(end).op(OP.i32LtS),
          () => iteration(widest),
        );
        runs.emit();
      },
    );
  }
  for (const stride of strides) {
    if (left < stride) continue;
    left %= stride;
    code.while(
      () => {
        if (hi === undefined) code.get(local).i32Const(v.extent - stride);
        else code.get(local).i32Const(stride).op(OP.i32Add).get(hi);
        code.op(OP.i32LeS);
      },
      () => iteration(stride),
    );
  }
  runs?.emit();
  em.multiple = before;
}

/** Computes all stored values, then stores them. */
export function emitStores(
  em: VectorEmitter,
  stores: readonly Store[],
  operands: readonly Operand[],
  ctx: Context,
): void {
  const values = stores.map((store) => {
    em.emit(store.value, ctx);
    const local = em.code.local("v128");
    em.code.set(local);
    return local;
  });
  const clustered = new Set<Store>();
  for (const cluster of ctx.single ? [] : storeClusters(stores, (index) => em.stepOf(index))) {
    const own = cluster.members.map(({ access }) => access);
    const storage = operandType(operands, at(own, 0).operand);
    if (!typeOf(storage).plain || laneBytes(typeOf(storage).compute) * em.lanes !== 16) continue;
    const locals = own.map((store) => values[stores.indexOf(store)] as number);
    em.emitStoreCluster(cluster, storage, locals, ctx);
    for (const store of own) clustered.add(store);
  }
  stores.forEach((store, i) => {
    if (clustered.has(store)) return;
    em.emitStore(store, operandType(operands, store.operand), values[i] as number, ctx);
  });
}

export function operandType(operands: readonly Operand[], i: number): DType {
  const operand = operands[i];
  invariant(operand, () => `kernel has no operand ${i}`);
  return operand.dtype;
}

/** Where stores go, for pointers. */
export function storeTargets(
  stores: readonly Store[],
  operands: readonly Operand[],
): readonly { readonly operand: number; readonly index: Index; readonly storage: DType }[] {
  return stores.map(({ operand, index }) => ({ operand, index, storage: operandType(operands, operand) }));
}

/** Combines the two registers on the stack. */
export function emitCombine(em: VectorEmitter, combine: Combine, dtype: ScalarType): void {
  emitScalarFn(em.code, combine, dtype, dtype);
}

/** Contexts that cover a stride: whole registers, or a single element. */
export function contextsOf(em: VectorEmitter, stride: number): readonly Context[] {
  if (stride === 1) return [SINGLE];
  return Array.from({ length: stride / em.lanes }, (_, i) => ({ ...VECTOR, shift: i * em.lanes }));
}
