/**
 * @file Products as WebAssembly: packed, register-blocked, cache-blocked. Both sides are packed element by element from
 * arbitrary expressions, so transposed sides, strided views, patches of an image (convolution) and elementwise work in
 * front of a product all cost only their packing; what follows a product runs on each tile while it is in cache.
 *
 *   for batch, column block (NC), row block (MC):
 *     for depth block (KC):
 *       pack A block  → panels of MR rows      ┌ MR ┐┌ MR ┐…   each panel [depth][MR]
 *       for each panel of NR columns:
 *         pack B panel                          [depth][NR]
 *         for each panel of MR rows: micro kernel → C tile
 *     stores over the finished tile
 *
 * A product whose depth fits one block keeps a single MR × NR tile; a deeper one keeps a block of MC × NC sums. Panels
 * and sums are the kernel's scratch operand, planned with everything else. Sums run along depth in order, so blocking
 * never changes a bit.
 *
 * Threads share the longer side in whole tiles, or batches where there are many, each with a workspace of its own.
 */
import { bytesOf } from "../../kernel/dtype.ts";
import type { Expr, LoopVar } from "../../kernel/expr.ts";
import { varIndex } from "../../kernel/index-math.ts";
import type { ContractNest, Operand } from "../../kernel/loops.ts";
import { Interner } from "../intern.ts";
import { type Needed, neededSums } from "../needed-sums.ts";
import { live, MANY_UNITS, product, UNDIVIDED, type Units } from "../units.ts";
import { type Context, type Share, SINGLE, VECTOR } from "./addresses.ts";
import { type Blocking, blockingOf, threadElements } from "./blocking.ts";
import { OP } from "./encoder.ts";
import type { VectorEmitter } from "./vector.ts";
import { emitCounters, emitSplit, emitStores, storeTargets } from "./walk.ts";

export interface ContractParts {
  /** Number of the micro kernel's function. */
  readonly micro: number;
  readonly fma: boolean;
  /** Local with the address of the workspace. */
  readonly scratch: number;
}

/** A constant, or a local. */
type Limit = number | { readonly local: number };

/** Which part of a batch's rows and columns is computed. */
interface Part {
  readonly rows: readonly [Limit, Limit];
  readonly cols: readonly [Limit, Limit];
}

class ContractEmitter {
  readonly em: VectorEmitter;
  readonly nest: ContractNest;
  readonly operands: readonly Operand[];
  readonly parts: ContractParts;
  readonly block: Blocking;
  readonly width: number;
  /** Where sums are read at all. */
  readonly needed: Needed | null;
  readonly locals: Record<
    "ic" | "jc" | "pc" | "jr" | "ip" | "kcur" | "mend" | "nend" | "a" | "b" | "c" | "tile" | "dst",
    number
  >;

  constructor(em: VectorEmitter, nest: ContractNest, operands: readonly Operand[], parts: ContractParts) {
    this.em = em;
    this.nest = nest;
    this.operands = operands;
    this.parts = parts;
    this.block = blockingOf(nest.dtype, parts.fma, nest.rows.extent, nest.cols.extent, nest.depth.extent);
    this.width = bytesOf(nest.dtype);
    this.needed = neededSums(new Interner(), nest);
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
    };
  }

  /** for (local = from; local < to; local += step) body; from and to are constants or locals. */
  loop(local: number, from: Limit, to: Limit, step: number, body: () => void): void {
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

  emit(): Units {
    const { em, nest } = this;
    this.workspace();
    if (em.share) return this.units(em.share);
    const whole: Part = { rows: [0, nest.rows.extent], cols: [0, nest.cols.extent] };
    emitCounters(em, live(nest.batch), () => this.part(whole));
    return UNDIVIDED;
  }

  /**
   * Units [lo, hi): tiles along the longer side, of one batch after the other; neighbours in a batch are computed together.
   *
   *   4 tiles a batch, units [3, 10):   tile 3 of batch 0 | tiles 0 … 3 of batch 1 | tiles 0 and 1 of batch 2
   */
  units(share: Share): Units {
    const { em, nest, block } = this;
    const { code } = em;
    const batch = live(nest.batch);
    const [m, n] = [nest.rows.extent, nest.cols.extent];
    const byRows = m >= n;
    const [extent, tile] = byRows ? [m, block.mr] : [n, block.nr];
    const each = product(batch) >= MANY_UNITS ? 1 : Math.ceil(extent / tile);
    const step = each === 1 ? extent : tile;
    const [unit, number, from, to] = [code.local("i32"), code.local("i32"), code.local("i32"), code.local("i32")];
    code.get(share.lo).set(unit);
    code.while(
      () => code.get(unit).get(share.hi).op(OP.i32LtU),
      () =>
        em.scope(() => {
          code.get(unit).i32Const(each).op(OP.i32DivU).set(number);
          emitSplit(em, number, batch);
          // from = unit − number · each tiles; to = min(from + (hi − unit) tiles, extent)
          code.get(unit).get(number).i32Const(each).op(OP.i32Mul).op(OP.i32Sub).i32Const(step).op(OP.i32Mul).set(from);
          code.get(share.hi).get(unit).op(OP.i32Sub).tee(to).i32Const(each).op(OP.i32GtS);
          code.if(null, () => code.i32Const(each).set(to));
          code.get(from).get(to).i32Const(step).op(OP.i32Mul).op(OP.i32Add).tee(to).i32Const(extent).op(OP.i32GtS);
          code.if(null, () => code.i32Const(extent).set(to));
          const some: Part["rows"] = [{ local: from }, { local: to }];
          this.part(byRows ? { rows: some, cols: [0, n] } : { rows: [0, m], cols: some });
          code.get(number).i32Const(1).op(OP.i32Add).i32Const(each).op(OP.i32Mul).set(unit);
        }),
    );
    return { count: each * product(batch), grain: 1 };
  }

  /** Addresses of the packed A block, the packed B panel and the sums: in this thread's part of the workspace. */
  workspace(): void {
    const { em, block, locals, width, parts } = this;
    const { code } = em;
    const [aElements, bElements] = block.scratch;
    code.get(parts.scratch);
    if (em.share) {
      code
        .get(em.share.thread)
        .i32Const(threadElements(block, width) * width)
        .op(OP.i32Mul)
        .op(OP.i32Add);
    }
    code
      .tee(locals.a)
      .i32Const(aElements * width)
      .op(OP.i32Add)
      .tee(locals.b);
    code
      .i32Const(bElements * width)
      .op(OP.i32Add)
      .set(locals.c);
  }

  /** A part of the product of one batch. */
  part({ rows, cols }: Part): void {
    const { em, nest, block, locals, width } = this;
    const { code } = em;
    const k = nest.depth.extent;
    this.loop(locals.jc, ...cols, block.nc, () => {
      this.setMin(locals.nend, locals.jc, block.nc, cols[1]);
      this.loop(locals.ic, ...rows, block.mc, () => {
        this.setMin(locals.mend, locals.ic, block.mc, rows[1]);
        if (!block.deep) {
          code.i32Const(0).set(locals.pc).i32Const(k).set(locals.kcur);
          this.depthBlock();
          return;
        }
        this.loop(locals.pc, 0, k, block.kc, () => {
          this.setMin(locals.kcur, locals.pc, block.kc, k);
          code.get(locals.kcur).get(locals.pc).op(OP.i32Sub).set(locals.kcur);
          this.depthBlock();
        });
        this.loop(locals.ip, { local: locals.ic }, { local: locals.mend }, block.mr, () => {
          this.tileAddress();
          this.finish({ local: locals.jc }, { local: locals.nend }, block.nc * width);
        });
      });
    });
  }

  /** Address of the row panel's sums at the first column of the block. */
  tileAddress(): void {
    const { code } = this.em;
    const { locals, block, width } = this;
    code
      .get(locals.c)
      .get(locals.ip)
      .get(locals.ic)
      .op(OP.i32Sub)
      .i32Const(block.nc * width)
      .op(OP.i32Mul)
      .op(OP.i32Add)
      .set(locals.tile);
  }

  /** Leaves the address of the packed panel of the current rows on the stack. */
  pushPanel(): void {
    const { code } = this.em;
    const { locals } = this;
    code.get(locals.a).get(locals.ip).get(locals.ic).op(OP.i32Sub);
    code.get(locals.kcur).op(OP.i32Mul).i32Const(this.width).op(OP.i32Mul).op(OP.i32Add);
  }

  depthBlock(): void {
    const { em, nest, block, locals } = this;
    const { code } = em;
    this.loop(locals.ip, { local: locals.ic }, { local: locals.mend }, block.mr, () => {
      this.pushPanel();
      code.set(locals.dst);
      this.pack(nest.a, nest.rows, locals.ip, block.mr);
    });
    this.loop(locals.jr, { local: locals.jc }, { local: locals.nend }, block.nr, () => {
      code.get(locals.b).set(locals.dst);
      this.pack(nest.b, nest.cols, locals.jr, block.nr);
      this.loop(locals.ip, { local: locals.ic }, { local: locals.mend }, block.mr, () => this.microTile());
    });
  }

  /** Packs one panel of `count` lanes along `lane`, whose base is in a local, into dst: [depth][count]. */
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
      this.depthRuns((inner, turn) => {
        em.countUses([safe]);
        em.dropPointers();
        em.hoistBounds([safe], inner, contexts);
        em.preparePointers([safe], [], inner, contexts);
        turn(() => {
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
   * Walks the depth block. With a split depth, run by run: `body` prepares for a run of the inner counter and then calls
   * `turn` with what happens at each element of it.
   */
  depthRuns(body: (inner: LoopVar, turn: (each: () => void) => void) => void): void {
    const { em, nest, locals } = this;
    const { code } = em;
    const [depth, end] = [code.local("i32"), code.local("i32")];
    code.get(locals.pc).tee(depth).get(locals.kcur).op(OP.i32Add).set(end);
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

  microTile(): void {
    const { em, block, locals, width, parts } = this;
    const { code } = em;
    const micro = (): void => {
      this.pushPanel();
      code.get(locals.b).get(locals.kcur).get(locals.tile);
      code.i32Const((block.deep ? block.nc : block.nr) * width);
      if (block.deep) code.get(locals.pc);
      else code.i32Const(0);
      code.call(parts.micro);
    };
    if (block.deep) {
      this.tileAddress();
      code
        .get(locals.tile)
        .get(locals.jr)
        .get(locals.jc)
        .op(OP.i32Sub)
        .i32Const(width)
        .op(OP.i32Mul)
        .op(OP.i32Add)
        .set(locals.tile);
      micro();
      return;
    }
    code.get(locals.c).set(locals.tile);
    if (this.needed) {
      this.pushNeeded(this.needed);
      code.if(null, micro);
    } else micro();
    const end = code.local("i32");
    this.setMin(end, locals.jr, block.nr, this.nest.cols.extent);
    this.finish({ local: locals.jr }, { local: end }, block.nr * width);
  }

  /** Whether any sum of the tile is read: the least that the plane comes to over it is 0 or less. */
  pushNeeded({ rows, cols, constant }: Needed): void {
    const { block, locals } = this;
    const { code } = this.em;
    const least = (coef: number, from: number, count: number): void => {
      code.get(from);
      if (coef < 0) code.i32Const(count - 1).op(OP.i32Add);
      code.i32Const(coef).op(OP.i32Mul);
    };
    least(rows, locals.ip, block.mr);
    least(cols, locals.jr, block.nr);
    code.op(OP.i32Add).i32Const(constant).op(OP.i32Add).i32Const(0).op(OP.i32LeS);
  }

  /** Runs the stores over rows [ip, min(ip+MR, m)) and the given columns, reading sums from `tile`. */
  finish(from: { local: number }, to: { local: number }, stride: number): void {
    const { em, nest, block, locals, width, operands } = this;
    const { code } = em;
    const [row, rowEnd, sums, col] = [code.local("i32"), code.local("i32"), code.local("i32"), code.local("i32")];
    const values = nest.stores.map((s) => s.value);
    const targets = storeTargets(nest.stores, operands);
    this.setMin(rowEnd, locals.ip, block.mr, nest.rows.extent);
    code.get(locals.tile).set(sums);
    this.loop(row, { local: locals.ip }, { local: rowEnd }, 1, () => {
      em.vec = nest.cols;
      em.vars.set(nest.rows, row);
      em.vars.set(nest.cols, col);
      em.dropPointers();
      code.get(from.local).set(col);
      em.countUses(values);
      em.preparePointers(values, targets, nest.cols.extent === 1 ? null : nest.cols);
      em.hoist(values, nest.cols, [VECTOR]);
      const at = code.local("i32");
      code.get(sums).set(at);
      const run = (ctx: Context, count: number): void => {
        code.while(
          () => {
            code.get(col).i32Const(count).op(OP.i32Add).get(to.local).op(OP.i32LeS);
          },
          () => {
            em.scope(() => {
              const acc = code.local("v128");
              code
                .get(at)
                .loadBytes(count * width, 0)
                .set(acc);
              em.bind({ kind: "acc", dtype: nest.dtype }, ctx, acc);
              emitStores(em, nest.stores, operands, ctx);
            });
            em.bumpPointers(count);
            code.increment(col, count).increment(at, count * width);
          },
        );
      };
      if (nest.cols.extent >= em.lanes) run(VECTOR, em.lanes);
      if (nest.cols.extent % em.lanes !== 0) run(SINGLE, 1);
      code.increment(sums, stride);
    });
  }
}

export function emitContract(
  em: VectorEmitter,
  nest: ContractNest,
  operands: readonly Operand[],
  parts: ContractParts,
): Units {
  if (nest.rows.extent === 0 || nest.cols.extent === 0 || nest.batch.some((v) => v.extent === 0)) return UNDIVIDED;
  return new ContractEmitter(em, nest, operands, parts).emit();
}
