/**
 * @file The program with the plan's decisions: one row per step, in order. Only visible rows exist, so a program of a
 * hundred thousand steps scrolls like one of ten.
 */
import { formatBytes } from "../../base/bytes.ts";
import { type Child, h, replace } from "./dom.ts";
import { type Selection, type Shown, type State, type Store, selectionOn, selectStep } from "./store.ts";

const ROW = 24;

export interface ProgramView {
  readonly element: HTMLElement;
  draw(state: State, before: State | null): void;
}

export function programView(store: Store): ProgramView {
  const rows = h("div", { class: "rows" });
  const list = h("div", { class: "program", tabindex: 0, role: "listbox", "aria-label": "program" }, rows);
  const render = (): void => {
    const state = store.get();
    const [shown] = state.sides;
    const count = shown.picture.steps.length;
    rows.style.height = `${count * ROW}px`;
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 5);
    const last = Math.min(count, first + Math.ceil(list.clientHeight / ROW) + 10);
    const selection = selectionOn(state, 0);
    replace(rows, ...Array.from({ length: Math.max(0, last - first) }, (_, i) => rowOf(shown, first + i, selection)));
    const active = selection?.step ?? -1;
    if (active >= first && active < last) list.setAttribute("aria-activedescendant", `step-${active}`);
    else list.removeAttribute("aria-activedescendant");
  };
  list.addEventListener("scroll", () => requestAnimationFrame(render));
  // Rows are those that fit.
  new ResizeObserver(() => render()).observe(list);
  list.addEventListener("click", (event) => {
    const step = (event.target as Element).closest("[data-step]")?.getAttribute("data-step");
    if (step !== null && step !== undefined) selectStep(store, 0, Number(step));
  });
  list.addEventListener("keydown", (event) => {
    const at = selectionOn(store.get(), 0)?.step ?? -1;
    const last = store.get().sides[0].picture.steps.length - 1;
    const page = Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
    const goes: Readonly<Record<string, number>> = {
      ...{ ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: last },
    };
    const next = Object.hasOwn(goes, event.key) ? goes[event.key] : undefined;
    if (next === undefined) return;
    event.preventDefault();
    selectStep(store, 0, Math.max(0, Math.min(last, next)));
  });
  return {
    element: list,
    draw(state, before) {
      const step = selectionOn(state, 0)?.step ?? null;
      if (state.selection !== before?.selection && step !== null) reveal(list, step);
      if (before && before.sides === state.sides && before.selection === state.selection) return;
      render();
    },
  };
}

function reveal(list: HTMLElement, step: number): void {
  const [top, bottom] = [step * ROW, (step + 1) * ROW];
  if (top >= list.scrollTop && bottom <= list.scrollTop + list.clientHeight) return;
  list.scrollTop = Math.max(0, top - list.clientHeight / 2);
}

function rowOf(shown: Shown, index: number, selection: Selection | null): HTMLElement {
  const { steps, values } = shown.picture;
  const step = steps[index];
  const names = step?.writes.map((v) => values[v]?.name ?? "?").join(", ") ?? "";
  const text = `${names ? " = " : ""}${step?.text ?? ""}`;
  const touched =
    selection !== null && selection.value !== null && selection.step !== index && step?.reads.includes(selection.value);
  const selected = selection?.step === index;
  const mark = step?.phase !== steps[index - 1]?.phase ? (step?.phase ?? "") : "";
  return h(
    "div",
    {
      class: `row${selected ? " selected" : ""}${touched ? " reads" : ""} ${step?.phase === "" ? "" : `phase-${step?.phase}`}`,
      style: `top:${index * ROW}px`,
      "data-step": index,
      id: `step-${index}`,
      role: "option",
      "aria-selected": selected ? "true" : "false",
    },
    h("span", { class: "number" }, `${index}`),
    h("span", { class: "phase" }, mark),
    h("span", { class: "code", title: `${names}${text}` }, names ? h("b", {}, names) : null, text),
    h("span", { class: "badges" }, ...decisions(shown, index)),
  );
}

/** What the plan decided about a step. */
function decisions({ picture }: Shown, index: number): readonly Child[] {
  const { values, rects, steps } = picture;
  const step = steps[index];
  if (!step) return [];
  const badges: Child[] = [];
  const badge = (kind: string, text: string): void => {
    badges.push(h("span", { class: `badge ${kind}` }, text));
  };
  if (step.again) badge("again", "recomputed");
  if (step.strips) badge("again", `${step.strips.count} strips of ${step.strips.rows} rows`);
  if (step.alias) badge("alias", "renamed, no kernel");
  for (const v of step.writes) {
    const over = values[v]?.over ?? null;
    if (over !== null) badge("over", `over ${values[over]?.name ?? "?"}`);
  }
  const scratch = step.scratch.reduce((sum, rect) => sum + (rects.bytes[rect] ?? 0), 0);
  if (scratch > 0) badge("scratch", `scratch ${formatBytes(scratch)}`);
  const [first] = step.writes;
  const rect = first === undefined ? undefined : values[first]?.rect;
  if (rect !== undefined) badge("place", `b${rect} @ ${(rects.from[rect] ?? 0).toString(16)}`);
  return badges;
}
