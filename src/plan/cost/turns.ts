/**
 * @file Time of a loop in whose body devices take turns: in each iteration every device runs some of the loops inside, and they meet where
 * they exchange. What is between two exchanges takes as long as the device that has most to do:
 *
 *   iteration    0    1    2    3
 *   device 0     F    F    B    B           F + F + max(B, F) + B
 *   device 1     –    F    F    B
 *
 * Where there are fewer cores than devices (`coresPerDevice` c below 1), every time t here has room for others: alone a device takes c·t, and
 * all of them together the mean of their t.
 */
import { at } from "../../base/invariant.ts";
import type { Turns } from "../../ir/op.ts";
import type { Plan } from "../problem.ts";
import type { PlanStep } from "../program.ts";

/** What a loop says of its turns; null where it says nothing. */
export function turnsOf({ op, attrs }: PlanStep["node"]): Turns | null {
  const { lower } = op;
  return lower.kind === "control" ? (lower.turns?.(attrs) ?? null) : null;
}

interface OneTurn {
  readonly turns: Turns;
  readonly ms: number;
}

/** Loops with turns in a body, by the exchanges that are between them. */
function turnsBetween(
  { program }: Plan,
  msOf: (body: Plan) => number,
  meets: (step: PlanStep) => boolean,
): readonly (readonly OneTurn[])[] {
  const all: OneTurn[][] = [[]];
  for (const step of program.steps) {
    const [, body] = step.bodies ?? [];
    const turns = body && turnsOf(step.node);
    if (body && turns) at(all, all.length - 1).push({ turns, ms: msOf(body) });
    else if (meets(step)) all.push([]);
  }
  return all.filter((some) => some.length > 0);
}

export interface TurnCosts {
  /** Of one run of a body. */
  msOf(body: Plan): number;
  /** Whether devices wait for each other at a step. */
  meets(step: PlanStep): boolean;
  readonly coresPerDevice: number;
}

/** Milliseconds for which a device waits for others in so many iterations of a body, beyond the mean of what devices do. */
export function waitingMs(body: Plan, iterations: number, { msOf, meets, coresPerDevice }: TurnCosts): number {
  let waited = 0;
  for (const some of turnsBetween(body, msOf, meets)) {
    const devices = Math.max(...some.map(({ turns }) => turns.length));
    for (let i = 0; i < iterations; i++) {
      const busy = Array.from({ length: devices }, (_, device) =>
        some.reduce((ms, one) => ms + (one.turns[device]?.[i] ? one.ms : 0), 0),
      );
      const mean = busy.reduce((sum, ms) => sum + ms, 0) / devices;
      waited += Math.max(0, coresPerDevice * Math.max(...busy) - mean);
    }
  }
  return waited;
}
