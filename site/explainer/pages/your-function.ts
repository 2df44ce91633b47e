/** @file The reader's own function: the playground's editor and views in a figure. */
import { FILE, isComplaint } from "../../../src/playground/complaint.ts";
import { EXAMPLES } from "../../../src/playground/examples.ts";
import { createEditor } from "../../../src/playground/page/editor.ts";
import { textsView } from "../../../src/playground/page/graph-texts.ts";
import { showFresh } from "../../../src/playground/page/shell.ts";
import { PLAYGROUND_STYLE } from "../../../src/playground/page/style.ts";
import { createTexts, type Texts } from "../../../src/playground/page/texts.ts";
import { type PlanViews, planViews } from "../../../src/playground/page/views.ts";
import type { Sight } from "../../../src/playground/study.ts";
import { h, replace } from "../../../src/view/page/dom.ts";
import { section } from "../../../src/view/page/parts.ts";
import type { State, Store } from "../../../src/view/page/store.ts";
import { engineWorker } from "../kit/engine.ts";
import { figureNumber, stage } from "../kit/figure.ts";
import { firstFigure, startPage } from "../kit/start.ts";
import { bytesText } from "../kit/text.ts";
import { follow, storeOf } from "../kit/views.ts";

/** Delay after the last change. */
const PAUSE_MS = 250;

/** The line of the text that the selected step comes from. */
function selectedLine({ selection, sides }: State): number | null {
  const where = selection?.step == null ? null : sides[0].picture.steps[selection.step]?.where;
  const line = where ? new RegExp(`^${FILE.replace(".", "\\.")}:(\\d+):`).exec(where)?.[1] : undefined;
  return line === undefined ? null : Number(line);
}

/** The parts of the figure. */
interface Parts {
  readonly editor: ReturnType<typeof createEditor>;
  readonly graphs: ReturnType<typeof textsView>;
  readonly figures: HTMLElement;
  readonly status: HTMLElement;
  readonly complaint: HTMLElement;
  /** Where the views go when there is a first plan. */
  readonly below: HTMLElement;
}

function createParts(changed: () => void): Parts & { readonly element: HTMLElement } {
  const editor = createEditor(EXAMPLES[0]?.text ?? "", changed);
  const graphs = textsView();
  const menu = h("select", { id: "example" });
  replace(menu, ...EXAMPLES.map(({ name }, i) => h("option", { value: i }, name)));
  menu.addEventListener("change", () => {
    editor.set(EXAMPLES[Number(menu.value)]?.text ?? "");
    changed();
  });
  const status = h("p", { class: "status", role: "status" });
  const complaint = h("div", { class: "complaint", id: "complaint", role: "alert", hidden: true });
  const figures = h("p", { class: "says" });
  const keys = h(
    "p",
    { class: "keys-note", id: "editor-keys" },
    "Tab indents; Escape, then Tab leaves the field. Ctrl-Space completes a name.",
  );
  const below = h("div", {});
  const element = h(
    "div",
    {},
    h("div", { class: "controls" }, h("label", { for: "example" }, "Example"), menu),
    ...[editor.element, keys, status, complaint, figures, below],
  );
  return { element, editor, graphs, figures, status, complaint, below };
}

/** The views of a first plan. */
function started(parts: Parts, sight: Sight, texts: Texts): { readonly store: Store; readonly views: PlanViews } {
  const store = storeOf("edit", sight.entry);
  const views = planViews(store, texts.within, texts.story);
  const columns = h(
    "div",
    { class: "plan-columns" },
    h("div", {}, views.map, views.story, section("graphs", "", parts.graphs.element)),
    h("div", {}, views.curve, views.chart, views.program),
  );
  replace(parts.below, views.sentence, columns);
  follow(store, columns, (state, before) => {
    if (before?.selection !== state.selection) parts.editor.mark(selectedLine(state));
    views.draw(state, before);
  });
  return { store, views };
}

async function own(): Promise<void> {
  document.head.append(
    h(
      "style",
      {},
      `.views{${PLAYGROUND_STYLE.replaceAll(":root[data-theme=dark]{", ":root[data-theme=dark] &{").replaceAll(":root{", "&{")}}`,
    ),
  );
  let timer = 0;
  let shown: { readonly store: Store; readonly views: PlanViews } | null = null;
  const texts = createTexts((curve) => shown?.store.set({ curve }), engineWorker);
  const stale = (isStale: boolean): void => {
    document.documentElement.classList.toggle("stale", isStale);
  };
  const seen = (sight: Sight): void => {
    parts.graphs.set(sight);
    const { heightBytes } = sight.entry.picture;
    replace(
      parts.figures,
      "With everything stored its arena takes ",
      figureNumber("own.arena", heightBytes, bytesText(heightBytes)),
      ".",
    );
    if (!shown) {
      shown = started(parts, sight, texts);
      return;
    }
    const { budgetBytes } = shown.store.get();
    showFresh(shown.store, sight.entry);
    if (budgetBytes !== null && budgetBytes < heightBytes) void shown.views.ask(budgetBytes);
  };
  const look = async (): Promise<void> => {
    parts.status.textContent = "planning …";
    const analysis = await texts.look(parts.editor.text());
    if (!analysis) return;
    const wrong = isComplaint(analysis) ? analysis : null;
    parts.status.textContent = wrong ? "The drawings show the last valid text." : "";
    parts.editor.complain(wrong);
    parts.complaint.hidden = wrong === null;
    // An error with a line is shown there; here it is for screen readers.
    parts.complaint.classList.toggle("unseen", wrong?.line != null);
    parts.complaint.textContent = wrong?.message ?? "";
    if (wrong) return;
    stale(false);
    seen(analysis as Sight);
  };
  const parts = createParts(() => {
    stale(true);
    texts.drop();
    clearTimeout(timer);
    timer = window.setTimeout(() => void look(), PAUSE_MS);
  });
  replace(stage("editor"), parts.element);
  await look();
  firstFigure();
}

startPage([own]);
