/**
 * @file The parts that stages of attention are written in (attend.ts): tiles, nests over them and over the operands of the nest,
 * units and loops over blocks.
 */
import { at, invariant } from "../base/invariant.ts";
import { type Atom, constant, type Expr, type Index, type LoopVar, load } from "./expr.ts";
import { addIndex, constIndex, divIndex, linearIndex, scaleIndex, substitute, varIndex, ZERO } from "./index-math.ts";
import type { AttendNest, Nest, Store } from "./loops.ts";
import { mapIndices } from "./rewrite.ts";
import { add, eq, mul, pick } from "./scalar-ops.ts";

/** Queries, and keys, of a block. */
export const ATTEND_BLOCK = 64;

/** A loop around stages: the counter runs through [first, last), no further down than `from`, and below every one of `to`. */
export interface Repeat {
  readonly kind: "repeat";
  readonly counter: LoopVar;
  readonly first: number;
  readonly last: number;
  readonly from: Index | null;
  readonly to: readonly Index[];
  readonly body: readonly Stage[];
}

export type Stage = Nest | Repeat;

/** The stages of one unit, for every value of the counters of `units`. */
export interface StagedUnits {
  readonly units: readonly LoopVar[];
  readonly body: readonly Stage[];
}

export interface AttendStages {
  /** Elements of each tile; the first one is numbered as the operand behind the last one of the kernel. */
  readonly tiles: readonly number[];
  /** The tiles that every unit has a copy of in one memory, unit after unit, and the elements of a unit there. */
  readonly apart: ReadonlySet<number>;
  readonly unitElements: number;
  readonly programs: readonly StagedUnits[];
}

/** Whether a tile of so many elements is apart: asked for each tile, those first that are read most. */
export type IsApart = (elements: number) => boolean;

/** A counter that runs once. */
export const ONCE: LoopVar = { kind: "var", name: "once", extent: 1 };

/** Stages have no workspace but their tiles. */
const NONE = -1;

/** Blocks of an extent: the whole ones, and the last one where it is shorter. */
interface Blocks {
  readonly first: number;
  readonly count: number;
  /** Elements of each. */
  readonly length: number;
}

function blocksOf(extent: number): readonly Blocks[] {
  const whole = Math.floor(extent / ATTEND_BLOCK);
  const rest = extent % ATTEND_BLOCK;
  return [
    ...(whole > 0 ? [{ first: 0, count: whole, length: ATTEND_BLOCK }] : []),
    ...(rest > 0 ? [{ first: whole, count: 1, length: rest }] : []),
  ];
}

/** Where a block begins, and how many elements it has. */
export interface Place {
  readonly start: Index;
  readonly length: number;
}

/** A block of the unit's own side and one of the other, with their counters in the nest. */
export interface Sides {
  readonly own: Place;
  readonly ownVar: LoopVar;
  readonly other: Place;
  readonly otherVar: LoopVar;
}

/** One factor of a product: a tile, or elements of the other side; `inside` is their counter in the nest. */
export interface Factor<T> {
  readonly of: T;
  readonly inside: LoopVar;
}

type At = ReadonlyMap<LoopVar, Index>;

/** The tiles of a unit: the own sides turned, scores and their derivatives, sums, and one row each of what a query keeps. */
export type TileName = "own" | "own2" | "p" | "d" | "keep" | "sum" | "sum2" | "m" | "l" | "shift" | "alpha";

/** Writes stages in terms of the nest's expressions and of tiles. */
export class Stages {
  readonly nest: AttendNest;
  readonly tiles: number[] = [];
  unitElements = 0;
  /** By tile that is apart: where it begins among those of its unit. */
  readonly offsets: Map<number, number> = new Map();
  readonly #operands: number;
  readonly #numbers = new Map<TileName, number>();
  /** Where the tiles of a unit begin. */
  #unit = ZERO;
  #names = 0;

  /** `rows` of each tile, of a block's length. */
  constructor(nest: AttendNest, operands: number, rows: Partial<Record<TileName, number>>, isApart: IsApart) {
    this.nest = nest;
    this.#operands = operands;
    for (const [name, count] of Object.entries(rows)) this.#add(name as TileName, count * ATTEND_BLOCK, isApart);
  }

  #add(name: TileName, elements: number, isApart: IsApart): void {
    const number = this.#operands + this.tiles.push(elements) - 1;
    this.#numbers.set(name, number);
    if (!isApart(elements)) return;
    this.offsets.set(number, this.unitElements);
    this.unitElements += elements;
  }

  /** The number of a tile. */
  tile(name: TileName): number {
    const known = this.#numbers.get(name);
    invariant(known !== undefined, () => `there is no tile ${name}`);
    return known;
  }

  #element(tile: number, row: Index, column: Index): Index {
    const index = addIndex(scaleIndex(row, ATTEND_BLOCK), column);
    const offset = this.offsets.get(tile);
    return offset === undefined ? index : addIndex(this.#unit, index, constIndex(offset));
  }

  /** A counter with a name of its own: equal names would be equal counters. */
  counter(name: string, extent: number): LoopVar {
    return { kind: "var", name: `${name}${this.#names++}`, extent };
  }

  read(tile: number, row: Index, column: Index): Expr {
    return load(this.nest.dtype, tile, this.#element(tile, row, column));
  }

  write(tile: number, row: Index, column: Index, value: Expr): Store {
    return { operand: tile, index: this.#element(tile, row, column), value };
  }

  /** An expression of the nest, with indices for its counters. */
  expr(expr: Expr, at: At, acc: Expr | null = null): Expr {
    return mapIndices(expr, replacing(at), acc);
  }

  store({ operand, index, value }: Store, at: At, acc: Expr): Store {
    const map = replacing(at);
    return { operand, index: map(index, (expr) => mapIndices(expr, map)), value: mapIndices(value, map, acc) };
  }

  // ---- nests --------------------------------------------------------------------------------------------------------

  /** The unit's own side as a tile: element c of the block's element x at [c, x]. */
  turned(tile: number, along: LoopVar, { of, inside }: Factor<Expr>, { start, length }: Place): Nest {
    const [c, x] = [this.counter("c", inside.extent), this.counter("x", length)];
    const at = new Map([
      [along, addIndex(start, varIndex(x))],
      [inside, varIndex(c)],
    ]);
    const stores = [this.write(tile, varIndex(c), varIndex(x), this.expr(of, at))];
    return { kind: "map", loops: [c, x], stores };
  }

  filled(tile: number, rows: number, length: number, value = 0): Nest {
    const [c, x] = [this.counter("c", rows), this.counter("x", length)];
    const stores = [this.write(tile, varIndex(c), varIndex(x), constant(this.nest.dtype, value))];
    return { kind: "map", loops: [c, x], stores };
  }

  /** tile[c, x] = tile[c, x] · by[x]. */
  scaled(tile: number, rows: number, by: number, length: number): Nest {
    const [c, x] = [this.counter("c", rows), this.counter("x", length)];
    const [ci, xi] = [varIndex(c), varIndex(x)];
    const stores = [this.write(tile, ci, xi, mul(this.read(tile, ci, xi), this.read(by, ZERO, xi)))];
    return { kind: "map", loops: [c, x], stores };
  }

  #product(extents: readonly number[], sides: (at: readonly Index[]) => readonly [a: Expr, b: Expr, Store]): Nest {
    const { dtype } = this.nest;
    const [m, n, k] = extents.map((extent, i) => this.counter(at(["r", "x", "k"], i), extent));
    const [rows, cols, depth] = [m, n, k] as [LoopVar, LoopVar, LoopVar];
    const [a, b, store] = sides([rows, cols, depth].map(varIndex));
    return { kind: "contract", batch: [], rows, cols, depth, split: null, dtype, a, b, stores: [store], scratch: NONE };
  }

  /** One for each pair of elements of two blocks: to[y, x] = value(Σ_c other[y, c] · tile[c, x]). */
  pairs(
    to: number,
    { own, other, ownVar, otherVar }: Sides,
    [left, right]: readonly [Factor<Expr>, Factor<number>],
    value: (at: At, y: Index, x: Index) => Expr,
  ): Nest {
    return this.#product([other.length, own.length, left.inside.extent], ([y = ZERO, x = ZERO, c = ZERO]) => {
      const places = new Map([
        [otherVar, addIndex(other.start, y)],
        [ownVar, addIndex(own.start, x)],
        [left.inside, c],
      ]);
      const made = this.write(to, y, x, value(places, y, x));
      return [this.expr(left.of, places), this.read(right.of, c, x), made];
    });
  }

  /** to[c, x] = to[c, x] + Σ_y other[y, c] · tile[y, x]. */
  sums(to: number, { own, other, otherVar }: Sides, [left, tile]: readonly [Factor<Expr>, number]): Nest {
    return this.#product([left.inside.extent, own.length, other.length], ([c = ZERO, x = ZERO, y = ZERO]) => {
      const places = new Map([
        [otherVar, addIndex(other.start, y)],
        [left.inside, c],
      ]);
      const made = this.write(to, c, x, add(this.read(to, c, x), accOf(this.nest)));
      return [this.expr(left.of, places), this.read(tile, y, x), made];
    });
  }

  /** store[y, c] = store[y, c] + Σ_x own[x, c] · tile[y, x], the elements of the other side being those of the result. */
  sumsInPlace(
    store: Store,
    { own, other, ownVar, otherVar }: Sides,
    [left, tile]: readonly [Factor<Expr>, number],
  ): Nest {
    return this.#product([other.length, left.inside.extent, own.length], ([y = ZERO, c = ZERO, x = ZERO]) => {
      const places = new Map([
        [otherVar, addIndex(other.start, y)],
        [ownVar, addIndex(own.start, x)],
        [left.inside, c],
      ]);
      const index = replacing(places)(store.index, (expr) => expr);
      const before = load(this.nest.dtype, store.operand, index);
      const value = add(before, accOf(this.nest));
      return [this.read(tile, y, x), this.expr(left.of, places), { operand: store.operand, index, value }];
    });
  }

  /** For each pair of elements of two blocks: to[y, x] = value. */
  each(to: number, { own, other, ownVar, otherVar }: Sides, value: (at: At, y: Index, x: Index) => Expr): Nest {
    const [y, x] = [this.counter("y", other.length), this.counter("x", own.length)];
    const [yi, xi] = [varIndex(y), varIndex(x)];
    const places = new Map([
      [otherVar, addIndex(other.start, yi)],
      [ownVar, addIndex(own.start, xi)],
    ]);
    return { kind: "map", loops: [y, x], stores: [this.write(to, yi, xi, value(places, yi, xi))] };
  }

  /** Over each column of a tile. */
  down(combine: "add" | "max", tile: number, { own, other }: Sides, stores: (x: Index) => readonly Store[]): Nest {
    const { dtype } = this.nest;
    const [y, x] = [this.counter("y", other.length), this.counter("x", own.length)];
    const body = this.read(tile, varIndex(y), varIndex(x));
    return {
      kind: "reduce",
      loops: [x],
      reduce: [y],
      order: "sequential",
      combine,
      dtype,
      body,
      stores: stores(varIndex(x)),
    };
  }

  /** A result of the unit's elements from a tile [c, x]. */
  result(
    store: Store,
    along: LoopVar,
    { inside, place }: { readonly inside: LoopVar; readonly place: Place },
    value: (c: Index, x: Index) => Expr,
  ): Nest {
    const [x, c] = [this.counter("x", place.length), this.counter("c", inside.extent)];
    const at = new Map([
      [along, addIndex(place.start, varIndex(x))],
      [inside, varIndex(c)],
    ]);
    return { kind: "map", loops: [x, c], stores: [this.store(store, at, value(varIndex(c), varIndex(x)))] };
  }

  // ---- loops --------------------------------------------------------------------------------------------------------

  /** Units of the blocks along a counter; `body` has the block's number and place. */
  units(before: readonly LoopVar[], along: LoopVar, body: (number: Index, own: Place) => readonly Stage[]) {
    return blocksOf(along.extent).map(({ first, count, length }): StagedUnits => {
      const block = this.counter("unit", count);
      const number = addIndex(varIndex(block), constIndex(first));
      const place = { start: scaleIndex(number, ATTEND_BLOCK), length };
      const units = [...before, block];
      const unit = linearIndex(
        units.map(varIndex),
        units.map((v) => v.extent),
      );
      this.#unit = scaleIndex(unit, this.unitElements);
      return { units, body: body(number, place) };
    });
  }

  /** The number of the first block of keys that a length leaves out. */
  keyBlocks(): Index | null {
    const { length } = this.nest;
    return length && divIndex(addIndex(length, constIndex(ATTEND_BLOCK - 1)), ATTEND_BLOCK);
  }

  /** All blocks along a counter of which an element differs by something within the limits from one of the unit's. */
  repeats(
    number: Index,
    own: Place,
    [along, least, most, end = null]: Band,
    body: (other: Place, number: Index) => readonly Stage[],
  ): readonly Repeat[] {
    const limit = (by: Index): Index => addIndex(number, divIndex(by, ATTEND_BLOCK));
    return blocksOf(along.extent).map(({ first, count, length }): Repeat => {
      const block = this.counter("block", first + count);
      const start = scaleIndex(varIndex(block), ATTEND_BLOCK);
      const beyond = most && limit(addIndex(most, constIndex(own.length - 1 + ATTEND_BLOCK)));
      return {
        kind: "repeat",
        counter: block,
        first,
        last: first + count,
        from: least && limit(least),
        to: [beyond, end].filter((index) => index !== null),
        body: body({ start, length }, varIndex(block)),
      };
    });
  }
}

/** A counter, by how much its values may differ at least and at most from those of the unit's block, and the first block left out. */
export type Band = readonly [along: LoopVar, least: Index | null, most: Index | null, end?: Index | null];

const replacing =
  (at: At) =>
  (index: Index, inner: (expr: Expr) => Expr): Index =>
    substitute(index, (v) => at.get(v) ?? varIndex(v), inner);

/** Shifts of -∞ would be ∞ - ∞: of a query that sees no key nothing is shifted. */
export const finite = (shift: Expr): Expr => pick(eq(shift, Number.NEGATIVE_INFINITY), 0, shift);

/** The accumulator of a stage. */
export const accOf = ({ dtype }: AttendNest): Expr => ({ kind: "acc", dtype });

/** How often a nest of some stages runs. */
export interface StageRuns {
  readonly nest: Nest;
  readonly runs: number;
}

/** An index of the unit's last counter, at a number of it, where lengths are the greatest. */
function valueAt({ terms, offset }: Index, number: number): number {
  return terms.reduce((sum, { atom, coef }) => sum + coef * atomAt(atom, number), offset);
}

function atomAt(atom: Atom, number: number): number {
  if (atom.kind === "var") return number;
  if (atom.kind === "value") return atom.hi;
  const of = valueAt(atom.of, number);
  return atom.kind === "div" ? Math.floor(of / atom.by) : of % atom.by;
}

/** All nests of stages, and how often each runs in all units together. */
export function stageRuns({ units, body }: StagedUnits): readonly StageRuns[] {
  const blocks = units.at(-1)?.extent ?? 1;
  const rest = units.slice(0, -1).reduce((n, v) => n * v.extent, 1);
  const visit = (stages: readonly Stage[], times: (number: number) => number): readonly StageRuns[] =>
    stages.flatMap((stage): readonly StageRuns[] => {
      if (stage.kind === "repeat") {
        const { first, last, from, to } = stage;
        const passes = (n: number): number => {
          const end = Math.min(last, ...to.map((index) => valueAt(index, n)));
          return Math.max(0, end - Math.max(first, from ? valueAt(from, n) : first));
        };
        return visit(stage.body, (n) => times(n) * passes(n));
      }
      let runs = 0;
      for (let n = 0; n < blocks; n++) runs += times(n);
      return [{ nest: stage, runs: rest * runs }];
    });
  return visit(body, () => 1);
}
