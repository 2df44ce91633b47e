/** @file The views of `tidemark view` in a figure: map, memory over time, curve. They redraw together from one store. */

import type { ViewEntry } from "../../../src/view/data.ts";
import { chartView } from "../../../src/view/page/chart.ts";
import { h } from "../../../src/view/page/dom.ts";
import { drawLegend } from "../../../src/view/page/legend.ts";
import { themeOf } from "../../../src/view/page/palette.ts";
import { mapsView, section } from "../../../src/view/page/parts.ts";
import { createStore, type State, type Store, shownOf, wholeFrame } from "../../../src/view/page/store.ts";
import { isDark, onTheme } from "./start.ts";

export function storeOf(title: string, entry: ViewEntry): Store {
  const none = { selection: null, query: "", busy: false, message: "", curve: null, budgetBytes: null };
  const reachBytes = entry.picture.heightBytes;
  const store = createStore(
    { ...none, reachBytes, title, entries: [entry], sides: [shownOf(entry)], live: true },
    isDark(),
  );
  onTheme(() => store.set({ theme: themeOf(isDark()) }));
  return store;
}

/** Another plan on the scale of the largest so far. */
export function showPlan(store: Store, entry: ViewEntry, reachBytes: number): void {
  const sides = [shownOf(entry)] as const;
  store.set({ sides, entries: [entry], reachBytes, selection: null, frame: wholeFrame(sides, reachBytes) });
}

/** Draws now, after every change, and when there is another width. */
export function follow(store: Store, element: HTMLElement, draw: (state: State, before: State | null) => void): void {
  draw(store.get(), null);
  store.onChange(draw);
  new ResizeObserver(() => store.set({})).observe(element);
}

/** The map with its legend and a line about the rectangle under the pointer. */
export function mapPart(store: Store) {
  const hint = h("div", { class: "hint" });
  const legend = h("ul", { class: "legend" });
  const maps = mapsView(store, hint);
  return {
    element: section("arena map", "", maps.element, hint, legend),
    draw(state: State, before: State | null): void {
      if (before?.sides !== state.sides || before.theme !== state.theme) drawLegend(legend, state);
      maps.draw(state, before);
    },
  };
}

/** Live bytes over the steps. */
export function chartPart(store: Store) {
  const hint = h("div", { class: "hint" });
  const chart = chartView(store, hint);
  return { element: section("memory over time", "", chart.element, hint), draw: chart.draw };
}
