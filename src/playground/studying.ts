/** @file The calls of a worker that analyses texts. */
import type { Gpu } from "../runtime/webgpu/gpu.ts";
import type { ViewCurve } from "../view/data.ts";
import { FILE, isComplaint } from "./complaint.ts";
import type { Told } from "./protocol.ts";
import { Study } from "./study.ts";

export interface Surroundings {
  tell(said: Told): void;
  /** Runs something after pending messages were received. */
  later(work: () => void): void;
  /** WebGPU, where the worker has it. */
  readonly gpu?: Gpu | undefined;
}

/** Sends curves one at a time while they are needed; calls in between go first. */
export function tellCurves(
  { tell, later }: Surroundings,
  of: string,
  curves: Iterator<ViewCurve>,
  isWanted: () => boolean,
): void {
  const next = (): void => {
    if (!isWanted()) return;
    const { value, done } = curves.next();
    if (done) return;
    tell({ told: "curve", of, curve: value });
    later(next);
  };
  later(next);
}

/** Analyses texts; after an incorrect one, calls refer to the previous one. */
export function studying(surroundings: Surroundings) {
  const study = new Study();
  let looks = 0;
  return {
    study(text: string) {
      const seen = study.look(text, () => surroundings.tell({ told: "ran" }));
      if (isComplaint(seen)) return seen;
      const mine = ++looks;
      tellCurves(surroundings, FILE, study.curves(), () => looks === mine);
      return seen;
    },
    studyWithin: (budgetBytes: number) => study.within(budgetBytes),
    studyStory: (asks: string, value: number) => study.story(asks, value),
  };
}
