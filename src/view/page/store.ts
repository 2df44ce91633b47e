/**
 * @file The state of the page. Views read it and change it by `set`; after changes all views are redrawn once in the
 * next frame, so a selection appears in all views.
 */
import type { ViewCurve, ViewEntry } from "../data.ts";
import { matchValues } from "../difference.ts";
import { type Fold, foldOf } from "../fold.ts";
import { type Band, phaseBands, phaseRuns, type Run } from "../phases.ts";
import {
  KIND_LABELS,
  liveColumns,
  type Picture,
  readersOf,
  rectCount,
  topBytes,
  VIEW_KINDS,
  type ViewKind,
  valuesByRect,
  withColumns,
} from "../picture.ts";
import type { Window } from "../raster.ts";
import { type Theme, themeOf } from "./palette.ts";

/** A picture with derived tables for the views. */
export interface Shown {
  readonly entry: ViewEntry;
  readonly picture: Picture;
  /** Per kind, per moment. */
  readonly live: readonly Float64Array[];
  readonly total: Float64Array;
  readonly byRect: readonly (readonly number[])[];
  readonly readers: readonly (readonly number[])[];
  /** The map without persistent buffers, where there are any. */
  readonly fold: Fold | null;
  readonly runs: readonly Run[];
  readonly bands: readonly Band[];
}

/** `side` is which of the two pictures; a step may be selected without a rectangle. */
export interface Selection {
  readonly side: number;
  readonly rect: number | null;
  readonly value: number | null;
  readonly step: number | null;
}

/** Time as a share of all moments, so that plans of different length line up; addresses in bytes. */
export type Frame = Window;

export interface State {
  readonly title: string;
  readonly entries: readonly ViewEntry[];
  readonly sides: readonly [Shown, ...Shown[]];
  readonly frame: Frame;
  /** The minimum height of the full frame, in bytes. */
  readonly reachBytes: number;
  readonly selection: Selection | null;
  readonly query: string;
  readonly curve: ViewCurve | null;
  readonly live: boolean;
  /** The slider's budget. */
  readonly budgetBytes: number | null;
  readonly busy: boolean;
  /** The last error message. */
  readonly message: string;
  /** The budget that was asked for last, if there is no plan for it. */
  readonly refusedBytes?: number | null;
  /** Whether persistent buffers are drawn one by one; by default they are one band. */
  readonly unfolded?: boolean;
  readonly theme: Theme;
}

export interface Store {
  get(): State;
  set(change: Partial<State>): void;
  onChange(listener: (state: State, before: State) => void): void;
}

export function shownOf(entry: ViewEntry): Shown {
  const picture = withColumns(entry.picture);
  const live = liveColumns(picture);
  const total = new Float64Array(picture.columns);
  for (const mine of live) for (let t = 0; t < total.length; t++) total[t] = (total[t] ?? 0) + (mine[t] ?? 0);
  const [runs, bands] = [phaseRuns(picture.steps), phaseBands(picture.steps)];
  const tables = { byRect: valuesByRect(picture), readers: readersOf(picture), fold: foldOf(picture) };
  return { entry, picture, live, total, ...tables, runs, bands };
}

/** The fold of a side, if it is folded now. */
export const foldedOf = ({ unfolded = false }: Pick<State, "unfolded">, { fold }: Shown): Fold | null =>
  unfolded ? null : fold;

/** Folds persistent buffers, or draws them one by one. */
export function toggleFold(store: Store): void {
  const { sides, reachBytes, unfolded = false } = store.get();
  if (!sides.some(({ fold }) => fold)) return;
  store.set({ unfolded: !unfolded, frame: wholeFrame(sides, reachBytes, !unfolded) });
}

/** Everything; at least `reachBytes` of the arena, so that plans of one program can be seen on one scale. */
export function wholeFrame(sides: readonly Shown[], reachBytes: number, unfolded = false): Frame {
  const tops = sides.map((side) => {
    const folded = foldedOf({ unfolded }, side)?.bytes ?? 0;
    const top = topBytes(side.picture) - folded;
    return { top, highest: Math.max(top, (side.picture.budgetBytes ?? 0) - folded), reach: reachBytes - folded };
  });
  const highest = Math.max(1, ...tops.map((side) => side.highest));
  const top = Math.min(highest, 1.3 * Math.max(1, ...tops.map((side) => side.top)));
  return { t0: 0, t1: 1, a0: 0, a1: Math.max(top, ...tops.map((side) => side.reach)) * 1.02 };
}

export function createStore(first: Omit<State, "frame" | "theme">, dark: boolean): Store {
  let state: State = { ...first, frame: wholeFrame(first.sides, first.reachBytes), theme: themeOf(dark) };
  let drawn = state;
  let waiting = false;
  const listeners: ((state: State, before: State) => void)[] = [];
  const redraw = (): void => {
    waiting = false;
    const before = drawn;
    drawn = state;
    for (const listener of listeners) listener(state, before);
  };
  return {
    get: () => state,
    set(change) {
      state = { ...state, ...change };
      if (!waiting) requestAnimationFrame(redraw);
      waiting = true;
    },
    onChange: (listener) => listeners.push(listener),
  };
}

export const kindOf = ({ picture }: Shown, rect: number): ViewKind =>
  VIEW_KINDS[picture.rects.kind[rect] ?? 0] ?? "allocation";

/** The name of a rectangle: its first value, or its kind. */
export function rectName(shown: Shown, rect: number): string {
  const first = shown.byRect[rect]?.[0];
  const name = first === undefined ? undefined : shown.picture.values[first]?.name;
  return name ?? KIND_LABELS[kindOf(shown, rect)];
}

/** The value of a rectangle at a moment: the last one written before it. */
export function valueAt({ byRect, picture }: Shown, rect: number, time: number): number | null {
  const values = byRect[rect] ?? [];
  const last = values.findLast((v) => (picture.values[v]?.written ?? -1) <= time);
  return last ?? values[0] ?? null;
}

export function selectRect(store: Store, side: number, rect: number, time?: number): void {
  const shown = store.get().sides[side];
  if (!shown || rect < 0 || rect >= rectCount(shown.picture.rects)) return;
  const value = valueAt(shown, rect, time ?? shown.picture.rects.start[rect] ?? 0);
  const written = value === null ? null : (shown.picture.values[value]?.written ?? null);
  const scratchOf = value === null ? (shown.picture.rects.start[rect] ?? null) : null;
  store.set({ selection: { side, rect, value, step: written ?? scratchOf } });
}

export function selectValue(store: Store, side: number, value: number): void {
  const selected = store.get().sides[side]?.picture.values[value];
  if (selected) store.set({ selection: { side, rect: selected.rect, value, step: selected.written } });
}

/** Selects a step, with its result or workspace. */
export function selectStep(store: Store, side: number, step: number): void {
  const shown = store.get().sides[side];
  const selected = shown?.picture.steps[step];
  const value = selected?.writes[0] ?? selected?.reads[0] ?? null;
  const rect = value === null ? (selected?.scratch[0] ?? null) : (shown?.picture.values[value]?.rect ?? null);
  if (shown) store.set({ selection: { side, rect, value, step: Math.min(step, shown.picture.columns - 1) } });
}

/** The selection on another side: the matching value there. */
export function selectionOn(state: State, side: number): Selection | null {
  const { selection, sides } = state;
  if (!selection || selection.side === side) return selection;
  const [here, there] = [sides[selection.side], sides[side]];
  if (!here || !there || selection.value === null) return null;
  const value = matched(here, there)[selection.value] ?? -1;
  const match = there.picture.values[value];
  return match ? { side, value, rect: match.rect, step: match.written } : null;
}

const matches = new WeakMap<Shown, WeakMap<Shown, Int32Array>>();

/** Per value of one side, the matching value of another. */
export function matched(from: Shown, to: Shown): Int32Array {
  const cache = matches.get(from) ?? new WeakMap<Shown, Int32Array>();
  matches.set(from, cache);
  const matching = cache.get(to) ?? matchValues(from.picture, to.picture);
  cache.set(to, matching);
  return matching;
}
