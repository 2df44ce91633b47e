/**
 * @file Charts as SVG text, for the figures of the documents: panels side by side, each with two axes, series and
 * labels next to their lines. No library, no script, only the reader's fonts.
 *
 * ```
 *   ┌ title ───────────┐
 *   │      ╭─ label    │      colours: Okabe and Ito (2008), told apart by people with any colour vision; every series
 *   │  ● ╌●╌ ●         │      has a shape of mark of its own as well
 *   │ ╌╌╌╌ rule ╌╌╌╌╌╌ │      light and dark: the picture asks the reader's system (prefers-color-scheme) and paints its
 *   └──────────────────┘      own background, so it can be read on a page of either kind
 * ```
 *
 * A point beyond an axis is drawn at its edge: say so in its label. Labels are placed one after the other, each where
 * it covers the fewest marks and lines, and not over another label if possible.
 */

export interface Axis {
  readonly label: string;
  readonly scale: "linear" | "log";
  readonly from: number;
  readonly to: number;
  readonly ticks: readonly (readonly [number, string])[];
}

export type Mark = "circle" | "square" | "diamond" | "triangle" | "cross" | "ring";

export interface Series {
  readonly label: string;
  /** Index into the palette; 0 is the colour of text. */
  readonly colour: number;
  readonly mark: Mark;
  /** Whether a line joins the points. */
  readonly line: "none" | "thin" | "bold" | "dashed";
  /** A step function: each value holds until the next point. */
  readonly stepped?: boolean;
  readonly points: readonly (readonly [number, number])[];
}

/** A line across the panel. */
export interface Rule {
  readonly axis: "x" | "y";
  readonly at: number;
  readonly label: string;
}

export interface Panel {
  readonly title: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly series: readonly Series[];
  readonly rules?: readonly Rule[];
}

type Point = readonly [x: number, y: number];
interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

export const PANEL = { width: 560, height: 430 };
const MARGIN = { left: 78, right: 20, top: 44, bottom: 54 };
const FONT = 12;
/** Approximate width of a character. */
const LETTER = 6.5;
const COLOURS = ["currentColor", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];

const STYLE = `
svg { color: #1f2328; background: #ffffff; font: ${FONT}px system-ui, sans-serif; }
.paper { fill: #ffffff; } .grid { stroke: currentColor; stroke-opacity: .12; } .axis { stroke: currentColor; }
text { fill: currentColor; } .title { font-weight: 600; font-size: 14px; } .halo { paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }
@media (prefers-color-scheme: dark) { svg { color: #e6edf3; background: #0d1117; } .paper { fill: #0d1117; } .halo { stroke: #0d1117; } }
`;

const escaped = (text: string): string => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const number = (value: number): string => String(Math.round(value * 10) / 10);

/** The position of a value along an axis, from 0 to 1, clamped. */
function share({ scale, from, to }: Axis, value: number): number {
  const of = (v: number): number => (scale === "log" ? Math.log(v) : v);
  return Math.min(1, Math.max(0, (of(value) - of(from)) / (of(to) - of(from))));
}

const placeX = (axis: Axis, value: number): number =>
  MARGIN.left + share(axis, value) * (PANEL.width - MARGIN.left - MARGIN.right);
const placeY = (axis: Axis, value: number): number =>
  PANEL.height - MARGIN.bottom - share(axis, value) * (PANEL.height - MARGIN.top - MARGIN.bottom);

function markAt(mark: Mark, [x, y]: Point, colour: string, size = 4): string {
  const path = (d: string, fill = colour): string =>
    `<path d="${d}" fill="${fill}" stroke="${colour}" stroke-width="1.4"/>`;
  const [l, r, t, b] = [x - size, x + size, y - size, y + size].map(number);
  const [cx, cy] = [number(x), number(y)];
  switch (mark) {
    case "circle":
      return `<circle cx="${cx}" cy="${cy}" r="${size}" fill="${colour}"/>`;
    case "ring":
      return `<circle cx="${cx}" cy="${cy}" r="${size + 1}" fill="none" stroke="${colour}" stroke-width="1.6"/>`;
    case "square":
      return path(`M${l} ${t}H${r}V${b}H${l}Z`);
    case "diamond":
      return path(`M${cx} ${t}L${r} ${cy}L${cx} ${b}L${l} ${cy}Z`);
    case "triangle":
      return path(`M${cx} ${t}L${r} ${b}H${l}Z`);
    case "cross":
      return path(`M${l} ${t}L${r} ${b}M${r} ${t}L${l} ${b}`, "none");
  }
}

function gridOf({ x, y, title }: Panel): readonly string[] {
  const [left, right] = [MARGIN.left, PANEL.width - MARGIN.right];
  const [top, bottom] = [MARGIN.top, PANEL.height - MARGIN.bottom];
  const across = x.ticks.map(([value, text]) => {
    const at = number(placeX(x, value));
    return `<path class="grid" d="M${at} ${top}V${bottom}"/><text x="${at}" y="${bottom + 17}" text-anchor="middle">${escaped(text)}</text>`;
  });
  const up = y.ticks.map(([value, text]) => {
    const at = placeY(y, value);
    const label = `<text x="${left - 8}" y="${number(at + 4)}" text-anchor="end">${escaped(text)}</text>`;
    return `<path class="grid" d="M${left} ${number(at)}H${right}"/>${label}`;
  });
  const middle = (top + bottom) / 2;
  return [
    ...across,
    ...up,
    `<path class="axis" d="M${left} ${top}V${bottom}H${right}" fill="none"/>`,
    `<text class="title" x="${left}" y="24">${escaped(title)}</text>`,
    `<text x="${(left + right) / 2}" y="${bottom + 40}" text-anchor="middle">${escaped(x.label)}</text>`,
    `<text transform="translate(16 ${middle}) rotate(-90)" text-anchor="middle">${escaped(y.label)}</text>`,
  ];
}

const DASHES: Readonly<Record<Series["line"], string>> = {
  none: "",
  thin: "",
  bold: "",
  dashed: ' stroke-dasharray="5 4"',
};

function lineOf({ line }: Series, points: readonly Point[], colour: string): string {
  if (line === "none" || points.length < 2) return "";
  const width = line === "bold" ? 3 : 1.5;
  const d = points.map(([x, y]) => `${number(x)} ${number(y)}`).join("L");
  return `<path d="M${d}" fill="none" stroke="${colour}" stroke-width="${width}"${DASHES[line]}/>`;
}

/** Points along the lines of a series, close enough to each other that no label passes between them. */
function inkOf({ line }: Series, points: readonly Point[]): readonly Point[] {
  const between = (i: number): readonly Point[] => {
    const [a, b] = [points[i], points[i + 1]];
    if (!a || !b || line === "none") return [];
    const steps = Math.ceil(Math.hypot(b[0] - a[0], b[1] - a[1]) / 8);
    return Array.from(
      { length: steps },
      (_, k): Point => [a[0] + ((b[0] - a[0]) * k) / steps, a[1] + ((b[1] - a[1]) * k) / steps],
    );
  };
  return [...points, ...points.flatMap((_, i) => between(i))];
}

const covers = ({ x, y, width }: Box, [px, py]: Point): boolean =>
  px > x - 5 && px < x + width + 5 && py > y - FONT - 3 && py < y + 6;
const overlap = (a: Box, b: Box): boolean =>
  a.x < b.x + b.width + 6 && b.x < a.x + a.width + 6 && Math.abs(a.y - b.y) < FONT + 4;

/** The place near one of the points of a series at which its label covers least. */
function labelBox(text: string, points: readonly Point[], ink: readonly Point[], taken: readonly Box[]): [Box, Point] {
  const width = text.length * LETTER + 14;
  let best: { readonly box: Box; readonly anchor: Point; readonly badness: number } | null = null;
  for (const anchor of points) {
    for (const distance of [12, 22, 36, 54, 78, 110, 150]) {
      for (let k = 0; k < 16; k++) {
        const angle = (k * Math.PI) / 8;
        const [dx, dy] = [Math.cos(angle) * distance, Math.sin(angle) * distance];
        const x = anchor[0] + dx - (width * (1 - Math.cos(angle))) / 2;
        const box = { x, y: anchor[1] + dy + 4, width };
        const inside =
          x > MARGIN.left + 2 &&
          x + width < PANEL.width - 4 &&
          box.y > MARGIN.top + 8 &&
          box.y < PANEL.height - MARGIN.bottom - 4;
        if (!inside) continue;
        const clashes = taken.filter((other) => overlap(box, other)).length;
        const badness = 1000 * clashes + 12 * ink.filter((point) => covers(box, point)).length + distance;
        if (!best || badness < best.badness) best = { box, anchor, badness };
      }
    }
  }
  return best ? [best.box, best.anchor] : [{ x: MARGIN.left + 4, y: MARGIN.top + 14, width }, points[0] ?? [0, 0]];
}

function labelText({ label, mark }: Series, { x, y, width }: Box, [ax, ay]: Point, colour: string): string {
  const end: Point = [Math.min(Math.max(ax, x), x + width), ay < y - 4 ? y - FONT : y + 3];
  const far = Math.hypot(end[0] - ax, end[1] - ay) > 14;
  const leader = far
    ? `<path d="M${number(ax)} ${number(ay)}L${number(end[0])} ${number(end[1])}" stroke="${colour}" stroke-opacity=".6"/>`
    : "";
  const text = `<text class="halo" x="${number(x + 12)}" y="${number(y)}">${escaped(label)}</text>`;
  return leader + markAt(mark, [x + 4, y - 4], colour, 3) + text;
}

function rulesOf({ x, y, rules = [] }: Panel): readonly string[] {
  return rules.map(({ axis, at, label }) => {
    const [top, bottom] = [MARGIN.top, PANEL.height - MARGIN.bottom];
    const dash = 'stroke-dasharray="2 3" stroke="currentColor" stroke-width="1.5"';
    if (axis === "y") {
      const height = number(placeY(y, at));
      return `<path d="M${MARGIN.left} ${height}H${PANEL.width - MARGIN.right}" ${dash}/><text class="halo" x="${PANEL.width - MARGIN.right}" y="${Number(height) - 5}" text-anchor="end">${escaped(label)}</text>`;
    }
    const across = number(placeX(x, at));
    const turned = `transform="translate(${Number(across) - 5} ${top + 6}) rotate(-90)" text-anchor="end"`;
    return `<path d="M${across} ${top}V${bottom}" ${dash}/><text class="halo" ${turned}>${escaped(label)}</text>`;
  });
}

function panelOf(panel: Panel): string {
  const placed = panel.series.map((series) => {
    const points = series.points.map(([x, y]): Point => [placeX(panel.x, x), placeY(panel.y, y)]);
    const corners = series.stepped
      ? points.flatMap((at, i): Point[] => [at, [points[i + 1]?.[0] ?? at[0], at[1]]])
      : points;
    return { series, points, corners, colour: COLOURS[series.colour % COLOURS.length] ?? "currentColor" };
  });
  const ruled = (panel.rules ?? []).flatMap(({ axis, at }): Point[] =>
    axis === "x" ? Array.from({ length: 48 }, (_, i): Point => [placeX(panel.x, at) - 8, MARGIN.top + i * 8]) : [],
  );
  const ink = [...placed.flatMap(({ series, corners }) => inkOf(series, corners)), ...ruled];
  const taken: Box[] = [];
  const labels = placed.flatMap(({ series, points, colour }) => {
    if (points.length === 0 || series.label === "") return [];
    const [box, anchor] = labelBox(series.label, points, ink, taken);
    taken.push(box);
    return [labelText(series, box, anchor, colour)];
  });
  const lines = placed.map(({ series, corners, colour }) => lineOf(series, corners, colour));
  const marks = placed.flatMap(({ series, points, colour }) => points.map((at) => markAt(series.mark, at, colour)));
  return [...gridOf(panel), ...rulesOf(panel), ...lines, ...marks, ...labels].filter((text) => text !== "").join("\n");
}

/** Panels side by side; `description` is for readers who cannot see them. */
export function drawFigure(description: string, panels: readonly Panel[]): string {
  const width = PANEL.width * panels.length;
  const drawn = panels.map((panel, i) => `<g transform="translate(${i * PANEL.width} 0)">\n${panelOf(panel)}\n</g>`);
  const size = `width="${width}" height="${PANEL.height}" viewBox="0 0 ${width} ${PANEL.height}"`;
  const head = `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img">`;
  const paper = `<rect class="paper" width="${width}" height="${PANEL.height}"/>`;
  return `${head}\n<title>${escaped(description)}</title>\n<style>${STYLE}</style>\n${paper}\n${drawn.join("\n")}\n</svg>\n`;
}

/** Powers of two as ticks, from the first not below `from` to `to`. */
export function doublings(from: number, to: number, text: (value: number) => string): Axis["ticks"] {
  const ticks: (readonly [number, string])[] = [];
  for (let value = 2 ** Math.ceil(Math.log2(from)); value <= to; value *= 2) ticks.push([value, text(value)]);
  return ticks;
}
