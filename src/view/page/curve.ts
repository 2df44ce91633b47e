/**
 * @file Memory against time, with a budget that can be dragged: every plan is a point, the line is the budget, and the
 * other views show the fastest plan to the left of it. The slider below does the same for keys and screen readers. With
 * a server, the plan is made for exactly this budget; a page in a file has the plans of some budgets.
 */
import { formatBytes } from "../../base/bytes.ts";
import { type PlanReply, pointWithin, type ViewCurve, type ViewEntry } from "../data.ts";
import { h, replace, svg } from "./dom.ts";
import { type State, type Store, shownOf, wholeFrame } from "./store.ts";

const [WIDTH, HEIGHT] = [360, 200];
const BOX = { left: 46, right: 12, top: 12, bottom: 34 } as const;

/** Bytes and milliseconds to points of the drawing. */
function scales({ points, floorBytes }: ViewCurve) {
  const most = Math.max(...points.map((p) => p.arenaBytes));
  const times = points.map((p) => p.predictedMs);
  const [fast, slow] = [Math.min(...times), Math.max(...times)];
  const least = Math.min(floorBytes, ...points.map((p) => p.arenaBytes));
  const [low, high] = [least - (most - least) * 0.05, most + (most - least) * 0.05 + 1];
  const [w, tall] = [WIDTH - BOX.left - BOX.right, HEIGHT - BOX.top - BOX.bottom];
  const room = Math.max(slow - fast, slow * 0.02, 1e-9) * 1.15;
  return {
    x: (bytes: number) => BOX.left + ((bytes - low) / (high - low)) * w,
    y: (ms: number) => BOX.top + tall - ((ms - fast) / room) * tall,
    bytesAt: (x: number) => Math.round(low + ((x - BOX.left) / w) * (high - low)),
    ...{ fast, slow, most, least: Math.min(...points.map((p) => p.arenaBytes)) },
  };
}

/** The source of plans: the server, or a worker of the page. */
export type PlanSource = (budgetBytes: number) => Promise<PlanReply>;

export interface CurveView {
  readonly element: HTMLElement;
  /** Sets the budget; resolves when its plan is shown or refused. */
  ask(budgetBytes: number): Promise<void>;
  draw(state: State, before: State | null): void;
}

export function curveView(store: Store, planFor: PlanSource): CurveView {
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "curve", role: "img" });
  const slider = h("input", { type: "range", id: "budget", min: 0, max: 1000, step: 1, "aria-label": "budget" });
  const output = h("output", { for: "budget", class: "budget-text" });
  const note = h("p", { class: "quiet" });
  const label = h("label", { class: "slider" }, "budget", slider);
  const element = h("div", {}, drawing, label, output, note);
  const planner = createPlanner(store, planFor);
  const ask = (bytes: number): Promise<void> => {
    store.set({ budgetBytes: bytes });
    return planner(bytes);
  };
  slider.addEventListener("input", () => {
    const { curve } = store.get();
    if (!curve) return;
    const { least, most } = scales(curve);
    void ask(Math.round(least + ((most - least) * Number(slider.value)) / 1000));
  });
  const drag = (event: PointerEvent): void => {
    const { curve } = store.get();
    if (!curve || event.buttons === 0) return;
    const box = drawing.getBoundingClientRect();
    const { bytesAt, least, most } = scales(curve);
    void ask(Math.min(most, Math.max(least, bytesAt(((event.clientX - box.left) / box.width) * WIDTH))));
  };
  drawing.addEventListener("pointerdown", (event) => {
    drawing.setPointerCapture(event.pointerId);
    drag(event);
  });
  drawing.addEventListener("pointermove", drag);
  return {
    element,
    ask,
    draw(state, before) {
      if (before && before.curve === state.curve && before.sides === state.sides && !changedBudget(state, before))
        return;
      note.textContent = noteText(state);
      label.hidden = state.curve === null;
      replace(drawing, ...(state.curve ? marks(state.curve, state) : []));
      drawing.toggleAttribute("hidden", state.curve === null);
      drawing.setAttribute("aria-busy", `${state.curve?.whole === false}`);
      if (!state.curve) return;
      const { least, most } = scales(state.curve);
      const bytes = state.budgetBytes ?? most;
      // A focused slider keeps its position, unless its scale has changed.
      if (document.activeElement !== slider || before?.curve !== state.curve)
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
  if (curve) return live ? "" : `${count} in this file; the server plans for any budget.`;
  return live ? "the curve is being computed …" : "This file is one plan: a program has a curve.";
}

function outputText({ sides, busy }: State, bytes: number): string {
  const { picture, entry } = sides[0];
  const time = entry.predictedMs === null ? "" : `, ${entry.predictedMs.toFixed(2)} ms predicted`;
  return `${formatBytes(bytes)} → arena ${formatBytes(picture.heightBytes)}${time}${busy ? " · planning …" : ""}`;
}

function marks(curve: ViewCurve, state: State): readonly Element[] {
  const { x, y, fast, slow, most } = scales(curve);
  const [bottom, right] = [HEIGHT - BOX.bottom, WIDTH - BOX.right];
  const points = [...curve.points].sort((a, b) => a.arenaBytes - b.arenaBytes);
  const line = points.map((p) => `${x(p.arenaBytes).toFixed(1)},${y(p.predictedMs).toFixed(1)}`).join(" ");
  const budget = x(state.budgetBytes ?? most);
  const { picture, entry } = state.sides[0];
  const text = (at: number, up: number, what: string, anchor: string) =>
    svg("text", { x: at, y: up, "text-anchor": anchor, class: "tick" }, what);
  const here =
    entry.predictedMs === null
      ? []
      : [svg("circle", { cx: x(picture.heightBytes), cy: y(entry.predictedMs), r: 6, class: "here" })];
  return [
    svg("path", { d: `M${BOX.left} ${BOX.top}V${bottom}H${right}`, class: "axis" }),
    svg("line", { x1: x(curve.floorBytes), x2: x(curve.floorBytes), y1: BOX.top, y2: bottom, class: "floor" }),
    svg("polyline", { points: line, class: "front" }),
    ...points.map((p) => {
      const about = svg("title", {}, `${formatBytes(p.arenaBytes)}, ${p.predictedMs.toFixed(2)} ms`);
      return svg("circle", { cx: x(p.arenaBytes), cy: y(p.predictedMs), r: 3, class: "point" }, about);
    }),
    ...here,
    svg("line", { x1: budget, x2: budget, y1: BOX.top, y2: bottom, class: "budget" }),
    svg("path", { d: `M${budget} ${bottom}l-6 9h12z`, class: "handle" }),
    text(BOX.left - 5, y(fast) + 3, `${fast.toPrecision(3)}`, "end"),
    ...(slow > fast * 1.001 ? [text(BOX.left - 5, y(slow) + 3, `${slow.toPrecision(3)}`, "end")] : []),
    text(4, BOX.top - 1, "ms", "start"),
    text(x(curve.floorBytes), HEIGHT - 8, `floor ${formatBytes(curve.floorBytes)}`, "start"),
    text(right, HEIGHT - 8, formatBytes(most), "end"),
  ];
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
