/**
 * @file A loop that holds states for its reverse, and that reverse (ops/rewind.ts), as steps and as code. What is held is
 * a result of the one and an input of the other, which goes on in the same storage:
 *
 *     record     held  [ s₀ │ s₄ │ s₆ │ … │ s₇ ]     turns  [ 0 │ 4 │ 6 │ … │ 3 held ]
 *     rewind     the same place: a slot that was let go takes a state that is computed again
 *
 * The last row is the state that turns work on. After the forward loop it is the state before the last turn, where the
 * reverse begins: the forward loop is the first sweep of the schedule, and no turn of it is made twice for that.
 */
import { at } from "../base/invariant.ts";
import {
  choose,
  copy,
  type Int,
  int,
  intOp,
  type Local,
  loadAt,
  plus,
  read,
  type Statement,
  set,
  store,
  times,
} from "../codegen/script.ts";
import type { Node, Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { type RecordAttrs, type RewindAttrs, recordParts, rewindParts, type SplitAttrs } from "../ops/rewind.ts";
import { Binding, CELL_BYTES, controlStep, fillSlots, rowsAt, turnsOf, zip } from "./binding.ts";
import { type Body, planBody, type Unit, type UnitOf } from "./body.ts";
import { type HeldStates, recordStates, walkBack } from "./splits.ts";

type Address = (value: Value) => Int;

/** Moves the working state, which is at `state`, in and out of rows of `held`. */
function heldStates(
  { slots, split, every }: SplitAttrs,
  held: readonly Value[],
  turns: Value,
  state: readonly Int[],
  address: Address,
  step: (turn: Local) => readonly Statement[],
): HeldStates {
  const rows = (slot: Int): readonly Int[] => rowsAt(held, slots + 1, slot, address);
  const bytes = held.map((stack) => byteLength(stack.type) / (slots + 1));
  const turnAt = (slot: Int): Int => plus(times(slot, 4), address(turns));
  const move = (to: readonly Int[], from: readonly Int[]): readonly Statement[] =>
    to.flatMap((place, k) => copy(place, at(from, k), at(bytes, k)));
  return {
    rule: { slots, split, every },
    save: (slot) => move(rows(slot), state),
    restore: (slot) => move(state, rows(slot)),
    turnOf: (slot) => loadAt(turnAt(slot)),
    setTurn: (slot, turn) => [store(turnAt(slot), turn)],
    step,
  };
}

/** The row of a turn, as statements that set it. */
const rowOfTurn = (row: Local, turn: Local, count: Local, reverse: boolean): Statement =>
  set(row, reverse ? plus(intOp("sub", read(count), read(turn)), -1) : read(turn));

interface Places {
  readonly workspace: Int;
  readonly cell: Int;
}

/** One run of a body at a row; `own` is where its parameters after the row's number are. */
function runBody(
  body: Body,
  row: Local,
  own: readonly Int[],
  results: readonly Int[],
  from: number,
  { workspace, cell }: Places,
): readonly Statement[] {
  const [index, ...params] = body.region.params;
  const binding = new Binding()
    .bind(index ? [index] : [], [cell])
    .bind(params, own)
    .bind(body.slots.slice(from), results);
  const counter = index && body.reads(index) ? [store(cell, read(row))] : [];
  return [...counter, ...body.statements(binding.of, workspace)];
}

export function recordUnit(node: Node, unitOf: UnitOf): Unit {
  const parts = recordParts(node);
  const attrs = node.attrs as RecordAttrs;
  const { length, reverse, slots } = attrs;
  const { carries, xs, consts, last, ys, held, turns, count, kept } = parts;
  const body = planBody(parts.body, parts.body.params.slice(1, 1 + carries.length), unitOf);
  const pairs = zip(carries, last);
  return {
    step: controlStep(node, [body], [body.workspaceBytes, CELL_BYTES], pairs),
    statements(address, [workspace = int(0), cell = int(0)]) {
      const [top, all, row, final]: readonly Local[] = ["top", "all", "row", "final"].map((name) => ({ name }));
      if (!top || !all || !row || !final) return [];
      const rows = (stacks: readonly Value[]): readonly Int[] => rowsAt(stacks, length, read(row), address);
      const step = (turn: Local): readonly Statement[] => [
        rowOfTurn(row, turn, all, reverse),
        ...runBody(body, row, [...last.map(address), ...rows(xs), ...consts.map(address)], rows(ys), last.length, {
          workspace,
          cell,
        }),
      ];
      const state = kept.map((k) => address(at(last, k)));
      const states = heldStates(attrs, held, turns, state, address, step);
      return [
        ...turnsOf(count, length, all, address),
        ...fillSlots(pairs, address),
        ...recordStates(states, read(all), top),
        store(plus(address(turns), slots * 4), read(top)),
        ...states.save(int(slots)),
        choose(intOp("lt", int(0), read(all)), [set(final, plus(read(all), -1)), ...step(final)]),
      ];
    },
  };
}

export function rewindUnit(node: Node, unitOf: UnitOf): Unit {
  const parts = rewindParts(node);
  const attrs = node.attrs as RewindAttrs;
  const { length, reverse, slots, states: nc, adjoints: na } = attrs;
  const { xs, consts, last, ws, heldAfter, turnsAfter } = parts;
  const step = planBody(parts.step, parts.step.params.slice(1, 1 + nc), unitOf);
  const back = planBody(parts.back, parts.back.params.slice(1 + nc, 1 + nc + na), unitOf);
  const pairs = [...zip(parts.adjoints, last), ...zip(parts.held, heldAfter), ...zip([parts.turns], [turnsAfter])];
  const workspaceBytes = Math.max(step.workspaceBytes, back.workspaceBytes);
  return {
    step: controlStep(node, [step, back], [workspaceBytes, CELL_BYTES], pairs),
    statements(address, [workspace = int(0), cell = int(0)]) {
      const [top, all, row]: readonly Local[] = ["top", "all", "row"].map((name) => ({ name }));
      if (!top || !all || !row) return [];
      const places = { workspace, cell };
      const state = rowsAt(heldAfter, slots + 1, int(slots), address);
      const rest = [...rowsAt(xs, length, read(row), address), ...consts.map(address)];
      const forward = (turn: Local): readonly Statement[] => [
        rowOfTurn(row, turn, all, reverse),
        ...runBody(step, row, [...state, ...rest], [], nc, places),
      ];
      const backward = (turn: Local): readonly Statement[] => [
        rowOfTurn(row, turn, all, reverse),
        ...runBody(
          back,
          row,
          [...state, ...last.map(address), ...rest],
          rowsAt(ws, length, read(row), address),
          na,
          places,
        ),
      ];
      const states = heldStates(attrs, heldAfter, turnsAfter, state, address, forward);
      return [
        ...turnsOf(parts.count, length, all, address),
        ...fillSlots(pairs, address),
        set(top, loadAt(plus(address(turnsAfter), slots * 4))),
        ...walkBack(states, read(all), top, true, backward),
      ];
    },
  };
}
