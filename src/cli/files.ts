/**
 * @file Files named on the command line: failures to read or write are usage errors. Inputs are read completely, so
 * they must be regular files that fit in memory. Devices and pipes may never end, or never begin, and are refused.
 */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync, writeFileSync } from "node:fs";
import { formatBytes } from "../base/bytes.ts";
import { usageError } from "./command.ts";

/** Far larger than any intended input; much larger files would not fit the engine's heap once parsed. */
const LARGEST_FILE = 64 * 2 ** 20;
/** Of one call to the system. */
const PIECE = 2 ** 20;

/** Descriptions of Node's error codes; others are shown unchanged. */
const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or folder",
  EISDIR: "it is a folder",
  ENOTDIR: "a part of the path is not a folder",
  EACCES: "permission denied",
  EPERM: "permission denied",
  ELOOP: "too many levels of links",
  ENAMETOOLONG: "the name is too long",
  ENOSPC: "no space is left",
  EDQUOT: "no space is left to this user",
  EFBIG: "files may not be that large",
  EROFS: "nothing can be written there",
  EAGAIN: "it has nothing to read",
  ENXIO: "nothing is connected to it",
  ERR_INVALID_ARG_VALUE: "not a valid path",
};

function asUsage<T>(what: string, help: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    const { code } = error as Error & { readonly code?: string };
    if (code === undefined || code === "UsageError") throw error;
    throw usageError(`${what}: ${PROBLEMS[code] ?? code}`, help);
  }
}

/** Why a path cannot be read as a file, or null. */
function problemOf(stats: Stats, largest: number): string | null {
  if (stats.isDirectory()) return "it is a folder";
  if (stats.isFIFO()) return "it is a pipe, which may never end; write it to a file first";
  if (!stats.isFile()) return "it is a device, not a file";
  if (stats.size <= largest) return null;
  return `it has ${formatBytes(stats.size)}, and at most ${formatBytes(largest)} are read`;
}

/** Throws unless a path is a regular file of allowed size. */
export function requireFile(path: string, kind: string): void {
  const [what, help] = [`cannot read ${path}`, `give the path of a ${kind} file`];
  const problem = asUsage(what, help, () => problemOf(statSync(path), LARGEST_FILE));
  if (problem !== null) throw usageError(`${what}: ${problem}`, help);
}

/** The bytes of an open file up to its end; null if it is too large. */
function readToEnd(file: number, largest: number): Buffer | null {
  const pieces: Buffer[] = [];
  let total = 0;
  for (;;) {
    const piece = Buffer.allocUnsafe(PIECE);
    const got = readSync(file, piece, 0, PIECE, null);
    if (got === 0) return Buffer.concat(pieces, total);
    total += got;
    // a file that grows while it is read, or that reports no size
    if (total > largest) return null;
    pieces.push(piece.subarray(0, got));
  }
}

/** The bytes of a file of some kind. */
export function readBytes(path: string, kind: string, largest: number = LARGEST_FILE): Uint8Array {
  const [what, help] = [`cannot read ${path}`, `give the path of a ${kind} file`];
  return asUsage(what, help, () => {
    // opening a pipe without a writer would block forever
    const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const problem = problemOf(fstatSync(file), largest);
      if (problem !== null) throw usageError(`${what}: ${problem}`, help);
      const bytes = readToEnd(file, largest);
      if (bytes) return bytes;
      throw usageError(`${what}: it does not end within ${formatBytes(largest)}`, help);
    } finally {
      closeSync(file);
    }
  });
}

/** The text of a file of some kind: `.csv`. */
export function readText(path: string, kind: string): string {
  const bytes = readBytes(path, kind);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  // some editors write a byte-order mark
  return text.replace(/^\uFEFF/, "");
}

export function writeText(path: string, text: string): void {
  asUsage(`cannot write ${path}`, "give the path of a file in a folder that exists", () => writeFileSync(path, text));
}
