/**
 * @file The arena as a picture: time across, bytes up. Small plans are drawn exactly, one row per band of addresses
 * between two borders of buffers:
 *
 *       0x00040 |.   b1──────────────|
 *       0x00000 |b0──────────────b2──|
 *        step    0   1   2   3   4
 *
 * Large plans are scaled down: each cell stands for some steps and some bytes and shows the letter of the kind of
 * buffer that fills most of it, or a dot where most is free. Each memory space gets its own picture, under its name.
 */
import { grouped } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { BUFFER_KINDS, type Buffer, type BufferKind, layoutIn, type Plan, problemIn, rangeOf } from "./problem.ts";
import type { SpaceId } from "./space.ts";

/** Options of charts and maps. */
export interface MapOptions {
  /** Columns of text, at most. */
  readonly width?: number | undefined;
  /** Rows of the picture, at most. */
  readonly height?: number | undefined;
  /** Colours cells that show a kind of buffer; by default they stay as they are. */
  readonly paint?: Paint | undefined;
}

/** Styles text for one kind of buffer. */
export type Paint = (text: string, kind: BufferKind) => string;

export const KIND_LETTERS: Record<BufferKind, string> = {
  persistent: "P",
  input: "I",
  result: "R",
  activation: "a",
  gradient: "g",
  update: "u",
  scratch: "s",
};

const KIND_OF_LETTER: ReadonlyMap<string, BufferKind> = new Map(BUFFER_KINDS.map((kind) => [KIND_LETTERS[kind], kind]));

/** A row of letters, each run of one kind painted once. */
export function paintLetters(letters: string, paint: Paint | undefined): string {
  if (!paint) return letters;
  return letters.replaceAll(/(\w)\1*/g, (run, letter: string) => {
    const kind = KIND_OF_LETTER.get(letter);
    return kind ? paint(run, kind) : run;
  });
}

/** `P persistent, s scratch`: what the letters of a picture mean. */
export function letterKey(buffers: readonly Buffer[], paint: Paint | undefined): string {
  const used = BUFFER_KINDS.filter((kind) => buffers.some((b) => b.kind === kind && b.bytes > 0));
  return used.map((kind) => `${paintLetters(KIND_LETTERS[kind], paint)} ${kind}`).join(", ");
}

/** Columns per step in an exact map. */
const PITCH = 4;

/**
 * Each memory space over time; exact if it fits into `width` columns and `height` rows, scaled down otherwise.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { memoryMap } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(memoryMap(plan, { width: 40, height: 8 }).split("\n").length); // → 7
 */
export function memoryMap(plan: Plan, options: MapOptions = {}): string {
  return forEachSpace(plan, (space) => mapOf(plan, space, options));
}

/** The picture of every space, under its name and size if there are several. */
export function forEachSpace(plan: Plan, picture: (space: SpaceId) => string): string {
  const { spaces } = plan.problem;
  if (spaces.length === 1) return picture(0);
  const titled = spaces.map(({ name }, space) => {
    return `${name}, ${grouped(layoutIn(plan, space).height)} bytes\n${picture(space)}`;
  });
  return titled.join("\n");
}

export function buffersIn(plan: Plan, space: SpaceId): readonly Buffer[] {
  return problemIn(plan.problem, space).buffers;
}

function mapOf(plan: Plan, space: SpaceId, { width = 100, height = 32, paint }: MapOptions): string {
  const steps = plan.program.steps.length + 1;
  const buffers = buffersIn(plan, space);
  const bands = bandsOf(plan, buffers);
  const bytes = layoutIn(plan, space).height;
  const drawing = { plan, buffers, bytes, steps, label: addressWidth(bytes), paint };
  const exact = bands.length <= height && drawing.label + 4 + steps * PITCH <= width;
  return exact ? exactMap(bands, drawing) : scaledMap(width - drawing.label - 4, height, drawing);
}

interface Drawing {
  readonly plan: Plan;
  /** Of the space that is drawn. */
  readonly buffers: readonly Buffer[];
  /** Its height. */
  readonly bytes: number;
  /** The return step included. */
  readonly steps: number;
  /** Width of the addresses. */
  readonly label: number;
  readonly paint: Paint | undefined;
}

interface Band {
  readonly from: number;
  readonly to: number;
}

/** Address ranges that no buffer boundary crosses, lowest first; only ranges in use. */
function bandsOf(plan: Plan, buffers: readonly Buffer[]): Band[] {
  const used = buffers.filter((b) => b.bytes > 0).map((b) => rangeOf(plan, b.id));
  const borders = [...new Set(used.flatMap(({ from, to }) => [from, to]))].sort((a, b) => a - b);
  const bands = borders.slice(1).map((to, i) => ({ from: at(borders, i), to }));
  return bands.filter((band) => used.some(({ from, to }) => from <= band.from && band.to <= to));
}

function addressWidth(height: number): number {
  return Math.max(5, height.toString(16).length) + 2;
}

function address(bytes: number, width: number): string {
  return `0x${bytes.toString(16).padStart(width - 2, "0")}`;
}

function exactMap(bands: readonly Band[], { plan, buffers, steps, label, paint }: Drawing): string {
  const rows = [...bands].reverse().map((band) => {
    const cells = new Array<string>(steps * PITCH).fill(" ");
    for (let step = 0; step < steps; step++) cells[step * PITCH] = ".";
    for (const buffer of buffers) {
      const { from, to } = rangeOf(plan, buffer.id);
      if (buffer.bytes === 0 || from > band.from || to < band.to) continue;
      const length = (buffer.lifespan.end - buffer.lifespan.start) * PITCH;
      const bar = `b${buffer.id}`.padEnd(length, "─").slice(0, length);
      for (let i = 0; i < length; i++) {
        cells[buffer.lifespan.start * PITCH + i] = paint ? paint(bar.charAt(i), buffer.kind) : bar.charAt(i);
      }
    }
    return `${address(band.from, label)} |${cells.join("")}|`;
  });
  let axis = "";
  for (let step = 0; step < steps; step++) axis += `${step}`.padEnd(PITCH).slice(0, PITCH);
  return `${[...rows, `${"step".padStart(label)}  ${axis}`.trimEnd()].join("\n")}\n`;
}

function scaledMap(maxColumns: number, maxRows: number, drawing: Drawing): string {
  const { buffers, bytes, steps, label, paint } = drawing;
  const columns = Math.max(1, Math.min(maxColumns, steps));
  const rows = Math.max(1, Math.min(maxRows, bytes));
  const cells = fillCells(drawing, columns, rows);
  const lines: string[] = [];
  for (let row = rows - 1; row >= 0; row--) {
    const from = Math.floor((row * bytes) / rows);
    const letters = cells.slice(row * columns, (row + 1) * columns).join("");
    lines.push(`${address(from, label)} |${paintLetters(letters, paint)}|`);
  }
  const last = `${steps - 1}`;
  const axis = `0${last.padStart(Math.max(last.length + 1, columns - 1))}`;
  const cell = `1 cell = ${(steps / columns).toFixed(1)} steps × ${grouped(Math.ceil(bytes / rows))} bytes`;
  return `${[
    ...lines,
    `${"step".padStart(label)}  ${axis}`,
    `${" ".repeat(label)}  ${letterKey(buffers, paint)}, . free`,
    `${" ".repeat(label)}  ${cell}`,
  ].join("\n")}\n`;
}

/** Per cell, row by row from the bottom, the letter of what covers most of its area. */
function fillCells(drawing: Drawing, columns: number, rows: number): string[] {
  const area = BUFFER_KINDS.map(() => new Float64Array(columns * rows));
  const grid = { ...drawing, columns, rows };
  for (const buffer of drawing.buffers) {
    if (buffer.bytes > 0) addArea(buffer, at(area, BUFFER_KINDS.indexOf(buffer.kind)), grid);
  }
  return Array.from({ length: columns * rows }, (_, cell) => {
    let best = { letter: ".", area: 1 - area.reduce((sum, kind) => sum + at(kind, cell), 0) };
    BUFFER_KINDS.forEach((kind, k) => {
      const covered = at(at(area, k), cell);
      if (covered > best.area + 1e-9) best = { letter: KIND_LETTERS[kind], area: covered };
    });
    return best.letter;
  });
}

interface Grid extends Drawing {
  readonly columns: number;
  readonly rows: number;
}

/** Adds the fraction of every cell that a buffer covers. */
function addArea(buffer: Buffer, area: Float64Array, { plan, bytes, steps, columns, rows }: Grid): void {
  const { from, to } = rangeOf(plan, buffer.id);
  const across = covered((buffer.lifespan.start * columns) / steps, (buffer.lifespan.end * columns) / steps, columns);
  const up = covered((from * rows) / bytes, (to * rows) / bytes, rows);
  for (const [row, dy] of up) {
    for (const [column, dx] of across) {
      const cell = row * columns + column;
      area[cell] = at(area, cell) + dx * dy;
    }
  }
}

/** Unit cells that [from, to) covers, with the covered fraction of each. */
function covered(from: number, to: number, count: number): readonly (readonly [number, number])[] {
  const cells: [number, number][] = [];
  for (let i = Math.floor(from); i < Math.min(count, Math.ceil(to)); i++) {
    cells.push([i, Math.min(to, i + 1) - Math.max(from, i)]);
  }
  return cells;
}
