/**
 * @file Mixed schedules: executes the choices of `mixed-table.ts`. Kept items form a stack; a slot is the height of the
 * stack before the item was pushed.
 */
import { at, invariant } from "../../base/invariant.ts";
import { type Action, type Actions, type Level, WORK } from "./action.ts";
import type { MixedSizes, MixedTable } from "./mixed-table.ts";

interface KeptItem {
  readonly what: "state" | "tape";
  readonly step: number;
  readonly slot: number;
}

export function mixedLevel(units: number, sizes: MixedSizes): Level {
  return { name: "memory", units, ...sizes, writeCost: 0, readCost: 0 };
}

/** Reverses `steps` steps within `units` units, which must be enough. */
export function* mixed(steps: number, units: number, sizes: MixedSizes, table: MixedTable): Actions {
  const kept: KeptItem[] = [];
  let free = units;
  let here = 0;
  for (let end = steps; end > 0; ) {
    while (end - here > 1) {
      const choice = table.choice(end - here, free);
      const what = choice === "tape" ? "tape" : "state";
      const place = { step: here, level: 0, slot: units - free };
      if (choice === "tape") yield { kind: "tape", ...place };
      else {
        yield { kind: "snapshot", ...place };
        yield { kind: "advance", from: here, to: here + choice };
      }
      kept.push({ what, step: here, slot: place.slot });
      free -= choice === "tape" ? sizes.tapeUnits : sizes.stateUnits;
      invariant(free >= 0, () => `mixed schedule of ${steps} steps in ${units} units`);
      here += choice === "tape" ? 1 : choice;
    }
    yield { kind: "tape", step: end - 1, level: WORK, slot: 0 };
    yield { kind: "reverse", step: end - 1, level: WORK, slot: 0 };
    end--;
    while (kept.at(-1)?.what === "tape") {
      const { step, slot } = at(kept, kept.length - 1);
      yield { kind: "reverse", step, level: 0, slot };
      yield { kind: "free", level: 0, slot };
      kept.pop();
      free += sizes.tapeUnits;
      end--;
    }
    if (end === 0) return;
    here = yield* resume(end);
  }

  /** Restores the last kept state, and advances again if the choice is to keep it. */
  function* resume(end: number): Generator<Action, number, undefined> {
    const { step, slot } = at(kept, kept.length - 1);
    yield { kind: "restore", step, level: 0, slot };
    const choice = end - step > 1 ? table.choice(end - step, free + sizes.stateUnits) : "tape";
    if (choice !== "tape") {
      yield { kind: "advance", from: step, to: step + choice };
      return step + choice;
    }
    yield { kind: "free", level: 0, slot };
    kept.pop();
    free += sizes.stateUnits;
    return step;
  }
}
