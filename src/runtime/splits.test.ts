/** @file The schedule of recomputed states: as many turns as the best there is, found by trying all. */
import { describe, expect, it } from "vitest";
import { at } from "../base/invariant.ts";
import { type Int, int, type Local, type Statement } from "../codegen/wasm/script.ts";
import { binomialSplit } from "./splits.ts";

/** Numbers of 32 bits, without memory and kernels. */
class Machine {
  readonly locals = new Map<Local, number>();

  value(e: Int): number {
    if (e.kind === "const") return e.value;
    if (e.kind === "local") return this.locals.get(e.local) ?? 0;
    if (e.kind === "load") throw new Error("the schedule loads nothing");
    const [a, b] = [this.value(e.a), this.value(e.b)];
    const results = {
      add: (a + b) | 0,
      sub: (a - b) | 0,
      mul: Math.imul(a, b),
      div: Math.floor((a >>> 0) / (b >>> 0)) | 0,
      and: a & b,
      eq: Number(a === b),
      lt: Number(a < b),
      le: Number(a <= b),
    };
    return results[e.op];
  }

  run(statements: readonly Statement[]): void {
    for (const s of statements) {
      if (s.kind === "set") this.locals.set(s.local, this.value(s.value));
      else if (s.kind === "if") this.run(this.value(s.test) !== 0 ? s.then : s.else);
      else if (s.kind === "while") while (this.value(s.test) !== 0) this.run(s.body);
      else throw new Error(`the schedule has no ${s.kind}`);
    }
  }
}

function split(length: number, slots: number): number {
  const m: Local = { name: "m" };
  const machine = new Machine();
  machine.run(binomialSplit(m, int(length), int(slots)));
  return machine.locals.get(m) ?? 0;
}

/** Turns forward to reverse `length` turns with `slots` states, the first one included; `ahead` says where to hold one. */
function forwardTurns(length: number, slots: number, ahead: (length: number, slots: number) => number): number {
  const known = new Map<string, number>();
  const turns = (l: number, s: number): number => {
    if (l <= 1) return 0;
    if (s === 1) return (l * (l - 1)) / 2;
    const key = `${l},${s}`;
    const m = known.has(key) ? 0 : ahead(l, s);
    const made = known.get(key) ?? m + turns(l - m, s - 1) + turns(m, s);
    known.set(key, made);
    return made;
  };
  return turns(length, slots);
}

describe("the split of a loop", () => {
  it("makes as few turns as the best one, for up to 80 turns and 8 slots", () => {
    const best = Array.from({ length: 9 }, () => [0, 0]);
    for (let s = 1; s <= 8; s++) {
      for (let l = 2; l <= 80; l++) {
        let least = (l * (l - 1)) / 2;
        for (let m = 1; s > 1 && m < l; m++)
          least = Math.min(least, m + at(at(best, s - 1), l - m) + at(at(best, s), m));
        at(best, s)[l] = least;
        expect(forwardTurns(l, s, split), `${l} turns, ${s} slots`).toBe(least);
      }
    }
  });

  it("stays between the ends for any number of turns, also where binomials leave 32 bits", () => {
    for (const slots of [2, 3, 5, 32, 1000]) {
      for (const length of [2, 3, 1000, 70_000, 2 ** 24, 2 ** 30]) {
        if (length > 2 ** 24 && slots < 5) continue;
        const m = split(length, slots);
        expect(m).toBeGreaterThanOrEqual(1);
        expect(m).toBeLessThan(length);
      }
    }
  });

  it("takes 5.5 sweeps for a million turns with 32 slots", () => {
    expect(forwardTurns(1_000_000, 32, split) / 1_000_000).toBeCloseTo(5.5, 1);
  });
});
