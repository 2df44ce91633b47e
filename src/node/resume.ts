/** @file What a folder has to go on from. */
import { TidemarkError } from "../base/errors.ts";
import type { Found } from "./execution.ts";
import type { ReversePrograms } from "./programs.ts";
import type { Store } from "./store.ts";

/** Nothing yet. */
export function freshRun(steps: number): Found {
  return { left: steps, begun: false, states: [], adjoints: [], damaged: [] };
}

/**
 * The state of the reverse is read from the last file that is whole; states are read when they are needed. Throws where
 * there are files of the reverse and none is whole: to begin the way back again may take days, which is not for us to
 * decide.
 */
export async function findRun(store: Store, programs: ReversePrograms, steps: number): Promise<Found> {
  const labels = await store.labels();
  const stepsOf = (kind: string): number[] => labels.flatMap((label) => (label.kind === kind ? [label.step] : []));
  const adjoints = stepsOf("adjoint").sort((a, b) => b - a);
  const damaged: string[] = [];
  let failure: unknown = null;
  let reversed: number | null = null;
  for (const step of [...adjoints].reverse()) {
    try {
      await store.get({ kind: "adjoint", step }, (block) => programs.writeAdjoint(block));
      reversed = step;
      break;
    } catch (error) {
      if (!(error instanceof TidemarkError)) throw error;
      damaged.push(error.summary);
      failure = error;
    }
  }
  if (failure !== null && reversed === null) throw failure;
  const left = reversed ?? steps;
  const states: number[] = [];
  for (const step of stepsOf("state")) {
    if (step < left || step === steps) states.push(step);
    else await store.remove({ kind: "state", step });
  }
  return { left, begun: reversed !== null, states, adjoints, damaged };
}
