/**
 * @file How memory grows with depth: the chain program (x ← x + relu(x w1) w2) planned at depths 8, 16, …, by types
 * alone, three ways: everything stored, at most 1.3 times the predicted time, as small as possible. Persistent bytes
 * (the weights, linear in depth for every plan) are excluded.
 *
 *   npm run figure:depth                    all depths; 2,048 takes minutes
 *   npm run figure:depth -- 8 16 32 64      some of them
 *
 * Fits arena = a · depth^b by least squares on logarithms. One exponent over all depths hides a bend, so the exponents
 * of the first and the last doublings are printed too. Times are processor time, of one run.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { plansOf } from "../src/api/plan.ts";
import { chain } from "../src/cli/programs/chain.ts";
import type { PlannedProgram } from "../src/compiler/assembler.ts";
import type { Candidate } from "../src/plan/budget/budget-levels.ts";
import type { AnyFunction } from "../src/trace/function.ts";
import { doublings, drawFigure, type Series } from "./chart.ts";

const DEPTHS = [8, 16, 32, 64, 128, 256, 512, 1024, 2048];
const MIB = 2 ** 20;

interface Row {
  readonly depth: number;
  readonly mib: number;
  readonly slowdown: number;
  readonly seconds: number;
}

interface Way {
  readonly label: string;
  readonly look: Pick<Series, "colour" | "mark" | "line">;
  readonly rows: Row[];
}

const WAYS = {
  storeAll: { label: "everything stored", look: { colour: 2, mark: "square", line: "thin" }, rows: [] },
  slowed: { label: "maxSlowdown 1.3", look: { colour: 1, mark: "circle", line: "bold" }, rows: [] },
  least: { label: 'memory "min"', look: { colour: 3, mark: "diamond", line: "thin" }, rows: [] },
} as const satisfies Record<string, Way>;

function timed<T>(make: () => T): readonly [T, number] {
  const before = process.cpuUsage();
  const made = make();
  const { user, system } = process.cpuUsage(before);
  return [made, (user + system) / 1e6];
}

function planDepth(depth: number): void {
  const { step, name, specs } = chain(depth);
  if (!specs) return;
  const [{ plans }, base] = timed(() => plansOf(step as AnyFunction, specs(), { donate: [0], name }));
  const { buffers } = plans.storeAll.result.plan.problem;
  const persistent = buffers.reduce((sum, b) => sum + (b.kind === "persistent" ? b.bytes : 0), 0);
  const add = (way: Way, made: Candidate<PlannedProgram>, seconds: number): void => {
    const slowdown = made.predictedMs / plans.storeAll.predictedMs;
    way.rows.push({ depth, mib: (made.arenaBytes - persistent) / MIB, slowdown, seconds });
  };
  const [slowed, slowedSeconds] = timed(() => plans.family("auto").slowedBy(1.3));
  // a separate family, so that its time does not benefit from plans already made
  const [least, leastSeconds] = timed(() =>
    plansOf(step as AnyFunction, specs(), { donate: [0], name })
      .plans.family("auto")
      .least(),
  );
  add(WAYS.storeAll, plans.storeAll, base);
  add(WAYS.slowed, slowed, base + slowedSeconds);
  add(WAYS.least, least, leastSeconds);
}

/** The exponent b and the factor a of y = a · x^b. */
function powerLaw(points: readonly (readonly [number, number])[]): { readonly a: number; readonly b: number } {
  const logs = points.map(([x, y]) => [Math.log(x), Math.log(y)] as const);
  const mean = (pick: 0 | 1): number => logs.reduce((sum, p) => sum + p[pick], 0) / logs.length;
  const [mx, my] = [mean(0), mean(1)];
  const over = logs.reduce((sum, [x, y]) => sum + (x - mx) * (y - my), 0);
  const b = over / logs.reduce((sum, [x]) => sum + (x - mx) ** 2, 0);
  return { a: Math.exp(my - b * mx), b };
}

/** Exponents over all points, over the first half of them and over the last; the middle one belongs to both. */
function exponents(
  points: readonly (readonly [number, number])[],
): readonly [all: number, first: number, last: number] {
  const half = Math.ceil(points.length / 2);
  return [points, points.slice(0, half), points.slice(-half)].map((part) => powerLaw(part).b) as [
    number,
    number,
    number,
  ];
}

function lawText(label: string, points: readonly (readonly [number, number])[]): string {
  const [all, first, last] = exponents(points).map((b) => b.toFixed(2));
  return `${label}: ${powerLaw(points).a.toPrecision(3)} · depth^${all}; first half ${first}, last half ${last}`;
}

function report(ways: readonly Way[]): void {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const header = ["blocks", ...ways.flatMap(({ label }) => [`${label}, MiB`, "time", "planned in"])];
  console.log([line(header), line(header.map(() => "---:"))].join("\n"));
  for (const [i, { depth }] of (ways[0]?.rows ?? []).entries()) {
    const cells = ways.flatMap(({ rows }) => {
      const row = rows[i];
      return row ? [row.mib.toFixed(2), `${row.slowdown.toFixed(2)} ×`, `${row.seconds.toFixed(1)} s`] : [];
    });
    console.log(line([String(depth), ...cells]));
  }
  for (const { label, rows } of ways) {
    console.log(
      lawText(
        `bytes, ${label} (MiB)`,
        rows.map(({ depth, mib }) => [depth, mib]),
      ),
    );
  }
  for (const { label, rows } of ways) {
    console.log(
      lawText(
        `planning time, ${label} (s)`,
        rows.map(({ depth, seconds }) => [depth, seconds]),
      ),
    );
  }
}

function draw(ways: readonly Way[]): void {
  const all = ways.flatMap(({ rows }) => rows.map(({ mib }) => mib));
  const depths = ways.flatMap(({ rows }) => rows.map(({ depth }) => depth));
  const [first, last] = [Math.min(...depths), Math.max(...depths)];
  const [low, high] = [Math.min(...all) / 1.5, Math.max(...all) * 1.5];
  const series = ways.map(({ label, look, rows }): Series => {
    const points = rows.map(({ depth, mib }) => [depth, mib] as const);
    const [, first, last] = exponents(points);
    return { ...look, label: `${label}: exponent ${first.toFixed(2)}, then ${last.toFixed(2)}`, points };
  });
  const x = { label: "blocks", scale: "log", from: first / 1.2, to: last * 1.2 } as const;
  const y = { label: "arena without weights, MiB", scale: "log", from: low, to: high } as const;
  const panel = {
    title: "chain: memory against depth (both logarithmic)",
    x: { ...x, ticks: doublings(first, last, String) },
    y: { ...y, ticks: doublings(low, high, String) },
    series,
  };
  mkdirSync("docs/figures", { recursive: true });
  writeFileSync("docs/figures/depth.svg", drawFigure("Arena of the chain program against its depth", [panel]));
}

const asked = process.argv.slice(2).map(Number);
for (const depth of asked.length > 0 ? asked : DEPTHS) {
  planDepth(depth);
  process.stderr.write(`depth ${depth} planned\n`);
}
report(Object.values(WAYS));
draw(Object.values(WAYS));
