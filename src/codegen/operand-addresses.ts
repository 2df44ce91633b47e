/**
 * @file Facts about a nest that every target needs before it emits code: the addresses that the code takes, whether 64-bit
 * values occur, and the key under which equal nests share one function.
 *
 * A function for a nest takes one address for each operand and constant element offset in use, so that nests which differ
 * only in the addresses of their data share one function: an unrolled network of a thousand layers has the code of a few.
 */
import { at, invariant } from "../base/invariant.ts";
import { bytesOf, laneBytes, typeOf } from "../kernel/dtype.ts";
import { type Expr, walkExpr } from "../kernel/expr.ts";
import type { Kernel, Nest } from "../kernel/loops.ts";
import { nestExprs, storesOf } from "../kernel/loops.ts";
import { printNest } from "../kernel/print.ts";
import { routinePlaces } from "../kernel/routine.ts";

/** An address that a nest's function takes: element `offset` of an operand. */
export interface OperandAddress {
  readonly operand: number;
  readonly offset: number;
}

/** The number of the address of element `offset` of an operand. */
export type AddressNumber = (operand: number, offset: number) => number;

/** Calls `visit` on every expression of a nest. */
function visitExprs(nest: Nest, visit: (expr: Expr) => void): void {
  const { atStore, elsewhere } = nestExprs(nest);
  const seen = new Set<Expr>();
  for (const expr of [...atStore, ...elsewhere]) walkExpr(expr, visit, seen);
}

/** Stages of one unit share an address for each operand: there would be hundreds. */
function stagedAddresses(nest: Nest): readonly OperandAddress[] {
  const operands = new Set(storesOf(nest).map(({ operand }) => operand));
  visitExprs(nest, (e) => {
    if (e.kind === "load") operands.add(e.operand);
  });
  return [...operands].map((operand) => ({ operand, offset: 0 }));
}

export function addressesOf(nest: Nest): readonly OperandAddress[] {
  if (nest.kind === "staged") return stagedAddresses(nest);
  const addresses = new Map<string, OperandAddress>();
  const add = (operand: number, offset: number): void => {
    addresses.set(`${operand}+${offset}`, { operand, offset });
  };
  if (nest.kind === "routine") for (const { operand, offset } of routinePlaces(nest, false)) add(operand, offset);
  else {
    visitExprs(nest, (e) => {
      if (e.kind === "load") add(e.operand, e.index.offset);
    });
  }
  if ("stores" in nest) for (const store of nest.stores) add(store.operand, store.index.offset);
  if (nest.kind === "contract") add(nest.scratch, 0);
  const hasTiles = nest.kind === "attend" || nest.kind === "sort" || nest.kind === "routine";
  if (hasTiles && nest.scratch !== undefined) add(nest.scratch, 0);
  if (nest.kind === "scatter") add(nest.operand, nest.index.offset);
  if (nest.kind === "shuffle") add(nest.operand, 0);
  if (nest.kind === "collective") add(nest.to, 0);
  if (nest.kind === "map" && nest.skipIfAliased) for (const operand of nest.skipIfAliased) add(operand, 0);
  return [...addresses.values()];
}

export function addressNumbers(addresses: readonly OperandAddress[]): AddressNumber {
  const number = new Map(addresses.map((s, i) => [`${s.operand}+${s.offset}`, i]));
  return (operand, offset) => {
    const index = number.get(`${operand}+${offset}`);
    invariant(index !== undefined, () => `no address for operand ${operand} + ${offset}`);
    return index;
  };
}

/**
 * Elements that lanes may be apart, at most, for accesses to share registers (cpu/strided.ts): code depends on the distance of two
 * addresses of an operand where it is smaller, and on no other.
 */
export const LONGEST_STEP = 8;

/** Which addresses of an operand are near to each other, and how far apart. */
function distances(addresses: readonly OperandAddress[]): string {
  const ordered = addresses.map((address, number) => ({ ...address, number }));
  ordered.sort((a, b) => a.operand - b.operand || a.offset - b.offset);
  const near = ordered.flatMap(({ operand, offset, number }, i) => {
    const next = ordered[i + 1];
    const apart = next?.operand === operand ? next.offset - offset : LONGEST_STEP;
    return next && apart < LONGEST_STEP ? [`s${number}+${apart}=s${next.number}`] : [];
  });
  // by number: what is far apart may lie in any order
  return near.sort().join();
}

/** Nests with equal keys have equal code. */
export function nestKey(
  kernel: Kernel,
  nest: Nest,
  addresses: readonly OperandAddress[],
  addressNumber: AddressNumber,
): string {
  const types = addresses.map((s) => kernel.operands[s.operand]?.dtype).join();
  const staged = (operand: number, offset: number): string => `s${addressNumber(operand, 0)}+${offset}`;
  const single = (operand: number, offset: number): string => `s${addressNumber(operand, offset)}`;
  return `${types}\n${distances(addresses)}\n${printNest(nest, nest.kind === "staged" ? staged : single)}`;
}

/** Whether anything that a nest computes or stores has 64 bits. */
export function isWide(kernel: Kernel, nest: Nest): boolean {
  let wide = false;
  visitExprs(nest, (e) => {
    if (laneBytes(e.dtype) === 8) wide = true;
  });
  const stored = storesOf(nest).map((s) => s.operand);
  return wide || stored.some((i) => laneBytes(typeOf(at(kernel.operands, i).dtype).compute) === 8);
}

/** Bytes from an operand's start to an address. */
export function addressBytes(kernel: Kernel, address: OperandAddress): number {
  const operand = kernel.operands[address.operand];
  invariant(operand, () => `kernel has no operand ${address.operand}`);
  return address.offset * bytesOf(operand.dtype);
}
