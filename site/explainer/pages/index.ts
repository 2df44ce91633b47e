/** @file The first page of the explainer: one plan under a slider. */

import type { ViewEntry } from "../../../src/view/data.ts";
import { h, replace } from "../../../src/view/page/dom.ts";
import { createEngine, latest } from "../kit/engine.ts";
import { figureNumber, slider, stage, verdict } from "../kit/figure.ts";
import { firstFigure, startPage } from "../kit/start.ts";
import { bytesText, percentText } from "../kit/text.ts";
import { chartPart, follow, mapPart, showPlan, storeOf } from "../kit/views.ts";

/** The least budget at the slider, as a share of everything stored. */
const LEAST_SHARE = 46;

async function budget(): Promise<void> {
  const engine = createEngine();
  const box = stage("budget");
  replace(box, h("p", { class: "waits" }, "Planning …"));
  const stored = await engine.call("network", "transformer", false);
  const store = storeOf("transformer", stored);
  const most = stored.picture.heightBytes;
  const [map, chart, told] = [mapPart(store), chartPart(store), verdict()];
  const within = latest((bytes: number) => engine.call("networkWithin", bytes));
  const tell = ({ picture, predictedMs }: ViewEntry): void => {
    const more = (predictedMs ?? 0) / (stored.predictedMs ?? 1) - 1;
    const again = picture.steps.filter((step) => step.again).length;
    told.say(
      ...["The arena takes ", figureNumber("arena", picture.heightBytes, bytesText(picture.heightBytes))],
      ` instead of ${bytesText(most)}, for `,
      figureNumber("more", more, more < 0.0005 ? "no more time" : `${percentText(more)} more time`),
      again === 0 ? ": everything is stored." : `: ${again} of ${picture.steps.length} steps compute something again.`,
    );
  };
  const ask = async (share: number): Promise<void> => {
    const reply = share === 100 ? { entry: stored } : await within(Math.floor((most * share) / 100));
    if (reply === null) return;
    if ("refusal" in reply) return told.say(`No plan fits in ${bytesText((most * share) / 100)}.`);
    showPlan(store, reply.entry, most);
    tell(reply.entry);
  };
  const control = slider({
    ...{ id: "share", label: "Budget", min: LEAST_SHARE, max: 100, value: 100 },
    text: (share) => `${bytesText((most * share) / 100)} (${share} %)`,
    changed: (share) => void ask(share),
  });
  const columns = h("div", { class: "plan-columns" }, map.element, chart.element);
  replace(
    box,
    h("div", { class: "controls" }, control.element),
    told.element,
    h("div", { class: "views hero" }, columns),
  );
  follow(store, columns, (state, before) => {
    map.draw(state, before);
    chart.draw(state, before);
  });
  tell(stored);
  firstFigure();
}

startPage([budget]);
