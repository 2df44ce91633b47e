/**
 * @file A text as a field of an address: compressed where the browser can do that, in letters that need no escape. The
 * first letter says how: `z` deflated, `t` as it is. Reading one gives the text or null, and never more than it should.
 */

/** Longer texts are neither put into addresses nor read from them. */
export const LONGEST_TEXT = 100_000;

const base64url = (bytes: Uint8Array): string =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");

const bytesOf = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));

/** The bytes of a stream; null if there are more than a limit. */
async function collected(stream: ReadableStream<Uint8Array>, most: number): Promise<Uint8Array<ArrayBuffer> | null> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for (const reader = stream.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) {
      await reader.cancel();
      return null;
    }
    parts.push(value);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

const streamOf = (bytes: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array<ArrayBuffer>> =>
  new Blob([bytes]).stream();

/** Empty if the text is too long for an address. */
export async function packedText(text: string): Promise<string> {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length > LONGEST_TEXT) return "";
  if (typeof CompressionStream === "undefined") return `t${base64url(bytes)}`;
  const deflated = streamOf(bytes).pipeThrough(new CompressionStream("deflate-raw"));
  const packed = await collected(deflated, Number.POSITIVE_INFINITY);
  return packed ? `z${base64url(packed)}` : "";
}

/** Null if it is damaged, too long, or compressed in a way that this browser does not read. */
export async function unpackedText(field: string): Promise<string | null> {
  try {
    const bytes = bytesOf(field.slice(1));
    const decode = (all: Uint8Array): string => new TextDecoder("utf-8", { fatal: true }).decode(all);
    if (field.startsWith("t") && bytes.length <= LONGEST_TEXT) return decode(bytes);
    if (!field.startsWith("z") || typeof DecompressionStream === "undefined") return null;
    const inflated = streamOf(bytes).pipeThrough(new DecompressionStream("deflate-raw"));
    const all = await collected(inflated, LONGEST_TEXT);
    return all && decode(all);
  } catch {
    return null;
  }
}
