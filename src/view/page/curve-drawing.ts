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
import { grouped } from "../../base/errors.ts";
import type { CurveStrategy, ViewCurve } from "../data.ts";
import { type MergedPlan, mergedPlans, type StrategyPlan } from "../frontier.ts";
import { h, replace, svg } from "./dom.ts";
import type { State } from "./store.ts";

const [WIDTH, HEIGHT] = [380, 240];
const BOX = { left: 46, right: 12, top: 16, bottom: 34 } as const;

/** Other plans that take more than this times the slowest of the curve are drawn at the upper edge. */
const SLOWEST = 1.15;

/** Times further apart than this have a logarithmic axis. */
const STEEP = 4;

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
  const own = Math.max(...[...points, ...mine].map((p) => p.predictedMs));
  const slow = Math.max(own, Math.min(own * SLOWEST, Math.max(...times)));
  const most = Math.max(...all.map((p) => p.arenaBytes));
  const least = Math.min(floorBytes, ...all.map((p) => p.arenaBytes));
  const [low, high] = [least - (most - least) * 0.05, most + (most - least) * 0.05 + 1];
  const [w, tall] = [WIDTH - BOX.left - BOX.right, HEIGHT - BOX.top - BOX.bottom];
  const isLog = slow > fast * STEEP;
  const room = isLog ? Math.log(slow / fast) : Math.max(slow - fast, slow * 0.02, 1e-9);
  const up = (ms: number): number => (isLog ? Math.log(ms / fast) : ms - fast) / (room * 1.1);
  return {
    x: (bytes: number) => BOX.left + Math.max(0, Math.min(1, (bytes - low) / (high - low))) * w,
    y: (ms: number) => BOX.top + tall - Math.min(1, up(ms)) * tall,
    bytesAt: (x: number) => Math.round(low + ((x - BOX.left) / w) * (high - low)),
    ...{ fast, slow, most, isLog },
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

/** The plan of a curve with everything that is drawn of it. */
interface DrawnPlan extends MergedPlan<StrategyPlan> {
  readonly look: Look;
}

/** All plans, equal ones once. Where several strategies found a plan, it is drawn as one of `auto`. */
function drawnPlans({ points, others = [] }: ViewCurve): readonly DrawnPlan[] {
  const looks = new Map<string, Look>([AUTO, ...others].map((look) => [look.name, look]));
  const plans = [
    ...points.map((p) => ({ ...p, strategy: AUTO.name })),
    ...others.flatMap(({ name, points: theirs }) => theirs.map((p) => ({ ...p, strategy: name }))),
  ];
  return mergedPlans<StrategyPlan>(plans).map((plan) => {
    const name = plan.strategies.find((one) => one === AUTO.name) ?? plan.strategies[0] ?? "";
    return { ...plan, look: looks.get(name) ?? AUTO };
  });
}

function planMarks(curve: ViewCurve, { x, y, slow }: Scales): readonly Element[] {
  const plans = drawnPlans(curve);
  const at = ({ arenaBytes, predictedMs }: Pick<StrategyPlan, "arenaBytes" | "predictedMs">): string =>
    `${x(arenaBytes).toFixed(1)},${y(predictedMs).toFixed(1)}`;
  const line = (of: readonly Pick<StrategyPlan, "arenaBytes" | "predictedMs">[], name: string): SVGElement =>
    svg("polyline", { points: of.map(at).join(" "), class: name });
  const best = plans.filter(({ isBest }) => isBest);
  return [
    ...(curve.others?.length ? [line(best, "frontier")] : []),
    line(
      [...curve.points].sort((a, b) => a.arenaBytes - b.arenaBytes),
      "front",
    ),
    ...[...plans].reverse().map((plan) => {
      const { look, strategies, isBest, predictedMs } = plan;
      const place = { transform: `translate(${at(plan)})`, class: "point", "data-names": strategies.join("|") };
      const isOut = predictedMs > slow * 1.0001;
      const arrow = isOut ? svg("path", { d: "M-4 -6L0 -11L4 -6", class: `mark c${look.colour}` }) : null;
      return svg("g", place, svg("title", {}, planText(plan)), markOf(look, isBest), arrow);
    }),
  ];
}

/** Three digits, and no exponent. */
const msText = (ms: number): string => (ms >= 100 ? grouped(Math.round(ms)) : `${Number(ms.toPrecision(3))}`);

function drawingOf(curve: ViewCurve, state: State): readonly Element[] {
  const scale = scales(curve, state);
  const { x, y, fast, slow, most, isLog } = scale;
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
    text(BOX.left - 5, y(fast) + 3, msText(fast), "end"),
    ...(slow > fast * 1.001 ? [text(BOX.left - 5, y(slow) + 3, msText(slow), "end")] : []),
    text(4, BOX.top - 4, isLog ? "ms predicted, logarithmic" : "ms predicted", "start"),
    text(x(curve.floorBytes), HEIGHT - 8, `floor ${formatBytes(curve.floorBytes)}`, "start"),
    text(right, HEIGHT - 8, `arena ${formatBytes(most)}`, "end"),
  ];
}

/** The names of the strategies; pointing at one shows its plans alone. */
function legendOf(curve: ViewCurve, drawing: Element): readonly HTMLElement[] {
  const { others = [] } = curve;
  if (others.length === 0) return [];
  const only = (name: string | null): void => {
    for (const point of drawing.querySelectorAll("[data-names]")) {
      const names = point.getAttribute("data-names")?.split("|") ?? [];
      point.classList.toggle("faint", name !== null && !names.includes(name));
    }
  };
  const item = (sample: SVGElement, name: string): HTMLElement => {
    const box = svg("svg", { viewBox: "-6 -6 12 12", "aria-hidden": "true" }, sample);
    return h("li", {}, box, name);
  };
  const drawn = new Set(drawnPlans(curve).map(({ look }) => look.name));
  const items = [AUTO, ...others.filter(({ name }) => drawn.has(name))].map((look) => {
    const element = item(markOf(look, true), look.name);
    element.addEventListener("pointerenter", () => only(look.name));
    element.addEventListener("pointerleave", () => only(null));
    return element;
  });
  const best = item(svg("path", { d: "M-6 0H6", class: "frontier" }), "no other plan beats these");
  const rest = others.flatMap(({ name }) => (drawn.has(name) ? [] : [name]));
  const same = rest.length === 0 ? [] : [h("li", {}, `no plans of their own: ${rest.join(", ")}`)];
  return [...items, best, ...same];
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
