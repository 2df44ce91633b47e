/** @file The board of the packing puzzle, drawn as SVG: pieces are dragged by pointers, and are sliders for keys and screen readers. */
import { h, replace, svg } from "../../../src/view/page/dom.ts";
import { type Board, clashesWith, heightOfBoard, lowestFree, moved, nextFree } from "./board.ts";
import { fitted } from "./figure.ts";
import { bytesText, bytesTick } from "./text.ts";

const BOX = { left: 66, right: 10, top: 10, bottom: 30 } as const;
const HEIGHT = 440;
const COLOURS = ["input", "kept", "gradient", "update", "forward", "recomputed"] as const;

interface Frame {
  readonly width: number;
  readonly most: number;
  x(step: number): number;
  y(bytes: number): number;
}

function frameOf({ puzzle }: Board, most: number, width: number): Frame {
  const [w, tall] = [width - BOX.left - BOX.right, HEIGHT - BOX.top - BOX.bottom];
  return {
    ...{ width, most },
    x: (step) => BOX.left + (step / puzzle.steps) * w,
    y: (bytes) => BOX.top + tall - (bytes / most) * tall,
  };
}

export interface PuzzleView {
  readonly element: HTMLElement;
  show(board: Board): void;
}

/** @param changed called with every board that the reader makes */
export function puzzleView(most: number, changed: (board: Board) => void): PuzzleView {
  const element = h("div", { class: "puzzle-box" });
  let board: Board | null = null;
  let frame: Frame | null = null;
  let pieces: readonly SVGGElement[] = [];
  const set = (next: Board): void => {
    board = next;
    place();
    changed(next);
  };
  const place = (): void => {
    if (!board || !frame) return;
    for (const [i, piece] of pieces.entries()) placePiece(piece, board, frame, i);
    const top = frame.y(heightOfBoard(board));
    const line = element.querySelector(".height-line");
    for (const name of ["y1", "y2"]) line?.setAttribute(name, String(top));
  };
  const draw = fitted(element, (width) => {
    if (!board) return;
    const drawn = board;
    const own = frameOf(drawn, most, width);
    frame = own;
    const focused = pieces.indexOf(document.activeElement as SVGGElement);
    pieces = drawn.puzzle.buffers.map((_, i) => pieceOf(drawn, own, i));
    for (const [i, piece] of pieces.entries()) {
      piece.addEventListener("keydown", (event) => {
        const next = board && afterKey(board, i, event, most);
        if (next === null) return;
        event.preventDefault();
        set(next);
      });
      drag(piece, i, () => (board && frame ? { board, frame } : null), set);
    }
    replace(element, boardOf(drawn, own, pieces));
    pieces[focused]?.focus();
    place();
  });
  return {
    element,
    show(next) {
      const isNew = board?.puzzle !== next.puzzle;
      board = next;
      if (isNew) draw();
      else place();
    },
  };
}

function boardOf({ puzzle }: Board, { width, x, y, most }: Frame, pieces: readonly SVGGElement[]): SVGElement {
  const right = width - BOX.right;
  const step = most > 6e5 ? 2 ** 17 : 2 ** 16;
  const ticks = Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step).flatMap((bytes) => [
    svg("line", { x1: BOX.left, x2: right, y1: y(bytes), y2: y(bytes), class: bytes === 0 ? "axis" : "grid" }),
    svg("text", { x: BOX.left - 8, y: y(bytes) + 4, "text-anchor": "end", class: "tick" }, bytesTick(bytes)),
  ]);
  const clash = svg(
    "pattern",
    { id: "clash", width: 8, height: 8, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("rect", { width: 8, height: 8, fill: "var(--card)" }),
    svg("rect", { width: 4, height: 8, fill: "var(--bad)" }),
  );
  const line = (bytes: number, name: string): SVGElement =>
    svg("line", { x1: BOX.left, x2: right, y1: y(bytes), y2: y(bytes), class: name });
  const bound = svg(
    "text",
    { x: right - 4, y: y(puzzle.boundBytes) - 5, "text-anchor": "end", class: "level-label" },
    "bound",
  );
  const steps = svg("text", { x: right, y: HEIGHT - 8, "text-anchor": "end", class: "tick" }, `${puzzle.steps} steps`);
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "group", "aria-label": "buffers to place" },
    svg("defs", {}, clash),
    ...[...ticks, ...pieces, line(puzzle.boundBytes, "bound-line"), bound, line(0, "height-line"), steps],
    svg("text", { x: x(0), y: HEIGHT - 8, class: "tick" }, "step 0"),
  );
}

function pieceOf({ puzzle }: Board, { x, y, most }: Frame, index: number): SVGGElement {
  const { name, start, end, bytes } = puzzle.buffers[index] ?? { name: "", start: 0, end: 0, bytes: 0 };
  const [w, tall] = [x(end) - x(start), y(0) - y(bytes)];
  const colour = `--series:var(--kind-${COLOURS[index % COLOURS.length]})`;
  const text = w > 7 * name.length + 8 && tall > 13 ? name : "";
  const attributes = { class: "piece", tabindex: 0, role: "slider", "aria-orientation": "vertical", style: colour };
  return svg(
    "g",
    {
      ...attributes,
      "aria-label": `${name}, ${bytesText(bytes)}, steps ${start} to ${end - 1}`,
      "aria-valuemin": 0,
      "aria-valuemax": most,
    },
    svg("rect", { x: x(start), y: 0, width: Math.max(3, w), height: tall, rx: 3 }),
    svg("text", { x: x(start) + 6, y: Math.min(tall - 5, tall / 2 + 4) }, text),
  );
}

function placePiece(piece: SVGGElement, board: Board, { y }: Frame, index: number): void {
  const offset = board.offsets[index] ?? 0;
  const bytes = board.puzzle.buffers[index]?.bytes ?? 0;
  const clashes = clashesWith(board, index);
  const names = clashes.map((i) => board.puzzle.buffers[i]?.name).join(", ");
  piece.setAttribute("transform", `translate(0 ${y(offset + bytes)})`);
  piece.classList.toggle("clash", clashes.length > 0);
  piece.setAttribute("aria-valuenow", String(offset));
  piece.setAttribute("aria-valuetext", `at ${bytesText(offset)}${names ? `, overlaps ${names}` : ""}`);
}

function afterKey(board: Board, piece: number, event: KeyboardEvent, most: number): Board | null {
  const at = board.offsets[piece] ?? 0;
  const limit = most - (board.puzzle.buffers[piece]?.bytes ?? 0);
  const up = event.key === "ArrowUp" || event.key === "ArrowRight";
  if (up || event.key === "ArrowDown" || event.key === "ArrowLeft") {
    const one = Math.min(limit, at + (up ? board.grid : -board.grid));
    return moved(board, piece, event.shiftKey ? nextFree(board, piece, up, limit) : one);
  }
  if (event.key === "Enter" || event.key === " ") return moved(board, piece, lowestFree(board, piece));
  if (event.key === "Home") return moved(board, piece, 0);
  return event.key === "End" ? moved(board, piece, limit) : null;
}

interface Now {
  readonly board: Board;
  readonly frame: Frame;
}

/** Vertical dragging, on the grid. */
function drag(piece: SVGGElement, index: number, now: () => Now | null, set: (board: Board) => void): void {
  let begin: { readonly y: number; readonly offset: number } | null = null;
  piece.addEventListener("pointerdown", (event) => {
    const state = now();
    if (!state || event.button !== 0) return;
    begin = { y: event.clientY, offset: state.board.offsets[index] ?? 0 };
    piece.setPointerCapture(event.pointerId);
    piece.classList.add("held");
    piece.focus();
  });
  piece.addEventListener("pointermove", (event) => {
    const state = now();
    if (!begin || !state) return;
    const { board, frame } = state;
    const bytesPerPixel = frame.most / (frame.y(0) - frame.y(frame.most));
    const limit = frame.most - (board.puzzle.buffers[index]?.bytes ?? 0);
    const to = begin.offset + (begin.y - event.clientY) * bytesPerPixel;
    const offset = Math.min(limit, Math.max(0, Math.round(to / board.grid) * board.grid));
    if (offset !== board.offsets[index]) set(moved(board, index, offset));
  });
  const end = (): void => {
    begin = null;
    piece.classList.remove("held");
  };
  piece.addEventListener("pointerup", end);
  piece.addEventListener("pointercancel", end);
}
