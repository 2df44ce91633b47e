/**
 * @file Emission of loops as C, for every kind of nest. Threads share the outermost loop over results: a nest's function runs
 * units [lo, hi) of it. An element is computed in the same way on every thread.
 *
 *   loops [8, 3] × row of 100      24 units, one for each row
 *   one loop of 4096               4096 units, cut at multiples of a register
 *
 * A row is processed in whole registers, then the remainder in one register of which only the first lanes count:
 *
 *   n = 23, 16 lanes:   [0 … 15]   [16 … 22 · · · · · · · · ·]
 */
import { at, invariant } from "../../base/invariant.ts";
import { type DType, typeOf } from "../../kernel/dtype.ts";
import type { LoopVar } from "../../kernel/expr.ts";
import type { Operand, Store } from "../../kernel/loops.ts";
import { storeClusters } from "../cpu/strided.ts";
import { product, splitCounters, type Units } from "../units.ts";
import type { Context, VectorEmitter } from "./emitter.ts";

/** Writes `body` for every value of the counters, of which the outermost become units. */
export function emitOuter(em: VectorEmitter, counters: readonly LoopVar[], body: () => void): Units {
  const [shared, rest] = splitCounters(counters);
  const count = product(shared);
  if (count === 0) return { count: 0, grain: 1 };
  const unit = em.code.name("unit");
  em.block(`for (idx ${unit} = lo; ${unit} < hi; ${unit}++)`, () => {
    splitUnit(em, unit, shared);
    em.loops(rest, body);
  });
  return { count, grain: 1 };
}

/** Counters from the number of a unit, the last one running fastest. */
export function splitUnit(em: VectorEmitter, unit: string, counters: readonly LoopVar[]): void {
  let inner = 1;
  for (const [i, v] of [...counters.entries()].reverse()) {
    const over = inner === 1 ? unit : `${unit} / ${inner}`;
    em.code.line(`const idx ${em.counter(v)} = ${i === 0 ? over : `(${over}) % ${v.extent}`};`);
    inner *= v.extent;
  }
}

/** Emits a loop over a counter register by register. `shared`: it is the loop that threads share. */
export function emitRow(em: VectorEmitter, v: LoopVar, shared: boolean, body: (ctx: Context) => void): void {
  const whole = v.extent - (v.extent % em.lanes);
  const tail = v.extent - whole;
  em.multiple = em.lanes;
  if (whole > 0) {
    const name = em.counter(v);
    const [from, to] = shared ? ["lo", tail > 0 ? `(hi < ${whole} ? hi : ${whole})` : "hi"] : ["0", String(whole)];
    em.block(`for (idx ${name} = ${from}; ${name} < ${to}; ${name} += ${em.lanes})`, () => body(em.all));
  }
  if (tail > 0) {
    em.block(shared ? `if (hi == ${v.extent})` : "", () => {
      em.code.line(`const idx ${em.counter(v)} = ${whole};`);
      body(em.first(tail));
    });
  }
  em.multiple = 1;
}

export function operandType(operands: readonly Operand[], i: number): DType {
  const operand = operands[i];
  invariant(operand, () => `kernel has no operand ${i}`);
  return operand.dtype;
}

/** Computes all stored values, then stores them. */
export function emitStores(em: VectorEmitter, stores: readonly Store[], ctx: Context): void {
  const values = stores.map(({ value }) => {
    const text = em.emit(value, ctx);
    if (value.kind !== "const") return text;
    const name = em.code.name("t");
    em.code.line(`const ${em.type(value.dtype)} ${name} = ${text};`);
    return name;
  });
  const clustered = new Set<Store>();
  if (ctx.count > 1) {
    for (const cluster of storeClusters(stores, (index) => em.coefficient(index))) {
      const own = cluster.members.map(({ access }) => access);
      const { plain, compute } = typeOf(operandType(em.operands, at(own, 0).operand));
      if (!plain) continue;
      em.storeCluster(
        cluster,
        compute,
        own.map((store) => values[stores.indexOf(store)] as string),
        ctx,
      );
      for (const store of own) clustered.add(store);
    }
  }
  stores.forEach((store, i) => {
    if (clustered.has(store)) return;
    em.store(store, operandType(em.operands, store.operand), values[i] as string, ctx);
  });
}
