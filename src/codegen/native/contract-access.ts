/**
 * @file The memory layout of one side of a product. A side that is a plain load whose index is the sum of a function of its own
 * counter, a function of the depth and the rest can be read in place, element (i, k) at
 *
 *     operand[rest + lane(i) + depth(k)]
 *
 * The two functions may be strides of a matrix, transposed or not, or the windows of an image,
 *
 *     lane(p) = stride · (W · ⌊p / P⌋ + p mod P)        depth(r, c) = H · W · c + W · ⌊r / 3⌋ + r mod 3
 *
 * The microkernel (gemm-micro.ts) needs equal offsets in all tiles, so a counter is cut at multiples of a period after which its
 * offsets repeat: rows of an image, taps of one channel.
 *
 *     lane: 0 1 2 · 28 29 30 · 56 57 58 | 784 785 …      period 9, one tile of nine rows for each channel
 */
import { typeOf } from "../../kernel/dtype.ts";
import { type Expr, type Index, type LoopVar, type Term, walkExpr } from "../../kernel/expr.ts";
import type { Operand } from "../../kernel/loops.ts";
import { type Interner, linearCoefficient } from "../intern.ts";

type Load = Extract<Expr, { kind: "load" }>;

/** Terms as an index without an offset. */
export function indexOf(terms: readonly Term[]): Index {
  return { terms, offset: 0, key: "" };
}

export interface Access {
  readonly load: Load;
  /** Terms that depend on the side's counter, on the depth, and on neither. */
  readonly lane: readonly Term[];
  readonly depth: readonly Term[];
  readonly rest: readonly Term[];
}

function termVars(interner: Interner, { atom }: Term): ReadonlySet<LoopVar> {
  if (atom.kind === "var") return new Set([atom]);
  return atom.kind === "value" ? interner.of(atom.expr) : interner.ofIndex(atom.of);
}

/** Whether an index depends on elements of other tensors. */
const hasValues = (terms: readonly Term[]): boolean =>
  terms.some(({ atom }) => {
    if (atom.kind === "var") return false;
    return atom.kind === "value" || hasValues(atom.of.terms);
  });

/** One side of a product: its factors, its own counter, and those of the depth. */
export interface Side {
  readonly expr: Expr;
  readonly lane: LoopVar;
  readonly depth: readonly LoopVar[];
  readonly operands: readonly Operand[];
}

/** The index of a side that can be read in place, in parts; or null. Offsets must fit the 32 bits of the tables. */
export function accessOf(interner: Interner, { expr, lane, depth, operands }: Side): Access | null {
  if (expr.kind !== "load") return null;
  const operand = operands[expr.operand];
  if (!operand || !typeOf(expr.storage).plain || operand.elements >= 2 ** 31) return null;
  const parts = { lane: [] as Term[], depth: [] as Term[], rest: [] as Term[] };
  for (const term of expr.index.terms) {
    const vars = termVars(interner, term);
    const [ofLane, ofDepth] = [vars.has(lane), depth.some((v) => vars.has(v))];
    if (ofLane && ofDepth) return null;
    if (ofLane) parts.lane.push(term);
    else (ofDepth ? parts.depth : parts.rest).push(term);
  }
  if (hasValues(parts.lane) || hasValues(parts.depth)) return null;
  return { load: expr, ...parts };
}

/** The value of a sum of terms; counters without a value are zero. */
export function offsetAt(terms: readonly Term[], values: ReadonlyMap<LoopVar, number>): number {
  return terms.reduce((sum, { atom, coef }) => {
    if (atom.kind === "var") return sum + coef * (values.get(atom) ?? 0);
    if (atom.kind === "value") return sum;
    const of = offsetAt(atom.of.terms, values) + atom.of.offset;
    return sum + coef * (atom.kind === "div" ? Math.floor(of / atom.by) : of % atom.by);
  }, 0);
}

/** The stride of a counter, or null if it has no single one. */
export function strideOf(terms: readonly Term[], v: LoopVar): number | null {
  if (terms.length === 0) return 0;
  const [only] = terms;
  return terms.length === 1 && only?.atom === v ? only.coef : null;
}

/** The stride of the depth, as one counter or two, or null if it has no single one. */
export function depthStride(
  terms: readonly Term[],
  depth: LoopVar,
  split: readonly [LoopVar, LoopVar] | null,
): number | null {
  if (!split) return strideOf(terms, depth);
  const coefficient = (v: LoopVar): number => terms.find((t) => t.atom === v)?.coef ?? 0;
  const [outer, inner] = split;
  if (terms.some(({ atom }) => atom !== outer && atom !== inner)) return null;
  return coefficient(outer) === inner.extent * coefficient(inner) ? coefficient(inner) : null;
}

/** Stretches of memory that the depth covers, in any order: `count` of them, `length` elements each, `stride` apart. */
export interface Stretches {
  /** The least offset. */
  readonly first: number;
  readonly count: number;
  readonly length: number;
  readonly stride: number;
}

/** Largest distance of two neighbours in one stretch. */
const LARGEST_GAP = 16;

/** The stretches that the depth covers, each element once; null if they are uneven or mostly gaps. */
export function stretchesOf(
  terms: readonly Term[],
  depth: LoopVar,
  split: readonly [LoopVar, LoopVar] | null,
): Stretches | null {
  const run = split?.[1].extent ?? 1;
  const offsets = Array.from({ length: depth.extent }, (_, k) => {
    const values: [LoopVar, number][] = [[depth, k]];
    if (split) values.push([split[0], Math.floor(k / run)], [split[1], k % run]);
    return offsetAt(terms, new Map(values));
  }).sort((a, b) => a - b);
  const starts = offsets.filter((at, i) => i === 0 || at - (offsets[i - 1] ?? 0) > LARGEST_GAP);
  const [first = 0, second = first + (offsets.at(-1) ?? 0) - first + 1] = starts;
  const stride = second - first;
  const length = Math.max(...offsets.map((at) => (at - first) % stride)) + 1;
  const even = starts.every((at, i) => at === first + i * stride);
  const once = offsets.every((at, i) => i === 0 || at !== offsets[i - 1]);
  if (!even || !once || starts.length * length > 4 * depth.extent) return null;
  return { first, count: starts.length, length, stride };
}

/** A counter cut into tiles: `period` elements at a time into `sizes.length` tiles, as equal as can be, longer ones first. */
export interface Tiling {
  readonly extent: number;
  readonly period: number;
  /** Rows of each tile of a period. */
  readonly sizes: readonly number[];
  /** Offsets of the rows of each tile from its first. */
  readonly patterns: readonly (readonly number[])[];
  /** Tiles differ in their offsets, not only in size. */
  readonly uneven: boolean;
}

/** The fewest tiles of at most `most`, as equal as possible. */
export function evenSizes(extent: number, most: number): readonly number[] {
  const tiles = Math.max(1, Math.ceil(extent / most));
  const least = Math.floor(extent / tiles);
  const longer = extent - tiles * least;
  return Array.from({ length: tiles }, (_, i) => least + (i < longer ? 1 : 0));
}

export function evenTiling(extent: number, most: number, stride: number): Tiling {
  const sizes = evenSizes(extent, most);
  const patterns = sizes.map((rows) => Array.from({ length: rows }, (_, i) => i * stride));
  return { extent, period: extent, sizes, patterns, uneven: false };
}

/** Most microkernels that differ only in offsets: each is separate code. */
const MOST_PATTERNS = 4;
/** Fewer rows than this leave the multipliers waiting for loads. */
const FEWEST_ROWS = 6;

/** Tiles of a side that is read in place, or null if offsets do not repeat or tiles would be too small. */
export function tilingOf({ lane }: Access, v: LoopVar, most: number): Tiling | null {
  const stride = strideOf(lane, v);
  if (stride !== null) return evenTiling(v.extent, most, stride);
  const offsets = Array.from({ length: v.extent }, (_, i) => offsetAt(lane, new Map([[v, i]])));
  let best: Tiling | null = null;
  const rows = (t: Tiling): number => t.period / t.sizes.length;
  for (let period = 2; period <= v.extent && period <= 4096; period++) {
    if (v.extent % period !== 0 || !repeats(offsets, period)) continue;
    const made = periodic(offsets, v.extent, period, most);
    if (made && (!best || rows(made) > rows(best))) best = made;
  }
  return best && (rows(best) >= FEWEST_ROWS || v.extent < FEWEST_ROWS) ? best : null;
}

function repeats(offsets: readonly number[], period: number): boolean {
  return offsets.every((at, i) => {
    const first = i - (i % period);
    return at - (offsets[first] ?? 0) === (offsets[i % period] ?? 0) - (offsets[0] ?? 0);
  });
}

function periodic(offsets: readonly number[], extent: number, period: number, most: number): Tiling | null {
  const sizes = evenSizes(period, most);
  let start = 0;
  const patterns = sizes.map((count) => {
    const first = offsets[start] ?? 0;
    const pattern = offsets.slice(start, start + count).map((at) => at - first);
    start += count;
    return pattern;
  });
  const step = (offsets[1] ?? 0) - (offsets[0] ?? 0);
  const uneven = patterns.some((p) => p.some((at, i) => at !== i * step));
  if (uneven && new Set(patterns.map(String)).size > MOST_PATTERNS) return null;
  return { extent, period, sizes, patterns, uneven };
}

/** How an expression reads memory with a counter in the lanes: loads of whole registers, and of single elements. */
export interface Grain {
  readonly whole: number;
  readonly single: number;
}

export function grainOf(interner: Interner, expr: Expr, v: LoopVar): Grain {
  let [whole, single] = [0, 0];
  walkExpr(expr, (e) => {
    if (e.kind !== "load") return;
    const coef = linearCoefficient(interner, e.index, v);
    if (coef === 0 || coef === 1) whole += 1;
    else single += 1;
  });
  return { whole, single };
}
