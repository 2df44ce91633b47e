/**
 * @file The engine of all schedules that keep only states and place them by a *split*: the distance from a kept state
 * to the next one, given the steps up to `end`. The choice is repeated whenever the state is restored, so only the kept
 * states are stored: memory is proportional to the number of snapshots.
 *
 * ```
 *   held   0───────────p1──────p2───┐ sweep: split, keep, split, keep, … until one step is left
 *                                   └─ tape end-1, reverse end-1, restore the last held state, repeat
 * ```
 *
 * A state with one remaining step is not kept, and is freed when it is restored.
 */
import { at as item } from "../../base/invariant.ts";
import { type Action, type Actions, type SnapshotSlot, WORK } from "./action.ts";

/**
 * How far to advance from `from`, at least 1 and less than `end - from`, with `snapshots` > 1 slots, including its own.
 */
export type Split = (from: number, end: number, snapshots: number) => number;

/** A state that is kept. */
export interface HeldState extends SnapshotSlot {
  readonly step: number;
}

/** Tapes a step and reverses it at once. */
export function* tapeAndReverse(step: number): Actions {
  yield { kind: "tape", step, level: WORK, slot: 0 };
  yield { kind: "reverse", step, level: WORK, slot: 0 };
}

const snapshot = ({ step, level, slot }: HeldState): Action => ({ kind: "snapshot", step, level, slot });
const restore = ({ step, level, slot }: HeldState): Action => ({ kind: "restore", step, level, slot });

/** The starting point of a reversal. Both lists are consumed. */
export interface ReversalStart {
  /** States in order of steps, x₀ first. */
  readonly held: HeldState[];
  /** Free slots, the next one to use last. */
  readonly free: SnapshotSlot[];
  /** The step of the current state, if there is one to start from. */
  readonly current: number | null;
}

/** Reverses the steps before `end`. */
export function* reverseSegments(end: number, split: Split, { held, free, current }: ReversalStart): Actions {
  for (let left = end; left > 0; left--) {
    let here = left === end ? current : null;
    if (here === null) {
      const last = item(held, held.length - 1);
      yield restore(last);
      here = last.step;
      if (left - here === 1) {
        held.pop();
        free.push(last);
        yield { kind: "free", level: last.level, slot: last.slot };
      }
    }
    while (left - here > 1) {
      if (held.at(-1)?.step !== here) {
        const kept: HeldState = { ...item(free, free.length - 1), step: here };
        free.pop();
        held.push(kept);
        yield snapshot(kept);
      }
      const to: number = free.length === 0 ? left - 1 : here + split(here, left, free.length + 1);
      yield { kind: "advance", from: here, to };
      here = to;
    }
    yield* tapeAndReverse(left - 1);
  }
}

/** A complete schedule from x₀ as the current state; `places` are used in order. */
export function bySplits(steps: number, places: readonly SnapshotSlot[], split: Split): Actions {
  return reverseSegments(steps, split, { held: [], free: [...places].reverse(), current: 0 });
}

/** Slots 0 … n - 1 of a level. */
export function slotsOf(level: number, n: number): readonly SnapshotSlot[] {
  return Array.from({ length: n }, (_, slot) => ({ level, slot }));
}
