/** @file The plan views of `tidemark view`, for a page that plans in a worker. */
import { chartView } from "../../view/page/chart.ts";
import { curveView, type PlanSource } from "../../view/page/curve.ts";
import { h } from "../../view/page/dom.ts";
import { drawLegend } from "../../view/page/legend.ts";
import { entryMenu, mapsView, messageView, openBody, section } from "../../view/page/parts.ts";
import { programView } from "../../view/page/program.ts";
import { sentenceView } from "../../view/page/sentence.ts";
import type { State, Store } from "../../view/page/store.ts";
import { type StorySource, storyView } from "../../view/page/story.ts";

export interface PlanViews {
  readonly message: HTMLElement;
  readonly sentence: HTMLElement;
  readonly map: HTMLElement;
  readonly chart: HTMLElement;
  readonly curve: HTMLElement;
  readonly program: HTMLElement;
  readonly story: HTMLElement;
  /** Sets the budget; resolves when its plan is shown or refused. */
  ask(budgetBytes: number): Promise<void>;
  draw(state: State, before: State | null): void;
}

export function planViews(store: Store, planFor: PlanSource, storyOf: StorySource): PlanViews {
  const hint = h("div", { class: "hint" });
  const legend = h("ul", { class: "legend" });
  const [maps, chart, curve] = [mapsView(store, hint), chartView(store, hint), curveView(store, planFor)];
  const [program, message, sentence] = [programView(store), messageView(store), sentenceView()];
  const story = storyView(store, (step, body) => openBody(store, step, body), storyOf);
  const menu = entryMenu(store, "plan", 0, null);
  const views = [message, sentence, maps, chart, curve, program, story, menu];
  return {
    message: message.element,
    sentence: sentence.element,
    map: section("arena map", "", menu.element, maps.element, hint, legend),
    chart: section("memory over time", "", chart.element),
    curve: section("time against memory", "early-3", curve.element),
    program: section("program", "order-5 fills", program.element),
    story: section("story", "", story.element),
    ask: curve.ask,
    draw(state, before) {
      menu.element.hidden = state.entries.length < 2;
      if (before?.sides !== state.sides || before.theme !== state.theme) drawLegend(legend, state);
      for (const view of views) view.draw(state, before);
    },
  };
}
