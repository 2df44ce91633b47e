/** @file Files named on the command line: what cannot be read or written is the user's to fix. */
import { readFileSync, writeFileSync } from "node:fs";
import { usageError } from "./command.ts";

/** What Node's codes mean; others are shown as they are. */
const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or folder",
  EISDIR: "it is a folder",
  ENOTDIR: "a part of the path is not a folder",
  EACCES: "it is not permitted",
};

function asUsage<T>(what: string, help: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    const { code } = error as Error & { readonly code?: string };
    if (code === undefined) throw error;
    throw usageError(`${what}: ${PROBLEMS[code] ?? code}`, help);
  }
}

/** The text of a file of some kind: `.csv`. */
export function readText(path: string, kind: string): string {
  const text = asUsage(`cannot read ${path}`, `give the path of a ${kind} file`, () => readFileSync(path, "utf8"));
  // some editors mark the order of bytes
  return text.replace(/^\uFEFF/, "");
}

/** The bytes of a file of some kind. */
export function readBytes(path: string, kind: string): Uint8Array {
  return asUsage(`cannot read ${path}`, `give the path of a ${kind} file`, () => readFileSync(path));
}

export function writeText(path: string, text: string): void {
  asUsage(`cannot write ${path}`, "give the path of a file in a folder that exists", () => writeFileSync(path, text));
}
