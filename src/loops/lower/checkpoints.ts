/**
 * @file Code that reverses a loop from checkpoints: the distance from one checkpoint to the next, and the sweep from
 * the last iteration to the first. The schedule is computed at run time, so the code size does not depend on the number
 * of iterations. Checkpoints form a stack, with the one nearest to the iteration to be reversed on top:
 *
 *     iteration   0   1   2   3   4   5   6   7          checkpoints = 3
 *                 ●───────────────●───────────►  7       kept: 0, 4, then 6; 7 is reached and reversed
 *                 ●               ●       ●►             6 is reversed from its checkpoint, which is freed
 *                 ●               ●──►                   5 from 4, with one checkpoint free again …
 *
 * `binomial` (A. Griewank, A. Walther, "Revolve", 2000): to reverse l iterations from a checkpoint with s checkpoints
 * in total, β(s, r) = C(s + r, s) iterations can be done with no state computed more than r times. With the least r for
 * l, the next checkpoint is m = max(β(s, r - 2), l - β(s - 1, r)) iterations ahead, where both parts stay within their
 * bounds. `binary` goes half way. `periodic` keeps every k-th state, and all states of the piece being reversed.
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

/** The least r with β(s, r) ≥ l, then m. Sets `m`; uses new locals. β saturates at the largest i32. */
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

/**
 * Sets `m` to the distance from the checkpoint before iteration `from` to the next, with `length` > 1 iterations left
 * and `slots` > 1.
 */
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

/** One working state that iterations read and write, and storage for checkpoints, indexed by slot. */
export interface Checkpoints {
  readonly rule: SplitAttrs;
  /** Copies the working state into a slot, and back. */
  save(slot: Int): readonly Statement[];
  restore(slot: Int): readonly Statement[];
  /** The iteration that starts from a slot's state. */
  iterationOf(slot: Int): Int;
  setIteration(slot: Int, iteration: Int): readonly Statement[];
  /** Runs one iteration forward. */
  step(iteration: Local): readonly Statement[];
}

const newLocals = (names: readonly string[]): readonly Local[] => names.map((name) => ({ name }));

/**
 * Advances from the state before `p` to the state before `t` and saves checkpoints on the way; `top` slots are in use.
 */
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

/**
 * Runs iterations 0 … count - 2 from the working state and saves the checkpoints that the reverse sweep starts from.
 * Sets `top`.
 */
export function recordStates(states: Checkpoints, count: Int, top: Local): readonly Statement[] {
  const [p, t] = newLocals(["p", "t"]) as [Local, Local];
  return [
    ...states.save(int(0)),
    ...states.setIteration(int(0), int(0)),
    set(top, int(1)),
    set(p, int(0)),
    set(t, plus(count, -1)),
    advance(states, p, t, top),
    // A loop of one iteration is reversed from the working state.
    choose(below(count, int(2)), [set(top, int(0))]),
  ];
}

/**
 * The reverse sweep: for each iteration from the last to the first, advance to its state, then reverse it. `resumed`:
 * the working state is that of the last iteration and `top` slots are in use; otherwise the first slot holds the first
 * state and no other slot is in use.
 */
export function reverseSweep(
  states: Checkpoints,
  count: Int,
  { top, resumed }: { readonly top: Local; readonly resumed: boolean },
  back: (iteration: Local) => readonly Statement[],
): readonly Statement[] {
  const [p, t, first] = newLocals(["p", "t", "first"]) as [Local, Local, Local];
  const last = plus(read(top), -1);
  const fromHeld = [
    ...states.restore(last),
    set(p, states.iterationOf(last)),
    // The checkpoint of this iteration is no longer needed.
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
