/**
 * @file Collectives as commands of a program: the host passes them to NCCL, which puts them into a stream like kernels. They come in the
 * order of the program whether they are waited for at once or later:
 *
 *   steps       k   all_reduce   k   start   k   k   wait   k
 *   kernels     k · · · · · ·    k · · · · · k   k · · · ·  k
 *   exchanges        all_reduce          …………………………
 *
 * NCCL's maximum of floats leaves NaN out, and of two zeros gives any. So their maximum is that of whole numbers that are in the same
 * order, NaN above everything: the bits, where the sign is set with the others turned. A launch in front writes these numbers
 * where the result will be, one behind turns them back.
 */
import { at } from "../../base/invariant.ts";
import type { CollectiveNest } from "../../kernel/collective.ts";
import type { DeviceGroup } from "../../kernel/device-group.ts";
import { isBig, isComputed, isFloat, twinOf } from "../../kernel/dtype.ts";
import { type Expr, load } from "../../kernel/expr.ts";
import { varIndex } from "../../kernel/index-math.ts";
import type { Kernel } from "../../kernel/loops.ts";
import { bitcast, lt, ne, pick, xor } from "../../kernel/scalar-ops.ts";
import { isTransfer, type PlacedStep, statementsOf } from "../placed.ts";
import { callOf, type Statement } from "../script.ts";

/** What devices exchange. */
export type CudaExchange = Pick<
  CollectiveNest,
  "what" | "combine" | "group" | "pairs" | "root" | "elements" | "storage"
>;

/** A collective with the addresses of its operands, bytes from the arena's start. */
export interface ExchangeCommand<L> {
  readonly kind: "exchange";
  readonly exchange: CudaExchange;
  readonly to: number;
  readonly from: number;
  /** In front of it and behind it, where the exchange goes on. */
  readonly before: readonly L[];
  readonly after: readonly L[];
  /** It is in flight until this slot is waited for; null: until the next command. */
  readonly slot: number | null;
}

/** The number of a device in a group, as a word of 32 bits. */
export interface IndexCommand {
  readonly kind: "device_index";
  readonly group: DeviceGroup;
  readonly at: number;
}

/** The collective that a kernel is; null for most. */
export function collectiveOf({ nests: [nest] }: Kernel): CollectiveNest | null {
  return nest?.kind === "collective" ? nest : null;
}

/** Of the bits of floats as whole numbers, narrow and wide: all but the sign, and a NaN. */
const NARROW = { zero: 0, others: 0x7fffffff, nan: 0x7fc00000 };
const WIDE = { zero: 0n, others: 0x7fffffffffffffffn, nan: 0x7ff8000000000000n };

/** The type of whole numbers as which a maximum of floats is found; null for what is combined as it is. */
export function orderedAs({ what, combine, storage }: Pick<CudaExchange, "what" | "combine" | "storage">) {
  const isMaximum = what === "all_reduce" && combine === "max";
  return isMaximum && isFloat(storage) && isComputed(storage) ? twinOf(storage) : null;
}

/** Kernels in front of a maximum of floats and behind it. */
interface Around {
  readonly before: Kernel;
  readonly after: Kernel;
}

const around = new WeakMap<Kernel, Around>();

/** Null for what needs none. */
export function aroundOf(kernel: Kernel, nest: CollectiveNest): Around | null {
  const { storage, read, to, along } = nest;
  const bits = orderedAs(nest);
  if (bits === null || !isComputed(storage) || !read) return null;
  const known = around.get(kernel);
  if (known) return known;
  const { zero, others, nan } = isBig(bits) ? WIDE : NARROW;
  const index = varIndex(along);
  // turned twice it is what it was
  const turned = (x: Expr): Expr => pick(lt(x, zero), xor(x, others), x);
  const mapOf = (from: number, value: (x: Expr) => Expr): Kernel => {
    const stored = bitcast(value(load(storage, from, index)), storage);
    return { ...kernel, nests: [{ kind: "map", loops: [along], stores: [{ operand: to, index, value: stored }] }] };
  };
  const made = {
    before: mapOf(read.operand, (x) => turned(pick(ne(x, x), nan, bitcast(x, bits)))),
    after: mapOf(to, (x) => turned(bitcast(x, bits))),
  };
  around.set(kernel, made);
  return made;
}

/** What a collective is, without its operands. */
export const exchangeOf = ({ what, combine, group, pairs, root, elements, storage }: CollectiveNest): CudaExchange => ({
  ...{ what, combine, group, pairs, root, elements, storage },
});

/** The operands of a collective at their addresses. */
export function endsOf({ to, read }: CollectiveNest, addresses: readonly number[]): Record<"to" | "from", number> {
  return { to: at(addresses, to), from: at(addresses, read?.operand ?? to) };
}

function nestsIn(statements: readonly Statement[]): readonly CollectiveNest[] {
  return statements.flatMap((statement): readonly CollectiveNest[] => {
    if (statement.kind === "while") return nestsIn(statement.body);
    if (statement.kind === "if") return [...nestsIn(statement.then), ...nestsIn(statement.else)];
    const call = callOf(statement);
    const nest = call && collectiveOf(call.kernel);
    return nest ? [nest] : [];
  });
}

/** The collectives of a step, in the order of its text. */
export const exchangesIn = (step: PlacedStep): readonly CudaExchange[] =>
  isTransfer(step) ? [] : nestsIn(statementsOf(step, "cuda")).map(exchangeOf);
