/**
 * @file The order of rows' elements, on blocks of threads, without atomics: by merging. Runs in order are of one length, but
 * for the last of a row; where only the first elements of a row are wanted, runs keep no more than those.
 *
 *   tiles    a block of threads for each: a thread counts the elements of its tile that come before its own, which is its place
 *   merge    a thread for each element: how many of the other run come before it, by halving; that and its place is its new place
 *
 *   3 8 1 7 │ 2 9 4 6        tiles
 *   1 3 7 8 │ 2 4 6 9        7 is in place 2, and 3 elements of the other run come before: place 5
 *   1 2 3 4 6 7 8 9
 *
 * An element is the words of its key and its number, compared one after the other: no two are equal. The workspace has two
 * halves, from one of which each pass reads, each a list of all first words, of all second ones, and of all numbers.
 */
import { at, invariant } from "../../base/invariant.ts";
import { call, constant, type Expr, type Index, load } from "../../kernel/expr.ts";
import {
  addIndex,
  linearIndex,
  offsetIndex,
  scaleIndex,
  splitIndex,
  valueIndex,
  varIndex,
  ZERO,
} from "../../kernel/index-math.ts";
import { asExpr, type MapNest, type Operand, type SortNest, type Store } from "../../kernel/loops.ts";
import { mapIndices } from "../../kernel/rewrite.ts";
import { wordsBefore } from "../../kernel/sort-key.ts";
import { product } from "../units.ts";
import { below, counter, countersAt, isEmpty, Memories, Replacement, rowOf } from "./counters.ts";
import { type DeviceClass, type Launch, loop, phase, type Statement, storing, where } from "./program.ts";
import { scheduleMap } from "./schedule-map.ts";

/** Elements of a tile, at most: each is compared with all of them. */
const TILE = 256;

type Unsorted = Omit<SortNest, "scratch">;

const isIdle = ({ loops, rank }: Unsorted): boolean => isEmpty([...loops, rank]);

/** Elements of workspace: two halves, of words and numbers each. */
export const sortWorkspace = (nest: Unsorted): number =>
  isIdle(nest) ? 0 : 2 * (nest.keys.length + 1) * product(nest.loops) * nest.along.extent;

const set = (operand: number, value: Expr): Statement => storing({ operand, index: ZERO, value });

class SortSchedule {
  readonly #nest: SortNest;
  readonly #operands: readonly Operand[];
  readonly #device: DeviceClass;
  readonly #scratch: number;
  /** Words of an element with its number; rows, elements of a row, and how many of those are wanted. */
  readonly #words: number;
  readonly #rows: number;
  readonly #length: number;
  readonly #wanted: number;
  readonly #tile: number;

  constructor(nest: SortNest, scratch: number, operands: readonly Operand[], device: DeviceClass) {
    this.#nest = nest;
    this.#operands = operands;
    this.#device = device;
    this.#scratch = scratch;
    this.#words = nest.keys.length + 1;
    this.#rows = product(nest.loops);
    this.#length = nest.along.extent;
    this.#wanted = nest.rank.extent;
    const room = Math.floor(device.sharedBytes / (4 * this.#words));
    const most = Math.min(TILE, device.threads, 2 ** Math.floor(Math.log2(room)));
    this.#tile = Math.min(most, Math.max(device.lanes, 2 ** Math.ceil(Math.log2(this.#length))));
  }

  /** Word w of an element of a row, in one half of the workspace. */
  #place(half: number, w: number, row: Index, element: Index): Index {
    const start = (half * this.#words + w) * this.#rows * this.#length;
    return offsetIndex(addIndex(scaleIndex(row, this.#length), element), start);
  }

  #stores(half: number, row: Index, element: Index, values: readonly Expr[]): Statement {
    const stores = values.map((value, w): Store => {
      return { operand: this.#scratch, index: this.#place(half, w, row, element), value };
    });
    return storing(...stores);
  }

  launches(): readonly Launch[] {
    const launches = [this.#tiles()];
    let half = 0;
    for (let run = this.#tile; run < this.#length; run *= 2) {
      launches.push(this.#merge(run, half));
      half = 1 - half;
    }
    return [...launches, ...scheduleMap(this.#stored(half), this.#operands, this.#device)];
  }

  /** Each tile in order, into the first half. */
  #tiles(): Launch {
    const [size, length] = [this.#tile, this.#length];
    const tiles = Math.ceil(length / size);
    const [row, tile, thread] = [counter("row", this.#rows), counter("tile", tiles), counter("thread", size)];
    const memories = new Memories(this.#operands);
    const shared = Array.from({ length: this.#words }, () =>
      memories.add({ scope: "shared", dtype: "i32", elements: size }),
    );
    const before = memories.add({ scope: "local", dtype: "i32", elements: 1 });
    const [r, t] = [varIndex(row), varIndex(thread)];
    const start = scaleIndex(varIndex(tile), size);
    const element = addIndex(start, t);
    const here = new Replacement(new Map([...countersAt(this.#nest.loops, r), [this.#nest.along, element]]));
    const own = [...this.#nest.keys.map((key) => here.expr(key)), asExpr(element)];
    const fill = storing(...own.map((value, w) => ({ operand: at(shared, w), index: t, value })));
    const other = counter("other", size);
    const words = (index: Index): readonly Expr[] => shared.map((memory) => memories.read(memory, index));
    const count = call("convert", [wordsBefore(words(varIndex(other)), words(t))], "i32");
    const add = set(before, call("add", [memories.read(before, ZERO), count], "i32"));
    const place = valueIndex(memories.read(before, ZERO), 0, size - 1);
    const keep = this.#wanted < size ? [{ index: place, lo: 0, hi: this.#wanted }] : [];
    const sort = where(below(element, length), [
      set(before, constant("i32", 0)),
      ...loop(other, where(below(addIndex(start, varIndex(other)), length), [add])),
      ...where(keep, [this.#stores(0, r, addIndex(start, place), words(t))]),
    ]);
    const body = [phase(...where(below(element, length), [fill])), phase(...sort)];
    const grid = [row, tile].filter((v) => v.extent > 1);
    return { grid, thread, memories: memories.list, body };
  }

  /** Runs of `run` elements, two by two, from one half into the other. */
  #merge(run: number, half: number): Launch {
    const [length, wanted] = [this.#length, this.#wanted];
    const kept = Math.min(run, wanted);
    const pairs = Math.ceil(length / (2 * run));
    const { grid, thread, element, each } = rowOf(this.#rows * pairs * 2 * kept, this.#device, 1);
    const [row, pair, side, own] = splitIndex(element, [this.#rows, pairs, 2, kept]) as [Index, Index, Index, Index];
    const memories = new Memories(this.#operands);
    const word = (): number => memories.add({ scope: "local", dtype: "i32", elements: 1 });
    const [mine, before] = [Array.from({ length: this.#words }, word), word()];
    const start = scaleIndex(pair, 2 * run);
    const from = addIndex(start, scaleIndex(side, run), own);
    // the other run of the pair
    const other = addIndex(start, offsetIndex(scaleIndex(side, -run), run));
    const wordsAt = (index: Index): readonly Expr[] =>
      mine.map((_, w) => load("i32", this.#scratch, this.#place(half, w, row, index)));
    const words = mine.map((memory) => memories.read(memory, ZERO));
    const known = memories.read(before, ZERO);
    const steps: Statement[] = [];
    for (let power = 2 ** Math.floor(Math.log2(kept)); power >= 1; power /= 2) {
      // with so many more, the last of them still comes before
      const last = offsetIndex(valueIndex(known, 0, kept), power - 1);
      const probe = addIndex(other, last);
      const more = call(
        "pick",
        [wordsBefore(wordsAt(probe), words), constant("i32", power), constant("i32", 0)],
        "i32",
      );
      const bounds = [
        { index: last, lo: 0, hi: kept },
        { index: probe, lo: 0, hi: length },
      ];
      steps.push(...where(bounds, [set(before, call("add", [known, more], "i32"))]));
    }
    const place = addIndex(own, valueIndex(known, 0, kept));
    const keep = wanted < 2 * run ? [{ index: place, lo: 0, hi: wanted }] : [];
    const body = where(below(from, length), [
      storing(...wordsAt(from).map((value, w) => ({ operand: at(mine, w), index: ZERO, value }))),
      set(before, constant("i32", 0)),
      ...steps,
      ...where(keep, [this.#stores(1 - half, row, addIndex(start, place), words)]),
    ]);
    return { grid, thread, memories: memories.list, body: [phase(...each(body))] };
  }

  /** What is stored, of the numbers in order. */
  #stored(half: number): MapNest {
    const { loops, rank, stores } = this.#nest;
    const row = linearIndex(
      loops.map(varIndex),
      loops.map((v) => v.extent),
    );
    const number = load("i32", this.#scratch, this.#place(half, this.#words - 1, row, varIndex(rank)));
    const same = (index: Index): Index => index;
    return {
      kind: "map",
      loops: [...loops, rank],
      stores: stores.map((store) => ({ ...store, value: mapIndices(store.value, same, number) })),
    };
  }
}

export function scheduleSort(nest: SortNest, operands: readonly Operand[], device: DeviceClass): readonly Launch[] {
  const { scratch } = nest;
  if (isIdle(nest)) return [];
  invariant(scratch !== undefined, () => "a sort without workspace");
  return new SortSchedule(nest, scratch, operands, device).launches();
}
