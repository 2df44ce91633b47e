/**
 * @file The page: reads its embedded data, assembles the views and draws them. Every view has an element and
 * `draw(state, before)`; they share only the store.
 */
import type { ViewData, ViewEntry } from "../data.ts";
import { type Address, createAddress } from "./address.ts";
import { chartView } from "./chart.ts";
import { compareView } from "./compare.ts";
import { curveView } from "./curve.ts";
import { button, h } from "./dom.ts";
import { acceptDrops, fileButton, openFiles } from "./files.ts";
import { heldTable } from "./held.ts";
import { helpDialog } from "./help.ts";
import { drawFigures, drawLegend } from "./legend.ts";
import { packedStory } from "./packed.ts";
import { entryMenu, listenToKeys, mapsView, messageView, openBody, section, themeButton } from "./parts.ts";
import { pictureButton } from "./picture-file.ts";
import { applyPlace, placeFields, QUIET_FIELDS } from "./place.ts";
import { programView } from "./program.ts";
import { searchView } from "./search.ts";
import { sentenceView } from "./sentence.ts";
import { fetchCurve, fetchPlan, fetchStory } from "./server.ts";
import { copyLinkButton } from "./share.ts";
import { createStore, type State, type Store, shownOf } from "./store.ts";
import { storyView } from "./story.ts";
import { STYLE } from "./style.ts";

function readData(): ViewData {
  return JSON.parse(document.getElementById("data")?.textContent ?? "") as ViewData;
}

function storeOf({ title, entries, first, second, curve, live }: ViewData): Store {
  const entry = entries[first] as ViewEntry;
  const other = second === null ? undefined : entries[second];
  const sides = [shownOf(entry), ...(other ? [shownOf(other)] : [])] as unknown as State["sides"];
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const { budgetBytes } = entry;
  return createStore(
    {
      ...{ title, entries, sides, curve, live, budgetBytes, reachBytes: 0 },
      selection: null,
      query: "",
      busy: false,
      message: "",
    },
    dark,
  );
}

interface Built {
  readonly address: Address;
  draw(state: State, before: State | null): void;
}

/** The address of a page with these data. */
function addressOf(store: Store, { first, second, entries }: ViewData, ask: (bytes: number) => Promise<void>): Address {
  const place = { plan: first, compared: second, count: entries.length };
  const address = createAddress({
    fields: () => placeFields(store.get(), place),
    apply: (fields) => applyPlace(store, fields, place, ask),
    note: (message) => store.set({ message }),
    quiet: QUIET_FIELDS,
  });
  return {
    ...address,
    href() {
      const { sides, entries: all } = store.get();
      const isOwn = sides.every(({ entry }) => all.indexOf(entry) < entries.length);
      if (!isOwn) store.set({ message: "The link opens the page without the plans that were opened here." });
      return address.href();
    },
  };
}

/** Titles, menus and buttons. */
function header(store: Store, address: Address, menus: readonly HTMLElement[], help: HTMLDialogElement): HTMLElement {
  const open = (as: "shown" | "compared") => (files: readonly File[]) => void openFiles(store, files, as);
  const note = (message: string): void => store.set({ message });
  return h(
    "header",
    {},
    h("h1", { title: store.get().title }, store.get().title),
    ...[...menus, h("span", { class: "spacer" })],
    ...[copyLinkButton(address.href, note), pictureButton(store)],
    ...[fileButton("open", open("shown")), fileButton("compare file", open("compared"))],
    ...[themeButton(store), button("?", () => help.showModal(), { "aria-label": "keys and help" })],
  );
}

function build(store: Store, data: ViewData): Built {
  const hint = h("div", { class: "hint" });
  const [maps, chart, curve] = [mapsView(store, hint), chartView(store, hint), curveView(store, fetchPlan)];
  const program = programView(store);
  const stories = store.get().live ? fetchStory : packedStory;
  const story = storyView(store, (step, body) => openBody(store, step, body), stories);
  const [compare, search, message] = [compareView(store), searchView(store), messageView(store)];
  const sentence = sentenceView();
  const plans = entryMenu(store, "plan", 0, null);
  const others = entryMenu(store, "compare with", 1, "compare with …");
  const help = helpDialog(true);
  const address = addressOf(store, data, curve.ask);
  const [legend, figures] = [h("ul", { class: "legend" }), h("div", { class: "figures" })];
  const difference = section("difference", "order-4", compare.element);
  document.body.append(
    header(store, address, [plans.element, others.element, search.element], help),
    ...[message.element, sentence.element, figures],
    h(
      "main",
      {},
      h(
        "div",
        { class: "left" },
        section("arena map", "", maps.element, hint, legend),
        section("memory over time", "", chart.element),
        section("program", "order-5", program.element),
      ),
      h(
        "div",
        { class: "right" },
        section("time against memory", "order-3", curve.element),
        section("story", "order-3", story.element),
        difference,
        ...(data.held ? [section("held for the backward pass", "order-5", heldTable(data.held))] : []),
      ),
    ),
    help,
  );
  listenToKeys(store, search.input, help);
  const views = [sentence, plans, others, message, maps, chart, curve, program, story, compare, search];
  const draw: Built["draw"] = (state, before) => {
    difference.hidden = state.sides.length < 2;
    if (before?.sides !== state.sides || before.theme !== state.theme) drawLegend(legend, state);
    if (before?.sides !== state.sides) drawFigures(figures, state);
    for (const view of views) view.draw(state, before);
    address.changed();
  };
  return { address, draw };
}

function start(): void {
  document.head.append(h("style", {}, STYLE));
  const data = readData();
  const store = storeOf(data);
  const { address, draw } = build(store, data);
  draw(store.get(), null);
  performance.mark("first-picture");
  document.documentElement.dataset.ready = "true";
  store.onChange(draw);
  new ResizeObserver(() => store.set({})).observe(document.body);
  acceptDrops(store);
  void address.follow();
  if (store.get().live && store.get().curve === null) void fetchCurve(store);
}

start();
