/**
 * @file Checkpoint schedules for loops, by name: which states are kept, and how many iterations are recomputed beyond
 * the forward loop, which is the first sweep of every schedule. Generated code computes the schedule as it runs
 * (lower/checkpoints.ts). Pieces are reversed from states alone, so `periodic` keeps every k-th state and all states of
 * one piece.
 */
import { DEFAULT_CHECKPOINTS, type Reversal } from "../ops/loops.ts";
import type { SplitAttrs } from "../ops/record.ts";
import { leastAdvances } from "./binomial.ts";

/**
 * How a loop is reversed: the states it keeps and the number of iterations it recomputes; the last `taped` iterations
 * need no states.
 */
export interface LoopSchedule extends SplitAttrs {
  readonly advances: number;
  readonly taped: number;
}

/** The largest useful number of states: one for each iteration but the last, which starts from the working state. */
const useful = (length: number, checkpoints: number): number => Math.max(1, Math.min(checkpoints, length - 1));

/**
 * The binomial schedule: the fewest recomputed iterations for a number of states. Rows of the last `taped` iterations
 * are stacked.
 */
export function binomialSchedule(length: number, checkpoints: number, taped = 0): LoopSchedule {
  const early = length - taped;
  const states = useful(early, checkpoints);
  const advances = Math.max(0, leastAdvances(early, states) - Math.max(0, early - 1));
  return { checkpoints: states, split: "binomial", every: 0, advances, taped };
}

/** Iterations from the first checkpoint, the first sweep included, if each part is halved. */
function halving(length: number, checkpoints: number, cache: Map<string, number>): number {
  if (length <= 1) return 0;
  if (checkpoints === 1) return (length * (length - 1)) / 2;
  const key = `${length},${checkpoints}`;
  const cached = cache.get(key);
  if (cached !== undefined) return cached;
  const half = length >> 1;
  const iterations = half + halving(length - half, checkpoints - 1, cache) + halving(half, checkpoints, cache);
  cache.set(key, iterations);
  return iterations;
}

function binarySchedule(length: number, snapshots: number): LoopSchedule {
  const checkpoints = useful(length, snapshots || Math.ceil(Math.log2(Math.max(2, length))));
  const advances = Math.max(0, halving(length, checkpoints, new Map()) - Math.max(0, length - 1));
  return { checkpoints, split: "binary", every: 0, advances, taped: 0 };
}

/** Pieces of `every` iterations; the first sweep already keeps all states of the last piece. */
export function periodicSchedule(length: number, every: number): LoopSchedule {
  const pieces = Math.max(1, Math.ceil(length / every));
  const checkpoints = pieces + Math.max(0, Math.min(every, length) - 2);
  return { checkpoints, split: "periodic", every, advances: (pieces - 1) * (every - 1), taped: 0 };
}

/** The schedule a user named; null for "keep everything" and for "let the planner choose". */
export function namedSchedule(name: Reversal, length: number, snapshots: number): LoopSchedule | null {
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
