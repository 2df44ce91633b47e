/** @file Why memory explodes. */
import { h, replace } from "../../../src/view/page/dom.ts";
import type { AttentionBytes, Growth, StepBytes } from "../engine/explosion.ts";
import { createEngine, latest } from "../kit/engine.ts";
import {
  choice,
  figureNumber,
  legend,
  numbersTable,
  type Says,
  slider,
  stage,
  tableSlot,
  verdict,
} from "../kit/figure.ts";
import { barsView, type PlotPoint, type PlotView, plotView } from "../kit/plot.ts";
import { firstFigure, startPage } from "../kit/start.ts";
import { bytesText, bytesTick, countText, percentText, ratioText } from "../kit/text.ts";

const [growing, attending, stepping] = [createEngine(), createEngine(), createEngine()];

const BASE = { depth: 8, batch: 256, width: 64 } as const;
const SIZES = { depth: [1, 2, 4, 8, 16, 32], batch: [16, 64, 256, 1024, 4096] } as const;
type Axis = keyof typeof SIZES;

interface Shown {
  readonly axis: Axis;
  readonly axes: Axes;
}

const AXES = [
  { name: "linear", text: "linear" },
  { name: "doubling", text: "doubling" },
] as const;
type Axes = (typeof AXES)[number]["name"];

type GrowthRows = readonly (readonly [number, Growth])[];

function drawGrowth({ axis, axes }: Shown, rows: GrowthRows, plot: PlotView): void {
  const log = axes === "doubling";
  const line = (of: (one: Growth) => number): readonly PlotPoint[] => rows.map(([x, one]) => [x, of(one)]);
  const last = rows.at(-1);
  const [first] = rows;
  if (!first || !last) return;
  const sizes = SIZES[axis];
  const proportional = sizes.map((x): PlotPoint => [x, (last[1].trainingBytes * x) / last[0]]);
  plot.show({
    x: { label: axis, log, text: countText, ticks: sizes, from: log ? (sizes[0] ?? 1) : 0, to: sizes.at(-1) ?? 1 },
    y: { label: "bytes", log, text: bytesTick, binary: true },
    series: [
      { name: "proportional", colour: "var(--quiet)", dashed: true, bare: true, points: proportional },
      { name: "loss and gradients", colour: "var(--b)", points: line((one) => one.trainingBytes) },
      { name: "loss alone", colour: "var(--a)", points: line((one) => one.forwardBytes) },
      { name: "weights", colour: "var(--d)", points: line((one) => one.weightBytes) },
    ],
    about: `Bytes by ${axis}. With gradients ${rows.map(([x, one]) => `${countText(x)}: ${bytesText(one.trainingBytes)}`).join(", ")}.`,
  });
}

function growthTable(axis: Axis, rows: GrowthRows): HTMLElement {
  const cells = rows.map(([x, { trainingBytes, forwardBytes, weightBytes }]) => ({
    cells: [countText(x), bytesText(trainingBytes), bytesText(forwardBytes), bytesText(weightBytes)],
  }));
  return numbersTable(`bytes by ${axis}`, [axis, "loss and gradients", "loss alone", "weights"], cells);
}

async function depth(): Promise<void> {
  const box = stage("depth");
  const [plot, told, table] = [plotView(), verdict(), tableSlot()];
  let shown: Shown = { axis: "depth", axes: "linear" };
  const known = new Map<string, Growth>();
  const show = async (part: Partial<Shown>): Promise<void> => {
    shown = { ...shown, ...part };
    const mine = shown;
    const { axis } = mine;
    const rows: (readonly [number, Growth])[] = [];
    for (const x of SIZES[axis]) {
      const size = { ...BASE, [axis]: x };
      const key = JSON.stringify(size);
      const growth = known.get(key) ?? (await growing.call("growth", size));
      known.set(key, growth);
      if (shown !== mine) return;
      rows.push([x, growth]);
      if (rows.length < 2) continue;
      drawGrowth(mine, rows, plot);
      firstFigure();
    }
    table.show(growthTable(axis, rows));
    const [from, to] = [rows[0], rows.at(-1)];
    if (!from || !to) return;
    const factor = to[1].trainingBytes / to[1].forwardBytes;
    told.say(
      ...[
        `At ${axis} ${countText(to[0])} a step with gradients takes `,
        figureNumber("training", to[1].trainingBytes, bytesText(to[1].trainingBytes)),
      ],
      ...[", ", figureNumber("factor", factor, ratioText(factor)), " the loss alone, for "],
      ...[figureNumber("weights", to[1].weightBytes, bytesText(to[1].weightBytes)), " of weights."],
    );
  };
  const options = [
    { name: "depth", text: "depth" },
    { name: "batch", text: "batch" },
  ] as const;
  const keys = legend([
    { colour: "var(--b)", text: "loss and gradients" },
    { colour: "var(--a)", text: "loss alone" },
    { colour: "var(--d)", text: "weights" },
    { colour: "var(--quiet)", text: "in proportion", dashed: true },
  ]);
  const pick = choice("Grow the", options, "depth", (axis) => void show({ axis }));
  const scale = choice("Axes", AXES, "linear", (axes) => void show({ axes }));
  replace(box, h("div", { class: "controls" }, pick, scale), keys, plot.element, told.element, table.element);
  await show({});
}

const LENGTHS = [64, 128, 256, 512, 1024, 2048, 4096, 8192] as const;
const HEAD_WIDTH = 64;

interface Lengths {
  readonly rows: readonly (readonly [number, AttentionBytes])[];
  readonly length: number;
  readonly log: boolean;
}

function drawAttention({ rows, length, log }: Lengths, plot: PlotView, told: Says): void {
  const line = (of: (one: AttentionBytes) => number): readonly PlotPoint[] => rows.map(([x, one]) => [x, of(one)]);
  const square = { name: "one matrix", colour: "var(--quiet)", dashed: true, bare: true };
  const texts = rows.map(([x, { wholeBytes, fusedBytes }]) => {
    return `${countText(x)}: written out ${bytesText(wholeBytes)}, as one operation ${bytesText(fusedBytes)}`;
  });
  plot.show({
    x: { label: "positions T", log, text: countText, ticks: LENGTHS, from: log ? 64 : 0, to: 8192 },
    y: { label: "bytes", log, text: bytesTick, binary: true },
    series: [
      { name: "written out", colour: "var(--b)", points: line((one) => one.wholeBytes) },
      { name: "one operation", colour: "var(--c)", points: line((one) => one.fusedBytes) },
      { ...square, points: line((one) => one.squareBytes) },
    ],
    cursor: rows.some(([x]) => x === length) ? length : null,
    about: `Bytes by length. ${texts.join("; ")}.`,
  });
  const [, here] = rows.find(([x]) => x === length) ?? [];
  if (!here) return;
  const ratio = here.wholeBytes / here.fusedBytes;
  told.say(
    ...[`${countText(length)} positions: `, figureNumber("whole", here.wholeBytes, bytesText(here.wholeBytes))],
    ...[" written out, ", figureNumber("fused", here.fusedBytes, bytesText(here.fusedBytes)), " as one operation, "],
    ...[figureNumber("attention.ratio", ratio, ratioText(ratio)), " less. One matrix alone is "],
    ...[bytesText(here.squareBytes), "."],
  );
}

async function attention(): Promise<void> {
  const box = stage("attention");
  const [plot, told, table] = [plotView(), verdict(), tableSlot()];
  const rows: (readonly [number, AttentionBytes])[] = [];
  let [length, log] = [2048, false];
  const draw = (): void => drawAttention({ rows, length, log }, plot, told);
  const control = slider({
    ...{ id: "length", label: "Positions", min: 6, max: 13, value: 11 },
    text: (power) => countText(2 ** power),
    changed: (power) => {
      length = 2 ** power;
      draw();
    },
  });
  const keys = legend([
    { colour: "var(--b)", text: "written out" },
    { colour: "var(--c)", text: "as one operation" },
    { colour: "var(--quiet)", text: "one T × T matrix", dashed: true },
  ]);
  const scale = choice("Axes of lengths", AXES, "linear", (axes) => {
    log = axes === "doubling";
    draw();
  });
  replace(
    box,
    h("div", { class: "controls" }, control.element, scale),
    keys,
    plot.element,
    told.element,
    table.element,
  );
  for (const x of LENGTHS) {
    rows.push([x, await attending.call("attentionBytes", x, HEAD_WIDTH)]);
    if (rows.length > 1) draw();
  }
  const cells = rows.map(([x, one]) => ({
    cells: [countText(x), bytesText(one.wholeBytes), bytesText(one.fusedBytes), bytesText(one.squareBytes)],
  }));
  table.show(numbersTable("bytes by length", ["positions", "written out", "one operation", "one matrix"], cells));
}

const PARTS = ["var(--a)", "var(--b)", "var(--c)", "var(--d)"] as const;

async function step(): Promise<void> {
  const box = stage("step");
  const [bars, told] = [barsView(), verdict()];
  const planned = latest((batch: number, time: number, blocks: number) =>
    stepping.call("stepBytes", { batch, time, blocks, width: 128 }),
  );
  const busy = h("span", { class: "waits", role: "status" });
  const show = (bytes: StepBytes): void => {
    const shown = bytes.parts.map(({ name, bytes: value }, i) => {
      return { name, parts: [{ name, value, colour: PARTS[i] ?? "" }], text: bytesText(value) };
    });
    const most = Math.max(...bytes.parts.map((part) => part.bytes));
    bars.show(shown, `The fullest moment: ${shown.map(({ name, text }) => `${name} ${text}`).join(", ")}.`, most);
    const kept = bytes.parts[1]?.bytes ?? 0;
    const share = kept / bytes.arenaBytes;
    told.say(
      ...["The arena takes ", figureNumber("step.arena", bytes.arenaBytes, bytesText(bytes.arenaBytes))],
      ...[", ", figureNumber("step.share", share, percentText(share)), " of it activations."],
    );
  };
  const ask = async (): Promise<void> => {
    busy.textContent = "planning …";
    const bytes = await planned(2 ** batch.value(), 2 ** time.value(), blocks.value());
    if (!bytes) return;
    busy.textContent = "";
    show(bytes);
  };
  const power = (id: string, label: string, range: readonly [number, number, number]) =>
    slider({
      ...{ id, label, min: range[0], max: range[1], value: range[2] },
      text: (n) => countText(2 ** n),
      changed: () => void ask(),
    });
  const [batch, time] = [power("batch", "Batch", [0, 6, 3]), power("time", "Positions", [5, 10, 7])];
  const blocks = slider({
    ...{ id: "blocks", label: "Blocks", min: 1, max: 6, value: 2 },
    text: String,
    changed: () => void ask(),
  });
  const controls = h("div", { class: "controls" }, batch.element, time.element, blocks.element);
  replace(box, controls, bars.element, told.element, busy);
  await ask();
}

startPage([depth, attention, step]);
