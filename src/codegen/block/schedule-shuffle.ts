/**
 * @file Shuffles: one block, of which one thread exchanges elements from the back (Fisher and Yates), as
 * kernel/interpret.ts does.
 */
import { call, constant, type Expr, load } from "../../kernel/expr.ts";
import { addIndex, constIndex, offsetIndex, scaleIndex, valueIndex, varIndex, ZERO } from "../../kernel/index-math.ts";
import { asExpr, type Operand, type ShuffleNest } from "../../kernel/loops.ts";
import { counter, equals, Memories, Replacement, threadsFor } from "./counters.ts";
import { type DeviceClass, type Launch, loop, phase, type Statement, storing, where } from "./program.ts";

const word = (value: number): Expr => constant("i32", value);
const add = (a: Expr, b: Expr): Expr => call("add", [a, b], "i32");
const mul = (a: Expr, b: Expr): Expr => call("mul", [a, b], "i32");
const high = (a: Expr): Expr => call("shr_u", [a, word(16)], "i32");
const low = (a: Expr): Expr => call("and", [a, word(0xffff)], "i32");

/** floor(u · m / 2³²) of unsigned numbers, from products of halves, none of which overflows. */
function highProduct(u: Expr, m: Expr): Expr {
  const middle = add(mul(high(u), low(m)), high(mul(low(u), low(m))));
  const rest = add(low(middle), mul(low(u), high(m)));
  return add(add(mul(high(u), high(m)), high(middle)), high(rest));
}

export function scheduleShuffle(
  nest: ShuffleNest,
  operands: readonly Operand[],
  device: DeviceClass,
): readonly Launch[] {
  const n = nest.along.extent;
  if (n === 0) return [];
  const memories = new Memories(operands);
  const other = memories.add({ scope: "local", dtype: "i32", elements: 1 });
  const thread = counter("thread", threadsFor(n, device));
  const next = counter("next", Math.ceil(n / thread.extent));
  const e = addIndex(scaleIndex(varIndex(next), thread.extent), varIndex(thread));
  const fill = loop(
    next,
    where([{ index: e, lo: 0, hi: n }], [storing({ operand: nest.operand, index: e, value: asExpr(e) })]),
  );
  const back = counter("back", n - 1);
  const i = addIndex(constIndex(n - 1), scaleIndex(varIndex(back), -1));
  const bits = new Replacement(new Map([[nest.along, i]])).expr(nest.bits);
  const j = valueIndex(load("i32", other, ZERO), 0, n - 1);
  const element = (index: typeof i): Expr => memories.read(nest.operand, index);
  const exchange: readonly Statement[] = [
    storing({ operand: other, index: ZERO, value: highProduct(bits, asExpr(offsetIndex(i, 1))) }),
    storing(
      { operand: nest.operand, index: i, value: element(j) },
      { operand: nest.operand, index: j, value: element(i) },
    ),
  ];
  const exchanges = n < 2 ? [] : [phase(...where([equals(varIndex(thread), 0)], loop(back, exchange)))];
  return [{ grid: [], thread, memories: memories.list, body: [phase(...fill), ...exchanges] }];
}
