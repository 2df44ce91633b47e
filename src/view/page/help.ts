/** @file The help dialog: keys, words and files. */
import { button, h } from "./dom.ts";
import { TERMS } from "./legend.ts";

const KEYS: readonly (readonly [string, string])[] = [
  ["/", "search by name; Enter takes the first match, Escape leaves"],
  ["Tab", "from view to view"],
  ["[  ]", "previous and next buffer in the map, step in the chart"],
  ["← → ↑ ↓", "move in the map and the chart, go through steps in the program, change the budget at its slider"],
  ["+  −  0", "zoom in, out, show everything"],
  ["p", "fold and unfold persistent buffers (parameters, optimizer state)"],
  ["Escape", "select nothing"],
];

const FILES = " Plan files, PyTorch snapshots and placed tables can be dropped anywhere, with Shift to compare.";

/** @param files whether plans can be opened from files */
export function helpDialog(files: boolean): HTMLDialogElement {
  const rows = KEYS.map(([key, what]) => h("tr", {}, h("td", {}, h("kbd", {}, key)), h("td", {}, what)));
  const words = Object.entries(TERMS).map(([word, means]) => h("tr", {}, h("td", {}, word), h("td", {}, means)));
  const dialog = h(
    "dialog",
    { "aria-label": "keys and help" },
    h("table", {}, h("caption", {}, "keys"), h("tbody", {}, ...rows)),
    h("table", { class: "terms" }, h("caption", {}, "words"), h("tbody", {}, ...words)),
    h(
      "p",
      { class: "quiet" },
      "Drag to pan. The wheel zooms a drawing that has the focus (with Ctrl always; Shift: time only, Alt: addresses only), " +
        "a double click shows everything." +
        (files ? FILES : ""),
    ),
  );
  dialog.append(button("close", () => dialog.close()));
  return dialog;
}
