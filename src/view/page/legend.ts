/** @file The legend of colours, and the figures of the shown pictures. */
import { formatBytes } from "../../base/bytes.ts";
import { grouped } from "../../base/errors.ts";
import { KIND_LABELS, rectCount, VIEW_KINDS, type ViewKind } from "../picture.ts";
import { h, replace, svg } from "./dom.ts";
import { kindColour, kindTexture } from "./palette.ts";
import type { Shown, State } from "./store.ts";

/** A sample of a kind: its colour and its texture. */
function swatch(kind: ViewKind, dark: boolean): SVGElement {
  const texture = kindTexture(kind);
  const lines = { stroke: "#333", "stroke-width": 1 };
  const marks = {
    plain: [],
    stripes: [svg("path", { d: "M0 8L8 0M3 14L14 3M10 14L14 10", ...lines })],
    dots: [svg("path", { d: "M2 3h1M7 3h1M12 3h1M4 8h1M9 8h1M2 12h1M7 12h1", ...lines })],
  }[texture];
  return svg(
    "svg",
    { viewBox: "0 0 14 14", "aria-hidden": "true" },
    svg("rect", { width: 14, height: 14, fill: kindColour(kind, dark) }),
    ...marks,
  );
}

export function drawLegend(element: HTMLElement, { sides, theme }: State): void {
  const used = VIEW_KINDS.filter((_, k) =>
    sides.some(({ picture }) => Array.prototype.includes.call(picture.rects.kind, k)),
  );
  replace(element, ...used.map((kind) => h("li", {}, swatch(kind, theme.dark), KIND_LABELS[kind])));
}

/** Summary figures of a picture. */
export function figuresOf({ picture, entry, live }: Shown): readonly (readonly [string, string])[] {
  const again = picture.steps.filter((step) => step.again).length;
  const persistent = live[VIEW_KINDS.indexOf("persistent")]?.[0] ?? 0;
  return [
    [picture.source === "plan" ? "arena" : "address range", formatBytes(picture.heightBytes)],
    [picture.source === "plan" ? "bound" : "most live", formatBytes(picture.boundBytes)],
    ["over the bound", `${(picture.heightBytes / Math.max(1, picture.boundBytes)).toFixed(3)} ×`],
    ["budget", picture.budgetBytes === null ? "none" : formatBytes(picture.budgetBytes)],
    ...(picture.spaces ?? []).slice(1).map((s) => [s.name, formatBytes(s.heightBytes)] as const),
    ["persistent", formatBytes(persistent)],
    ["buffers", grouped(rectCount(picture.rects))],
    ["steps", grouped(picture.columns - 1)],
    ...(picture.source === "plan" ? [["recomputed", grouped(again)] as const] : []),
    ...(entry.predictedMs === null ? [] : [["predicted", `${entry.predictedMs.toFixed(2)} ms`] as const]),
  ];
}

export function drawFigures(element: HTMLElement, { sides }: State): void {
  const tiles = figuresOf(sides[0]).map(([name, value]) =>
    h("div", { class: "figure", "data-figure": name }, h("b", {}, value), h("span", {}, name)),
  );
  replace(element, ...tiles);
}
