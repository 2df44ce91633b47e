/**
 * @file An editor: a text field with transparent letters over the same text in colours. The browser provides the
 * editing (selection, undo, input methods, screen readers); the layer below only displays.
 *
 *   ┌ editor, scrolls ───────────────┐
 *   │ ┌ sheet, a grid of one cell ─┐ │   both in the same cell: the larger one sizes the cell, so they scroll together
 *   │ │  pre      lines, coloured  │ │
 *   │ │  textarea the same, unseen │ │
 *   │ └────────────────────────────┘ │
 *   └────────────────────────────────┘
 */
import { h, replace } from "../../view/page/dom.ts";
import type { Complaint } from "../complaint.ts";
import { linesOf } from "../highlight.ts";

export interface Editor {
  readonly element: HTMLElement;
  text(): string;
  set(text: string): void;
  /** Shows an error at its line. */
  complain(complaint: Complaint | null): void;
  /** Marks the source line of the selection. */
  mark(line: number | null): void;
}

export function createEditor(changed: () => void): Editor {
  const field = h("textarea", {
    ...{ spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", rows: 1 },
    ...{ "aria-label": "function", "aria-describedby": "complaint", id: "code" },
  });
  const below = h("pre", { "aria-hidden": "true" });
  const element = h("div", { class: "editor" }, h("div", { class: "sheet" }, below, field));
  let complaint: Complaint | null = null;
  let marked: number | null = null;
  const draw = (): void => {
    replace(below, ...linesOf(field.value).map((tokens, i) => lineOf(tokens, i + 1, complaint, marked)));
    field.setAttribute("aria-invalid", complaint ? "true" : "false");
  };
  field.addEventListener("input", () => {
    complaint = null;
    marked = null;
    draw();
    changed();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    event.preventDefault();
    insert(field, `\n${indentAt(field.value, field.selectionStart)}`);
  });
  return {
    element,
    text: () => field.value,
    set(text) {
      field.value = text;
      [complaint, marked] = [null, null];
      element.scrollTop = 0;
      draw();
    },
    complain(next) {
      complaint = next;
      draw();
      if (next?.line) reveal(element, below, next.line);
    },
    mark(line) {
      if (line === marked) return;
      marked = line;
      draw();
      if (line !== null) reveal(element, below, line);
    },
  };
}

function lineOf(
  tokens: ReturnType<typeof linesOf>[number],
  number: number,
  complaint: Complaint | null,
  marked: number | null,
): HTMLElement {
  const bad = complaint?.line === number;
  const here = marked === number && !bad;
  const parts = tokens.map(({ kind, text }) => (kind === "plain" ? text : h("span", { class: `t-${kind}` }, text)));
  const tail = bad ? h("span", { class: "tail" }, complaint.message.split("\n")[0] ?? "") : null;
  return h("span", { class: `line${bad ? " bad" : ""}${here ? " here" : ""}`, "data-n": number }, ...parts, tail);
}

/** The indentation of the line at a position, plus two after an opening bracket. */
function indentAt(text: string, position: number): string {
  const line = text.slice(text.lastIndexOf("\n", position - 1) + 1, position);
  const spaces = /^ */.exec(line)?.[0] ?? "";
  return /[([{]\s*$/.test(line) ? `${spaces}  ` : spaces;
}

/** Inserts as if typed, so that it can be undone. */
function insert(field: HTMLTextAreaElement, text: string): void {
  if (document.execCommand("insertText", false, text)) return;
  field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

function reveal(element: HTMLElement, below: HTMLElement, line: number): void {
  const row = below.children[line - 1];
  if (!(row instanceof HTMLElement)) return;
  const top = row.offsetTop;
  if (top >= element.scrollTop && top + row.offsetHeight <= element.scrollTop + element.clientHeight) return;
  element.scrollTop = Math.max(0, top - element.clientHeight / 2);
}
