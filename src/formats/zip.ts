/**
 * @file Zip archives as `.npz` and `.pt2` files are: a directory at the end names the entries before it.
 *
 *   ┌───────────┬─────────┬───────────┬─────────┬───────────────────┬──────────────────┐
 *   │ header    │ bytes   │ header    │ bytes   │ directory         │ end: where it is │
 *   └───────────┴─────────┴───────────┴─────────┴───────────────────┴──────────────────┘
 *
 * Entries are stored or deflated; encrypted ones, several disks and names that leave the archive are refused. An entry is read when it
 * is asked for, and only as long as the directory says: the sum of all lengths has a limit, since a few kilobytes of zeros may
 * announce terabytes.
 */
import { grouped } from "../base/errors.ts";
import { crc32 } from "./crc32.ts";
import { inflate } from "./inflate.ts";
import { badArchive } from "./zip-error.ts";

export interface ZipEntry {
  readonly name: string;
  /** Uncompressed. */
  readonly bytes: number;
  /** Its contents, checked. */
  read(): Uint8Array;
}

const END = 0x06054b50;
const END64 = 0x06064b50;
const LOCATOR64 = 0x07064b50;
const DIRECTORY = 0x02014b50;
const LOCAL = 0x04034b50;
const END_BYTES = 22;
const DIRECTORY_BYTES = 46;
const LOCAL_BYTES = 30;
const MOST_COMMENT = 0xffff;
/** Deflate reaches about a thousandth of one entry; what announces more than this is made to exhaust memory. */
const MOST_RATIO = 1100;
/** All deflated entries together: this much, or so many times the file. */
const MOST_INFLATED = 2 ** 28;
const MOST_WHOLE_RATIO = 20;
const MARK_32 = 0xffffffff;

interface Directory {
  readonly start: number;
  readonly count: number;
}

/** The entries of an archive by their names. */
export function readZip(file: Uint8Array): ReadonlyMap<string, ZipEntry> {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const { start, count } = directoryOf(file, view);
  const entries = new Map<string, ZipEntry>();
  let at = start;
  let total = 0;
  for (let i = 0; i < count; i++) {
    if (at + DIRECTORY_BYTES > file.length || view.getUint32(at, true) !== DIRECTORY) {
      throw badArchive(`entry ${i + 1} of ${grouped(count)} of the archive's directory is damaged`);
    }
    const entry = entryAt(file, view, at);
    if (entries.has(entry.name)) throw badArchive(`the archive has ${entry.name} twice`);
    entries.set(entry.name, entry);
    total += entry.bytes;
    if (total > Math.max(MOST_INFLATED, MOST_WHOLE_RATIO * file.length)) {
      throw badArchive(`the archive would have more than ${grouped(total)} bytes from ${grouped(file.length)}`);
    }
    at +=
      DIRECTORY_BYTES + view.getUint16(at + 28, true) + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
  return entries;
}

function directoryOf(file: Uint8Array, view: DataView): Directory {
  const first = Math.max(0, file.length - END_BYTES - MOST_COMMENT);
  let end = file.length - END_BYTES;
  while (end >= first && view.getUint32(end, true) !== END) end--;
  if (end < first || end < 0) throw badArchive("the end of the archive is not there: the file was cut off or is none");
  const count = view.getUint16(end + 10, true);
  const start = view.getUint32(end + 16, true);
  const isLong = count === 0xffff || start === MARK_32;
  const found = isLong ? longDirectory(file, view, end) : { start, count };
  if (found.start + found.count * DIRECTORY_BYTES > end) {
    throw badArchive(`the archive's directory has ${grouped(found.count)} entries at byte ${grouped(found.start)}`);
  }
  return found;
}

function longDirectory(file: Uint8Array, view: DataView, end: number): Directory {
  const locator = end - 20;
  if (locator < 0 || view.getUint32(locator, true) !== LOCATOR64) throw badArchive("the archive's end is damaged");
  const at = wholeAt(view, locator + 8);
  if (at + 56 > file.length || view.getUint32(at, true) !== END64) throw badArchive("the archive's end is damaged");
  return { count: wholeAt(view, at + 32), start: wholeAt(view, at + 48) };
}

function wholeAt(view: DataView, at: number): number {
  const value = at + 8 <= view.byteLength ? Number(view.getBigUint64(at, true)) : Number.NaN;
  if (Number.isSafeInteger(value)) return value;
  throw badArchive("the archive has a length that cannot be");
}

function entryAt(file: Uint8Array, view: DataView, at: number): ZipEntry {
  const [flags, method, crc] = [
    view.getUint16(at + 8, true),
    view.getUint16(at + 10, true),
    view.getUint32(at + 16, true),
  ];
  const [nameBytes, extraBytes] = [view.getUint16(at + 28, true), view.getUint16(at + 30, true)];
  const end = at + DIRECTORY_BYTES + nameBytes + extraBytes;
  if (end > file.length) throw badArchive("the archive's directory is cut off");
  const name = nameOf(file.subarray(at + DIRECTORY_BYTES, at + DIRECTORY_BYTES + nameBytes));
  const sizes = [24, 20, 42].map((offset) => view.getUint32(at + offset, true));
  const [bytes, packed, local] = longSizes(view, sizes, end - extraBytes, end) as [number, number, number];
  if (flags & 1) throw badArchive(`${name} is encrypted`, "write the archive without a password");
  if (method !== 0 && method !== 8)
    throw badArchive(`${name} is compressed by method ${method}`, "store or deflate it");
  if (method === 0 && bytes !== packed) throw badArchive(`${name} is stored with two different lengths`);
  if (bytes > packed * MOST_RATIO + 1024) {
    throw badArchive(`${name} would have ${grouped(bytes)} bytes from ${grouped(packed)}, more than deflate can give`);
  }
  if (local + LOCAL_BYTES + packed > file.length) throw badArchive(`${name} reaches beyond the end of the file`);
  return { name, bytes, read: () => contents(file, { name, bytes, packed, local, method, crc }) };
}

/** Lengths of 64 bits stand in an extra field, in the order of those that are marked. */
function longSizes(view: DataView, sizes: readonly number[], from: number, end: number): readonly number[] {
  if (!sizes.includes(MARK_32)) return sizes;
  for (let at = from; at + 4 <= end; at += 4 + view.getUint16(at + 2, true)) {
    if (view.getUint16(at, true) !== 1) continue;
    let next = at + 4;
    return sizes.map((size) => {
      if (size !== MARK_32) return size;
      next += 8;
      return wholeAt(view, next - 8);
    });
  }
  throw badArchive("the archive has an entry without its length");
}

function nameOf(bytes: Uint8Array): string {
  let name: string;
  try {
    name = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw badArchive("the archive has a name that is no text");
  }
  const parts = name.split(/[/\\]/);
  if (name === "" || parts.includes("..") || parts[0] === "" || /^[A-Za-z]:|\0/.test(name)) {
    throw badArchive(`the archive has an entry ${JSON.stringify(name)}, which leads out of it`);
  }
  return name;
}

interface Packed {
  readonly name: string;
  readonly bytes: number;
  readonly packed: number;
  readonly local: number;
  readonly method: number;
  readonly crc: number;
}

function contents(file: Uint8Array, { name, bytes, packed, local, method, crc }: Packed): Uint8Array {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (view.getUint32(local, true) !== LOCAL) throw badArchive(`${name} is not where the archive's directory says`);
  const start = local + LOCAL_BYTES + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
  if (start + packed > file.length) throw badArchive(`${name} reaches beyond the end of the file`);
  const raw = file.subarray(start, start + packed);
  const all = method === 0 ? raw : inflate(raw, bytes);
  if (crc32(all) !== crc) throw badArchive(`${name} is damaged: its checksum is another`);
  return all;
}

/** What becomes of a name and its bytes in an archive. */
export interface ZipPart {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** An archive of stored entries, without dates: the same parts always give the same bytes. */
export function writeZip(parts: readonly ZipPart[]): Uint8Array {
  const named = parts.map(({ name, bytes }) => ({ name: new TextEncoder().encode(name), bytes, crc: crc32(bytes) }));
  const local = named.reduce((sum, part) => sum + LOCAL_BYTES + part.name.length + part.bytes.length, 0);
  const directory = named.reduce((sum, part) => sum + DIRECTORY_BYTES + part.name.length, 0);
  if (local + directory >= MARK_32 || parts.length >= 0xffff) {
    throw badArchive(`${grouped(local)} bytes are more than an archive of 32-bit lengths holds`, "use safetensors");
  }
  const out = new Uint8Array(local + directory + END_BYTES);
  const view = new DataView(out.buffer);
  let [at, entry] = [0, local];
  for (const { name, bytes, crc } of named) {
    view.setUint32(at, LOCAL, true);
    view.setUint32(entry, DIRECTORY, true);
    writeLengths(view, at + 4, name.length, { bytes: bytes.length, crc });
    view.setUint16(entry + 4, 20, true);
    writeLengths(view, entry + 6, name.length, { bytes: bytes.length, crc });
    view.setUint32(entry + 42, at, true);
    out.set(name, at + LOCAL_BYTES);
    out.set(bytes, at + LOCAL_BYTES + name.length);
    out.set(name, entry + DIRECTORY_BYTES);
    at += LOCAL_BYTES + name.length + bytes.length;
    entry += DIRECTORY_BYTES + name.length;
  }
  view.setUint32(entry, END, true);
  view.setUint16(entry + 8, parts.length, true);
  view.setUint16(entry + 10, parts.length, true);
  view.setUint32(entry + 12, directory, true);
  view.setUint32(entry + 16, local, true);
  return out;
}

/** The fields that the header of an entry and its line in the directory have in common: version, flags (names are UTF-8), lengths. */
function writeLengths(
  view: DataView,
  at: number,
  name: number,
  of: { readonly bytes: number; readonly crc: number },
): void {
  view.setUint16(at, 20, true);
  view.setUint16(at + 2, 0x0800, true);
  // the first of January 1980, the earliest date of the format
  view.setUint16(at + 8, 0x21, true);
  view.setUint32(at + 10, of.crc, true);
  view.setUint32(at + 14, of.bytes, true);
  view.setUint32(at + 18, of.bytes, true);
  view.setUint16(at + 22, name, true);
}
