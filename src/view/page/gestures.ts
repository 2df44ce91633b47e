/**
 * @file Navigation in a plane: wheel, drag, pinch and keys change the frame. Pure functions on frames first, then the
 * listeners.
 */
import type { Frame, Store } from "./store.ts";
import { wholeFrame } from "./store.ts";

/** The smallest fraction of time that can fill the plane. */
const CLOSEST = 1e-6;

/** Factors of time and of addresses. */
export interface Zoom {
  readonly across: number;
  readonly up: number;
}

/** A point as fractions of a plane from the left and from below. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

const CENTRE: Point = { x: 0.5, y: 0.5 };

/** Zooms around a fixed point of the frame. */
export function zoomed(frame: Frame, whole: Frame, { across, up }: Zoom, { x, y }: Point): Frame {
  const [t, a] = [frame.t0 + (frame.t1 - frame.t0) * x, frame.a0 + (frame.a1 - frame.a0) * y];
  const time = Math.min(1, Math.max(CLOSEST, (frame.t1 - frame.t0) * across));
  const bytes = Math.min(whole.a1, Math.max(16, (frame.a1 - frame.a0) * up));
  return inside({ t0: t - time * x, t1: t + time * (1 - x), a0: a - bytes * y, a1: a + bytes * (1 - y) }, whole);
}

/** Moves by fractions of the frame. */
export function moved(frame: Frame, whole: Frame, right: number, up: number): Frame {
  const [dt, da] = [(frame.t1 - frame.t0) * right, (frame.a1 - frame.a0) * up];
  return inside({ t0: frame.t0 + dt, t1: frame.t1 + dt, a0: frame.a0 + da, a1: frame.a1 + da }, whole);
}

function inside({ t0, t1, a0, a1 }: Frame, whole: Frame): Frame {
  const time = Math.min(1, t1 - t0);
  const bytes = Math.min(whole.a1, a1 - a0);
  const left = Math.min(Math.max(0, t0), 1 - time);
  const low = Math.min(Math.max(0, a0), whole.a1 - bytes);
  return { t0: left, t1: left + time, a0: low, a1: low + bytes };
}

/** Where a pointer is. */
export type Locate = (event: { readonly clientX: number; readonly clientY: number }) => Point;

export interface Gestures {
  /** Whether addresses move as well; not in charts of time only. */
  readonly vertical: boolean;
  /** A press without a drag. */
  click(x: number, y: number): void;
  hover(x: number, y: number): void;
  leave(): void;
}

export function listen(canvas: HTMLElement, store: Store, locate: Locate, does: Gestures): void {
  const change = (next: (frame: Frame, whole: Frame) => Frame): void => {
    const { frame, sides, reachBytes, unfolded } = store.get();
    store.set({ frame: next(frame, wholeFrame(sides, reachBytes, unfolded)) });
  };
  canvas.addEventListener(
    "wheel",
    (event) => {
      // So that the page can be scrolled past a drawing, zooming needs a modifier key or focus on the drawing.
      if (!event.ctrlKey && !event.shiftKey && !event.altKey && document.activeElement !== canvas) return;
      event.preventDefault();
      const around = locate(event);
      const factor = Math.exp(Math.max(-60, Math.min(60, event.deltaY || event.deltaX)) * 0.004);
      const zoom = { across: event.altKey ? 1 : factor, up: event.shiftKey || !does.vertical ? 1 : factor };
      change((frame, whole) => zoomed(frame, whole, zoom, around));
    },
    { passive: false },
  );
  canvas.addEventListener("dblclick", () => change((_, whole) => whole));
  canvas.addEventListener("pointerleave", () => does.leave());
  listenToPointers(canvas, change, locate, does);
}

function listenToPointers(
  canvas: HTMLElement,
  change: (next: (frame: Frame, whole: Frame) => Frame) => void,
  locate: Locate,
  does: Gestures,
): void {
  const { vertical } = does;
  const down = new Map<number, { x: number; y: number }>();
  let travelled = 0;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    if (down.size === 0) travelled = 0;
    down.set(event.pointerId, locate(event));
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = locate(event);
    const before = down.get(event.pointerId);
    if (!before) return does.hover(now.x, now.y);
    travelled += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
    down.set(event.pointerId, now);
    if (other) {
      const across = Math.max(0.02, Math.abs(before.x - other.x)) / Math.max(0.02, Math.abs(now.x - other.x));
      change((frame, whole) => zoomed(frame, whole, { across, up: vertical ? across : 1 }, other));
    } else if (travelled > 0.008) {
      change((frame, whole) => moved(frame, whole, before.x - now.x, vertical ? before.y - now.y : 0));
    }
    return undefined;
  });
  const up = (event: PointerEvent): void => {
    if (!down.delete(event.pointerId) || event.type === "pointercancel") return;
    const { x, y } = locate(event);
    if (travelled <= 0.008) does.click(x, y);
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
}

/** Handles keys of a focused plane; false if the key has no meaning here. */
export function keyMoves(key: string, store: Store): boolean {
  const { frame, sides, reachBytes, unfolded } = store.get();
  const whole = wholeFrame(sides, reachBytes, unfolded);
  const moves: Readonly<Record<string, () => Frame>> = {
    ArrowLeft: () => moved(frame, whole, -0.15, 0),
    ArrowRight: () => moved(frame, whole, 0.15, 0),
    ArrowUp: () => moved(frame, whole, 0, 0.15),
    ArrowDown: () => moved(frame, whole, 0, -0.15),
    "+": () => zoomed(frame, whole, { across: 0.7, up: 0.7 }, CENTRE),
    "=": () => zoomed(frame, whole, { across: 0.7, up: 0.7 }, CENTRE),
    "-": () => zoomed(frame, whole, { across: 1 / 0.7, up: 1 / 0.7 }, CENTRE),
    "0": () => whole,
  };
  const next = Object.hasOwn(moves, key) ? moves[key] : undefined;
  if (next) store.set({ frame: next() });
  return next !== undefined;
}
