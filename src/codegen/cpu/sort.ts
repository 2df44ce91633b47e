/**
 * @file Sorting rows on processors: what code generators share. A thread sorts one row at a time in workspace of its own. An
 * element is a pair of 64 bits, which are compared as one number:
 *
 *   pair    first word of the key, its highest bit inverted │ number of the element        32 bits each
 *
 *   keys    a map over the row: words into tiles
 *   pairs   of the first words, sorted by insertion where they are few, else byte by byte, the lowest byte first; then, where
 *           keys have two words, each run of pairs with equal first words once more by the second
 *   stores  a map over places: the low halves of pairs
 *
 * If few elements of many are wanted, pairs are kept in a buffer of `capacity`: the best so far, and later ones that are not
 * worse than the last of those. A full buffer is sorted, and only the best stay.
 */
import { type Index, load } from "../../kernel/expr.ts";
import { scaleIndex, varIndex } from "../../kernel/index-math.ts";
import type { MapNest, Operand, SortNest } from "../../kernel/loops.ts";
import { mapIndices } from "../../kernel/rewrite.ts";
import { product } from "../units.ts";

/** Most pairs that are sorted by insertion. */
export const FEW_PAIRS = 48;

const roundUp = (n: number, to: number): number => Math.ceil(n / to) * to;

/** Where a row's tiles are in a thread's workspace, in words of 32 bits. */
export interface SortLayout {
  /** Pairs, and room for as many. */
  readonly pairs: number;
  readonly room: number;
  /** First and second words of keys; the first ones may be in the room, which is free until they are pairs. */
  readonly high: number;
  readonly low: number;
  /** Counts of the digits of four bytes, where more are sorted than by insertion. */
  readonly counts: number;
  /** Of the buffer of pairs, or null where all elements are sorted. */
  readonly capacity: number | null;
  /** Words of a thread. */
  readonly elements: number;
}

type Unsorted = Omit<SortNest, "scratch">;

export function sortLayout({ along, rank, keys }: Unsorted): SortLayout {
  const [n, k] = [along.extent, rank.extent];
  const buffer = Math.max(2 * k, k + FEW_PAIRS);
  const capacity = 2 * buffer <= n ? buffer : null;
  const room = roundUp(2 * (capacity ?? n), 16);
  const row = roundUp(n, 16);
  const high = capacity === null ? room : 2 * room;
  const low = capacity === null ? 2 * room : 2 * room + row;
  const counts = low + (keys.length > 1 ? row : 0);
  const elements = counts + ((capacity ?? n) > FEW_PAIRS ? 4 * 256 : 0);
  return { pairs: 0, room, high, low, counts, capacity, elements };
}

/** Whether there is anything to do. */
export const isEmptySort = ({ loops, rank }: Unsorted): boolean => product(loops) * rank.extent === 0;

/** Elements of the workspace of all threads. */
export const sortScratch = (nest: Unsorted, threads: number): number =>
  isEmptySort(nest) ? 0 : threads * sortLayout(nest).elements;

/** Tiles are numbered behind the operands of the kernel: pairs as words, then words of keys. */
export interface SortTiles {
  /** Offsets in the workspace. */
  readonly offsets: readonly number[];
  readonly operands: readonly Operand[];
  /** Words of keys into their tiles. */
  readonly keys: MapNest;
  /** What is stored, of the numbers in pairs. */
  readonly stores: MapNest;
}

export function sortTiles(nest: SortNest, operands: readonly Operand[]): SortTiles {
  const { pairs, high, low } = sortLayout(nest);
  const first = operands.length;
  const tile: Operand = { dtype: "i32", elements: 0, role: "scratch" };
  const number = load("i32", first, scaleIndex(varIndex(nest.rank), 2));
  const same = (index: Index): Index => index;
  return {
    offsets: [pairs, high, low],
    operands: [...operands, tile, tile, tile],
    keys: {
      kind: "map",
      loops: [nest.along],
      stores: nest.keys.map((value, w) => ({ operand: first + 1 + w, index: varIndex(nest.along), value })),
    },
    stores: {
      kind: "map",
      loops: [nest.rank],
      stores: nest.stores.map((store) => ({ ...store, value: mapIndices(store.value, same, number) })),
    },
  };
}
