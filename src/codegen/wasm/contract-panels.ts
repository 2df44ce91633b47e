/**
 * @file Packing for products on WebAssembly: panels of both sides, packed element by element from their expressions, of the part
 * of the depth where anything is added. contract.ts loops over them.
 *
 *   panel of MR rows   [depth][MR]          causal attention, rows r … r + MR: [begin, end) is 0 … r + MR,
 *   panel of NR cols   [depth][NR]          factors beyond it are zero, neither packed nor multiplied
 */
import { bytesOf } from "../../kernel/dtype.ts";
import type { Expr, LoopVar } from "../../kernel/expr.ts";
import { varIndex } from "../../kernel/index-math.ts";
import type { ContractNest } from "../../kernel/loops.ts";
import type { Needed } from "../needed-sums.ts";
import { type Context, SINGLE, VECTOR } from "./addresses.ts";
import { type Blocking, blockingOf } from "./blocking.ts";
import { OP } from "./encoder.ts";
import type { VectorEmitter } from "./vector.ts";

export interface ContractOptions {
  /** Number of the micro kernel's function. */
  readonly micro: number;
  readonly fma: boolean;
  /** Local with the address of the workspace. */
  readonly scratch: number;
}

/** Some rows and columns: a local with the first, and how many; all where not given. */
export interface Sides {
  readonly rows?: readonly [number, number];
  readonly cols?: readonly [number, number];
}

/** A constant, or a local. */
export type Limit = number | { readonly local: number };

export class ContractPanels {
  readonly em: VectorEmitter;
  readonly nest: ContractNest;
  readonly parts: ContractOptions;
  readonly block: Blocking;
  readonly width: number;
  readonly locals: Record<
    "ic" | "jc" | "pc" | "jr" | "ip" | "kcur" | "mend" | "nend" | "a" | "b" | "c" | "tile" | "dst" | "begin" | "end",
    number
  >;
  /** Locals with the part of the depth that has terms, where it is data; null elsewhere. */
  readonly span: readonly [from: number, to: number] | null;
  /** Terms of the depth are left out. */
  readonly skips: boolean;

  constructor(em: VectorEmitter, nest: ContractNest, parts: ContractOptions) {
    this.em = em;
    this.nest = nest;
    this.parts = parts;
    const extents = [nest.rows.extent, nest.cols.extent, nest.depth.extent] as const;
    this.block = blockingOf(nest.dtype, parts.fma, extents);
    this.width = bytesOf(nest.dtype);
    const i32 = (): number => em.code.local("i32");
    this.locals = {
      ic: i32(),
      jc: i32(),
      pc: i32(),
      jr: i32(),
      ip: i32(),
      kcur: i32(),
      mend: i32(),
      nend: i32(),
      a: i32(),
      b: i32(),
      c: i32(),
      tile: i32(),
      dst: i32(),
      begin: i32(),
      end: i32(),
    };
    this.span = nest.span ? [i32(), i32()] : null;
    this.skips = nest.within !== undefined || nest.span !== undefined;
  }

  /** Sets the span of the batch, whose counters have locals. */
  setSpan(): void {
    const { em, nest, span } = this;
    if (!nest.span || !span) return;
    em.vec = null;
    em.emitIndex(nest.span.from, SINGLE);
    em.code.set(span[0]);
    em.emitIndex(nest.span.to, SINGLE);
    em.code.set(span[1]);
  }

  /** for (local = from; local < to; local += step) body; from and to are constants or locals. */
  loop(local: number, [from, to]: readonly [Limit, Limit], step: number, body: () => void): void {
    const { code } = this.em;
    this.push(from);
    code.set(local);
    code.while(
      () => {
        code.get(local);
        this.push(to);
        code.op(OP.i32LtS);
      },
      () => {
        this.em.scope(body);
        code.increment(local, step);
      },
    );
  }

  push(value: Limit): void {
    if (typeof value === "number") this.em.code.i32Const(value);
    else this.em.code.get(value.local);
  }

  /** local = min(base + step, limit) */
  setMin(local: number, base: number, step: number, limit: Limit): void {
    const { code } = this.em;
    code.get(base).i32Const(step).op(OP.i32Add).tee(local);
    this.push(limit);
    code.op(OP.i32GtS);
    code.if(null, () => {
      this.push(limit);
      code.set(local);
    });
  }

  /** Leaves the address of the packed panel of the current rows on the stack. */
  pushPanel(): void {
    const { code } = this.em;
    const { locals } = this;
    code.get(locals.a).get(locals.ip).get(locals.ic).op(OP.i32Sub);
    code.get(locals.kcur).op(OP.i32Mul).i32Const(this.width).op(OP.i32Mul).op(OP.i32Add);
  }

  /**
   * Leaves the least on the stack that a plane comes to over some rows and columns, each side given by its first and how many,
   * or all of the product's tiles: those at the edge reach beyond it, and what is packed for all of them has to be there for
   * the last one too.
   */
  pushLeast(plane: Needed, sides: Sides): void {
    const { nest, block } = this;
    const { code } = this.em;
    const least = (coef: number, side: Sides["rows"], extent: number, step: number): void => {
      if (!side || coef === 0) code.i32Const(coef < 0 ? coef * (Math.ceil(extent / step) * step - 1) : 0);
      else {
        code.get(side[0]);
        if (coef < 0) code.i32Const(side[1] - 1).op(OP.i32Add);
        code.i32Const(coef).op(OP.i32Mul);
      }
    };
    least(plane.rows, sides.rows, nest.rows.extent, block.mr);
    least(plane.cols, sides.cols, nest.cols.extent, block.nr);
    code.op(OP.i32Add).i32Const(plane.constant).op(OP.i32Add);
  }

  /** [begin, end): the part of the depth block where factors of some rows and columns are not left out. */
  setRange(sides: Sides): void {
    const { nest, locals, span } = this;
    const { code } = this.em;
    if (!this.skips) return;
    code.get(locals.pc).tee(locals.begin).get(locals.kcur).op(OP.i32Add).set(locals.end);
    const narrow = (moved: number, bound: number): void => {
      code
        .get(bound)
        .get(moved)
        .op(moved === locals.end ? OP.i32LtS : OP.i32GtS);
      code.if(null, () => code.get(bound).set(moved));
    };
    if (span) narrow(locals.begin, span[0]);
    if (span) narrow(locals.end, span[1]);
    const bound = code.local("i32");
    for (const half of nest.within ?? []) {
      const { depth } = half;
      this.pushLeast(half, sides);
      code.set(bound);
      // depth · l ≤ -bound: l < 1 - bound, or l ≥ bound
      if (depth === 1) code.i32Const(1).get(bound).op(OP.i32Sub).set(bound);
      narrow(depth === 1 ? locals.end : locals.begin, bound);
    }
    // an empty range is [begin, begin)
    code.get(locals.begin).get(locals.end).op(OP.i32GtS);
    code.if(null, () => code.get(locals.pc).tee(locals.begin).set(locals.end));
  }

  /** Moves the address on the stack, of a panel of `count` lanes, to `begin`. */
  skip(count: number): void {
    const { locals, width } = this;
    if (!this.skips) return;
    const { code } = this.em;
    code.get(locals.begin).get(locals.pc).op(OP.i32Sub);
    code
      .i32Const(count * width)
      .op(OP.i32Mul)
      .op(OP.i32Add);
  }

  /** Packs [begin, end) of one panel of `count` lanes along `lane`, whose base is in a local, into dst: [depth][count]. */
  pack(expr: Expr, lane: LoopVar, base: number, count: number): void {
    const { em, locals, width } = this;
    const { code } = em;
    const extent = lane.extent;
    const ragged = extent % count !== 0;
    const across = extent === 1 ? this.single(lane) : lane;
    const bounds = [{ index: varIndex(across), lo: 0, hi: extent }];
    const zero: Expr = { kind: "const", dtype: expr.dtype, value: 0 };
    const safe: Expr = ragged ? { kind: "guard", dtype: expr.dtype, bounds, then: expr, otherwise: zero } : expr;
    em.scope(() => {
      em.vec = across;
      em.vars.set(across, base);
      const contexts: Context[] = [];
      for (let shift = 0; shift < count; ) {
        const whole = shift + em.lanes <= count;
        contexts.push(whole ? { ...VECTOR, shift } : { ...SINGLE, shift });
        shift += whole ? em.lanes : 1;
      }
      this.depthRuns((inner, iteration) => {
        em.countUses([safe]);
        em.dropPointers();
        em.hoistBounds([safe], inner, contexts);
        em.preparePointers([safe], [], inner, contexts);
        iteration(() => {
          em.scope(() => {
            for (const ctx of contexts) {
              code.get(locals.dst);
              em.emit(safe, ctx);
              const offset = ctx.shift * width;
              const bytes = (ctx.single ? 1 : em.lanes) * width;
              if (bytes === 16) code.memory("store", offset);
              else code.memory(bytes === 8 ? "store64_lane" : "store32_lane", offset, 0);
            }
          });
          em.bumpPointers(1);
          code.increment(locals.dst, count * width);
        });
      });
    });
  }

  /**
   * Walks [begin, end) of the depth block. With a split depth, run by run: `body` prepares for a run of the inner counter and then calls
   * `iteration` with the code for each element of it.
   */
  depthRuns(body: (inner: LoopVar, iteration: (each: () => void) => void) => void): void {
    const { em, nest, locals } = this;
    const { code } = em;
    const [depth, end] = [code.local("i32"), code.local("i32")];
    if (this.skips) code.get(locals.begin).set(depth).get(locals.end).set(end);
    else code.get(locals.pc).tee(depth).get(locals.kcur).op(OP.i32Add).set(end);
    if (!nest.split) {
      em.vars.set(nest.depth, depth);
      body(nest.depth, (each) => {
        code.while(
          () => code.get(depth).get(end).op(OP.i32LtS),
          () => {
            each();
            code.increment(depth, 1);
          },
        );
      });
      return;
    }
    const [outer, inner] = nest.split;
    const [first, second, stop] = [code.local("i32"), code.local("i32"), code.local("i32")];
    em.vars.set(outer, first);
    em.vars.set(inner, second);
    code.while(
      () => code.get(depth).get(end).op(OP.i32LtS),
      () =>
        em.scope(() => {
          // first = depth div run, second = depth mod run, stop = min(run, second + what is left of the block)
          code.get(depth).i32Const(inner.extent).op(OP.i32DivU).set(first);
          code.get(depth).i32Const(inner.extent).op(OP.i32RemU).set(second);
          code
            .get(second)
            .get(end)
            .op(OP.i32Add)
            .get(depth)
            .op(OP.i32Sub)
            .tee(stop)
            .i32Const(inner.extent)
            .op(OP.i32GtS);
          code.if(null, () => code.i32Const(inner.extent).set(stop));
          body(inner, (each) => {
            code.while(
              () => code.get(second).get(stop).op(OP.i32LtS),
              () => {
                each();
                code.increment(second, 1).increment(depth, 1);
              },
            );
          });
        }),
    );
  }

  /** A counter of extent one has no variable in indices; edges of a panel still need one to be tested against. */
  #singles = new Map<LoopVar, LoopVar>();
  single(v: LoopVar): LoopVar {
    let made = this.#singles.get(v);
    if (!made) {
      made = { kind: "var", name: `${v.name}_lane`, extent: 2 };
      this.#singles.set(v, made);
    }
    return made;
  }
}
