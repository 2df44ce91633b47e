/** @file Shared by both pages of the playground: styles, navigation, colours. */
import type { ViewEntry } from "../../view/data.ts";
import type { Address } from "../../view/page/address.ts";
import { button, type Child, h } from "../../view/page/dom.ts";
import { helpDialog } from "../../view/page/help.ts";
import { listenToKeys, themeButton } from "../../view/page/parts.ts";
import { pictureButton } from "../../view/page/picture-file.ts";
import { searchView } from "../../view/page/search.ts";
import { copyLinkButton } from "../../view/page/share.ts";
import { createStore, type State, type Store, shownOf, wholeFrame } from "../../view/page/store.ts";
import { STYLE } from "../../view/page/style.ts";
import { PLAYGROUND_STYLE } from "./style.ts";

/** What the name in the title leads to, written by the build; null: nothing. */
declare const PLAYGROUND_HOME: string | null;

/** A folder that was opened from a file has no first page. */
const FIRST = location.protocol === "file:" ? "index.html" : "./";

const PAGES = [
  { file: FIRST, name: "train" },
  { file: "edit.html", name: "edit" },
] as const;

export const prefersDark = (): boolean => matchMedia("(prefers-color-scheme: dark)").matches;

/** Installs the styles. */
export function dress(): void {
  document.head.append(h("style", {}, STYLE), h("style", {}, PLAYGROUND_STYLE));
  document.documentElement.dataset.theme = prefersDark() ? "dark" : "light";
}

/** A store that shows one plan; smaller plans are shown on its scale. */
export function storeFor(title: string, entry: ViewEntry): Store {
  const reachBytes = entry.picture.heightBytes;
  const none = { selection: null, query: "", busy: false, message: "", curve: null, budgetBytes: null };
  return createStore(
    { ...none, reachBytes, title, entries: [entry], sides: [shownOf(entry)], live: true },
    prefersDark(),
  );
}

/** The title of a page, and the way to the other. */
export function titleOf(page: (typeof PAGES)[number]["name"]): readonly HTMLElement[] {
  const links = PAGES.map(({ file, name }) =>
    h("a", { href: file, "aria-current": name === page ? "page" : null }, name),
  );
  const name = PLAYGROUND_HOME === null ? "Tidemark" : h("a", { href: PLAYGROUND_HOME }, "Tidemark");
  return [h("h1", {}, name, " playground"), h("nav", { "aria-label": "pages" }, ...links)];
}

/** The header of a page, with page-specific content in the middle. */
export function headerOf(
  store: Store,
  page: (typeof PAGES)[number]["name"],
  address: Address,
  ...content: readonly Child[]
): HTMLElement {
  const help = helpDialog(false);
  const search = searchView(store);
  search.draw(store.get());
  store.onChange(search.draw);
  listenToKeys(store, search.input, help);
  document.body.append(help);
  return h(
    "header",
    {},
    ...titleOf(page),
    ...content,
    search.element,
    h("span", { class: "spacer" }),
    ...[copyLinkButton(address.href, (message) => store.set({ message })), pictureButton(store)],
    themeButton(store),
    button("?", () => help.showModal(), { "aria-label": "keys and help" }),
  );
}

/** Draws now and after every change, and when the window changes. */
export function drawAlways(store: Store, draw: (state: State, before: State | null) => void): void {
  draw(store.get(), null);
  store.onChange(draw);
  new ResizeObserver(() => store.set({})).observe(document.body);
}

/** Shows only this plan. */
export function showFresh(store: Store, entry: ViewEntry): void {
  const sides = [shownOf(entry)] as const;
  const reachBytes = entry.picture.heightBytes;
  const none = { selection: null, curve: null, budgetBytes: null, busy: false, message: "", refusedBytes: null };
  store.set({
    ...none,
    reachBytes,
    entries: [entry],
    sides,
    frame: wholeFrame(sides, reachBytes),
  });
}
