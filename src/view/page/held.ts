/** @file What is held for the backward pass by a tape of inputs and outputs, by named saves, by the tape here, and by the plan. */
import { formatBytes } from "../../base/bytes.ts";
import type { HeldAccount, HeldBytes } from "../data.ts";
import { h } from "./dom.ts";

/** Operations that are listed one by one. */
const LISTED = 12;

const COLUMNS: readonly (readonly [name: string, means: string, of: (bytes: HeldBytes) => number])[] = [
  ["inputs and outputs", "of every operation, as a tape of TensorFlow.js holds them", (b) => b.overloadBytes],
  ["named saves", "what derivatives read, with the storage of views, as PyTorch holds it", (b) => b.namedSavesBytes],
  ["tape", "what derivatives read, less what costs nothing to recompute: tidemark/tape", (b) => b.tapeBytes],
  ["planned", "forward values that the plan as asked still reads, the most at one time", (b) => b.plannedBytes],
];

const cells = (bytes: HeldBytes): readonly HTMLElement[] =>
  COLUMNS.map(([, , of]) => h("td", {}, formatBytes(of(bytes))));

const line = (name: string, bytes: HeldBytes): HTMLElement =>
  h("tr", {}, h("th", { scope: "row" }, name), ...cells(bytes));

const sumOf = (rows: readonly HeldBytes[]): HeldBytes => ({
  overloadBytes: rows.reduce((sum, row) => sum + row.overloadBytes, 0),
  namedSavesBytes: rows.reduce((sum, row) => sum + row.namedSavesBytes, 0),
  tapeBytes: rows.reduce((sum, row) => sum + row.tapeBytes, 0),
  plannedBytes: rows.reduce((sum, row) => sum + row.plannedBytes, 0),
});

/** The totals, each backward pass where there are several, then the operations that hold most. */
export function heldTable(held: HeldAccount): HTMLElement {
  const rows = held.rows.filter((row) => COLUMNS.some(([, , of]) => of(row) > 0));
  const rest = rows.slice(LISTED);
  const heads = COLUMNS.map(([name, means]) => h("th", { scope: "col", title: means }, name));
  const passes = held.passes.length > 1 ? held.passes : [];
  return h(
    "table",
    { class: "held" },
    h("caption", {}, "when the backward pass begins, without arguments and constants"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "operation"), ...heads)),
    h(
      "tbody",
      {},
      line("all", held),
      ...passes.map((bytes, i) => line(`backward pass ${i + 1}`, bytes)),
      ...rows.slice(0, LISTED).map((row) => line(`${row.operation} × ${row.count}`, row)),
      rest.length === 0 ? null : line(`${rest.length} other operations`, sumOf(rest)),
    ),
  );
}
