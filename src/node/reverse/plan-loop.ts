/**
 * @file Chooses a schedule for a number of bytes: how to reverse a loop with given sizes of state and tape within a
 * budget. The budget covers the states, tapes and working tape of the reversal, but not the current state and the
 * cotangents, which the loop needs anyway. States and tapes share one block of memory (`mixed-table.ts`) in units of a
 * fraction of the smaller one: a few fractions are tried to reduce rounding waste.
 */
import { grouped, TidemarkError } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";
import { binomialSplit, leastAdvances } from "../../loops/binomial.ts";
import { type Actions, type Level, type LevelSpec, memoryLevel, type ReversalSchedule, stateLevel } from "./action.ts";
import { byLevels, planLevels } from "./levels.ts";
import { mixed, mixedLevel } from "./mixed.ts";
import { mixedTable } from "./mixed-table.ts";
import { online } from "./online.ts";
import { periodic, periodicLevels } from "./periodic.ts";
import { bySplits, type Split, slotsOf } from "./segments.ts";
import { sumsBefore, variablePlan } from "./variable.ts";

export interface LoopSpec {
  /** null: unknown until the loop ends. */
  readonly steps: number | null;
  /** Of the state that a restart needs. */
  readonly stateBytes: number;
  /** Of the tape that the adjoint of one step reads. */
  readonly tapeBytes: number;
  readonly budgetBytes: number;
  /** The alignment of every slot; 1 by default. */
  readonly alignBytes?: number | undefined;
  /** Relative costs of the steps; equal by default. */
  readonly stepCosts?: ArrayLike<number> | undefined;
  /** Additional levels for states, with costs in evaluations of a step; not counted in the budget. */
  readonly slower?: readonly LevelSpec[] | undefined;
}

interface LoopMemory {
  readonly levels: readonly Level[];
  /** Of one unit, by level. */
  readonly unitBytes: readonly number[];
  /** Within the budget: units of memory and the working tape. */
  readonly bytes: number;
}

export interface KnownLoopPlan extends LoopMemory {
  readonly online: false;
  readonly schedule: ReversalSchedule;
  /** Evaluations of steps beyond one each. */
  readonly extraSteps: number;
  /** The same weighted by the steps' costs, plus the cost of slower levels. */
  readonly extraCost: number;
}

export interface OnlineLoopPlan extends LoopMemory {
  readonly online: true;
  readonly snapshots: number;
  /** For a loop of at least one step; see `online`. */
  actions(isLast: (step: number) => boolean): Actions;
}

/** How many states fit in addition to the working tape. */
export function snapshotsFor(budgetBytes: number, stateBytes: number, tapeBytes: number): number {
  const left = budgetBytes - tapeBytes;
  if (left < 0) return 0;
  return stateBytes === 0 ? Number.MAX_SAFE_INTEGER : Math.floor(left / stateBytes);
}

/** The largest useful number of slots: they reverse half a million steps with two evaluations each. */
const MOST_ONLINE = 1024;

/** Fractions of the smaller of state and tape that are tried as units. */
const FRACTIONS = [1, 2, 3, 4];
/** Units are not smaller than this part of the budget. */
const MOST_UNITS = 1024;

interface Sizes extends Pick<LoopSpec, "stateBytes" | "tapeBytes" | "budgetBytes"> {
  readonly align: number;
}

interface Candidate extends LoopMemory {
  readonly name: string;
  /** Evaluations beyond one per step; null if it must be measured by executing the actions. */
  readonly extraSteps: number | null;
  actions(): Actions;
}

function storeAll(steps: number, { tapeBytes }: Sizes): Candidate {
  const every = Math.max(1, steps);
  const levels = periodicLevels(steps, every);
  const memory = { levels, unitBytes: [0, tapeBytes], bytes: steps * tapeBytes };
  return { name: "store-all", ...memory, extraSteps: 0, actions: () => periodic(steps, every) };
}

/** Candidate sizes of units. */
function unitSizes({ stateBytes, tapeBytes, budgetBytes, align }: Sizes): readonly number[] {
  const smallest = (budgetBytes - tapeBytes) / MOST_UNITS;
  const [less, more] = [Math.min(stateBytes, tapeBytes), Math.max(stateBytes, tapeBytes)];
  // nothing is wasted if the sizes divide
  const fractions = more % less === 0 ? [1] : FRACTIONS;
  const sizes = fractions.map((n) => Math.max(less / n, smallest));
  const aligned = sizes.map((bytes) => Math.ceil(bytes / align) * align);
  return [...new Set(aligned)].filter((bytes) => bytes > 0);
}

function mixedIn(steps: number, { stateBytes, tapeBytes, budgetBytes }: Sizes, unit: number): Candidate | null {
  const inUnits = {
    stateUnits: Math.max(1, Math.ceil(stateBytes / unit)),
    tapeUnits: Math.max(1, Math.ceil(tapeBytes / unit)),
  };
  let units = Math.min(Math.floor((budgetBytes - tapeBytes) / unit), (steps - 1) * inUnits.tapeUnits);
  const table = mixedTable(steps, units, inUnits);
  const evaluations = table.evaluations(steps, units);
  if (!Number.isFinite(evaluations)) return null;
  while (units > 0 && table.evaluations(steps, units - 1) === evaluations) units--;
  return {
    name: "mixed",
    levels: [mixedLevel(units, inUnits)],
    unitBytes: [unit],
    bytes: units * unit + tapeBytes,
    extraSteps: evaluations - steps,
    actions: () => mixed(steps, units, inUnits, table),
  };
}

/** The longest pieces that fit. */
function periodicIn(steps: number, { stateBytes, tapeBytes, budgetBytes }: Sizes): Candidate | null {
  const bytesOf = (every: number): number => (Math.ceil(steps / every) - 1) * stateBytes + every * tapeBytes;
  let every = tapeBytes === 0 ? steps : Math.min(steps, Math.floor(budgetBytes / tapeBytes));
  while (every > 0 && bytesOf(every) > budgetBytes) every--;
  if (every === 0) return null;
  const memory = {
    levels: periodicLevels(steps, every),
    unitBytes: [stateBytes, tapeBytes],
    bytes: bytesOf(every),
  };
  const extraSteps = (Math.ceil(steps / every) - 1) * every;
  return { name: "periodic", ...memory, extraSteps, actions: () => periodic(steps, every) };
}

/** States alone: binomial, or by the steps' costs, or with slower levels. */
function statesIn(steps: number, sizes: Sizes, spec: LoopSpec): readonly Candidate[] {
  const { stateBytes, tapeBytes, budgetBytes } = sizes;
  const snapshots = Math.min(snapshotsFor(budgetBytes, stateBytes, tapeBytes), steps - 1);
  const memory = memoryLevel(snapshots);
  const places = slotsOf(0, snapshots);
  const bytes = snapshots * stateBytes + tapeBytes;
  const candidates: Candidate[] = [];
  const add = (name: string, levels: readonly Level[], extraSteps: number | null, actions: () => Actions): void => {
    candidates.push({ name, levels, unitBytes: levels.map(() => stateBytes), bytes, extraSteps, actions });
  };
  const even: Split = (from, end, s) => binomialSplit(end - from, s);
  if (snapshots > 0) add("binomial", [memory], leastAdvances(steps, snapshots), () => bySplits(steps, places, even));
  if (snapshots > 0 && spec.stepCosts) {
    const { split } = variablePlan(spec.stepCosts, snapshots);
    add("variable", [memory], null, () => bySplits(steps, places, split));
  }
  if (spec.slower) {
    const specs = [memory, ...spec.slower];
    const plan = planLevels(steps, specs);
    if (Number.isFinite(plan.cost)) add("multi-level", specs.map(stateLevel), null, () => byLevels(steps, specs, plan));
  }
  return candidates;
}

/** Counts of a candidate, measured by executing its actions. */
function measure({ levels, actions }: Candidate, costs: Float64Array | null): { steps: number; cost: number } {
  let [steps, cost] = [0, 0];
  for (const action of actions()) {
    if (action.kind === "advance") {
      steps += action.to - action.from;
      cost += costs ? at(costs, action.to) - at(costs, action.from) : action.to - action.from;
    } else if (action.kind === "snapshot") cost += at(levels, action.level).writeCost;
    else if (action.kind === "restore") cost += at(levels, action.level).readCost;
  }
  return { steps, cost };
}

function planKnown(steps: number, sizes: Sizes, spec: LoopSpec): KnownLoopPlan {
  const stored = storeAll(steps, sizes);
  const candidates = [stored].filter(({ bytes }) => bytes <= sizes.budgetBytes);
  // no recomputation is optimal, and nothing works without the working tape
  if (candidates.length === 0 && sizes.tapeBytes <= sizes.budgetBytes) {
    const mixtures = unitSizes(sizes).map((unit) => mixedIn(steps, sizes, unit));
    candidates.push(...[...mixtures, periodicIn(steps, sizes)].filter((each) => each !== null));
    candidates.push(...statesIn(steps, sizes, spec));
  }
  const costs = spec.stepCosts ? sumsBefore(spec.stepCosts) : null;
  let best: KnownLoopPlan | null = null;
  for (const candidate of candidates) {
    const { name, levels, unitBytes, bytes, extraSteps, actions } = candidate;
    const exact = extraSteps === null || costs || spec.slower;
    const { steps: extra, cost } = exact ? measure(candidate, costs) : { steps: extraSteps, cost: extraSteps };
    if (best && (cost > best.extraCost || (cost === best.extraCost && bytes >= best.bytes))) continue;
    const schedule: ReversalSchedule = { name, steps, levels, actions };
    best = { online: false, schedule, levels, unitBytes, bytes, extraSteps: extra, extraCost: cost };
  }
  if (best) return best;
  throw tooSmall(sizes, steps, Math.min(stored.bytes, sizes.stateBytes + sizes.tapeBytes), stored.bytes);
}

function tooSmall(sizes: Sizes, steps: number | null, least: number, all: number | null): TidemarkError {
  const loop = steps === null ? "a loop of unknown length" : `${grouped(steps)} steps`;
  const summary = `${loop} cannot be reversed in ${grouped(sizes.budgetBytes)} bytes`;
  const state = `a state is ${grouped(sizes.stateBytes)} bytes, a step's tape ${grouped(sizes.tapeBytes)}`;
  const repeats = all === null ? "" : `, with ${grouped(all)} nothing is computed twice`;
  return new TidemarkError("PlanInfeasible", `${summary}: ${state}`, {
    help: `raise the budget to ${grouped(least)} bytes or more${repeats}`,
  });
}

function planOnline(sizes: Sizes): OnlineLoopPlan {
  const { stateBytes, tapeBytes, budgetBytes } = sizes;
  const snapshots = Math.min(snapshotsFor(budgetBytes, stateBytes, tapeBytes), MOST_ONLINE);
  if (snapshots < 1) throw tooSmall(sizes, null, stateBytes + tapeBytes, null);
  return {
    online: true,
    snapshots,
    levels: [memoryLevel(snapshots)],
    unitBytes: [stateBytes],
    bytes: snapshots * stateBytes + tapeBytes,
    actions: (isLast) => online(snapshots, isLast),
  };
}

function requireSpec(spec: LoopSpec): void {
  const { steps, stateBytes, tapeBytes, budgetBytes, alignBytes = 1, stepCosts } = spec;
  const wrong = (what: string, help: string): never => {
    throw new TidemarkError("InvalidArgument", `planLoop: ${what}`, { help });
  };
  const integers = { steps: steps ?? 0, stateBytes, tapeBytes, alignBytes };
  for (const [name, n] of Object.entries(integers)) {
    if (!(Number.isSafeInteger(n) && n >= 0)) wrong(`${name} is ${n}`, "give a whole number, 0 or more");
  }
  if (alignBytes < 1) wrong(`alignBytes is ${alignBytes}`, "give 1 or more");
  if (!(budgetBytes >= 0)) wrong(`budgetBytes is ${budgetBytes}`, "give a number of bytes");
  if (stepCosts && stepCosts.length !== steps) {
    wrong(`${stepCosts.length} costs for ${steps ?? "an unknown number of"} steps`, "give one cost for each step");
  }
}

/** The cheapest known way to reverse a loop within a number of bytes. */
export function planLoop(spec: LoopSpec & { readonly steps: number }): KnownLoopPlan;
export function planLoop(spec: LoopSpec & { readonly steps: null }): OnlineLoopPlan;
export function planLoop(spec: LoopSpec): KnownLoopPlan | OnlineLoopPlan;
export function planLoop(spec: LoopSpec): KnownLoopPlan | OnlineLoopPlan {
  requireSpec(spec);
  const align = spec.alignBytes ?? 1;
  const aligned = (bytes: number): number => Math.ceil(bytes / align) * align;
  const sizes: Sizes = {
    stateBytes: aligned(spec.stateBytes),
    tapeBytes: aligned(spec.tapeBytes),
    budgetBytes: spec.budgetBytes,
    align,
  };
  return spec.steps === null ? planOnline(sizes) : planKnown(spec.steps, sizes, spec);
}
