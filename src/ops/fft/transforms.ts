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
import { constant, type Expr, type Index } from "../../kernel/expr.ts";
import { addIndex, constIndex, scaleIndex, varIndex } from "../../kernel/index-math.ts";
import * as scalar from "../../kernel/scalar-ops.ts";
import { guarded } from "../guard.ts";
import { addComplex, type Complex, mulComplex, type Sign, timesRoot } from "./butterfly.ts";
import { convolutionLength, radicesOf } from "./plan.ts";
import { type Root, remainderOf } from "./roots.ts";
import { type Buffer, type Sink, type Source, Stages } from "./stages.ts";

/** From where to where a transform goes. */
export interface Path {
  readonly source: Source;
  readonly sink: Sink;
}

/** Buffers that have room for all sequences of a transform. */
export interface Memory {
  readonly read?: Buffer | undefined;
  readonly other?: Buffer | undefined;
}

export class Transforms extends Stages {
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
    this.run(radices, sign, source, (stage) => {
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
    const zero: Complex = { re: this.zero, im: this.zero };
    const padded: Source = (place) =>
      guardedPlace(place, n, () => this.filled(timesRoot(source(place), chirp(place), sign)), zero);
    const spectrum = this.inBuffers(radices, sign, padded, pair);
    const rest = spectrum === pair[0] ? ([pair[1], pair[0]] as const) : pair;
    const read = this.source(spectrum);
    const filtered: Source = (place) => mulComplex(read(place), filter(place));
    const result = this.source(this.inBuffers(radices, sign > 0 ? -1 : 1, filtered, rest));
    const j = this.counter(n);
    this.map([j], sink(varIndex(j), timesRoot(result(varIndex(j)), chirp(varIndex(j)), sign)));
  }

  /** e^(πi·k²/n) for k < n: k² modulo 2n, by its digits so that no product leaves i32. */
  #chirp(n: number): (place: Index) => Root<Expr> {
    const table = this.fill(1, n, (_, k) => squareModulo(k, n), 2 * n);
    return (place) => table(0, place);
  }

  /** The transform of conj(c) around 0, over M: the same for all lines. */
  #filter(n: number, length: number, chirp: (place: Index) => Root<Expr>, sign: Sign): (place: Index) => Complex {
    const table = (elements: number): number => this.workspace.table(elements);
    const workspace = { table, plane: (elements: number) => ({ operand: table(elements), offset: 0 }) };
    const one = new Transforms(this.dtype, { outer: [], inner: [] }, workspace);
    one.names = this.names;
    const conj = ({ cos, sin }: Root<Expr>): Complex => ({
      re: scalar.mul(cos, 1 / length),
      im: scalar.mul(sin, (sign > 0 ? -1 : 1) / length),
    });
    const zero: Complex = { re: this.zero, im: this.zero };
    // ends of the circle: k from 0 up, and from M down
    const around: Source = (place) => {
      const back = addIndex(constIndex(length), scaleIndex(place, -1));
      const low = guardedPlace(place, n, () => conj(chirp(place)), zero);
      const high = guardedPlace(back, n, () => conj(chirp(back)), zero);
      return addComplex(low, high);
    };
    const pair = [one.buffer(length), one.buffer(length)] as const;
    const found = one.source(one.inBuffers(radicesOf(length) as readonly number[], sign, around, pair));
    this.tables.push(...one.tables, ...one.nests);
    this.names = one.names;
    return found;
  }
}

/** `then` at places below `to`, else another number. */
export function guardedPlace(index: Index, to: number, then: () => Complex, otherwise: Complex): Complex {
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
