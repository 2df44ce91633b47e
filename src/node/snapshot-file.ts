/**
 * @file The file format of a snapshot, and its errors.
 *
 * ```
 *    0  "TIDEMARK"          8  version, u32        12  kind, u32
 *   16  step, f64          24  bytes that follow, f64
 *   32  fingerprint of the run, 32 bytes
 *   64  SHA-256 of bytes 0 … 63 and of the contents
 *   96  the contents
 * ```
 *
 * Numbers are little-endian. The step is in the file as well as in its name, so that a renamed file is detected.
 */
import { createHash } from "node:crypto";
import { grouped, TidemarkError } from "../base/errors.ts";

const MAGIC = new TextEncoder().encode("TIDEMARK");
const VERSION = 1;
export const HEADER_BYTES = 96;
const FINGERPRINT_AT = 32;
const DIGEST_AT = 64;

/** A state before a step, or cotangents with the steps from this one on reversed. */
export const KINDS = ["state", "adjoint"] as const;
export type Kind = (typeof KINDS)[number];

/** Kind and step of a file. */
export interface Label {
  readonly kind: Kind;
  readonly step: number;
}

/** Which of several files that hold one snapshot together: number 2 of 4. */
export interface Part {
  readonly number: number;
  readonly of: number;
}

const NAME = /^(state|adjoint)-(\d+)\.tide$/;
const PART_NAME = /^state-(\d+)\.(\d+)-of-(\d+)\.tide$/;

export const fileName = ({ kind, step }: Label, part?: Part): string =>
  part ? `${kind}-${step}.${part.number}-of-${part.of}.tide` : `${kind}-${step}.tide`;

/** The step of a file that holds a part of a state, and which part it is. */
export function partOf(name: string): (Part & { readonly step: number }) | null {
  const match = PART_NAME.exec(name);
  return match ? { step: Number(match[1]), number: Number(match[2]), of: Number(match[3]) } : null;
}

export function labelOf(name: string): Label | null {
  const match = NAME.exec(name);
  return match ? { kind: match[1] as Kind, step: Number(match[2]) } : null;
}

export function digestOf(...parts: readonly Uint8Array[]): Uint8Array {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, i) => byte === b[i]);

/** Writes the header of a file whose contents are already in the buffer. */
export function seal(file: Uint8Array, { kind, step }: Label, fingerprint: Uint8Array): void {
  const view = new DataView(file.buffer, file.byteOffset, HEADER_BYTES);
  file.set(MAGIC);
  view.setUint32(8, VERSION, true);
  view.setUint32(12, KINDS.indexOf(kind), true);
  view.setFloat64(16, step, true);
  view.setFloat64(24, file.length - HEADER_BYTES, true);
  file.set(fingerprint, FINGERPRINT_AT);
  file.set(digestOf(file.subarray(0, DIGEST_AT), file.subarray(HEADER_BYTES)), DIGEST_AT);
}

/** The checksum that a sealed file has of itself. */
export const checksumIn = (file: Uint8Array): string =>
  Buffer.from(file.subarray(DIGEST_AT, HEADER_BYTES)).toString("hex");

/** What is wrong with a file of `size` bytes, of which those that fit are in `file`; null if it is valid. */
export function problemOf(file: Uint8Array, size: number, label: Label, fingerprint: Uint8Array): string | null {
  if (size !== file.length) return `it has ${grouped(size)} bytes and should have ${grouped(file.length)}`;
  const view = new DataView(file.buffer, file.byteOffset, HEADER_BYTES);
  if (!sameBytes(file.subarray(0, MAGIC.length), MAGIC)) return "it does not begin like a snapshot";
  if (view.getUint32(8, true) !== VERSION) return `it is of version ${view.getUint32(8, true)}, not ${VERSION}`;
  const digest = digestOf(file.subarray(0, DIGEST_AT), file.subarray(HEADER_BYTES));
  if (!sameBytes(file.subarray(DIGEST_AT, HEADER_BYTES), digest)) return "its contents do not match its checksum";
  if (!sameBytes(file.subarray(FINGERPRINT_AT, DIGEST_AT), fingerprint)) return "it belongs to another run";
  const [kind, step] = [KINDS[view.getUint32(12, true)], view.getFloat64(16, true)];
  return kind === label.kind && step === label.step ? null : `it holds the ${kind} of step ${step}`;
}

/** Descriptions and advice for Node's error codes. */
const REASONS: Readonly<Record<string, readonly [string, string]>> = {
  ENOSPC: ["the disk is full", "free some space"],
  EDQUOT: ["the quota is used up", "free some space"],
  EFBIG: ["the file is larger than is allowed", "raise the limit on the size of files"],
  EACCES: ["permission denied", "make the folder writable"],
  EROFS: ["the file system is read-only", "give a writable folder"],
  ENOENT: ["it no longer exists", "leave the files of a run alone while it runs"],
  ENOTDIR: ["a part of the path is not a folder", "give the path of a folder"],
  EEXIST: ["a part of the path is not a folder", "give the path of a folder"],
  ELOOP: ["it is a link", "give a folder that no one else can write to"],
  ENXIO: ["it is a pipe", "give a folder that no one else can write to"],
  EIO: ["the device reports an error", "check the disk"],
};

/** A file-system error as a StorageError; any other error is unchanged. */
export function storageError(doing: "write" | "read", path: string, error: unknown, after: string): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof TidemarkError || code === undefined) return error;
  const [what, advice] = REASONS[code] ?? [code, "check that the folder exists and is writable"];
  return new TidemarkError("StorageError", `cannot ${doing} ${path}: ${what}`, { help: `${advice}; ${after}` });
}

export function damaged(path: string, problem: string): TidemarkError {
  return new TidemarkError("StorageError", `${path} is damaged: ${problem}`, {
    help: "remove the file: its content is recomputed from the remaining files",
  });
}
