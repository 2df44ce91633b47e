/** @file Components of pages: maps side by side, menus of plans, messages, sections, colours, keys. */
import type { ViewEntry } from "../data.ts";
import { nameInside } from "../story-tree.ts";
import { showEntry } from "./curve.ts";
import { button, h, replace } from "./dom.ts";
import { addEntries } from "./files.ts";
import { type MapView, mapView } from "./map.ts";
import { themeOf } from "./palette.ts";
import { type State, type Store, shownOf, toggleFold, wholeFrame } from "./store.ts";

export function themeButton(store: Store): HTMLElement {
  const element = button("", () => store.set({ theme: themeOf(!store.get().theme.dark) }), { id: "theme" });
  const draw = ({ theme }: State): void => {
    document.documentElement.dataset.theme = theme.dark ? "dark" : "light";
    element.textContent = theme.dark ? "light" : "dark";
    element.setAttribute("aria-label", theme.dark ? "use light colours" : "use dark colours");
  };
  draw(store.get());
  store.onChange(draw);
  return element;
}

/** The maps of all sides; the second one is optional. */
export function mapsView(store: Store, hint: HTMLElement) {
  const element = h("div", { class: "maps" });
  const views: MapView[] = [];
  const draw = (state: State, before: State | null): void => {
    while (views.length < state.sides.length) views.push(mapView(store, views.length, hint));
    if (element.childElementCount !== state.sides.length || before?.sides !== state.sides) {
      const named = state.sides.length > 1;
      const boxes = state.sides.map(({ entry }, i) => {
        const title = h("div", { class: "map-name" }, `${"AB".charAt(i)}: ${entry.label}`);
        return h("div", {}, named ? title : null, (views[i] as MapView).element);
      });
      const focused = document.activeElement;
      replace(element, ...boxes);
      if (focused instanceof HTMLElement && element.contains(focused)) focused.focus();
      element.classList.toggle("two", named);
    }
    state.sides.forEach((_, i) => {
      views[i]?.draw(state, before);
    });
  };
  return { element, draw };
}

export function messageView(store: Store) {
  const text = h("span", {});
  const element = h(
    "div",
    { class: "message", role: "alert" },
    text,
    button("close", () => store.set({ message: "" })),
  );
  const draw = ({ message }: State): void => {
    element.hidden = message === "";
    if (text.textContent !== message) text.textContent = message;
  };
  return { element, draw };
}

export const section = (name: string, order: string, ...children: readonly HTMLElement[]): HTMLElement =>
  h("section", { "aria-label": name, class: order }, h("h2", {}, name), ...children);

/** A menu of entries; `none` is the text of choosing no entry. */
export function entryMenu(store: Store, label: string, side: number, none: string | null) {
  const menu = h("select", { "aria-label": label, title: label });
  menu.addEventListener("change", () => {
    const { entries, sides, reachBytes, unfolded } = store.get();
    const entry = entries[Number(menu.value)];
    if (entry && side === 0) {
      showEntry(store, entry);
      return store.set({ budgetBytes: entry.budgetBytes });
    }
    const next = entry ? ([sides[0], shownOf(entry)] as const) : ([sides[0]] as const);
    store.set({ sides: next, frame: wholeFrame(next, reachBytes, unfolded), selection: null });
    return undefined;
  });
  const draw = ({ entries, sides }: State, before: State | null): void => {
    if (before && before.entries === entries && before.sides === sides) return;
    const shown = entries.indexOf(sides[side]?.entry as ViewEntry);
    const choices = entries.map((e, i) => h("option", { value: i, selected: i === shown }, e.label));
    const other = side === 0 && shown < 0 ? sides[0].entry.label : none;
    replace(menu, other === null ? null : h("option", { value: -1, selected: shown < 0 }, other), ...choices);
  };
  return { element: menu, draw };
}

/** Shows the body of a step as a separate picture. */
export function openBody(store: Store, step: number, body: number): void {
  const [shown] = store.get().sides;
  const picture = shown.picture.steps[step]?.bodies[body];
  if (!picture) return;
  const label = `${shown.entry.label} / step ${step}, ${picture.name}`;
  const asks = shown.entry.asks === null ? null : nameInside(shown.entry.asks, step, body);
  addEntries(store, [{ label, budgetBytes: null, predictedMs: null, picture, asks }], "shown");
}

/** Keys that work wherever the focus is, except in fields. */
export function listenToKeys(store: Store, search: HTMLInputElement, help: HTMLDialogElement): void {
  document.addEventListener("keydown", (event) => {
    const typing = isField(event.target);
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      search.focus();
    }
    if (event.key === "?") help.showModal();
    if (event.key === "p") toggleFold(store);
    if (event.key === "Escape" && !help.open) store.set({ selection: null });
  });
}

const isField = (target: EventTarget | null): boolean =>
  target instanceof HTMLTextAreaElement ||
  (target instanceof HTMLInputElement && target.type !== "range") ||
  (target instanceof HTMLElement && target.isContentEditable);
