/**
 * @file Memory against predicted time for one program, every strategy on the same axes: docs/figures/curve-PROGRAM.svg
 * from what `tidemark curve PROGRAM --json` prints.
 *
 *   npm run figure:curve -- gpt
 *
 * The lower bound reported by `tidemark curve` is drawn as a line. Plans below it are counted and reported: a plan
 * below the bound is a defect of the bound, and the figure must not hide it.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { parseArguments } from "../src/cli/command.ts";
import { type CurvePoint, curve } from "../src/cli/commands/curve.ts";
import { auto, STRATEGIES, storeAll } from "../src/plan/recompute/strategies.ts";
import type { StrategyLook } from "../src/plan/recompute/strategy.ts";
import { type Axis, drawFigure, type Panel, type Series } from "./chart.ts";

interface Curve {
  readonly program: string;
  readonly costModel: string;
  readonly storeAllArenaBytes: number;
  readonly storeAllPredictedMs: number;
  readonly lowerBoundBytes: number;
  readonly points: readonly CurvePoint[];
}

const MIB = 2 ** 20;
/** Slowdowns above this are drawn at the edge, with their number. */
const STEEPEST = 2;

/** How strategies are drawn that say nothing about it. */
const PLAIN: StrategyLook = { colour: 0, mark: "cross", line: "thin" };

const lookOf = (name: string): StrategyLook => STRATEGIES.find((strategy) => strategy.name === name)?.look ?? PLAIN;

async function curveOf(name: string): Promise<Curve> {
  let text = "";
  const args = parseArguments(curve, [name, "--json", "--points", "16"]);
  if (args) await curve.run(args, { out: (t) => (text += t), err: (t) => process.stderr.write(t) });
  return JSON.parse(text) as Curve;
}

/** A strategy whose plans all store everything gets no points. */
function seriesOf(data: Curve): { readonly series: readonly Series[]; readonly idle: readonly string[] } {
  const { storeAllArenaBytes, storeAllPredictedMs } = data;
  const names = [...new Set(data.points.map((p) => p.strategy))].filter((name) => name !== storeAll.name);
  const idle: string[] = [];
  const drawn = names.flatMap((name): Series[] => {
    const own = data.points.filter((p) => p.strategy === name);
    const points = own
      .map((p) => [p.arenaBytes / MIB, p.predictedMs / storeAllPredictedMs] as const)
      .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    if (own.every((p) => p.arenaBytes === storeAllArenaBytes && p.predictedMs === storeAllPredictedMs)) {
      idle.push(name);
      return [];
    }
    const over = points.find(([, slowdown]) => slowdown > STEEPEST);
    const label = over ? `${name}: ${over[1].toFixed(1)} × at ${over[0].toFixed(1)} MiB ↑` : name;
    return [{ ...lookOf(name), label, points, stepped: true }];
  });
  // the one to look at is drawn last, over the others
  const series = drawn.sort((a, b) => Number(a.line === "bold") - Number(b.line === "bold"));
  const all: Series = {
    label: "store-all",
    colour: 0,
    mark: "circle",
    line: "none",
    points: [[storeAllArenaBytes / MIB, 1]],
  };
  return { series: [...series, all], idle };
}

/** Round numbers about `count` apart. */
function linear(label: string, from: number, to: number, count: number, text: (value: number) => string): Axis {
  const raw = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10);
  const first = Math.ceil(from / step);
  const ticks = Array.from({ length: Math.floor(to / step) - first + 1 }, (_, i) => (first + i) * step);
  return { label, scale: "linear", from, to, ticks: ticks.map((value) => [value, text(value)] as const) };
}

function panelOf(data: Curve): { readonly panel: Panel; readonly idle: readonly string[] } {
  const { series, idle } = seriesOf(data);
  const all = series.flatMap((s) => s.points);
  const bytes = [...all.map(([x]) => x), data.lowerBoundBytes / MIB];
  const [least, most] = [Math.min(...bytes), Math.max(...bytes)];
  const slowest = Math.min(STEEPEST, Math.max(...all.map(([, y]) => y)));
  const room = (most - least) * 0.06;
  const digits = most - least < 4 ? 1 : 0;
  const x = linear(
    "budget, MiB: marks are plans, lines what a budget between them gets",
    least - room,
    most + room,
    8,
    (v) => v.toFixed(digits),
  );
  const height = (slowest - 1) * 0.06;
  const y = linear(
    "predicted time over storing everything",
    1 - height,
    slowest + height,
    8,
    (v) => `${v.toFixed(2)} ×`,
  );
  const label = `reported lower bound ${(data.lowerBoundBytes / MIB).toFixed(1)} MiB`;
  const rules = [{ axis: "x", at: data.lowerBoundBytes / MIB, label } as const];
  return { panel: { title: `${data.program}: memory against time`, x, y, series, rules }, idle };
}

for (const name of process.argv.slice(2)) {
  const data = await curveOf(name);
  const { panel, idle } = panelOf(data);
  for (const p of data.points.filter(({ strategy }) => strategy === auto.name)) {
    const [bytes, time] = [p.arenaBytes / data.storeAllArenaBytes, p.predictedMs / data.storeAllPredictedMs];
    console.log(
      `${name} auto ${(p.arenaBytes / MIB).toFixed(2)} MiB, ${bytes.toFixed(3)} × bytes, ${time.toFixed(3)} × time`,
    );
  }
  const below = data.points.filter((p) => p.arenaBytes < data.lowerBoundBytes);
  if (below.length > 0)
    console.log(`${name}: ${below.length} plans are BELOW the reported lower bound ${data.lowerBoundBytes}`);
  if (idle.length > 0) console.log(`${name}: nothing but storing everything was found by ${idle.join(", ")}`);
  mkdirSync("docs/figures", { recursive: true });
  const path = `docs/figures/curve-${name}.svg`;
  writeFileSync(path, drawFigure(`Arena against predicted time of ${name}, by strategy`, [panel]));
  console.log(`${path}, times by ${data.costModel} rates`);
}
