/**
 * @file Schedules against a search of all there is: every order of advancing, taping, keeping, restoring and giving up, on
 * loops of up to seven steps. The search knows capacities and costs and nothing about splits.
 */
import { describe, expect, it } from "vitest";
import { type Level, memoryLevel, type ReversalSchedule, stateLevel } from "./action.ts";
import { checkActions } from "./check.ts";
import { mixedLevel } from "./mixed.ts";
import { type ScheduleOptions, scheduleNamed } from "./schedule.ts";

interface Position {
  /** Steps not reversed. */
  readonly left: number;
  /** Step of the current state; -1 for none. */
  readonly current: number;
  /** By level: steps of states, and of tapes as -1 - step, sorted. */
  readonly kept: readonly (readonly number[])[];
}

type Move = readonly [cost: number, next: Position];

const without = (items: readonly number[], item: number): readonly number[] => items.filter((each) => each !== item);

/** What is of no use any more is gone. */
function tidy({ left, current, kept }: Position): Position {
  const useful = (item: number): boolean => (item >= 0 ? item : -1 - item) < left;
  return { left, current: current < left ? current : -1, kept: kept.map((items) => items.filter(useful)) };
}

function keepMoves({ left, current, kept }: Position, levels: readonly Level[], costs: readonly number[]): Move[] {
  const moves: Move[] = [];
  for (const [k, items] of kept.entries()) {
    const level = levels[k] as Level;
    const sizeOf = (item: number): number => (item >= 0 ? level.stateUnits : level.tapeUnits) ?? 0;
    const free = level.units - items.reduce((sum, item) => sum + sizeOf(item), 0);
    const withItems = (next: readonly number[]) => kept.map((each, j) => (j === k ? next : each));
    const put = (item: number) => withItems([...items, item].sort((a, b) => a - b));
    for (const item of items) {
      moves.push([0, { left, current, kept: withItems(without(items, item)) }]);
      if (item >= 0) moves.push([level.readCost, { left, current: item, kept }]);
      else if (-1 - item === left - 1)
        moves.push([0, { left: left - 1, current, kept: withItems(without(items, item)) }]);
    }
    if (current < 0) continue;
    if (level.stateUnits !== null && level.stateUnits <= free && !items.includes(current)) {
      moves.push([level.writeCost, { left, current, kept: put(current) }]);
    }
    if (level.tapeUnits !== null && level.tapeUnits <= free && !items.includes(-1 - current)) {
      moves.push([costs[current] as number, { left, current: current + 1, kept: put(-1 - current) }]);
    }
  }
  return moves;
}

/** Least cost of all evaluations, taped ones counted, and accesses; costs are whole. Dijkstra in buckets. */
function leastCost(costs: readonly number[], levels: readonly Level[]): number {
  const buckets: Position[][] = [[{ left: costs.length, current: 0, kept: levels.map(() => []) }]];
  const done = new Set<string>();
  for (let cost = 0; cost < buckets.length; cost++) {
    const bucket = buckets[cost] ?? [];
    for (let next = bucket.pop(); next; next = bucket.pop()) {
      const key = JSON.stringify(next);
      if (done.has(key)) continue;
      done.add(key);
      const { left, current, kept } = next;
      if (left === 0) return cost;
      const moves = keepMoves(next, levels, costs);
      if (current >= 0) moves.push([costs[current] as number, { left, current: current + 1, kept }]);
      if (current === left - 1) moves.push([costs[current] as number, { left: left - 1, current: -1, kept }]);
      for (const [more, position] of moves) {
        const at = cost + more;
        buckets[at] ??= [];
        (buckets[at] as Position[]).push(tidy(position));
      }
    }
    buckets[cost] = [];
  }
  return Number.POSITIVE_INFINITY;
}

/** Cost of a schedule, taped evaluations counted, after it was checked. */
function costOf(schedule: ReversalSchedule, costs: readonly number[]): number {
  const checked = checkActions(schedule.steps, schedule.levels, schedule.actions(), { costs });
  expect(checked.problem).toBeNull();
  return checked.cost + costs.reduce((sum, cost) => sum + cost, 0) + extraTapes(schedule, costs);
}

/** Tapes made beyond one a step: none of the schedules should make any. */
function extraTapes(schedule: ReversalSchedule, costs: readonly number[]): number {
  const seen = new Set<number>();
  let extra = 0;
  for (const action of schedule.actions()) {
    if (action.kind !== "tape") continue;
    if (seen.has(action.step)) extra += costs[action.step] as number;
    seen.add(action.step);
  }
  return extra;
}

const ones = (n: number): readonly number[] => new Array<number>(n).fill(1);

/** The schedule of a name costs what the search finds. */
function expectLeast(name: string, options: ScheduleOptions, levels: readonly Level[], costs = ones(options.steps)) {
  const label = `${name} ${JSON.stringify(options)}`;
  expect(costOf(scheduleNamed(name, options), costs), label).toBe(leastCost(costs, levels));
}

describe("no order of actions is cheaper than", () => {
  it("the binomial schedule", () => {
    for (let steps = 1; steps <= 7; steps++) {
      for (let snapshots = 1; snapshots <= 3; snapshots++) {
        expectLeast("binomial", { steps, snapshots }, [memoryLevel(snapshots)]);
      }
    }
  });

  it("the mixed schedule", () => {
    const sizes = { stateUnits: 1, tapeUnits: 1 };
    for (let steps = 1; steps <= 7; steps++) {
      for (let snapshots = 1; snapshots <= 3; snapshots++) {
        expectLeast("mixed", { steps, snapshots }, [mixedLevel(snapshots, sizes)]);
      }
    }
  });

  it.each([
    [1, 2],
    [2, 1],
    [2, 3],
    [3, 2],
  ])("the mixed schedule with states of %i units and tapes of %i", (stateUnits, tapeUnits) => {
    const sizes = { stateUnits, tapeUnits };
    for (let steps = 2; steps <= 6; steps++) {
      for (let units = Math.max(stateUnits, tapeUnits); units <= 6; units++) {
        expectLeast("mixed", { steps, snapshots: units, sizes }, [mixedLevel(units, sizes)]);
      }
    }
  });

  it.each([
    [1, 1, 1, 1],
    [1, 2, 2, 1],
    [2, 1, 1, 2],
    [0, 2, 1, 1],
    [1, 2, 0, 3],
  ])("the schedule for %i slots in memory and %i on disk, written at %i, read at %i", (mem, disk, w, r) => {
    const levels = [
      { name: "mem", units: mem, writeCost: 0, readCost: 0 },
      { name: "disk", units: disk, writeCost: w, readCost: r },
    ];
    for (let steps = 1; steps <= 7; steps++) {
      expectLeast("multi-level", { steps, snapshots: 0, levels }, levels.map(stateLevel));
    }
  });

  it("the schedule for three levels, none of them free", () => {
    const levels = [
      { name: "near", units: 1, writeCost: 1, readCost: 0 },
      { name: "far", units: 1, writeCost: 1, readCost: 1 },
      { name: "disk", units: 1, writeCost: 2, readCost: 2 },
    ];
    for (let steps = 1; steps <= 7; steps++) {
      expectLeast("multi-level", { steps, snapshots: 0, levels }, levels.map(stateLevel));
    }
  });

  it("the schedule for steps of unequal cost", () => {
    for (const costs of [
      [5, 1, 1, 1, 1, 1, 9],
      [1, 2, 3, 4, 5, 6, 7],
      [7, 1, 6, 1, 5, 1],
      [0, 0, 3, 0, 2, 0, 4],
    ]) {
      for (let snapshots = 1; snapshots <= 3; snapshots++) {
        expectLeast("variable", { steps: costs.length, snapshots, costs }, [memoryLevel(snapshots)], costs);
      }
    }
  });
});
