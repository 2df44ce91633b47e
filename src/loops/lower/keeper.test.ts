/**
 * @file States kept by a loop of unknown length, as the module decides: the interpreter of its statements must keep what
 * the schedule (node/reverse/online.ts) keeps, for every number of iterations.
 */
import { describe, expect, it } from "vitest";
import { ScriptMachine } from "../../../tests/support/script-machine.ts";
import { type Int, int, type Local, loadAt, plus, type Statement, times } from "../../codegen/script.ts";
import { online } from "../../node/reverse/online.ts";
import { leastAdvances } from "../binomial.ts";
import { type Checkpoints, reverseSweep } from "./checkpoints.ts";
import { OnlineKeeper } from "./keeper.ts";

/** Iterations of the states that the schedule keeps when a loop ends after `iterations` iterations. */
function keptBySchedule(slots: number, iterations: number): readonly number[] {
  const held = new Map<number, number>();
  for (const action of online(slots, (step) => step === iterations - 1)) {
    if (action.kind === "tape") break;
    if (action.kind === "snapshot") held.set(action.slot, action.step);
    if (action.kind === "free") held.delete(action.slot);
  }
  return [...held.values()].sort((a, b) => a - b);
}

const PLACES = 1 << 20;

/** A keeper driven iteration by iteration; the rows hold the iterations of the states that are copied there. */
class Driven {
  readonly #machine = new ScriptMachine();
  readonly #keeper: OnlineKeeper;
  readonly #slots: number;
  readonly #rows = new Map<number, number>();
  iterations = 0;

  constructor(slots: number) {
    this.#slots = slots;
    this.#keeper = new OnlineKeeper(slots, int(0));
    this.#machine.run(this.#keeper.begin());
  }

  iteration(): void {
    if (this.iterations > 0) this.#machine.run(this.#keeper.offer(int(this.iterations - 1)));
    this.#rows.set(this.#machine.locals.get(this.#keeper.spare) ?? -1, this.iterations);
    this.iterations += 1;
  }

  /** What the reverse would find: iterations in order, each in the row that has it, and the last state. */
  found(): { readonly iterations: readonly number[]; readonly rows: readonly number[]; readonly last: number } {
    this.#machine.run(this.#keeper.finish(int(PLACES)));
    const word = (n: number): number => this.#machine.memory.get(PLACES + 4 * n) ?? -1;
    const held = word(this.#slots);
    const rows = Array.from({ length: this.#slots + 1 }, (_, n) => word(this.#slots + 1 + n));
    expect(new Set(rows).size, "every row has one place").toBe(this.#slots + 1);
    return {
      iterations: Array.from({ length: held }, (_, n) => word(n)),
      rows: rows.slice(0, held).map((row) => this.#rows.get(row) ?? -1),
      last: this.#rows.get(rows[this.#slots] as number) ?? -1,
    };
  }
}

/** Forward iterations of the reverse sweep from the kept states, and the iterations that it reverses, in order. */
function reversed(slots: number, iterations: number): { readonly advances: number; readonly order: readonly number[] } {
  const rows = new Map<number, number>();
  let [state, advances] = [iterations - 1, 0];
  const order: number[] = [];
  const [WORKING, STEP, BACK] = [-1, -2, -3];
  const machine = new ScriptMachine({
    onCopy(to, from) {
      if (to === STEP) {
        expect(state, "an iteration starts from its own state").toBe(from);
        [state, advances] = [state + 1, advances + 1];
      } else if (to === BACK) {
        expect(state, "so does an iteration backward").toBe(from);
        order.push(from);
      } else if (to === WORKING) state = rows.get(from) ?? -1;
      else rows.set(to, state);
    },
  });
  const keeper = new OnlineKeeper(slots, int(0));
  machine.run(keeper.begin());
  for (let iteration = 0; iteration < iterations; iteration++) {
    if (iteration > 0) machine.run(keeper.offer(int(iteration - 1)));
    rows.set(machine.locals.get(keeper.spare) ?? -1, iteration);
  }
  machine.run(keeper.finish(int(PLACES)));
  const moved = (to: Int, from: Int): readonly Statement[] => [{ kind: "copy", to, from, bytes: 1 }];
  const word = (n: Int): Int => plus(times(n, 4), PLACES);
  const rowOf = (slot: Int): Int => loadAt(word(plus(slot, slots + 1)));
  const states: Checkpoints = {
    rule: { checkpoints: slots, split: "online", every: 0 },
    save: (slot) => moved(rowOf(slot), int(WORKING)),
    restore: (slot) => moved(int(WORKING), rowOf(slot)),
    iterationOf: (slot) => loadAt(word(slot)),
    setIteration: (slot, iteration) => [{ kind: "store", at: word(slot), value: iteration }],
    step: (iteration) => moved(int(STEP), { kind: "local", local: iteration }),
  };
  const top: Local = { name: "top" };
  machine.locals.set(top, machine.memory.get(PLACES + 4 * slots) ?? 0);
  const back = (iteration: Local): readonly Statement[] => moved(int(BACK), { kind: "local", local: iteration });
  machine.run(reverseSweep(states, int(iterations), { top, resumed: true }, back));
  return { advances, order };
}

describe("a loop of unknown length", () => {
  it("is reversed from the last iteration to the first, with as few iterations again as if its length had been known", () => {
    for (const slots of [1, 2, 3, 6, 10]) {
      for (let iterations = 0; iterations <= ((slots + 2) * (slots + 1)) / 2 + 1; iterations++) {
        const { advances, order } = reversed(slots, iterations);
        const text = `${iterations} iterations, ${slots} slots`;
        expect(order, text).toEqual(Array.from({ length: iterations }, (_, n) => iterations - 1 - n));
        // The loop itself was the first sweep, up to the state before the last iteration.
        if (iterations > 0) expect(advances + iterations - 1, text).toBe(leastAdvances(iterations, slots));
      }
    }
  });

  it("makes no iteration more often than the best schedule, far beyond its slots", () => {
    for (const [slots, iterations] of [
      [3, 500],
      [8, 3000],
      [32, 20_000],
    ] as const) {
      const { advances, order } = reversed(slots, iterations);
      expect(order.length).toBe(iterations);
      expect(
        (advances + iterations - 1) / leastAdvances(iterations, slots),
        `${iterations} iterations, ${slots} slots`,
      ).toBeLessThan(1.2);
    }
  });

  it.each([1, 2, 3, 4, 5, 8, 13])("keeps the states of the online schedule in %i slots, whenever it ends", (slots) => {
    const driven = new Driven(slots);
    while (driven.iterations < 260) {
      driven.iteration();
      const { iterations, rows, last } = driven.found();
      expect(iterations, `${driven.iterations} iterations`).toEqual(keptBySchedule(slots, driven.iterations));
      expect(rows).toEqual(iterations);
      expect(last).toBe(driven.iterations - 1);
    }
  });

  it("keeps every state as long as there is room", () => {
    const driven = new Driven(6);
    for (let n = 0; n < 7; n++) driven.iteration();
    expect(driven.found().iterations).toEqual([0, 1, 2, 3, 4, 5]);
  });
});
