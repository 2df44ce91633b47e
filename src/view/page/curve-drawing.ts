/**
 * @file Draws memory against time: every plan is a point, plans of `auto` are joined by a line, and the dashed line is the
 * budget. Plans of other strategies have marks of their own, filled where no other plan beats them.
 *
 *   ms │ ×        △
 *      │  ●╌╌┐ ▢         ● auto   ▢ selective   △ look-ahead
 *      │     ●──●───●
 *      └──────┆────────── arena
 *           budget
 */
import { formatBytes } from "../../base/bytes.ts";
import type { CurveStrategy, ViewCurve } from "../data.ts";
import { type MergedPlan, mergedPlans, type StrategyPlan } from "../frontier.ts";
import { h, replace, svg } from "./dom.ts";
import type { State } from "./store.ts";

const [WIDTH, HEIGHT] = [380, 240];
const BOX = { left: 46, right: 12, top: 16, bottom: 34 } as const;

/** Plans that take more than this times the fastest are drawn at the upper edge. */
const SLOWEST = 2;

export interface Range {
  readonly least: number;
  readonly most: number;
}

/** The budgets to choose from: down to the smallest plan, or as long as that is not known, to the bound of all plans. */
export function rangeOf({ points, floorBytes, whole }: ViewCurve): Range {
  const arenas = points.map((p) => p.arenaBytes);
  const least = whole ? Math.min(...arenas) : Math.min(floorBytes, ...arenas);
  return { least, most: Math.max(...arenas) };
}

/** Bytes and milliseconds to points of the drawing; the shown plan is inside. */
function scales(curve: ViewCurve, { sides }: State) {
  const [{ entry, picture }] = sides;
  const { floorBytes, points, others = [] } = curve;
  const mine = entry.predictedMs === null ? [] : [{ arenaBytes: picture.heightBytes, predictedMs: entry.predictedMs }];
  const all = [...points, ...mine, ...others.flatMap((strategy) => strategy.points)];
  const times = all.map((p) => p.predictedMs);
  const fast = Math.min(...times);
  const needed = Math.max(fast * SLOWEST, ...points.map((p) => p.predictedMs), ...mine.map((p) => p.predictedMs));
  const slow = Math.min(needed, Math.max(...times));
  const most = Math.max(...all.map((p) => p.arenaBytes));
  const least = Math.min(floorBytes, ...all.map((p) => p.arenaBytes));
  const [low, high] = [least - (most - least) * 0.05, most + (most - least) * 0.05 + 1];
  const [w, tall] = [WIDTH - BOX.left - BOX.right, HEIGHT - BOX.top - BOX.bottom];
  const room = Math.max(slow - fast, slow * 0.02, 1e-9) * 1.1;
  return {
    x: (bytes: number) => BOX.left + Math.max(0, Math.min(1, (bytes - low) / (high - low))) * w,
    y: (ms: number) => BOX.top + tall - Math.min(1, (ms - fast) / room) * tall,
    bytesAt: (x: number) => Math.round(low + ((x - BOX.left) / w) * (high - low)),
    ...{ fast, slow, most },
  };
}

type Scales = ReturnType<typeof scales>;

const AUTO = { name: "auto", colour: 1, mark: "circle" } as const;

type Look = Pick<CurveStrategy, "name" | "colour" | "mark">;

/** A mark around (0, 0). */
function markOf({ mark, colour }: Look, isBest: boolean): SVGElement {
  const shapes: Readonly<Record<Look["mark"], string>> = {
    circle: "M-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0 -6.8 0Z",
    ring: "M-4.2 0a4.2 4.2 0 1 0 8.4 0a4.2 4.2 0 1 0 -8.4 0Z",
    square: "M-3.2 -3.2H3.2V3.2H-3.2Z",
    diamond: "M0 -4.4L4.4 0L0 4.4L-4.4 0Z",
    triangle: "M0 -4L4 3.2H-4Z",
    cross: "M-3.2 -3.2L3.2 3.2M3.2 -3.2L-3.2 3.2",
  };
  const isFilled = isBest && mark !== "ring";
  return svg("path", { d: shapes[mark], class: `mark c${colour}${isFilled ? " best" : ""}` });
}

const planText = ({ arenaBytes, predictedMs, strategies, isBest }: MergedPlan<StrategyPlan>): string =>
  `${strategies.join(", ")}: ${formatBytes(arenaBytes)}, ${predictedMs.toFixed(2)} ms${isBest ? "; no other plan beats it" : ""}`;

/** All plans, equal ones as one mark. */
function planMarks({ points, others = [] }: ViewCurve, { x, y, slow }: Scales): readonly Element[] {
  const looks = new Map<string, Look>([AUTO, ...others].map((look) => [look.name, look]));
  const plans = [
    ...points.map((p) => ({ ...p, strategy: AUTO.name })),
    ...others.flatMap(({ name, points: theirs }) => theirs.map((p) => ({ ...p, strategy: name }))),
  ];
  const merged = mergedPlans<StrategyPlan>(plans);
  const front = merged.filter(({ isBest }) => isBest);
  const at = ({ arenaBytes, predictedMs }: StrategyPlan | MergedPlan<StrategyPlan>): string =>
    `${x(arenaBytes).toFixed(1)},${y(predictedMs).toFixed(1)}`;
  const mine = [...points].sort((a, b) => a.arenaBytes - b.arenaBytes).map((p) => ({ ...p, strategy: AUTO.name }));
  return [
    ...(others.length > 0 ? [svg("polyline", { points: front.map(at).join(" "), class: "frontier" })] : []),
    svg("polyline", { points: mine.map(at).join(" "), class: "front" }),
    ...[...merged].reverse().map((plan) => {
      // Where several strategies found a plan, `auto` is drawn over the others.
      const look = looks.get(plan.strategies.find((name) => name === AUTO.name) ?? plan.strategies[0] ?? "") ?? AUTO;
      const isOut = plan.predictedMs > slow * 1.0001;
      const place = { transform: `translate(${at(plan)})`, class: "point", "data-names": plan.strategies.join(" ") };
      const arrow = isOut ? svg("path", { d: "M-4 -6L0 -11L4 -6", class: `mark c${look.colour}` }) : null;
      return svg("g", place, svg("title", {}, planText(plan)), markOf(look, plan.isBest), arrow);
    }),
  ];
}

function drawingOf(curve: ViewCurve, state: State): readonly Element[] {
  const scale = scales(curve, state);
  const { x, y, fast, slow, most } = scale;
  const [bottom, right] = [HEIGHT - BOX.bottom, WIDTH - BOX.right];
  const budget = x(state.budgetBytes ?? most);
  const { picture, entry } = state.sides[0];
  const text = (across: number, up: number, what: string, anchor: string) =>
    svg("text", { x: across, y: up, "text-anchor": anchor, class: "tick" }, what);
  const { predictedMs: ms } = entry;
  const here = ms === null ? [] : [svg("circle", { cx: x(picture.heightBytes), cy: y(ms), r: 7, class: "here" })];
  return [
    svg("path", { d: `M${BOX.left} ${BOX.top}V${bottom}H${right}`, class: "axis" }),
    svg("line", { x1: x(curve.floorBytes), x2: x(curve.floorBytes), y1: BOX.top, y2: bottom, class: "floor" }),
    ...planMarks(curve, scale),
    ...here,
    svg("line", { x1: budget, x2: budget, y1: BOX.top, y2: bottom, class: "budget" }),
    svg("path", { d: `M${budget} ${bottom}l-6 9h12z`, class: "handle" }),
    text(BOX.left - 5, y(fast) + 3, `${fast.toPrecision(3)}`, "end"),
    ...(slow > fast * 1.001 ? [text(BOX.left - 5, y(slow) + 3, `${slow.toPrecision(3)}`, "end")] : []),
    text(4, BOX.top - 4, "ms predicted", "start"),
    text(x(curve.floorBytes), HEIGHT - 8, `floor ${formatBytes(curve.floorBytes)}`, "start"),
    text(right, HEIGHT - 8, `arena ${formatBytes(most)}`, "end"),
  ];
}

/** The names of the strategies; pointing at one shows its plans alone. */
function legendOf({ others = [] }: ViewCurve, drawing: Element): readonly HTMLElement[] {
  if (others.length === 0) return [];
  const only = (name: string | null): void => {
    for (const point of drawing.querySelectorAll("[data-names]")) {
      const names = point.getAttribute("data-names")?.split(" ") ?? [];
      point.classList.toggle("faint", name !== null && !names.includes(name));
    }
  };
  const items = [AUTO, ...others].map((look) => {
    const sample = svg("svg", { viewBox: "-6 -6 12 12", "aria-hidden": "true" }, markOf(look, true));
    const item = h("li", {}, sample, look.name);
    item.addEventListener("pointerenter", () => only(look.name));
    item.addEventListener("pointerleave", () => only(null));
    return item;
  });
  const sample = svg("svg", { viewBox: "-6 -6 12 12", "aria-hidden": "true" });
  sample.append(svg("path", { d: "M-6 0H6", class: "frontier" }));
  return [...items, h("li", { title: "plans that no other plan beats in bytes and time" }, sample, "best of all")];
}

export interface CurveDrawing {
  readonly element: SVGElement;
  readonly legend: HTMLElement;
  draw(state: State): void;
  /** Calls with the bytes under the pointer. */
  onDrag(does: (bytes: number) => void): void;
}

export function curveDrawing(): CurveDrawing {
  const element = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "curve", role: "img" });
  const legend = h("ul", { class: "legend strategies" });
  let drawn: State | null = null;
  return {
    element,
    legend,
    draw(state) {
      const { curve } = state;
      const isNew = drawn?.curve !== curve;
      drawn = state;
      replace(element, ...(curve ? drawingOf(curve, state) : []));
      element.toggleAttribute("hidden", curve === null);
      element.setAttribute("aria-busy", `${curve?.whole === false}`);
      if (curve) element.setAttribute("aria-label", labelOf(curve));
      if (isNew) replace(legend, ...(curve ? legendOf(curve, element) : []));
    },
    onDrag(does) {
      const drag = (event: PointerEvent): void => {
        if (!drawn?.curve || event.buttons === 0) return;
        const box = element.getBoundingClientRect();
        does(scales(drawn.curve, drawn).bytesAt(((event.clientX - box.left) / box.width) * WIDTH));
      };
      element.addEventListener("pointerdown", (event) => {
        element.setPointerCapture(event.pointerId);
        drag(event);
      });
      element.addEventListener("pointermove", drag);
    },
  };
}

function labelOf({ points, others = [] }: ViewCurve): string {
  const ranges = [{ name: AUTO.name, points }, ...others].map(({ name, points: plans }) => {
    const arenas = plans.map((p) => p.arenaBytes);
    return `${name} from ${formatBytes(Math.max(...arenas))} to ${formatBytes(Math.min(...arenas))}`;
  });
  return `memory against time: ${ranges.join(", ")}`;
}
