/**
 * @file Emits expressions as vector code. One loop counter, `vec`, is in the lanes of a register; a context
 * says by how much the counter is shifted (unrolling) and whether only lane 0 matters (the last elements of a row).
 *
 *   counter v        v+0 v+1 v+2 v+3        one register, context { shift: 0 }
 *                    v+4 v+5 v+6 v+7        the next one,  context { shift: 4 }
 *
 * A load whose index is linear in `vec` is one vector load (stride 1), a splat (stride 0) or one load a lane with fixed
 * distances; anything else computes an address for each lane. Loads that are linear in the counter of the innermost
 * loop (`inner`) walk a pointer instead of recomputing the address.
 *
 * Values that do not depend on `vec` are the same in all lanes, in either mode. Invariant: no value is computed twice in
 * one scope; values computed under a guard are not reused after it.
 */
import { InternalError } from "../../base/invariant.ts";
import { bytesOf, type DType, laneBytes, typeOf } from "../../kernel/dtype.ts";
import { type Expr, type Index, type LoopVar, operandsOf } from "../../kernel/expr.ts";
import type { Store } from "../../kernel/loops.ts";
import {
  type Cluster,
  interleavedSources,
  type Load,
  loadClusters,
  memberSources,
  registerStarts,
  type Source,
  shufflesOf,
} from "../cpu/strided.ts";
import { ACCUMULATOR, linearCoefficient } from "../intern.ts";
import { AddressEmitter, type Context } from "./addresses.ts";
import { elementForm, storeElements } from "./elements.ts";
import { OP } from "./encoder.ts";
import { emitScalarFn, rampConstant, splatConstant } from "./scalar.ts";

export class VectorEmitter extends AddressEmitter {
  #cache = new Map<string, number>();
  #uses = new Map<number, number>();
  /** Of loads that step over memory, by their numbers. */
  #clusters = new Map<number, Cluster<Load>>();

  /** Runs `body`; values and pointers that it makes known are forgotten afterwards. */
  override scope(body: () => void): void {
    const [cache, uses, clusters] = [this.#cache, this.#uses, this.#clusters];
    this.#cache = new Map(cache);
    this.#uses = new Map(uses);
    this.#clusters = new Map(clusters);
    super.scope(body);
    this.#clusters = clusters;
    this.#cache = cache;
    this.#uses = uses;
  }

  /**
   * Counts uses, those in addresses and bounds too, so that shared values get a local. Call once with all expressions of a
   * loop body.
   */
  countUses(roots: readonly Expr[]): void {
    const seen = new Set<number>();
    const visit = (expr: Expr): void => {
      const id = this.interner.id(expr);
      this.#uses.set(id, (this.#uses.get(id) ?? 0) + 1);
      if (seen.has(id)) return;
      seen.add(id);
      operandsOf(expr).forEach(visit);
    };
    roots.forEach(visit);
  }

  /** Computes ahead of a loop what does not depend on its counter. */
  hoist(roots: readonly Expr[], inner: LoopVar, contexts: readonly Context[]): void {
    let seen = new Set<number>();
    const visit = (expr: Expr, ctx: Context): void => {
      const id = this.interner.id(expr);
      if (expr.kind === "const" || expr.kind === "acc" || seen.has(id)) return;
      seen.add(id);
      if (this.#isCached(expr, ctx)) return;
      const vars = this.interner.of(expr);
      if (!vars.has(ACCUMULATOR) && !vars.has(inner)) {
        this.emit(expr, ctx);
        const local = this.code.local("v128");
        this.code.set(local);
        this.#cache.set(this.#cacheKey(expr, ctx), local);
      } else if (expr.kind === "call") for (const arg of expr.args) visit(arg, ctx);
    };
    for (const ctx of contexts) {
      seen = new Set();
      for (const root of roots) visit(root, ctx);
    }
  }

  /** Finds loads of a loop's body, or of what a guard lets through, that step over memory together. */
  findClusters(roots: readonly Expr[]): void {
    for (const cluster of loadClusters(roots, (index) => this.stepOf(index))) {
      for (const { access } of cluster.members) {
        const id = this.interner.id(access);
        if (laneBytes(access.dtype) * this.lanes === 16 && !this.#clusters.has(id)) this.#clusters.set(id, cluster);
      }
    }
  }

  /** Gives an expression a known value, e.g. the accumulator. */
  bind(expr: Expr, ctx: Context, local: number): void {
    this.#cache.set(this.#cacheKey(expr, ctx), local);
  }

  #isCached(expr: Expr, ctx: Context): boolean {
    return this.#cache.has(this.#cacheKey(expr, ctx));
  }

  #cacheKey(expr: Expr, ctx: Context): string {
    const id = this.interner.id(expr);
    if (this.isUniform(expr)) return `${id}`;
    return `${id}@${ctx.shift}${ctx.single ? "s" : "v"}`;
  }

  /** Leaves the value on the stack. */
  emit(expr: Expr, ctx: Context): void {
    if (expr.kind === "const") {
      this.code.v128Const(splatConstant(expr.dtype, expr.value));
      return;
    }
    const key = this.#cacheKey(expr, ctx);
    const known = this.#cache.get(key);
    if (known !== undefined) {
      this.code.get(known);
      return;
    }
    this.#emitNew(expr, ctx);
    if ((this.#uses.get(this.interner.id(expr)) ?? 0) > 1) {
      const local = this.code.local("v128");
      this.code.tee(local);
      this.#cache.set(key, local);
    }
  }

  #emitNew(expr: Expr, ctx: Context): void {
    switch (expr.kind) {
      case "load":
        this.#emitLoad(expr, ctx);
        return;
      case "index":
        this.#emitIndexValue(expr.index, ctx);
        return;
      case "call":
        this.#emitCall(expr, ctx);
        return;
      case "guard":
        this.#emitGuard(expr, ctx);
        return;
      default:
        throw new InternalError(`${expr.kind} expression has no value here`);
    }
  }

  #emitCall(expr: Extract<Expr, { kind: "call" }>, ctx: Context): void {
    const { fn, args } = expr;
    const [first, second] = args;
    if (!first) throw new InternalError(`${fn} without arguments`);
    if (fn === "pick") {
      const [mask, a, b] = args as [Expr, Expr, Expr];
      this.emit(a, ctx);
      this.emit(b, ctx);
      this.emit(mask, ctx);
    } else if ((fn === "shl" || fn === "shr_u" || fn === "shr_s") && second?.kind === "const") {
      this.emit(first, ctx);
      this.code.i32Const(Number(second.value));
    } else if (fn === "shl" && second?.kind === "index") {
      this.#emitShift(first, second.index, ctx);
      return;
    } else for (const arg of args) this.emit(arg, ctx);
    emitScalarFn(this.code, fn, fn === "pick" ? expr.dtype : first.dtype, expr.dtype);
  }

  /** Registers are shifted by one number; by several, lane by lane. */
  #emitShift(word: Expr, count: Index, ctx: Context): void {
    const { code } = this;
    this.emit(word, ctx);
    if (ctx.single || this.stepOf(count) === 0) {
      this.emitIndex(count, ctx);
      code.simd("i32x4_shl");
      return;
    }
    const whole = code.local("v128");
    code.tee(whole);
    for (let lane = 0; lane < this.lanes; lane++) {
      code.get(whole).simd("extract_i32", lane);
      this.emitIndex(count, { ...ctx, shift: ctx.shift + lane, single: true });
      code.op(OP.i32Shl).simd("replace_i32", lane);
    }
  }

  #emitIndexValue(index: Index, ctx: Context): void {
    const coef = this.stepOf(index);
    if (ctx.single || coef !== null) {
      this.emitIndex(index, ctx);
      this.code.simd("splat_i32");
      if (coef && !ctx.single) this.code.v128Const(rampConstant(coef)).simd("i32x4_add");
      return;
    }
    this.code.v128Const(splatConstant("i32", 0));
    for (let lane = 0; lane < this.lanes; lane++) {
      this.emitIndex(index, { ...ctx, shift: ctx.shift + lane, single: true });
      this.code.simd("replace_i32", lane);
    }
  }

  // ---- loads and stores -------------------------------------------------------------------------------------------

  #emitLoad(expr: Load, ctx: Context): void {
    const { code } = this;
    const { operand, index, storage } = expr;
    const form = elementForm(storage);
    const coef = this.stepOf(index);
    if (coef === 0) {
      form.loadSplat(code, this.emitAddress(operand, index, storage, ctx));
      return;
    }
    if (ctx.single || coef === 1) {
      form.loadDense(code, this.emitAddress(operand, index, storage, ctx), ctx.single ? 1 : this.lanes);
      return;
    }
    const cluster = this.#clusters.get(this.interner.id(expr));
    if (cluster) {
      this.#loadCluster(expr, cluster, ctx);
      return;
    }
    const out = code.local("v128");
    code.v128Const(splatConstant("i32", 0)).set(out);
    for (let lane = 0; lane < this.lanes; lane++) {
      const offset = this.emitAddress(operand, index, storage, { ...ctx, shift: ctx.shift + lane, single: true });
      form.loadLane(code.get(out), offset, lane);
      code.set(out);
    }
    form.widen(code.get(out));
  }

  /** Loads what memory has one after the other, takes all members of a cluster out of it, and leaves one of them. */
  #loadCluster(expr: Load, cluster: Cluster<Load>, ctx: Context): void {
    const { code, lanes } = this;
    const starts = registerStarts(cluster, lanes);
    const [first] = cluster.members;
    const form = elementForm(expr.storage);
    const registers = starts.map((start) => {
      const offset = this.emitAddress(expr.operand, first?.access.index ?? expr.index, expr.storage, ctx);
      form.loadDense(code, offset + start * bytesOf(expr.storage), lanes);
      const local = code.local("v128");
      code.set(local);
      return local;
    });
    for (const { access, distance } of cluster.members) {
      this.#emitShuffled(registers, memberSources(starts, cluster.step, distance, lanes));
      const local = code.local("v128");
      code.set(local);
      this.#cache.set(this.#cacheKey(access, ctx), local);
    }
    code.get(this.#cache.get(this.#cacheKey(expr, ctx)) as number);
  }

  /** Leaves a register whose lanes come from several. */
  #emitShuffled(registers: readonly number[], sources: readonly Source[]): void {
    const { code } = this;
    const width = 16 / this.lanes;
    const shuffles = shufflesOf(sources, this.lanes);
    if (shuffles.length === 0) code.get(registers[sources[0]?.[0] ?? 0] as number);
    for (const { first, second, lanes } of shuffles) {
      if (first !== "before") code.get(registers[first] as number);
      code.get(registers[second] as number);
      code.shuffle(lanes.flatMap((lane) => Array.from({ length: width }, (_, byte) => lane * width + byte)));
    }
  }

  /** Stores the values of a cluster, in locals in the order of its members, as memory has them one after the other. */
  emitStoreCluster({ step, members }: Cluster<Store>, storage: DType, values: readonly number[], ctx: Context): void {
    const { code, lanes } = this;
    const [first] = members;
    if (!first) return;
    for (let r = 0; r < step; r++) {
      const offset = this.emitAddress(first.access.operand, first.access.index, storage, ctx);
      this.#emitShuffled(values, interleavedSources(step, r * lanes, lanes));
      storeElements(code, storage, { lane: 0, count: lanes }, offset + r * lanes * bytesOf(storage));
    }
  }

  /** Stores the register in `local` as elements of an operand's type. */
  emitStore({ operand, index }: Pick<Store, "operand" | "index">, storage: DType, local: number, ctx: Context): void {
    const { code } = this;
    const form = elementForm(storage);
    const coef = this.stepOf(index);
    if (ctx.single || coef === 1) {
      const offset = this.emitAddress(operand, index, storage, ctx);
      form.narrow(code, local);
      storeElements(code, storage, { lane: 0, count: ctx.single ? 1 : this.lanes }, offset);
      return;
    }
    let stored = local;
    if (!typeOf(storage).plain) {
      form.narrow(code, local);
      stored = code.local("v128");
      code.set(stored);
    }
    for (let lane = 0; lane < this.lanes; lane++) {
      const offset = this.emitAddress(operand, index, storage, { ...ctx, shift: ctx.shift + lane, single: true });
      storeElements(code.get(stored), storage, { lane, count: 1 }, offset);
    }
  }

  // ---- guards -----------------------------------------------------------------------------------------------------

  #emitGuard(expr: Extract<Expr, { kind: "guard" }>, ctx: Context): void {
    const { code } = this;
    const inner: Context = { ...ctx, guarded: true };
    const uniform = expr.bounds.every((b) => linearCoefficient(this.interner, b.index, this.vec) === 0);
    const branch = (e: Expr, c: Context): void => this.scope(() => this.emit(e, c));
    if (ctx.single || uniform) {
      this.emitBounds(expr.bounds, ctx);
      code.if(
        "v128",
        () => branch(expr.then, inner),
        () => branch(expr.otherwise, ctx),
      );
      return;
    }
    const lanewise = (): void => this.#emitLanewise(expr, inner);
    // With bounds linear in the lane, both ends inside means all inside.
    if (!expr.bounds.every((b) => linearCoefficient(this.interner, b.index, this.vec) !== null)) {
      lanewise();
      return;
    }
    this.emitBounds(expr.bounds, ctx);
    this.emitBounds(expr.bounds, { ...ctx, shift: ctx.shift + this.lanes - 1 });
    code.op(OP.i32And);
    code.if(
      "v128",
      () =>
        this.scope(() => {
          this.findClusters([expr.then]);
          this.emit(expr.then, inner);
        }),
      () => this.scope(lanewise),
    );
  }

  #emitLanewise(expr: Extract<Expr, { kind: "guard" }>, ctx: Context): void {
    const { code } = this;
    const out = code.local("v128");
    this.scope(() => this.emit(expr.otherwise, ctx));
    code.set(out);
    for (let lane = 0; lane < this.lanes; lane++) {
      const one: Context = { shift: ctx.shift + lane, single: true, guarded: true };
      this.emitBounds(expr.bounds, one);
      code.if(null, () => this.scope(() => this.#emitInLane(expr, one, lane, out)));
    }
    code.get(out);
  }

  /** Puts what is guarded into one lane of a register. */
  #emitInLane({ then, dtype }: Extract<Expr, { kind: "guard" }>, one: Context, lane: number, out: number): void {
    const { code } = this;
    if (then.kind === "load" && typeOf(then.storage).plain && !this.#isCached(then, one)) {
      const offset = this.emitAddress(then.operand, then.index, then.storage, one);
      elementForm(then.storage).loadLane(code.get(out), offset, lane);
      code.set(out);
      return;
    }
    code.get(out);
    this.emit(then, one);
    code.shuffle(insertLane(lane, laneBytes(dtype))).set(out);
  }
}

/** Shuffle that puts lane 0 of the second register into a lane of the first. */
function insertLane(lane: number, bytes: number): number[] {
  return Array.from({ length: 16 }, (_, i) => (Math.floor(i / bytes) === lane ? 16 + (i % bytes) : i));
}
