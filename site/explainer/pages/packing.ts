/** @file Liveness, sharing, in place, and the packing puzzle. */
import { button, h, replace } from "../../../src/view/page/dom.ts";
import type { Reuse, ReuseName } from "../engine/packing.ts";
import { type Board, clashCount, heightOfBoard, inOrderBoard, plannedBoard, stackedBoard } from "../kit/board.ts";
import { createEngine } from "../kit/engine.ts";
import { choice, figureNumber, numbersTable, stage, tableSlot, verdict } from "../kit/figure.ts";
import { barsView } from "../kit/plot.ts";
import { puzzleView } from "../kit/puzzle.ts";
import { firstFigure, startPage } from "../kit/start.ts";
import { bytesText, percentText, ratioText } from "../kit/text.ts";

const [reusing, packing] = [createEngine(), createEngine()];

const NETWORKS: readonly { readonly name: ReuseName; readonly text: string }[] = [
  { name: "attention", text: "one head of attention" },
  { name: "convolutions", text: "convolutions" },
  { name: "transformer", text: "transformer" },
];

const IDEAS = [
  ["apartBytes", "Every value apart", "var(--b)"],
  ["sharedBytes", "Lifetimes shared", "var(--d)"],
  ["inPlaceBytes", "… and written in place", "var(--a)"],
  ["fusedBytes", "… and fused", "var(--c)"],
] as const;

async function reuse(): Promise<void> {
  const box = stage("reuse");
  const [bars, told] = [barsView(), verdict()];
  let wanted: ReuseName = "attention";
  const show = (figures: Reuse): void => {
    const shown = IDEAS.map(([key, name, colour]) => {
      return { name, parts: [{ name, value: figures[key], colour }], text: bytesText(figures[key]) };
    });
    bars.show(shown, shown.map(({ name, text }) => `${name}: ${text}`).join("; "));
    const factor = figures.apartBytes / figures.fusedBytes;
    told.say(
      ...["From ", figureNumber("reuse.apart", figures.apartBytes, bytesText(figures.apartBytes))],
      ...[" to ", figureNumber("reuse.fused", figures.fusedBytes, bytesText(figures.fusedBytes))],
      ...[": ", figureNumber("reuse.factor", factor, ratioText(factor)), " less, for nothing."],
    );
  };
  const pick = choice("Network", NETWORKS, wanted, async (name) => {
    wanted = name;
    const figures = await reusing.call("reuse", name);
    if (wanted === name) show(figures);
  });
  replace(box, h("div", { class: "controls" }, pick), bars.element, told.element);
  show(await reusing.call("reuse", wanted));
  firstFigure();
}

function boardTable({ puzzle, offsets }: Board): HTMLElement {
  const rows = puzzle.buffers.map(({ name, start, end, bytes, offset }, i) => ({
    cells: [name, bytesText(bytes), `${start} to ${end - 1}`, bytesText(offsets[i] ?? 0), bytesText(offset)],
  }));
  return numbersTable("buffers of the puzzle", ["buffer", "size", "steps", "your address", "the planner's"], rows);
}

async function puzzle(): Promise<void> {
  const box = stage("puzzle");
  const data = await packing.call("puzzle");
  const begin = stackedBoard(data);
  const [told, table] = [verdict(), tableSlot()];
  const say = (board: Board): void => {
    const [height, clashes] = [heightOfBoard(board), clashCount(board)];
    const above = height / data.boundBytes - 1;
    const place =
      above <= 0
        ? "the bound: no arena is smaller."
        : `${percentText(above)} above the bound of ${bytesText(data.boundBytes)}.`;
    const pairs = clashes === 1 ? "1 pair overlaps" : `${clashes} pairs overlap`;
    const number = figureNumber("puzzle.height", height, bytesText(height));
    if (clashes > 0) told.say("Height ", number, `; ${pairs}.`);
    else told.say("Your arena takes ", number, above <= 0 ? ", " : ": ", place);
    table.show(boardTable(board));
  };
  const view = puzzleView(heightOfBoard(begin), say);
  const set = (board: Board) => (): void => {
    view.show(board);
    say(board);
  };
  const buttons = [
    button("Start again", set(begin)),
    button("Each at the lowest free place, in order", set(inOrderBoard(begin))),
    button("The planner’s", set(plannedBoard(begin)), { id: "planned" }),
  ];
  const bound = h("span", { "data-number": "puzzle.bound", "data-value": String(data.boundBytes), hidden: true });
  replace(box, h("div", { class: "controls" }, ...buttons), view.element, told.element, table.element, bound);
  set(begin)();
}

startPage([reuse, puzzle]);
