/**
 * @file Emits expressions as C over registers. One loop counter, `vec`, is in the lanes:
 *
 *   counter v        v+0 v+1 v+2 … v+15        one register of `lanes` elements
 *
 * A load whose index is linear in `vec` is one load (stride 1), a splat (stride 0) or one load a lane; anything else
 * computes an index for each lane. Every value is a named constant of C, so that none is computed twice; the compiler
 * keeps pointers and takes constants out of loops.
 *
 * Not all lanes need be meant: `Context` says how many from the first (the end of a row), or which by a mask (inside of a
 * guard). What is not meant is never loaded; it may be computed, on zeros, and is not stored.
 */
import { InternalError } from "../../base/invariant.ts";
import type { DType, ScalarType } from "../../kernel/dtype.ts";
import { type Bound, type Expr, type Index, type LoopVar, walkExpr } from "../../kernel/expr.ts";
import { rangeOf } from "../../kernel/index-math.ts";
import type { Operand, Store } from "../../kernel/loops.ts";
import { isEven, type LaneView, laneStep } from "../cpu/lanes.ts";
import {
  type Cluster,
  interleavedSources,
  type Load,
  loadClusters,
  memberSources,
  registerStarts,
  type Source,
  shufflesOf,
  spanOf,
} from "../cpu/strided.ts";
import { ACCUMULATOR, Interner } from "../intern.ts";
import type { CCode } from "./c-code.ts";
import { elementForm } from "./elements.ts";
import { vectorType } from "./options.ts";
import { constantText, scalarText } from "./scalar.ts";

/** The lanes that are meant. */
export interface Context {
  /** From the first; a constant of the code. */
  readonly count: number;
  /** Name of a mask, or all of `count`. */
  readonly mask: string | null;
}

/** The C name of the pointer to an operand's element number `offset`. */
export type PointerName = (operand: number, offset: number) => string;

const fitsI32 = (index: Index): boolean => {
  const [lo, hi] = rangeOf(index);
  return lo >= -0x80000000 && hi <= 0x7fffffff;
};

/** Expressions behind a guard that are written twice, for all lanes and for some, at most. */
const MOST_TWICE = 24;

export class VectorEmitter {
  readonly code: CCode;
  readonly interner: Interner = new Interner();
  readonly lanes: number;
  readonly pointer: PointerName;
  /** Of the kernel. */
  readonly operands: readonly Operand[];
  /** The counter in the lanes. */
  vec: LoopVar | null = null;
  /** A known divisor of it in lane 0: 1, or `lanes` where the loop goes register by register. */
  multiple = 1;
  /** C names of loop counters. */
  readonly vars: Map<LoopVar, string> = new Map();
  #known = new Map<number, string>();
  /** Of loads that step over memory, by their numbers. */
  #clusters = new Map<number, Cluster<Load>>();

  constructor(code: CCode, lanes: number, pointer: PointerName, operands: readonly Operand[]) {
    this.code = code;
    this.lanes = lanes;
    this.pointer = pointer;
    this.operands = operands;
  }

  /** All lanes. */
  get all(): Context {
    return { count: this.lanes, mask: null };
  }

  first(count: number): Context {
    return { count, mask: null };
  }

  type(dtype: ScalarType): string {
    return vectorType(dtype, this.lanes);
  }

  /** A block of C; values named in it are not reused after it. */
  block(head: string, body: () => void): void {
    const known = this.#known;
    this.#known = new Map(known);
    this.code.block(head, body);
    this.#known = known;
  }

  /** for (counter = 0; counter < extent; counter++); a counter that runs once is no loop. */
  loop(v: LoopVar, body: () => void): void {
    if (v.extent === 1) {
      body();
      return;
    }
    const name = this.counter(v);
    this.block(`for (idx ${name} = 0; ${name} < ${v.extent}; ${name}++)`, body);
  }

  loops(counters: readonly LoopVar[], body: () => void): void {
    const [first, ...rest] = counters;
    if (!first) body();
    else this.loop(first, () => this.loops(rest, body));
  }

  /** A new C name for a counter. */
  counter(v: LoopVar): string {
    const name = this.code.name(v.name);
    this.vars.set(v, name);
    return name;
  }

  /** Gives an expression a known value, e.g. the accumulator. */
  bind(expr: Expr, name: string): void {
    this.#known.set(this.interner.id(expr), name);
  }

  /** The C text of a value: a name or a constant. */
  emit(expr: Expr, ctx: Context): string {
    if (expr.kind === "const") return constantText(expr.dtype, expr.value, this.lanes);
    const id = this.interner.id(expr);
    const known = this.#known.get(id);
    if (known) return known;
    const name = this.#emitNew(expr, ctx);
    this.#known.set(id, name);
    return name;
  }

  /** Computes ahead of a loop what its counter does not change. */
  hoist(roots: readonly Expr[], inner: LoopVar, ctx: Context): void {
    const seen = new Set<number>();
    const visit = (expr: Expr): void => {
      const id = this.interner.id(expr);
      if (expr.kind === "const" || expr.kind === "acc" || seen.has(id)) return;
      seen.add(id);
      const vars = this.interner.of(expr);
      if (!vars.has(ACCUMULATOR) && !vars.has(inner)) this.emit(expr, ctx);
      else if (expr.kind === "call") expr.args.forEach(visit);
    };
    roots.forEach(visit);
  }

  /** Finds loads of a loop's body, or of what a guard lets through, that step over memory together. */
  findClusters(roots: readonly Expr[]): void {
    for (const cluster of loadClusters(roots, (index) => this.coefficient(index))) {
      for (const { access } of cluster.members) {
        const id = this.interner.id(access);
        if (!this.#clusters.has(id)) this.#clusters.set(id, cluster);
      }
    }
  }

  #emitNew(expr: Exclude<Expr, { kind: "const" }>, ctx: Context): string {
    switch (expr.kind) {
      case "load":
        return this.#load(expr, ctx);
      case "index":
        return this.#value("i32", this.#indexText(expr.index, ctx));
      case "call": {
        const texts = expr.args.map((arg) => this.emit(arg, ctx));
        return this.#value(expr.dtype, scalarText(expr, texts, this.lanes));
      }
      case "guard":
        return this.#guard(expr, ctx);
      case "acc":
        throw new InternalError("the accumulator has no value here");
    }
  }

  #value(dtype: ScalarType, text: string): string {
    const name = this.code.name("t");
    this.code.line(`const ${this.type(dtype)} ${name} = ${text};`);
    return name;
  }

  /** A register filled lane by lane; `each` gives the element for the lane named by its argument. */
  #byLane(dtype: ScalarType, ctx: Context, each: string): string {
    const name = this.code.name("t");
    const type = this.type(dtype);
    this.code.line(`${type} ${name} = {0};`);
    const when = ctx.mask ? `if (${ctx.mask}[l]) ` : "";
    this.code.line(`#pragma GCC unroll ${this.lanes}`);
    this.code.line(`for (int l = 0; l < ${ctx.count}; l++) ${when}${name}[l] = ${each};`);
    return name;
  }

  // ---- indices ------------------------------------------------------------------------------------------------------

  /** An index as C of type idx, without its constant offset where `bare`; at lane `lane` (a name), or lane 0. */
  index(index: Index, ctx: Context, lane: string | null = null, bare = false): string {
    const parts = index.terms.map(({ atom, coef }) => {
      const text = this.#atom(atom, ctx, lane);
      return coef === 1 ? text : `${coef} * ${text}`;
    });
    if ((index.offset !== 0 && !bare) || parts.length === 0) parts.push(String(bare ? 0 : index.offset));
    return parts.join(" + ");
  }

  #atom(atom: Index["terms"][number]["atom"], ctx: Context, lane: string | null): string {
    if (atom.kind === "var") {
      const name = this.vars.get(atom);
      if (name === undefined) throw new InternalError(`no counter ${atom.name} here`);
      return atom === this.vec && lane ? `(${name} + ${lane})` : name;
    }
    if (atom.kind === "value") return `(idx)${this.emit(atom.expr, ctx)}[${lane ?? 0}]`;
    const [word, suffix] = rangeOf(atom.of)[1] < 2 ** 32 ? ["u32", "u"] : ["u64", "ull"];
    const of = this.index(atom.of, ctx, lane);
    return `(idx)((${word})(${of}) ${atom.kind === "div" ? "/" : "%"} ${atom.by}${suffix})`;
  }

  /** How much an index grows from lane to lane, or null where that is not even. */
  coefficient(index: Index): number | null {
    return laneStep(index, this.#view);
  }

  get #view(): LaneView {
    return { counters: this.interner, vec: this.vec, multiple: this.multiple, lanes: this.lanes };
  }

  /** An index as a register of i32. */
  #indexText(index: Index, ctx: Context): string {
    const coef = this.coefficient(index);
    if (coef !== null) return `${this.type("i32")}_ramp((i32)(${this.index(index, ctx)}), ${coef})`;
    return this.#byLane("i32", ctx, `(i32)(${this.index(index, ctx, "l")})`);
  }

  /** Address of an element: pointer and index. */
  #place(operand: number, index: Index, ctx: Context, lane: string | null): readonly [string, string] {
    return [this.pointer(operand, index.offset), this.index(index, ctx, lane, true)];
  }

  // ---- loads and stores ---------------------------------------------------------------------------------------------

  #load(expr: Extract<Expr, { kind: "load" }>, ctx: Context): string {
    const { dtype, operand, index } = expr;
    const form = elementForm(expr.storage);
    const coef = this.coefficient(index);
    if (coef === 0) {
      const [base, at] = this.#place(operand, index, ctx, null);
      const element = form.lane(`${base}[${at}]`);
      return this.#value(
        dtype,
        `${this.type(dtype)}_of(${ctx.mask ? `${this.type("bool")}_any(${ctx.mask}) ? ${element} : 0` : element})`,
      );
    }
    if (coef === 1) {
      const [base, at] = this.#place(operand, index, ctx, null);
      const address = `${base} + (${at})`;
      const type = `${form.functions}x${this.lanes}`;
      if (ctx.mask) return this.#value(dtype, `${type}_load_where(${address}, ${ctx.mask})`);
      if (ctx.count < this.lanes) return this.#value(dtype, `${type}_load_first(${address}, ${ctx.count})`);
      return this.#value(dtype, `${type}_load(${address})`);
    }
    const cluster = this.#clusters.get(this.interner.id(expr));
    if (cluster && !ctx.mask && ctx.count > 1) return this.#loadCluster(expr, cluster, ctx);
    const [base, at] = this.#place(operand, index, ctx, "l");
    return this.#byLane(dtype, ctx, form.lane(`${base}[${at}]`));
  }

  /** Loads what memory has one after the other, and takes all members of a cluster out of it. */
  #loadCluster(expr: Load, cluster: Cluster<Load>, ctx: Context): string {
    const { lanes } = this;
    const [starts, elements] = [registerStarts(cluster, lanes, ctx.count), spanOf(cluster, ctx.count)];
    const [first] = cluster.members;
    const [base, at] = this.#place(expr.operand, first?.access.index ?? expr.index, ctx, null);
    const type = this.type(expr.dtype);
    const registers = starts.map((start) => {
      const address = `${base} + (${at}) + ${start}`;
      const left = elements - start;
      return this.#value(
        expr.dtype,
        left < lanes ? `${type}_load_first(${address}, ${left})` : `${type}_load(${address})`,
      );
    });
    for (const { access, distance } of cluster.members) {
      const sources = memberSources(starts, cluster.step, distance, lanes);
      this.#known.set(this.interner.id(access), this.#shuffled(expr.dtype, registers, sources));
    }
    return this.#known.get(this.interner.id(expr)) as string;
  }

  /** A register whose lanes come from several. */
  #shuffled(dtype: ScalarType, registers: readonly string[], sources: readonly Source[]): string {
    let before = registers[sources[0]?.[0] ?? 0] as string;
    for (const { first, second, lanes } of shufflesOf(sources, this.lanes)) {
      const from = first === "before" ? before : registers[first];
      before = this.#value(dtype, `__builtin_shufflevector(${from}, ${registers[second]}, ${lanes.join(", ")})`);
    }
    return before;
  }

  /** Stores the values of a cluster, by name in the order of its members, as memory has them one after the other. */
  storeCluster({ step, members }: Cluster<Store>, dtype: ScalarType, values: readonly string[], ctx: Context): void {
    const { lanes } = this;
    const [first] = members;
    if (!first) return;
    const [base, at] = this.#place(first.access.operand, first.access.index, ctx, null);
    for (let from = 0; from < step * ctx.count; from += lanes) {
      const value = this.#shuffled(dtype, values, interleavedSources(step, from, lanes));
      const left = step * ctx.count - from;
      const address = `${base} + (${at}) + ${from}`;
      const store = left < lanes ? `_store_first(${address}, ${value}, ${left});` : `_store(${address}, ${value});`;
      this.code.line(`${this.type(dtype)}${store}`);
    }
  }

  /** Stores a register that is known by name as elements of an operand's type. */
  store({ operand, index }: Pick<Store, "operand" | "index">, storage: DType, value: string, ctx: Context): void {
    const coef = this.coefficient(index);
    const form = elementForm(storage);
    const element = (lane: string): string => form.element(`${value}[${lane}]`);
    if (coef === 1 && ctx.count > 1) {
      const [base, at] = this.#place(operand, index, ctx, null);
      const all = ctx.count === this.lanes;
      const type = `${form.functions}x${this.lanes}`;
      this.code.line(`${type}_store${all ? "" : "_first"}(${base} + (${at}), ${value}${all ? "" : `, ${ctx.count}`});`);
      return;
    }
    if (ctx.count === 1 || coef === 0) {
      const [base, at] = this.#place(operand, index, ctx, null);
      this.code.line(`${base}[${at}] = ${element("0")};`);
      return;
    }
    const [base, at] = this.#place(operand, index, ctx, "l");
    this.code.line(`#pragma GCC unroll ${this.lanes}`);
    this.code.line(`for (int l = 0; l < ${ctx.count}; l++) ${base}[${at}] = ${element("l")};`);
  }

  // ---- guards -------------------------------------------------------------------------------------------------------

  /** Whether bounds hold, as a C condition; for bounds that are the same in all lanes, or asked for lane 0. */
  condition(bounds: readonly Bound[], ctx: Context): string {
    const parts = bounds.map(({ index, lo, hi }) => {
      const name = this.code.name("i");
      this.code.line(`const idx ${name} = ${this.index(index, ctx)};`);
      return `${lo} <= ${name} && ${name} < ${hi}`;
    });
    return parts.length === 0 ? "1" : parts.join(" && ");
  }

  #boundMask({ index, lo, hi }: Bound, ctx: Context): string {
    if (fitsI32(index) && lo >= -0x80000000 && hi <= 0x7fffffff) {
      const value = this.emit({ kind: "index", dtype: "i32", index }, ctx);
      return `(${value} >= ${lo}) & (${value} < ${hi})`;
    }
    const at = this.index(index, ctx, "l");
    return this.#byLane("bool", ctx, `-(${lo} <= ${at} && ${at} < ${hi})`);
  }

  #guard(expr: Extract<Expr, { kind: "guard" }>, ctx: Context): string {
    const out = this.code.name("t");
    const type = this.type(expr.dtype);
    if (expr.bounds.every((b) => isEven(b, this.#view))) {
      const holds = this.condition(expr.bounds, ctx);
      this.code.line(`${type} ${out};`);
      this.block(`if (${holds})`, () => this.code.line(`${out} = ${this.emit(expr.then, ctx)};`));
      this.block("else", () => this.code.line(`${out} = ${this.emit(expr.otherwise, ctx)};`));
      return out;
    }
    const bool = this.type("bool");
    const holds = this.#value("bool", expr.bounds.map((b) => this.#boundMask(b, ctx)).join(" & "));
    const meant = ctx.mask ?? (ctx.count < this.lanes ? `${bool}_first(${ctx.count})` : null);
    const side = (mask: string): Context => ({
      count: ctx.count,
      mask: this.#value("bool", meant ? `${mask} & ${meant}` : mask),
    });
    this.code.line(`${type} ${out};`);
    this.block("", () => {
      const other = hasLoads(expr.otherwise) ? side(`~${holds}`) : ctx;
      this.code.line(`${out} = ${this.emit(expr.otherwise, other)};`);
    });
    const whole = this.#clustersBehind(expr.then);
    if (whole) {
      // Most registers of a window are inside of its image: loads along memory, for all lanes at once.
      this.block(`if (${bool}_all(${meant ? `${holds} | ~${meant}` : holds}))`, () => {
        const outside = this.#clusters;
        this.#clusters = new Map(outside);
        this.findClusters([expr.then]);
        this.code.line(`${out} = ${this.emit(expr.then, ctx)};`);
        this.#clusters = outside;
      });
    }
    this.block(whole ? "else" : "", () => {
      const then = this.emit(expr.then, side(holds));
      this.code.line(`${out} = ${type}_pick(${holds}, ${then}, ${out});`);
    });
    return out;
  }

  /** Whether loads step over memory that are made wherever an expression is computed; not in large expressions. */
  #clustersBehind(expr: Expr): boolean {
    let count = 0;
    walkExpr(expr, () => (count += 1));
    return count <= MOST_TWICE && loadClusters([expr], (index) => this.coefficient(index)).length > 0;
  }
}

function hasLoads(expr: Expr): boolean {
  let found = false;
  walkExpr(expr, (e) => {
    if (e.kind === "load") found = true;
  });
  return found;
}
