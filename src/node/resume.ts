/** @file Finds the point in a folder from which a run resumes. */
import { TidemarkError } from "../base/errors.ts";
import type { ResumePoint } from "./execution.ts";
import type { ReversePrograms } from "./programs.ts";
import type { Store } from "./store.ts";

/** A run without files. */
export function freshRun(steps: number): ResumePoint {
  return { left: steps, begun: false, states: [], adjoints: [], damaged: [] };
}

/**
 * The state of the reverse sweep is read from its last intact file; states are read on demand. Throws if there are
 * files of the reverse and none is intact: restarting the reverse may take days, which is the user's decision.
 */
export async function findRun(store: Store, programs: ReversePrograms, steps: number): Promise<ResumePoint> {
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
