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
import { at } from "../../base/invariant.ts";
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
  repeatWhile,
  type Statement,
  set,
  store,
  times,
} from "../../codegen/script.ts";
import type { Graph, Node, Value } from "../../ir/graph.ts";
import { byteLength } from "../../ir/type.ts";
import { MOST_TURNS } from "../../ops/loops.ts";
import {
  type RecordAttrs,
  type RewindAttrs,
  type RewindParts,
  recordParts,
  rewindParts,
  type SplitAttrs,
} from "../../ops/rewind.ts";
import { Binding, CELL_BYTES, controlStep, fillSlots, rowsAt, turnsOf, zip } from "./binding.ts";
import { type Body, planBody, type Unit, type UnitOf } from "./body.ts";
import { type HeldStates, recordStates, walkBack } from "./checkpoints.ts";

type Address = (value: Value) => Int;

const newLocal = (name: string): Local => ({ name });

/** Moves the working state, which is at `state`, in and out of rows of `held`. */
function heldStates(
  { slots, split, every }: SplitAttrs,
  held: readonly Value[],
  turns: Value,
  state: readonly Int[],
  address: Address,
  step: (turn: Local) => readonly Statement[],
): HeldStates {
  // The states of a `while` are in order by their turns, but not by their rows (ops/record-while.ts).
  const rowOf = (slot: Int): Int =>
    split === "online" ? loadAt(plus(times(slot, 4), plus(address(turns), 4 * (slots + 1)))) : slot;
  const rows = (slot: Int): readonly Int[] => rowsAt(held, slots + 1, rowOf(slot), address);
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
  const { length, reverse, slots, taped } = attrs;
  const { carries, xs, consts, last, ys, held, turns, count, kept, tapes } = parts;
  const states0 = (region: Graph): readonly Value[] => region.params.slice(1, 1 + carries.length);
  const body = planBody(parts.body, states0(parts.body), unitOf);
  const full = parts.full && planBody(parts.full, states0(parts.full), unitOf);
  const pairs = zip(carries, last);
  const workspaceBytes = Math.max(body.workspaceBytes, full?.workspaceBytes ?? 0);
  return {
    step: controlStep(node, full ? [body, full] : [body], [workspaceBytes, CELL_BYTES], pairs),
    statements(address, [workspace = int(0), cell = int(0)]) {
      const [top, all, row, turn, early]: readonly Local[] = ["top", "all", "row", "turn", "early"].map(newLocal);
      if (!top || !all || !row || !turn || !early) return [];
      const rows = (stacks: readonly Value[]): readonly Int[] => rowsAt(stacks, length, read(row), address);
      const run = (which: Body, at: Local, results: readonly Int[]): readonly Statement[] => [
        rowOfTurn(row, at, all, reverse),
        ...runBody(which, row, [...last.map(address), ...rows(xs), ...consts.map(address)], results, last.length, {
          workspace,
          cell,
        }),
      ];
      const step = (at: Local): readonly Statement[] => run(body, at, rows(ys));
      const state = kept.map((k) => address(at(last, k)));
      const states = heldStates(attrs, held, turns, state, address, step);
      const tapeRow = plus(read(turn), taped - length);
      const rest = full
        ? [
            repeatWhile(intOp("lt", read(turn), read(all)), [
              ...run(full, turn, [...rows(ys), ...rowsAt(tapes, taped, tapeRow, address)]),
              set(turn, plus(read(turn), 1)),
            ]),
          ]
        : [];
      return [
        ...turnsOf(count, length, all, address),
        ...fillSlots(pairs, address),
        set(early, plus(read(all), -taped)),
        ...recordStates(states, read(early), top),
        store(plus(address(turns), slots * 4), read(top)),
        ...states.save(int(slots)),
        set(turn, plus(read(early), -1)),
        choose(intOp("lt", int(0), read(early)), step(turn)),
        set(turn, read(early)),
        ...rest,
      ];
    },
  };
}

export function rewindUnit(node: Node, unitOf: UnitOf): Unit {
  const parts = rewindParts(node);
  const attrs = node.attrs as RewindAttrs;
  const { length, slots, states: nc, adjoints: na } = attrs;
  const { last, heldAfter, turnsAfter } = parts;
  const step = planBody(parts.step, parts.step.params.slice(1, 1 + nc), unitOf);
  const back = planBody(parts.back, parts.back.params.slice(1 + nc, 1 + nc + na), unitOf);
  const tail = parts.tail && planBody(parts.tail, parts.tail.params.slice(1, 1 + na), unitOf);
  const pairs = [...zip(parts.adjoints, last), ...zip(parts.held, heldAfter), ...zip([parts.turns], [turnsAfter])];
  const bodies = tail ? [step, back, tail] : [step, back];
  const workspaceBytes = Math.max(...bodies.map((body) => body.workspaceBytes));
  return {
    step: controlStep(node, bodies, [workspaceBytes, CELL_BYTES], pairs),
    statements(address, [workspace = int(0), cell = int(0)]) {
      const [top, all, row, work, early]: readonly Local[] = ["top", "all", "row", "work", "early"].map(newLocal);
      if (!top || !all || !row || !work || !early) return [];
      const turns: Turns = { parts, attrs, address, row, all, places: { workspace, cell } };
      const online = attrs.split === "online";
      const state = rowsAt(heldAfter, slots + 1, online ? read(work) : int(slots), address);
      const forward = (turn: Local): readonly Statement[] => runTurn(turns, step, turn, state, false);
      const backward = (turn: Local): readonly Statement[] => runTurn(turns, back, turn, state, true);
      const states = heldStates(attrs, heldAfter, turnsAfter, state, address, forward);
      return [
        ...turnsOf(parts.count, length || MOST_TURNS, all, address),
        ...fillSlots(pairs, address),
        ...(tail ? taped(turns, tail) : []),
        set(early, plus(read(all), -attrs.taped)),
        set(top, loadAt(plus(address(turnsAfter), slots * 4))),
        ...(online ? [set(work, loadAt(plus(address(turnsAfter), (2 * slots + 1) * 4)))] : []),
        ...walkBack(states, read(early), top, true, backward),
      ];
    },
  };
}

/** What turns of a reverse have in common. */
interface Turns {
  readonly parts: RewindParts;
  readonly attrs: RewindAttrs;
  readonly address: Address;
  readonly row: Local;
  readonly all: Local;
  readonly places: Places;
}

/** One turn of `step` or `back`, at a state. */
function runTurn(
  { parts, attrs, address, row, all, places }: Turns,
  body: Body,
  turn: Local,
  state: readonly Int[],
  isBack: boolean,
): readonly Statement[] {
  const { xs, consts, last, ws } = parts;
  const { length, reverse } = attrs;
  const rest = [...rowsAt(xs, length, read(row), address), ...consts.map(address)];
  const own = isBack ? [...state, ...last.map(address)] : state;
  const results = isBack ? rowsAt(ws, length, read(row), address) : [];
  return [
    rowOfTurn(row, turn, all, reverse),
    ...runBody(body, row, [...own, ...rest], results, isBack ? attrs.adjoints : attrs.states, places),
  ];
}

/** The turns whose rows were kept, from the last one. */
function taped({ parts, attrs, address, row, all, places }: Turns, tail: Body): readonly Statement[] {
  const { length, reverse, taped: rows, adjoints } = attrs;
  const turn = newLocal("turn");
  const own = [
    ...parts.last.map(address),
    ...rowsAt(parts.xs, length, read(row), address),
    ...parts.consts.map(address),
    ...rowsAt(parts.tapes, rows, plus(read(turn), rows - length), address),
  ];
  return [
    set(turn, read(all)),
    repeatWhile(intOp("lt", int(length - rows), read(turn)), [
      set(turn, plus(read(turn), -1)),
      rowOfTurn(row, turn, all, reverse),
      ...runBody(tail, row, own, rowsAt(parts.ws, length, read(row), address), adjoints, places),
    ]),
  ];
}
