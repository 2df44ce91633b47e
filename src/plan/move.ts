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
import type { Home } from "./homes.ts";
import { type Storage, storagesOf } from "./liveness.ts";
import type { Step } from "./problem.ts";
import { needsSlot, type PlanStep, type Program, replacementOf, returnStepOf } from "./program.ts";
import type { MemorySpace } from "./space.ts";
import { usesOf } from "./uses.ts";

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

/** A copy of a value out of the device or into it, and before which steps it starts and is waited for. */
interface Transit {
  readonly storage: Storage;
  readonly copy: CopyOptions;
  readonly start: Step;
  readonly wait: Step;
}

/**
 * The program with values moved to the host and back. Renamings of a value move with it.
 *
 * @throws InvalidArgument for a value whose storage is needed for the whole run, or that is never unused for a
 * step
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
  const transits = moved.flatMap((storage) =>
    transitsOf(storage, tripOf(program, storage, uses.get(storage) ?? [], options), options.host),
  );
  return withTransits(program, transits, options);
}

/** A value that is moved, and when. */
export interface Move extends TripTimes {
  readonly value: Value;
}

/** What `moveAt` is to do. */
export interface MoveSpaces extends Pick<MoveOptions, "device" | "host"> {
  /** Persistent parameters that live on the host; default: none. */
  readonly homes?: readonly Home[];
}

/** The program with values moved at chosen positions. At one position, copies out start in the order of the list. */
export function moveAt(program: Program, moves: readonly Move[], { homes = [], ...spaces }: MoveSpaces): Program {
  const storages = storagesOf(program);
  const trips = moves.flatMap((move) => transitsOf(storages.of(move.value), move, spaces.host));
  const atHome = homes.map((home) => homeOf(program, home, storages.of(home.param)));
  const moved = withTransits(program, [...trips, ...atHome.flatMap(({ transits }) => transits)], spaces);
  return homes.length === 0 ? moved : withHomes(moved, atHome);
}

function withTransits(
  program: Program,
  transits: readonly Transit[],
  { device, host }: Pick<MoveOptions, "device" | "host">,
): Program {
  const { steps, results } = withCopies(program, transits);
  const spaceOf = new Map(transits.flatMap(({ copy }) => (copy.queue === OUT ? [[copy.to, 1]] : [])));
  return { ...program, steps, results, spaces: [device, host], spaceOf };
}

/** A parameter on the host, and what takes its place among the results. */
interface HostParam {
  readonly param: Value;
  readonly there: Value;
  readonly replacement: Value | null;
  readonly transits: readonly Transit[];
}

function homeOf(program: Program, { param, visits, store }: Home, storage: Storage): HostParam {
  const there = newValue(param.type, param.name);
  const back = visits.map(({ start, wait }): Transit => {
    const copy = { from: there, to: newValue(param.type, param.name), queue: IN };
    return { storage, copy, start, wait };
  });
  const value = replacementOf(program, param);
  if (!value || value === param) return { param, there, replacement: value ? there : null, transits: back };
  invariant(store, () => `${param.name ?? "a parameter"} is replaced, and its replacement is not stored`);
  const replacement = newValue(value.type, value.name);
  const out: Transit = { storage, copy: { from: value, to: replacement, queue: OUT }, ...store };
  return { param, there, replacement, transits: [...back, out] };
}

/** The program whose parameters are on the host, and whose results are stored there. */
function withHomes(program: Program, homes: readonly HostParam[]): Program {
  const there = new Map(homes.map((home) => [home.param, home.there]));
  const now = (param: Value): Value => there.get(param) ?? param;
  const replaced = new Map(
    homes.map(({ param, replacement }) => [program.donated.get(param) ?? -1, replacement] as const),
  );
  const spaceOf = new Map([...(program.spaceOf ?? []), ...homes.map((home) => [home.there, 1] as const)]);
  return {
    ...program,
    params: program.params.map(now),
    donated: new Map([...program.donated].map(([param, index]) => [now(param), index])),
    persistent: new Set([...program.persistent].map(now)),
    results: program.results.map((value, i) => replaced.get(i) ?? value),
    spaceOf,
  };
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

/** Two consecutive uses with the most steps between them. */
function longestGap(uses: readonly Step[]): readonly [last: Step, next: Step] {
  let [last, next] = [at(uses, 0), at(uses, 0)];
  uses.slice(1).forEach((use, i) => {
    if (use - at(uses, i) > next - last) [last, next] = [at(uses, i), use];
  });
  return [last, next];
}

const stays = (program: Program, { values }: Storage): boolean => values.some((v) => needsSlot(program, v));

function tripOf(program: Program, storage: Storage, uses: readonly Step[], options: MoveOptions): TripTimes {
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
  return { outStart, outWait, backStart, backWait: next };
}

/** The copies of a value to the host and back. */
function transitsOf(storage: Storage, times: TripTimes, host: MemorySpace): readonly [Transit, Transit] {
  const value = at(storage.values, 0);
  const away = newValue(value.type, value.name && `${value.name}_${host.name}`);
  const out = { from: value, to: away, queue: OUT };
  const back = { from: away, to: newValue(value.type, value.name), queue: IN };
  return [
    { storage, copy: out, start: times.outStart, wait: times.outWait },
    { storage, copy: back, start: times.backStart, wait: times.backWait },
  ];
}

/** The steps with the copies inserted; uses after a copy back read the copy. */
function withCopies(program: Program, transits: readonly Transit[]): Pick<Program, "steps" | "results"> {
  const lastUse = lastUses(program);
  const steps: PlanStep[] = [];
  const current = new Map<Value, Value>();
  const now = (value: Value): Value => current.get(value) ?? value;
  const arrivals = byPosition(transits);
  const insertAt = (k: Step): void => {
    const phase = (program.steps[k] ?? program.steps.at(-1))?.node.phase ?? "forward";
    for (const { transit, isWait } of arrivals.get(k) ?? []) {
      const { storage, copy } = transit;
      steps.push(isWait ? waitStep(copy, phase) : startStep(copy, phase));
      if (!isWait || copy.queue === OUT) continue;
      current.set(at(storage.values, 0), copy.to);
      const later = storage.values.slice(1).filter((v) => (lastUse.get(v) ?? -1) >= k);
      steps.push(...renamings(program, later, { k, to: copy.to, phase }, current));
    }
  };
  program.steps.forEach((step, k) => {
    insertAt(k);
    steps.push(current.size === 0 ? step : substituted(step, now));
  });
  insertAt(returnStepOf(program));
  return { steps, results: program.results.map(now) };
}

interface Arrival {
  readonly transit: Transit;
  readonly isWait: boolean;
}

/**
 * The steps to insert before each step. Copies out come first, so that storage is freed before a value comes back; what is used
 * first comes back first.
 */
function byPosition(transits: readonly Transit[]): ReadonlyMap<Step, readonly Arrival[]> {
  const arrivals = new Map<Step, Arrival[]>();
  const out = transits.filter(({ copy }) => copy.queue === OUT);
  const back = transits.filter(({ copy }) => copy.queue === IN).sort((a, b) => a.wait - b.wait);
  for (const direction of [out, back]) {
    for (const isWait of [false, true]) {
      for (const transit of direction) {
        const position = isWait ? transit.wait : transit.start;
        const list = arrivals.get(position);
        if (list) list.push({ transit, isWait });
        else arrivals.set(position, [{ transit, isWait }]);
      }
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
