/** @file Shared by both sides of a reversal: the storage of checkpoints, and running a body at a row. */
import { at } from "../../base/invariant.ts";
import {
  copy,
  type Int,
  intOp,
  type Local,
  loadAt,
  plus,
  store as put,
  read,
  type Statement,
  set,
  times,
} from "../../codegen/script.ts";
import type { Value } from "../../ir/graph.ts";
import { byteLength } from "../../ir/type.ts";
import type { SplitAttrs } from "../../ops/record.ts";
import { Binding, rowsAt } from "./binding.ts";
import type { Body } from "./body.ts";
import type { Checkpoints } from "./checkpoints.ts";

/** The state that iterations work on, and one iteration forward. */
interface Working {
  readonly state: readonly Int[];
  readonly address: (value: Value) => Int;
  readonly step: (iteration: Local) => readonly Statement[];
}

/** Reads and writes a checkpoint's iteration in a list of integers. */
export function positionsAt(list: Int): Pick<Checkpoints, "iterationOf" | "setIteration"> {
  const place = (checkpoint: Int): Int => plus(times(checkpoint, 4), list);
  return {
    iterationOf: (checkpoint) => loadAt(place(checkpoint)),
    setIteration: (checkpoint, iteration) => [put(place(checkpoint), iteration)],
  };
}

/** Moves the working state in and out of rows of a store; `positions` is the address of the list of their iterations. */
export function storedStates(
  { checkpoints, split, every }: SplitAttrs,
  store: readonly Value[],
  positions: Int,
  { state, address, step }: Working,
): Checkpoints {
  // The states of a `while` are in order by their iterations, but not by their rows (ops/record.ts).
  const rowOf = (checkpoint: Int): Int =>
    split === "online" ? loadAt(plus(times(checkpoint, 4), plus(positions, 4 * (checkpoints + 1)))) : checkpoint;
  const rows = (checkpoint: Int): readonly Int[] => rowsAt(store, checkpoints + 1, rowOf(checkpoint), address);
  const bytes = store.map((stack) => byteLength(stack.type) / (checkpoints + 1));
  const move = (to: readonly Int[], from: readonly Int[]): readonly Statement[] =>
    to.flatMap((place, k) => copy(place, at(from, k), at(bytes, k)));
  return {
    rule: { checkpoints, split, every },
    save: (checkpoint) => move(rows(checkpoint), state),
    restore: (checkpoint) => move(state, rows(checkpoint)),
    ...positionsAt(positions),
    step,
  };
}

/** Statements that set the row of an iteration. */
export const rowOfIteration = (row: Local, iteration: Local, count: Local, reverse: boolean): Statement =>
  set(row, reverse ? plus(intOp("sub", read(count), read(iteration)), -1) : read(iteration));

/** Addresses of the body's results from index `from` on, and of its workspace. */
interface RunAddresses {
  readonly results: readonly Int[];
  readonly from: number;
  readonly workspace: Int;
  readonly cell: Int;
}

/** One run of a body at a row; `own` has the addresses of its parameters after the row index. */
export function runBody(
  body: Body,
  row: Local,
  own: readonly Int[],
  { results, from, workspace, cell }: RunAddresses,
): readonly Statement[] {
  const [index, ...params] = body.region.params;
  const binding = new Binding()
    .bind(index ? [index] : [], [cell])
    .bind(params, own)
    .bind(body.slots.slice(from), results);
  const counter = index && body.reads(index) ? [put(cell, read(row))] : [];
  return [...counter, ...body.statements(binding.of, workspace)];
}
