/** @file The last launch of a product whose depth is cut into parts. */
import { call, type Expr, type Index } from "../../kernel/expr.ts";
import { addIndex, constIndex, scaleIndex, varIndex, ZERO } from "../../kernel/index-math.ts";
import type { ContractNest, Operand } from "../../kernel/loops.ts";
import { counter, countersAt, Memories, Replacement, rowOf } from "../block/counters.ts";
import { type DeviceClass, type Launch, loop, phase, type Statement, storing } from "../block/program.ts";
import { product } from "../units.ts";

/** Adds up the sums of parts in order, and stores what is made of them. */
export function addingLaunch(
  { batch, rows, cols, scratch, stores }: ContractNest,
  operands: readonly Operand[],
  parts: number,
  device: DeviceClass,
): Launch {
  const loops = [...batch, rows, cols];
  const elements = product(loops);
  const { grid, thread, element, each } = rowOf(elements, device, 1);
  const memories = new Memories(operands);
  const total = memories.add({ scope: "local", dtype: "f32", elements: 1 });
  const acc = memories.read(total, ZERO);
  const partial = (part: Index): Expr => memories.read(scratch, addIndex(scaleIndex(part, elements), element));
  const set = (value: Expr): Statement => storing({ operand: total, index: ZERO, value });
  const later = counter("later", parts - 1);
  const add = loop(later, [set(call("add", [acc, partial(addIndex(varIndex(later), constIndex(1)))]))]);
  const stored = new Replacement(countersAt(loops, element), acc).stores(stores);
  return {
    grid,
    thread,
    memories: memories.list,
    body: [phase(...each([set(partial(ZERO)), ...add, storing(...stored)]))],
  };
}
