/**
 * @file Loop counters, indices and addresses in generated code: the lower half of emitting expressions. Loads that are
 * linear in the counter of the innermost loop walk a pointer instead of recomputing the address, and bounds that a loop
 * does not change are computed before it.
 */
import { InternalError } from "../../base/invariant.ts";
import { bytesOf, type DType } from "../../kernel/dtype.ts";
import type { Bound, Expr, Index, LoopVar } from "../../kernel/expr.ts";
import { operandsOf, walkExpr } from "../../kernel/expr.ts";
import { asExpr } from "../../kernel/loops.ts";
import { laneStep } from "../cpu/lanes.ts";
import { ACCUMULATOR, Interner, linearCoefficient } from "../intern.ts";
import type { Code } from "./encoder.ts";
import { OP } from "./encoder.ts";

export interface Context {
  readonly shift: number;
  readonly single: boolean;
  /** Under a guard addresses may be out of range in other lanes, so no offset is left to the load instruction. */
  readonly guarded: boolean;
}

export const VECTOR: Context = { shift: 0, single: false, guarded: false };
export const SINGLE: Context = { shift: 0, single: true, guarded: false };

/** Locals of a function that threads share: the units that it computes, and the number of its thread. */
export interface Share {
  readonly lo: number;
  readonly hi: number;
  readonly thread: number;
}

/** The local that holds the address of an operand's element number `offset`. */
export type AddressLocal = (operand: number, offset: number) => number;

interface Pointer {
  readonly local: number;
  /** Bytes to go on per unit of the inner counter. */
  readonly step: number;
}

export abstract class AddressEmitter {
  readonly code: Code;
  readonly interner: Interner = new Interner();
  /** Lanes of a register in this nest: 4, or 2 when 64-bit types occur. */
  readonly lanes: 4 | 2;
  /** Locals of the loop counters. */
  readonly vars: Map<LoopVar, number> = new Map();
  vec: LoopVar | null = null;
  /** A known divisor of `vec` in lane 0: 1, or `lanes` where the loop goes register by register. */
  multiple = 1;
  /** Null where one thread computes everything. */
  readonly share: Share | null;
  readonly #addressLocal: AddressLocal;
  #pointers = new Map<string, Pointer>();
  /** Locals that hold whether bounds are met, for bounds that a loop does not change. */
  #bounds = new Map<string, number>();

  constructor(code: Code, lanes: 4 | 2, addressLocal: AddressLocal, share: Share | null = null) {
    this.code = code;
    this.lanes = lanes;
    this.#addressLocal = addressLocal;
    this.share = share;
  }

  /** Leaves the value of an expression on the stack: run-time indices need it. */
  abstract emit(expr: Expr, ctx: Context): void;

  /** Runs `body`; pointers and bounds that it makes known are forgotten afterwards. */
  scope(body: () => void): void {
    const [pointers, bounds] = [this.#pointers, this.#bounds];
    this.#pointers = new Map(pointers);
    this.#bounds = new Map(bounds);
    body();
    this.#pointers = pointers;
    this.#bounds = bounds;
  }

  /** The same in all lanes. */
  protected isUniform(expr: Expr): boolean {
    const vars = this.interner.of(expr);
    return !vars.has(ACCUMULATOR) && (!this.vec || !vars.has(this.vec));
  }

  /** How much an index grows from lane to lane, or null where that is not even. */
  stepOf(index: Index): number | null {
    return laneStep(index, { counters: this.interner, vec: this.vec, multiple: this.multiple, lanes: this.lanes });
  }

  /**
   * Makes pointers for all loads (and the given stores) that are linear in `inner`; counters must hold their start. A
   * load that is not linear in the lanes gets a pointer for each lane of the contexts, if any are given.
   */
  preparePointers(
    roots: readonly Expr[],
    stores: readonly { operand: number; index: Index; storage: DType }[],
    inner: LoopVar | null,
    contexts: readonly Context[] = [],
  ): void {
    const add = (operand: number, index: Index, storage: DType): void => {
      const key = this.#accessKey(operand, index);
      const coef = linearCoefficient(this.interner, index, inner);
      if (coef === null) return;
      const even = linearCoefficient(this.interner, index, this.vec) !== null;
      for (const lane of even ? [null] : this.lanesOf(contexts)) {
        const name = lane === null ? key : `${key}#${lane}`;
        if (this.#pointers.has(name)) continue;
        const local = this.code.local("i32");
        this.#emitFullAddress(operand, index, storage, { ...SINGLE, shift: lane ?? 0 });
        this.code.set(local);
        this.#pointers.set(name, { local, step: coef * bytesOf(storage) });
      }
    };
    const seen = new Set<Expr>();
    const isSafe = this.#safeAhead(roots);
    for (const root of roots) {
      walkExpr(
        root,
        (e) => {
          if (e.kind === "load" && !this.isUniform(e) && isSafe(e.index)) add(e.operand, e.index, e.storage);
        },
        seen,
      );
    }
    for (const store of stores) add(store.operand, store.index, store.storage);
  }

  /**
   * Tells indices that may be computed ahead of a loop: those without run-time values that are read inside of a guard alone.
   * Where the guard does not hold, there need be nothing to read at their places.
   */
  #safeAhead(roots: readonly Expr[]): (index: Index) => boolean {
    const unguarded = new Set<number>();
    const visit = (expr: Expr): void => {
      const id = this.interner.id(expr);
      if (unguarded.has(id)) return;
      unguarded.add(id);
      for (const operand of operandsOf(expr)) if (expr.kind !== "guard" || operand !== expr.then) visit(operand);
    };
    roots.forEach(visit);
    return (index) => operandsOf(asExpr(index)).every((value) => unguarded.has(this.interner.id(value)));
  }

  /** Distances from the vector counter that the contexts cover. */
  protected lanesOf(contexts: readonly Context[]): readonly number[] {
    return contexts.flatMap(({ shift, single }) =>
      Array.from({ length: single ? 1 : this.lanes }, (_, lane) => shift + lane),
    );
  }

  /** Works out ahead of a loop which guards hold, where the loop's counter does not matter. */
  hoistBounds(roots: readonly Expr[], inner: LoopVar, contexts: readonly Context[]): void {
    const seen = new Set<Expr>();
    const isSafe = this.#safeAhead(roots);
    for (const root of roots) {
      walkExpr(
        root,
        (e) => {
          if (e.kind !== "guard" || !e.bounds.every((b) => isSafe(b.index))) return;
          if (e.bounds.some((b) => this.interner.ofIndex(b.index).has(inner))) return;
          for (const shift of this.lanesOf(contexts)) {
            const key = this.#boundsKey(e.bounds, shift);
            if (this.#bounds.has(key)) continue;
            this.emitBounds(e.bounds, { ...SINGLE, shift });
            const local = this.code.local("i32");
            this.code.set(local);
            this.#bounds.set(key, local);
          }
        },
        seen,
      );
    }
  }

  #boundsKey(bounds: readonly Bound[], shift: number): string {
    const uniform = bounds.every((b) => !this.vec || !this.interner.ofIndex(b.index).has(this.vec));
    return `${bounds.map((b) => `${this.interner.indexKey(b.index)}:${b.lo}:${b.hi}`).join()}@${uniform ? "" : shift}`;
  }

  /** Moves all pointers of this scope on by `count` iterations of the inner counter. */
  bumpPointers(count: number): void {
    for (const { local, step } of this.#pointers.values()) this.code.increment(local, step * count);
  }

  /** Forgets pointers, for a loop that makes its own. */
  dropPointers(): void {
    this.#pointers = new Map();
  }

  /** Leaves the index at lane 0 of the context on the stack as i32. */
  emitIndex(index: Index, ctx: Context): void {
    const { code } = this;
    let pushed = false;
    const plus = (): void => {
      if (pushed) code.op(OP.i32Add);
      pushed = true;
    };
    let offset = index.offset;
    for (const { atom, coef } of index.terms) {
      if (atom.kind === "var") {
        const local = this.vars.get(atom);
        if (local === undefined) throw new InternalError(`counter ${atom.name} is not in scope`);
        code.get(local);
        if (atom === this.vec) offset += coef * ctx.shift;
      } else if (atom.kind === "value") {
        this.emit(atom.expr, { ...ctx, single: true });
        code.simd("extract_i32", 0);
      } else {
        this.emitIndex(atom.of, ctx);
        emitDivMod(code, atom.kind, atom.by);
      }
      if (coef !== 1) code.i32Const(coef).op(OP.i32Mul);
      plus();
    }
    if (offset !== 0 || !pushed) {
      code.i32Const(offset);
      plus();
    }
  }

  #accessKey(operand: number, index: Index): string {
    return `${operand}:${this.interner.indexKey(index)}`;
  }

  #emitFullAddress(operand: number, index: Index, storage: DType, ctx: Context): void {
    const { code } = this;
    code.get(this.#addressLocal(operand, index.offset));
    const rest: Index = { ...index, offset: 0 };
    if (rest.terms.length === 0) return;
    this.emitIndex(rest, ctx);
    if (bytesOf(storage) > 1) code.i32Const(Math.log2(bytesOf(storage))).op(OP.i32Shl);
    code.op(OP.i32Add);
  }

  /** Leaves an address on the stack; returns what the instruction must add to it. */
  protected emitAddress(operand: number, index: Index, storage: DType, ctx: Context): number {
    const key = this.#accessKey(operand, index);
    const own = this.#pointers.get(`${key}#${ctx.shift}`);
    if (own) {
      this.code.get(own.local);
      return 0;
    }
    const pointer = this.#pointers.get(key);
    if (!pointer) {
      this.#emitFullAddress(operand, index, storage, ctx);
      return 0;
    }
    const coef = linearCoefficient(this.interner, index, this.vec) ?? 0;
    const ahead = coef * ctx.shift * bytesOf(storage);
    this.code.get(pointer.local);
    if (ahead >= 0 && !ctx.guarded) return ahead;
    if (ahead !== 0) this.code.i32Const(ahead).op(OP.i32Add);
    return 0;
  }

  /** Leaves 1 when all bounds hold at lane 0 of the context. */
  emitBounds(bounds: readonly Bound[], ctx: Context): void {
    const known = this.#bounds.get(this.#boundsKey(bounds, ctx.shift));
    if (known !== undefined) {
      this.code.get(known);
      return;
    }
    bounds.forEach((bound, i) => {
      // lo ≤ x < hi as one unsigned comparison
      this.emitIndex({ ...bound.index, offset: bound.index.offset - bound.lo }, ctx);
      this.code.i32Const(Math.max(0, bound.hi - bound.lo)).op(OP.i32LtU);
      if (i > 0) this.code.op(OP.i32And);
    });
    if (bounds.length === 0) this.code.i32Const(1);
  }
}

function emitDivMod(code: Code, kind: "div" | "mod", by: number): void {
  const log = Math.log2(by);
  if (Number.isInteger(log)) {
    if (kind === "div") code.i32Const(log).op(OP.i32ShrU);
    else code.i32Const(by - 1).op(OP.i32And);
  } else code.i32Const(by).op(kind === "div" ? OP.i32DivU : OP.i32RemU);
}
