/**
 * @file The statements of a phase as text, for languages that look like C. How a language writes types, constants and scalar
 * functions is its dialect; what a phase is in it (a loop over threads in C, straight code and a barrier in CUDA) is its
 * printer's:
 *
 *   StatementPrinter ── dialect ──→ const f32 t_7 = f32_max(t_5, 0.0f);
 *                    ── place ────→ memory 4, element i:  s_2[i]   m_4[thread][i]
 *
 * Every value is a named constant, so that none is computed twice within a statement. Values do not outlive their statement:
 * the next one may read what this one has stored. Compilers take equal arithmetic and constants out of loops by themselves.
 */
import { at, InternalError } from "../../base/invariant.ts";
import type { DType, ScalarType } from "../../kernel/dtype.ts";
import type { Bound, Expr, Index, LoopVar } from "../../kernel/expr.ts";
import { rangeOf } from "../../kernel/index-math.ts";
import { Interner } from "../intern.ts";
import type { CCode } from "../native/c-code.ts";
import type { Element, Launch, Memory, Statement } from "./program.ts";
import type { ScalarCall } from "./scalar-text.ts";

/** How elements of a storage type are in memory. */
export interface ElementText {
  /** Type of an element. */
  readonly type: string;
  /** One element as a value of the compute type, and back. */
  value(element: string): string;
  element(value: string): string;
}

/** An index divided: `of` is not negative and at most `most`. */
export interface Quotient {
  readonly of: string;
  readonly sign: "/" | "%";
  readonly by: number;
  readonly most: number;
}

/** A copy of neighbours: the places of the first ones. */
export interface CopyText {
  readonly to: string;
  readonly from: string;
  readonly count: 2 | 4;
  readonly memories: { readonly to: Memory; readonly from: Memory };
}

/** A function of the language itself. */
export interface OwnCall {
  readonly name: string;
  readonly args: readonly Expr[];
}

export interface Dialect {
  readonly types: Readonly<Record<ScalarType, string>>;
  /** Type of indices and counters. */
  readonly index: string;
  element(dtype: DType): ElementText;
  literal(dtype: ScalarType, value: number | bigint): string;
  apply(call: ScalarCall, texts: readonly string[]): string;
  /** The function of the language that an expression is computed by, or null where it is computed as it is written. */
  ownCall(expr: Expr): OwnCall | null;
  /** a · b + c, rounded once. */
  fma(dtype: ScalarType, a: string, b: string, c: string): string;
  quotient(quotient: Quotient): string;
  /** An index as i32, and an i32 as an index. */
  readonly convert: { toWord(index: string): string; toIndex(word: string): string };
  constant(type: string, name: string, text: string): string;
  variable(type: string, name: string): string;
  /** The lesser of two indices. */
  least(a: string, b: string): string;
  /** Head of a loop from 0. */
  loop(name: string, end: string): string;
  /** The line before a loop that is written out so often. */
  unroll(times: number): string | null;
  /** Whether a loop that is to be unrolled is written out here, so many statements in all. */
  writesOut(statements: number): boolean;
  /** A value that goes into a register or a local: compilers see where it is read again, as if it had never been stored. */
  held(value: Expr, text: string): string;
  /** The statement that writes an element, given as it is in memory. */
  assign(place: string, element: string): string;
  /** A copy as one statement, or null where it is one for each element. */
  copy(copy: CopyText): string | null;
}

/** Statements that a statement is once its unrolled loops are written out. */
function countOf(statement: Statement): number {
  if (!("body" in statement)) return 1;
  const inside = statement.body.reduce((count, inner) => count + countOf(inner), 0);
  return statement.kind === "for" && statement.unroll ? statement.counter.extent * inside : inside + 1;
}

/** The text of an element of a memory, as something to read or assign to. */
export type Place = (memory: number, index: string) => string;

interface Limited {
  readonly counter: LoopVar;
  readonly limit?: Index | undefined;
}

export class StatementPrinter {
  readonly #dialect: Dialect;
  readonly #code: CCode;
  readonly #launch: Launch;
  readonly #place: Place;
  readonly #interner = new Interner();
  /** Text of counters, by their names. */
  readonly #counters = new Map<string, string>();
  #known = new Map<number, string>();

  constructor(dialect: Dialect, code: CCode, launch: Launch, place: Place) {
    this.#dialect = dialect;
    this.#code = code;
    this.#launch = launch;
    this.#place = place;
  }

  /** A new name for a counter. */
  counter(v: LoopVar): string {
    const name = this.#code.name(v.name);
    this.#counters.set(v.name, name);
    return name;
  }

  /** Counters of blocks from the number of a block. */
  splitBlock(grid: readonly LoopVar[], block: string): void {
    let inner = 1;
    const most = grid.reduce((n, v) => n * v.extent, 1) - 1;
    for (const [i, v] of [...grid.entries()].reverse()) {
      const over = inner === 1 ? block : this.#dialect.quotient({ of: block, sign: "/", by: inner, most });
      const text = i === 0 ? over : this.#dialect.quotient({ of: over, sign: "%", by: v.extent, most });
      this.#code.line(this.#dialect.constant(this.#dialect.index, this.counter(v), text));
      inner *= v.extent;
    }
  }

  statements(list: readonly Statement[]): void {
    for (const statement of list) {
      this.#known = new Map();
      this.#statement(statement);
    }
  }

  /** A loop over a counter; `body` writes what is inside, and is told the counter's name. `pragma` stands right above it. */
  loop(over: Limited, body: (counter: string) => void, pragma: string | null = null): void {
    const end = this.end(over);
    const name = this.counter(over.counter);
    if (pragma !== null) this.#code.line(pragma);
    this.#code.block(this.#dialect.loop(name, end), () => body(name));
  }

  /** The number that a counter stays below. */
  end({ counter, limit }: Limited): string {
    this.#known = new Map();
    return limit ? this.#least(counter.extent, limit) : String(counter.extent);
  }

  #least(extent: number, limit: Index): string {
    const text = this.#constant(this.#dialect.index, "limit", this.index(limit));
    return rangeOf(limit)[1] <= extent ? text : this.#dialect.least(text, String(extent));
  }

  // ---- statements ---------------------------------------------------------------------------------------------------

  #statement(statement: Statement): void {
    switch (statement.kind) {
      case "store":
        this.#store(statement);
        return;
      case "fma":
        this.#fma(statement);
        return;
      case "copy":
        this.#copy(statement);
        return;
      case "for": {
        if (statement.unroll && this.#dialect.writesOut(countOf(statement))) {
          this.#writeOut(statement);
          return;
        }
        const times = statement.rolled ? 1 : statement.counter.extent;
        const pragma = statement.unroll || statement.rolled ? this.#dialect.unroll(times) : null;
        this.loop(statement, () => this.statements(statement.body), pragma);
        return;
      }
      case "if": {
        const condition = this.#condition(statement.bounds);
        this.#code.block(`if (${condition})`, () => this.statements(statement.body));
      }
    }
  }

  /** A loop as its body with a number in place of the counter, again and again. */
  #writeOut({ counter, body }: Extract<Statement, { kind: "for" }>): void {
    for (let i = 0; i < counter.extent; i++) {
      this.#counters.set(counter.name, String(i));
      this.statements(body);
    }
  }

  #memory(number: number): Memory {
    return at(this.#launch.memories, number);
  }

  #element({ operand, index }: Element): string {
    return this.#place(operand, this.index(index));
  }

  #store({ stores }: Extract<Statement, { kind: "store" }>): void {
    const values = stores.map(({ value }) => this.#emit(value));
    const places = stores.map((store) => this.#element(store));
    stores.forEach(({ operand, value }, i) => {
      const { dtype, scope } = this.#memory(operand);
      const { element } = this.#dialect.element(dtype);
      const isOwn = scope === "register" || scope === "local";
      const text = isOwn ? this.#dialect.held(value, at(values, i)) : at(values, i);
      this.#code.line(this.#dialect.assign(at(places, i), element(text)));
    });
  }

  #fma({ sum, a, b }: Extract<Statement, { kind: "fma" }>): void {
    const { dtype } = this.#memory(sum.operand);
    const place = this.#element(sum);
    const { value, element } = this.#dialect.element(dtype);
    const [left, right] = [this.#emit(a), this.#emit(b)];
    this.#code.line(this.#dialect.assign(place, element(this.#dialect.fma(a.dtype, left, right, value(place)))));
  }

  #copy({ to, from, count }: Extract<Statement, { kind: "copy" }>): void {
    const memories = { to: this.#memory(to.operand), from: this.#memory(from.operand) };
    const [target, source] = [this.#element(to), this.#element(from)];
    const whole = this.#dialect.copy({ to: target, from: source, count, memories });
    if (whole !== null) {
      this.#code.line(whole);
      return;
    }
    const [toIndex, fromIndex] = [this.index(to.index), this.index(from.index)];
    for (let i = 0; i < count; i++) {
      const next = (operand: number, index: string): string =>
        this.#place(operand, i === 0 ? index : `${index} + ${i}`);
      this.#code.line(`${next(to.operand, toIndex)} = ${next(from.operand, fromIndex)};`);
    }
  }

  // ---- indices ------------------------------------------------------------------------------------------------------

  /** An index as text; values that it depends on are computed before. */
  index(index: Index): string {
    const parts = index.terms.map(({ atom, coef }) => {
      const text = this.#atom(atom);
      return coef === 1 ? text : `${coef} * ${text}`;
    });
    if (index.offset !== 0 || parts.length === 0) parts.push(String(index.offset));
    return parts.join(" + ");
  }

  #atom(atom: Index["terms"][number]["atom"]): string {
    if (atom.kind === "var") {
      const name = this.#counters.get(atom.name);
      if (name === undefined) throw new InternalError(`no counter ${atom.name} here`);
      return name;
    }
    if (atom.kind === "value") return this.#dialect.convert.toIndex(this.#emit(atom.expr));
    const sign = atom.kind === "div" ? "/" : "%";
    return this.#dialect.quotient({ of: this.index(atom.of), sign, by: atom.by, most: rangeOf(atom.of)[1] });
  }

  /** Whether bounds hold; a side that the index cannot be on is not asked. */
  #condition(bounds: readonly Bound[]): string {
    const parts = bounds.flatMap(({ index, lo, hi }) => {
      const name = this.#constant(this.#dialect.index, "i", this.index(index));
      const [least, most] = rangeOf(index);
      if (lo + 1 === hi) return [`${name} == ${lo}`];
      return [...(least < lo ? [`${lo} <= ${name}`] : []), ...(most >= hi ? [`${name} < ${hi}`] : [])];
    });
    return parts.length === 0 ? "0 == 0" : parts.join(" && ");
  }

  // ---- values -------------------------------------------------------------------------------------------------------

  #constant(type: string, word: string, text: string): string {
    const name = this.#code.name(word);
    this.#code.line(this.#dialect.constant(type, name, text));
    return name;
  }

  /** A value: a name or a literal. */
  #emit(expr: Expr): string {
    if (expr.kind === "const") return this.#dialect.literal(expr.dtype, expr.value);
    const id = this.#interner.id(expr);
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const name = this.#emitNew(expr);
    this.#known.set(id, name);
    return name;
  }

  #emitNew(expr: Exclude<Expr, { kind: "const" }>): string {
    const type = this.#dialect.types[expr.dtype];
    switch (expr.kind) {
      case "load": {
        const text = this.#dialect.element(expr.storage).value(this.#element(expr));
        return this.#constant(type, "t", text);
      }
      case "index":
        return this.#constant(type, "t", this.#dialect.convert.toWord(this.index(expr.index)));
      case "call": {
        const own = this.#dialect.ownCall(expr);
        if (own) return this.#constant(type, "t", `${own.name}(${own.args.map((arg) => this.#emit(arg)).join(", ")})`);
        const texts = expr.args.map((arg) => this.#emit(arg));
        return this.#constant(type, "t", this.#dialect.apply(expr, texts));
      }
      case "guard":
        return this.#guard(expr);
      case "acc":
        throw new InternalError("a launch has no accumulator: schedules put a register in its place");
    }
  }

  #guard({ dtype, bounds, then, otherwise }: Extract<Expr, { kind: "guard" }>): string {
    const name = this.#code.name("t");
    const condition = this.#condition(bounds);
    this.#code.line(this.#dialect.variable(this.#dialect.types[dtype], name));
    const side = (head: string, value: Expr): void => {
      const known = this.#known;
      this.#known = new Map(known);
      this.#code.block(head, () => this.#code.line(`${name} = ${this.#emit(value)};`));
      this.#known = known;
    };
    side(`if (${condition})`, then);
    side("else", otherwise);
    return name;
  }
}
