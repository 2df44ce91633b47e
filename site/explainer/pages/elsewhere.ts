/** @file Inverses, fewer bits, other memories, strips. */
import { h, replace } from "../../../src/view/page/dom.ts";
import type { InverseBytes, KeptBits, RoundingError, Strips } from "../engine/elsewhere.ts";
import type { BudgetFigures, SpilledFigures } from "../engine/spill.ts";
import { createEngine } from "../kit/engine.ts";
import { choice, figureNumber, legend, numbersTable, slider, stage, tableSlot, verdict } from "../kit/figure.ts";
import { barsView, type PlotPoint, plotView } from "../kit/plot.ts";
import { aboutToBeSeen, firstFigure, startPage } from "../kit/start.ts";
import { bytesText, bytesTick, countText, percentText, ratioText } from "../kit/text.ts";

const [first, second] = [createEngine(), createEngine()];

const DEPTHS = [1, 2, 4, 6, 8, 12, 16] as const;

async function inverse(): Promise<void> {
  const box = stage("inverse");
  const [plot, told, table] = [plotView(), verdict(), tableSlot()];
  const rows: (readonly [number, InverseBytes])[] = [];
  const keys = legend([
    { colour: "var(--b)", text: "everything stored" },
    { colour: "var(--c)", text: "rebuilt by inverses" },
  ]);
  replace(box, keys, plot.element, told.element, table.element);
  for (const depth of DEPTHS) {
    rows.push([depth, await first.call("inverseBytes", depth)]);
    if (rows.length < 2) continue;
    const line = (of: (one: InverseBytes) => number): readonly PlotPoint[] => rows.map(([x, one]) => [x, of(one)]);
    plot.show({
      x: { label: "coupled blocks", text: countText, ticks: DEPTHS, from: 0, to: 16 },
      y: { label: "arena", text: bytesTick, binary: true },
      series: [
        { name: "stored", colour: "var(--b)", points: line((one) => one.storedBytes) },
        { name: "inverses", colour: "var(--c)", points: line((one) => one.inverseBytes) },
      ],
      about: rows
        .map(
          ([x, one]) =>
            `${x} blocks: ${bytesText(one.storedBytes)} stored, ${bytesText(one.inverseBytes)} with inverses`,
        )
        .join("; "),
    });
    firstFigure();
  }
  const [depth, last] = rows.at(-1) ?? [];
  if (!last) return;
  told.say(
    ...[
      `${depth} blocks: `,
      figureNumber("inverse.stored", last.storedBytes, bytesText(last.storedBytes)),
      " stored, ",
    ],
    ...[figureNumber("inverse.bytes", last.inverseBytes, bytesText(last.inverseBytes)), " with inverses, for "],
    ...[figureNumber("inverse.time", last.slowdown, ratioText(last.slowdown)), " the predicted time."],
  );
  const cells = rows.map(([x, one]) => ({
    cells: [String(x), bytesText(one.storedBytes), bytesText(one.inverseBytes), ratioText(one.slowdown)],
  }));
  table.show(numbersTable("bytes by depth", ["blocks", "everything stored", "with inverses", "time"], cells));
}

const BITS: readonly KeptBits[] = [32, 8, 4, 2, 1];

interface Rounded {
  readonly bits: KeptBits;
  readonly bytes: number;
  readonly error: RoundingError | null;
}

function drawRounded(rows: readonly Rounded[], bars: ReturnType<typeof barsView>): void {
  const shown = rows.map(({ bits, bytes, error }) => {
    const name = bits === 32 ? "32 bits, as they are" : `${bits} bit${bits === 1 ? "" : "s"}`;
    const exact = bits === 32 ? ", exact" : "";
    const off = error ? `, gradients off by ${percentText(error.relative)}` : exact;
    return {
      name,
      parts: [{ name, value: bytes, colour: bits === 32 ? "var(--b)" : "var(--c)" }],
      text: `${bytesText(bytes)}${off}`,
    };
  });
  bars.show(shown, `The arena by bits: ${shown.map(({ name, text }) => `${name}, ${text}`).join("; ")}.`);
}

async function lossy(): Promise<void> {
  const box = stage("lossy");
  const [bars, told, table] = [barsView(), verdict(), tableSlot()];
  replace(box, bars.element, told.element, table.element);
  const rows: Rounded[] = [];
  for (const bits of BITS) {
    rows.push({ bits, bytes: await second.call("lossyBytes", bits), error: null });
    drawRounded(rows, bars);
  }
  const [whole, eight] = rows;
  if (!whole || !eight) return;
  told.say(
    ...["From ", figureNumber("lossy.32", whole.bytes, bytesText(whole.bytes)), " to "],
    ...[
      figureNumber("lossy.8", eight.bytes, bytesText(eight.bytes)),
      " with 8 bits. Below that little is gained: what is left are weights, gradients and workspace.",
    ],
  );
  const draw = (): void => {
    drawRounded(rows, bars);
    table.show(roundedTable(rows));
  };
  draw();
  void aboutToBeSeen("lossy").then(() => measureErrors(rows, draw));
}

function roundedTable(rows: readonly Rounded[]): HTMLElement {
  const cells = rows.map(({ bits, bytes, error }) => {
    const unknown = bits === 32 ? ["0", "1"] : ["…", "…"];
    const off = error ? [percentText(error.relative), error.cosine.toFixed(6)] : unknown;
    return { cells: [String(bits), bytesText(bytes), ...off] };
  });
  return numbersTable("bytes and errors by bits", ["bits", "arena", "gradient off by", "cosine of the angle"], cells);
}

/** The program runs for each, which takes seconds. */
async function measureErrors(rows: Rounded[], draw: () => void): Promise<void> {
  for (const [i, row] of rows.entries()) {
    if (row.bits === 32) continue;
    rows[i] = { ...row, error: await second.call("roundingError", row.bits) };
    draw();
  }
}

const SHARE = 0.6;
/** Bytes a second, twice as many each. */
const RATES = [2, 3, 4, 5, 6, 7].map((power) => 12.5e6 * 2 ** power);

const rateText = (rate: number): string =>
  rate >= 1e9 ? `${Number((rate / 1e9).toPrecision(2))} GB/s` : `${Math.round(rate / 1e6)} MB/s`;

interface Spilling {
  readonly base: BudgetFigures;
  readonly rows: readonly (readonly [number, SpilledFigures])[];
  readonly rate: number;
}

function drawSpilled({ base, rows, rate }: Spilling, plot: ReturnType<typeof plotView>): void {
  const ratio = (ms: number): number => ms / base.stored.predictedMs;
  const recomputed = ratio(base.recomputed.predictedMs);
  const moved = rows.flatMap(([x, one]): readonly PlotPoint[] =>
    one.moved ? [[x, ratio(one.moved.predictedMs)]] : [],
  );
  plot.show({
    x: {
      label: "bandwidth each way",
      log: true,
      text: rateText,
      ticks: RATES,
      from: RATES[0] ?? 1,
      to: RATES.at(-1) ?? 2,
    },
    y: {
      label: "time over everything stored",
      text: (y) => `${Number(y.toFixed(2))} ×`,
      from: 0.9,
      to: Math.max(1.7, recomputed * 1.3),
    },
    series: [
      { name: "moving", colour: "var(--d)", points: moved.filter(([, y]) => y < 1.7) },
      { name: "both", colour: "var(--c)", points: rows.map(([x, one]): PlotPoint => [x, ratio(one.both.predictedMs)]) },
    ],
    levels: [{ y: recomputed, text: "recomputing alone", colour: "var(--a)" }],
    cursor: rows.some(([x]) => x === rate) ? rate : null,
    about: `Time over everything stored. Recomputing alone ${ratioText(recomputed)}; ${rows.map(([x, one]) => `${rateText(x)}: both ${ratioText(ratio(one.both.predictedMs))}`).join(", ")}.`,
  });
}

async function spill(): Promise<void> {
  const box = stage("spill");
  const [plot, told, table] = [plotView(), verdict(), tableSlot()];
  let rate = RATES[2] ?? 0;
  const rows: (readonly [number, SpilledFigures])[] = [];
  let base: BudgetFigures | null = null;
  const draw = (): void => {
    if (!base || rows.length < 2) return;
    drawSpilled({ base, rows, rate }, plot);
    const { stored, recomputed, budgetBytes } = base;
    const [, here] = rows.find(([x]) => x === rate) ?? [];
    if (!here) return;
    const share = (ms: number): number => ms / stored.predictedMs;
    told.say(
      ...[`In ${bytesText(budgetBytes)}, at ${rateText(rate)}: recomputing alone takes `],
      ...[
        figureNumber("spill.recomputed", share(recomputed.predictedMs), ratioText(share(recomputed.predictedMs))),
        " the time, moving alone ",
      ],
      ...[
        here.moved
          ? figureNumber("spill.moved", share(here.moved.predictedMs), ratioText(share(here.moved.predictedMs)))
          : "does not fit",
      ],
      ...[
        ", the better of both for each value ",
        figureNumber("spill.both", share(here.both.predictedMs), ratioText(share(here.both.predictedMs))),
        ".",
      ],
    );
  };
  const control = slider({
    ...{ id: "rate", label: "Bandwidth", min: 0, max: RATES.length - 1, value: 2 },
    text: (i) => rateText(RATES[i] ?? 0),
    changed: (i) => {
      rate = RATES[i] ?? 0;
      draw();
    },
  });
  const keys = legend([
    { colour: "var(--a)", text: "recomputing alone", dashed: true },
    { colour: "var(--d)", text: "moving alone" },
    { colour: "var(--c)", text: "whichever is faster for each value" },
  ]);
  replace(box, h("div", { class: "controls" }, control.element), keys, plot.element, told.element, table.element);
  base = await first.call("recomputedFigures", SHARE);
  const { stored } = base;
  for (const one of RATES) {
    rows.push([one, await first.call("spilledFigures", one, SHARE)]);
    draw();
  }
  const text = (ms: number | undefined): string =>
    ms === undefined ? "does not fit" : ratioText(ms / stored.predictedMs);
  const cells = rows.map(([x, one]) => ({
    cells: [rateText(x), text(base?.recomputed.predictedMs), text(one.moved?.predictedMs), text(one.both.predictedMs)],
  }));
  table.show(numbersTable("time over everything stored", ["bandwidth", "recomputing", "moving", "both"], cells));
}

const VOCABULARIES = [
  { name: "1024", text: "1,024 words" },
  { name: "4096", text: "4,096" },
  { name: "16384", text: "16,384" },
  { name: "50257", text: "50,257" },
] as const;

async function strips(): Promise<void> {
  const box = stage("strips");
  const [bars, told] = [barsView(), verdict()];
  const known = new Map<string, Strips>();
  let wanted = "";
  const show = async (vocabulary: string): Promise<void> => {
    wanted = vocabulary;
    const cut = known.get(vocabulary) ?? (await second.call("strips", Number(vocabulary)));
    known.set(vocabulary, cut);
    if (wanted !== vocabulary) return;
    const bar = (name: string, value: number, colour: string) => ({
      name,
      parts: [{ name, value, colour }],
      text: bytesText(value),
    });
    const shown = [
      bar("logits of all positions", cut.logitBytes, "var(--quiet)"),
      bar("arena, whole", cut.storedBytes, "var(--b)"),
      bar(`arena, in ${cut.strips} strips`, cut.stripBytes, "var(--c)"),
    ];
    bars.show(shown, shown.map(({ name, text }) => `${name}: ${text}`).join("; "));
    told.say(
      ...[figureNumber("strips.whole", cut.storedBytes, bytesText(cut.storedBytes)), " whole, "],
      ...[figureNumber("strips.cut", cut.stripBytes, bytesText(cut.stripBytes)), " in strips, for "],
      ...[figureNumber("strips.time", cut.slowdown, ratioText(cut.slowdown)), " the predicted time."],
    );
  };
  const pick = choice("Vocabulary", VOCABULARIES, "16384", (name) => void show(name));
  replace(box, h("div", { class: "controls" }, pick), bars.element, told.element);
  await show("16384");
}

startPage([
  async () => {
    await inverse();
    void aboutToBeSeen("spill").then(spill);
  },
  async () => {
    await strips();
    await lossy();
  },
]);
