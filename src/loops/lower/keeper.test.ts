/**
 * @file States kept by a loop of unknown length, as the module decides: the interpreter of its statements must keep what
 * the schedule (node/reverse/online.ts) keeps, for every number of turns.
 */
import { describe, expect, it } from "vitest";
import { ScriptMachine } from "../../../tests/helpers/script-machine.ts";
import { type Int, int, type Local, loadAt, plus, type Statement, times } from "../../codegen/script.ts";
import { online } from "../../node/reverse/online.ts";
import { leastAdvances } from "../binomial.ts";
import { type Checkpoints, walkBack } from "./checkpoints.ts";
import { OnlineKeeper } from "./keeper.ts";

/** Turns of the states that are kept when a loop ends after each of `most` turns, as the schedule has it. */
function keptBySchedule(slots: number, turns: number): readonly number[] {
  const held = new Map<number, number>();
  for (const action of online(slots, (step) => step === turns - 1)) {
    if (action.kind === "tape") break;
    if (action.kind === "snapshot") held.set(action.slot, action.step);
    if (action.kind === "free") held.delete(action.slot);
  }
  return [...held.values()].sort((a, b) => a - b);
}

const PLACES = 1 << 20;

/** A keeper driven turn by turn; the rows hold the turns of the states that are copied there. */
class Driven {
  readonly #machine = new ScriptMachine();
  readonly #keeper: OnlineKeeper;
  readonly #slots: number;
  readonly #rows = new Map<number, number>();
  turns = 0;

  constructor(slots: number) {
    this.#slots = slots;
    this.#keeper = new OnlineKeeper(slots, int(0));
    this.#machine.run(this.#keeper.begin());
  }

  turn(): void {
    if (this.turns > 0) this.#machine.run(this.#keeper.offer(int(this.turns - 1)));
    this.#rows.set(this.#machine.locals.get(this.#keeper.spare) ?? -1, this.turns);
    this.turns += 1;
  }

  /** What the reverse would find: turns in order, each in the row that has it, and the last state. */
  found(): { readonly turns: readonly number[]; readonly rows: readonly number[]; readonly last: number } {
    this.#machine.run(this.#keeper.finish(int(PLACES)));
    const word = (n: number): number => this.#machine.memory.get(PLACES + 4 * n) ?? -1;
    const held = word(this.#slots);
    const rows = Array.from({ length: this.#slots + 1 }, (_, n) => word(this.#slots + 1 + n));
    expect(new Set(rows).size, "every row has one place").toBe(this.#slots + 1);
    return {
      turns: Array.from({ length: held }, (_, n) => word(n)),
      rows: rows.slice(0, held).map((row) => this.#rows.get(row) ?? -1),
      last: this.#rows.get(rows[this.#slots] as number) ?? -1,
    };
  }
}

/** Turns forward that the walk back makes from what the loop kept, and the turns that it reverses, in order. */
function reversed(slots: number, turns: number): { readonly advances: number; readonly order: readonly number[] } {
  const rows = new Map<number, number>();
  let [state, advances] = [turns - 1, 0];
  const order: number[] = [];
  const [WORKING, STEP, BACK] = [-1, -2, -3];
  const machine = new ScriptMachine({
    onCopy(to, from) {
      if (to === STEP) {
        expect(state, "a turn starts from its own state").toBe(from);
        [state, advances] = [state + 1, advances + 1];
      } else if (to === BACK) {
        expect(state, "so does a turn backward").toBe(from);
        order.push(from);
      } else if (to === WORKING) state = rows.get(from) ?? -1;
      else rows.set(to, state);
    },
  });
  const keeper = new OnlineKeeper(slots, int(0));
  machine.run(keeper.begin());
  for (let turn = 0; turn < turns; turn++) {
    if (turn > 0) machine.run(keeper.offer(int(turn - 1)));
    rows.set(machine.locals.get(keeper.spare) ?? -1, turn);
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
    setIteration: (slot, turn) => [{ kind: "store", at: word(slot), value: turn }],
    step: (turn) => moved(int(STEP), { kind: "local", local: turn }),
  };
  const top: Local = { name: "top" };
  machine.locals.set(top, machine.memory.get(PLACES + 4 * slots) ?? 0);
  const back = (turn: Local): readonly Statement[] => moved(int(BACK), { kind: "local", local: turn });
  machine.run(walkBack(states, int(turns), { top, resumed: true }, back));
  return { advances, order };
}

describe("a loop of unknown length", () => {
  it("is reversed from the last turn to the first, with as few turns again as if its length had been known", () => {
    for (const slots of [1, 2, 3, 6, 10]) {
      for (let turns = 0; turns <= ((slots + 2) * (slots + 1)) / 2 + 1; turns++) {
        const { advances, order } = reversed(slots, turns);
        const text = `${turns} turns, ${slots} slots`;
        expect(order, text).toEqual(Array.from({ length: turns }, (_, n) => turns - 1 - n));
        // The loop itself was the first sweep, up to the state before the last turn.
        if (turns > 0) expect(advances + turns - 1, text).toBe(leastAdvances(turns, slots));
      }
    }
  });

  it("makes no turn more often than the best schedule, far beyond its slots", () => {
    for (const [slots, turns] of [
      [3, 500],
      [8, 3000],
      [32, 20_000],
    ] as const) {
      const { advances, order } = reversed(slots, turns);
      expect(order.length).toBe(turns);
      expect((advances + turns - 1) / leastAdvances(turns, slots), `${turns} turns, ${slots} slots`).toBeLessThan(1.2);
    }
  });

  it.each([1, 2, 3, 4, 5, 8, 13])("keeps the states of the online schedule in %i slots, whenever it ends", (slots) => {
    const driven = new Driven(slots);
    while (driven.turns < 260) {
      driven.turn();
      const { turns, rows, last } = driven.found();
      expect(turns, `${driven.turns} turns`).toEqual(keptBySchedule(slots, driven.turns));
      expect(rows).toEqual(turns);
      expect(last).toBe(driven.turns - 1);
    }
  });

  it("keeps every state as long as there is room", () => {
    const driven = new Driven(6);
    for (let n = 0; n < 7; n++) driven.turn();
    expect(driven.found().turns).toEqual([0, 1, 2, 3, 4, 5]);
  });
});
