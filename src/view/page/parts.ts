/** @file Parts that pages are put together from: maps side by side, messages, sections, the change of colours. */
import { button, h, replace } from "./dom.ts";
import { type MapView, mapView } from "./map.ts";
import { themeOf } from "./palette.ts";
import type { State, Store } from "./store.ts";

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

/** The maps of all sides; a second one comes and goes. */
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
