/**
 * @file The page: reads the data that came with it, puts the views together and lets them draw. Every view has an element
 * and `draw(state, before)`; nothing else is shared but the store.
 */
import type { ViewData, ViewEntry } from "../data.ts";
import { chartView } from "./chart.ts";
import { compareView } from "./compare.ts";
import { curveView, showEntry } from "./curve.ts";
import { button, h, replace } from "./dom.ts";
import { acceptDrops, addEntries, fileButton, openFiles } from "./files.ts";
import { helpDialog } from "./help.ts";
import { drawFigures, drawLegend } from "./legend.ts";
import { mapsView, messageView, section, themeButton } from "./parts.ts";
import { programView } from "./program.ts";
import { searchView } from "./search.ts";
import { fetchCurve, fetchPlan, fetchStory } from "./server.ts";
import { createStore, type State, type Store, shownOf, wholeFrame } from "./store.ts";
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
    { ...{ title, entries, sides, curve, live, budgetBytes }, selection: null, query: "", busy: false, message: "" },
    dark,
  );
}

/** A menu of entries; `none` is the text of choosing no entry. */
function entryMenu(store: Store, label: string, side: number, none: string | null) {
  const menu = h("select", { "aria-label": label, title: label });
  menu.addEventListener("change", () => {
    const { entries, sides } = store.get();
    const entry = entries[Number(menu.value)];
    if (entry && side === 0) return showEntry(store, entry);
    const next = entry ? ([sides[0], shownOf(entry)] as const) : ([sides[0]] as const);
    store.set({ sides: next, frame: wholeFrame(next), selection: null });
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

function openBody(store: Store, step: number, body: number): void {
  const [shown] = store.get().sides;
  const picture = shown.picture.steps[step]?.bodies[body];
  if (!picture) return;
  const label = `${shown.entry.label} / step ${step}, ${picture.name}`;
  const asks = shown.entry.asks === null ? null : `${shown.entry.asks}/${step}.${body}`;
  addEntries(store, [{ label, budgetBytes: null, predictedMs: null, picture, asks }], "shown");
}

function build(store: Store): (state: State, before: State | null) => void {
  const hint = h("div", { class: "hint" });
  const [maps, chart, curve] = [mapsView(store, hint), chartView(store, hint), curveView(store, fetchPlan)];
  const program = programView(store);
  const story = storyView(store, (step, body) => openBody(store, step, body), fetchStory);
  const [compare, search, message] = [compareView(store), searchView(store), messageView(store)];
  const plans = entryMenu(store, "plan", 0, null);
  const others = entryMenu(store, "compare with", 1, "compare with …");
  const help = helpDialog();
  const [legend, figures] = [h("ul", { class: "legend" }), h("div", { class: "figures" })];
  const difference = section("difference", "order-4", compare.element);
  const open = (as: "shown" | "compared") => (files: readonly File[]) => void openFiles(store, files, as);
  document.body.append(
    h(
      "header",
      {},
      h("h1", { title: store.get().title }, store.get().title),
      ...[plans.element, others.element, search.element, h("span", { class: "spacer" })],
      ...[fileButton("open", open("shown")), fileButton("compare file", open("compared"))],
      ...[themeButton(store), button("?", () => help.showModal(), { "aria-label": "keys and help" })],
    ),
    ...[message.element, figures],
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
        difference,
        section("story", "order-3", story.element),
      ),
    ),
    help,
  );
  listenToKeys(store, search.input, help);
  const views = [plans, others, message, maps, chart, curve, program, story, compare, search];
  return (state, before) => {
    difference.hidden = state.sides.length < 2;
    if (before?.sides !== state.sides || before.theme !== state.theme) drawLegend(legend, state);
    if (before?.sides !== state.sides) drawFigures(figures, state);
    for (const view of views) view.draw(state, before);
  };
}

function listenToKeys(store: Store, search: HTMLInputElement, help: HTMLDialogElement): void {
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement && event.target.type !== "range";
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      search.focus();
    }
    if (event.key === "?") help.showModal();
    if (event.key === "Escape" && !help.open) store.set({ selection: null });
  });
}

function start(): void {
  document.head.append(h("style", {}, STYLE));
  const store = storeOf(readData());
  const draw = build(store);
  draw(store.get(), null);
  performance.mark("first-picture");
  document.documentElement.dataset.ready = "true";
  store.onChange(draw);
  new ResizeObserver(() => store.set({})).observe(document.body);
  acceptDrops(store);
  if (store.get().live && store.get().curve === null) void fetchCurve(store);
}

start();
