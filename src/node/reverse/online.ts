/**
 * @file Schedules for loops whose length is known only when they end. Before step i the loop reports whether it is the
 * last; if not, x_i may be kept, replacing another state. When the loop ends, the pieces between the kept states are
 * reversed by binomial schedules. A `while (condition(x))` loop learns that step i is the last only by running it: tape
 * it into a second state buffer, so that x_i can still be kept.
 *
 * Which states to keep, with s snapshots and the i-th gap between kept states reversed with s - i of them:
 *
 * ```
 *   l ≤ C(s+2, 2) + 1    as good as any schedule that knows l, at each l. The i-th gap may be up to s - i + 1 long (then it
 *                        costs its length less one) and the last state lies 2 or 3 before the end:
 *
 *                          0 ─── s+1 ─── s ─── s-1 ─── … ─── 3 ─ 2    the gaps' largest lengths; fence posts between them
 *
 *                        Keep all posts and, between them, every second state; drop the leftmost state that is not a post.
 *   beyond               Wang, Moin and Iaccarino, "Minimal repetition dynamic checkpointing", SIAM J. Sci. Comput. 31
 *                        (2009): kept states have levels, one with a later one of higher level is dispensable. No step runs
 *                        more often than in the best schedule that knows l. The posts are where this rule would place them
 *                        at l = C(s+2, 2), all at level 1.
 * ```
 */
import { at, invariant } from "../../base/invariant.ts";
import { binomialSplit, reach } from "../../loops/binomial.ts";
import type { Actions } from "./action.ts";
import { type HeldState, reverseSegments, type Split, slotsOf, tapeAndReverse } from "./segments.ts";

/** Whether x_i is kept, and which kept state it replaces (its index, or null while slots are free). */
type Decision = { readonly keep: false } | { readonly keep: true; readonly instead: number | null };

const PASS: Decision = { keep: false };

/** Chooses the states to keep while the loop runs; it is offered each state but that of the last step, in order. */
interface Keeper {
  offer(step: number): Decision;
}

/** Decides for lengths up to C(s+2, 2) + 1. */
function postKeeper(s: number, held: readonly HeldState[]): Keeper {
  /** Index of the next post, its position, and how many of `held`, from the left, are posts. */
  let index = 0;
  let post = 0;
  let settled = 1;
  const next = (): void => {
    index++;
    post = index < s ? post + s - index + 2 : Number.POSITIVE_INFINITY;
  };
  const posts = new Set<number>();
  return {
    offer(step) {
      if (step === post) {
        posts.add(step);
        next();
      } else if (held.length === s && (index === s || step - at(held, s - 1).step < 2)) return PASS;
      if (held.length < s) return { keep: true, instead: null };
      while (settled < s && posts.has(at(held, settled).step)) settled++;
      invariant(settled < s, () => `${s} snapshots, no place for x_${step}`);
      return { keep: true, instead: settled };
    },
  };
}

/** Decides for lengths beyond, from the posts as the kept states. */
function levelKeeper(s: number): Keeper {
  const levels = new Array<number>(s).fill(1);
  levels[0] = Number.POSITIVE_INFINITY;
  /** Of the state that is offered next. */
  let pending = 2;
  /** Indices [from, to) of kept states are dispensable. */
  let [from, to] = [1, s];
  return {
    offer() {
      if (from < to) {
        // the rightmost: slightly cheaper on average than the leftmost
        to--;
        levels.splice(to, 1);
        levels.push(pending);
        pending = 0;
        return { keep: true, instead: to };
      }
      // levels decrease from left to right; once a higher one follows, the lower ones on the right are dispensable
      pending++;
      [from, to] = [s, s];
      while (from > 1 && at(levels, from - 1) < pending) from--;
      return PASS;
    },
  };
}

/** Decides for any length, 1 snapshot or more. */
function onlineKeeper(s: number, held: readonly HeldState[]): Keeper {
  const early = postKeeper(s, held);
  const change = reach(s, 2);
  let late: Keeper | null = null;
  return {
    offer(step) {
      if (step < change) return early.offer(step);
      late ??= levelKeeper(s);
      return late.offer(step);
    },
  };
}

/**
 * Runs a loop of at least one step and reverses it. `isLast` is called once per step, in order, before its action is
 * executed: the current state is then that step's.
 */
export function* online(snapshots: number, isLast: (step: number) => boolean): Actions {
  const free = [...slotsOf(0, snapshots)].reverse();
  const held: HeldState[] = [];
  const keeper = onlineKeeper(snapshots, held);
  let step = 0;
  for (; !isLast(step); step++) {
    const decision = keeper.offer(step);
    if (decision.keep) {
      if (decision.instead !== null) {
        const [old] = held.splice(decision.instead, 1) as [HeldState];
        free.push(old);
        yield { kind: "free", level: old.level, slot: old.slot };
      }
      const { level, slot } = at(free, free.length - 1);
      free.pop();
      held.push({ step, level, slot });
      yield { kind: "snapshot", step, level, slot };
    }
    yield { kind: "advance", from: step, to: step + 1 };
  }
  yield* tapeAndReverse(step);
  const split: Split = (from, end, s) => binomialSplit(end - from, s);
  yield* reverseSegments(step, split, { held, free, current: null });
}
