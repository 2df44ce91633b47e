/**
 * @file Offloads values while they are not used: copies them to another memory space after a use, and back before the
 * next one. The caller chooses the values; this file chooses when each copy starts and is waited for.
 *
 *     steps      written   a        ·    ·    ·    ·    ·    b        a, b: the uses with the longest time between them
 *     device     h─────────────────╮                ╭── h' ──         waited for: h is free
 *     queue 1      ╰── h → host ───┤                │
 *     host         h_host ─────────┴────────────────┤
 *     queue 2                          ╰─ host → h' ┤                 started `flightSteps` before b, waited for at b
 *
 * A copy out starts as soon as the value is written, since other steps may read it meanwhile, and is waited for after
 * the last use before the gap, at least `flightSteps` after its start. If the gap is short, the two copies share it.
 * Where times are known, schedule-moves.ts chooses values and positions instead. The steps keep their order: move values of
 * the program in the order of its plan. O(steps + moved values · log).
 */
import { TidemarkError } from "../base/errors.ts";
import { at, invariant } from "../base/invariant.ts";
import { newValue, type Phase, type Value } from "../ir/graph.ts";
import { type CopyOptions, startStep, waitStep } from "./copy-step.ts";
import { type Storage, type Storages, storagesOf } from "./liveness.ts";
import type { Step } from "./problem.ts";
import { needsSlot, type PlanStep, type Program, returnStepOf } from "./program.ts";
import type { MemorySpace } from "./space.ts";

/** Options of {@link moveValues}. */
export interface MoveOptions {
  /** The device's space, and the space that receives values. */
  readonly device: MemorySpace;
  readonly host: MemorySpace;
  /** For how many steps a copy may be in flight; 2 by default. */
  readonly flightSteps?: number;
}

/** Queues of copies out of the device and into it: links work both ways at once. */
const OUT = 1;
const IN = 2;

/** When a value is copied out and back, as positions in the program: `k` is before step k. */
export interface TripTimes {
  readonly outStart: Step;
  readonly outWait: Step;
  readonly backStart: Step;
  /** The step that uses it again. */
  readonly backWait: Step;
}

/** A value and its two copies. */
interface RoundTrip extends TripTimes {
  readonly storage: Storage;
  readonly out: CopyOptions;
  readonly back: CopyOptions;
}

/**
 * The program with values moved to the host and back. Renamings of a value move with it.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { memorySpace, movableValues, moveValues } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * const options = { device: memorySpace(64), host: memorySpace(64, { name: "host" }) };
 * const moved = moveValues(plan.program, movableValues(plan.program).slice(0, 1), options);
 * console.log(moved.spaces.length); // → 2
 */
export function moveValues(program: Program, values: readonly Value[], options: MoveOptions): Program {
  invariant(!program.spaceOf, () => `${program.name}: its values are in several spaces already`);
  const storages = storagesOf(program);
  const moved = [...new Set(values.map((value) => storages.of(value)))];
  const uses = usesOf(program, storages, new Set(moved));
  const trips = moved.map((storage) => tripOf(program, storage, uses.get(storage) ?? [], options));
  return withTrips(program, trips, options);
}

/** A value that is moved, and when. */
export interface Move extends TripTimes {
  readonly value: Value;
}

/** The program with values moved at chosen positions. At one position, copies out start in the order of the list. */
export function moveAt(
  program: Program,
  moves: readonly Move[],
  spaces: Pick<MoveOptions, "device" | "host">,
): Program {
  const storages = storagesOf(program);
  const trips = moves.map((move) => ({ ...move, ...copiesOf(storages.of(move.value), spaces.host) }));
  return withTrips(program, trips, spaces);
}

function withTrips(
  program: Program,
  trips: readonly RoundTrip[],
  options: Pick<MoveOptions, "device" | "host">,
): Program {
  const { steps, results } = withCopies(program, trips);
  const spaceOf = new Map(trips.map(({ out }) => [out.to, 1]));
  return { ...program, steps, results, spaces: [options.device, options.host], spaceOf };
}

/** A value that is unused for at least one step, so that its storage can be freed. */
export interface IdleValue {
  readonly value: Value;
  readonly bytes: number;
  /** The length of its longest gap between uses, in steps. */
  readonly idleSteps: number;
  /** The step that writes it, or -1, and those before and after the gap. */
  readonly written: Step;
  readonly last: Step;
  readonly next: Step;
}

/** The values that can be moved, in program order. */
export function idleValues(program: Program): readonly IdleValue[] {
  const storages = storagesOf(program);
  const uses = usesOf(program, storages, new Set(storages.all));
  return storages.all.flatMap((storage) => {
    const own = uses.get(storage) ?? [];
    const [last, next] = longestGap(own);
    if (next - last < 2 || stays(program, storage)) return [];
    const { bytes } = storage;
    return [{ value: at(storage.values, 0), bytes, idleSteps: next - last - 1, written: at(own, 0), last, next }];
  });
}

/**
 * Values that could wait in another memory: activations that are read again later.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { movableValues } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(movableValues(plan.program).length); // → 0
 */
export const movableValues = (program: Program): readonly Value[] => idleValues(program).map(({ value }) => value);

/** Steps that use a storage, in order: the one that writes it, or -1 for parameters, first. */
function usesOf(program: Program, storages: Storages, moved: ReadonlySet<Storage>): Map<Storage, Step[]> {
  const uses = new Map<Storage, Step[]>();
  for (const storage of moved) uses.set(storage, storage.isParam ? [-1] : []);
  const use = (value: Value, step: Step): void => {
    const list = uses.get(storages.of(value));
    if (list && list.at(-1) !== step) list.push(step);
  };
  program.steps.forEach((step, i) => {
    for (const value of step.reads) use(value, i);
    for (const value of step.writes) use(value, i);
  });
  for (const value of program.results) use(value, returnStepOf(program));
  return uses;
}

/** Two consecutive uses with the most steps between them. */
function longestGap(uses: readonly Step[]): readonly [last: Step, next: Step] {
  let [last, next] = [at(uses, 0), at(uses, 0)];
  uses.slice(1).forEach((use, i) => {
    if (use - at(uses, i) > next - last) [last, next] = [at(uses, i), use];
  });
  return [last, next];
}

const stays = (program: Program, { values }: Storage): boolean => values.some((v) => needsSlot(program, v));

function tripOf(program: Program, storage: Storage, uses: readonly Step[], options: MoveOptions): RoundTrip {
  const { flightSteps = 2 } = options;
  const value = at(storage.values, 0);
  const [last, next] = longestGap(uses);
  if (stays(program, storage) || next - last < 2) {
    const name = value.name ?? `value#${value.id}`;
    const why = stays(program, storage) ? "its storage is needed for the whole run" : "it is never unused for a step";
    const help = "move values that wait for a later use: movableValues has all of them";
    throw new TidemarkError("InvalidArgument", `move: ${name} would free nothing: ${why}`, { help });
  }
  const outStart = at(uses, 0) + 1;
  const latest = next - flightSteps;
  const earliest = Math.max(last + 1, outStart + flightSteps);
  const shared = Math.min(next, Math.max(last + 1, Math.floor((earliest + latest) / 2)));
  const [outWait, backStart] = earliest <= latest ? [earliest, latest] : [shared, shared];
  return { ...copiesOf(storage, options.host), outStart, outWait, backStart, backWait: next };
}

/** The copies of a value to the host and back. */
function copiesOf(storage: Storage, host: MemorySpace): Pick<RoundTrip, "storage" | "out" | "back"> {
  const value = at(storage.values, 0);
  const away = newValue(value.type, value.name && `${value.name}_${host.name}`);
  const again = newValue(value.type, value.name);
  return { storage, out: { from: value, to: away, queue: OUT }, back: { from: away, to: again, queue: IN } };
}

/** The steps with the copies inserted; uses after the copy back read the copy. */
function withCopies(program: Program, trips: readonly RoundTrip[]): Pick<Program, "steps" | "results"> {
  const lastUse = lastUses(program);
  const steps: PlanStep[] = [];
  const current = new Map<Value, Value>();
  const now = (value: Value): Value => current.get(value) ?? value;
  const arrivals = byPosition(trips);
  const insertAt = (k: Step): void => {
    const phase = (program.steps[k] ?? program.steps.at(-1))?.node.phase ?? "forward";
    for (const { trip, stage } of arrivals.get(k) ?? []) {
      const { out, back, storage } = trip;
      if (stage === "outStart") steps.push(startStep(out, phase));
      else if (stage === "outWait") steps.push(waitStep(out, phase));
      else if (stage === "backStart") steps.push(startStep(back, phase));
      else {
        steps.push(waitStep(back, phase));
        current.set(out.from, back.to);
        const later = storage.values.slice(1).filter((v) => (lastUse.get(v) ?? -1) >= k);
        steps.push(...renamings(program, later, { k, to: back.to, phase }, current));
      }
    }
  };
  program.steps.forEach((step, k) => {
    insertAt(k);
    steps.push(current.size === 0 ? step : substituted(step, now));
  });
  insertAt(returnStepOf(program));
  return { steps, results: program.results.map(now) };
}

const STAGES = ["outStart", "outWait", "backStart", "backWait"] as const;

interface Arrival {
  readonly trip: RoundTrip;
  readonly stage: (typeof STAGES)[number];
}

/**
 * The steps to insert before each step, by stage, so that storage is freed before a value comes back; what is used first comes
 * back first.
 */
function byPosition(trips: readonly RoundTrip[]): ReadonlyMap<Step, readonly Arrival[]> {
  const arrivals = new Map<Step, Arrival[]>();
  const byUse = [...trips].sort((a, b) => a.backWait - b.backWait);
  for (const stage of STAGES) {
    for (const trip of stage.startsWith("out") ? trips : byUse) {
      const list = arrivals.get(trip[stage]);
      if (list) list.push({ trip, stage });
      else arrivals.set(trip[stage], [{ trip, stage }]);
    }
  }
  return arrivals;
}

/** The last step that reads each value; the return step for results. */
function lastUses(program: Program): ReadonlyMap<Value, Step> {
  const last = new Map<Value, Step>();
  program.steps.forEach(({ reads }, i) => {
    for (const value of reads) last.set(value, i);
  });
  for (const value of program.results) last.set(value, returnStepOf(program));
  return last;
}

interface Return {
  readonly k: Step;
  readonly to: Value;
  readonly phase: Phase;
}

/** Renamings of a value that came back, for renamings of the original. */
function renamings(
  program: Program,
  names: readonly Value[],
  { k, to, phase }: Return,
  current: Map<Value, Value>,
): readonly PlanStep[] {
  const given = program.steps.slice(0, k).filter(({ alias }) => alias && names.includes(alias[1]));
  return given.map((step) => {
    const [old] = step.writes;
    invariant(old, () => "a renaming writes a value");
    const name = newValue(old.type, old.name);
    current.set(old, name);
    const node = { ...step.node, inputs: [to], outputs: [name], phase };
    return { ...step, node, reads: [to], writes: [name], alias: [to, name] };
  });
}

function substituted(step: PlanStep, now: (value: Value) => Value): PlanStep {
  if (!step.reads.some((value) => now(value) !== value)) return step;
  return {
    ...step,
    node: { ...step.node, inputs: step.node.inputs.map(now) },
    reads: step.reads.map(now),
    inPlace: step.inPlace.map(([read, written]) => [now(read), written]),
    alias: step.alias && [now(step.alias[0]), step.alias[1]],
  };
}
