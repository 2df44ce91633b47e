/**
 * @file Draws the arena map: time across, addresses up, every buffer a rectangle. Pixels come from the rasterizer; names,
 * the selection and the axes are drawn over them. Below the plane are a band for folded persistent buffers and a strip
 * with the phases of the steps.
 *
 *   address │  ▓▓▓   ░░░░      plane
 *           │▒▒▒ persistent ▒▒ band
 *           │ forward │ backward   phases
 *           0 ────────────── step
 */
import { formatBytes } from "../../base/bytes.ts";
import { fittingName, MISS, matchesOf } from "../names.ts";
import { type Picture, rectCount } from "../picture.ts";
import { drawRects, type Window } from "../raster.ts";
import { type Box, drawAxes, FONT, plane, type Surface } from "./canvas.ts";
import { kindColour, phaseColour } from "./palette.ts";
import {
  type Frame,
  foldedOf,
  kindOf,
  rectName,
  type Selection,
  type Shown,
  type State,
  selectionOn,
} from "./store.ts";

/** Heights of the band and the strip, in CSS pixels. */
const [BAND, STRIP] = [18, 16] as const;

/** The frame in steps of one picture. */
export function windowOf({ t0, t1, a0, a1 }: Frame, { picture }: Shown): Window {
  return { t0: t0 * picture.columns, t1: t1 * picture.columns, a0, a1 };
}

export interface MapLayout {
  readonly plane: Box;
  readonly band: Box | null;
  readonly phases: Box | null;
  /** Where the time axis is. */
  readonly base: number;
}

export function mapLayout(size: Pick<Surface, "width" | "height">, state: State, side: number): MapLayout {
  const { x, y, w, h } = plane(size);
  const shown = state.sides[side];
  const strip = shown && shown.bands.length > 0 ? STRIP : 0;
  const folded = shown && foldedOf(state, shown) ? BAND : 0;
  const high = h - strip - folded;
  return {
    plane: { x, y, w, h: high },
    band: folded ? { x, y: y + high, w, h: BAND } : null,
    phases: strip ? { x, y: y + high + folded, w, h: STRIP } : null,
    base: y + h,
  };
}

/** Words of the axes of a picture. */
export function axisWords({ source, steps }: Picture): { readonly across: string; readonly up: string } {
  if (source === "plan") return { across: "step", up: "address in the arena" };
  return { across: steps.length > 0 ? "event" : "time", up: "address" };
}

/** Which rectangles contain a value that matches the query; null without a query. */
export function brightRects({ picture, byRect }: Shown, query: string): Uint8Array | null {
  const matches = matchesOf(picture, query);
  if (!matches) return null;
  const bright = new Uint8Array(rectCount(picture.rects));
  byRect.forEach((values, rect) => {
    bright[rect] = values.some((v) => matches(v) < MISS) ? 1 : 0;
  });
  return bright;
}

/** A map in the process of being drawn. */
interface Drawing {
  readonly context: CanvasRenderingContext2D;
  readonly box: Box;
  readonly view: Window;
  readonly shown: Shown;
  readonly state: State;
  /** An address of the arena as it is drawn. */
  readonly addressOf: (real: number) => number;
  readonly rects: Picture["rects"];
}

/** @param isStill for a picture that cannot be clicked */
export function createPainter(
  side: number,
  isStill = false,
): (surface: Surface, state: State, before: State | null) => void {
  let image: ImageData | null = null;
  let pixels = new Uint32Array();
  return (surface, state, before) => {
    const shown = state.sides[side];
    if (!shown) return;
    const { context, scale } = surface;
    const layout = mapLayout(surface, state, side);
    const { x, y, w, h: high } = layout.plane;
    const [width, height] = [Math.round(w * scale), Math.round(high * scale)];
    const view = windowOf(state.frame, shown);
    const fresh = image === null || image.width !== width || image.height !== height;
    if (image === null || fresh) {
      image = context.createImageData(width, height);
      pixels = new Uint32Array(image.data.buffer);
    }
    const same =
      !fresh &&
      before?.sides[side] === shown &&
      before.frame === state.frame &&
      before.query === state.query &&
      before.theme === state.theme &&
      before.unfolded === state.unfolded;
    const fold = foldedOf(state, shown);
    const rects = fold?.rects ?? shown.picture.rects;
    if (!same) {
      const { inks, background } = state.theme;
      const paint = { inks, background, bright: brightRects(shown, state.query) };
      drawRects({ pixels, width, height }, rects, view, paint);
    }
    context.clearRect(0, 0, surface.width, surface.height);
    context.putImageData(image, Math.round(x * scale), Math.round(y * scale));
    const addressOf = fold ? fold.shown : (real: number): number => real;
    const drawing = { context, box: layout.plane, view, shown, state, addressOf, rects };
    drawNames(drawing);
    drawBudget(drawing);
    drawSpaces(drawing);
    if (layout.phases) drawPhases(drawing, layout.phases);
    if (layout.band) drawBand({ ...drawing, isStill }, layout.band, selectionOn(state, side));
    drawSelection(drawing, selectionOn(state, side));
    const { theme: colours } = state;
    drawAxes(context, { box: layout.plane, view, base: layout.base, colours, words: axisWords(shown.picture), fold });
  };
}

/** Horizontal position of a moment, clipped to the box. */
const acrossIn = ({ x, w }: Box, { t0, t1 }: Window, t: number): number =>
  x + Math.max(0, Math.min(1, (t - t0) / (t1 - t0))) * w;

/** The phases of the steps, with a name for each band. */
function drawPhases({ context, shown, view, state }: Drawing, box: Box): void {
  const { dark, text, line } = state.theme;
  let drawn = -1;
  for (const { phase, from, to } of shown.runs) {
    const [left, right] = [acrossIn(box, view, from), acrossIn(box, view, to)];
    // Of the runs within a pixel one is enough.
    if (right <= left || Math.floor(right) === drawn) continue;
    drawn = Math.floor(right);
    context.fillStyle = phaseColour(phase, dark);
    context.fillRect(left, box.y + 2, Math.max(0.6, right - left), box.h - 3);
  }
  context.font = FONT;
  context.textBaseline = "middle";
  context.textAlign = "center";
  for (const { label, from, to } of shown.bands) {
    const [left, right] = [acrossIn(box, view, from), acrossIn(box, view, to)];
    if (left > box.x && left < box.x + box.w) {
      context.fillStyle = line;
      context.fillRect(Math.round(left), box.y, 1, box.h);
    }
    const short = label.split(",")[0] ?? "";
    const name = [label, short].find((words) => context.measureText(words).width + 8 <= right - left);
    context.fillStyle = text;
    if (name !== undefined) context.fillText(name, (left + right) / 2, box.y + box.h / 2 + 0.5);
  }
}

/** Folded persistent buffers. */
function drawBand(
  { context, shown, state, isStill }: Drawing & { readonly isStill: boolean },
  box: Box,
  selection: Selection | null,
): void {
  const { fold } = shown;
  if (!fold) return;
  const { theme } = state;
  const chosen = selection?.rect !== null && selection !== null && fold.has(selection.rect);
  const bright = brightRects(shown, state.query);
  const faint = bright !== null && !bright.some((one, rect) => one === 1 && fold.has(rect));
  context.globalAlpha = faint ? 0.25 : 1;
  context.fillStyle = kindColour("persistent", theme.dark);
  context.fillRect(box.x, box.y + 1, box.w, box.h - 2);
  context.font = FONT;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillStyle = "#ffffff";
  const name = chosen ? ` · ${rectName(shown, selection?.rect ?? 0)}` : "";
  const mark = isStill ? "" : "▸ ";
  const words = [
    `${mark}persistent ${formatBytes(fold.bytes)} in ${fold.count} buffers${isStill ? "" : ", click to unfold"}${name}`,
    `${mark}persistent ${formatBytes(fold.bytes)}${name}`,
    `${mark}persistent`,
  ];
  const text = words.find((one) => context.measureText(one).width + 12 <= box.w);
  if (text !== undefined) context.fillText(text, box.x + 5, box.y + box.h / 2 + 0.5);
  context.globalAlpha = 1;
  if (!chosen) return;
  context.lineWidth = 2;
  context.strokeStyle = theme.accent;
  context.strokeRect(box.x, box.y + 1, box.w, box.h - 2);
}

/** Corners of a rectangle in CSS pixels, clipped to the plane. */
function boxOf({ box, rects, view }: Drawing, rect: number) {
  const { y, h: high } = box;
  const { start, end, from, bytes } = rects;
  const [low, top] = [from[rect] ?? 0, (from[rect] ?? 0) + (bytes[rect] ?? 0)];
  const across = (t: number) => acrossIn(box, view, t);
  const up = (a: number) => y + high - Math.max(0, Math.min(1, (a - view.a0) / (view.a1 - view.a0))) * high;
  return { left: across(start[rect] ?? 0), right: across(end[rect] ?? 0), top: up(top), bottom: up(low) };
}

/** Names where there is room. */
function drawNames(drawing: Drawing): void {
  const { context, shown, view, state, rects } = drawing;
  const { w, h: high } = drawing.box;
  const [steps, bytes] = [(view.t1 - view.t0) * (34 / w), (view.a1 - view.a0) * (13 / high)];
  const bright = brightRects(shown, state.query);
  // The number of names that fit side by side.
  let left = Math.ceil((w * high) / (34 * 12));
  context.font = FONT;
  context.textAlign = "left";
  context.textBaseline = "middle";
  for (let i = 0; i < rectCount(rects) && left > 0; i++) {
    const [start, end, from] = [rects.start[i] ?? 0, rects.end[i] ?? 0, rects.from[i] ?? 0];
    if (end - start < steps || (rects.bytes[i] ?? 0) < bytes || (bright && bright[i] === 0)) continue;
    if (end <= view.t0 || start >= view.t1 || from >= view.a1 || from + (rects.bytes[i] ?? 0) <= view.a0) continue;
    const box = boxOf(drawing, i);
    const room = Math.floor((box.right - box.left - 8) / 6.7);
    if (room < 2 || box.bottom - box.top < 12) continue;
    left -= 1;
    const text = fittingName(rectName(shown, i), room);
    const light = ["persistent", "result", "gradient", "scratch"].includes(kindOf(shown, i));
    context.fillStyle = light ? "#ffffff" : "#101418";
    context.fillText(text, box.left + 4, (box.top + box.bottom) / 2 + 0.5);
  }
}

function drawBudget({ context, box, view, shown, state, addressOf }: Drawing): void {
  const { x, y, w, h: high } = box;
  const { theme } = state;
  const line = (real: number, colour: string, dash: readonly number[]): void => {
    const bytes = addressOf(real);
    if (bytes < view.a0 || bytes > view.a1) return;
    const at = Math.round(y + high - ((bytes - view.a0) / (view.a1 - view.a0)) * high) + 0.5;
    context.setLineDash([...dash]);
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x, at);
    context.lineTo(x + w, at);
    context.stroke();
    context.setLineDash([]);
  };
  const { spaces = [], heightBytes, budgetBytes } = shown.picture;
  line(heightBytes, theme.quiet, [2, 3]);
  for (const { from, heightBytes: bytes } of spaces.slice(1)) line(from + bytes, theme.quiet, [2, 3]);
  // above the arena there are other spaces
  if (budgetBytes !== null && (spaces.length === 0 || budgetBytes <= heightBytes))
    line(budgetBytes, theme.budget, [7, 4]);
}

/** The name of each memory space at its bottom, if there are several. */
function drawSpaces({ context, box, view, shown, state, addressOf }: Drawing): void {
  const { x, y, w, h: high } = box;
  context.font = FONT;
  context.textAlign = "right";
  context.textBaseline = "bottom";
  context.fillStyle = state.theme.accent;
  for (const { name, from, heightBytes } of shown.picture.spaces ?? []) {
    if (addressOf(from + heightBytes) <= view.a0 || addressOf(from) >= view.a1) continue;
    const low = Math.max(addressOf(from), view.a0);
    context.fillText(name, x + w - 4, y + high - ((low - view.a0) / (view.a1 - view.a0)) * high - 2);
  }
}

function drawSelection(drawing: Drawing, selection: Selection | null): void {
  if (!selection) return;
  const { context, box, view, shown, state } = drawing;
  const { theme } = state;
  if (selection.step !== null && selection.step >= view.t0 && selection.step < view.t1) {
    context.fillStyle = theme.accent;
    context.fillRect(acrossIn(box, view, selection.step + 0.5), box.y, 1, box.h);
  }
  const fold = foldedOf(state, shown);
  if (selection.rect === null || fold?.has(selection.rect)) return;
  const { left, right, top, bottom } = boxOf(drawing, selection.rect);
  context.lineWidth = 2;
  context.strokeStyle = theme.dark ? "#000000" : "#ffffff";
  context.strokeRect(left - 2, top - 2, Math.max(3, right - left) + 4, Math.max(3, bottom - top) + 4);
  context.strokeStyle = theme.accent;
  context.strokeRect(left, top, Math.max(3, right - left), Math.max(3, bottom - top));
}
