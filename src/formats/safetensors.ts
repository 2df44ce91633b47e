/**
 * @file The safetensors file format: names, types, shapes and bytes of tensors, with every check that the format asks for.
 *
 *   8 bytes        N bytes                                     the rest
 *   ┌────────────┬───────────────────────────────────────────┬───────────────────────────┐
 *   │ N (u64 LE) │ {"w":{"dtype":"F32","shape":[2],…}, …}    │ tensors, end to end       │
 *   └────────────┴───────────────────────────────────────────┴───────────────────────────┘
 *
 * `data_offsets` count from the start of the third part. Tensors fill it without holes and without overlaps. A header that
 * breaks a rule is refused as a whole; nothing is read from such a file.
 */
import { grouped, TidemarkError } from "../base/errors.ts";

/** Bits of one element of each type that a file may hold. */
const BITS = {
  BOOL: 8,
  U8: 8,
  I8: 8,
  U16: 16,
  I16: 16,
  F16: 16,
  BF16: 16,
  U32: 32,
  I32: 32,
  F32: 32,
  U64: 64,
  I64: 64,
  F64: 64,
  C64: 64,
  F8_E4M3: 8,
  F8_E5M2: 8,
  F8_E8M0: 8,
  F8_E4M3FNUZ: 8,
  F8_E5M2FNUZ: 8,
  F6_E2M3: 6,
  F6_E3M2: 6,
  F4: 4,
} as const;

export type FileType = keyof typeof BITS;

export interface FileTensor {
  readonly name: string;
  readonly type: FileType;
  readonly shape: readonly number[];
  /** First byte, from the start of the file's third part. */
  readonly begin: number;
  readonly end: number;
}

export interface FileHeader {
  /** In the order of their bytes. */
  readonly tensors: readonly FileTensor[];
  readonly metadata: Readonly<Record<string, string>>;
}

/** Bytes before the header. */
export const PREFIX_BYTES = 8;
/** The format's limit on the header. */
const MOST_HEADER_BYTES = 100_000_000;
const METADATA = "__metadata__";
/** Tensors start at multiples of this, so that hosts can view them in place. */
const PADDING = 8;

export function badFile(summary: string, help?: string): TidemarkError {
  return new TidemarkError("InvalidFile", summary, {
    help: help ?? "the file is damaged or not a safetensors file; fetch or write it again",
  });
}

/** N of the first bytes of a file. `fileBytes` is undefined where the length of the file is not known yet. */
export function headerBytes(prefix: Uint8Array, fileBytes: number | undefined): number {
  if (prefix.length < PREFIX_BYTES) {
    throw badFile(`the file has ${prefix.length} bytes; a safetensors file has at least ${PREFIX_BYTES}`);
  }
  const length = new DataView(prefix.buffer, prefix.byteOffset, PREFIX_BYTES).getBigUint64(0, true);
  if (length > MOST_HEADER_BYTES) {
    throw badFile(
      `the header would have ${grouped(Number(length))} bytes; at most ${grouped(MOST_HEADER_BYTES)} are allowed`,
    );
  }
  if (fileBytes !== undefined && Number(length) > fileBytes - PREFIX_BYTES) {
    throw badFile(
      `the header has ${grouped(Number(length))} bytes, the file only ${grouped(fileBytes)}: it was cut off`,
    );
  }
  return Number(length);
}

/** The header's contents. `dataBytes` is the length of the third part; undefined where it is not known yet. */
export function parseHeader(header: Uint8Array, dataBytes: number | undefined): FileHeader {
  const entries = Object.entries(parseJson(header));
  const metadata = entries.find(([name]) => name === METADATA)?.[1] ?? {};
  const tensors = entries.filter(([name]) => name !== METADATA).map(([name, value]) => entryOf(name, value));
  tensors.sort((a, b) => a.begin - b.begin || a.end - b.end || (a.name < b.name ? -1 : 1));
  let next = 0;
  for (const { name, begin, end } of tensors) {
    if (begin !== next) {
      const what = begin > next ? "leaves a hole" : "overlaps another tensor";
      throw badFile(
        `${name} ${what}: it starts at byte ${grouped(begin)}, the bytes before it end at ${grouped(next)}`,
      );
    }
    next = end;
  }
  if (dataBytes !== undefined && next !== dataBytes) {
    const what = dataBytes < next ? "it was cut off" : "there are bytes after the last tensor";
    throw badFile(`tensors take ${grouped(next)} bytes, the file has ${grouped(dataBytes)} for them: ${what}`);
  }
  return { tensors, metadata: metadataOf(metadata) };
}

function parseJson(header: Uint8Array): Record<string, unknown> {
  if (header[0] !== 0x7b) throw badFile("the header does not begin with {");
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(header);
  } catch {
    throw badFile("the header is not UTF-8 text");
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw badFile(`the header is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  const seen = new Set<string>();
  for (const key of topLevelKeys(text)) {
    if (seen.has(key)) throw badFile(`the header has ${JSON.stringify(key)} twice`);
    seen.add(key);
  }
  return json as Record<string, unknown>;
}

/** The keys of the outermost object of JSON text that is known to be well formed, repeated ones too. */
function* topLevelKeys(text: string): Generator<string> {
  let depth = 0;
  let afterBrace = false;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],]/g)) {
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
    else if (token !== "," && depth === 1 && afterBrace) yield JSON.parse(token) as string;
    afterBrace = depth === 1 && (token === "{" || token === ",");
  }
}

function metadataOf(value: unknown): Readonly<Record<string, string>> {
  const isText = (entry: unknown): entry is string => typeof entry === "string";
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    if (Object.values(value).every(isText)) return value as Record<string, string>;
  }
  throw badFile(`${METADATA} must map texts to texts`);
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function entryOf(name: string, value: unknown): FileTensor {
  const { dtype, shape, data_offsets: offsets } = (value ?? {}) as Record<string, unknown>;
  if (typeof dtype !== "string" || !Object.hasOwn(BITS, dtype)) {
    throw badFile(`${name} has the type ${JSON.stringify(dtype) ?? "undefined"}, which the format does not have`);
  }
  if (!Array.isArray(shape) || !shape.every(isCount)) {
    throw badFile(`${name} has the shape ${JSON.stringify(shape) ?? "undefined"}, not a list of whole numbers`);
  }
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount)) {
    throw badFile(`${name} has the data_offsets ${JSON.stringify(offsets) ?? "undefined"}, not [begin, end]`);
  }
  const [begin, end] = offsets as [number, number];
  if (end < begin) throw badFile(`${name} ends at byte ${grouped(end)}, before it begins (${grouped(begin)})`);
  const type = dtype as FileType;
  const bytes = tensorBytes(name, type, shape);
  if (bytes !== end - begin) {
    throw badFile(
      `${name}: ${type}[${shape.join(",")}] has ${grouped(bytes)} bytes, its data_offsets ${grouped(end - begin)}`,
    );
  }
  return { name, type, shape, begin, end };
}

function tensorBytes(name: string, type: FileType, shape: readonly number[]): number {
  const bits = shape.reduce((product, extent) => product * extent, BITS[type]);
  if (!Number.isSafeInteger(bits))
    throw badFile(`${name}: ${type}[${shape.join(",")}] has more bytes than can be counted`);
  if (bits % 8 !== 0) throw badFile(`${name}: ${type}[${shape.join(",")}] does not fill whole bytes`);
  return bits / 8;
}

/** What a tensor is in a file that is to be written. */
export type Unplaced = Pick<FileTensor, "name" | "type" | "shape">;

/**
 * The first two parts of a file with these tensors, and where each goes: widest types first, then by name, so that the same
 * tensors always give the same file.
 */
export function layOut(
  unplaced: readonly Unplaced[],
  metadata: Readonly<Record<string, string>>,
): { readonly head: Uint8Array; readonly tensors: readonly FileTensor[] } {
  const sorted = [...unplaced].sort((a, b) => BITS[b.type] - BITS[a.type] || (a.name < b.name ? -1 : 1));
  let next = 0;
  const tensors = sorted.map(({ name, type, shape }) => {
    const begin = next;
    next += tensorBytes(name, type, shape);
    return { name, type, shape, begin, end: next };
  });
  const entries = tensors.map(({ name, type, shape, begin, end }) => [
    name,
    { dtype: type, shape, data_offsets: [begin, end] },
  ]);
  const all = Object.keys(metadata).length > 0 ? [[METADATA, metadata], ...entries] : entries;
  const json = new TextEncoder().encode(JSON.stringify(Object.fromEntries(all as [string, unknown][])));
  const length = Math.ceil(json.length / PADDING) * PADDING;
  const head = new Uint8Array(PREFIX_BYTES + length).fill(0x20);
  new DataView(head.buffer).setBigUint64(0, BigInt(length), true);
  head.set(json, PREFIX_BYTES);
  return { head, tensors };
}

/** Names that stand for something else in a header. */
export const isReserved = (name: string): boolean => name === METADATA;
