/** @file Maps one after the other for each unit as WebAssembly, over a tile that each thread has for itself. */
import { at } from "../../base/invariant.ts";
import { bytesOf } from "../../kernel/dtype.ts";
import type { Operand, StagedNest } from "../../kernel/loops.ts";
import type { AddressNumber } from "../operand-addresses.ts";
import { product, UNDIVIDED, type Units } from "../units.ts";
import { emitSplit } from "./emit-loops.ts";
import { OP } from "./encoder.ts";
import { emitMap } from "./nests.ts";
import { VectorEmitter } from "./vector.ts";

export function emitStaged(
  outer: VectorEmitter,
  { units, tile, dtype, body }: StagedNest,
  operands: readonly Operand[],
  addressNumber: AddressNumber,
): Units {
  const { code, share } = outer;
  const w = code.local("i32");
  code.get(addressNumber(tile.operand, 0));
  if (share) {
    const bytes = tile.elements * bytesOf(dtype);
    code.get(share.thread).i32Const(bytes).op(OP.i32Mul).op(OP.i32Add);
  }
  code.set(w);
  /** The address is computed where it is asked for: what was computed elsewhere may not have run. */
  const address = (operand: number, offset: number): number => {
    const base = operand === tile.operand ? w : addressNumber(operand, 0);
    if (offset === 0) return base;
    const made = code.local("i32");
    code
      .get(base)
      .i32Const(offset * bytesOf(at(operands, operand).dtype))
      .op(OP.i32Add)
      .set(made);
    return made;
  };
  const em = new VectorEmitter(code, outer.lanes, address);
  const [unit, end] = [code.local("i32"), code.local("i32")];
  const count = product(units);
  if (share) code.get(share.lo).set(unit).get(share.hi).set(end);
  else code.i32Const(0).set(unit).i32Const(count).set(end);
  code.while(
    () => code.get(unit).get(end).op(OP.i32LtS),
    () => {
      em.scope(() => {
        emitSplit(em, unit, units);
        for (const map of body) em.scope(() => emitMap(em, map, operands));
      });
      code.increment(unit, 1);
    },
  );
  return share ? { count, grain: 1 } : UNDIVIDED;
}
