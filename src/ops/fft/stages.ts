/**
 * @file The stages of Fourier transforms as maps, and what they read and store: sequences in lines, buffers between stages, tables of
 * factors. transforms.ts has what they compute.
 */
import { at } from "../../base/invariant.ts";
import type { FloatScalar } from "../../kernel/dtype.ts";
import { type Expr, type Index, type LoopVar, load } from "../../kernel/expr.ts";
import {
  addIndex,
  constIndex,
  divIndex,
  linearIndex,
  modIndex,
  scaleIndex,
  varIndex,
} from "../../kernel/index-math.ts";
import { asExpr, type MapNest, type Store } from "../../kernel/loops.ts";
import * as scalar from "../../kernel/scalar-ops.ts";
import { butterfly, type Complex, type Sign, timesRoot } from "./butterfly.ts";
import { tableRow } from "./plan.ts";
import { type Root, rootExpr } from "./roots.ts";

/** Where numbers are read: at a place of a sequence. */
export type Source = (place: Index) => Complex;

/** Where numbers are stored. */
export type Sink = (place: Index, value: Complex) => readonly Store[];

/** Sequences side by side: their counters outside and inside of the one that is transformed. */
export interface Lines {
  readonly outer: readonly LoopVar[];
  readonly inner: readonly LoopVar[];
}

/** Memory from an element of an operand on. */
export interface Plane {
  readonly operand: number;
  readonly offset: number;
}

/** Memory for a complex sequence of some length in each line: real and imaginary parts. */
export interface Buffer {
  readonly planes: readonly [re: Plane, im: Plane];
  readonly length: number;
}

/** Where workspace comes from: tables, which are the same for all lines, and planes of the lines. */
export interface Workspace {
  table(elements: number): number;
  plane(elements: number): Plane;
}

const counter = (name: string, extent: number): LoopVar => ({ kind: "var", name, extent });
const product = (loops: readonly LoopVar[]): number => loops.reduce((n, v) => n * v.extent, 1);
const linear = (loops: readonly LoopVar[]): Index =>
  linearIndex(
    loops.map(varIndex),
    loops.map((v) => v.extent),
  );

/** A table of e^(2πi·t/circle) for t = step · (row · a + b): two short ones where a has more than one value. */
export interface RootTable {
  readonly row: number;
  readonly inner: (b: Index) => Root<Expr>;
  readonly outer: ((a: Index) => Root<Expr>) | null;
}

export class Stages {
  /** Maps that fill tables, and those of the lines, which read them. */
  readonly tables: MapNest[] = [];
  readonly nests: MapNest[] = [];
  readonly dtype: FloatScalar;
  readonly #lines: Lines;
  readonly workspace: Workspace;
  names = 0;

  constructor(dtype: FloatScalar, lines: Lines, workspace: Workspace) {
    this.dtype = dtype;
    this.#lines = lines;
    this.workspace = workspace;
  }

  /** Workspace for sequences of a length in all lines. */
  buffer(length: number): Buffer {
    const plane = (): Plane => this.workspace.plane(length * this.#count);
    return { planes: [plane(), plane()], length };
  }

  get #count(): number {
    return product([...this.#lines.outer, ...this.#lines.inner]);
  }

  /** Counters with names of their own: equal names would be equal counters. */
  counter(extent: number): LoopVar {
    return counter(`f${this.names++}`, extent);
  }

  map(loops: readonly LoopVar[], stores: readonly Store[]): void {
    const { outer, inner } = this.#lines;
    this.nests.push({ kind: "map", loops: [...outer, ...loops, ...inner], stores });
  }

  // ---- buffers ------------------------------------------------------------------------------------------------------

  #element({ offset }: Plane, length: number, place: Index): Index {
    const { outer, inner } = this.#lines;
    const row = addIndex(scaleIndex(linear(outer), length), place);
    const element = addIndex(scaleIndex(row, product(inner)), linear(inner));
    return addIndex(constIndex(offset), element);
  }

  source({ planes: [re, im], length }: Buffer): Source {
    const part = (plane: Plane, place: Index): Expr =>
      load(this.dtype, plane.operand, this.#element(plane, length, place));
    return (place) => ({ re: part(re, place), im: part(im, place) });
  }

  sink({ planes, length }: Buffer): Sink {
    return (place, { re, im }) =>
      [re, im].map((value, p) => {
        const plane = at(planes, p);
        return { operand: plane.operand, index: this.#element(plane, length, place), value: value ?? this.zero };
      });
  }

  get zero(): Expr {
    return { kind: "const", dtype: this.dtype, value: 0 };
  }

  /** With zeros in place of parts that are not there. */
  filled({ re, im }: Complex): Complex {
    return { re: re ?? this.zero, im: im ?? this.zero };
  }

  // ---- tables -------------------------------------------------------------------------------------------------------

  /** A table of `rows` rows of `columns`: the roots of a circle at `turn` of row and column. */
  fill(rows: number, columns: number, turn: (row: Expr, column: Expr) => Expr, circle: number) {
    const operand = this.workspace.table(2 * rows * columns);
    const [row, column] = [this.counter(rows), this.counter(columns)];
    const { cos, sin } = rootExpr(turn(asExpr(varIndex(row)), asExpr(varIndex(column))), circle, this.dtype);
    const element = addIndex(scaleIndex(varIndex(row), columns), varIndex(column));
    const part = (index: Index, plane: 0 | 1): Index => addIndex(index, constIndex(plane * rows * columns));
    const stores = [cos, sin].map((value, plane) => ({ operand, index: part(element, plane as 0 | 1), value }));
    this.tables.push({ kind: "map", loops: [row, column], stores });
    return (j: number, place: Index): Root<Expr> => {
      const index = addIndex(constIndex(j * columns), place);
      return { cos: load(this.dtype, operand, part(index, 0)), sin: load(this.dtype, operand, part(index, 1)) };
    };
  }

  /** For each j from 1 to `multiples`: e^(2πi·jp/circle) for p < extent. */
  table(multiples: number, extent: number, circle: number, row = tableRow(extent)): readonly RootTable[] {
    const steps = (count: number, by: number) =>
      this.fill(multiples, count, (j, p) => scalar.mul(scalar.add(j, 1), scalar.mul(p, by)), circle);
    const inner = steps(row, 1);
    const outer = row < extent ? steps(extent / row, row) : null;
    return Array.from({ length: multiples }, (_, j) => ({
      row,
      inner: (b: Index) => inner(j, b),
      outer: outer && ((a: Index) => outer(j, a)),
    }));
  }

  /** value · e^(±2πi·jp/circle) for p = row · a + b. */
  turned(value: Complex, { row, inner, outer }: RootTable, place: Index, sign: Sign): Complex {
    const low = inner(modIndex(place, row));
    if (!outer) return timesRoot(value, low, sign);
    const high = outer(divIndex(place, row));
    const { re, im } = timesRoot({ re: high.cos, im: high.sin }, low, 1);
    return timesRoot(value, { cos: re as Expr, sin: im as Expr }, sign);
  }

  /** A counter in rows, so that places in tables are counters; and it as an index. */
  inRows(extent: number): { readonly loops: readonly LoopVar[]; readonly place: Index } {
    const row = tableRow(extent);
    const [a, b] = [this.counter(extent / row), this.counter(row)];
    return { loops: [a, b], place: addIndex(scaleIndex(varIndex(a), row), varIndex(b)) };
  }

  // ---- transforms ---------------------------------------------------------------------------------------------------

  /**
   * The transform of sequences of a length with small factors. `sinks`: where each of so many stages stores, of which all but the last are
   * read by the next one.
   */
  run(radices: readonly number[], sign: Sign, first: Source, sinks: (stage: number) => Buffer | Sink): void {
    const n = radices.reduce((all, r) => all * r, 1);
    let [source, s] = [first, 1];
    radices.forEach((r, stage) => {
      const m = n / (s * r);
      const { loops, place: p } = this.inRows(m);
      const q = this.counter(s);
      const tables = m === 1 ? [] : this.table(r - 1, m, r * m);
      const to = sinks(stage);
      const sink = typeof to === "function" ? to : this.sink(to);
      const read = (k: number): Complex => source(addIndex(varIndex(q), scaleIndex(addIndex(p, constIndex(m * k)), s)));
      const values = butterfly(
        Array.from({ length: r }, (_, k) => read(k)),
        sign,
      ).map((y, j) => (j === 0 || m === 1 ? y : this.turned(y, at(tables, j - 1), p, sign)));
      const place = (j: number): Index =>
        addIndex(varIndex(q), scaleIndex(addIndex(scaleIndex(p, r), constIndex(j)), s));
      this.map(
        [...loops, q],
        values.flatMap((y, j) => sink(place(j), y)),
      );
      if (typeof to !== "function") source = this.source(to);
      s *= r;
    });
  }

  /**
   * Stages between buffers, the first of which is stored to first. Says which buffer has the result.
   */
  inBuffers(radices: readonly number[], sign: Sign, source: Source, pair: readonly [Buffer, Buffer]): Buffer {
    this.run(radices, sign, source, (stage) => at(pair, stage % 2));
    return at(pair, (radices.length - 1) % 2);
  }
}
