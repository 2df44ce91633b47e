/** @file Compares two plans: their figures side by side, and the change of every value, largest first. */
import { formatBytes } from "../../base/bytes.ts";
import { grouped } from "../../base/errors.ts";
import { differences } from "../difference.ts";
import { differenceText } from "../difference-text.ts";
import { rectCount } from "../picture.ts";
import { lineDifferences } from "../source-lines.ts";
import { button, h, replace } from "./dom.ts";
import { type Shown, type State, type Store, selectValue } from "./store.ts";

const LISTED = 40;

export interface CompareView {
  readonly element: HTMLElement;
  draw(state: State, before: State | null): void;
}

export function compareView(store: Store): CompareView {
  const element = h("div", { class: "compare" });
  return {
    element,
    draw(state, before) {
      if (before && before.sides === state.sides) return;
      const [a, b] = state.sides;
      replace(element, ...(b ? partsOf(store, a, b) : []));
    },
  };
}

function partsOf(store: Store, a: Shown, b: Shown): readonly HTMLElement[] {
  if (isRecorded(a, b)) return [numbers(a, b), lineTable(a, b), valueList(store, a, b)];
  // the same lifetimes at other addresses: every value differs, and none in a way that matters
  const isPlaced = [a, b].some(({ picture }) => picture.source === "snapshot" && picture.strategy === "placed");
  return isPlaced ? [numbers(a, b)] : [numbers(a, b), valueList(store, a, b)];
}

const signed = (bytes: number): string => `${bytes > 0 ? "+" : ""}${formatBytes(bytes)}`;

function numbers(a: Shown, b: Shown): HTMLElement {
  const again = ({ picture }: Shown): number => picture.steps.filter((s) => s.again).length;
  const ms = ({ entry }: Shown): number | null => entry.predictedMs;
  const bytes = (name: string, of: (s: Shown) => number) =>
    [name, formatBytes(of(a)), formatBytes(of(b)), signed(of(b) - of(a))] as const;
  const count = (name: string, of: (s: Shown) => number) =>
    [name, grouped(of(a)), grouped(of(b)), `${of(b) - of(a) > 0 ? "+" : ""}${grouped(of(b) - of(a))}`] as const;
  const [timeA, timeB] = [ms(a), ms(b)];
  const rows = [
    bytes("arena", (s) => s.picture.heightBytes),
    bytes("most live", (s) => s.picture.boundBytes),
    count("steps", (s) => s.picture.steps.length),
    count("buffers", (s) => rectCount(s.picture.rects)),
    count("recomputing steps", again),
    ...(timeA === null || timeB === null
      ? []
      : [["predicted ms", timeA.toFixed(2), timeB.toFixed(2), `${(timeB / timeA).toFixed(3)} ×`] as const]),
  ];
  const head = h("tr", {}, ...["", "A", "B", "B − A"].map((t) => h("th", { scope: "col" }, t)));
  return h(
    "table",
    { class: "numbers" },
    h("caption", {}, `A: ${a.entry.label} · B: ${b.entry.label}`),
    h("thead", {}, head),
    h("tbody", {}, ...rows.map(([name, ...cells]) => row(name, cells))),
  );
}

const isRecorded = (a: Shown, b: Shown): boolean => [a, b].every(({ picture }) => picture.strategy === "recorded");

/** Of two snapshots: what each line of Python holds when the most bytes are live. */
function lineTable(a: Shown, b: Shown): HTMLElement {
  const rows = lineDifferences(a.picture, b.picture).slice(0, LISTED);
  const head = h("tr", {}, ...["line", "A", "B", "B − A"].map((t) => h("th", { scope: "col" }, t)));
  const cells = rows.map(({ line, a: mine, b: theirs }) =>
    row(line, [formatBytes(mine.atPeak), formatBytes(theirs.atPeak), signed(theirs.atPeak - mine.atPeak)]),
  );
  return h(
    "table",
    { class: "numbers lines" },
    h("caption", {}, "live at the peak, by source line"),
    h("thead", {}, head),
    h("tbody", {}, ...cells),
  );
}

const row = (name: string, cells: readonly string[]): HTMLElement =>
  h("tr", {}, h("th", { scope: "row" }, name), ...cells.map((cell) => h("td", {}, cell)));

function valueList(store: Store, a: Shown, b: Shown): HTMLElement {
  const all = differences(a.picture, b.picture);
  const changed = all.filter(({ change }) => change !== "same");
  const items = changed.slice(0, LISTED).map((difference) => {
    const { name, a: inA, b: inB, byteSteps } = difference;
    const select = (): void => (inA === null ? selectValue(store, 1, inB ?? 0) : selectValue(store, 0, inA));
    const average = byteSteps / Math.max(1, a.picture.columns, b.picture.columns);
    return h(
      "li",
      {},
      button(name, select, { class: "link" }),
      h("b", {}, signed(Math.round(average))),
      h("span", {}, differenceText(difference, a.picture, b.picture)),
    );
  });
  const same = all.length - changed.length;
  const more = changed.length > LISTED ? `; ${changed.length - LISTED} more that change less are not listed` : "";
  return h(
    "div",
    { class: "differences" },
    h("h3", {}, "values that differ"),
    h("p", { class: "quiet" }, "by the memory that they take in B more than in A, averaged over the run"),
    h("ul", { class: "values" }, ...items),
    h("p", { class: "quiet count" }, `${changed.length} values differ, ${same} are the same${more}.`),
  );
}
