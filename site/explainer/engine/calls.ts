/** @file The calls that figures make to the worker with the library. */
import type { ViewCurve } from "../../../src/view/data.ts";
import { inverseBytes, lossyBytes, roundingError, strips } from "./elsewhere.ts";
import { attentionBytes, growth, stepBytes } from "./explosion.ts";
import type { NetworkName } from "./networks.ts";
import { puzzle, reuse } from "./packing.ts";
import { rootAndAuto, rootGrowth, segmentPlan } from "./segments.ts";
import { recomputedFigures, spilledFigures } from "./spill.ts";
import { heldByTapes, lifetimes, scalarTape } from "./tape.ts";
import { Tradeoff } from "./tradeoff.ts";

/** What the worker says without being asked: the curve of a network as it grows. */
export interface Told {
  readonly told: "curve";
  readonly of: NetworkName;
  readonly curve: ViewCurve;
}

interface Surroundings {
  tell(said: Told): void;
  later(work: () => void): void;
}

function tradeoffs({ tell, later }: Surroundings) {
  const tradeoff = new Tradeoff();
  let asked = 0;
  return {
    network(name: NetworkName, withCurve: boolean) {
      const entry = tradeoff.network(name);
      const mine = ++asked;
      const curves = tradeoff.curves();
      const next = (): void => {
        if (mine !== asked) return;
        const { value, done } = curves.next();
        if (done) return;
        tell({ told: "curve", of: name, curve: value });
        later(next);
      };
      if (withCurve) later(next);
      return entry;
    },
    networkWithin: (budgetBytes: number) => tradeoff.within(budgetBytes),
    networkStory: (asks: string, value: number) => tradeoff.story(asks, value),
  };
}

/** Answers to every call. */
export const createCalls = (surroundings: Surroundings) => ({
  ...{ scalarTape, lifetimes, heldByTapes },
  ...{ growth, attentionBytes, stepBytes },
  ...{ segmentPlan, rootGrowth, rootAndAuto },
  ...{ reuse, puzzle },
  ...{ inverseBytes, lossyBytes, roundingError, recomputedFigures, spilledFigures, strips },
  ...tradeoffs(surroundings),
});

export type Calls = ReturnType<typeof createCalls>;
