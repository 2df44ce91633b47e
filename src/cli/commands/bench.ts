/**
 * @file `tidemark bench`: trains a program for some steps and reports time, memory, losses and a hash of the final
 * state. A step is forward, backward and update, and ends when its loss is a JavaScript number. The first third of the
 * steps, at most three, is warm-up: included in the losses, not in the times.
 */

import { createHash } from "node:crypto";
import { compile, type ProgramInfo } from "../../api/compile.ts";
import type { Deviation } from "../../api/deviation.ts";
import { currentHost } from "../../api/host.ts";
import { formatBytes } from "../../base/bytes.ts";
import { counted, grouped, TidemarkError } from "../../base/errors.ts";
import { communicator } from "../../node/mpi/communicator.ts";
import { launched } from "../../node/mpi/launched.ts";
import { formText } from "../../parallel/forms.ts";
import { memoryChart } from "../../plan/memory-chart.ts";
import { table } from "../../plan/table.ts";
import { planTrace } from "../../plan/trace-events.ts";
import { AWAITED_TARGET, chooseTarget, madeLater } from "../../runtime/choose-target.ts";
import type { Target } from "../../runtime/device.ts";
import { arenaSpace } from "../../target/description.ts";
import type { CostModel } from "../../target/work.ts";
import { storageOf, type Tensor } from "../../trace/tensor.ts";
import { flatten } from "../../trace/tree.ts";
import { type Arguments, type Command, type Io, integerOption, paintFor, usageError, writeJson } from "../command.ts";
import { CONTRACT, stepResult } from "../contract.ts";
import { deviationOf, deviationText } from "../deviation.ts";
import { writeText } from "../files.ts";
import { formAsked } from "../form-options.ts";
import { loadProgram } from "../load.ts";
import { baselineRss, type OutsideArena, outsideArena, peakRss, residentParts } from "../memory.ts";
import {
  beginMpi,
  MESH_OPTIONS,
  type MeshFigures,
  type MeshProgram,
  type MeshSettings,
  meshFigures,
  meshRows,
  meshSettings,
  onMesh,
  onNative,
} from "../mesh.ts";
import { type ChoiceFigures, formRun } from "../mesh-form.ts";
import {
  compileOptions,
  PLAN_OPTIONS,
  type PlanFigures,
  type Planned,
  type PlanOutcome,
  type PlanSettings,
  planLoaded,
  planSettings,
} from "../plan-figures.ts";
import { withAutocast } from "../products-option.ts";
import { type Profile, profile, profileText } from "../profile.ts";
import type { AnyProgram } from "../programs/built-in.ts";
import { PROGRESS_OPTION } from "../progress.ts";
import { measurePeaks, type Roofline, rooflineOf, rooflineText } from "../roofline.ts";
import { MEASURED_TARGETS } from "../target-settings.ts";

const DEFAULT_STEPS = 20;
const MOST_WARM_UP = 3;
const PROFILE_SECONDS = 2;

export interface BenchFigures extends PlanFigures {
  readonly stepMs: { readonly median: number; readonly p10: number; readonly p90: number };
  /** Median processor time of a step, all threads together; not affected by other processes. */
  readonly stepCpuMs: number;
  /** From tracing to ready to run. */
  readonly compileMs: number;
  /** Of the process up to the last step; null if the system does not report it. */
  readonly peakRssBytes: number | null;
  /** Before the program was created. */
  readonly baselineRssBytes: number | null;
  /** The parts of the peak besides the arena and the baseline. */
  readonly outsideArenaBytes: OutsideArena | null;
  /** Of every step, from the first. */
  readonly losses: readonly number[];
  /** SHA-256 over the bytes of all parameters after the last step, in the order of the state's tree. */
  readonly stateHash: string;
  readonly moduleBytes: number;
  readonly kernelFunctions: number;
  readonly kernelCalls: number;
  readonly threads: number;
  readonly steps: number;
  /** On several processes: the mesh, their number, what they exchange in a step, and the library. */
  readonly mesh?: MeshFigures;
  /** With `--mesh auto`: the form that was chosen, and why. */
  readonly auto?: ChoiceFigures;
}

/** The value below which a share of the sorted numbers lies, interpolated between neighbours. */
export function quantile(numbers: readonly number[], share: number): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const position = share * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(position)], sorted[Math.ceil(position)]];
  if (below === undefined || above === undefined) return Number.NaN;
  return below + (above - below) * (position - Math.floor(position));
}

/** Over `state.params` if there is one, otherwise over the whole state. */
export function stateHash(state: object): string {
  const hash = createHash("sha256");
  const hashed = "params" in state ? state.params : state;
  for (const leaf of flatten(hashed, "state").leaves) {
    const { buffer, byteOffset, byteLength } = storageOf(leaf).read();
    hash.update(new Uint8Array(buffer, byteOffset, byteLength));
  }
  return hash.digest("hex");
}

interface Run {
  readonly losses: readonly number[];
  readonly ms: readonly number[];
  readonly cpuMs: readonly number[];
  readonly state: object;
}

interface Steps {
  readonly name: string;
  /** Results are read by waiting. */
  readonly isAwaited: boolean;
  readonly step: (state: object) => unknown;
  readonly first: object;
  readonly steps: number;
}

async function runSteps({ name, isAwaited, step, first, steps }: Steps, progress: Io["progress"]): Promise<Run> {
  const losses: number[] = [];
  const [ms, cpuMs]: [number[], number[]] = [[], []];
  let state = first;
  for (let i = 0; i < steps; i++) {
    const [started, used] = [performance.now(), process.cpuUsage()];
    const result = step(state);
    // all steps return the same structure: checking the first suffices
    const [next, loss] = i === 0 ? stepResult(name, first, result) : (result as readonly [object, Tensor]);
    if (isAwaited) await loss.dataAsync();
    losses.push(loss.item());
    ms.push(performance.now() - started);
    const { user, system } = process.cpuUsage(used);
    cpuMs.push((user + system) / 1000);
    state = next;
    // between steps: it is not measured
    progress?.({ doing: `${name}: ${i + 1} of ${counted(steps, "step")}`, share: (i + 1) / steps });
  }
  if (isAwaited) for (const leaf of flatten(state, "state").leaves) await leaf.dataAsync();
  const warm = Math.min(MOST_WARM_UP, Math.floor(steps / 3));
  return { losses, ms: ms.slice(warm), cpuMs: cpuMs.slice(warm), state };
}

const targetOf = ({ target, threads, products }: PlanSettings): Target =>
  chooseTarget(currentHost(), target, { threads, products }).target;

/** Throws if an arena exceeds the target's memory. */
function requireMemory(program: string, { description }: Target, arenaBytes: number): void {
  const { largestArena } = arenaSpace(description);
  if (arenaBytes <= largestArena) return;
  const { name } = description;
  const summary = `${program} needs an arena of ${formatBytes(arenaBytes)}, and ${name} has at most ${formatBytes(largestArena)}`;
  const others = MEASURED_TARGETS.filter((other) => other !== name).join(" or ");
  const help = `tidemark plan ${program} shows what takes it; run it with --target ${others}, a smaller batch or smaller layers`;
  throw new TidemarkError("TargetUnsupported", summary, { help });
}

/** Kernels are timed one by one where a run is over when its call returns, or can be waited for in the middle of one. */
function requireClock(args: Arguments, { target }: PlanSettings): void {
  const asked = ["profile", "roofline", "chrome-trace"].find((option) => args.has(option));
  if (target !== AWAITED_TARGET || asked === undefined) return;
  throw new TidemarkError("TargetUnsupported", `bench: ${target} times no single kernels, and --${asked} needs that`, {
    help: `leave --${asked} out, or give another target`,
  });
}

interface Measured {
  readonly figures: BenchFigures;
  readonly planned: Planned;
  readonly settings: PlanSettings;
}

async function measure(program: MeshProgram, args: Arguments, io: Io, costs?: CostModel): Promise<Measured> {
  const steps = integerOption(args, "steps", DEFAULT_STEPS, { least: 1 });
  const own = await planSettings(args, io, { kind: "training", name: program.name, program }, true);
  const settings = costs ? { ...own, machine: { ...own.machine, costs } } : own;
  requireClock(args, settings);
  return madeLater(settings, (taken) => measureWith(program, taken, steps, io));
}

/** The small fields of a program's information; other fields would keep the plan in memory. */
function figuresOfProgram({ arenaBytes, compileMs, moduleBytes, kernelFunctions, ...info }: ProgramInfo) {
  const { kernelCalls, traceMs, planMs, planCached } = info;
  return { arenaBytes, compileMs, moduleBytes, kernelFunctions, kernelCalls, traceMs, planMs, planCached };
}

/** Compiles, runs and measures a program. It does not examine the plan, because that would be measured too. */
async function train(program: AnyProgram, settings: PlanSettings, steps: number, io: Io) {
  const [baselineRssBytes, before] = [baselineRss(), residentParts()];
  const step = compile(program.step, { donate: [0], name: program.name, ...compileOptions(settings) });
  io.progress?.({ doing: `${program.name}: planning and compiling`, blocks: true });
  const [first, batch] = [program.init(), program.batch()];
  const { arenaBytes, ...info } = figuresOfProgram(step.program(first, ...batch));
  io.err(`${program.name}: compiled in ${info.compileMs.toFixed(0)} ms, running ${counted(steps, "step")}\n`);
  const { name } = program;
  const isAwaited = settings.target === AWAITED_TARGET;
  const run = await runSteps({ name, isAwaited, step: (s) => step(s, ...batch), first, steps }, io.progress);
  const [peakRssBytes, after] = [peakRss(), residentParts()];
  const { arenaIsArray, description } = targetOf(settings);
  const hostArenaBytes = arenaSpace(description).hostVisible ? arenaBytes : 0;
  const arenaArrayBytes = arenaIsArray ? arenaBytes : 0;
  const memory = { peakRssBytes, baselineRssBytes, before, after, arenaBytes: hostArenaBytes, arenaArrayBytes };
  return { ...run, info: { ...info, peakRssBytes, baselineRssBytes, outsideArenaBytes: outsideArena(memory) } };
}

async function measureWith(program: MeshProgram, settings: PlanSettings, steps: number, io: Io): Promise<Measured> {
  const planned = (): PlanOutcome => planLoaded({ kind: "training", name: program.name, program }, settings);
  const { losses, ms, cpuMs, state, info } = await (async () => {
    try {
      return await train(program, settings, steps, io);
    } catch (error) {
      if (error instanceof TidemarkError && error.code === "TargetUnsupported") {
        requireMemory(program.name, targetOf(settings), planned().planned.plan.height);
      }
      throw error;
    }
  })();
  const outcome = planned();
  const figures = {
    ...outcome.figures(),
    stepMs: { median: quantile(ms, 0.5), p10: quantile(ms, 0.1), p90: quantile(ms, 0.9) },
    stepCpuMs: quantile(cpuMs, 0.5),
    ...{
      ...info,
      losses,
      stateHash: stateHash(program.whole?.(state) ?? state),
      threads: settings.threads ?? 1,
      steps,
    },
  };
  return { figures, planned: outcome.planned, settings };
}

const threadsText = (threads: number): string => (threads === 1 ? "one thread" : `${threads} threads`);

/** Resident memory besides the arena. */
function outsideText({ outsideArenaBytes: parts }: BenchFigures): string {
  if (!parts) return "over the process before the program was created";
  const named = (["heap", "code", "staging", "workers", "other"] as const).map((n) => `${n} ${formatBytes(parts[n])}`);
  return `over the process before; besides the arena ${named.join(", ")}`;
}

function benchText(f: BenchFigures, { code }: Target): string {
  const rss = f.peakRssBytes === null || f.baselineRssBytes === null ? null : f.peakRssBytes - f.baselineRssBytes;
  const rows = [
    [
      "step",
      `${f.stepMs.median.toFixed(2)} ms`,
      `p10 ${f.stepMs.p10.toFixed(2)}, p90 ${f.stepMs.p90.toFixed(2)}; ${f.stepCpuMs.toFixed(2)} of processor time`,
    ],
    [
      "predicted",
      `${f.predictedMs.toFixed(2)} ms`,
      `${(f.predictedMs / f.stepMs.median).toFixed(2)} × measured, by ${f.costModel} rates`,
    ],
    [
      "compile",
      `${f.compileMs.toFixed(0)} ms`,
      `${grouped(f.kernelCalls)} kernel calls of ${f.kernelFunctions} functions`,
    ],
    ["arena", formatBytes(f.arenaBytes), `${(f.arenaBytes / f.lowerBoundBytes).toFixed(3)} × bound`],
    [
      "parameters",
      formatBytes(f.parameterBytes),
      `and ${formatBytes(f.optimizerBytes)} of optimizer state, ${formatBytes(f.constantBytes)} of constants`,
    ],
    [
      "moved",
      formatBytes(f.movedBytes),
      `${(f.movedBytes / f.kernelBytes).toFixed(2)} × the least of its kernels, ${(f.movedBytes / f.leastBytes).toFixed(2)} × inputs and results`,
    ],
    ["code", formatBytes(f.moduleBytes), `of ${code}`],
    ["peak RSS", rss === null ? "unknown" : formatBytes(rss), outsideText(f)],
    ["rate", `${(f.totalFlops / f.stepMs.median / 1e6).toFixed(1)} GFLOP/s`, `${grouped(f.totalFlops)} flops a step`],
    [
      "loss",
      `${f.losses.at(-1)?.toPrecision(6)}`,
      `after ${counted(f.steps, "step")}, ${f.losses[0]?.toPrecision(6)} at first`,
    ],
    ...(f.mesh ? meshRows(f.mesh) : []),
    ["state", f.stateHash.slice(0, 16), "SHA-256 of the parameters, first digits"],
  ];
  return `${f.program} on ${f.target}, ${threadsText(f.threads)}, ${f.strategy}\n${table(rows, [
    "left",
    "right",
    "left",
  ])
    .map((l) => `  ${l}\n`)
    .join("")}`;
}

function writeTrace({ plan, steps }: Profile, path: string): void {
  const msOf = new Map(steps.map(({ step, ms }) => [step, ms]));
  writeText(path, `${JSON.stringify(planTrace(plan, (step) => msOf.get(step) ?? 0, "measured"))}\n`);
}

/** Peaks are the fastest of many runs, so the step's fast quantile is compared with them. */
function roofline({ figures, planned, settings }: Measured): Roofline {
  const { stepMs, stepCpuMs, threads } = figures;
  const ms = threads === 1 ? Math.min(stepMs.p10, stepCpuMs) : stepMs.p10;
  return rooflineOf(planned, ms, measurePeaks(targetOf(settings)));
}

/** Optional additional measurements. */
interface Extras {
  readonly roofline: Roofline | null;
  readonly profile: Profile | null;
  readonly deviation: Deviation | null;
}

function writeReport(io: Io, { figures, planned, settings }: Measured, extras: Extras, json: boolean): void {
  const { roofline: roof, profile: found, deviation } = extras;
  if (json) {
    const of = { ...(roof ? { roofline: roof } : {}), ...(found ? { profile: { ...found, plan: undefined } } : {}) };
    writeJson(io, { ...figures, ...of, ...(deviation ? { deviation } : {}) });
    return;
  }
  const parts = [roof && rooflineText(roof), found && profileText(found), deviation && deviationText(deviation)].filter(
    (part) => part !== null,
  );
  const shown = parts.length > 0 ? parts : [memoryChart(planned.plan, paintFor(io))];
  io.out(`${benchText(figures, targetOf(settings))}\n${shown.join("\n")}`);
}

type Asked = NonNullable<ReturnType<typeof formAsked>>;

const QUIET = { out: () => undefined, err: () => undefined };

const NO_EXTRAS: Extras = { roofline: null, deviation: null, profile: null };

function requireNoExtras(args: Arguments): void {
  const other = ["profile", "roofline", "chrome-trace", "deviation"].find((option) => args.has(option));
  if (other !== undefined) throw usageError(`bench: --${other} with --mesh or --microbatches`, `leave --${other} out`);
}

/** Measures a program in a form that is chosen, or spelled out. */
async function benchInForm(program: AnyProgram, asked: Asked, args: Arguments, io: Io): Promise<void> {
  requireNoExtras(args);
  const own = (launched()?.rank ?? 0) === 0 ? io : { ...io, ...QUIET };
  const { form, devices, costs, auto, mpi, program: onDevice } = formRun(program, asked, args, own);
  if (auto) own.err(`${program.name} on ${devices} ${devices === 1 ? "device" : "devices"}: ${auto.form}\n`);
  const measured = await measure(onDevice, args, own, costs);
  const { microbatches } = form;
  const split = { mesh: formText(form), devices, isDeterministic: args.has("deterministic"), microbatches };
  const { stepCpuMs } = measured.figures;
  const rankCpuMs = devices === 1 ? [stepCpuMs] : communicator("bench --mesh").numbers(stepCpuMs);
  const mesh = { ...meshFigures(split, mpi, measured.planned.plan), rankCpuMs };
  const figures = { ...measured.figures, mesh, ...(auto ? { auto } : {}) };
  writeReport(own, { ...measured, figures }, NO_EXTRAS, args.has("json"));
  if (auto && !args.has("json")) own.out(`${auto.why.join("\n")}\n`);
}

/** Measures a program on the processes of a mesh; one of them says what was found. */
async function benchOnMesh(program: AnyProgram, split: MeshSettings, args: Arguments, io: Io): Promise<void> {
  requireNoExtras(args);
  const own = split.rank === 0 ? io : { ...io, ...QUIET };
  const mpi = beginMpi(split);
  const measured = await measure(onMesh(program, split), args, own);
  const mesh = meshFigures(split, mpi, measured.planned.plan);
  writeReport(own, { ...measured, figures: { ...measured.figures, mesh } }, NO_EXTRAS, args.has("json"));
}

export const bench: Command = {
  name: "bench",
  positionals: ["PROGRAM"],
  summary: "run training steps and measure time and memory",
  details: CONTRACT,
  options: {
    steps: {
      value: "N",
      help: `number of steps, default: ${DEFAULT_STEPS}; the first third, at most ${MOST_WARM_UP}, is warm-up`,
    },
    ...PLAN_OPTIONS,
    roofline: { help: "also measure the peak rates of products and memory, and the program's share of them" },
    deviation: {
      help: "with --lossy: also measure errors of rounded values, and how far results of a step are from the exact ones",
    },
    profile: { help: "also run kernel by kernel on one thread: time, work and bytes of each" },
    "chrome-trace": { value: "FILE", help: "write that profile for chrome://tracing and Perfetto" },
    ...MESH_OPTIONS,
    json: { help: "print one line of JSON" },
    ...PROGRESS_OPTION,
  },
  async run(given, io) {
    const form = formAsked(given);
    const split = form ? null : meshSettings(given);
    const args = form || (split && split.devices > 1) ? onNative(given) : given;
    const loaded = withAutocast(await loadProgram(args.positionals[0] as string), args);
    if (loaded.kind === "graph") {
      throw usageError(
        `bench: ${loaded.name} is a graph without values to start from`,
        "use tidemark plan, or a module",
      );
    }
    if (args.has("deviation") && !args.has("lossy")) {
      throw usageError("bench: --deviation without --lossy", "give --lossy linear=4,rest=8");
    }
    if (form) {
      await benchInForm(loaded.program, form, args, io);
      return;
    }
    if (split) {
      await benchOnMesh(loaded.program, split, args, io);
      return;
    }
    const measured = await measure(loaded.program, args, io);
    const traceFile = args.value("chrome-trace");
    const profiled = args.has("profile") || traceFile !== undefined;
    const extras = {
      roofline: args.has("roofline") ? roofline(measured) : null,
      deviation: args.has("deviation") ? deviationOf(loaded.program, measured.settings) : null,
      profile: profiled ? profile(loaded.program, measured.settings, PROFILE_SECONDS) : null,
    };
    if (extras.profile && traceFile !== undefined) writeTrace(extras.profile, traceFile);
    writeReport(io, measured, extras, args.has("json"));
  },
};
