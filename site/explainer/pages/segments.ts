/** @file Segments and the square root. */
import { h, replace } from "../../../src/view/page/dom.ts";
import { liveColumns } from "../../../src/view/picture.ts";
import type { RootGrowth, SegmentPlan } from "../engine/segments.ts";
import { createEngine, latest } from "../kit/engine.ts";
import { figureNumber, legend, numbersTable, slider, stage, tableSlot, verdict } from "../kit/figure.ts";
import { barsView, type PlotPoint, plotView } from "../kit/plot.ts";
import { aboutToBeSeen, firstFigure, startPage } from "../kit/start.ts";
import { bytesText, bytesTick, countText, decimal, percentText, ratioText } from "../kit/text.ts";

const [planning, growing] = [createEngine(), createEngine()];

const SIZE = { depth: 24, batch: 256, width: 32 } as const;
const STATE_BYTES = SIZE.batch * SIZE.width * 4;
const FIRST_EVERY = 4;
/** Lengths of segments that are planned without being asked for; 0 is everything stored. */
const FIRST_PLANNED = [0, FIRST_EVERY, 1, SIZE.depth] as const;
const THEN_PLANNED = [2, 3, 6, 8, 12] as const;

/** Live bytes of a plan at each step. */
function liveOf({ entry }: SegmentPlan): readonly number[] {
  const kinds = liveColumns(entry.picture);
  return Array.from({ length: entry.picture.columns - 1 }, (_, t) =>
    kinds.reduce((sum, live) => sum + (live[t] ?? 0), 0),
  );
}

const lineOf = (plan: SegmentPlan, columns: number): readonly PlotPoint[] => {
  const live = liveOf(plan);
  const last = live.at(-1) ?? 0;
  return [...live.map((bytes, t): PlotPoint => [(t / live.length) * columns, bytes]), [columns, last]];
};

interface Every {
  readonly plans: ReadonlyMap<number, SegmentPlan>;
  readonly every: number;
}

function drawLive({ plans, every }: Every, plot: ReturnType<typeof plotView>): void {
  const [stored, chosen] = [plans.get(0), plans.get(every)];
  const series = [
    ...(stored
      ? [{ name: "stored", colour: "var(--quiet)", points: lineOf(stored, 100), bare: true, dashed: true }]
      : []),
    ...(chosen ? [{ name: "segments", colour: "var(--a)", points: lineOf(chosen, 100), area: true }] : []),
  ];
  plot.show({
    x: { label: "the step, from its beginning to its end", text: (x) => `${x} %`, from: 0, to: 100 },
    y: {
      label: "bytes alive",
      text: bytesTick,
      binary: true,
      to: Math.max(chosen?.arenaBytes ?? 0, stored?.arenaBytes ?? 0) * 1.05,
    },
    ...{ series, height: 230 },
    about: `Live bytes over the step with a state every ${every} blocks: at most ${bytesText(chosen?.arenaBytes ?? 0)}; with everything stored ${bytesText(stored?.arenaBytes ?? 0)}.`,
  });
}

/** `n/k + c k` states and what is there besides, through the plans at both ends; c is what a block keeps, in states. */
function countedBytes(one: number, all: number): { readonly c: number; at(every: number): number } {
  const { depth } = SIZE;
  const c = 1 + (all - one) / (STATE_BYTES * (depth - 1));
  const base = one - (depth + c) * STATE_BYTES;
  return { c, at: (every) => base + (depth / every + c * every) * STATE_BYTES };
}

function drawArenas({ plans, every }: Every, plot: ReturnType<typeof plotView>): void {
  const known = [...plans.values()].filter((plan) => plan.every > 0).sort((a, b) => a.every - b.every);
  const [one, all] = [plans.get(1), plans.get(SIZE.depth)];
  if (known.length < 2) return;
  const count = one && all ? countedBytes(one.arenaBytes, all.arenaBytes) : null;
  const counted = count ? Array.from({ length: SIZE.depth }, (_, i): PlotPoint => [i + 1, count.at(i + 1)]) : [];
  plot.show({
    x: {
      label: "blocks a segment, k",
      log: true,
      text: countText,
      ticks: [1, 2, 3, 4, 6, 8, 12, 24],
      from: 1,
      to: SIZE.depth,
    },
    y: { label: "arena", text: bytesTick, binary: true },
    series: [
      { name: "n/k + c k", colour: "var(--quiet)", dashed: true, bare: true, points: counted },
      { name: "plans", colour: "var(--a)", points: known.map((plan): PlotPoint => [plan.every, plan.arenaBytes]) },
    ],
    ...{ cursor: plans.has(every) ? every : null, height: 250 },
    about: `Arena by length of segments: ${known.map((plan) => `${plan.every}: ${bytesText(plan.arenaBytes)}`).join(", ")}.`,
  });
}

function everyTable(plans: ReadonlyMap<number, SegmentPlan>): HTMLElement {
  const rows = [...plans.values()]
    .sort((a, b) => a.every - b.every)
    .map(({ every, arenaBytes, predictedMs }) => ({
      cells: [every === 0 ? "everything stored" : String(every), bytesText(arenaBytes), `${predictedMs.toFixed(2)} ms`],
    }));
  return numbersTable("plans by length of segments", ["blocks a segment", "arena", "predicted time"], rows);
}

function wordsOf({ plans, every: k }: Every): readonly (HTMLElement | string)[] {
  const [plan, stored, one, all] = [k, 0, 1, SIZE.depth].map((each) => plans.get(each));
  if (!plan || !stored) return [];
  const more = plan.predictedMs / stored.predictedMs - 1;
  const words = [
    ...[
      `A state every ${k === 1 ? "block" : `${k} blocks`}: `,
      figureNumber("segment.arena", plan.arenaBytes, bytesText(plan.arenaBytes)),
    ],
    ...[" instead of ", figureNumber("segment.stored", stored.arenaBytes, bytesText(stored.arenaBytes))],
    ...[", for ", figureNumber("segment.more", more, percentText(more)), " more time."],
  ];
  if (!one || !all) return words;
  const { c } = countedBytes(one.arenaBytes, all.arenaBytes);
  const root = decimal(Math.sqrt(SIZE.depth / c), 1);
  return [...words, " Here c is ", figureNumber("segment.c", c, decimal(c, 2)), `, and √(n/c) is ${root}.`];
}

/** Resolves with what remains to be planned. */
async function every(): Promise<() => Promise<void>> {
  const box = stage("every");
  const [live, arenas, told, table] = [plotView(), plotView(), verdict(), tableSlot()];
  const plans = new Map<number, SegmentPlan>();
  let chosen: number = FIRST_EVERY;
  const draw = (): void => {
    drawLive({ plans, every: chosen }, live);
    drawArenas({ plans, every: chosen }, arenas);
    table.show(everyTable(plans));
    told.say(...wordsOf({ plans, every: chosen }));
  };
  const planned = latest((k: number) => planning.call("segmentPlan", SIZE, k));
  const control = slider({
    ...{ id: "k", label: "Blocks a segment", min: 1, max: SIZE.depth, value: FIRST_EVERY },
    text: (k) => `${k} of ${SIZE.depth}`,
    changed: async (k) => {
      chosen = k;
      const plan = plans.get(k) ?? (await planned(k));
      if (!plan) return;
      plans.set(k, plan);
      draw();
    },
  });
  const keys = legend([
    { colour: "var(--a)", text: "segments of k blocks" },
    { colour: "var(--quiet)", text: "everything stored; below, the count n/k + c k", dashed: true },
  ]);
  replace(
    box,
    h("div", { class: "controls" }, control.element),
    keys,
    live.element,
    told.element,
    arenas.element,
    table.element,
  );
  const plan = async (k: number): Promise<void> => {
    if (!plans.has(k)) plans.set(k, await planning.call("segmentPlan", SIZE, k));
    draw();
    firstFigure();
  };
  for (const k of FIRST_PLANNED) await plan(k);
  return async () => {
    for (const k of THEN_PLANNED) await plan(k);
  };
}

const DEPTHS = [4, 9, 16, 25] as const;

async function root(): Promise<void> {
  const box = stage("root");
  const [plot, told, table] = [plotView(), verdict(), tableSlot()];
  const rows: RootGrowth[] = [];
  const weights = (depth: number): number => 2 * depth * SIZE.width ** 2 * 4;
  const draw = (): void => {
    const line = (of: (row: RootGrowth) => number): readonly PlotPoint[] => rows.map((row) => [row.depth, of(row)]);
    plot.show({
      x: { label: "blocks", text: countText, ticks: DEPTHS, from: 0, to: 26 },
      y: { label: "arena", text: bytesTick, binary: true },
      series: [
        {
          name: "weights",
          colour: "var(--quiet)",
          dashed: true,
          bare: true,
          points: line(({ depth }) => weights(depth)),
        },
        { name: "stored", colour: "var(--b)", points: line((row) => row.storedBytes) },
        { name: "root", colour: "var(--a)", points: line((row) => row.rootBytes) },
      ],
      about: rows
        .map(
          (row) => `${row.depth} blocks: ${bytesText(row.storedBytes)} stored, ${bytesText(row.rootBytes)} in segments`,
        )
        .join("; "),
    });
  };
  const keys = legend([
    { colour: "var(--b)", text: "everything stored" },
    { colour: "var(--a)", text: "segments of √n" },
    { colour: "var(--quiet)", text: "weights and their gradients", dashed: true },
  ]);
  replace(box, keys, plot.element, told.element, table.element);
  for (const depth of DEPTHS) {
    rows.push(await growing.call("rootGrowth", { ...SIZE, depth }));
    if (rows.length > 1) draw();
  }
  const [first, last] = [rows[0], rows.at(-1)];
  if (!first || !last) return;
  const [stored, rooted] = [last.storedBytes / first.storedBytes, last.rootBytes / first.rootBytes];
  told.say(
    ...[
      `From ${first.depth} to ${last.depth} blocks, everything stored grows `,
      figureNumber("root.stored", stored, ratioText(stored)),
    ],
    ...[", segments ", figureNumber("root.segments", rooted, ratioText(rooted)), "."],
  );
  const cells = rows.map((row) => ({
    cells: [String(row.depth), bytesText(row.storedBytes), bytesText(row.rootBytes), bytesText(weights(row.depth))],
  }));
  table.show(
    numbersTable("bytes by depth", ["blocks", "everything stored", "segments of √n", "weights and gradients"], cells),
  );
}

const COMPARED = [
  ["transformer", "Transformer"],
  ["convolutions", "Convolutions"],
  ["unet", "U-Net"],
] as const;

async function auto(): Promise<() => Promise<void>> {
  const box = stage("auto");
  const [bars, told, table] = [barsView(), verdict(), tableSlot()];
  const keys = legend([
    { colour: "var(--b)", text: "segments of √n", square: true },
    { colour: "var(--c)", text: "value by value, in the same bytes", square: true },
  ]);
  replace(box, keys, bars.element, told.element, table.element);
  const shown: Parameters<typeof bars.show>[0][number][] = [];
  const rows: { readonly cells: readonly string[] }[] = [];
  const compare = async ([name, title]: (typeof COMPARED)[number]): Promise<void> => {
    const { stored, root: rooted, auto: own } = await growing.call("rootAndAuto", name);
    const [segments, best] = [rooted.predictedMs / stored.predictedMs - 1, own.predictedMs / stored.predictedMs - 1];
    const bar = (of: string, value: number, colour: string) => {
      return { name: of, parts: [{ name: of, value, colour }], text: `${percentText(value)} more time` };
    };
    const bytes = bytesText(rooted.arenaBytes);
    shown.push(
      bar(`${title} in ${bytes}, segments`, segments, "var(--b)"),
      bar(`${title} in ${bytes}, value by value`, best, "var(--c)"),
    );
    rows.push({
      cells: [
        title,
        bytesText(stored.arenaBytes),
        bytes,
        percentText(segments),
        bytesText(own.arenaBytes),
        percentText(best),
      ],
    });
    bars.show(
      shown,
      `More time than with everything stored: ${shown.map((one) => `${one.name} ${one.text}`).join("; ")}.`,
    );
    if (name !== "transformer") return;
    told.say(
      ...[
        "The transformer takes ",
        figureNumber("auto.stored", stored.arenaBytes, bytesText(stored.arenaBytes)),
        " with everything stored. In ",
      ],
      ...[figureNumber("auto.root", rooted.arenaBytes, bytes), " segments take "],
      ...[
        figureNumber("auto.segments", segments, percentText(segments)),
        " more time, the planner's choice ",
        figureNumber("auto.more", best, percentText(best)),
        ".",
      ],
    );
  };
  const [first, ...others] = COMPARED;
  await compare(first);
  return async () => {
    for (const other of others) await compare(other);
    const heads = ["network", "everything stored", "segments of √n", "more time", "value by value", "more time"];
    table.show(numbersTable("the same bytes", heads, rows));
  };
}

startPage([
  async () => {
    const restOfPlans = await every();
    void aboutToBeSeen("every").then(restOfPlans);
    void aboutToBeSeen("root").then(root);
    void aboutToBeSeen("auto").then(async () => (await auto())());
  },
]);
