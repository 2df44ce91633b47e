/**
 * @file The reverse of a loop whose states are computed again, with room for a fixed number of them. The number of turns
 * is known when this begins, so the schedule is the binomial one (A. Griewank, A. Walther, "Revolve", 2000), worked out
 * as it goes along. States that are held form a stack, the last one nearest to the turn that is to be reversed:
 *
 *     turns   0   1   2   3   4   5   6   7              slots = 3
 *             ●───────────────●───────────►  7           held: 0, 4, then 6; 7 is reached and reversed
 *             ●               ●       ●►                 6 is reversed at its own state, which is let go
 *             ●               ●──►                       5 from 4, with a slot free again …
 *
 * To reverse l turns from a held state with s slots, that state's included, β(s, r) = C(s + r, s) turns can be done with no
 * state computed more than r times. With the least r for l the next state is held m turns ahead, where both parts stay
 * within their bounds: m = max(β(s, r - 2), l - β(s - 1, r)).
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
  repeatWhile,
  type Statement,
  set,
  store,
  times,
} from "../codegen/wasm/script.ts";
import type { Node, Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { type UnwindAttrs, unwindParts } from "../ops/unwind.ts";
import { alignUp } from "../plan/problem.ts";
import { Binding, CELL_BYTES, controlStep, fillSlots, rowsAt, zip } from "./binding.ts";
import { ALIGNMENT, type Body, planBody, type Unit, type UnitOf } from "./body.ts";

const minus = (a: Int, b: Int): Int => intOp("sub", a, b);
const below = (a: Int, b: Int): Int => intOp("lt", a, b);

/** Offsets of values that lie one after the other, and where they end. */
function layOut(values: readonly Value[]): { readonly offsets: readonly number[]; readonly bytes: number } {
  let bytes = 0;
  const offsets = values.map(({ type }) => {
    const offset = bytes;
    bytes = alignUp(bytes + byteLength(type), ALIGNMENT);
    return offset;
  });
  return { offsets, bytes };
}

/** The least r with β(s, r) ≥ l, then m. Sets `m`; uses locals of its own. β stops at the largest i32. */
export function binomialSplit(m: Local, length: Int, slots: Int): readonly Statement[] {
  const [l, s, r, now, before, earlier]: readonly Local[] = ["l", "s", "r", "now", "before", "earlier"].map((name) => ({
    name,
  }));
  if (!l || !s || !r || !now || !before || !earlier) return [];
  const most = int(2 ** 31 - 1);
  const d = plus(read(s), read(r));
  return [
    ...[set(l, length), set(s, slots), set(r, int(0)), set(now, int(1)), set(before, int(0)), set(earlier, int(0))],
    repeatWhile(below(read(now), read(l)), [
      set(r, plus(read(r), 1)),
      set(earlier, read(before)),
      set(before, read(now)),
      choose(
        below(intOp("div", most, d), read(now)),
        [set(now, most)],
        [set(now, intOp("div", intOp("mul", read(now), d), read(r)))],
      ),
    ]),
    // β(s - 1, r) = β(s, r) - β(s, r - 1)
    set(m, minus(read(l), minus(read(now), read(before)))),
    choose(below(read(m), read(earlier)), [set(m, read(earlier))]),
    choose(below(read(m), int(1)), [set(m, int(1))]),
    choose(below(plus(read(l), -1), read(m)), [set(m, plus(read(l), -1))]),
  ];
}

interface Places {
  readonly workspace: Int;
  readonly cell: Int;
  /** The state that a turn reads and writes. */
  readonly state: Int;
  /** States that are held, and the turns they belong to. */
  readonly held: Int;
  readonly turns: Int;
}

export function unwindUnit(node: Node, unitOf: UnitOf): Unit {
  const parts = unwindParts(node);
  const { length, slots, carries, adjoints } = node.attrs as UnwindAttrs;
  const step = planBody(parts.step, parts.step.params.slice(1, 1 + carries), unitOf);
  const back = planBody(parts.back, parts.back.params.slice(1 + carries, 1 + carries + adjoints), unitOf);
  const { offsets, bytes } = layOut(parts.carries);
  const pairs = zip(parts.adjoints, parts.last);
  const workspaceBytes = Math.max(step.workspaceBytes, back.workspaceBytes);
  const scratch = [workspaceBytes, CELL_BYTES, bytes, slots * bytes, slots * 4];
  return {
    step: controlStep(node, [step, back], scratch, pairs),
    statements(address, [workspace = int(0), cell = int(0), state = int(0), held = int(0), turns = int(0)]) {
      const places: Places = { workspace, cell, state, held, turns };
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
      return [
        ...fillSlots(pairs, address),
        ...parts.carries.flatMap((carry, k) =>
          copy(plus(held, at(offsets, k)), address(carry), byteLength(carry.type)),
        ),
        ...sweep(
          { slots, bytes, count: loadAt(address(parts.count)) },
          places,
          (i) => run(step, i, [], []),
          (i) => run(back, i, back.slots.slice(adjoints), rowsAt(parts.ws, length, read(i), address)),
        ),
      ];
    },
  };
}

/** From the last turn to the first: to its state, then back. */
function sweep(
  { slots, bytes, count }: { readonly slots: number; readonly bytes: number; readonly count: Int },
  { state, held, turns }: Places,
  step: (i: Local) => readonly Statement[],
  back: (i: Local) => readonly Statement[],
): readonly Statement[] {
  const t: Local = { name: "t" };
  const p: Local = { name: "p" };
  const goal: Local = { name: "goal" };
  const top: Local = { name: "top" };
  const m: Local = { name: "m" };
  const slotOf = (n: Int): Int => plus(times(n, bytes), held);
  const turnOf = (n: Int): Int => plus(times(n, 4), turns);
  const last = plus(read(top), -1);
  const free = minus(int(slots), read(top));
  const advance = [
    set(m, minus(read(t), read(p))),
    choose(below(int(0), free), binomialSplit(m, plus(minus(read(t), read(p)), 1), plus(free, 1))),
    set(goal, plus(read(p), read(m))),
    repeatWhile(below(read(p), read(goal)), [...step(p), set(p, plus(read(p), 1))]),
    choose(intOp("and", below(int(0), free), below(read(p), read(t))), [
      ...copy(slotOf(read(top)), state, bytes),
      store(turnOf(read(top)), read(p)),
      set(top, plus(read(top), 1)),
    ]),
  ];
  return [
    store(turnOf(int(0)), int(0)),
    set(top, int(1)),
    set(t, count),
    repeatWhile(below(int(0), read(t)), [
      set(t, plus(read(t), -1)),
      ...copy(state, slotOf(last), bytes),
      set(p, loadAt(turnOf(last))),
      repeatWhile(below(read(p), read(t)), advance),
      choose(intOp("eq", loadAt(turnOf(last)), read(t)), [set(top, last)]),
      ...back(t),
    ]),
  ];
}
