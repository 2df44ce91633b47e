/**
 * @file Reversing a loop from held states, as code: how far from one held state to the next, and the walk from the last
 * turn to the first. It is worked out at run time, so that the size of the code has nothing to do with the number of turns.
 * States that are held form a stack, the last one nearest to the turn that is to be reversed:
 *
 *     turns   0   1   2   3   4   5   6   7              slots = 3
 *             ●───────────────●───────────►  7           held: 0, 4, then 6; 7 is reached and reversed
 *             ●               ●       ●►                 6 is reversed at its own state, which is let go
 *             ●               ●──►                       5 from 4, with a slot free again …
 *
 * `binomial` (A. Griewank, A. Walther, "Revolve", 2000): to reverse l turns from a held state with s slots, that state's
 * included, β(s, r) = C(s + r, s) turns can be done with no state computed more than r times. With the least r for l the
 * next state is held m turns ahead, where both parts stay within their bounds: m = max(β(s, r - 2), l - β(s - 1, r)).
 * `binary` goes half way. `periodic` holds every k-th state, and of the piece that is being reversed all.
 */
import {
  choose,
  type Int,
  int,
  intOp,
  type Local,
  plus,
  read,
  repeatWhile,
  type Statement,
  set,
} from "../../codegen/script.ts";
import type { SplitAttrs } from "../../ops/record.ts";

const minus = (a: Int, b: Int): Int => intOp("sub", a, b);
const below = (a: Int, b: Int): Int => intOp("lt", a, b);

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

/** Sets `m` to how far to go from the held state before turn `from`, with `length` > 1 turns left and `slots` > 1. */
export function splitAhead(
  { split, every }: Omit<SplitAttrs, "checkpoints">,
  m: Local,
  { from, length, free }: { readonly from: Int; readonly length: Int; readonly free: Int },
): readonly Statement[] {
  if (split === "binary") return [set(m, intOp("div", length, int(2)))];
  if (split !== "periodic") return binomialSplit(m, length, free);
  const inPiece = minus(from, intOp("mul", intOp("div", from, int(every)), int(every)));
  const starts = intOp("and", intOp("eq", inPiece, int(0)), below(int(every), length));
  return [set(m, int(1)), choose(starts, [set(m, int(every))])];
}

/** What the walks below work on: one state that turns read and write, and slots for states. */
export interface Checkpoints {
  readonly rule: SplitAttrs;
  /** The working state into a slot, and back. */
  save(slot: Int): readonly Statement[];
  restore(slot: Int): readonly Statement[];
  /** The turn that a slot's state is before. */
  iterationOf(slot: Int): Int;
  setIteration(slot: Int, turn: Int): readonly Statement[];
  /** One turn forward. */
  step(turn: Local): readonly Statement[];
}

const newLocals = (names: readonly string[]): readonly Local[] => names.map((name) => ({ name }));

/** From the state before `p` to that before `t`, holding states on the way; `top` slots are taken. */
function advance(states: Checkpoints, p: Local, t: Local, top: Local): Statement {
  const [goal, m] = newLocals(["goal", "m"]) as [Local, Local];
  const free = minus(int(states.rule.checkpoints), read(top));
  const hasFree = below(int(0), free);
  return repeatWhile(below(read(p), read(t)), [
    set(m, minus(read(t), read(p))),
    choose(
      hasFree,
      splitAhead(states.rule, m, { from: read(p), length: plus(minus(read(t), read(p)), 1), free: plus(free, 1) }),
    ),
    set(goal, plus(read(p), read(m))),
    repeatWhile(below(read(p), read(goal)), [...states.step(p), set(p, plus(read(p), 1))]),
    choose(intOp("and", hasFree, below(read(p), read(t))), [
      ...states.save(read(top)),
      ...states.setIteration(read(top), read(p)),
      set(top, plus(read(top), 1)),
    ]),
  ]);
}

/** Forward over turns 0 … count - 2 from the working state, holding what the walk back starts from. Sets `top`. */
export function recordStates(states: Checkpoints, count: Int, top: Local): readonly Statement[] {
  const [p, t] = newLocals(["p", "t"]) as [Local, Local];
  return [
    ...states.save(int(0)),
    ...states.setIteration(int(0), int(0)),
    set(top, int(1)),
    set(p, int(0)),
    set(t, plus(count, -1)),
    advance(states, p, t, top),
    // A loop of one turn is reversed at the working state.
    choose(below(count, int(2)), [set(top, int(0))]),
  ];
}

/**
 * From the last turn to the first: to its state, then back. `resumed`: the working state is that of the last turn and
 * `top` slots are taken; else the first slot's is the first state, and no other is held.
 */
export function walkBack(
  states: Checkpoints,
  count: Int,
  { top, resumed }: { readonly top: Local; readonly resumed: boolean },
  back: (turn: Local) => readonly Statement[],
): readonly Statement[] {
  const [p, t, first] = newLocals(["p", "t", "first"]) as [Local, Local, Local];
  const last = plus(read(top), -1);
  const fromHeld = [
    ...states.restore(last),
    set(p, states.iterationOf(last)),
    // A state that was held for this very turn is let go.
    choose(intOp("eq", read(p), read(t)), [set(top, last)]),
    advance(states, p, t, top),
  ];
  const reach = resumed ? [choose(read(first), [set(first, int(0))], fromHeld)] : fromHeld;
  return [
    ...(resumed ? [set(first, int(1))] : [...states.setIteration(int(0), int(0)), set(top, int(1))]),
    set(t, count),
    repeatWhile(below(int(0), read(t)), [set(t, plus(read(t), -1)), ...reach, ...back(t)]),
  ];
}
