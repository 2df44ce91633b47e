/**
 * @file The ways to reverse one group of loops, by bytes and time: how many states are kept, and for how many of the
 * last iterations rows are stacked instead. The options that are best at some price per byte form a convex curve, and
 * the mixtures lie between neighbours:
 *
 * ```
 *   ms  ●                                s states for all iterations
 *        ╲
 *         ●                              more states
 *           ╲ ·  ·                       · mixtures: states for the first iterations, rows of the last ones
 *              ╲   ·  ·
 *                 ╲      ╲
 *                    ●─────────●         rows of all iterations
 *                                bytes
 * ```
 */
import { at } from "../base/invariant.ts";
import { repetitions } from "./binomial.ts";
import type { LoopForm, LoopGroup, RowSelection } from "./groups.ts";
import { binomialSchedule } from "./schedules.ts";
import { openAdvances } from "./unbounded.ts";

/**
 * The most sweeps of a plan, unless it must fit a number of bytes: more sweeps would save two or three states at most.
 */
const MOST_SWEEPS = 200;
/** The number of fractions of the iterations whose rows may be stacked. */
const SHARES = 8;

/** One way to reverse the loops of a group. */
export interface ReversalOption {
  readonly form: LoopForm;
  readonly ms: number;
  readonly bytes: number;
}

function optionOf(
  group: LoopGroup,
  { checkpoints, taped }: Omit<LoopForm, "price">,
  rows: RowSelection,
): ReversalOption {
  const { isOpen, count, length, stateBytes, stepMs, tapesMs } = group;
  const form = { checkpoints, taped, price: rows.price };
  const share = taped / Math.max(1, length);
  const rowBytes = count * taped * rows.bytes;
  if (taped === length) return { form, ms: rows.recomputeMs, bytes: rowBytes };
  const advances = isOpen ? openAdvances(checkpoints) : binomialSchedule(length, checkpoints, taped).advances;
  const bytes = count * (checkpoints + 1) * stateBytes + rowBytes;
  return { form, ms: advances * stepMs + (1 - share) * tapesMs + share * rows.recomputeMs, bytes };
}

/** The bytes and time of a group in some form. */
export function optionFor(group: LoopGroup, form: LoopForm): ReversalOption {
  const rows = group.rows.find(({ price }) => price === form.price) ?? at(group.rows, 0);
  return optionOf(group, form, rows);
}

/** Numbers of states from 1 to one per iteration, in growing steps. */
function checkpointNumbers({ stateBytes }: LoopGroup, iterations: number): readonly number[] {
  // Empty states need no more than one checkpoint.
  const last = stateBytes === 0 ? 1 : Math.max(1, iterations - 1);
  const numbers = [1];
  for (let checkpoints = 1; checkpoints < last; ) {
    checkpoints = Math.min(last, Math.max(checkpoints + 1, Math.floor(checkpoints * 1.25)));
    numbers.push(checkpoints);
  }
  return numbers;
}

function allOptions(group: LoopGroup): readonly ReversalOption[] {
  const { length, isOpen, tapes, rows } = group;
  const shares = tapes ? Array.from({ length: SHARES }, (_, n) => Math.floor((length * n) / SHARES)) : [0];
  const options = [...new Set(shares)].flatMap((taped) =>
    checkpointNumbers(group, length - taped).flatMap((checkpoints) =>
      (taped === 0 ? rows.slice(0, 1) : rows).map((selection) => optionOf(group, { checkpoints, taped }, selection)),
    ),
  );
  if (isOpen) return options;
  const all = rows.map((own) => optionOf(group, { checkpoints: 0, taped: length }, own));
  return [...options.filter(({ bytes }) => bytes < at(all, 0).bytes), ...all];
}

/** Time saved per additional byte. */
export const slope = (fewer: ReversalOption, more: ReversalOption): number =>
  (fewer.ms - more.ms) / Math.max(1, more.bytes - fewer.bytes);

/** The options that are best at some price, from few to many bytes: slopes decrease. */
export function optionsOf(group: LoopGroup): readonly ReversalOption[] {
  const sorted = [...allOptions(group)].sort((a, b) => a.bytes - b.bytes || a.ms - b.ms);
  const hull: ReversalOption[] = [];
  for (const option of sorted) {
    const fastest = hull.at(-1);
    if (fastest && option.ms >= fastest.ms) continue;
    for (let n = hull.length; n > 1; n = hull.length) {
      const [before, last] = [at(hull, n - 2), at(hull, n - 1)];
      if (slope(before, last) > slope(last, option)) break;
      hull.pop();
    }
    hull.push(option);
  }
  return hull;
}

/** The mixtures between two options, in steps of one state or one iteration; the last step is the second option. */
export interface Mixtures {
  readonly steps: number;
  at(n: number): LoopForm;
}

/**
 * `from` has fewer bytes than `to`; each step between them stacks rows of `to` for more iterations, or keeps more
 * states.
 */
export function mixturesBetween({ length, tapes }: LoopGroup, from: ReversalOption, to: ReversalOption): Mixtures {
  const [a, b] = [from.form, to.form];
  const statesOfAll = { checkpoints: Math.max(1, length - 1), taped: 0 };
  // Between two selections of rows for all iterations: states for the first iterations, and the larger selection for
  // the others.
  const begin = a.taped === length ? statesOfAll : a;
  const end = b.taped === length && !tapes ? statesOfAll : b;
  const steps = Math.max(1, Math.abs(end.checkpoints - begin.checkpoints), Math.abs(end.taped - begin.taped));
  return {
    steps,
    at(n) {
      if (n <= 0) return a;
      if (n >= steps) return b;
      const mixed = (x: number, y: number): number => x + Math.round(((y - x) * n) / steps);
      const taped = Math.min(mixed(begin.taped, end.taped), length - 1);
      const checkpoints = Math.max(1, Math.min(mixed(begin.checkpoints, end.checkpoints), length - taped - 1));
      return { checkpoints, taped, price: taped === 0 ? 0 : b.price };
    },
  };
}

/** The fewest states that need at most MOST_SWEEPS sweeps. */
export function fewest({ length }: Pick<LoopGroup, "length">): LoopForm {
  let checkpoints = 1;
  while (repetitions(length, checkpoints) > MOST_SWEEPS) checkpoints++;
  return { checkpoints: Math.min(checkpoints, Math.max(1, length - 1)), taped: 0, price: 0 };
}
