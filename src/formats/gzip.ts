/**
 * @file One gzip member as what it was: a header with optional fields, deflated bytes, their checksum and length.
 *
 *   1f 8b 08 flags · time · … │ extra │ name │ comment │ header crc │ deflated │ crc-32 │ length
 */
import { grouped } from "../base/errors.ts";
import { crc32 } from "./crc32.ts";
import { inflate } from "./inflate.ts";
import { badArchive } from "./zip-error.ts";

const HEADER = 10;
const TRAILER = 8;
/** No deflated byte becomes more. */
const MOST_RATIO = 1100;
const FLAGS = { crc: 2, extra: 4, name: 8, comment: 16 } as const;
const HELP = "the file is damaged or not compressed by gzip; fetch or write it again";

export const isGzip = (bytes: Uint8Array): boolean => bytes[0] === 0x1f && bytes[1] === 0x8b;

/** The bytes of a gzip file; `most` is what they may become. */
export function gunzip(bytes: Uint8Array, most: number): Uint8Array {
  if (!isGzip(bytes) || bytes[2] !== 8 || bytes.length < HEADER + TRAILER) throw badArchive("no gzip file", HELP);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const flags = bytes[3] as number;
  let at = HEADER;
  if (flags & FLAGS.extra) at += at + 2 <= bytes.length ? 2 + view.getUint16(at, true) : 2;
  for (const flag of [FLAGS.name, FLAGS.comment]) {
    if ((flags & flag) === 0) continue;
    while (at < bytes.length && bytes[at] !== 0) at++;
    at++;
  }
  if (flags & FLAGS.crc) at += 2;
  const packed = bytes.length - TRAILER - at;
  if (packed < 0) throw badArchive("the header of a gzip file has no end", HELP);
  const length = view.getUint32(bytes.length - 4, true);
  if (length > most || length > packed * MOST_RATIO + 1024) {
    const summary = `a gzip file of ${grouped(bytes.length)} bytes would become ${grouped(length)}`;
    throw badArchive(summary, `at most ${grouped(most)} are unpacked; unpack it yourself`);
  }
  const all = inflate(bytes.subarray(at, at + packed), length);
  if (crc32(all) !== view.getUint32(bytes.length - TRAILER, true)) {
    throw badArchive("the checksum of a gzip file is another one", HELP);
  }
  return all;
}
