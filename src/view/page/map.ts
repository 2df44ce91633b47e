/**
 * @file The arena map: time across, addresses up, every buffer a rectangle. Pixels come from the rasterizer; names, the
 * selection and the axes are drawn over them. Two plans have two maps on the same scale of addresses.
 */
import { formatBytes } from "../../base/bytes.ts";
import { fittingName, MISS, matchesOf } from "../names.ts";
import { KIND_LABELS, placeText, rectCount } from "../picture.ts";
import { drawRects, rectAt, type Window } from "../raster.ts";
import { drawAxes, FONT, fitted, plane, type Surface } from "./canvas.ts";
import { h } from "./dom.ts";
import { keyMoves, listen } from "./gestures.ts";
import {
  type Frame,
  kindOf,
  rectName,
  type Selection,
  type Shown,
  type State,
  type Store,
  selectionOn,
  selectRect,
} from "./store.ts";

/** The frame in steps of one picture. */
export function windowOf({ t0, t1, a0, a1 }: Frame, { picture }: Shown): Window {
  return { t0: t0 * picture.columns, t1: t1 * picture.columns, a0, a1 };
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

export interface MapView {
  readonly element: HTMLElement;
  draw(state: State, before: State | null): void;
}

export function mapView(store: Store, side: number, hint: HTMLElement): MapView {
  const canvas = h("canvas", {
    class: "plane map",
    tabindex: 0,
    role: "application",
    "aria-roledescription": "arena map",
  });
  const element = h("div", { class: "map-box", "data-side": side }, canvas);
  const toPlane = (x: number, y: number): { rect: number; time: number } => {
    const { frame, sides } = store.get();
    const shown = sides[side];
    if (!shown) return { rect: -1, time: 0 };
    const w = windowOf(frame, shown);
    const time = w.t0 + (w.t1 - w.t0) * x;
    return { rect: rectAt(shown.picture.rects, time, w.a0 + (w.a1 - w.a0) * y), time };
  };
  listen(canvas, store, locator(canvas), {
    vertical: true,
    click(x, y) {
      const { rect, time } = toPlane(x, y);
      if (rect >= 0) selectRect(store, side, rect, time);
      else store.set({ selection: null });
    },
    hover(x, y) {
      const shown = store.get().sides[side];
      const { rect, time } = toPlane(x, y);
      hint.textContent = shown && rect >= 0 ? `${rectText(shown, rect)} · step ${Math.floor(time)}` : "";
    },
    leave: () => {
      hint.textContent = "";
    },
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey) return;
    if (keyMoves(event.key, store) || stepThrough(event.key, store, side)) event.preventDefault();
  });
  const painter = createPainter(canvas, side);
  return { element, draw: (state, before) => painter(state, before) };
}

/** Pointer positions as fractions of the plane. */
export function locator(canvas: HTMLCanvasElement) {
  return ({ clientX, clientY }: { readonly clientX: number; readonly clientY: number }) => {
    const box = canvas.getBoundingClientRect();
    const surface = { canvas, width: box.width, height: box.height } as Surface;
    const { x, y, w, h: high } = plane(surface);
    return { x: (clientX - box.left - x) / w, y: 1 - (clientY - box.top - y) / high };
  };
}

export function rectText(shown: Shown, rect: number): string {
  const { start, end, bytes } = shown.picture.rects;
  const range = placeText(shown.picture, rect);
  const steps = `steps ${start[rect]}–${(end[rect] ?? 0) - 1}`;
  return `${rectName(shown, rect)} · ${KIND_LABELS[kindOf(shown, rect)]} · ${formatBytes(bytes[rect] ?? 0)} · ${range} · ${steps}`;
}

/** `]` and `[` go to the next and the previous rectangle, in order of time. */
function stepThrough(key: string, store: Store, side: number): boolean {
  if (key !== "[" && key !== "]") return false;
  const shown = store.get().sides[side];
  if (!shown) return false;
  const { start, from } = shown.picture.rects;
  const order = Array.from({ length: start.length }, (_, i) => i).sort(
    (a, b) => (start[a] ?? 0) - (start[b] ?? 0) || (from[a] ?? 0) - (from[b] ?? 0),
  );
  const selection = selectionOn(store.get(), side);
  const at = selection?.rect === null || !selection ? -1 : order.indexOf(selection.rect ?? -1);
  const next = key === "]" ? at + 1 : Math.max(at, 1) - 1;
  const rect = order[next % order.length];
  if (rect !== undefined) selectRect(store, side, rect);
  return true;
}

function createPainter(canvas: HTMLCanvasElement, side: number): (state: State, before: State | null) => void {
  let image: ImageData | null = null;
  let pixels = new Uint32Array();
  return (state, before) => {
    const shown = state.sides[side];
    const surface = shown && fitted(canvas);
    if (!shown || !surface) return;
    const { context, scale } = surface;
    const { x, y, w, h: high } = plane(surface);
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
      before.theme === state.theme;
    if (!same) {
      const { inks, background } = state.theme;
      const paint = { inks, background, bright: brightRects(shown, state.query) };
      drawRects({ pixels, width, height }, shown.picture.rects, view, paint);
    }
    context.clearRect(0, 0, surface.width, surface.height);
    context.putImageData(image, Math.round(x * scale), Math.round(y * scale));
    drawNames(surface, shown, view, state);
    drawBudget(surface, shown, view, state);
    drawSpaces(surface, shown, view, state);
    drawSelection(surface, shown, view, { selection: selectionOn(state, side), theme: state.theme });
    drawAxes(surface, view, state.theme);
    canvas.setAttribute("aria-label", mapLabel(shown, state, side));
  };
}

function mapLabel(shown: Shown, state: State, side: number): string {
  const { picture } = shown;
  const rect = selectionOn(state, side)?.rect ?? null;
  const used = picture.spaces?.map(({ name, heightBytes }) => `${formatBytes(heightBytes)} of ${name}`).join(", ");
  const bytes = used ?? formatBytes(picture.heightBytes);
  const what = `${picture.name}: ${rectCount(picture.rects)} buffers over ${picture.columns} steps in ${bytes}`;
  return rect === null
    ? `${what}. Brackets go through buffers, arrows move, plus and minus zoom.`
    : rectText(shown, rect);
}

/** Corners of a rectangle in CSS pixels, clipped to the plane. */
function boxOf(surface: Surface, { picture }: Shown, view: Window, rect: number) {
  const { x, y, w, h: high } = plane(surface);
  const { start, end, from, bytes } = picture.rects;
  const [low, top] = [from[rect] ?? 0, (from[rect] ?? 0) + (bytes[rect] ?? 0)];
  const across = (t: number) => x + Math.max(0, Math.min(1, (t - view.t0) / (view.t1 - view.t0))) * w;
  const up = (a: number) => y + high - Math.max(0, Math.min(1, (a - view.a0) / (view.a1 - view.a0))) * high;
  return { left: across(start[rect] ?? 0), right: across(end[rect] ?? 0), top: up(top), bottom: up(low) };
}

/** Names where there is room. */
function drawNames(surface: Surface, shown: Shown, view: Window, state: State): void {
  const { context } = surface;
  const { rects } = shown.picture;
  const { w, h: high } = plane(surface);
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
    const box = boxOf(surface, shown, view, i);
    const room = Math.floor((box.right - box.left - 8) / 6.7);
    if (room < 2 || box.bottom - box.top < 12) continue;
    left -= 1;
    const text = fittingName(rectName(shown, i), room);
    const light = ["persistent", "result", "gradient", "scratch"].includes(kindOf(shown, i));
    context.fillStyle = light ? "#ffffff" : "#101418";
    context.fillText(text, box.left + 4, (box.top + box.bottom) / 2 + 0.5);
  }
}

function drawBudget(surface: Surface, { picture }: Shown, view: Window, { theme }: State): void {
  const { context } = surface;
  const { x, y, w, h: high } = plane(surface);
  const line = (bytes: number, colour: string, dash: readonly number[]): void => {
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
  const { spaces = [], heightBytes, budgetBytes } = picture;
  line(heightBytes, theme.quiet, [2, 3]);
  for (const { from, heightBytes: bytes } of spaces.slice(1)) line(from + bytes, theme.quiet, [2, 3]);
  // above the arena there are other spaces
  if (budgetBytes !== null && (spaces.length === 0 || budgetBytes <= heightBytes))
    line(budgetBytes, theme.budget, [7, 4]);
}

/** The name of each memory space at its bottom, if there are several. */
function drawSpaces(surface: Surface, { picture }: Shown, view: Window, { theme }: State): void {
  const { context } = surface;
  const { x, y, w, h: high } = plane(surface);
  context.font = FONT;
  context.textAlign = "right";
  context.textBaseline = "bottom";
  context.fillStyle = theme.accent;
  for (const { name, from, heightBytes } of picture.spaces ?? []) {
    if (from + heightBytes <= view.a0 || from >= view.a1) continue;
    const low = Math.max(from, view.a0);
    context.fillText(name, x + w - 4, y + high - ((low - view.a0) / (view.a1 - view.a0)) * high - 2);
  }
}

/** The selection of a side, in the page's colours. */
interface Highlight {
  readonly selection: Selection | null;
  readonly theme: State["theme"];
}

function drawSelection(surface: Surface, shown: Shown, view: Window, { selection, theme }: Highlight): void {
  if (!selection) return;
  const { context } = surface;
  const { x, y, w, h: high } = plane(surface);
  if (selection.step !== null && selection.step >= view.t0 && selection.step < view.t1) {
    context.fillStyle = theme.accent;
    context.fillRect(x + ((selection.step + 0.5 - view.t0) / (view.t1 - view.t0)) * w, y, 1, high);
  }
  if (selection.rect === null) return;
  const { left, right, top, bottom } = boxOf(surface, shown, view, selection.rect);
  context.lineWidth = 2;
  context.strokeStyle = theme.dark ? "#000000" : "#ffffff";
  context.strokeRect(left - 2, top - 2, Math.max(3, right - left) + 4, Math.max(3, bottom - top) + 4);
  context.strokeStyle = theme.accent;
  context.strokeRect(left, top, Math.max(3, right - left), Math.max(3, bottom - top));
}
