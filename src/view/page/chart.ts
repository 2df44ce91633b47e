/**
 * @file Memory over time, stacked by kind, on the time axis of the map. A column of pixels that stands for many steps
 * shows the one with the most live bytes, so the peak is never lost. Lines: the most live bytes, the arena, the budget; the
 * other plan of a comparison as an outline.
 */
import { formatBytes } from "../../base/bytes.ts";
import { KIND_LABELS, VIEW_KINDS } from "../picture.ts";
import { drawAxes, FONT, fitted, plane, type Surface } from "./canvas.ts";
import { h, replace } from "./dom.ts";
import { keyMoves, listen } from "./gestures.ts";
import { axisWords, windowOf } from "./map-drawing.ts";
import { kindColour } from "./palette.ts";
import { type Shown, type State, type Store, selectionOn, selectStep } from "./store.ts";

/** For each of `columns` pixels, the step with the most live bytes that it covers. */
export function tightestSteps(total: Float64Array, t0: number, t1: number, columns: number): Int32Array {
  const steps = new Int32Array(columns);
  for (let c = 0; c < columns; c++) {
    const from = Math.floor(t0 + ((t1 - t0) * c) / columns);
    const to = Math.max(from + 1, Math.floor(t0 + ((t1 - t0) * (c + 1)) / columns));
    let best = Math.min(from, total.length - 1);
    for (let t = from; t < Math.min(to, total.length); t++) if ((total[t] ?? 0) > (total[best] ?? 0)) best = t;
    steps[c] = best;
  }
  return steps;
}

export interface ChartView {
  readonly element: HTMLElement;
  draw(state: State, before: State | null): void;
}

export function chartView(store: Store, hint: HTMLElement): ChartView {
  const canvas = h("canvas", { class: "plane chart", tabindex: 0, role: "application" });
  const locate = (event: { readonly clientX: number; readonly clientY: number }) => {
    const box = canvas.getBoundingClientRect();
    const { x, y, w, h: high } = plane(box);
    return { x: (event.clientX - box.left - x) / w, y: 1 - (event.clientY - box.top - y) / high };
  };
  const stepAt = (x: number): number => {
    const { frame, sides } = store.get();
    const { t0, t1 } = windowOf(frame, sides[0]);
    return Math.max(0, Math.min(sides[0].picture.columns - 1, Math.floor(t0 + (t1 - t0) * x)));
  };
  listen(canvas, store, locate, {
    vertical: false,
    click: (x) => selectStep(store, 0, stepAt(x)),
    hover(x) {
      hint.textContent = stepSummary(store.get().sides[0], stepAt(x));
    },
    leave: () => {
      hint.textContent = "";
    },
  });
  canvas.addEventListener("keydown", (event) => {
    const at = selectionOn(store.get(), 0)?.step ?? -1;
    const goes = event.key === "]" ? at + 1 : at - 1;
    const stepped = event.key === "]" || event.key === "[";
    if (stepped) selectStep(store, 0, Math.max(0, Math.min(goes, store.get().sides[0].picture.columns - 1)));
    if (stepped || keyMoves(event.key, store)) event.preventDefault();
  });
  const legend = h("ul", { class: "legend sides" });
  return {
    element: h("div", { class: "chart-box" }, canvas, legend),
    draw(state, before) {
      draw(canvas, state);
      if (before?.sides !== state.sides) drawSides(legend, state);
    },
  };
}

/** Which plan is filled and which is an outline, of a comparison. */
function drawSides(legend: HTMLElement, { sides }: State): void {
  const [a, b] = sides.map(({ entry }) => entry.label);
  const items = [
    h("li", {}, h("span", { class: "side-key filled" }), `A: ${a}, filled by kind`),
    h("li", {}, h("span", { class: "side-key outline" }), `B: ${b}, outline`),
  ];
  replace(legend, ...(b === undefined ? [] : items));
}

/** Live bytes of a step by kind. */
export function stepSummary({ live, total, picture }: Shown, step: number): string {
  const parts = VIEW_KINDS.flatMap((kind, k) => {
    const bytes = live[k]?.[step] ?? 0;
    return bytes > 0 ? [`${KIND_LABELS[kind]} ${formatBytes(bytes)}`] : [];
  });
  const what = picture.steps[step]?.text ?? "return";
  return `step ${step} · ${what.slice(0, 60)} · ${formatBytes(total[step] ?? 0)} live: ${parts.join(", ")}`;
}

function draw(canvas: HTMLCanvasElement, state: State): void {
  const surface = fitted(canvas);
  if (!surface) return;
  const { context } = surface;
  const [shown, other] = state.sides;
  const { picture } = shown;
  const { x, y, w, h: high } = plane(surface);
  const view = windowOf(state.frame, shown);
  const tops = state.sides.map((s) => Math.max(s.picture.heightBytes, s.picture.boundBytes));
  // Room for the names of the lines.
  const most = Math.max(1, ...tops) * 1.2;
  context.clearRect(0, 0, surface.width, surface.height);
  const columns = Math.max(1, Math.floor(w));
  const steps = tightestSteps(shown.total, view.t0, view.t1, columns);
  const base = new Float64Array(columns);
  VIEW_KINDS.forEach((kind, k) => {
    const bytes = shown.live[k];
    if (!bytes) return;
    context.fillStyle = kindColour(kind, state.theme.dark);
    for (let c = 0; c < columns; c++) {
      const [low, mine] = [base[c] ?? 0, bytes[steps[c] ?? 0] ?? 0];
      if (mine <= 0) continue;
      base[c] = low + mine;
      context.fillRect(x + c, y + high - ((low + mine) / most) * high, 1.02, (mine / most) * high + 0.4);
    }
  });
  if (other) outline(surface, other, state, most);
  drawStep(surface, state);
  const lines = [
    { name: "arena", bytes: picture.heightBytes, colour: state.theme.quiet, dash: [2, 3] },
    { name: "most live", bytes: picture.boundBytes, colour: state.theme.bound, dash: [] },
    ...(picture.budgetBytes === null
      ? []
      : [{ name: "budget", bytes: picture.budgetBytes, colour: state.theme.budget, dash: [7, 4] }]),
  ];
  drawLines(surface, lines, most);
  const words = { up: "bytes live", across: axisWords(picture).across };
  drawAxes(context, { box: plane(surface), view: { ...view, a0: 0, a1: most }, colours: state.theme, words });
  const budget = picture.budgetBytes === null ? "" : `, budget ${formatBytes(picture.budgetBytes)}`;
  canvas.setAttribute(
    "aria-label",
    `live memory over ${picture.columns} steps, at most ${formatBytes(picture.boundBytes)} at step ${picture.boundStep}${budget}`,
  );
}

function outline(surface: Surface, other: Shown, state: State, most: number): void {
  const { context } = surface;
  const { x, y, w, h: high } = plane(surface);
  const view = windowOf(state.frame, other);
  const columns = Math.max(1, Math.floor(w));
  const steps = tightestSteps(other.total, view.t0, view.t1, columns);
  context.strokeStyle = state.theme.accent;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let c = 0; c < columns; c++) {
    const at = y + high - ((other.total[steps[c] ?? 0] ?? 0) / most) * high;
    if (c === 0) context.moveTo(x, at);
    context.lineTo(x + c, at);
    context.lineTo(x + c + 1, at);
  }
  context.stroke();
}

interface Line {
  readonly name: string;
  readonly bytes: number;
  readonly colour: string;
  readonly dash: readonly number[];
}

/** The lines; their names are side by side at the top, each with a sample, since lines may be close to each other. */
function drawLines(surface: Surface, lines: readonly Line[], most: number): void {
  const { context } = surface;
  const { x, y, w, h: high } = plane(surface);
  const stroke = ({ colour, dash }: Line, from: number, to: number, at: number): void => {
    context.setLineDash([...dash]);
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(from, at);
    context.lineTo(to, at);
    context.stroke();
    context.setLineDash([]);
  };
  context.font = FONT;
  context.textBaseline = "middle";
  context.textAlign = "left";
  let right = x + w - 6;
  for (const line of lines.filter(({ bytes }) => bytes <= most)) {
    stroke(line, x, x + w, Math.round(y + high - (line.bytes / most) * high) + 0.5);
    const text = w < 420 ? line.name : `${line.name} ${formatBytes(line.bytes)}`;
    const width = context.measureText(text).width;
    right -= width;
    context.fillStyle = line.colour;
    context.fillText(text, right, y + 10);
    stroke(line, right - 22, right - 4, y + 10);
    right -= 34;
  }
}

function drawStep(surface: Surface, state: State): void {
  const [shown] = state.sides;
  const selection = selectionOn(state, 0);
  if (!selection) return;
  const { context } = surface;
  const { x, y, w, h: high } = plane(surface);
  const { t0, t1 } = windowOf(state.frame, shown);
  const across = (t: number) => x + Math.max(0, Math.min(1, (t - t0) / (t1 - t0))) * w;
  if (selection.rect !== null) {
    const { start, end } = shown.picture.rects;
    const [left, right] = [across(start[selection.rect] ?? 0), across(end[selection.rect] ?? 0)];
    context.fillStyle = state.theme.dark ? "rgb(255 255 255 / 14%)" : "rgb(0 0 0 / 10%)";
    context.fillRect(left, y, Math.max(1, right - left), high);
  }
  if (selection.step === null || selection.step < t0 || selection.step >= t1) return;
  context.fillStyle = state.theme.accent;
  context.fillRect(across(selection.step + 0.5), y, 1, high);
}
