/**
 * @file Schedules that keep every k-th state on the way forward and then, piece by piece from the end, all tapes of a
 * piece: each step but those of the last piece runs twice. k = L keeps every tape and repeats nothing; k = ⌈√L⌉ keeps
 * about √L states and √L tapes (Chen et al., "Training deep nets with sublinear memory cost", 2016).
 *
 * ```
 *   0 ▪────────── k ▪────────── 2k ───────── L        ▪ kept; the last piece starts from the current state
 *     tapes third    tapes second   tapes first
 * ```
 */
import { type Actions, type Level, memoryLevel, WORK } from "./action.ts";

const STATES = 0;
const TAPES = 1;

/** Memory of a schedule with pieces of `every` steps: states, then tapes. */
export function periodicLevels(steps: number, every: number): readonly Level[] {
  const pieces = Math.ceil(steps / every);
  const tapes = Math.max(0, Math.min(every, steps) - 1);
  return [
    memoryLevel(Math.max(0, pieces - 1)),
    { name: "tapes", units: tapes, stateUnits: null, tapeUnits: 1, writeCost: 0, readCost: 0 },
  ];
}

/** Tapes of steps from … end - 1, the last as the working tape, and their adjoints. */
function* piece(from: number, end: number): Actions {
  for (let step = from; step < end - 1; step++) yield { kind: "tape", step, level: TAPES, slot: step - from };
  yield { kind: "tape", step: end - 1, level: WORK, slot: 0 };
  yield { kind: "reverse", step: end - 1, level: WORK, slot: 0 };
  for (let step = end - 2; step >= from; step--) {
    yield { kind: "reverse", step, level: TAPES, slot: step - from };
    yield { kind: "free", level: TAPES, slot: step - from };
  }
}

/** A state kept every `every` steps, at least 1. */
export function* periodic(steps: number, every: number): Actions {
  const last = Math.ceil(steps / every) - 1;
  for (let p = 0; p < last; p++) {
    yield { kind: "snapshot", step: p * every, level: STATES, slot: p };
    yield { kind: "advance", from: p * every, to: (p + 1) * every };
  }
  for (let p = last; p >= 0; p--) {
    const step = p * every;
    if (p < last) {
      yield { kind: "restore", step, level: STATES, slot: p };
      yield { kind: "free", level: STATES, slot: p };
    }
    yield* piece(step, Math.min(steps, step + every));
  }
}
