/**
 * @file Schedules for loops of a program, by name: which states are held, and how many turns that takes beyond the forward
 * loop, which is the first sweep of every schedule. The module works a schedule out as it goes along (lower/checkpoints.ts).
 * Pieces are reversed from states alone, so `periodic` holds every k-th state and all states of one piece.
 */
import { DEFAULT_CHECKPOINTS, type Reversal } from "../ops/loops.ts";
import type { SplitAttrs } from "../ops/record.ts";
import { leastAdvances } from "./binomial.ts";

/** How a loop is reversed: which states it holds, and how many turns it then makes again; the last `taped` need none. */
export interface Schedule extends SplitAttrs {
  readonly advances: number;
  readonly taped: number;
}

/** More states than this are of no use: one for each turn but the last, which begins at the working state. */
const useful = (length: number, checkpoints: number): number => Math.max(1, Math.min(checkpoints, length - 1));

/** Turns that `binomial` makes again: as few as is possible with so many states. What `taped` turns leave is kept. */
export function binomialSchedule(length: number, checkpoints: number, taped = 0): Schedule {
  const early = length - taped;
  const held = useful(early, checkpoints);
  const advances = Math.max(0, leastAdvances(early, held) - Math.max(0, early - 1));
  return { checkpoints: held, split: "binomial", every: 0, advances, taped };
}

/** Turns from the first held state, the first sweep counted, when each part is halved. */
function halving(length: number, checkpoints: number, known: Map<string, number>): number {
  if (length <= 1) return 0;
  if (checkpoints === 1) return (length * (length - 1)) / 2;
  const key = `${length},${checkpoints}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  const half = length >> 1;
  const turns = half + halving(length - half, checkpoints - 1, known) + halving(half, checkpoints, known);
  known.set(key, turns);
  return turns;
}

function binarySchedule(length: number, snapshots: number): Schedule {
  const checkpoints = useful(length, snapshots || Math.ceil(Math.log2(Math.max(2, length))));
  const advances = Math.max(0, halving(length, checkpoints, new Map()) - Math.max(0, length - 1));
  return { checkpoints, split: "binary", every: 0, advances, taped: 0 };
}

/** `every` turns are a piece; of the last piece the first sweep holds all states already. */
export function periodicSchedule(length: number, every: number): Schedule {
  const pieces = Math.max(1, Math.ceil(length / every));
  const checkpoints = pieces + Math.max(0, Math.min(every, length) - 2);
  return { checkpoints, split: "periodic", every, advances: (pieces - 1) * (every - 1), taped: 0 };
}

/** The schedule that a user asked for; null where that is to keep everything, or left to the planner. */
export function namedSchedule(name: Reversal, length: number, snapshots: number): Schedule | null {
  const root = Math.max(1, Math.ceil(Math.sqrt(length)));
  switch (name) {
    case "auto":
      return snapshots > 0 ? binomialSchedule(length, snapshots) : null;
    case "store-all":
      return null;
    case "binomial":
      return binomialSchedule(length, snapshots || DEFAULT_CHECKPOINTS);
    case "binary":
      return binarySchedule(length, snapshots);
    case "periodic":
      return periodicSchedule(length, Math.max(1, Math.ceil(length / (snapshots || root))));
    case "square-root":
      return periodicSchedule(length, root);
  }
}
