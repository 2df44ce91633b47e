/**
 * @file Fourier transforms as maps that run one after the other: what a transform computes, in the order of arithmetic that all
 * targets keep.
 *
 * A transform of length n = r₁ · r₂ · … is as many stages (Stockham). Stage l has transforms of r = rₗ numbers, s = r₁ ⋯ rₗ₋₁ of them
 * finished before, and m left to do after it:
 *
 *   for p < m, q < s:   y[q + s (r p + j)] = e^(∓2πi·jp / (r m)) · Σ_k x[q + s (p + m k)] e^(∓2πi·jk/r)        all j < r at once
 *
 * Elements come out in order, and q is contiguous in what is read and written. Stages go back and forth between two buffers. The factors
 * are read from tables, which the first maps fill: those of p, or of its quotient and its remainder where it is long (plan.ts).
 *
 * Lengths with a great prime are a convolution with c_k = e^(∓πi·k²/n), of which 2jk = j² + k² - (j - k)² makes the transform:
 *
 *   y_j = c_j Σ_k (x_k c_k) · conj(c_(j-k))        by transforms of a length M ≥ 2n - 1 that has small factors
 *
 * Real sequences of even length n are transformed as n / 2 complex numbers x_(2k) + i·x_(2k+1); those of odd length as complex ones.
 */
import { at } from "../../base/invariant.ts";
import type { FloatScalar } from "../../kernel/dtype.ts";
import { constant, type Expr, type Index, type LoopVar, load } from "../../kernel/expr.ts";
import {
  addIndex,
  constIndex,
  divIndex,
  linearIndex,
  modIndex,
  scaleIndex,
  varIndex,
  ZERO,
} from "../../kernel/index-math.ts";
import { asExpr, type MapNest, type Store } from "../../kernel/loops.ts";
import * as scalar from "../../kernel/scalar-ops.ts";
import { guarded } from "../../ops/guard.ts";
import {
  addComplex,
  butterfly,
  type Complex,
  conjugate,
  mulComplex,
  type Sign,
  scaleComplex,
  subComplex,
  timesI,
  timesRoot,
} from "./butterfly.ts";
import { convolutionLength, radicesOf, tableRow } from "./plan.ts";
import { type Root, remainderOf, rootExpr } from "./roots.ts";

/** Where numbers are read: at a place of a sequence. */
export type Source = (place: Index) => Complex;

/** Where numbers are stored. */
export type Sink = (place: Index, value: Complex) => readonly Store[];
export type RealSink = (place: Index, value: Expr) => readonly Store[];

/** From where to where a transform goes. */
export interface Path {
  readonly source: Source;
  readonly sink: Sink;
}

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

/** Buffers that have room for all sequences of a transform. */
export interface Memory {
  readonly read?: Buffer | undefined;
  readonly other?: Buffer | undefined;
}

/** Where workspace comes from: tables, which are the same for all lines, and planes of the lines. */
export interface Workspace {
  table(elements: number): number;
  plane(elements: number): Plane;
}

/** The factor of elements that stand for themselves alone, and the memory of the result where it can be workspace. */
export interface RealOptions {
  readonly ends: number;
  readonly spare: Buffer | undefined;
}

const counter = (name: string, extent: number): LoopVar => ({ kind: "var", name, extent });
const product = (loops: readonly LoopVar[]): number => loops.reduce((n, v) => n * v.extent, 1);
const linear = (loops: readonly LoopVar[]): Index =>
  linearIndex(
    loops.map(varIndex),
    loops.map((v) => v.extent),
  );

/** A table of e^(2πi·t/circle) for t = step · (row · a + b): two short ones where a has more than one value. */
interface RootTable {
  readonly row: number;
  readonly inner: (b: Index) => Root<Expr>;
  readonly outer: ((a: Index) => Root<Expr>) | null;
}

export class Transforms {
  /** Maps that fill tables, and those of the lines, which read them. */
  readonly tables: MapNest[] = [];
  readonly nests: MapNest[] = [];
  readonly #dtype: FloatScalar;
  readonly #lines: Lines;
  readonly #workspace: Workspace;
  #names = 0;

  constructor(dtype: FloatScalar, lines: Lines, workspace: Workspace) {
    this.#dtype = dtype;
    this.#lines = lines;
    this.#workspace = workspace;
  }

  /** Workspace for sequences of a length in all lines. */
  buffer(length: number): Buffer {
    const plane = (): Plane => this.#workspace.plane(length * this.#count);
    return { planes: [plane(), plane()], length };
  }

  get #count(): number {
    return product([...this.#lines.outer, ...this.#lines.inner]);
  }

  /** Counters with names of their own: equal names would be equal counters. */
  #counter(extent: number): LoopVar {
    return counter(`f${this.#names++}`, extent);
  }

  #map(loops: readonly LoopVar[], stores: readonly Store[]): void {
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
      load(this.#dtype, plane.operand, this.#element(plane, length, place));
    return (place) => ({ re: part(re, place), im: part(im, place) });
  }

  sink({ planes, length }: Buffer): Sink {
    return (place, { re, im }) =>
      [re, im].map((value, p) => {
        const plane = at(planes, p);
        return { operand: plane.operand, index: this.#element(plane, length, place), value: value ?? this.#zero };
      });
  }

  get #zero(): Expr {
    return { kind: "const", dtype: this.#dtype, value: 0 };
  }

  // ---- tables -------------------------------------------------------------------------------------------------------

  /** A table of `rows` rows of `columns`: the roots of a circle at `turn` of row and column. */
  #fill(rows: number, columns: number, turn: (row: Expr, column: Expr) => Expr, circle: number) {
    const operand = this.#workspace.table(2 * rows * columns);
    const [row, column] = [this.#counter(rows), this.#counter(columns)];
    const { cos, sin } = rootExpr(turn(asExpr(varIndex(row)), asExpr(varIndex(column))), circle, this.#dtype);
    const element = addIndex(scaleIndex(varIndex(row), columns), varIndex(column));
    const part = (index: Index, plane: 0 | 1): Index => addIndex(index, constIndex(plane * rows * columns));
    const stores = [cos, sin].map((value, plane) => ({ operand, index: part(element, plane as 0 | 1), value }));
    this.tables.push({ kind: "map", loops: [row, column], stores });
    return (j: number, place: Index): Root<Expr> => {
      const index = addIndex(constIndex(j * columns), place);
      return { cos: load(this.#dtype, operand, part(index, 0)), sin: load(this.#dtype, operand, part(index, 1)) };
    };
  }

  /** For each j from 1 to `multiples`: e^(2πi·jp/circle) for p < extent. */
  #table(multiples: number, extent: number, circle: number, row = tableRow(extent)): readonly RootTable[] {
    const steps = (count: number, by: number) =>
      this.#fill(multiples, count, (j, p) => scalar.mul(scalar.add(j, 1), scalar.mul(p, by)), circle);
    const inner = steps(row, 1);
    const outer = row < extent ? steps(extent / row, row) : null;
    return Array.from({ length: multiples }, (_, j) => ({
      row,
      inner: (b: Index) => inner(j, b),
      outer: outer && ((a: Index) => outer(j, a)),
    }));
  }

  /** value · e^(±2πi·jp/circle) for p = row · a + b. */
  #turned(value: Complex, { row, inner, outer }: RootTable, place: Index, sign: Sign): Complex {
    const low = inner(modIndex(place, row));
    if (!outer) return timesRoot(value, low, sign);
    const high = outer(divIndex(place, row));
    const { re, im } = timesRoot({ re: high.cos, im: high.sin }, low, 1);
    return timesRoot(value, { cos: re as Expr, sin: im as Expr }, sign);
  }

  /** A counter in rows, so that places in tables are counters; and it as an index. */
  #inRows(extent: number): { readonly loops: readonly LoopVar[]; readonly place: Index } {
    const row = tableRow(extent);
    const [a, b] = [this.#counter(extent / row), this.#counter(row)];
    return { loops: [a, b], place: addIndex(scaleIndex(varIndex(a), row), varIndex(b)) };
  }

  // ---- transforms ---------------------------------------------------------------------------------------------------

  /**
   * The transform of sequences of a length with small factors. `sinks`: where each of so many stages stores, of which all but the last are
   * read by the next one.
   */
  #stages(radices: readonly number[], sign: Sign, first: Source, sinks: (stage: number) => Buffer | Sink): void {
    const n = radices.reduce((all, r) => all * r, 1);
    let [source, s] = [first, 1];
    radices.forEach((r, stage) => {
      const m = n / (s * r);
      const { loops, place: p } = this.#inRows(m);
      const q = this.#counter(s);
      const tables = m === 1 ? [] : this.#table(r - 1, m, r * m);
      const to = sinks(stage);
      const sink = typeof to === "function" ? to : this.sink(to);
      const read = (k: number): Complex => source(addIndex(varIndex(q), scaleIndex(addIndex(p, constIndex(m * k)), s)));
      const values = butterfly(
        Array.from({ length: r }, (_, k) => read(k)),
        sign,
      ).map((y, j) => (j === 0 || m === 1 ? y : this.#turned(y, at(tables, j - 1), p, sign)));
      const place = (j: number): Index =>
        addIndex(varIndex(q), scaleIndex(addIndex(scaleIndex(p, r), constIndex(j)), s));
      this.#map(
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
  #inBuffers(radices: readonly number[], sign: Sign, source: Source, pair: readonly [Buffer, Buffer]): Buffer {
    this.#stages(radices, sign, source, (stage) => at(pair, stage % 2));
    return at(pair, (radices.length - 1) % 2);
  }

  /**
   * Transforms sequences of length n from a source to a sink. The last stage reads `memory.read`, which the sink does not store to; the
   * one before it reads `memory.other`, which may be the sink's. Where they are not given there is workspace.
   */
  transform(n: number, sign: Sign, { source, sink }: Path, memory: Memory = {}): void {
    const radices = radicesOf(n);
    if (!radices) {
      this.#convolution(n, sign, { source, sink });
      return;
    }
    const last = radices.length - 1;
    const own = (given: Buffer | undefined): Buffer => (given ? { ...given, length: n } : this.buffer(n));
    const pair = [last > 0 ? own(memory.read) : null, last > 1 ? own(memory.other) : null] as const;
    this.#stages(radices, sign, source, (stage) => {
      return stage === last ? sink : (at(pair, (last - stage + 1) % 2) as Buffer);
    });
  }

  /** The same as a convolution (Bluestein). */
  #convolution(n: number, sign: Sign, { source, sink }: Path): void {
    const length = convolutionLength(n);
    const radices = radicesOf(length) as readonly number[];
    const chirp = this.#chirp(n);
    const filter = this.#filter(n, length, chirp, sign);
    const pair = [this.buffer(length), this.buffer(length)] as const;
    const zero: Complex = { re: this.#zero, im: this.#zero };
    const padded: Source = (place) =>
      guardedPlace(place, n, () => this.#filled(timesRoot(source(place), chirp(place), sign)), zero);
    const spectrum = this.#inBuffers(radices, sign, padded, pair);
    const rest = spectrum === pair[0] ? ([pair[1], pair[0]] as const) : pair;
    const read = this.source(spectrum);
    const filtered: Source = (place) => mulComplex(read(place), filter(place));
    const result = this.source(this.#inBuffers(radices, sign > 0 ? -1 : 1, filtered, rest));
    const j = this.#counter(n);
    this.#map([j], sink(varIndex(j), timesRoot(result(varIndex(j)), chirp(varIndex(j)), sign)));
  }

  #filled({ re, im }: Complex): Complex {
    return { re: re ?? this.#zero, im: im ?? this.#zero };
  }

  /** e^(πi·k²/n) for k < n: k² modulo 2n, by its digits so that no product leaves i32. */
  #chirp(n: number): (place: Index) => Root<Expr> {
    const table = this.#fill(1, n, (_, k) => squareModulo(k, n), 2 * n);
    return (place) => table(0, place);
  }

  /** The transform of conj(c) around 0, over M: the same for all lines. */
  #filter(n: number, length: number, chirp: (place: Index) => Root<Expr>, sign: Sign): (place: Index) => Complex {
    const table = (elements: number): number => this.#workspace.table(elements);
    const workspace = { table, plane: (elements: number) => ({ operand: table(elements), offset: 0 }) };
    const one = new Transforms(this.#dtype, { outer: [], inner: [] }, workspace);
    one.#names = this.#names;
    const conj = ({ cos, sin }: Root<Expr>): Complex => ({
      re: scalar.mul(cos, 1 / length),
      im: scalar.mul(sin, (sign > 0 ? -1 : 1) / length),
    });
    const zero: Complex = { re: this.#zero, im: this.#zero };
    // ends of the circle: k from 0 up, and from M down
    const around: Source = (place) => {
      const back = addIndex(constIndex(length), scaleIndex(place, -1));
      const low = guardedPlace(place, n, () => conj(chirp(place)), zero);
      const high = guardedPlace(back, n, () => conj(chirp(back)), zero);
      return addComplex(low, high);
    };
    const pair = [one.buffer(length), one.buffer(length)] as const;
    const found = one.source(one.#inBuffers(radicesOf(length) as readonly number[], sign, around, pair));
    this.tables.push(...one.tables, ...one.nests);
    this.#names = one.#names;
    return found;
  }

  // ---- real sequences -----------------------------------------------------------------------------------------------

  /** The first half of the transform of real sequences of length n, forward. `spare`: the memory of the result. */
  ofReal(n: number, source: (place: Index) => Expr, sink: Sink, { ends, spare }: RealOptions): void {
    if (n % 2 === 1) {
      this.#ofOdd(n, source, sink, ends);
      return;
    }
    const h = n / 2;
    const packed: Source = (place) => {
      const even = scaleIndex(place, 2);
      return { re: source(even), im: source(addIndex(even, constIndex(1))) };
    };
    // one more element, so that place h - k is there for k = 0
    const z = this.buffer(h + 1);
    this.transform(h, -1, { source: packed, sink: this.sink(z) }, { read: spare, other: z });
    const read = this.source(z);
    const { re, im } = this.#filled(read(ZERO));
    const edge = scaleComplex({ re: scalar.sub(re as Expr, im as Expr), im: null }, ends);
    this.#map([], [...this.sink(z)(constIndex(h), { re, im }), ...sink(constIndex(h), edge)]);
    const { loops, place } = this.#inRows(h);
    const table = at(this.#table(1, h, n), 0);
    const mirrored = conjugate(read(addIndex(constIndex(h), scaleIndex(place, -1))));
    const [even, odd] = [addComplex(read(place), mirrored), timesI(subComplex(read(place), mirrored), -1)];
    const sum = addComplex(even, this.#turned(odd, table, place, -1));
    this.#map(loops, sink(place, this.#endedBy([ends, n], place, scaleComplex(sum, 0.5))));
  }

  /** A number of the result, times a factor at place 0. */
  #endedBy([ends, n]: readonly [ends: number, n: number], place: Index, value: Complex): Complex {
    if (ends === 1) return value;
    const part = (own: Expr | null): Expr | null => {
      return own && guarded([{ index: place, lo: 1, hi: n }], () => own, scalar.mul(own, ends));
    };
    return { re: part(value.re), im: part(value.im) };
  }

  /** All of the transform but what its symmetry repeats. */
  #ofOdd(n: number, source: (place: Index) => Expr, sink: Sink, ends: number): void {
    const all = this.buffer(n);
    const complex: Source = (place) => ({ re: source(place), im: null });
    this.transform(n, -1, { source: complex, sink: this.sink(all) }, { other: all });
    const k = this.#counter((n + 1) / 2);
    this.#map([k], sink(varIndex(k), this.#endedBy([ends, n], varIndex(k), this.source(all)(varIndex(k)))));
  }

  /**
   * Real sequences of length n from the first half of their transform, not divided by n. The imaginary parts at 0, and at n / 2 for even
   * n, are not read.
   */
  toReal(n: number, half: Source, sink: RealSink, { ends, spare }: RealOptions): void {
    const zero: Complex = { re: this.#zero, im: this.#zero };
    const last = Math.floor(n / 2);
    const inside: Source = (place) => {
      const bounds = [{ index: place, lo: 1, hi: Math.ceil(n / 2) }];
      const re = half(place).re as Expr;
      const own = ends === 1 ? re : guarded(bounds, () => re, scalar.mul(re, ends));
      return { re: own, im: guarded(bounds, () => half(place).im as Expr, this.#zero) };
    };
    if (n % 2 === 1) {
      const whole: Source = (place) => {
        const mirrored = addIndex(constIndex(n), scaleIndex(place, -1));
        const second = guardedPlace(mirrored, last + 1, () => this.#filled(conjugate(half(mirrored))), zero);
        return guardedPlace(place, last + 1, () => inside(place), second);
      };
      this.transform(n, 1, { source: whole, sink: (place, { re }) => sink(place, re ?? this.#zero) });
      return;
    }
    const [first = 1] = radicesOf(last) ?? [];
    const table = at(this.#table(1, last, n, tableRow(last / first)), 0);
    const packed: Source = (place) => {
      const mirrored = conjugate(inside(addIndex(constIndex(last), scaleIndex(place, -1))));
      const [even, odd] = [addComplex(inside(place), mirrored), subComplex(inside(place), mirrored)];
      return addComplex(even, timesI(this.#turned(odd, table, place, 1), 1));
    };
    const pairs: Sink = (place, value) => {
      const { re, im } = this.#filled(value);
      const even = scaleIndex(place, 2);
      return [...sink(even, re as Expr), ...sink(addIndex(even, constIndex(1)), im as Expr)];
    };
    this.transform(last, 1, { source: packed, sink: pairs }, { other: spare });
  }
}

/** `then` at places below `to`, else another number. */
function guardedPlace(index: Index, to: number, then: () => Complex, otherwise: Complex): Complex {
  const bounds = [{ index, lo: 0, hi: to }];
  const value = then();
  const part = (name: "re" | "im"): Expr => guarded(bounds, () => value[name] as Expr, otherwise[name] as Expr);
  return { re: part("re"), im: part("im") };
}

/** k² modulo 2n for k < n, digit by digit of one factor, so that no product leaves i32. */
function squareModulo(k: Expr, n: number): Expr {
  const modulus = 2 * n;
  let bits = 1;
  while (modulus * 2 ** (bits + 1) <= 2 ** 30) bits += 1;
  let digits = 1;
  while (2 ** (bits * digits) < n) digits += 1;
  let rest: Expr = constant("i32", 0);
  for (let digit = digits - 1; digit >= 0; digit--) {
    const own = scalar.and(scalar.shrU(k, bits * digit), 2 ** bits - 1);
    rest = remainderOf(scalar.add(scalar.mul(rest, 2 ** bits), scalar.mul(k, own)), modulus);
  }
  return rest;
}
