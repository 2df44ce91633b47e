/**
 * @file The step and code of a loop of known length that keeps states for its reverse (ops/record.ts). The forward loop
 * is the first sweep of the schedule (checkpoints.ts): at its end the last row of the store is the state before the
 * last iteration that is not taped, where the reverse starts, so no iteration has to run again for it.
 *
 *     store  [ s₀ │ s₄ │ s₆ │ … │ s₇ ]     positions  [ 0 │ 4 │ 6 │ … │ 3 of them ]
 */
import { at } from "../../base/invariant.ts";
import {
  choose,
  type Int,
  int,
  intOp,
  type Local,
  plus,
  store as put,
  read,
  repeatWhile,
  type Statement,
  set,
} from "../../codegen/script.ts";
import type { Loop, Recording } from "../../ir/control.ts";
import type { Graph, Node, Value } from "../../ir/graph.ts";
import type { RecordAttrs } from "../../ops/record.ts";
import { CELL_BYTES, controlStep, fillSlots, iterationsOf, rowsAt, zip } from "./binding.ts";
import { type Body, type LoweredStep, type LowerNode, planBody } from "./body.ts";
import { recordStates } from "./checkpoints.ts";
import { rowOfIteration, runBody, storedStates } from "./store.ts";

export function lowerRecord(node: Node, parts: Loop, recording: Recording, lowerNode: LowerNode): LoweredStep {
  const { carries, xs, consts, last, ys, count, length, reverse } = parts;
  const { store, positions, tapes, checkpoints, taped } = recording;
  const statesOf = (region: Graph): readonly Value[] => region.params.slice(1, 1 + carries.length);
  const body = planBody(parts.body, statesOf(parts.body), lowerNode);
  const full = recording.full && planBody(recording.full, statesOf(recording.full), lowerNode);
  const pairs = zip(carries, last);
  const workspaceBytes = Math.max(body.workspaceBytes, full?.workspaceBytes ?? 0);
  return {
    step: controlStep(node, full ? [body, full] : [body], [workspaceBytes, CELL_BYTES], pairs),
    statements(address, [workspace = int(0), cell = int(0)]) {
      const newLocal = (name: string): Local => ({ name });
      const [top, all, row] = [newLocal("top"), newLocal("all"), newLocal("row")];
      const [iteration, early] = [newLocal("iteration"), newLocal("early")];
      const rows = (stacks: readonly Value[]): readonly Int[] => rowsAt(stacks, length, read(row), address);
      const run = (which: Body, at: Local, results: readonly Int[]): readonly Statement[] => [
        rowOfIteration(row, at, all, reverse),
        ...runBody(which, row, [...last.map(address), ...rows(xs), ...consts.map(address)], {
          ...{ results, from: last.length, workspace, cell },
        }),
      ];
      const step = (at: Local): readonly Statement[] => run(body, at, rows(ys));
      const state = recording.states.map((k) => address(at(last, k)));
      const states = storedStates(node.attrs as RecordAttrs, store, address(positions), { state, address, step });
      const tapeRow = plus(read(iteration), taped - length);
      const rest = full
        ? [
            repeatWhile(intOp("lt", read(iteration), read(all)), [
              ...run(full, iteration, [...rows(ys), ...rowsAt(tapes, taped, tapeRow, address)]),
              set(iteration, plus(read(iteration), 1)),
            ]),
          ]
        : [];
      return [
        ...iterationsOf(count, length, all, address),
        ...fillSlots(pairs, address),
        set(early, plus(read(all), -taped)),
        ...recordStates(states, read(early), top),
        put(plus(address(positions), checkpoints * 4), read(top)),
        ...states.save(int(checkpoints)),
        set(iteration, plus(read(early), -1)),
        choose(intOp("lt", int(0), read(early)), step(iteration)),
        set(iteration, read(early)),
        ...rest,
      ];
    },
  };
}
