/**
 * @file The explanation of one value: what it is, its address and lifespan, why it is kept or recomputed, its operands
 * and readers, and the values in the same bytes before and after. Facts visible in the picture are derived here; the
 * reasons come with the plan.
 */
import { formatBytes } from "../../base/bytes.ts";
import { grouped } from "../../base/errors.ts";
import type { ViewEntry } from "../data.ts";
import { KIND_LABELS, neighbours, type Picture, placeText } from "../picture.ts";
import { RECORDED_REASONS } from "../snapshot-kinds.ts";
import { button, type Child, h, replace } from "./dom.ts";
import { kindColour } from "./palette.ts";
import {
  kindOf,
  rectName,
  type Selection,
  type Shown,
  type State,
  type Store,
  selectRect,
  selectStep,
  selectValue,
} from "./store.ts";

/** The most names shown of a list. */
const LISTED = 12;

export interface StoryView {
  readonly element: HTMLElement;
  draw(state: State, before: State | null): void;
}

/** Fetches the reasons of one value. */
export type StorySource = (asks: string, value: number) => Promise<readonly string[]>;

export function storyView(
  store: Store,
  openBody: (step: number, body: number) => void,
  source: StorySource,
): StoryView {
  const element = h("div", { class: "story", "aria-live": "polite" });
  const reasons = createReasons(source);
  return {
    element,
    draw(state, before) {
      if (before && before.selection === state.selection && before.sides === state.sides) return;
      const { selection, sides } = state;
      const shown = selection ? sides[selection.side] : undefined;
      if (!selection || !shown) {
        replace(element, h("p", { class: "quiet" }, "Select a rectangle, a step or a name to see its explanation."));
        return;
      }
      // If the focus was on a link of the explanation, move it to the new explanation's start.
      const within = element.contains(document.activeElement);
      replace(element, ...storyOf(store, shown, selection, openBody), ...reasons(shown, selection.value));
      if (within) element.querySelector("h3")?.focus();
    },
  };
}

function storyOf(
  store: Store,
  shown: Shown,
  selection: Selection,
  openBody: (step: number, body: number) => void,
): readonly Child[] {
  const { picture } = shown;
  const value = selection.value === null ? null : picture.values[selection.value];
  const step = selection.step === null ? undefined : picture.steps[selection.step];
  const bodies = step?.bodies.map((body, b) =>
    button(`look inside: ${body.name}`, () => openBody(selection.step ?? 0, b), { class: "link" }),
  );
  return [
    selection.rect === null
      ? h("h3", { tabindex: -1 }, `step ${selection.step}`)
      : heading(shown, selection.rect, value?.name ?? null),
    ...(selection.rect === null ? [] : [whyText(shown, selection)]),
    facts(store, shown, selection),
    ...(bodies ?? []),
  ];
}

/** The reasons of a value: those included in the plan, or a placeholder that is filled when they arrive. */
function createReasons(source: StorySource): (shown: Shown, value: number | null) => readonly Child[] {
  const cache = new WeakMap<ViewEntry, Map<number, Promise<readonly string[]>>>();
  const box = (...children: readonly Child[]): HTMLElement =>
    h("details", { open: true, class: "reasons" }, h("summary", {}, "reasons"), ...children);
  return ({ picture, entry }, value) => {
    const story = value === null ? [] : (picture.values[value]?.story ?? []);
    if (story.length > 0) return story.length > 1 ? [box(list(story.slice(1)))] : [];
    if (value === null || entry.asks === null) return [];
    const mine = cache.get(entry) ?? new Map<number, Promise<readonly string[]>>();
    cache.set(entry, mine);
    const coming = mine.get(value) ?? source(entry.asks, value);
    mine.set(value, coming);
    const place = h("div", {}, "…");
    coming.then(
      (sentences) => replace(place, list(sentences.slice(1))),
      (error) => {
        mine.delete(value);
        replace(place, h("p", { class: "quiet" }, `They could not be loaded: ${String(error)}`));
      },
    );
    return [box(place)];
  };
}

const list = (sentences: readonly string[]): HTMLElement => h("ul", {}, ...sentences.map((s) => h("li", {}, s)));

function heading(shown: Shown, rect: number, name: string | null): HTMLElement {
  const kind = kindOf(shown, rect);
  const dot = h("span", { class: "dot", style: `background:${kindColour(kind, false)}` });
  return h("h3", { tabindex: -1 }, dot, name ?? rectName(shown, rect), h("small", {}, KIND_LABELS[kind]));
}

/** The reason for its lifespan, in one or two sentences. */
function whyText(shown: Shown, { rect, value }: Selection): HTMLElement {
  const { picture } = shown;
  const { start, end, bytes } = picture.rects;
  const at = rect ?? 0;
  const [from, to, size] = [start[at] ?? 0, end[at] ?? 0, bytes[at] ?? 0];
  const atPeak = from <= picture.boundStep && picture.boundStep < to;
  const space = picture.rects.space?.[at] ? picture.spaces?.[picture.rects.space[at] ?? 0] : undefined;
  if (space) {
    const text = `It is in ${space.name}, which holds ${formatBytes(space.boundBytes)} at most at once.`;
    return h("p", {}, `${reasonOf(shown, at, value)} ${text}`);
  }
  const peak = atPeak
    ? `It is live at the tightest step ${picture.boundStep}, where it is ${percent(size, picture.boundBytes)} of all live bytes.`
    : `It is not live at the tightest step ${picture.boundStep}.`;
  return h("p", {}, `${reasonOf(shown, at, value)} ${peak}`);
}

/** The kind of a rectangle, explained for one of its values. */
function reasonOf(shown: Shown, rect: number, value: number | null): string {
  const { picture, readers } = shown;
  if (picture.source === "snapshot") return RECORDED_REASONS[kindOf(shown, rect)];
  const written = value === null ? null : (picture.values[value]?.written ?? null);
  const mine = value === null ? [] : (readers[value] ?? []);
  const size = formatBytes(picture.rects.bytes[rect] ?? 0);
  const phase = (step: number): string => picture.steps[step]?.phase ?? "";
  const later = mine.find((s) => phase(s) === "backward" || phase(s) === "update");
  const earlier = mine.findLast((s) => later !== undefined && s < later) ?? written ?? 0;
  switch (kindOf(shown, rect)) {
    case "persistent":
    case "parameter":
    case "state":
      return "Its storage stays in the arena between runs.";
    case "input":
      return written === null
        ? "The caller writes it before step 0."
        : `It is written over an input at step ${written}.`;
    case "result":
      return "It is a result, so it is live until the end of the run.";
    case "kept":
      return later === undefined
        ? "Another value in its storage is kept for the backward pass."
        : `It is kept for the backward pass: ${size} from step ${earlier} until step ${later} reads it.`;
    case "forward":
      return "Only the forward pass reads it.";
    case "recomputed":
      return againText(written, mine[0], size);
    case "gradient":
      return "It is computed in the backward pass.";
    case "update":
      return "It is computed in the update of the state.";
    case "scratch":
      return "Workspace of one kernel.";
    case "allocation":
      return "Allocated and freed while memory was recorded.";
  }
}

function againText(written: number | null, reader: number | undefined, size: string): string {
  const saved = `It is recomputed at step ${written ?? 0}, so its ${size} are free between the forward pass and that step.`;
  return reader === undefined ? saved : `${saved} Step ${reader} is the first to read it.`;
}

const percent = (part: number, whole: number): string => `${((100 * part) / Math.max(1, whole)).toFixed(1)} %`;

/** Of a collective: what it is over, its bytes and queue, and its other half. */
function exchangeFacts(
  store: Store,
  shown: Shown,
  side: Selection["side"],
  { kind, over, bytes, queue, other }: NonNullable<Picture["steps"][number]["exchange"]>,
): [string, Child][] {
  if (kind === "test") return [];
  const rows: [string, Child][] = [["exchanges", `${grouped(bytes)} bytes over ${over}`]];
  if (kind === "start") rows.push(["queue", `${queue}`]);
  if (other !== null)
    rows.push([kind === "start" ? "waited for by" : "started by", stepLinks(store, shown, side, [other])]);
  return rows;
}

function facts(store: Store, shown: Shown, selection: Selection): HTMLElement {
  const { picture, readers } = shown;
  const { rect, value, side } = selection;
  const { start, end, bytes } = picture.rects;
  const selected = value === null ? undefined : picture.values[value];
  const step = selection.step === null ? undefined : picture.steps[selection.step];
  const rows: [string, Child][] = [];
  if (selected) rows.push(["type", selected.type]);
  if (rect !== null) {
    rows.push(["size", `${grouped(bytes[rect] ?? 0)} bytes`]);
    rows.push(["place", `b${rect}, ${placeText(picture, rect)}`]);
    rows.push(["lives", `steps ${start[rect]} to ${(end[rect] ?? 0) - 1}`]);
  }
  if (step?.where) rows.push(["source", step.where]);
  if (step) rows.push(["step", stepLinks(store, shown, side, [selection.step ?? 0])]);
  if (step?.copy) {
    const { kind, queue, other } = step.copy;
    if (kind === "start") rows.push(["queue", `${queue}`]);
    rows.push([kind === "start" ? "waited for by" : "started by", stepLinks(store, shown, side, [other])]);
  }
  if (step?.exchange) rows.push(...exchangeFacts(store, shown, side, step.exchange));
  if (step && step.reads.length > 0) rows.push(["reads", valueLinks(store, shown, side, step.reads)]);
  if (value !== null) rows.push(["read by", stepLinks(store, shown, side, readers[value] ?? [])]);
  if (selected && selected.over !== null) rows.push(["written over", valueLinks(store, shown, side, [selected.over])]);
  if (rect !== null) {
    const sharing = (shown.byRect[rect] ?? []).filter((v) => v !== value);
    if (sharing.length > 0) rows.push(["shares with", valueLinks(store, shown, side, sharing)]);
    const { before, after } = neighbours(picture.rects, rect);
    rows.push(["before it", rectLinks(store, shown, side, before)], ["after it", rectLinks(store, shown, side, after)]);
  }
  return h("dl", {}, ...rows.flatMap(([name, what]) => [h("dt", {}, name), h("dd", {}, what)]));
}

function links<T>(items: readonly T[], make: (item: T) => HTMLElement): HTMLElement {
  const more = items.length > LISTED ? ` … ${items.length - LISTED} more` : "";
  if (items.length === 0) return h("span", { class: "quiet" }, "nothing");
  return h("span", { class: "links" }, ...items.slice(0, LISTED).map(make), more);
}

const valueLinks = (store: Store, { picture }: Shown, side: number, values: readonly number[]): HTMLElement =>
  links(values, (v) => button(picture.values[v]?.name ?? "?", () => selectValue(store, side, v), { class: "link" }));

const stepLinks = (store: Store, { picture }: Shown, side: number, steps: readonly number[]): HTMLElement =>
  links(steps, (s) => {
    const text = `${s} ${picture.steps[s]?.text.replace(/\(.*$/s, "") ?? "return"}`;
    return button(text, () => selectStep(store, side, s), { class: "link" });
  });

const rectLinks = (store: Store, shown: Shown, side: number, rects: readonly number[]): HTMLElement =>
  links(rects, (r) => button(rectName(shown, r), () => selectRect(store, side, r), { class: "link" }));
