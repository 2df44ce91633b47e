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

/** The kinds that are in the shown pictures. */
export const kindsOf = ({ sides }: State): readonly ViewKind[] =>
  VIEW_KINDS.filter((_, k) => sides.some(({ picture }) => Array.prototype.includes.call(picture.rects.kind, k)));

export function drawLegend(element: HTMLElement, state: State): void {
  replace(element, ...kindsOf(state).map((kind) => h("li", {}, swatch(kind, state.theme.dark), KIND_LABELS[kind])));
}

/** A figure of a picture: its name, its value, and what it means. */
export interface Figure {
  readonly name: string;
  readonly value: string;
  readonly means: string;
}

/** What the words of the figures mean. */
export const TERMS = {
  arena: "the one block of memory that holds every value of a run",
  "address range": "from the lowest to the highest address that was allocated",
  "most live": "the most bytes needed at the same step; no placement of these values takes less",
  "packing loss": "how much larger the arena is than the most bytes live at once: 0 % cannot be improved",
  budget: "the limit on the arena that was asked for",
  persistent: "parameters, optimizer state and constants: they stay in memory between runs",
  buffers: "pieces of the arena; one buffer can hold several values, one after the other",
  steps: "kernels, loops and copies, in the order in which they run",
  recomputed: "steps that compute a value a second time, so that it need not be kept",
  predicted: "the time of one run by the model of this machine (tidemark calibrate measures it)",
} as const;

/** Summary figures of a picture. */
export function figuresOf({ picture, entry, live }: Shown): readonly Figure[] {
  const again = picture.steps.filter((step) => step.again).length;
  const persistent = live[VIEW_KINDS.indexOf("persistent")]?.[0] ?? 0;
  const loss = (picture.heightBytes / Math.max(1, picture.boundBytes) - 1) * 100;
  const isPlan = picture.source === "plan";
  const figure = (name: keyof typeof TERMS, value: string): Figure => ({ name, value, means: TERMS[name] });
  return [
    figure(isPlan ? "arena" : "address range", formatBytes(picture.heightBytes)),
    figure("most live", formatBytes(picture.boundBytes)),
    figure("packing loss", `${Number(loss.toFixed(1))} %`),
    figure("budget", picture.budgetBytes === null ? "none" : formatBytes(picture.budgetBytes)),
    ...(picture.spaces ?? []).slice(1).map(({ name, heightBytes }) => {
      return { name, value: formatBytes(heightBytes), means: "bytes used of this other memory" };
    }),
    figure("persistent", formatBytes(persistent)),
    figure("buffers", grouped(rectCount(picture.rects))),
    figure("steps", grouped(picture.columns - 1)),
    ...(isPlan ? [figure("recomputed", grouped(again))] : []),
    ...(entry.predictedMs === null ? [] : [figure("predicted", `${entry.predictedMs.toFixed(2)} ms`)]),
  ];
}

/** One tile a figure; of a comparison, both values. */
export function drawFigures(element: HTMLElement, { sides }: State): void {
  const [mine, theirs] = sides.map(figuresOf);
  const tiles = (mine ?? []).map(({ name, value, means }) => {
    const other = theirs?.find((figure) => figure.name === name)?.value;
    const values =
      theirs === undefined
        ? [h("b", {}, value)]
        : [h("b", { "data-letter": "A" }, value), h("b", { "data-letter": "B", class: "other" }, other ?? "–")];
    return h("div", { class: "figure", "data-figure": name, title: means }, ...values, h("span", {}, name));
  });
  replace(element, ...tiles);
  element.classList.toggle("two", theirs !== undefined);
}
