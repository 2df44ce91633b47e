/** @file Maps and scans: a thread for each element, or for each row that is summed up along. */
import { call, type Expr } from "../../kernel/expr.ts";
import { ZERO } from "../../kernel/index-math.ts";
import { identityOf, type MapNest, type Operand, type ScanNest } from "../../kernel/loops.ts";
import { product } from "../units.ts";
import { countersAt, isEmpty, Memories, Replacement, rowOf } from "./counters.ts";
import { type DeviceClass, type Launch, loop, operandMemories, phase, storing } from "./program.ts";
import { scheduleTransposed } from "./schedule-transpose.ts";

export function scheduleMap(nest: MapNest, operands: readonly Operand[], device: DeviceClass): readonly Launch[] {
  if (isEmpty(nest.loops)) return [];
  const transposed = scheduleTransposed(nest, operands, device);
  if (transposed) return transposed;
  const { grid, thread, element, each } = rowOf(product(nest.loops), device);
  const at = new Replacement(countersAt(nest.loops, element));
  const body = [phase(...each([storing(...at.stores(nest.stores))]))];
  const memories = operandMemories(operands);
  return [{ grid, thread, memories, body, ...(nest.skipIfAliased ? { skipIfAliased: nest.skipIfAliased } : {}) }];
}

export function scheduleScan(nest: ScanNest, operands: readonly Operand[], device: DeviceClass): readonly Launch[] {
  if (isEmpty([...nest.loops, nest.along])) return [];
  const { grid, thread, element, each } = rowOf(product(nest.loops), device, 1);
  const { combine = "add" } = nest;
  const memories = new Memories(operands);
  const sum = memories.add({ scope: "local", dtype: nest.dtype, elements: 1 });
  const acc = memories.read(sum, ZERO);
  const at = new Replacement(countersAt(nest.loops, element), acc);
  const scaled: Expr = nest.scale ? call("mul", [acc, at.expr(nest.scale)]) : acc;
  const add = { operand: sum, index: ZERO, value: call(combine, [scaled, at.expr(nest.body)]) };
  const zero: Expr = { kind: "const", dtype: nest.dtype, value: identityOf(combine, nest.dtype) };
  const along = loop(nest.along, [storing(add), storing(...at.stores(nest.stores))]);
  const body = [phase(...each([storing({ operand: sum, index: ZERO, value: zero }), ...along]))];
  return [{ grid, thread, memories: memories.list, body }];
}
