/**
 * @file Byte sizes as people write them. Decimal units are powers of 1000 (KB, MB, GB), binary ones of 1024 (KiB, MiB,
 * GiB); case does not matter, nor does a space before the unit. Fractions of a byte are rounded down: a budget is never
 * larger than what was asked for.
 */

/** Bytes in memory that is not shared: `Uint8Array<ArrayBuffer>`, which TypeScript before 5.7 cannot read in published types. */
export type PlainBytes = Uint8Array & { readonly buffer: ArrayBuffer };

import { grouped, TidemarkError } from "./errors.ts";

const UNITS: readonly (readonly [string, number])[] = [
  ["B", 1],
  ["KB", 1e3],
  ["MB", 1e6],
  ["GB", 1e9],
  ["KiB", 2 ** 10],
  ["MiB", 2 ** 20],
  ["GiB", 2 ** 30],
];

/** A number with optional thousands separators and fraction, then letters. */
const SIZE = /^([0-9]+(?:[,_][0-9]{3})*(?:\.[0-9]+)?)\s*([A-Za-z]*)$/;

function fail(value: string, problem: string): never {
  throw new TidemarkError("InvalidArgument", `byte size ${value} ${problem}`, {
    help: `write a number of bytes, or a number with one of ${UNITS.map(([unit]) => unit).join(", ")}: 64MiB`,
  });
}

/** `"64MiB"` → 67108864; numbers and digits alone are bytes. */
export function parseBytes(size: string | number): number {
  if (typeof size === "number") {
    if (!Number.isFinite(size)) fail(String(size), "is not a finite number");
    if (size < 0) fail(String(size), "is negative");
    return Math.floor(size);
  }
  if (typeof size !== "string") fail(String(size), "is neither a number nor a text");
  const text = size.trim();
  const shown = JSON.stringify(size);
  if (text.startsWith("-")) fail(shown, "is negative");
  const match = SIZE.exec(text);
  if (!match) fail(shown, "is not a number followed by a unit");
  const [, digits = "", unit = ""] = match;
  const factor = unit === "" ? 1 : UNITS.find(([name]) => name.toLowerCase() === unit.toLowerCase())?.[1];
  if (factor === undefined) fail(shown, `has the unknown unit ${unit}`);
  const bytes = Math.floor(Number(digits.replace(/[,_]/g, "")) * factor);
  if (!Number.isSafeInteger(bytes)) fail(shown, `is more than ${grouped(Number.MAX_SAFE_INTEGER)} bytes`);
  return bytes;
}

/** `1536` → `1.5 KiB`: three significant digits at least, binary units; whole bytes below 1 KiB. */
export function formatBytes(bytes: number): string {
  const size = Math.abs(bytes);
  if (size < 1024) return `${bytes} B`;
  const [unit, factor] =
    UNITS.findLast(([name, f]) => name.includes("i") && Math.round((size / f) * 100) / 100 >= 1) ??
    (["KiB", 1024] as const);
  const scaled = size / factor;
  const digits = scaled < 10 ? 2 : Number(scaled < 100);
  return `${bytes < 0 ? "-" : ""}${Number(scaled.toFixed(digits))} ${unit}`;
}
