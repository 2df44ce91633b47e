/** @file The training page: its layout, and the figures next to the drawings. */
import { formatBytes } from "../../base/bytes.ts";
import { grouped } from "../../base/errors.ts";
import { button, h, replace } from "../../view/page/dom.ts";
import { section } from "../../view/page/parts.ts";
import type { State, Store } from "../../view/page/store.ts";
import { CATALOG } from "../catalog.ts";
import { lossesView, timeAround } from "./losses.ts";
import { createSession, type Progress, type Session } from "./session.ts";
import { drawAlways, dress, headerOf, showFresh, storeFor } from "./shell.ts";
import { planViews } from "./views.ts";

const MODELS = Object.values(CATALOG);

/** The default number of steps of a run. */
const UNTIL = 300;

const ABOUT =
  "Two trainings of one model on the same batches, in this page, compiled to WebAssembly: one with everything stored, one " +
  "within the budget. Drag the budget during training: the arena is replanned and the time of a step changes, but not a " +
  "single bit of the loss.";

/** The current figures. */
function figuresOf({ reports, stored }: Progress, { sides }: State): readonly (readonly [string, string])[] {
  const [{ picture }] = sides;
  const last = reports.at(-1);
  const now = reports.length - 1;
  const [ms, storedMs] = [timeAround(reports, now, "ms"), timeAround(reports, now, "storedMs")];
  const again = picture.steps.filter((step) => step.again).length;
  return [
    ["step", last ? grouped(last.step) : "0"],
    ["loss", last ? last.loss.toPrecision(6) : "–"],
    ["step time", last === undefined ? "–" : `${ms.toFixed(1)} ms`],
    ["× stored", storedMs === 0 ? "–" : `${(ms / storedMs).toFixed(2)} ×`],
    ["arena", formatBytes(picture.heightBytes)],
    ["stored arena", formatBytes(stored.picture.heightBytes)],
    ["budget", picture.budgetBytes === null ? "none" : formatBytes(picture.budgetBytes)],
    ["recomputed", grouped(again)],
  ];
}

function drawFigures(element: HTMLElement, progress: Progress, state: State): void {
  const tiles = figuresOf(progress, state).map(([name, value]) =>
    h("div", { class: "figure", "data-figure": name }, h("b", {}, value), h("span", {}, name)),
  );
  replace(element, ...tiles);
}

/** The two hashes, and whether any loss differed so far. */
function drawHashes(element: HTMLElement, { hashes, reports }: Progress): void {
  if (!hashes) {
    replace(element, h("p", { class: "quiet" }, "SHA-256 of all parameters, of both trainings, every 25 steps."));
    return;
  }
  const same = reports.every(({ loss, storedLoss }) => Object.is(loss, storedLoss));
  const equal = same && hashes.hash === hashes.storedHash;
  const verdict = equal
    ? `the same bits: ${grouped(reports.length)} losses, and all parameters after step ${hashes.step}`
    : "something differs, which is an internal error";
  replace(
    element,
    h(
      "dl",
      { class: "hashes", "data-step": hashes.step },
      ...[h("dt", {}, "stored"), h("dd", { id: "stored-hash" }, hashes.storedHash)],
      ...[h("dt", {}, "budget"), h("dd", { id: "hash" }, hashes.hash)],
    ),
    h("p", { class: `verdict${equal ? "" : " differs"}` }, verdict),
  );
}

function controlsOf(session: Session, reopen: () => void) {
  const until = h("input", { type: "number", id: "until", min: 1, max: 100000, value: UNTIL });
  const toggle = (): void => {
    const { running, reports } = session.progress();
    if (running) session.pause();
    else {
      const asked = Math.round(Number(until.value) || UNTIL);
      const last = asked > reports.length ? asked : reports.length + UNTIL;
      until.value = `${last}`;
      session.run(last);
    }
  };
  const start = button("train", toggle, { class: "main", id: "start" });
  const once = button("one step", () => session.run(session.progress().reports.length + 1), { id: "once" });
  const again = button("from the start", reopen, { id: "reset" });
  const element = h("div", { class: "controls" }, start, once, again, h("label", {}, "until step", until));
  const draw = ({ running }: Progress): void => {
    start.textContent = running ? "pause" : "train";
    once.disabled = running;
  };
  return { element, draw };
}

/** Shows a model from the beginning. */
async function reopened(session: Session, store: Store, model: string): Promise<void> {
  store.set({ busy: true });
  const entry = await session.open(model);
  if (!entry) return;
  showFresh(store, entry);
  store.set({ curve: session.progress().curve });
}

function build(session: Session, store: Store): (state: State, before: State | null) => void {
  const views = planViews(store, session.within, session.story);
  const losses = lossesView();
  const [figures, hashes] = [h("div", { class: "figures" }), h("div", { "aria-live": "polite" })];
  const menu = h("select", { "aria-label": "model", id: "model" });
  replace(menu, ...MODELS.map(({ name }) => h("option", { value: name, selected: name === store.get().title }, name)));
  menu.addEventListener("change", () => void reopened(session, store, menu.value));
  const controls = controlsOf(session, () => void reopened(session, store, menu.value));
  const about = h("p", { class: "quiet", id: "about-model" });
  const header = headerOf(store, "train", menu);
  document.body.append(
    header,
    views.message,
    h("p", { class: "about" }, ABOUT),
    figures,
    h(
      "main",
      {},
      h(
        "div",
        { class: "left" },
        section("loss and step time", "early-2", losses.element),
        views.map,
        views.chart,
        views.program,
      ),
      h(
        "div",
        { class: "right" },
        section("training", "early-1", controls.element, about),
        views.curve,
        section("state", "early-4", hashes),
        views.story,
      ),
    ),
  );
  return (state, before) => {
    const progress = session.progress();
    about.textContent = MODELS.find(({ name }) => name === progress.model)?.title ?? "";
    drawFigures(figures, progress, state);
    drawHashes(hashes, progress);
    controls.draw(progress);
    losses.draw(progress, state.theme);
    views.draw(state, before);
  };
}

async function start(): Promise<void> {
  dress();
  const wait = h("p", { class: "about" }, "planning …");
  document.body.append(wait);
  let store: Store | null = null;
  const asked = new URLSearchParams(location.search).get("model");
  const model = MODELS.find(({ name }) => name === asked)?.name ?? CATALOG.transformer.name;
  const session = createSession({
    moved: () => store?.set({}),
    curve: (curve) => store?.set({ curve }),
  });
  const entry = await session.open(model).catch((why: unknown) => {
    wait.textContent = `The page does not start: ${String(why)}`;
    throw why;
  });
  if (!entry) return;
  store = storeFor(model, entry);
  wait.remove();
  drawAlways(store, build(session, store));
  store.set({ curve: session.progress().curve });
  document.documentElement.dataset.ready = "true";
}

void start();
