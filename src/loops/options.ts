/**
 * @file The ways to reverse one group of loops, by bytes and time: how many states are held, and for how many turns at the
 * end rows are kept instead. Those that some price of a byte makes the best lie on a line that bends one way, and between
 * two of them lie all mixtures:
 *
 * ```
 *   ms  ●                                s states for all turns
 *        ╲
 *         ●                              more states
 *           ╲ ·  ·                       · mixtures: states for the first turns, rows of the last ones
 *              ╲   ·  ·
 *                 ╲      ╲
 *                    ●─────────●         rows of all turns
 *                                bytes
 * ```
 */
import { at } from "../base/invariant.ts";
import { repetitions } from "./binomial.ts";
import type { LoopForm, LoopGroup, Rows } from "./groups.ts";
import { binomialSchedule } from "./schedules.ts";
import { openAdvances } from "./unbounded.ts";

/** Sweeps that a plan makes unless it has to fit a given number of bytes: fewer states would save two or three at most. */
const MOST_SWEEPS = 200;
/** Shares of the turns whose rows may be kept. */
const SHARES = 8;

/** One way to reverse the loops of a group. */
export interface Option {
  readonly form: LoopForm;
  readonly ms: number;
  readonly bytes: number;
}

function optionOf(group: LoopGroup, { checkpoints, taped }: Omit<LoopForm, "price">, rows: Rows): Option {
  const { isOpen, count, length, stateBytes, stepMs, tapesMs } = group;
  const form = { checkpoints, taped, price: rows.price };
  const share = taped / Math.max(1, length);
  const kept = count * taped * rows.bytes;
  if (taped === length) return { form, ms: rows.againMs, bytes: kept };
  const advances = isOpen ? openAdvances(checkpoints) : binomialSchedule(length, checkpoints, taped).advances;
  const bytes = count * (checkpoints + 1) * stateBytes + kept;
  return { form, ms: advances * stepMs + (1 - share) * tapesMs + share * rows.againMs, bytes };
}

/** What a form of a group takes. */
export function optionFor(group: LoopGroup, form: LoopForm): Option {
  const rows = group.rows.find(({ price }) => price === form.price) ?? at(group.rows, 0);
  return optionOf(group, form, rows);
}

/** Numbers of states from one to one for each turn, in steps that grow. */
function checkpointNumbers({ stateBytes }: LoopGroup, turns: number): readonly number[] {
  // States that nothing depends on need not be held, however many could be.
  const last = stateBytes === 0 ? 1 : Math.max(1, turns - 1);
  const numbers = [1];
  for (let checkpoints = 1; checkpoints < last; ) {
    checkpoints = Math.min(last, Math.max(checkpoints + 1, Math.floor(checkpoints * 1.25)));
    numbers.push(checkpoints);
  }
  return numbers;
}

function allOptions(group: LoopGroup): readonly Option[] {
  const { length, isOpen, tapes, rows } = group;
  const shares = tapes ? Array.from({ length: SHARES }, (_, n) => Math.floor((length * n) / SHARES)) : [0];
  const options = [...new Set(shares)].flatMap((taped) =>
    checkpointNumbers(group, length - taped).flatMap((checkpoints) =>
      (taped === 0 ? rows.slice(0, 1) : rows).map((own) => optionOf(group, { checkpoints, taped }, own)),
    ),
  );
  if (isOpen) return options;
  const all = rows.map((own) => optionOf(group, { checkpoints: 0, taped: length }, own));
  return [...options.filter(({ bytes }) => bytes < at(all, 0).bytes), ...all];
}

/** Time saved for each byte more. */
export const slope = (fewer: Option, more: Option): number =>
  (fewer.ms - more.ms) / Math.max(1, more.bytes - fewer.bytes);

/** From few to many bytes, the options that some price makes the best: from one to the next the slope falls. */
export function optionsOf(group: LoopGroup): readonly Option[] {
  const sorted = [...allOptions(group)].sort((a, b) => a.bytes - b.bytes || a.ms - b.ms);
  const kept: Option[] = [];
  for (const option of sorted) {
    const fastest = kept.at(-1);
    if (fastest && option.ms >= fastest.ms) continue;
    for (let n = kept.length; n > 1; n = kept.length) {
      const [before, last] = [at(kept, n - 2), at(kept, n - 1)];
      if (slope(before, last) > slope(last, option)) break;
      kept.pop();
    }
    kept.push(option);
  }
  return kept;
}

/** What lies between two options, in steps of one state or one turn; the last step is the second of them. */
export interface Between {
  readonly steps: number;
  at(n: number): LoopForm;
}

/** `from` has fewer bytes than `to`, and the steps between them rows of `to` for some turns, or more states. */
export function between({ length, tapes }: LoopGroup, from: Option, to: Option): Between {
  const [a, b] = [from.form, to.form];
  const statesOfAll = { checkpoints: Math.max(1, length - 1), taped: 0 };
  // Between two kinds of rows for all turns lie states for the first turns, and rows of the larger kind for the others.
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

/** As few states as a reasonable number of sweeps takes. */
export function fewest({ length }: Pick<LoopGroup, "length">): LoopForm {
  let checkpoints = 1;
  while (repetitions(length, checkpoints) > MOST_SWEEPS) checkpoints++;
  return { checkpoints: Math.min(checkpoints, Math.max(1, length - 1)), taped: 0, price: 0 };
}
