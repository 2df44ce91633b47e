/**
 * @file The step and code of a loop's reverse from states (ops/rewind.ts). The checkpoints of a recorded loop are a
 * result of that loop and an input of its reverse, which continues in the same storage: a row that is no longer needed
 * receives a recomputed state. For any other loop only the first state is an input, and checkpoints are workspace of
 * the step:
 *
 *     recorded        store  [ s₀ │ s₄ │ s₆ │ … │ working state ]      positions  [ 0 │ 4 │ 6 │ … │ 3 of them ]
 *     not recorded    workspace   working state;  s₀ , … ;  positions
 */
import { at, invariant } from "../../base/invariant.ts";
import {
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
  times,
} from "../../codegen/script.ts";
import type { Reversal } from "../../ir/control.ts";
import type { Node, Value } from "../../ir/graph.ts";
import { byteLength } from "../../ir/type.ts";
import { DEFAULT_CHECKPOINTS, MOST_ITERATIONS } from "../../ops/loops.ts";
import type { RewindAttrs } from "../../ops/rewind.ts";
import { alignUp } from "../../plan/problem.ts";
import { CELL_BYTES, controlStep, fillSlots, iterationsOf, rowsAt, zip } from "./binding.ts";
import { type Body, type LoweredStep, type LowerNode, planBody } from "./body.ts";
import { reverseSweep } from "./checkpoints.ts";
import { positionsAt, rowOfIteration, runBody, storedStates } from "./store.ts";

type Address = (value: Value) => Int;

const newLocal = (name: string): Local => ({ name });

/** A reverse whose values have addresses. */
interface Reverse {
  readonly parts: Reversal;
  readonly attrs: RewindAttrs;
  readonly step: Body;
  readonly back: Body;
  readonly tail: Body | null;
  readonly address: Address;
  readonly workspace: Int;
  readonly cell: Int;
}

/**
 * How a reverse gets its checkpoints: input/result pairs that share storage, workspace, and the code of the reverse.
 */
interface Start {
  readonly pairs: readonly (readonly [Value, Value])[];
  readonly scratch: readonly number[];
  statements(reverse: Reverse, scratch: readonly Int[]): readonly Statement[];
}

export function lowerRewind(node: Node, parts: Reversal, lowerNode: LowerNode): LoweredStep {
  const attrs = node.attrs as RewindAttrs;
  const { states: ns, adjoints: na } = attrs;
  const step = planBody(parts.step, parts.step.params.slice(1, 1 + ns), lowerNode);
  const back = planBody(parts.back, parts.back.params.slice(1 + ns, 1 + ns + na), lowerNode);
  const tail = parts.tail && planBody(parts.tail, parts.tail.params.slice(1, 1 + na), lowerNode);
  const bodies = tail ? [step, back, tail] : [step, back];
  const workspaceBytes = Math.max(...bodies.map((body) => body.workspaceBytes));
  const start = parts.isRecorded ? fromStore(parts, attrs) : fromFirst(parts, attrs, lowerNode.space.alignment);
  return {
    step: controlStep(node, bodies, [workspaceBytes, CELL_BYTES, ...start.scratch], start.pairs),
    statements: (address, [workspace = int(0), cell = int(0), ...scratch]) =>
      start.statements({ parts, attrs, step, back, tail, address, workspace, cell }, scratch),
  };
}

/** Runs `step` or `back` at a row, from the working state. */
function runAt(reverse: Reverse, body: Body, row: Local, state: readonly Int[]): readonly Statement[] {
  const { parts, attrs, address, workspace, cell } = reverse;
  const { xs, consts, last, ws } = parts;
  const isBack = body === reverse.back;
  const rest = [...rowsAt(xs, attrs.length, read(row), address), ...consts.map(address)];
  return runBody(body, row, [...state, ...(isBack ? last.map(address) : []), ...rest], {
    results: isBack ? rowsAt(ws, attrs.length, read(row), address) : [],
    from: isBack ? attrs.adjoints : attrs.states,
    workspace,
    cell,
  });
}

/** The checkpoints of a recorded loop. */
function fromStore(parts: Reversal, attrs: RewindAttrs): Start {
  const { length, checkpoints, reverse: isReversed } = attrs;
  const { adjoints, last, states, storeAfter, positions, positionsAfter } = parts;
  invariant(positions && positionsAfter, () => "a recorded loop has no positions");
  const pairs = [...zip(adjoints, last), ...zip(states, storeAfter), ...zip([positions], [positionsAfter])];
  const isOnline = attrs.split === "online";
  return {
    pairs,
    scratch: [],
    statements(reverse) {
      const { address, tail } = reverse;
      const [top, all, row] = [newLocal("top"), newLocal("all"), newLocal("row")];
      const [work, early] = [newLocal("work"), newLocal("early")];
      const list = address(positionsAfter);
      const state = rowsAt(storeAfter, checkpoints + 1, isOnline ? read(work) : int(checkpoints), address);
      const run =
        (body: Body) =>
        (iteration: Local): readonly Statement[] => [
          rowOfIteration(row, iteration, all, isReversed),
          ...runAt(reverse, body, row, state),
        ];
      const kept = storedStates(attrs, storeAfter, list, { state, address, step: run(reverse.step) });
      return [
        ...iterationsOf(parts.count, length || MOST_ITERATIONS, all, address),
        ...fillSlots(pairs, address),
        ...(tail ? runTaped(reverse, tail, row, all) : []),
        set(early, plus(read(all), -attrs.taped)),
        set(top, loadAt(plus(list, checkpoints * 4))),
        ...(isOnline ? [set(work, loadAt(plus(list, (2 * checkpoints + 1) * 4)))] : []),
        ...reverseSweep(kept, read(early), { top, resumed: true }, run(reverse.back)),
      ];
    },
  };
}

/** Reverses the iterations whose rows were stacked, last one first. */
function runTaped({ parts, attrs, address, workspace, cell }: Reverse, tail: Body, row: Local, all: Local) {
  const { length, reverse, taped, adjoints } = attrs;
  const iteration = newLocal("iteration");
  const inputs = [
    ...parts.last.map(address),
    ...rowsAt(parts.xs, length, read(row), address),
    ...parts.consts.map(address),
    ...rowsAt(parts.tapes, taped, plus(read(iteration), taped - length), address),
  ];
  const results = rowsAt(parts.ws, length, read(row), address);
  return [
    set(iteration, read(all)),
    repeatWhile(intOp("lt", int(length - taped), read(iteration)), [
      set(iteration, plus(read(iteration), -1)),
      rowOfIteration(row, iteration, all, reverse),
      ...runBody(tail, row, inputs, { results, from: adjoints, workspace, cell }),
    ]),
  ];
}

/** Offsets of consecutive values, and the end offset. */
function layOut(
  values: readonly Value[],
  alignment: number,
): { readonly offsets: readonly number[]; readonly bytes: number } {
  let bytes = 0;
  const offsets = values.map(({ type }) => {
    const offset = bytes;
    bytes = alignUp(bytes + byteLength(type), alignment);
    return offset;
  });
  return { offsets, bytes };
}

/** Only the first state is given: the schedule starts from it, with checkpoints in workspace. */
function fromFirst(parts: Reversal, attrs: RewindAttrs, alignment: number): Start {
  const checkpoints = attrs.checkpoints || DEFAULT_CHECKPOINTS;
  const { offsets, bytes } = layOut(parts.states, alignment);
  const pairs = zip(parts.adjoints, parts.last);
  return {
    pairs,
    scratch: [bytes, checkpoints * bytes, checkpoints * 4],
    statements(reverse, [work = int(0), rows = int(0), list = int(0)]) {
      const { address } = reverse;
      const [all, row] = [newLocal("all"), newLocal("row")];
      const state = offsets.map((offset) => plus(work, offset));
      const run =
        (body: Body) =>
        (iteration: Local): readonly Statement[] =>
          attrs.reverse
            ? [rowOfIteration(row, iteration, all, true), ...runAt(reverse, body, row, state)]
            : runAt(reverse, body, iteration, state);
      const rowAt = (checkpoint: Int): Int => plus(times(checkpoint, bytes), rows);
      const kept = {
        rule: { checkpoints, split: attrs.split, every: attrs.every },
        save: (checkpoint: Int) => copy(rowAt(checkpoint), work, bytes),
        restore: (checkpoint: Int) => copy(work, rowAt(checkpoint), bytes),
        ...positionsAt(list),
        step: run(reverse.step),
      };
      const count = loadAt(address(parts.count));
      return [
        ...fillSlots(pairs, address),
        ...parts.states.flatMap((value, k) => copy(plus(rows, at(offsets, k)), address(value), byteLength(value.type))),
        ...(attrs.reverse ? [set(all, count)] : []),
        ...reverseSweep(kept, count, { top: newLocal("top"), resumed: false }, run(reverse.back)),
      ];
    },
  };
}
