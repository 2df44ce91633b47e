/**
 * @file The reverse of a loop whose states are computed again, with room for a fixed number of them. The number of turns
 * is known when this begins, so the schedule is the binomial one (checkpoints.ts), from the first state on. The slots and the
 * state that turns work on are workspace of the step.
 */
import { at } from "../../base/invariant.ts";
import {
  copy,
  type Int,
  int,
  type Local,
  loadAt,
  plus,
  read,
  type Statement,
  store,
  times,
} from "../../codegen/script.ts";
import type { Node, Value } from "../../ir/graph.ts";
import { byteLength } from "../../ir/type.ts";
import { DEFAULT_SLOTS } from "../../ops/loops.ts";
import { type UnwindAttrs, unwindParts } from "../../ops/unwind.ts";
import { alignUp } from "../../plan/problem.ts";
import { Binding, CELL_BYTES, controlStep, fillSlots, rowsAt, zip } from "./binding.ts";
import { type Body, planBody, type Unit, type UnitOf } from "./body.ts";
import { type HeldStates, walkBack } from "./checkpoints.ts";

/** Offsets of values that lie one after the other, and where they end. */
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

export function unwindUnit(node: Node, unitOf: UnitOf): Unit {
  const parts = unwindParts(node);
  const { length, carries, adjoints, ...attrs } = node.attrs as UnwindAttrs;
  const slots = attrs.slots || DEFAULT_SLOTS;
  const step = planBody(parts.step, parts.step.params.slice(1, 1 + carries), unitOf);
  const back = planBody(parts.back, parts.back.params.slice(1 + carries, 1 + carries + adjoints), unitOf);
  const { offsets, bytes } = layOut(parts.carries, unitOf.space.alignment);
  const pairs = zip(parts.adjoints, parts.last);
  const workspaceBytes = Math.max(step.workspaceBytes, back.workspaceBytes);
  const scratch = [workspaceBytes, CELL_BYTES, bytes, slots * bytes, slots * 4];
  return {
    step: controlStep(node, [step, back], scratch, pairs),
    statements(address, [workspace = int(0), cell = int(0), state = int(0), held = int(0), turns = int(0)]) {
      const stateAt = (from: Int): readonly Int[] => offsets.map((offset) => plus(from, offset));
      const run = (body: Body, i: Local, slotsOf: readonly Value[], targets: readonly Int[]): readonly Statement[] => {
        const [index, ...params] = body.region.params;
        const rest = [...rowsAt(parts.xs, length, read(i), address), ...parts.consts.map(address)];
        const own = body === step ? stateAt(state) : [...stateAt(state), ...parts.last.map(address)];
        const binding = new Binding()
          .bind(index ? [index] : [], [cell])
          .bind(params, [...own, ...rest])
          .bind(slotsOf, targets);
        const counter = index && body.reads(index) ? [store(cell, read(i))] : [];
        return [...counter, ...body.statements(binding.of, workspace)];
      };
      const slotAt = (n: Int): Int => plus(times(n, bytes), held);
      const turnAt = (n: Int): Int => plus(times(n, 4), turns);
      const states: HeldStates = {
        rule: { slots, split: "binomial", every: 0 },
        save: (slot) => copy(slotAt(slot), state, bytes),
        restore: (slot) => copy(state, slotAt(slot), bytes),
        turnOf: (slot) => loadAt(turnAt(slot)),
        setTurn: (slot, turn) => [store(turnAt(slot), turn)],
        step: (i) => run(step, i, [], []),
      };
      return [
        ...fillSlots(pairs, address),
        ...parts.carries.flatMap((carry, k) =>
          copy(plus(held, at(offsets, k)), address(carry), byteLength(carry.type)),
        ),
        ...walkBack(states, loadAt(address(parts.count)), { name: "top" }, false, (i) =>
          run(back, i, back.slots.slice(adjoints), rowsAt(parts.ws, length, read(i), address)),
        ),
      ];
    },
  };
}
