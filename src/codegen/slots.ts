/**
 * @file What every target asks about a nest before it writes code for it: which addresses the code takes, whether 64-bit
 * values occur, and the text under which equal nests share one function.
 *
 * A function for a nest takes one address for each operand and constant element offset in use, so that nests which differ
 * only in where their data lies are one function: an unrolled network of a thousand layers has the code of a few.
 */
import { at, invariant } from "../base/invariant.ts";
import { bytesOf, laneBytes, typeOf } from "../kernel/dtype.ts";
import { type Expr, walkExpr } from "../kernel/expr.ts";
import type { Kernel, Nest } from "../kernel/loops.ts";
import { nestExprs } from "../kernel/loops.ts";
import { printNest } from "../kernel/print.ts";

/** An address that a nest's function takes: element `offset` of an operand. */
export interface Slot {
  readonly operand: number;
  readonly offset: number;
}

/** The number of the slot for element `offset` of an operand. */
export type SlotNumber = (operand: number, offset: number) => number;

/** Calls `visit` on every expression of a nest. */
function visitExprs(nest: Nest, visit: (expr: Expr) => void): void {
  const { atStore, elsewhere } = nestExprs(nest);
  const seen = new Set<Expr>();
  for (const expr of [...atStore, ...elsewhere]) walkExpr(expr, visit, seen);
}

export function slotsOf(nest: Nest): readonly Slot[] {
  const slots = new Map<string, Slot>();
  const add = (operand: number, offset: number): void => {
    slots.set(`${operand}+${offset}`, { operand, offset });
  };
  visitExprs(nest, (e) => {
    if (e.kind === "load") add(e.operand, e.index.offset);
  });
  if ("stores" in nest) for (const store of nest.stores) add(store.operand, store.index.offset);
  if (nest.kind === "contract") add(nest.scratch, 0);
  if (nest.kind === "scatter") add(nest.operand, nest.index.offset);
  if (nest.kind === "shuffle") add(nest.operand, 0);
  if (nest.kind === "map" && nest.unlessSame) for (const operand of nest.unlessSame) add(operand, 0);
  return [...slots.values()];
}

export function slotNumbers(slots: readonly Slot[]): SlotNumber {
  const number = new Map(slots.map((s, i) => [`${s.operand}+${s.offset}`, i]));
  return (operand, offset) => {
    const found = number.get(`${operand}+${offset}`);
    invariant(found !== undefined, () => `no slot for operand ${operand} + ${offset}`);
    return found;
  };
}

/** Nests with equal keys have equal code. */
export function nestKey(kernel: Kernel, nest: Nest, slots: readonly Slot[], slot: SlotNumber): string {
  const types = slots.map((s) => kernel.operands[s.operand]?.dtype).join();
  return `${types}\n${printNest(nest, (operand, offset) => `s${slot(operand, offset)}`)}`;
}

/** Whether anything that a nest computes or stores has 64 bits. */
export function isWide(kernel: Kernel, nest: Nest): boolean {
  let wide = false;
  visitExprs(nest, (e) => {
    if (laneBytes(e.dtype) === 8) wide = true;
  });
  const stored = "stores" in nest ? nest.stores.map((s) => s.operand) : [];
  return wide || stored.some((i) => laneBytes(typeOf(at(kernel.operands, i).dtype).compute) === 8);
}

/** Bytes from an operand's start to a slot. */
export function slotBytes(kernel: Kernel, slot: Slot): number {
  const operand = kernel.operands[slot.operand];
  invariant(operand, () => `kernel has no operand ${slot.operand}`);
  return slot.offset * bytesOf(operand.dtype);
}
