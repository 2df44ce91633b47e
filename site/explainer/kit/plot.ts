/** @file Lines over numbers, and stacked bars, as SVG at the width of their place. Every drawing has a sentence as its text alternative. */
import { h, replace, svg } from "../../../src/view/page/dom.ts";
import { fitted } from "./figure.ts";

export interface Axis {
  readonly label: string;
  readonly log?: boolean;
  /** Marks are at multiples of powers of two, as bytes are counted. */
  readonly binary?: boolean;
  readonly text: (value: number) => string;
  /** Where there are marks; default: chosen. */
  readonly ticks?: readonly number[];
  readonly from?: number;
  readonly to?: number;
}

export type PlotPoint = readonly [x: number, y: number];

export interface Series {
  readonly name: string;
  readonly colour: string;
  readonly points: readonly PlotPoint[];
  readonly dashed?: boolean;
  /** No circles at the points. */
  readonly bare?: boolean;
  /** Steps instead of slopes, and the area below is filled. */
  readonly area?: boolean;
}

export interface Plot {
  readonly x: Axis;
  readonly y: Axis;
  readonly series: readonly Series[];
  /** A vertical line, with a circle on each series. */
  readonly cursor?: number | null;
  /** Horizontal lines with a name. */
  readonly levels?: readonly { readonly y: number; readonly text: string; readonly colour: string }[];
  readonly height?: number;
  /** The text alternative. */
  readonly about: string;
}

const BOX = { left: 64, right: 14, top: 14, bottom: 42 } as const;

interface Scale {
  at(value: number): number;
  readonly ticks: readonly number[];
}

function roundTicks(low: number, high: number, count: number, binary: boolean): readonly number[] {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const decimal = ([1, 2, 5, 10].find((f) => f * power >= rough) ?? 10) * power;
  const step = binary ? 2 ** Math.ceil(Math.log2(rough)) : decimal;
  const marks: number[] = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9; t += step) marks.push(t);
  return marks;
}

function powerTicks(low: number, high: number): readonly number[] {
  const marks: number[] = [];
  // powers of 2, 4 or 16
  const base = 2 ** (1 + Number(high / low > 60) + 2 * Number(high / low > 2000));
  for (let t = base ** Math.ceil(Math.log(low) / Math.log(base) - 1e-9); t <= high * 1.0001; t *= base) marks.push(t);
  return marks;
}

function scaleOf(axis: Axis, values: readonly number[], from: number, to: number): Scale {
  const low = axis.from ?? Math.min(...values);
  const high = axis.to ?? Math.max(...values);
  const span = (value: number): number =>
    axis.log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  const count = Math.max(2, Math.abs(to - from) / (from > to ? 46 : 90));
  const ticks = axis.ticks ?? (axis.log ? powerTicks(low, high) : roundTicks(low, high, count, axis.binary ?? false));
  return { at: (value) => from + (to - from) * (high > low ? span(value) : 0.5), ticks };
}

interface Frame {
  readonly width: number;
  readonly height: number;
  readonly x: Scale;
  readonly y: Scale;
}

function frameOf(plot: Plot, width: number): Frame {
  const { height = 260 } = plot;
  const xs = plot.series.flatMap(({ points }) => points.map(([x]) => x));
  const ys = [
    ...plot.series.flatMap(({ points }) => points.map(([, y]) => y)),
    ...(plot.levels ?? []).map(({ y }) => y),
  ];
  const top = plot.y.log ? Math.max(...ys) * 1.25 : Math.max(...ys) * 1.06;
  const y = { from: plot.y.log ? Math.min(...ys) / 1.25 : 0, to: top, ...plot.y };
  return {
    ...{ width, height },
    x: scaleOf(plot.x, xs, BOX.left, width - BOX.right),
    y: scaleOf(y, ys, height - BOX.bottom, BOX.top),
  };
}

const words = (x: number, y: number, text: string, anchor: string, kind = "tick"): SVGElement =>
  svg("text", { x: x.toFixed(1), y: y.toFixed(1), "text-anchor": anchor, class: kind }, text);

function axesOf(plot: Plot, { width, height, x, y }: Frame): readonly SVGElement[] {
  const [bottom, right] = [height - BOX.bottom, width - BOX.right];
  const across = y.ticks.flatMap((tick) => {
    const at = y.at(tick);
    if (at < BOX.top - 1 || at > bottom + 1) return [];
    const line = svg("line", { x1: BOX.left, x2: right, y1: at, y2: at, class: tick === 0 ? "axis" : "grid" });
    return [line, words(BOX.left - 8, at + 4, plot.y.text(tick), "end")];
  });
  let free = Number.NEGATIVE_INFINITY;
  const along = x.ticks.flatMap((tick) => {
    const at = x.at(tick);
    const text = plot.x.text(tick);
    const half = text.length * 3.6;
    if (at - half < free) return [];
    free = at + half + 6;
    const anchor = at + half > width ? "end" : "middle";
    return [
      svg("line", { x1: at, x2: at, y1: bottom, y2: bottom + 4, class: "axis" }),
      words(anchor === "end" ? width - 2 : at, bottom + 18, text, anchor),
    ];
  });
  return [
    ...across,
    svg("line", { x1: BOX.left, x2: right, y1: bottom, y2: bottom, class: "axis" }),
    ...along,
    words((BOX.left + right) / 2, height - 6, plot.x.label, "middle", "axis-label"),
    words(2, 11, plot.y.label, "start", "axis-label"),
  ];
}

function pathOf({ points, area = false }: Series, { x, y }: Frame): string {
  const at = points.map(([px, py]) => [x.at(px).toFixed(1), y.at(py).toFixed(1)] as const);
  if (!area) return at.map(([px, py], i) => `${i === 0 ? "M" : "L"}${px} ${py}`).join("");
  return at.map(([px, py], i) => (i === 0 ? `M${px} ${py}` : `H${px}V${py}`)).join("");
}

function seriesOf(series: Series, frame: Frame, height: number): readonly SVGElement[] {
  const { points, colour, dashed = false, bare = false, area = false } = series;
  if (points.length === 0) return [];
  const path = pathOf(series, frame);
  const style = `--series:${colour}`;
  const line = svg("path", { d: path, class: dashed ? "series dashed" : "series", style });
  const [first, last] = [points[0]?.[0] ?? 0, points.at(-1)?.[0] ?? 0];
  const bottom = height - BOX.bottom;
  const fill = `${path}V${bottom}H${frame.x.at(first).toFixed(1)}Z`;
  const below = area ? [svg("path", { d: fill, class: "area", style, "data-to": last })] : [];
  const dots = bare || area ? [] : points.map(([px, py]) => dot(frame.x.at(px), frame.y.at(py), style, 2.8));
  return [...below, line, ...dots];
}

const dot = (cx: number, cy: number, style: string, r: number): SVGElement =>
  svg("circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r, class: "dot-mark", style });

/** The value of a series at a position, on the line between its points. */
export function valueAt(points: readonly PlotPoint[], x: number): number | null {
  const after = points.findIndex(([px]) => px >= x);
  const [x1, y1] = points[after] ?? [];
  if (x1 === undefined || y1 === undefined) return null;
  if (x1 === x || after === 0) return x1 === x ? y1 : null;
  const [x0, y0] = points[after - 1] ?? [x1, y1];
  return y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
}

function cursorOf(plot: Plot, frame: Frame): readonly SVGElement[] {
  const { cursor = null } = plot;
  if (cursor === null) return [];
  const at = frame.x.at(cursor);
  const line = svg("line", { x1: at, x2: at, y1: BOX.top, y2: frame.height - BOX.bottom, class: "cursor" });
  const dots = plot.series.flatMap(({ points, colour }) => {
    const y = valueAt(points, cursor);
    return y === null ? [] : [dot(at, frame.y.at(y), `--series:${colour}`, 5)];
  });
  return [line, ...dots];
}

function levelsOf(plot: Plot, { width, y }: Frame): readonly SVGElement[] {
  return (plot.levels ?? []).flatMap(({ y: level, text, colour }) => {
    const at = y.at(level);
    const style = `--series:${colour}`;
    return [
      svg("line", { x1: BOX.left, x2: width - BOX.right, y1: at, y2: at, class: "series dashed", style }),
      words(width - BOX.right - 4, at - 5, text, "end", "level-label"),
    ];
  });
}

export interface PlotView {
  readonly element: HTMLElement;
  show(plot: Plot): void;
}

export function plotView(): PlotView {
  const element = h("div", { class: "plot" });
  let shown: Plot | null = null;
  const draw = fitted(element, (width) => {
    if (!shown || shown.series.every(({ points }) => points.length === 0)) return;
    const plot = shown;
    const frame = frameOf(plot, width);
    const { height } = frame;
    const drawing = svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": plot.about },
      ...axesOf(plot, frame),
      ...plot.series.flatMap((series) => seriesOf(series, frame, height)),
      ...levelsOf(plot, frame),
      ...cursorOf(plot, frame),
    );
    replace(element, drawing);
  });
  return {
    element,
    show(plot) {
      shown = plot;
      element.style.minHeight = `${plot.height ?? 260}px`;
      draw();
    },
  };
}

export interface Bar {
  readonly name: string;
  readonly parts: readonly { readonly name: string; readonly value: number; readonly colour: string }[];
  /** At the end of the bar. */
  readonly text: string;
}

/** Horizontal bars on one scale, names above them. */
export function barsView(): {
  readonly element: HTMLElement;
  show(bars: readonly Bar[], about: string, most?: number): void;
} {
  const element = h("div", { class: "plot bars" });
  let shown: { readonly bars: readonly Bar[]; readonly about: string; readonly most: number } | null = null;
  const draw = fitted(element, (width) => {
    if (!shown) return;
    const { bars, about, most } = shown;
    // where names and numbers do not fit side by side, numbers have a line of their own
    const isNarrow = bars.some(({ name, text }) => (name.length + text.length + 3) * 7.6 > width);
    const [row, low] = isNarrow ? [64, 18] : [46, 0];
    const marks = bars.flatMap(({ name, parts, text }, i): readonly SVGElement[] => {
      const top = i * row;
      let left = 0;
      const rects = parts.map(({ name: part, value, colour }) => {
        const w = Math.max(0, (value / most) * width);
        const attributes = { x: left.toFixed(1), y: top + 18 + low, width: w.toFixed(1), height: 20, class: "bar" };
        left += w;
        return svg("rect", { ...attributes, style: `--series:${colour}` }, svg("title", {}, part));
      });
      return [
        words(0, top + 12, name, "start", "bar-name"),
        ...rects,
        words(isNarrow ? 0 : width, top + 12 + low, text, isNarrow ? "start" : "end", "bar-value"),
      ];
    });
    const height = bars.length * row;
    replace(
      element,
      svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": about }, ...marks),
    );
  });
  return {
    element,
    show(bars, about, most = Math.max(...bars.map(({ parts }) => parts.reduce((sum, { value }) => sum + value, 0)))) {
      shown = { bars, about, most };
      draw();
    },
  };
}
