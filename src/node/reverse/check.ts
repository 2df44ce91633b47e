/**
 * @file A machine that checks a schedule's actions: it rejects a missing state or tape, a slot that is occupied or does
 * not exist, a step reversed out of order. It shares no code with the schedulers; reports use its counts.
 */
import type { Action, Level, SnapshotSlot } from "./action.ts";

export interface Counts {
  /** Evaluations of steps, taped ones counted. */
  readonly forwardSteps: number;
  /** Those beyond one for each step. */
  readonly recomputedSteps: number;
  /** Evaluations that kept no tape. */
  readonly advances: number;
  /** The most states kept at a time, the current one not counted. */
  readonly peakSnapshots: number;
  /** The most tapes kept at a time, the working tape not counted. */
  readonly peakTapes: number;
  /** By level: the most units taken at a time, snapshots taken, restores. */
  readonly peakUnits: readonly number[];
  readonly writes: readonly number[];
  readonly reads: readonly number[];
  /** Advances weighted by the steps' costs (1 by default), plus the cost of writes and reads. */
  readonly cost: number;
  readonly actions: number;
}

export interface Checked extends Counts {
  /** The first invalid action; null if all steps were reversed and all slots freed. */
  readonly problem: string | null;
}

export interface CheckOptions {
  /** What each step costs. */
  readonly costs?: ArrayLike<number> | undefined;
  /** One counter per step: evaluations are added to it. */
  readonly evaluations?: Uint32Array | undefined;
}

/** Content of a slot: the state before a step, or its tape. */
interface Content {
  readonly what: "state" | "tape";
  readonly step: number;
}

interface Stored extends Content {
  /** First unit. */
  readonly slot: number;
  readonly units: number;
}

interface Machine {
  readonly steps: number;
  readonly levels: readonly Level[];
  readonly options: CheckOptions;
  /** By level, by unit. */
  readonly units: readonly Map<number, Stored>[];
  /** Sum of the costs of the steps before each. */
  readonly costBefore: Float64Array | null;
  current: number | null;
  workingTape: number | null;
  /** Steps not reversed yet. */
  left: number;
  states: number;
  tapes: number;
  advances: number;
  taped: number;
  peakSnapshots: number;
  peakTapes: number;
  peakUnits: number[];
  writes: number[];
  reads: number[];
  cost: number;
  actions: number;
}

function put(m: Machine, { what, step }: Content, place: SnapshotSlot): string | null {
  const { slot } = place;
  const level = m.levels[place.level];
  const units = m.units[place.level];
  if (!level || !units) return `there is no level ${place.level}`;
  const size = what === "state" ? level.stateUnits : level.tapeUnits;
  if (size === null) return `${level.name} keeps no ${what}`;
  if (!(Number.isInteger(slot) && slot >= 0 && slot + size <= level.units)) {
    return `${level.name} has ${level.units} units, a ${what} at ${slot} takes ${size}`;
  }
  for (let unit = slot; unit < slot + size; unit++) {
    const there = units.get(unit);
    if (there) return `unit ${unit} of ${level.name} has the ${there.what} of step ${there.step}`;
  }
  for (let unit = slot; unit < slot + size; unit++) units.set(unit, { what, step, slot, units: size });
  if (what === "state") m.peakSnapshots = Math.max(m.peakSnapshots, ++m.states);
  else m.peakTapes = Math.max(m.peakTapes, ++m.tapes);
  m.peakUnits[place.level] = Math.max(m.peakUnits[place.level] ?? 0, units.size);
  return null;
}

function absent(m: Machine, { what, step }: Content, { level, slot }: SnapshotSlot): string | null {
  const there = m.units[level]?.get(slot);
  if (there?.what === what && there.step === step && there.slot === slot) return null;
  return `the ${what} of step ${step} is not at ${slot} of level ${level}`;
}

function free(m: Machine, level: number, slot: number): string | null {
  const there = m.units[level]?.get(slot);
  if (there?.slot !== slot) return `nothing starts at ${slot} of level ${level}`;
  for (let unit = slot; unit < slot + there.units; unit++) m.units[level]?.delete(unit);
  if (there.what === "state") m.states--;
  else m.tapes--;
  return null;
}

function evaluate(m: Machine, from: number, to: number): string | null {
  if (m.current !== from) return `the current state is ${m.current ?? "none"}, not ${from}`;
  if (!(Number.isInteger(to) && to > from && to <= m.steps)) return `no steps ${from} to ${to} of ${m.steps}`;
  const { evaluations } = m.options;
  if (evaluations) for (let step = from; step < to; step++) evaluations[step] = (evaluations[step] ?? 0) + 1;
  m.current = to;
  return null;
}

function tape(m: Machine, step: number, level: number, slot: number): string | null {
  const wrong = evaluate(m, step, step + 1);
  if (wrong) return wrong;
  m.taped++;
  if (level >= 0) return put(m, { what: "tape", step }, { level, slot });
  m.workingTape = step;
  return null;
}

function reverse(m: Machine, step: number, level: number, slot: number): string | null {
  if (step !== m.left - 1) return `the next step to reverse is ${m.left - 1}`;
  if (level < 0 && m.workingTape !== step) return `the working tape is that of step ${m.workingTape ?? "none"}`;
  const wrong = level < 0 ? null : absent(m, { what: "tape", step }, { level, slot });
  if (wrong) return wrong;
  if (level < 0) m.workingTape = null;
  m.left--;
  return null;
}

/** Executes one action; returns what is wrong with it, or null. */
function act(m: Machine, action: Action): string | null {
  switch (action.kind) {
    case "advance": {
      const { from, to } = action;
      const wrong = evaluate(m, from, to);
      if (wrong) return wrong;
      m.advances += to - from;
      m.cost += m.costBefore ? (m.costBefore[to] as number) - (m.costBefore[from] as number) : to - from;
      return null;
    }
    case "tape":
      return tape(m, action.step, action.level, action.slot);
    case "reverse":
      return reverse(m, action.step, action.level, action.slot);
    case "free":
      return free(m, action.level, action.slot);
    case "snapshot": {
      const { step, level, slot } = action;
      if (m.current !== step) return `the current state is ${m.current ?? "none"}, not ${step}`;
      m.writes[level] = (m.writes[level] ?? 0) + 1;
      m.cost += m.levels[level]?.writeCost ?? 0;
      return put(m, { what: "state", step }, { level, slot });
    }
    case "restore": {
      const { step, level, slot } = action;
      m.reads[level] = (m.reads[level] ?? 0) + 1;
      m.cost += m.levels[level]?.readCost ?? 0;
      m.current = step;
      return absent(m, { what: "state", step }, { level, slot });
    }
  }
}

function sumsBefore(costs: ArrayLike<number>): Float64Array {
  const sums = new Float64Array(costs.length + 1);
  for (let i = 0; i < costs.length; i++) sums[i + 1] = (sums[i] as number) + (costs[i] as number);
  return sums;
}

function machineFor(steps: number, levels: readonly Level[], options: CheckOptions): Machine {
  const zeros = (): number[] => levels.map(() => 0);
  return {
    steps,
    levels,
    options,
    units: levels.map(() => new Map()),
    costBefore: options.costs ? sumsBefore(options.costs) : null,
    current: 0,
    workingTape: null,
    left: steps,
    states: 0,
    tapes: 0,
    advances: 0,
    taped: 0,
    peakSnapshots: 0,
    peakTapes: 0,
    peakUnits: zeros(),
    writes: zeros(),
    reads: zeros(),
    cost: 0,
    actions: 0,
  };
}

function unfinished(m: Machine): string | null {
  if (m.left > 0) return `${m.left} steps are not reversed`;
  const occupied = m.states + m.tapes;
  return occupied > 0 ? `${occupied} slots are not freed` : null;
}

/** Executes the actions for a loop of `steps` steps, to the end or to the first invalid one. */
export function checkActions(
  steps: number,
  levels: readonly Level[],
  actions: Iterable<Action>,
  options: CheckOptions = {},
): Checked {
  const m = machineFor(steps, levels, options);
  let problem: string | null = null;
  for (const action of actions) {
    problem = act(m, action);
    if (problem !== null) {
      problem = `action ${m.actions}, ${action.kind}: ${problem}`;
      break;
    }
    m.actions++;
  }
  const { advances, peakSnapshots, peakTapes, peakUnits, writes, reads, cost } = m;
  const forwardSteps = advances + m.taped;
  const recomputedSteps = forwardSteps - steps;
  const counts = { forwardSteps, recomputedSteps, advances, peakSnapshots, peakTapes, peakUnits, writes, reads, cost };
  return { ...counts, actions: m.actions, problem: problem ?? unfinished(m) };
}
