/**
 * @file The arena map as a view: the rectangle under the pointer, keys, and the band of persistent buffers, which unfolds
 * when it is clicked. Two plans have two maps on the same scale of addresses.
 */
import { formatBytes } from "../../base/bytes.ts";
import { KIND_LABELS, placeText, rectCount } from "../picture.ts";
import { rectAt } from "../raster.ts";
import { fitted } from "./canvas.ts";
import { h } from "./dom.ts";
import { keyMoves, listen } from "./gestures.ts";
import { createPainter, mapLayout, windowOf } from "./map-drawing.ts";
import {
  foldedOf,
  kindOf,
  rectName,
  type Shown,
  type State,
  type Store,
  selectionOn,
  selectRect,
  toggleFold,
} from "./store.ts";

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
  const at = (x: number, y: number): { rect: number; time: number; folded: boolean } => {
    const state = store.get();
    const shown = state.sides[side];
    if (!shown) return { rect: -1, time: 0, folded: false };
    const fold = foldedOf(state, shown);
    const w = windowOf(state.frame, shown);
    const time = w.t0 + (w.t1 - w.t0) * x;
    const rects = fold?.rects ?? shown.picture.rects;
    const rect = y < 0 ? -1 : rectAt(rects, time, w.a0 + (w.a1 - w.a0) * y);
    return { rect, time, folded: fold !== null && y < 0 && y > -0.2 && x >= 0 && isInBand(canvas, state, side, y) };
  };
  const locate = (event: { readonly clientX: number; readonly clientY: number }) => {
    const box = canvas.getBoundingClientRect();
    const { x, y, w, h: high } = mapLayout(box, store.get(), side).plane;
    return { x: (event.clientX - box.left - x) / w, y: 1 - (event.clientY - box.top - y) / high };
  };
  listen(canvas, store, locate, {
    vertical: true,
    click(x, y) {
      const { rect, time, folded } = at(x, y);
      if (folded) toggleFold(store);
      else if (rect >= 0) selectRect(store, side, rect, time);
      else store.set({ selection: null });
    },
    hover(x, y) {
      const shown = store.get().sides[side];
      const { rect, time, folded } = at(x, y);
      const text = shown && rect >= 0 ? `${rectText(shown, rect)} · step ${Math.floor(time)}` : "";
      hint.textContent = shown && folded ? `${foldText(shown)}; click to unfold` : text;
    },
    leave: () => {
      hint.textContent = "";
    },
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey) return;
    if (keyMoves(event.key, store) || stepThrough(event.key, store, side)) event.preventDefault();
  });
  const painter = createPainter(side);
  return {
    element,
    draw(state, before) {
      const shown = state.sides[side];
      const surface = shown && fitted(canvas);
      if (!shown || !surface) return;
      painter(surface, state, before);
      canvas.setAttribute("aria-label", mapLabel(shown, state, side));
    },
  };
}

/** Whether a height below the plane is in the band of folded buffers. */
function isInBand(canvas: HTMLCanvasElement, state: State, side: number, y: number): boolean {
  const { plane, band } = mapLayout(canvas.getBoundingClientRect(), state, side);
  return band !== null && -y * plane.h <= band.h + 1;
}

/** What the band stands for. */
function foldText({ fold }: Shown): string {
  return `${fold?.count} persistent buffers, ${formatBytes(fold?.bytes ?? 0)}, in the arena all the time`;
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
