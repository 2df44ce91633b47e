/**
 * @file The page with the editor: a text is sent to a worker shortly after its last change; the page shows the result,
 * or the error at its line.
 */

import type { ViewCurve } from "../../view/data.ts";
import { button, h, replace } from "../../view/page/dom.ts";
import { drawFigures } from "../../view/page/legend.ts";
import { section } from "../../view/page/parts.ts";
import type { State, Store } from "../../view/page/store.ts";
import { type Complaint, FILE, isComplaint } from "../complaint.ts";
import { EXAMPLES } from "../examples.ts";
import type { Sight } from "../study.ts";
import { createEditor, type Editor } from "./editor.ts";
import { drawAlways, dress, headerOf, showFresh, storeFor } from "./shell.ts";
import { createTexts } from "./texts.ts";
import { planViews } from "./views.ts";

/** Delay after the last change. */
const PAUSE_MS = 250;

const ABOUT: readonly string[] = [
  ...[
    "Edit the function: the page updates its graph, its derivative and their plan. ",
    "loss",
    " returns a scalar, ",
    "args",
  ],
  " are its arguments. The text runs in a worker of this page, for at most three seconds.",
];

const KEYS = "Tab indents; Escape, then Tab leaves the field. Ctrl-Space completes a name.";

/** The text of a graph under its tab. */
function textsView() {
  const tabs = [
    { name: "graph", text: "" },
    { name: "gradient", text: "" },
  ];
  let shown = 1;
  const place = h("pre", { class: "text", tabindex: 0, role: "tabpanel", id: "graph-text" });
  const bar = h("div", { class: "tabs", role: "tablist", "aria-label": "graphs" });
  const draw = (): void => {
    const buttons = tabs.map(({ name }, i) => {
      const attributes = { role: "tab", id: `tab-${name}`, "aria-selected": i === shown ? "true" : "false" };
      return button(name, () => choose(i), { ...attributes, "aria-controls": "graph-text" });
    });
    replace(bar, ...buttons);
    place.textContent = tabs[shown]?.text ?? "";
  };
  const choose = (tab: number): void => {
    shown = tab;
    draw();
    (bar.children[tab] as HTMLElement | undefined)?.focus();
  };
  return {
    element: h("div", {}, bar, place),
    set({ graph, gradient }: Sight): void {
      [graph, gradient].forEach((text, i) => {
        (tabs[i] as { text: string }).text = text;
      });
      draw();
    },
  };
}

interface Desk {
  readonly editor: Editor;
  readonly status: HTMLElement;
  readonly complaint: HTMLElement;
  failed(complaint: Complaint): void;
}

/** Analyses the text in the editor, now or shortly after its last change. */
function createStudy(desk: Desk, seen: (sight: Sight) => void, curve: (curve: ViewCurve) => void) {
  const texts = createTexts(curve);
  let timer = 0;
  const complain = (complaint: Complaint | null): void => {
    desk.editor.complain(complaint);
    desk.complaint.hidden = complaint === null;
    // An error with a line is shown there; here it is for screen readers.
    desk.complaint.classList.toggle("unseen", complaint?.line != null);
    desk.complaint.textContent = complaint?.message ?? "";
  };
  const look = async (): Promise<void> => {
    desk.status.textContent = "planning …";
    const analysis = await texts.look(desk.editor.text());
    if (!analysis) return;
    const wrong = isComplaint(analysis) ? analysis : null;
    desk.status.textContent = wrong ? "The views show the last valid text." : "";
    complain(wrong);
    if (wrong) desk.failed(wrong);
    else seen(analysis as Sight);
  };
  return {
    ...texts,
    now: look,
    soon(): void {
      texts.drop();
      clearTimeout(timer);
      timer = window.setTimeout(() => void look(), PAUSE_MS);
    },
  };
}

type StudyClient = ReturnType<typeof createStudy>;

/** The line of the text that the selected step comes from. */
function selectedLine({ selection, sides }: State): number | null {
  const where = selection?.step == null ? null : sides[0].picture.steps[selection.step]?.where;
  const line = where ? new RegExp(`^${FILE.replace(".", "\\.")}:(\\d+):`).exec(where)?.[1] : undefined;
  return line === undefined ? null : Number(line);
}

function deskView(desk: Desk, study: () => StudyClient) {
  const menu = h("select", { "aria-label": "example", id: "example" });
  replace(menu, ...EXAMPLES.map(({ name }, i) => h("option", { value: i }, name)));
  menu.addEventListener("change", () => {
    desk.editor.set(EXAMPLES[Number(menu.value)]?.text ?? "");
    study().soon();
  });
  const label = h("label", { class: "controls" }, h("span", { class: "quiet" }, "example"), menu);
  const keys = h("p", { class: "keys-note", id: "editor-keys" }, KEYS);
  return section("function", "early-1", label, desk.editor.element, keys, desk.status, desk.complaint);
}

/** The editor, its controls, and the texts of graphs. */
interface Panels {
  readonly editor: HTMLElement;
  readonly texts: HTMLElement;
}

/** Everything below the editor, once there is a first plan. */
function build(store: Store, study: StudyClient, desk: Desk, panels: Panels) {
  const views = planViews(store, study.within, study.story);
  const figures = h("div", { class: "figures" });
  document.body.append(
    headerOf(store, "edit"),
    views.message,
    h("p", { class: "about" }, ...ABOUT.map((part, i) => (i % 2 === 1 ? h("code", {}, part) : part))),
    figures,
    h(
      "main",
      { class: "wide" },
      h("div", { class: "left" }, panels.editor, section("graphs", "early-2", panels.texts), views.story),
      h("div", { class: "right" }, views.map, views.chart, views.curve, views.program),
    ),
  );
  return (state: State, before: State | null): void => {
    if (before?.sides !== state.sides) drawFigures(figures, state);
    if (before?.selection !== state.selection) desk.editor.mark(selectedLine(state));
    views.draw(state, before);
  };
}

function start(): void {
  dress();
  const wait = h("p", { class: "about" }, "planning …");
  document.body.append(wait);
  const complaint = h("div", { class: "complaint", id: "complaint", role: "alert", hidden: true });
  const status = h("p", { class: "status", role: "status" });
  const texts = textsView();
  let store: Store | null = null;
  const desk: Desk = {
    ...{ editor: createEditor(EXAMPLES[0]?.text ?? "", () => study.soon()), status, complaint },
    failed({ message }) {
      if (!store) wait.textContent = `The page does not start: ${message}`;
    },
  };
  const seen = (sight: Sight): void => {
    texts.set(sight);
    if (store) showFresh(store, sight.entry);
    else {
      store = storeFor("edit", sight.entry);
      wait.remove();
      drawAlways(store, build(store, study, desk, { editor: box, texts: texts.element }));
      document.documentElement.dataset.ready = "true";
    }
  };
  const study: StudyClient = createStudy(desk, seen, (curve) => store?.set({ curve }));
  const box = deskView(desk, () => study);
  void study.now();
}

start();
