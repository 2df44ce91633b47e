/**
 * @file Which parts of the arena a dispatch is given. WebGPU has three rules: a part that is bound starts at a multiple of 256 bytes,
 * has at most so many bytes, and no byte may belong to two parts of one dispatch where kernels write. So operands that touch each other
 * (a result over an operand, rows of one stack) share a part, and start at some element of it:
 *
 *   arena       0     256    512    768    1024
 *   operands    [a───────)        [b─)[c─────────)      b ends and c starts within the same 256 bytes
 *   parts       [0─────────)      [1─────────────)      a at 0 of part 0, b and c at elements of part 1
 *
 * A part that has more bytes than one binding may is cut into pieces, each a binding of its own. Where a dispatch would have more
 * bindings than the device allows, parts with the smallest gaps are joined.
 */
import { grouped, TidemarkError } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";
import { bytesOf, type DType } from "../../kernel/dtype.ts";
import { elementTypes, isPacked } from "./elements.ts";

/** Bytes; every part starts at a multiple of it. */
export const PART_ALIGNMENT = 256;
/** Bytes; every part is a multiple of it. */
const WORD = 4;

export interface BindingLimits {
  /** Storage buffers of one dispatch. */
  readonly storageBuffers: number;
  /** Bytes of one binding: a multiple of 256. */
  readonly bindingBytes: number;
}

/** An operand of a dispatch, or one seen as elements of another type. */
export interface Span {
  readonly dtype: DType;
  readonly address: number;
  readonly elements: number;
  readonly isWritten: boolean;
}

/** Bytes [from, to) of the arena. */
export interface ArenaPart {
  readonly from: number;
  readonly to: number;
}

/** What the text of a dispatch depends on: for each operand its part, and whether it starts at the part's start. */
export interface Layout {
  /** Types of the elements of parts. */
  readonly parts: readonly string[];
  /** Bindings that each part is cut into, and the bytes of every one but the last. */
  readonly pieces: readonly number[];
  readonly pieceBytes: number;
  readonly spans: readonly { readonly part: number; readonly isShifted: boolean }[];
}

export interface Bindings extends Layout {
  /** Of every piece of every part. */
  readonly ranges: readonly ArenaPart[];
  /** Elements from the start of its part, for every operand that does not start there. */
  readonly shifts: readonly number[];
}

interface Draft extends ArenaPart {
  /** Numbers of spans. */
  readonly members: readonly number[];
}

const rounded = (bytes: number, to: number): number => Math.ceil(bytes / to) * to;

function draftOf({ dtype, address, elements }: Span, i: number): Draft {
  const bytes = Math.max(WORD, elements * bytesOf(dtype));
  const from = address - (address % PART_ALIGNMENT);
  return { from, to: rounded(address + bytes, WORD), members: [i] };
}

const joined = (a: Draft, b: Draft): Draft => ({
  from: Math.min(a.from, b.from),
  to: Math.max(a.to, b.to),
  members: [...a.members, ...b.members],
});

/** Parts in order of addresses, none of which touches another. */
function separated(spans: readonly Span[]): Draft[] {
  const parts: Draft[] = [];
  for (const draft of spans.map(draftOf).sort((a, b) => a.from - b.from)) {
    const last = parts[parts.length - 1];
    if (last && draft.from < last.to) parts[parts.length - 1] = joined(last, draft);
    else parts.push(draft);
  }
  return parts;
}

const piecesOf = ({ from, to }: ArenaPart, { bindingBytes }: BindingLimits): number =>
  Math.ceil((to - from) / bindingBytes);

/** Joins two neighbours, those with the smallest gap that are fewer bindings together; false where none are. */
function joinTwo(parts: Draft[], limits: BindingLimits): boolean {
  let best = -1;
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i + 1 < parts.length; i++) {
    const [a, b] = [at(parts, i), at(parts, i + 1)];
    const saves = piecesOf(joined(a, b), limits) < piecesOf(a, limits) + piecesOf(b, limits);
    if (!saves || b.from - a.to >= least) continue;
    [best, least] = [i, b.from - a.to];
  }
  if (best < 0) return false;
  parts.splice(best, 2, joined(at(parts, best), at(parts, best + 1)));
  return true;
}

/** The type of a part's elements: that of its operands where they have one, else words. */
export function partType(members: readonly Pick<Span, "dtype" | "isWritten">[]): string {
  if (members.some(({ dtype }) => isPacked(dtype))) {
    return members.some(({ isWritten }) => isWritten) ? "atomic<u32>" : "u32";
  }
  const types = new Set(members.map(({ dtype }) => elementTypes(dtype).own));
  return types.size === 1 ? [...types].join() : "u32";
}

function tooLarge(summary: string): TidemarkError {
  return new TidemarkError("TargetUnsupported", summary, { help: "use smaller batches, or another target" });
}

/** Indices have 32 bits with a sign. */
const MOST_ELEMENTS = 2 ** 31;

function requireIndices({ from, to, members }: Draft, spans: readonly Span[]): void {
  const least = Math.min(...members.map((i) => bytesOf(at(spans, i).dtype)));
  if ((to - from) / least < MOST_ELEMENTS) return;
  throw tooLarge(
    `an operand of ${grouped(to - from)} bytes: indices of webgpu reach ${grouped(MOST_ELEMENTS)} elements`,
  );
}

/** The bindings of a part. */
function cut(part: ArenaPart, limits: BindingLimits): readonly ArenaPart[] {
  const { bindingBytes } = limits;
  return Array.from({ length: piecesOf(part, limits) }, (_, i) => {
    const from = part.from + i * bindingBytes;
    return { from, to: Math.min(part.to, from + bindingBytes) };
  });
}

/** Parts for the operands of one dispatch. Throws `TargetUnsupported` where a device does not allow what it needs. */
export function bindingsOf(spans: readonly Span[], limits: BindingLimits): Bindings {
  const parts = separated(spans);
  const { storageBuffers, bindingBytes } = limits;
  const count = (): number => parts.reduce((sum, part) => sum + piecesOf(part, limits), 0);
  while (count() > storageBuffers) {
    if (joinTwo(parts, limits)) continue;
    throw tooLarge(
      `the operands of a kernel need ${count()} bindings of ${grouped(bindingBytes)} bytes: webgpu has ${storageBuffers}`,
    );
  }
  for (const part of parts) requireIndices(part, spans);
  const partOf = spans.map((_, i) => parts.findIndex(({ members }) => members.includes(i)));
  const shifts = spans.map(({ address, dtype }, i) => (address - at(parts, at(partOf, i)).from) / bytesOf(dtype));
  return {
    parts: parts.map(({ members }) => partType(members.map((i) => at(spans, i)))),
    pieces: parts.map((part) => piecesOf(part, limits)),
    pieceBytes: bindingBytes,
    ranges: parts.flatMap((part) => cut(part, limits)),
    spans: partOf.map((part, i) => ({ part, isShifted: at(shifts, i) > 0 })),
    shifts: shifts.filter((shift) => shift > 0),
  };
}
