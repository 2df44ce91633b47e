/**
 * @file The training page: its layout, and how it begins. Training starts by itself, in the plan with everything stored,
 * and goes on in the plan of a budget as soon as there is one. Where motion is unwanted, a few steps run unseen and the
 * page shows their result.
 */

import type { Gpu } from "../../runtime/webgpu/gpu.ts";
import { type AddressFields, readAddress, wholeField } from "../../view/address.ts";
import { type Address, createAddress } from "../../view/page/address.ts";
import { button, h, replace } from "../../view/page/dom.ts";
import { section } from "../../view/page/parts.ts";
import { applyPlace, placeFields, QUIET_FIELDS } from "../../view/page/place.ts";
import type { State, Store } from "../../view/page/store.ts";
import { CATALOG } from "../catalog.ts";
import type { Engine } from "../protocol.ts";
import { readWorkerScript } from "./client.ts";
import { drawHashes, drawTrainFigures } from "./figures.ts";
import { lossesView } from "./losses.ts";
import { type Progress, Session } from "./session.ts";
import { drawAlways, dress, headerOf, showFresh, storeFor } from "./shell.ts";
import { type PlanViews, planViews } from "./views.ts";

const MODELS = Object.values(CATALOG);
const FIRST_MODEL = CATALOG.transformer.name;

/** Steps of a run, and those that run unseen where motion is unwanted. */
const [UNTIL, STILL_UNTIL] = [300, 40] as const;

/** The first budget, as a share of everything stored. */
const FIRST_SHARE = 0.6;

/** The page has one plan of its own, that with everything stored. */
const PLACE = { plan: 0, compared: null, count: 1 } as const;

const ABOUT =
  "Two trainings of one model on the same batches, in this page, compiled to WebAssembly or for its GPU: one with everything stored, one " +
  "within the budget. Drag the budget during training: the arena is replanned and the time of a step changes, but not a " +
  "single bit of the loss.";

const ON_GPU =
  "on a GPU each training has a plan of its own, within the same share of its bytes as the plan that is drawn, and bits of its own";

const wantsStillness = (): boolean => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** The page's parts that several functions need. */
interface Parts {
  readonly session: Session;
  readonly store: Store;
  readonly views: PlanViews;
  /** Whether the user stopped the training, which the address keeps. */
  stopped: boolean;
  /** The training is not drawn until it stops. */
  still: boolean;
}

function controlsOf(parts: Parts) {
  const { session, store } = parts;
  const until = h("input", { type: "number", id: "until", min: 1, max: 100000, value: UNTIL });
  const run = (last: number): void => {
    parts.still = false;
    parts.stopped = false;
    session.run(last);
  };
  const toggle = (): void => {
    const { running, reports } = session.progress();
    if (running) {
      parts.stopped = true;
      session.pause();
      return;
    }
    const asked = Math.round(Number(until.value) || UNTIL);
    const last = asked > reports.length ? asked : reports.length + UNTIL;
    until.value = `${last}`;
    run(last);
  };
  const start = button("train", toggle, { class: "main", id: "start" });
  const once = button("one step", () => run(session.progress().reports.length + 1), { id: "once" });
  const restart = async (): Promise<void> => {
    parts.stopped = true;
    await session.restart();
    store.set({});
  };
  const again = button("from the start", () => void restart(), { id: "reset" });
  const element = h("div", { class: "controls" }, start, once, again, h("label", {}, "until step", until));
  const engines = engineMenu(parts);
  void adapterName().then((name) => name !== null && element.append(engines.offer(name)));
  const draw = ({ running }: Progress): void => {
    engines.draw();
    start.textContent = running ? "pause" : "train";
    once.disabled = running;
  };
  return { element, draw };
}

/** Of the GPU that WebGPU has in this page; null where there is none. */
async function adapterName(): Promise<string | null> {
  const { gpu } = navigator as { readonly gpu?: Gpu };
  const adapter = await gpu?.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  if (!adapter) return null;
  const { description, vendor } = adapter.info as { readonly description?: string; readonly vendor?: string };
  return description || vendor || "GPU";
}

/** The choice of what trains, for pages that have a GPU. */
function engineMenu(parts: Parts) {
  const { session, store } = parts;
  const menu = h("select", { id: "engine" });
  menu.addEventListener("change", () => {
    parts.stopped = true;
    void session.use(menu.value as Engine).then((message) => store.set(message === null ? {} : { message }));
  });
  const offer = (name: string): HTMLElement => {
    const choices = [
      h("option", { value: "wasm" }, "WebAssembly"),
      h("option", { value: "webgpu" }, `WebGPU: ${name}`),
    ];
    replace(menu, ...choices);
    return h("label", { title: ON_GPU }, "on", menu);
  };
  const draw = (): void => {
    if (menu.value !== session.engine) menu.value = session.engine;
  };
  return { offer, draw };
}

/** Shows a model from the beginning. */
async function reopened({ session, store }: Parts, model: string): Promise<boolean> {
  store.set({ busy: true });
  const entry = await session.open(model);
  if (!entry) return false;
  showFresh(store, entry);
  store.set({ curve: session.progress().curve, title: model });
  return true;
}

/** Trains, first with everything stored and then within a budget; where motion is unwanted, a few steps unseen. */
async function begin(parts: Parts, budgetBytes: number | null): Promise<void> {
  const { session, views } = parts;
  const { stored } = session.progress();
  const first = Math.round(stored.picture.heightBytes * FIRST_SHARE);
  const asked = Math.min(budgetBytes ?? first, stored.picture.heightBytes);
  parts.still = wantsStillness();
  if (!parts.stopped) session.run(parts.still ? STILL_UNTIL : UNTIL);
  await views.ask(asked);
}

/** The state of the page in its address. */
function addressOf(parts: Parts): Address {
  const { store, session, views } = parts;
  const firstBudget = (): number => Math.round(session.progress().stored.picture.heightBytes * FIRST_SHARE);
  const fields = (): AddressFields => {
    const { model } = session.progress();
    const place = placeFields(store.get(), PLACE);
    return {
      model: model === FIRST_MODEL ? "" : model,
      run: parts.stopped ? "off" : "",
      ...place,
      budget: place.budget === `${firstBudget()}` ? "" : (place.budget ?? ""),
    };
  };
  const apply = async (given: AddressFields): Promise<readonly string[]> => {
    const model = given.model ?? FIRST_MODEL;
    const known = MODELS.some(({ name }) => name === model);
    const problems = known ? [] : [`there is no model ${model.slice(0, 40)}`];
    if (known && model !== session.progress().model && !(await reopened(parts, model))) return [];
    if (given.run === "off") {
      parts.stopped = true;
      session.pause();
    }
    const { budget: _, ...rest } = given;
    const budget = wholeField(given, "budget");
    if (budget === undefined) problems.push("the budget is no number of bytes");
    const most = session.progress().stored.picture.heightBytes;
    const bytes = Math.min(budget ?? firstBudget(), most);
    return [...problems, ...(await applyPlace(store, { ...rest, budget: `${bytes}` }, PLACE, views.ask))];
  };
  return createAddress({ fields, apply, note: (message) => store.set({ message }), quiet: QUIET_FIELDS });
}

function build(parts: Parts, address: Address): (state: State, before: State | null) => void {
  const { session, store, views } = parts;
  const losses = lossesView();
  const [figures, hashes] = [h("div", { class: "figures" }), h("div", { "aria-live": "polite" })];
  const menu = h("select", { "aria-label": "model", id: "model" });
  replace(menu, ...MODELS.map(({ name }) => h("option", { value: name, selected: name === store.get().title }, name)));
  menu.addEventListener("change", () => {
    parts.stopped = false;
    void reopened(parts, menu.value).then((isOpen) => (isOpen ? begin(parts, null) : undefined));
  });
  const controls = controlsOf(parts);
  const about = h("p", { class: "quiet", id: "about-model" });
  document.body.append(
    headerOf(store, "train", address, menu),
    ...[views.message, views.sentence, h("p", { class: "about" }, ABOUT), figures],
    h(
      "main",
      {},
      h(
        "div",
        { class: "left" },
        section("loss and step time", "early-2", losses.element),
        ...[views.map, views.story, views.chart],
      ),
      h(
        "div",
        { class: "right column" },
        section("training", "early-1", controls.element, about),
        ...[views.curve, section("state", "early-4", hashes), views.program],
      ),
    ),
  );
  return (state, before) => {
    const progress = session.progress();
    if (menu.value !== progress.model) menu.value = progress.model;
    about.textContent = MODELS.find(({ name }) => name === progress.model)?.title ?? "";
    controls.draw(progress);
    if (!parts.still || !progress.running) {
      drawTrainFigures(figures, progress, state);
      drawHashes(hashes, progress);
      losses.draw(progress, state.theme);
    }
    views.draw(state, before);
    address.changed();
  };
}

/** The first plan; the page is empty until then. */
async function firstPlan(session: Session, model: string) {
  const wait = h("p", { class: "about" }, "planning …");
  document.body.append(wait);
  const entry = await session.open(model).catch((why: unknown) => {
    wait.textContent = `The page does not start: ${String(why)}`;
    throw why;
  });
  wait.remove();
  return entry;
}

async function start(): Promise<void> {
  dress();
  await readWorkerScript();
  const reading = readAddress(location.hash);
  const fields: AddressFields = "fields" in reading ? reading.fields : {};
  const model = MODELS.find(({ name }) => name === fields.model)?.name ?? FIRST_MODEL;
  let store: Store | null = null;
  const session = new Session({ moved: () => store?.set({}), curve: (curve) => store?.set({ curve }) });
  const entry = await firstPlan(session, model);
  if (!entry) return;
  store = storeFor(model, entry);
  const views = planViews(
    store,
    (budgetBytes) => session.within(budgetBytes),
    (asks, value) => session.story(asks, value),
  );
  const parts: Parts = { session, store, views, stopped: fields.run === "off", still: false };
  const address = addressOf(parts);
  drawAlways(store, build(parts, address));
  store.set({ curve: session.progress().curve });
  document.documentElement.dataset.ready = "true";
  const began = begin(parts, wholeField(fields, "budget") ?? null);
  await address.follow();
  await began;
  store.set({});
}

void start();
