/** @file Binomial schedules, on the page's own thread: they take no time. */
import { reach, repetitions } from "../../../src/loops/binomial.ts";
import { h, replace, svg } from "../../../src/view/page/dom.ts";
import {
  choice,
  figureNumber,
  fitted,
  type LegendItem,
  legend,
  numbersTable,
  positions,
  slider,
  stage,
  tableSlot,
  verdict,
} from "../kit/figure.ts";
import { type PlotPoint, plotView } from "../kit/plot.ts";
import { type Followed, followed, type Kind, scheduleOf } from "../kit/schedule.ts";
import { firstFigure, startPage } from "../kit/start.ts";
import { countText, decimal } from "../kit/text.ts";

const NAMES: Readonly<Record<Kind, string>> = {
  binomial: "binomial",
  "square-root": "square root",
  binary: "halving",
  online: "online",
  "multi-level": "two levels",
  "store-all": "store all",
};

const KIND_OPTIONS = Object.entries(NAMES).map(([name, text]) => ({ name: name as Kind, text }));

const MARKS: readonly LegendItem[] = [
  { colour: "var(--a)", text: "a state in memory" },
  { colour: "var(--b)", text: "a state on disk" },
  { colour: "var(--text)", text: "running forward" },
  { colour: "var(--c)", text: "reversed", square: true },
];

interface Setting {
  readonly kind: Kind;
  readonly steps: number;
  readonly slots: number;
}

const FIRST: Setting = { kind: "binomial", steps: 35, slots: 4 };

const BOX = { left: 44, right: 8, top: 8, bottom: 34 } as const;

/** The drawing of a schedule up to a column. */
function drawingOf(
  { schedule, columns, kept, moves, recomputedSteps }: Followed,
  width: number,
  now: number,
): SVGElement {
  const { steps } = schedule;
  const height = Math.round(Math.max(260, Math.min(430, steps * 9)));
  const [w, tall] = [width - BOX.left - BOX.right, height - BOX.top - BOX.bottom];
  const x = (column: number): number => BOX.left + (column / columns) * w;
  const y = (step: number): number => BOX.top + tall - (step / steps) * tall;
  const unit = tall / steps;
  const states = kept.flatMap(({ step, level, from, to }): readonly SVGElement[] => {
    if (from > now) return [];
    const colour = level === 0 ? "var(--a)" : "var(--b)";
    const line = { x1: x(from), x2: Math.max(x(from) + 2, x(Math.min(to, now + 1))), y1: y(step), y2: y(step) };
    return [
      svg("line", {
        ...line,
        class: "kept-line",
        "stroke-width": Math.min(4, Math.max(2, unit * 0.4)),
        style: `--series:${colour}`,
      }),
    ];
  });
  const done = moves.filter(({ column }) => column <= now);
  const marks = done.map(({ column, kind, from, to }): SVGElement => {
    if (kind === "forward") {
      const stroke = Math.min(2.4, Math.max(1.1, (w / columns) * 0.6));
      return svg("line", {
        x1: x(column),
        x2: x(column + 1),
        y1: y(from),
        y2: y(to),
        class: "run",
        "stroke-width": stroke,
      });
    }
    const size = { x: x(column), y: y(to), width: Math.max(2.2, w / columns), height: Math.max(2, y(from) - y(to)) };
    return svg("rect", { ...size, class: "back" });
  });
  const text = (px: number, py: number, what: string, anchor: string): SVGElement =>
    svg("text", { x: px, y: py, "text-anchor": anchor, class: "tick" }, what);
  const ticks = [0, Math.round(steps / 2), steps].map((step) => text(BOX.left - 8, y(step) + 4, String(step), "end"));
  const about = `${schedule.name}: ${steps} steps reversed in ${columns} moves, ${recomputedSteps} forward steps beyond one each.`;
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, class: "schedule", role: "img", "aria-label": about },
    svg("path", {
      d: `M${BOX.left} ${BOX.top}V${height - BOX.bottom}H${width - BOX.right}`,
      class: "axis",
      fill: "none",
    }),
    ...[...ticks, ...states, ...marks],
    svg("line", { x1: x(now + 1), x2: x(now + 1), y1: BOX.top, y2: height - BOX.bottom, class: "cursor" }),
    text(width - BOX.right, height - 10, "moves", "end"),
    text(BOX.left, height - 10, "step of the loop, upwards", "start"),
  );
}

const tile = (key: string, value: number, text: string, name: string): HTMLElement =>
  h("div", { class: "tile" }, figureNumber(key, value, text), h("span", {}, name));

function tilesOf({
  schedule,
  forwardSteps,
  recomputedSteps,
  peakSnapshots,
  mostRuns,
  cost,
}: Followed): readonly HTMLElement[] {
  const ratio = forwardSteps / Math.max(1, schedule.steps);
  const isCosted = schedule.levels.some(({ writeCost, readCost }) => writeCost + readCost > 0);
  return [
    tile("slots", peakSnapshots, countText(peakSnapshots), "states kept at most"),
    tile("recomputed", recomputedSteps, countText(recomputedSteps), "forward steps beyond one each"),
    tile("ratio", ratio, decimal(ratio, 2), "forward steps for each step"),
    tile("runs", mostRuns, countText(mostRuns), "runs of one step at most, with the one that reverses it"),
    ...(isCosted ? [tile("cost", cost, countText(cost), "cost, with writes and reads of 2")] : []),
  ];
}

/** All figures depend on the length and the slots. */
function schedulePage(): void {
  let setting = FIRST;
  let now = 0;
  let shown = followed(scheduleOf(setting.kind, setting.steps, setting.slots));
  const box = stage("schedule");
  const [drawing, tiles, told, table] = [
    h("div", { class: "plot" }),
    h("div", { class: "tiles" }),
    verdict(),
    tableSlot(),
  ];
  const others = [reachFigure(), compareFigure()];
  const draw = fitted(drawing, (width) => replace(drawing, drawingOf(shown, width, now)));
  const at = positions({
    ...{ id: "move", label: "Move", count: shown.columns, first: shown.columns - 1 },
    text: (n) => `${n + 1} of ${shown.columns}`,
    shown: (column) => {
      now = column;
      told.say(`Move ${column + 1} of ${shown.columns}: ${shown.words[column] ?? ""}.`);
      draw();
    },
    pause: () => Math.max(24, Math.min(220, 12_000 / shown.columns)),
  });
  const change = (part: Partial<Setting>): void => {
    setting = { ...setting, ...part };
    shown = followed(scheduleOf(setting.kind, setting.steps, setting.slots));
    at.resize(shown.columns);
    replace(tiles, ...tilesOf(shown));
    slots.input.disabled = setting.kind === "square-root" || setting.kind === "store-all";
    table.show(movesTable(shown));
    at.go(shown.columns - 1);
    for (const draws of others) draws(setting);
  };
  const steps = slider({
    ...{ id: "steps", label: "Steps", min: 2, max: 120, value: setting.steps, text: countText },
    changed: (n) => change({ steps: n }),
  });
  const slots = slider({
    ...{ id: "slots", label: "Slots", min: 1, max: 12, value: setting.slots, text: countText },
    changed: (n) => change({ slots: n }),
  });
  const kinds = choice("Schedule", KIND_OPTIONS, setting.kind, (kind) => change({ kind }));
  const controls = [
    h("div", { class: "controls" }, kinds),
    h("div", { class: "controls" }, steps.element, slots.element),
  ];
  replace(box, ...controls, tiles, legend(MARKS), drawing, at.element, told.element, table.element);
  change({});
  firstFigure();
}

function movesTable({ moves, words }: Followed): HTMLElement {
  const rows = moves.map(({ column }, i) => ({ cells: [String(column + 1), words[i] ?? ""] }));
  return numbersTable("the moves of the schedule", ["move", "what happens"], rows);
}

const [SLOTS, REPETITIONS] = [8, 7] as const;

/** The table of β. */
function reachFigure(): (setting: Setting) => void {
  const box = stage("reach");
  const place = h("div", {
    class: "scroll",
    tabindex: 0,
    role: "region",
    "aria-label": "lengths by slots and repetitions",
  });
  const told = verdict();
  replace(box, place, told.element);
  return ({ steps, slots }) => {
    const least = repetitions(steps, slots);
    const rows = Array.from({ length: SLOTS }, (_, i) => {
      const s = i + 1;
      const cells = Array.from({ length: REPETITIONS + 1 }, (__, r) => {
        const here = s === slots && r === least;
        return h("td", { class: here ? "here" : null, "aria-current": here ? "true" : null }, countText(reach(s, r)));
      });
      return h("tr", {}, h("th", { scope: "row" }, `${s} slot${s === 1 ? "" : "s"}`), ...cells);
    });
    const heads = Array.from({ length: REPETITIONS + 1 }, (_, r) => h("th", { scope: "col" }, String(r)));
    const head = h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "repetitions"), ...heads));
    replace(place, h("table", { class: "reach" }, head, h("tbody", {}, ...rows)));
    told.say(
      `${slots} slot${slots === 1 ? "" : "s"} reach `,
      figureNumber("reach", reach(slots, least), countText(reach(slots, least))),
      ` steps in ${least} repetitions, enough for ${steps}; in ${Math.max(0, least - 1)} they reach ${countText(reach(slots, least - 1))}.`,
    );
  };
}

const COMPARED = [
  ["binomial", "var(--a)"],
  ["online", "var(--c)"],
  ["binary", "var(--d)"],
] as const;

/** Counts of schedules by slots. */
function compareFigure(): (setting: Setting) => void {
  const box = stage("compare");
  const [plot, table] = [plotView(), tableSlot()];
  const root = { colour: "var(--quiet)", text: "square root, which takes as many slots as it needs", dashed: true };
  replace(
    box,
    legend([...COMPARED.map(([kind, colour]) => ({ colour, text: NAMES[kind] })), root]),
    plot.element,
    table.element,
  );
  return ({ steps, slots }) => {
    const all = Array.from({ length: 12 }, (_, i) => i + 1);
    const count = (kind: Kind, s: number): number => followed(scheduleOf(kind, steps, s)).recomputedSteps;
    const lines = COMPARED.map(([kind, colour]) => {
      return { name: NAMES[kind], colour, points: all.map((s): PlotPoint => [s, count(kind, s)]) };
    });
    const level = { y: count("square-root", 1), text: "square root", colour: "var(--quiet)" };
    const most = Math.max(...lines.map(({ points }) => points[1]?.[1] ?? 0), level.y, 1);
    const isSteep = most > 6 * Math.max(1, level.y);
    plot.show({
      x: { label: "slots", text: countText, ticks: all, from: 1, to: 12 },
      y: { label: "forward steps beyond one each", text: countText, to: (isSteep ? most : most * 1.1) || 1 },
      series: lines.map((line) => ({ ...line, points: line.points.filter(([, y]) => y <= most) })),
      ...{ levels: [level], cursor: slots },
      about: `Forward steps beyond one each for ${steps} steps: ${lines.map(({ name, points }) => `${name} with ${slots} slots ${points[slots - 1]?.[1]}`).join(", ")}, square root ${level.y}.`,
    });
    const rows = all.map((s, i) => ({
      cells: [String(s), ...lines.map(({ points }) => countText(points[i]?.[1] ?? 0))],
    }));
    table.show(
      numbersTable(`forward steps beyond one each, ${steps} steps`, ["slots", ...lines.map(({ name }) => name)], rows),
    );
  };
}

startPage([schedulePage]);
