/** @file Buffers that are placed by hand: rules of the puzzle, without drawing. Offsets are on a grid. */
import type { Puzzle } from "../engine/packing.ts";

export interface Board {
  readonly puzzle: Puzzle;
  /** Of which all sizes are multiples. */
  readonly grid: number;
  readonly offsets: readonly number[];
}

const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));

/** Each buffer on top of all before it. */
export function stackedBoard(puzzle: Puzzle): Board {
  const grid = puzzle.buffers.reduce((common, { bytes }) => divisor(common, bytes), 0);
  let top = 0;
  const offsets = puzzle.buffers.map(({ bytes }) => {
    top += bytes;
    return top - bytes;
  });
  return { puzzle, grid, offsets };
}

export const plannedBoard = (board: Board): Board => ({
  ...board,
  offsets: board.puzzle.buffers.map(({ offset }) => offset),
});

export const moved = (board: Board, piece: number, offset: number): Board => ({
  ...board,
  offsets: board.offsets.map((old, i) => (i === piece ? Math.max(0, offset) : old)),
});

/** Pieces that are there at a common step, and take common bytes. */
export function clashesWith(
  { puzzle, offsets }: Board,
  piece: number,
  offset = offsets[piece] ?? 0,
): readonly number[] {
  const mine = puzzle.buffers[piece];
  if (!mine) return [];
  return puzzle.buffers.flatMap((other, i) => {
    const from = offsets[i] ?? 0;
    const inTime = i !== piece && other.start < mine.end && mine.start < other.end;
    return inTime && from < offset + mine.bytes && offset < from + other.bytes ? [i] : [];
  });
}

export const clashCount = (board: Board): number =>
  board.offsets.reduce((sum, _, i) => sum + clashesWith(board, i).length, 0) / 2;

export const heightOfBoard = ({ puzzle, offsets }: Board): number =>
  Math.max(...puzzle.buffers.map(({ bytes }, i) => (offsets[i] ?? 0) + bytes));

/** The next free place of a piece up or down; where it is if there is none. */
export function nextFree(board: Board, piece: number, up: boolean, limit: number): number {
  const from = board.offsets[piece] ?? 0;
  const by = up ? board.grid : -board.grid;
  for (let at = from + by; at >= 0 && at <= limit; at += by) if (clashesWith(board, piece, at).length === 0) return at;
  return from;
}

/** The lowest free place of a piece. */
export function lowestFree(board: Board, piece: number): number {
  let at = 0;
  while (clashesWith(board, piece, at).length > 0) at += board.grid;
  return at;
}

/** Every piece at the lowest free place, in the order in which they are made. */
export function inOrderBoard(board: Board): Board {
  const far = heightOfBoard(stackedBoard(board.puzzle)) * 2;
  const order = board.puzzle.buffers.map((_, i) => i).sort((a, b) => startOf(board, a) - startOf(board, b) || a - b);
  const begin: Board = { ...board, offsets: board.offsets.map((_, i) => far * (i + 1)) };
  return order.reduce((at, piece) => moved(at, piece, lowestFree(at, piece)), begin);
}

const startOf = ({ puzzle }: Board, piece: number): number => puzzle.buffers[piece]?.start ?? 0;
