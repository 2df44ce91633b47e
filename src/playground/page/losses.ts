/**
 * @file Two losses over steps, one drawn over the other, and below them the times of steps. The stored run is a wide
 * pale band; the run under the budget is a thin dark line in its middle: as long as no bit differs it never leaves the
 * band.
 *
 *   loss │ ▓▓╲▓▓▓▓▓▓            ms │ ▁▁▁▂▂▂▂▁▁
 *        └──────────── step        └───╎──────  ╎ the plan changed
 */
import { FONT, fitted, MARGIN, plane, type Surface, ticks } from "../../view/page/canvas.ts";
import { h, svg } from "../../view/page/dom.ts";
import type { Theme } from "../../view/page/palette.ts";
import type { StepReport } from "../trainer.ts";

/** Share of the height that losses take. */
const UPPER = 0.66;

/** Steps on either side for the median of measured times. */
const AROUND = 7;

/** Points of a curve. */
const MOST_POINTS = 1500;

export interface Run {
  readonly reports: readonly StepReport[];
  /** Steps after which the plan changed. */
  readonly changes: readonly number[];
  /** The step that training goes to. */
  readonly until: number;
}

/** A run as text. */
export function runText({ reports, changes }: Run): string {
  const last = reports.at(-1);
  if (!last) return "no steps yet";
  const same = reports.every(({ loss, storedLoss }) => Object.is(loss, storedLoss));
  return `loss ${last.loss.toPrecision(6)} after ${last.step} steps and ${changes.length} changes of plan, ${
    same ? "the same bits as" : "not the same as"
  } with everything stored`;
}

/** Which time of a step. */
export type Times = "ms" | "storedMs";

/** The median of the times around a step. */
export function timeAround(reports: readonly StepReport[], at: number, times: Times): number {
  const near = reports.slice(Math.max(0, at - AROUND), at + AROUND + 1).map((report) => report[times]);
  return near.sort((a, b) => a - b)[near.length >> 1] ?? 0;
}

/** The steps drawn: all of them, up to MOST_POINTS. */
function drawnSteps(count: number): readonly number[] {
  const every = Math.max(1, Math.ceil(count / MOST_POINTS));
  const steps = Array.from({ length: Math.ceil(count / every) }, (_, i) => i * every);
  return count > 0 && steps.at(-1) !== count - 1 ? [...steps, count - 1] : steps;
}

export function lossesView() {
  const canvas = h("canvas", { class: "losses", role: "img" });
  const line = (attributes: Record<string, string | number>) =>
    svg("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" }, svg("path", { d: "M0 5H26", ...attributes }));
  const keys = h(
    "p",
    { class: "quiet" },
    h("span", { class: "loss-key" }, line({ stroke: "#e69f00", "stroke-width": 9 }), "everything stored"),
    h("span", { class: "loss-key" }, line({ stroke: "currentColor", "stroke-width": 2 }), "under the budget"),
    h(
      "span",
      { class: "loss-key" },
      line({ stroke: "currentColor", "stroke-width": 1.5, "stroke-dasharray": "3 3" }),
      "plan changed",
    ),
  );
  const draw = (run: Run, theme: Theme): void => {
    canvas.setAttribute("aria-label", runText(run));
    const surface = fitted(canvas);
    if (surface) paint(surface, run, theme);
  };
  return { element: h("div", {}, canvas, keys), draw };
}

interface Panel {
  readonly top: number;
  readonly tall: number;
  readonly high: number;
}

function paint(surface: Surface, { reports, changes, until }: Run, theme: Theme): void {
  const { context } = surface;
  const { x, y, w, h: tall } = plane(surface);
  context.clearRect(0, 0, surface.width, surface.height);
  const steps = Math.max(20, reports.length, until);
  const across = (step: number): number => x + (step / steps) * w;
  const drawn = drawnSteps(reports.length);
  const column = (of: (step: number) => number): readonly number[] => drawn.map(of);
  const [stored, mine] = [column((i) => reports[i]?.storedLoss ?? 0), column((i) => reports[i]?.loss ?? 0)];
  const [storedMs, ms] = (["storedMs", "ms"] as const).map((times) => column((i) => timeAround(reports, i, times))) as [
    readonly number[],
    readonly number[],
  ];
  const losses = { top: y, tall: tall * UPPER - 12, high: Math.max(0.1, ...stored, ...mine) * 1.08 };
  const times = { top: y + tall * UPPER, tall: tall * (1 - UPPER), high: Math.max(1, ...storedMs, ...ms) * 1.25 };
  axes(surface, losses, "loss", theme);
  axes(surface, times, "ms", theme);
  stepTicks(surface, steps, across, theme);
  const curve = (
    values: readonly number[],
    { top, tall: height, high }: Panel,
    colour: string,
    width: number,
  ): void => {
    context.beginPath();
    values.forEach((value, i) => {
      context.lineTo(across((drawn[i] ?? 0) + 1), top + height * (1 - value / high));
    });
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.lineJoin = "round";
    context.stroke();
  };
  curve(stored, losses, "#e69f00", 7);
  curve(mine, losses, theme.text, 1.5);
  curve(storedMs, times, "#e69f00", 4);
  curve(ms, times, theme.text, 1.5);
  context.strokeStyle = theme.quiet;
  context.lineWidth = 1;
  context.setLineDash([3, 3]);
  context.beginPath();
  for (const step of changes) {
    context.moveTo(across(step + 0.5), y);
    context.lineTo(across(step + 0.5), y + tall);
  }
  context.stroke();
  context.setLineDash([]);
}

function axes(surface: Surface, { top, tall, high }: Panel, name: string, theme: Theme): void {
  const { context } = surface;
  const { x, w } = plane(surface);
  context.strokeStyle = theme.line;
  context.lineWidth = 1;
  context.strokeRect(x - 0.5, top - 0.5, w + 1, tall + 1);
  context.font = FONT;
  context.fillStyle = theme.quiet;
  context.textAlign = "right";
  context.textBaseline = "middle";
  const count = Math.max(3, tall / 24);
  const marks = high > 4 ? ticks(0, high, count, 10) : ticks(0, high * 100, count, 10).map((t) => t / 100);
  for (const mark of marks) {
    const at = top + tall * (1 - mark / high);
    if (at > top + 6) context.fillText(`${Number(mark.toPrecision(3))}`, x - 8, at);
  }
  context.textAlign = "left";
  context.textBaseline = "top";
  context.fillText(name, 6, top);
}

function stepTicks(surface: Surface, steps: number, across: (step: number) => number, theme: Theme): void {
  const { context } = surface;
  const { y, w, h: tall } = plane(surface);
  context.fillStyle = theme.quiet;
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const step of ticks(0, steps, Math.max(2, w / 90), 10)) {
    context.fillText(`${step}`, Math.min(across(step), surface.width - MARGIN.right - 10), y + tall + 6);
  }
}
