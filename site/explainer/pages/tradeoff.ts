/** @file The curve between memory and time. */

import type { ViewCurve, ViewEntry } from "../../../src/view/data.ts";
import { mergedPlans } from "../../../src/view/frontier.ts";
import { curveView } from "../../../src/view/page/curve.ts";
import { h, replace } from "../../../src/view/page/dom.ts";
import { openBody, section } from "../../../src/view/page/parts.ts";
import { sentenceView } from "../../../src/view/page/sentence.ts";
import type { State, Store } from "../../../src/view/page/store.ts";
import { shownOf, wholeFrame } from "../../../src/view/page/store.ts";
import { storyView } from "../../../src/view/page/story.ts";
import type { NetworkName } from "../engine/networks.ts";
import { createEngine } from "../kit/engine.ts";
import { choice, figureNumber, numbersTable, stage, tableSlot } from "../kit/figure.ts";
import { firstFigure, startPage } from "../kit/start.ts";
import { bytesText } from "../kit/text.ts";
import { chartPart, follow, mapPart, storeOf } from "../kit/views.ts";

const NETWORKS: readonly { readonly name: NetworkName; readonly text: string }[] = [
  { name: "transformer", text: "transformer" },
  { name: "convolutions", text: "convolutions" },
  { name: "unet", text: "U-Net" },
  { name: "recurrent", text: "recurrent" },
  { name: "chain", text: "16 residual blocks" },
];

const FIRST: NetworkName = "transformer";

/** Another network: its own curve, and no budget. */
function showNetwork(store: Store, entry: ViewEntry): void {
  const sides = [shownOf(entry)] as const;
  const reachBytes = entry.picture.heightBytes;
  const none = { selection: null, curve: null, budgetBytes: null, busy: false, message: "", refusedBytes: null };
  store.set({ ...none, reachBytes, entries: [entry], sides, frame: wholeFrame(sides, reachBytes) });
}

function curveTable({ points, others = [] }: ViewCurve): HTMLElement {
  const all = [
    ...points.map((point) => ({ ...point, strategy: "auto" })),
    ...others.flatMap(({ name, points: theirs }) => theirs.map((point) => ({ ...point, strategy: name }))),
  ];
  const rows = mergedPlans(all).map(({ strategies, arenaBytes, predictedMs, isBest }) => ({
    cells: [strategies.join(", "), bytesText(arenaBytes), `${predictedMs.toFixed(2)} ms`, isBest ? "yes" : "no"],
  }));
  return numbersTable("all plans", ["strategy", "arena", "predicted time", "no other beats it"], rows);
}

/** The first network, as tests compare it. */
function storedFigures({ picture, predictedMs }: ViewEntry): HTMLElement {
  const bytes = figureNumber("stored.arena", picture.heightBytes, bytesText(picture.heightBytes));
  const time = figureNumber("stored.ms", predictedMs ?? 0, `${(predictedMs ?? 0).toFixed(2)} ms`);
  return h("p", {}, "Everything stored, a step takes ", bytes, " and ", time, ".");
}

async function curve(): Promise<void> {
  const box = stage("curve");
  let current: NetworkName = FIRST;
  let store: Store | null = null;
  const table = tableSlot();
  const engine = createEngine(({ of, curve: grown }) => {
    if (of !== current || !store) return;
    store.set({ curve: grown });
    table.show(curveTable(grown));
  });
  replace(box, h("p", { class: "waits" }, "Planning …"));
  const entry = await engine.call("network", FIRST, true);
  store = storeOf(FIRST, entry);
  const own = store;
  const views = curveView(own, (bytes) => engine.call("networkWithin", bytes));
  const [map, chart, sentence] = [mapPart(own), chartPart(own), sentenceView()];
  const story = storyView(
    own,
    (step, body) => openBody(own, step, body),
    (asks, value) => engine.call("networkStory", asks, value),
  );
  const stored = h("div", {}, storedFigures(entry));
  const pick = choice("Network", NETWORKS, FIRST, async (name) => {
    current = name;
    const next = await engine.call("network", name, true);
    if (current !== name) return;
    showNetwork(own, next);
    replace(stored, storedFigures(next));
  });
  const left = h("div", {}, map.element, chart.element);
  const right = h(
    "div",
    {},
    section("time against memory", "", views.element),
    table.element,
    section("story", "", story.element),
  );
  const columns = h("div", { class: "plan-columns" }, right, left);
  replace(box, h("div", { class: "controls" }, pick), stored, h("div", { class: "views" }, sentence.element, columns));
  follow(own, columns, (state: State, before: State | null) => {
    for (const view of [sentence, map, chart, views, story]) view.draw(state, before);
  });
  firstFigure();
}

startPage([curve]);
