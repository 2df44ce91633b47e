/**
 * @file The page with the editor: a text is sent to a worker shortly after its last change; the page shows the result,
 * or the error at its line. What is shown of an earlier text is pale until the result is there.
 */
import type { AddressFields } from "../../view/address.ts";
import type { ViewCurve } from "../../view/data.ts";
import { type Address, createAddress } from "../../view/page/address.ts";
import { button, h, replace } from "../../view/page/dom.ts";
import { drawFigures } from "../../view/page/legend.ts";
import { section } from "../../view/page/parts.ts";
import { applyPlace, placeFields, QUIET_FIELDS } from "../../view/page/place.ts";
import type { State, Store } from "../../view/page/store.ts";
import { type Complaint, FILE, isComplaint } from "../complaint.ts";
import { EXAMPLES } from "../examples.ts";
import type { Sight } from "../study.ts";
import { readWorkerScript } from "./client.ts";
import { firstOpening, type Opening, openingOf, rememberText, textFields } from "./edit-link.ts";
import { createEditor, type Editor } from "./editor.ts";
import { textsView } from "./graph-texts.ts";
import { drawAlways, dress, headerOf, showFresh, storeFor, titleOf } from "./shell.ts";
import { createTexts } from "./texts.ts";
import { type PlanViews, planViews } from "./views.ts";

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

const FROM_LINK = "This program came with the link. It has not run: read it, then ";

/** The page has one plan of its own, that with everything stored. */
const PLACE = { plan: 0, compared: null, count: 1 } as const;

/** The editor with what belongs to it. */
interface Desk {
  readonly element: HTMLElement;
  readonly editor: Editor;
  readonly menu: HTMLSelectElement;
  /** Shows how far the analysis is. */
  say(status: string): void;
  complain(complaint: Complaint | null): void;
  /** Shows that the text waits for the user. */
  holds(isHeld: boolean): void;
}

/** What the user does at the desk. */
interface DeskEvents {
  changed(): void;
  chosen(example: number): void;
  run(): void;
}

function createDesk(opening: Opening, events: DeskEvents): Desk {
  const complaint = h("div", { class: "complaint", id: "complaint", role: "alert", hidden: true });
  const status = h("p", { class: "status", role: "status" });
  const run = button("run it", events.run, { class: "main", id: "run" });
  const held = h("p", { class: "held", role: "status", id: "held", hidden: true }, FROM_LINK, run);
  const editor = createEditor(opening.text, events.changed);
  const menu = h("select", { "aria-label": "example", id: "example" });
  replace(menu, ...EXAMPLES.map(({ name }, i) => h("option", { value: i, selected: i === opening.example }, name)));
  menu.addEventListener("change", () => events.chosen(Number(menu.value)));
  const label = h("label", { class: "controls" }, h("span", { class: "quiet" }, "example"), menu);
  const keys = h("p", { class: "keys-note", id: "editor-keys" }, KEYS);
  return {
    element: section("function", "early-1", label, held, editor.element, keys, status, complaint),
    ...{ editor, menu },
    say(text) {
      status.textContent = text;
    },
    complain(wrong) {
      editor.complain(wrong);
      complaint.hidden = wrong === null;
      // An error with a line is shown there; here it is for screen readers.
      complaint.classList.toggle("unseen", wrong?.line != null);
      complaint.textContent = wrong?.message ?? "";
    },
    holds(isHeld) {
      held.hidden = !isHeld;
    },
  };
}

/** Analyses the text in the editor, now or shortly after its last change. */
function createStudy(desk: () => Desk, seen: (sight: Sight) => void, curve: (curve: ViewCurve) => void) {
  const texts = createTexts(curve);
  let timer = 0;
  const stale = (isStale: boolean): void => {
    document.documentElement.classList.toggle("stale", isStale);
  };
  const look = async (): Promise<void> => {
    const text = desk().editor.text();
    desk().holds(false);
    desk().say("planning …");
    rememberText(text);
    const analysis = await texts.look(text);
    if (!analysis) return;
    const wrong = isComplaint(analysis) ? analysis : null;
    desk().say(wrong ? "The views show the last valid text." : "");
    desk().complain(wrong);
    if (wrong) return;
    stale(false);
    seen(analysis as Sight);
  };
  return {
    ...texts,
    now: look,
    soon(): void {
      stale(true);
      texts.drop();
      clearTimeout(timer);
      timer = window.setTimeout(() => void look(), PAUSE_MS);
    },
    /** Cancels whatever was to run. */
    stop(): void {
      stale(true);
      texts.drop();
      clearTimeout(timer);
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

/** Everything that a started page has. */
interface Started {
  readonly store: Store;
  readonly views: PlanViews;
  readonly address: Address;
}

/** Everything around the editor, once there is a first plan. */
function build({ store, views, address }: Started, desk: Desk, texts: HTMLElement) {
  const figures = h("div", { class: "figures" });
  const graphs = section("graphs", "order-4", texts);
  document.body.append(
    headerOf(store, "edit", address),
    ...[views.message, views.sentence],
    h("p", { class: "about" }, ...ABOUT.map((part, i) => (i % 2 === 1 ? h("code", {}, part) : part))),
    figures,
    h(
      "main",
      { class: "wide" },
      h("div", { class: "left column" }, desk.element, graphs, views.program),
      h("div", { class: "right" }, views.map, views.story, views.curve, views.chart),
    ),
  );
  return (state: State, before: State | null): void => {
    if (before?.sides !== state.sides) drawFigures(figures, state);
    if (before?.selection !== state.selection) desk.editor.mark(selectedLine(state));
    views.draw(state, before);
    address.changed();
  };
}

/** The state of the page in its address. */
function addressOf(store: Store, desk: Desk, study: StudyClient, views: PlanViews): Address {
  const fields = async (): Promise<AddressFields> => ({
    ...(await textFields(desk.editor.text(), Number(desk.menu.value))),
    ...placeFields(store.get(), PLACE),
  });
  const apply = async (given: AddressFields): Promise<readonly string[]> => {
    const { text, example, runs, problems } = await openingOf(given);
    desk.menu.value = `${example}`;
    if (text !== desk.editor.text()) {
      desk.editor.set(text);
      desk.holds(!runs);
      desk.complain(null);
      if (!runs) {
        study.stop();
        return problems;
      }
      await study.now();
    }
    return [...problems, ...(await applyPlace(store, given, PLACE, views.ask))];
  };
  return createAddress({ fields, apply, note: (message) => store.set({ message }), quiet: QUIET_FIELDS });
}

async function start(): Promise<void> {
  dress();
  const [opening] = await Promise.all([firstOpening(), readWorkerScript()]);
  const texts = textsView();
  let started: Started | null = null;
  const changed = (): void => {
    study.soon();
    started?.address.changed();
  };
  const desk: Desk = createDesk(opening, {
    changed,
    chosen(example) {
      desk.editor.set(EXAMPLES[example]?.text ?? "");
      started?.store.set({ budgetBytes: null });
      changed();
    },
    run: () => void study.now(),
  });
  // Before the first plan the page is the editor.
  const first = [h("header", {}, ...titleOf("edit")), h("main", { class: "wide" }, desk.element)];
  document.body.append(...first);
  const seen = (sight: Sight): void => {
    texts.set(sight);
    if (started) {
      const { budgetBytes } = started.store.get();
      showFresh(started.store, sight.entry);
      // The budget stays while a text is edited.
      if (budgetBytes !== null && budgetBytes < sight.entry.picture.heightBytes) void started.views.ask(budgetBytes);
      return;
    }
    const store = storeFor("edit", sight.entry);
    const views = planViews(store, study.within, study.story);
    started = { store, views, address: addressOf(store, desk, study, views) };
    for (const part of first) part.remove();
    drawAlways(store, build(started, desk, texts.element));
    document.documentElement.dataset.ready = "true";
    if (opening.problems.length > 0) store.set({ message: `Of the address, ${opening.problems.join("; ")}.` });
    void started.address.follow();
  };
  const study: StudyClient = createStudy(
    () => desk,
    seen,
    (curve) => started?.store.set({ curve }),
  );
  desk.holds(!opening.runs);
  if (opening.runs) await study.now();
  else document.documentElement.dataset.ready = "true";
}

void start();
