/**
 * @file Memory against time, with a budget that can be dragged: the other views show the fastest plan to the left of it. The slider below does the same for keys and screen readers. With
 * a server, the plan is made for exactly this budget; a page in a file has the plans of some budgets.
 */
import { formatBytes } from "../../base/bytes.ts";
import { type PlanReply, pointWithin, type ViewEntry } from "../data.ts";
import { curveDrawing, type Range, rangeOf } from "./curve-drawing.ts";
import { h } from "./dom.ts";
import { type State, type Store, shownOf, wholeFrame } from "./store.ts";

/** The source of plans: the server, or a worker of the page. */
export type PlanSource = (budgetBytes: number) => Promise<PlanReply>;

export interface CurveView {
  readonly element: HTMLElement;
  /** Sets the budget; resolves when its plan is shown or refused. */
  ask(budgetBytes: number): Promise<void>;
  draw(state: State, before: State | null): void;
}

export function curveView(store: Store, planFor: PlanSource): CurveView {
  const drawing = curveDrawing();
  const slider = h("input", { type: "range", id: "budget", min: 0, max: 1000, step: 1, "aria-label": "budget" });
  const output = h("output", { for: "budget", class: "budget-text" });
  const note = h("p", { class: "quiet note", role: "status" });
  const label = h("label", { class: "slider" }, "budget", slider);
  const element = h("div", {}, drawing.element, label, output, drawing.legend, note);
  const planner = createPlanner(store, planFor);
  const ask = (bytes: number): Promise<void> => {
    store.set({ budgetBytes: bytes });
    return planner(bytes);
  };
  const sliderBytes = (range: Range): number =>
    Math.round(range.least + ((range.most - range.least) * Number(slider.value)) / 1000);
  slider.addEventListener("input", () => {
    const { curve } = store.get();
    if (curve) void ask(sliderBytes(rangeOf(curve)));
  });
  drawing.onDrag((bytes) => {
    const { curve } = store.get();
    if (!curve) return;
    const { least, most } = rangeOf(curve);
    void ask(Math.min(most, Math.max(least, bytes)));
  });
  return {
    element,
    ask,
    draw(state, before) {
      if (before && before.curve === state.curve && before.sides === state.sides && !changedBudget(state, before))
        return;
      note.textContent = noteText(state);
      label.hidden = state.curve === null;
      drawing.draw(state);
      if (!state.curve) {
        output.textContent = "";
        return;
      }
      const range = rangeOf(state.curve);
      const { least, most } = range;
      const bytes = state.budgetBytes ?? most;
      // The position of a slider is coarser than bytes: it stays where it stands for the same budget.
      if (Math.abs(sliderBytes(range) - bytes) > (most - least) / 1000 || before?.curve !== state.curve)
        slider.value = most > least ? `${Math.round(((bytes - least) / (most - least)) * 1000)}` : slider.max;
      slider.setAttribute("aria-valuetext", formatBytes(bytes));
      slider.dataset.bytes = `${bytes}`;
      output.textContent = outputText(state, bytes);
    },
  };
}

const changedBudget = (a: State, b: State): boolean => a.budgetBytes !== b.budgetBytes || a.busy !== b.busy;

function noteText({ curve, live }: State): string {
  const count = curve?.points.length === 1 ? "1 plan is" : `${curve?.points.length} plans are`;
  if (curve?.progress) {
    const { done, of, doing } = curve.progress;
    const what = curve.whole ? `${done} of ${of} other strategies` : `${done} of ${of} plans of the curve`;
    return `${what} so far; computing ${doing} …`;
  }
  if (curve) return live ? "" : `${count} in this file; the server plans for any budget.`;
  return live ? "the curve is being computed …" : "This file is one plan: a program has a curve.";
}

function outputText({ sides, busy }: State, bytes: number): string {
  const { picture, entry } = sides[0];
  const time = entry.predictedMs === null ? "" : `, ${entry.predictedMs.toFixed(2)} ms predicted`;
  return `${formatBytes(bytes)} → arena ${formatBytes(picture.heightBytes)}${time}${busy ? " · planning …" : ""}`;
}

/** Replaces the first entry; the visible frame stays. */
export function showEntry(store: Store, entry: ViewEntry): void {
  const { sides, frame, selection, reachBytes, unfolded } = store.get();
  const [old, ...others] = sides;
  const shown = shownOf(entry);
  const whole = wholeFrame([shown, ...others], reachBytes, unfolded);
  const before = wholeFrame(sides, reachBytes, unfolded);
  const all = frame.a0 === 0 && frame.a1 === before.a1;
  const named =
    selection?.side === 0 && selection.value !== null ? old.picture.values[selection.value]?.name : undefined;
  const value = named === undefined ? -1 : shown.picture.values.findIndex((v) => v.name === named);
  const selected = shown.picture.values[value];
  const kept = selected ? { side: 0, value, rect: selected.rect, step: selected.written } : null;
  const top = all ? whole.a1 : Math.min(whole.a1, frame.a1);
  const next = { ...frame, a1: top, a0: Math.min(frame.a0, Math.max(0, top - 64)) };
  store.set({
    sides: [shown, ...others],
    frame: next,
    selection: selection?.side === 0 ? kept : selection,
    message: "",
    refusedBytes: null,
  });
}

/** Requests plans one at a time; the latest budget wins. The promise ends with the last request. */
function createPlanner(store: Store, planFor: PlanSource): (bytes: number) => Promise<void> {
  let wanted: number | null = null;
  let running: Promise<void> | null = null;
  const work = async (): Promise<void> => {
    store.set({ busy: true });
    while (wanted !== null) {
      const bytes = wanted;
      wanted = null;
      try {
        const reply = await planFor(bytes);
        if ("entry" in reply) showEntry(store, reply.entry);
        else store.set({ message: reply.refusal, refusedBytes: bytes });
      } catch (error) {
        store.set({ message: `no plan: ${String(error)}` });
      }
    }
    running = null;
    store.set({ busy: false });
  };
  return (bytes) => {
    const { live, curve, entries } = store.get();
    if (!live) {
      const point = curve && pointWithin(curve, bytes);
      const entry = point?.entry === null || !point ? undefined : entries[point.entry];
      if (entry && entry !== store.get().sides[0].entry) showEntry(store, entry);
      return Promise.resolve();
    }
    wanted = bytes;
    running ??= work();
    return running;
  };
}
