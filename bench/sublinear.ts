/**
 * @file The figure of "Training Deep Nets with Sublinear Memory Cost" (Chen, Xu, Zhang and Guestrin 2016) with this
 * planner and other sizes: memory against depth for residual networks and for LSTMs unrolled over time.
 *
 *   npm run figure:sublinear                 docs/figures/sublinear.svg and the tables of docs/budget.md
 *
 *   no sharing    every value of the fused program has separate storage                 counted, cannot be run
 *   in place      results written over operands that die; no other sharing              counted, cannot be run
 *   sharing       the plan with everything stored                                       planned and measured
 *   sqrt          segments of √n operations recomputed: the paper's rule                planned and measured
 *   ours          as few bytes as possible at 1.3 times the predicted time              planned and measured
 *
 * The largest workspace counts once in the first two. Parameters and optimizer state are left out of all. *Measured* is
 * the size of the WebAssembly memory after two steps in a process of its own, how much of it the system holds in pages,
 * and how far the resident set of the process rose above what it was when the program had been compiled and not run.
 * The last has about a MiB of JavaScript's own in it; without waiting for the garbage of planning to go it means
 * nothing.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { type Compiled, compile } from "../src/api/compile.ts";
import { plansOf } from "../src/api/plan.ts";
import type { PlanningOptions } from "../src/api/request.ts";
import { baselineRss, peakRss } from "../src/cli/memory.ts";
import type { AnyProgram } from "../src/cli/programs/built-in.ts";
import { byteLength } from "../src/ir/type.ts";
import type { Plan } from "../src/plan/problem.ts";
import type { AnyFunction } from "../src/trace/function.ts";
import { storageOf, type Tensor } from "../src/trace/tensor.ts";
import { flatten } from "../src/trace/tree.ts";
import { type Axis, doublings, drawFigure, type Panel, type Series } from "./chart.ts";
import { residual, unrolled } from "./deep-programs.ts";

const MIB = 2 ** 20;
const KINDS = {
  residual: {
    make: residual,
    title: "residual network",
    unit: "blocks",
    sizes: [4, 8, 16, 32, 64, 128],
    measuredTo: 64,
  },
  lstm: {
    make: unrolled,
    title: "unrolled LSTM",
    unit: "time steps",
    sizes: [8, 16, 32, 64, 128, 256],
    measuredTo: 64,
  },
} as const;
type Kind = keyof typeof KINDS;

const WAYS = {
  sharing: { strategy: "store-all" },
  sqrt: { strategy: "sqrt", memory: "min" },
  ours: { maxSlowdown: 1.3 },
} as const satisfies Record<string, PlanningOptions>;
type Way = keyof typeof WAYS;
const WAY_NAMES = Object.keys(WAYS) as readonly Way[];

interface Measured {
  readonly arenaBytes: number;
  readonly persistentBytes: number;
  readonly memoryBytes: number;
  /** Of the WebAssembly memory; null if the system does not report it. */
  readonly residentBytes: number | null;
  /** Of the process, at its peak, above what it was before the first step. */
  readonly processBytes: number | null;
}

interface Row {
  readonly size: number;
  readonly persistentBytes: number;
  /** Without persistent bytes. */
  readonly noSharing: number;
  readonly inPlace: number;
  readonly planned: Readonly<Record<Way, { readonly bytes: number; readonly slowdown: number }>>;
  readonly measured: Readonly<Record<Way, Measured>> | null;
}

/** Bytes with a place for every value, and with a place for every buffer. */
function unshared({ program, problem }: Plan): { readonly noSharing: number; readonly inPlace: number } {
  const workspace = Math.max(0, ...program.steps.map((step) => step.scratch.reduce((sum, bytes) => sum + bytes, 0)));
  const temporary = program.params.filter((param) => !program.persistent.has(param));
  const written = program.steps.flatMap((step) => (step.alias ? [] : step.writes));
  const values = [...temporary, ...written].reduce((sum, value) => sum + byteLength(value.type), 0);
  const buffers = problem.buffers.filter(({ kind }) => kind !== "scratch" && kind !== "persistent");
  return { noSharing: workspace + values, inPlace: workspace + buffers.reduce((sum, b) => sum + b.bytes, 0) };
}

function planned(program: AnyProgram): Omit<Row, "size" | "measured"> {
  const { plans } = plansOf(program.step as AnyFunction, program.specs?.() ?? [], { donate: [0], name: program.name });
  const { plan } = plans.storeAll.result;
  const persistentBytes = plan.problem.buffers.reduce((sum, b) => sum + (b.kind === "persistent" ? b.bytes : 0), 0);
  const chosen = {
    sharing: plans.storeAll,
    sqrt: plans.family("sqrt").least(),
    ours: plans.family("auto").slowedBy(1.3),
  };
  const figures = WAY_NAMES.map((way) => {
    const { arenaBytes, predictedMs } = chosen[way];
    return [way, { bytes: arenaBytes - persistentBytes, slowdown: predictedMs / plans.storeAll.predictedMs }];
  });
  return { ...unshared(plan), persistentBytes, planned: Object.fromEntries(figures) as Row["planned"] };
}

/** Resident bytes of the one writable mapping of that size: the memory, which has unreadable guards on both sides. */
function residentOf(bytes: number): number | null {
  try {
    const maps = readFileSync("/proc/self/smaps", "utf8").split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/);
    const own = maps.filter(
      (text) => /^\S+ rw/.test(text) && text.includes(`\nSize:${String(bytes / 1024).padStart(19)} kB`),
    );
    const rss = own.length === 1 ? /\nRss:\s+(\d+) kB/.exec(own[0] as string) : null;
    return rss ? Number(rss[1]) * 1024 : null;
  } catch {
    return null;
  }
}

/** In a process of its own: compiles, runs two steps, prints what they took. */
async function measureHere(kind: Kind, size: number, way: Way): Promise<void> {
  const program: AnyProgram = KINDS[kind].make(size);
  const compiled = compile(program.step as never, { donate: [0], ...WAYS[way] }) as unknown as Compiled<
    [object, ...Tensor[]],
    readonly [object, Tensor]
  >;
  let state = program.init();
  const batch = program.batch();
  const { arenaBytes, persistentBytes } = compiled.program(state, ...batch);
  // garbage of planning is returned to the system first, partly in the background
  for (let i = 0; i < 4; i++) {
    globalThis.gc?.();
    await setTimeout(500);
  }
  const before = baselineRss();
  for (let i = 0; i < 2; i++) [state] = compiled(state, ...batch);
  const after = peakRss();
  const [leaf] = flatten(state, "state").leaves;
  const memoryBytes = leaf ? storageOf(leaf).read().buffer.byteLength : 0;
  const processBytes = before === null || after === null ? null : after - before;
  const residentBytes = residentOf(memoryBytes);
  const measured: Measured = { arenaBytes, persistentBytes, memoryBytes, residentBytes, processBytes };
  process.stdout.write(JSON.stringify(measured));
}

function measure(kind: Kind, size: number): Row["measured"] {
  const entries = WAY_NAMES.map((way) => {
    const argv = ["--expose-gc", process.argv[1] as string, "measure", kind, String(size), way];
    return [way, JSON.parse(execFileSync(process.execPath, argv, { encoding: "utf8" })) as Measured];
  });
  return Object.fromEntries(entries) as Row["measured"];
}

const mib = (bytes: number): string => (bytes / MIB).toFixed(2);

function markdown(kind: Kind, rows: readonly Row[]): string {
  const { title, unit } = KINDS[kind];
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const first = [unit, "no sharing", "in place", "sharing", "sqrt", "slowdown", "Tidemark", "slowdown"];
  const estimated = rows.map(({ size, noSharing, inPlace, planned: { sharing, sqrt, ours } }) => {
    const paid = ({ bytes, slowdown }: typeof sqrt): readonly string[] => [mib(bytes), `${slowdown.toFixed(2)} ×`];
    return line([String(size), mib(noSharing), mib(inPlace), mib(sharing.bytes), ...paid(sqrt), ...paid(ours)]);
  });
  const second = [unit, "plan", "planned", "memory", "resident", "process"];
  const orUnknown = (bytes: number | null): string => (bytes === null ? "unknown" : mib(bytes));
  const ran = rows.flatMap(({ size, measured }) =>
    (measured ? WAY_NAMES : []).map((way) => {
      const m = (measured as Readonly<Record<Way, Measured>>)[way];
      const counted = [mib(m.arenaBytes), mib(m.memoryBytes), orUnknown(m.residentBytes), orUnknown(m.processBytes)];
      return line([String(size), way === "ours" ? "Tidemark" : way, ...counted]);
    }),
  );
  const rule = (cells: readonly string[]): string => line(cells.map(() => "---:"));
  const parts = [`${title}, estimated, MiB without persistent buffers`, "", line(first), rule(first), ...estimated];
  return [
    ...parts,
    "",
    `${title}, measured, MiB with persistent buffers`,
    "",
    line(second),
    rule(second),
    ...ran,
    "",
  ].join("\n");
}

function panelOf(kind: Kind, rows: readonly Row[]): Panel {
  const { title, unit } = KINDS[kind];
  const line = (
    label: string,
    look: Pick<Series, "colour" | "mark" | "line">,
    bytes: (row: Row) => number,
  ): Series => ({
    ...look,
    label,
    points: rows.map((row) => [row.size, bytes(row) / MIB] as const),
  });
  const rings = WAY_NAMES.map(
    (way, i): Series => ({
      label: i === 0 ? "measured (rings)" : "",
      colour: 0,
      mark: "ring",
      line: "none",
      points: rows.flatMap(({ size, measured }) => {
        const m = measured?.[way];
        return m ? [[size, (m.memoryBytes - m.persistentBytes) / MIB] as const] : [];
      }),
    }),
  );
  const series = [
    line("no sharing", { colour: 4, mark: "cross", line: "thin" }, (row) => row.noSharing),
    line("in place", { colour: 5, mark: "triangle", line: "thin" }, (row) => row.inPlace),
    line("sharing", { colour: 2, mark: "square", line: "thin" }, (row) => row.planned.sharing.bytes),
    line("sublinear (sqrt)", { colour: 3, mark: "diamond", line: "thin" }, (row) => row.planned.sqrt.bytes),
    line("ours, 1.3 × time", { colour: 1, mark: "circle", line: "bold" }, (row) => row.planned.ours.bytes),
    ...rings,
  ];
  const all = series.flatMap((s) => s.points.map(([, y]) => y));
  const [low, high] = [Math.min(...all) / 1.4, Math.max(...all) * 1.4];
  const sizes = rows.map((row) => row.size);
  const axis = (label: string, from: number, to: number): Axis => ({
    ...{ label, scale: "log", from, to },
    ticks: doublings(from, to, String),
  });
  const y = axis("MiB without what persists", low, high);
  return { title, x: axis(unit, Math.min(...sizes) / 1.2, Math.max(...sizes) * 1.2), y, series };
}

function rowsOf(kind: Kind): readonly Row[] {
  const { make, sizes, measuredTo } = KINDS[kind];
  return sizes.map((size) => {
    const row = { size, ...planned(make(size)), measured: size <= measuredTo ? measure(kind, size) : null };
    process.stderr.write(`${kind} ${size}: done\n`);
    return row;
  });
}

const [command, kind, size, way] = process.argv.slice(2);
if (command === "measure") await measureHere(kind as Kind, Number(size), way as Way);
else {
  const all = (Object.keys(KINDS) as readonly Kind[]).map((name) => ({ name, rows: rowsOf(name) }));
  for (const { name, rows } of all) console.log(markdown(name, rows));
  mkdirSync("docs/figures", { recursive: true });
  const panels = all.map(({ name, rows }) => panelOf(name, rows));
  writeFileSync("docs/figures/sublinear.svg", drawFigure("Memory against depth, by way of sharing", panels));
}
