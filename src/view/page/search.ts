/** @file Search by name and operation: matches are highlighted in the map, the best ones are listed. */

import { MISS, matchesOf } from "../names.ts";
import { button, h, replace } from "./dom.ts";
import { matched, type Shown, type State, type Store, selectValue } from "./store.ts";

const LISTED = 12;

/** A value of one of the sides. */
interface Hit {
  readonly side: number;
  readonly value: number;
}

/** Matches on the first side, then those only on the second. */
function hitsOf({ sides }: State, query: string): readonly Hit[] {
  const [here, there] = sides;
  const mine = found(here, query).map((value) => ({ side: 0, value }));
  if (!there) return mine;
  const same = matched(there, here);
  const others = found(there, query).filter((value) => (same[value] ?? -1) < 0);
  return [...mine, ...others.map((value) => ({ side: 1, value }))];
}

/** Values that match the query. */
function found({ picture }: Shown, query: string): readonly number[] {
  const matches = matchesOf(picture, query);
  if (!matches) return [];
  const hits = picture.values.map((_, value) => ({ value, rank: matches(value) })).filter(({ rank }) => rank < MISS);
  return hits.sort((a, b) => a.rank - b.rank || a.value - b.value).map(({ value }) => value);
}

export interface SearchView {
  readonly element: HTMLElement;
  readonly input: HTMLInputElement;
  draw(state: State): void;
}

export function searchView(store: Store): SearchView {
  const input = h("input", { type: "search", placeholder: "search by name  ( / )", "aria-label": "search by name" });
  const results = h("div", { class: "results", role: "group", "aria-label": "matches" });
  const choose = ({ side, value }: Hit): void => {
    selectValue(store, side, value);
    input.focus();
    results.hidden = true;
  };
  let listed: State | null = null;
  const list = (state: State): void => {
    if (listed && listed.query === state.query && listed.sides === state.sides) return;
    listed = state;
    const hits = hitsOf(state, state.query);
    const rows = hits.slice(0, LISTED).map((hit) => {
      const { name = "", type = "" } = state.sides[hit.side]?.picture.values[hit.value] ?? {};
      const where = hit.side === 0 ? "" : ", only in B";
      return button(h("span", {}, h("b", {}, name), ` ${type}${where}`), () => choose(hit), { class: "hit" });
    });
    const count = hits.length === 1 ? "1 match" : `${hits.length} matches`;
    // A focused match is about to be removed: move the focus to the field, not the page.
    if (results.contains(document.activeElement)) input.focus();
    replace(results, ...rows, state.query === "" ? null : h("p", { class: "quiet" }, count));
    results.classList.toggle("empty", state.query === "");
  };
  // Update the list at once, not in the next frame: the next key may choose from it.
  const search = (words: string): void => {
    store.set({ query: words });
    list(store.get());
  };
  input.addEventListener("input", () => {
    results.hidden = false;
    search(input.value);
  });
  input.addEventListener("focus", () => {
    results.hidden = false;
  });
  input.addEventListener("keydown", (event) => {
    const [first] = hitsOf(store.get(), input.value);
    if (event.key === "Enter" && first !== undefined) choose(first);
    if (event.key !== "Escape") return;
    input.value = "";
    search("");
    input.blur();
  });
  results.hidden = true;
  const element = h("div", { class: "search" }, input, results);
  element.addEventListener("focusout", (event) => {
    if (!element.contains(event.relatedTarget as Node | null)) results.hidden = true;
  });
  const draw = (state: State): void => {
    // The query may come from the page's address.
    if (input.value !== state.query && document.activeElement !== input) input.value = state.query;
    list(state);
  };
  return { element, input, draw };
}
