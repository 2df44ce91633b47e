/**
 * @file MiniMalloc's file format: one buffer per line, `id,lower,upper,size` and `offset` once placed. Lifespans are
 * half-open. Columns are found by the header, in any order; others are ignored.
 *
 *     id,lower,upper,size,offset
 *     b1,0,3,4,8
 *
 * Where there are several memory spaces, a column `space` names each buffer's; such a table is read back when all of its
 * buffers are in one.
 */
import { grouped, TidemarkError } from "../base/errors.ts";
import type { Buffer, Problem, ProgramBuffer, ProgramProblem } from "./problem.ts";
import { listed } from "./table.ts";

/** A problem as a file has it. */
export interface CsvProblem {
  readonly problem: Problem;
  /** The ids of the file, by buffer. */
  readonly names: readonly string[];
  /** Given offsets, if the file has that column. */
  readonly offsets: readonly number[] | null;
}

const REQUIRED = ["id", "lower", "upper", "size"] as const;

/** Reports no more than this many faulty lines, and no more than so much of a line. */
const SHOWN = 20;
const LONGEST = 200;

/**
 * Reads a problem; faulty lines are reported together.
 *
 * @throws ParseError with the lines that are faulty
 *
 * @example
 * import { parseCsv } from "tidemark/plan";
 *
 * const text = "id,lower,upper,size\na,0,2,64\nb,1,3,64";
 * const { problem } = parseCsv(text);
 * console.log(problem.buffers.map(({ bytes }) => bytes)); // → [64, 64]
 */
export function parseCsv(text: string, capacity: number = Number.POSITIVE_INFINITY): CsvProblem {
  const lines = text.split(/\r?\n/);
  const header = (lines[0] ?? "").split(",").map((cell) => cell.trim());
  const missing = REQUIRED.filter((column) => !header.includes(column));
  if (missing.length > 0) {
    throw new TidemarkError(
      "ParseError",
      `csv: no column ${missing.join(", ")} in the header "${(lines[0] ?? "").slice(0, LONGEST)}"`,
      {
        help: "the first line names the columns: id,lower,upper,size and optionally offset",
      },
    );
  }
  const placed = header.includes("offset");
  const buffers: Buffer[] = [];
  const names: string[] = [];
  const offsets: number[] = [];
  const spaceNames: string[] = [];
  const faults: string[] = [];
  const lineOf = new Map<string, number>();
  lines.slice(1).forEach((line, i) => {
    if (line.trim() === "") return;
    const cells = line.split(",").map((cell) => cell.trim());
    const cell = (column: string): string => cells[header.indexOf(column)] ?? "";
    const integer = (column: string): number => (/^\d+$/.test(cell(column)) ? Number(cell(column)) : Number.NaN);
    const [start, end, bytes] = [integer("lower"), integer("upper"), integer("size")];
    const offset = placed ? integer("offset") : 0;
    if (![start, end, bytes, offset].every(Number.isSafeInteger))
      faults.push(`line ${i + 2}: not a whole number in "${line.slice(0, LONGEST)}"`);
    else if (start >= end) faults.push(`line ${i + 2}: lower ${start} is not below upper ${end}`);
    const earlierLine = lineOf.get(cell("id"));
    if (earlierLine !== undefined)
      faults.push(`line ${i + 2}: the id ${cell("id").slice(0, LONGEST)} is already used in line ${earlierLine}`);
    lineOf.set(cell("id"), earlierLine ?? i + 2);
    const id = buffers.length;
    buffers.push({ id, values: [], lifespan: { start, end }, bytes, align: 1, kind: "activation" });
    names.push(cell("id"));
    spaceNames.push(cell("space").slice(0, LONGEST));
    offsets.push(offset);
  });
  if (faults.length > 0) {
    const help = "a line is one buffer: a unique id, lower < upper and size in whole numbers";
    const more = faults.length > SHOWN ? [`and ${grouped(faults.length - SHOWN)} more`] : [];
    throw new TidemarkError("ParseError", `csv: ${[...faults.slice(0, SHOWN), ...more].join("\n  ")}`, { help });
  }
  const spaces = new Set(spaceNames);
  if (spaces.size > 1) {
    const summary = `csv: buffers of ${grouped(spaces.size)} memory spaces: ${listed([...spaces], SHOWN)}`;
    throw new TidemarkError("ParseError", summary, { help: "place those of one space at a time" });
  }
  const total = buffers.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total > Number.MAX_SAFE_INTEGER) {
    const summary = `csv: all sizes together are ${total}, and offsets are exact up to ${Number.MAX_SAFE_INTEGER}`;
    throw new TidemarkError("ParseError", summary, { help: "give sizes in a larger unit" });
  }
  return { problem: { buffers, capacity, alignment: 1 }, names, offsets: placed ? offsets : null };
}

/**
 * Writes a problem, with offsets if there are any. Names default to the buffers' ids.
 *
 * @example
 * import { parseCsv, printCsv } from "tidemark/plan";
 *
 * const text = "id,lower,upper,size\na,0,2,64\nb,1,3,64";
 * const { problem } = parseCsv(text);
 * console.log(printCsv(problem).trim().split("\n")); // → [id,lower,upper,size, 0,0,2,64, 1,1,3,64]
 */
export function printCsv(
  problem: Problem | ProgramProblem,
  offsets?: readonly number[],
  names?: readonly string[],
): string {
  const spaces = "spaces" in problem && problem.spaces.length > 1 ? problem.spaces : null;
  const spaceName = (buffer: Buffer): string => spaces?.[(buffer as ProgramBuffer).space]?.name ?? "";
  const rows = problem.buffers.map((buffer) => {
    const { id, lifespan, bytes } = buffer;
    const cells = [names?.[id] ?? `${id}`, lifespan.start, lifespan.end, bytes, ...(offsets ? [offsets[id] ?? 0] : [])];
    return [...cells, ...(spaces ? [spaceName(buffer)] : [])].join(",");
  });
  const header = [...REQUIRED, ...(offsets ? ["offset"] : []), ...(spaces ? ["space"] : [])];
  return `${[header.join(","), ...rows].join("\n")}\n`;
}
