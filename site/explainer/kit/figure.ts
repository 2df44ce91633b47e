/** @file Parts of figures: where a figure is mounted, sliders, choices, numbers that tests read, and the table below every drawing. */
import { button, type Child, h, replace } from "../../../src/view/page/dom.ts";

/** The box of a figure of the page's text, above its caption. */
export function stage(id: string): HTMLElement {
  const figure = document.getElementById(id);
  const caption = figure?.querySelector("figcaption");
  const box = h("div", { class: "stage" });
  if (caption) {
    caption.id = `${id}-caption`;
    figure?.setAttribute("aria-labelledby", caption.id);
    caption.before(box);
  } else figure?.append(box);
  return box;
}

export interface Slider {
  readonly element: HTMLElement;
  readonly input: HTMLInputElement;
  value(): number;
  set(value: number): void;
}

export interface SliderOptions {
  readonly id: string;
  readonly label: string;
  readonly min: number;
  readonly max: number;
  readonly step?: number;
  readonly value: number;
  /** What a position means: shown beside it, and told to screen readers. */
  readonly text: (value: number) => string;
  readonly changed: (value: number) => void;
}

/** A range with a label and its value in words. */
export function slider({ id, label, min, max, step = 1, value, text, changed }: SliderOptions): Slider {
  const input = h("input", { type: "range", id, min, max, step, value: String(value) });
  const output = h("output", { for: id, class: "slider-value" });
  const say = (): void => {
    const words = text(Number(input.value));
    input.setAttribute("aria-valuetext", words);
    output.textContent = words;
  };
  input.addEventListener("input", () => {
    say();
    changed(Number(input.value));
  });
  say();
  return {
    element: h("div", { class: "slider-row" }, h("label", { for: id }, label), input, output),
    input,
    value: () => Number(input.value),
    set(next) {
      input.value = String(next);
      say();
    },
  };
}

/** One of a few: buttons of which one is pressed, moved through by arrow keys as radio buttons are. */
export function choice<T extends string>(
  label: string,
  options: readonly { readonly name: T; readonly text: string }[],
  first: T,
  changed: (name: T) => void,
): HTMLElement {
  const group = `choice-${label.replaceAll(/\W+/g, "-")}`;
  const items = options.map(({ name, text }) => {
    const input = h("input", { type: "radio", name: group, value: name, checked: name === first });
    input.addEventListener("change", () => changed(name));
    return h("label", { class: "choice" }, input, h("span", {}, text));
  });
  return h("fieldset", { class: "choices" }, h("legend", {}, label), ...items);
}

/** A number of the library: tests compare it with the library's own. */
export function figureNumber(key: string, value: number, text: string): HTMLElement {
  return h("b", { class: "number", "data-number": key, "data-value": String(value) }, text);
}

export interface TableRow {
  readonly cells: readonly Child[];
}

/** The numbers of a drawing, folded away below it. */
export function numbersTable(caption: string, heads: readonly string[], rows: readonly TableRow[]): HTMLElement {
  return h(
    "details",
    { class: "numbers" },
    h("summary", {}, "These numbers as a table"),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
      h(
        "table",
        {},
        h("caption", {}, caption),
        h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
        h("tbody", {}, ...rows.map(rowOf)),
      ),
    ),
  );
}

function rowOf({ cells }: TableRow): HTMLElement {
  const [first, ...rest] = cells;
  return h("tr", {}, h("th", { scope: "row" }, first ?? ""), ...rest.map((cell) => h("td", {}, cell)));
}

/** A place for a table that stays open when it is drawn again. */
export function tableSlot(): { readonly element: HTMLElement; show(table: HTMLElement): void } {
  const element = h("div", {});
  return {
    element,
    show(table) {
      const open = element.querySelector("details")?.open ?? false;
      if (table instanceof HTMLDetailsElement) table.open = open;
      replace(element, table);
    },
  };
}

export interface LegendItem {
  readonly colour: string;
  readonly text: string;
  readonly dashed?: boolean;
  readonly square?: boolean;
}

export function legend(items: readonly LegendItem[]): HTMLElement {
  const keys = items.map(({ colour, text, dashed = false, square = false }) => {
    const shape = `${square ? " square" : ""}${dashed ? " dashed" : ""}`;
    return h("li", {}, h("i", { class: `key${shape}`, style: `--key:${colour}`, "aria-hidden": "true" }), text);
  });
  return h("ul", { class: "keys" }, ...keys);
}

export interface Says {
  readonly element: HTMLElement;
  say(...parts: readonly Child[]): void;
}

/** What just changed, said to screen readers and shown to everyone. */
export function verdict(): Says {
  const element = h("p", { class: "says", "aria-live": "polite" });
  return { element, say: (...parts) => replace(element, ...parts) };
}

export const prefersStill = (): boolean => matchMedia("(prefers-reduced-motion: reduce)").matches;

export interface PositionsOptions {
  readonly id: string;
  readonly label: string;
  readonly count: number;
  readonly first: number;
  readonly text: (position: number) => string;
  readonly shown: (position: number) => void;
  /** Milliseconds between two positions. */
  readonly pause: () => number;
}

/** Positions that are gone through with a slider, or played. With reduced motion, playing goes to the end at once. */
export interface Positions {
  readonly element: HTMLElement;
  go(position: number): void;
  /** Another number of positions. */
  resize(count: number): void;
}

export function positions({ id, label, count, first, text, shown, pause }: PositionsOptions): Positions {
  let [timer, last] = [0, count - 1];
  const go = (position: number): void => {
    at.set(position);
    shown(position);
  };
  const stop = (): void => {
    clearTimeout(timer);
    timer = 0;
    play.textContent = "Play";
  };
  const tick = (): void => {
    go(Math.min(last, at.value() + 1));
    if (at.value() === last) stop();
    else timer = window.setTimeout(tick, pause());
  };
  const play = button("Play", () => {
    if (timer !== 0) return stop();
    if (prefersStill()) return go(last);
    go(0);
    play.textContent = "Pause";
    timer = window.setTimeout(tick, pause());
    return undefined;
  });
  const at = slider({
    ...{ id, label, min: 0, max: last, value: first, text },
    changed: (position) => {
      stop();
      shown(position);
    },
  });
  const resize = (next: number): void => {
    stop();
    last = next - 1;
    at.input.max = String(last);
  };
  return { element: h("div", { class: "controls" }, play, at.element), go, resize };
}

/** Draws at the width that there is, again whenever it changes. */
export function fitted(element: HTMLElement, draw: (width: number) => void): () => void {
  const now = (): void => {
    const width = Math.floor(element.clientWidth);
    if (width > 0) draw(width);
  };
  let last = 0;
  new ResizeObserver(() => {
    if (element.clientWidth === last) return;
    last = element.clientWidth;
    now();
  }).observe(element);
  return now;
}
