/**
 * @file The numbers of a plan. A peak says little without its bound (no placement is lower), the persistent bytes, and
 * the size without any reuse, so a report always has all of them.
 */
import { counted, grouped } from "../base/errors.ts";
import { byteLength } from "../ir/type.ts";
import { liveBytes } from "./bound.ts";
import { type ExchangeReport, exchangesInBodies, exchangesOf } from "./exchanges.ts";
import { type LiveBuffer, liveAt, liveName, whyText } from "./live.ts";
import { nameValues } from "./names.ts";
import { alignUp, BUFFER_KINDS, type BufferKind, layoutIn, type Plan, problemIn, type Step } from "./problem.ts";
import { spaceOf } from "./space.ts";
import { stepText } from "./statement.ts";
import { type StripReport, stripReports, stripText } from "./strips.ts";
import { table } from "./table.ts";

/** Buffers of one kind, in numbers. */
export interface KindReport {
  readonly kind: BufferKind;
  readonly buffers: number;
  /** Sum over all buffers of the kind. */
  readonly bytes: number;
  /** Of buffers live at the tightest step. */
  readonly bytesAtPeak: number;
}

/** One memory space, and the bytes copied into it while the program runs. */
export interface SpaceReport {
  readonly name: string;
  readonly peakBytes: number;
  readonly boundBytes: number;
  /** Null: without limit. */
  readonly capacityBytes: number | null;
  readonly buffers: number;
  /** Stay there between runs; missing where there is one space. */
  readonly persistentBytes?: number;
  readonly copiesIn: number;
  readonly copiedInBytes: number;
}

/** Figures of memory are those of the first space, the arena. */
export interface PlanReport {
  readonly name: string;
  readonly steps: number;
  readonly strategy: string;
  /** The arena. */
  readonly peakBytes: number;
  readonly boundBytes: number;
  /** peak / bound; 1 for a program that stores nothing. */
  readonly ratio: number;
  /** Stays in the arena between runs. */
  readonly persistentBytes: number;
  /** The rest of the arena. */
  readonly ephemeralBytes: number;
  /** Every stored value and workspace with separate storage. */
  readonly withoutReuseBytes: number;
  /** Mean of live bytes over all steps. */
  readonly meanLiveBytes: number;
  readonly buffers: number;
  readonly values: number;
  readonly valuesInPlace: number;
  readonly valuesRenamed: number;
  readonly copies: number;
  readonly copiedBytes: number;
  readonly kinds: readonly KindReport[];
  readonly tightest: {
    readonly step: Step;
    readonly text: string;
    readonly where: string | undefined;
    readonly live: readonly LiveBuffer[];
  };
  readonly spaces: readonly SpaceReport[];
  /** Parts that run in strips of rows. */
  readonly strips: readonly StripReport[];
  /** Collectives, in the order of their starts. */
  readonly exchanges: readonly ExchangeReport[];
  /** Those inside of loops and branches; their steps are those of a body. */
  readonly exchangesInBodies: readonly ExchangeReport[];
}

const persistentBytesIn = ({ problem }: Plan, space: number): number =>
  problem.buffers.reduce((sum, b) => sum + (b.space === space && b.kind === "persistent" ? b.bytes : 0), 0);

function spaceReports(plan: Plan): readonly SpaceReport[] {
  const { buffers, spaces } = plan.problem;
  const destinations = plan.program.steps.flatMap(({ copy }) => (copy?.kind === "start" ? [copy.to] : []));
  return spaces.map(({ name, capacity }, space) => {
    const { height, bound } = layoutIn(plan, space);
    const copied = destinations.filter((value) => spaceOf(plan.program, value) === space);
    return {
      ...{ name, peakBytes: height, boundBytes: bound.bytes },
      capacityBytes: Number.isFinite(capacity) ? capacity : null,
      buffers: spaces.length === 1 ? buffers.length : buffers.filter((b) => b.space === space).length,
      ...(spaces.length === 1 ? {} : { persistentBytes: persistentBytesIn(plan, space) }),
      copiesIn: copied.length,
      copiedInBytes: copied.reduce((sum, { type }) => sum + byteLength(type), 0),
    };
  });
}

/**
 * A plan in numbers.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { reportPlan } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(reportPlan(plan).peakBytes === plan.height); // → true
 */
export function reportPlan(plan: Plan): PlanReport {
  const { program, bound, height } = plan;
  const problem = problemIn(plan.problem);
  const rounded = (bytes: number) => alignUp(bytes, problem.alignment);
  const live = liveAt(plan, bound.step);
  const kinds = BUFFER_KINDS.map((kind): KindReport => {
    const buffers = problem.buffers.filter((b) => b.kind === kind);
    const bytesAtPeak = live.filter((b) => b.kind === kind).reduce((sum, b) => sum + b.bytes, 0);
    return { kind, buffers: buffers.length, bytes: buffers.reduce((sum, b) => sum + rounded(b.bytes), 0), bytesAtPeak };
  }).filter((kind) => kind.buffers > 0);
  const persistentBytes = kinds.find((k) => k.kind === "persistent")?.bytes ?? 0;
  const renamed = new Set(program.steps.flatMap((s) => (s.alias ? [s.alias[1]] : [])));
  // A buffer's values all have its size; renamed ones are not stored again.
  const withoutReuseBytes = problem.buffers.reduce((sum, b) => {
    const stored = b.values.filter((v) => !renamed.has(v)).length;
    return sum + rounded(b.bytes) * Math.max(1, stored);
  }, 0);
  const liveSum = liveBytes(problem, program.steps.length).reduce((sum, bytes) => sum + bytes, 0);
  const step = program.steps[bound.step];
  const text = step ? stepText(step, nameValues(program), (v) => plan.bufferOf.has(v)) : "return";
  return {
    name: program.name,
    steps: program.steps.length,
    strategy: plan.strategy,
    peakBytes: height,
    boundBytes: bound.bytes,
    ratio: bound.bytes > 0 ? height / bound.bytes : 1,
    persistentBytes,
    ephemeralBytes: height - persistentBytes,
    withoutReuseBytes,
    meanLiveBytes: program.steps.length > 0 ? Math.round(liveSum / program.steps.length) : 0,
    buffers: plan.problem.buffers.length,
    values: plan.bufferOf.size,
    valuesInPlace: plan.inPlace.size,
    valuesRenamed: renamed.size,
    copies: plan.copies.length,
    copiedBytes: plan.copies.reduce((sum, copy) => sum + (plan.problem.buffers[copy.to]?.bytes ?? 0), 0),
    kinds,
    tightest: { step: bound.step, text, where: step?.node.where, live },
    spaces: spaceReports(plan),
    strips: stripReports(plan),
    exchanges: exchangesOf(program),
    exchangesInBodies: exchangesInBodies(program),
  };
}

/**
 * The report as text; `mostLive` buffers of the tightest step are named.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { reportText } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(reportText(plan).includes("persistent")); // → true
 */
export function reportText(plan: Plan, mostLive = 8): string {
  const r = reportPlan(plan);
  const nameOf = nameValues(plan.program);
  const { live, step, text, where } = r.tightest;
  const { capacity } = plan.problem.spaces[0];
  const budget = Number.isFinite(capacity) ? grouped(capacity) : "none";
  const numbers = [
    ["peak", grouped(r.peakBytes), `${r.ratio.toFixed(3)} × bound, by ${r.strategy}`],
    ["bound", grouped(r.boundBytes), "most bytes live at once"],
    ["budget", budget, ""],
    ["persistent", grouped(r.persistentBytes), "kept between runs"],
    ["ephemeral", grouped(r.ephemeralBytes), ""],
    [
      "without reuse",
      grouped(r.withoutReuseBytes),
      `${(r.withoutReuseBytes / Math.max(1, r.peakBytes)).toFixed(2)} × peak`,
    ],
  ];
  const kindRows = r.kinds.map((k) => [k.kind, grouped(k.buffers), grouped(k.bytes), grouped(k.bytesAtPeak)]);
  const liveRows = live
    .slice(0, mostLive)
    .map((b) => [`b${b.buffer}`, liveName(b, nameOf), grouped(b.bytes), whyText(b)]);
  const more = live.length > mostLive ? [`    … ${live.length - mostLive} more`] : [];
  const lines = [
    `${r.name}: ${grouped(r.steps)} steps, ${grouped(r.values)} values in ${grouped(r.buffers)} buffers, ` +
      `${grouped(r.valuesInPlace)} in place, ${grouped(r.valuesRenamed)} renamed, ${grouped(r.copies)} copied at the end`,
    ...indented(2, table(numbers, ["left", "right", "left"])),
    ...indented(2, spacesTable(r.spaces)),
    ...indented(2, table([["kind", "buffers", "bytes", "at peak"], ...kindRows], ["left", "right", "right", "right"])),
    ...stripLines(r.strips),
    ...exchangeLines(r.exchanges, ""),
    ...exchangeLines(r.exchangesInBodies, " in loops and branches"),
    `  tightest at step ${step}, ${text}${where ? ` (${where})` : ""}:`,
    ...indented(4, table(liveRows, ["left", "left", "right", "left"])),
    ...more,
  ];
  return `${lines.join("\n")}\n`;
}

/** What is exchanged with other devices; empty if nothing is. */
function exchangeLines(exchanges: readonly ExchangeReport[], where: string): readonly string[] {
  if (exchanges.length === 0) return [];
  const bytes = exchanges.reduce((sum, one) => sum + one.bytes, 0);
  const flying = exchanges.filter(({ wait }) => wait !== null).length;
  const count = counted(exchanges.length, "collective");
  return [`  exchanges${where}: ${count} of ${grouped(bytes)} bytes, ${grouped(flying)} in flight beside other steps`];
}

/** What runs in strips, and why; empty if nothing does. */
function stripLines(strips: readonly StripReport[]): readonly string[] {
  if (strips.length === 0) return [];
  const why = "  plans that hold these values whole are larger or slower: their rows are independent of each other";
  return [...strips.map((report) => `  strips: ${stripText(report)}`), why];
}

/** Empty if there is one space: its figures are the plan's. */
function spacesTable(spaces: readonly SpaceReport[]): readonly string[] {
  if (spaces.length === 1) return [];
  const rows = spaces.map((s) => {
    const capacity = s.capacityBytes === null ? "none" : grouped(s.capacityBytes);
    const figures = [s.peakBytes, s.boundBytes, s.persistentBytes ?? 0, s.buffers, s.copiesIn, s.copiedInBytes].map(
      grouped,
    );
    return [s.name, capacity, ...figures];
  });
  const head = ["space", "capacity", "peak", "bound", "persistent", "buffers", "copies in", "bytes in"];
  return table([head, ...rows], ["left", "right", "right", "right", "right", "right", "right", "right"]);
}

function indented(spaces: number, lines: readonly string[]): string[] {
  return lines.map((line) => " ".repeat(spaces) + line);
}
