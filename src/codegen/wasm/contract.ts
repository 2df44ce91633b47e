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
 * A product whose depth fits one block keeps a single MR × NR tile; a deeper one, and one so short that stores are much of
 * the work, keeps a block of MC × NC sums. Panels
 * and sums are the kernel's scratch operand, planned with everything else. Sums run along depth in order, so blocking
 * never changes a bit.
 *
 * Threads share the longer side in whole tiles, or batches where there are many, each with a workspace of its own.
 */
import type { ContractNest, Operand } from "../../kernel/loops.ts";
import { Interner } from "../intern.ts";
import { type Needed, neededSums } from "../needed-sums.ts";
import { live, MANY_UNITS, product, UNDIVIDED, type Units } from "../units.ts";
import type { Share } from "./addresses.ts";
import { threadElements } from "./blocking.ts";
import { emitFinish } from "./contract-finish.ts";
import { type ContractOptions, ContractPanels, type Limit } from "./contract-panels.ts";
import { emitCounters, emitSplit } from "./emit-loops.ts";
import { OP } from "./encoder.ts";
import type { VectorEmitter } from "./vector.ts";

/** Which part of a batch's rows and columns is computed. */
interface Part {
  readonly rows: readonly [Limit, Limit];
  readonly cols: readonly [Limit, Limit];
}

class ContractEmitter extends ContractPanels {
  readonly operands: readonly Operand[];
  /** Where sums are read at all. */
  readonly needed: Needed | null;

  constructor(em: VectorEmitter, nest: ContractNest, operands: readonly Operand[], parts: ContractOptions) {
    super(em, nest, parts);
    this.operands = operands;
    this.needed = neededSums(new Interner(), nest);
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
    this.setSpan();
    this.loop(locals.jc, cols, block.nc, () => {
      this.setMin(locals.nend, locals.jc, block.nc, cols[1]);
      this.loop(locals.ic, rows, block.mc, () => {
        this.setMin(locals.mend, locals.ic, block.mc, rows[1]);
        if (block.deep) {
          this.loop(locals.pc, [0, k], block.kc, () => {
            this.setMin(locals.kcur, locals.pc, block.kc, k);
            code.get(locals.kcur).get(locals.pc).op(OP.i32Sub).set(locals.kcur);
            this.depthBlock();
          });
        } else {
          code.i32Const(0).set(locals.pc).i32Const(k).set(locals.kcur);
          this.depthBlock();
        }
        if (!block.whole) return;
        this.loop(locals.ip, [{ local: locals.ic }, { local: locals.mend }], block.mr, () => {
          this.tileAddress();
          this.finish(locals.jc, locals.nend, block.nc * width);
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

  depthBlock(): void {
    const { em, nest, block, locals } = this;
    const { code } = em;
    this.loop(locals.ip, [{ local: locals.ic }, { local: locals.mend }], block.mr, () => {
      this.setRange({ rows: [locals.ip, block.mr] });
      this.pushPanel();
      this.skip(block.mr);
      code.set(locals.dst);
      this.pack(nest.a, nest.rows, locals.ip, block.mr);
    });
    this.loop(locals.jr, [{ local: locals.jc }, { local: locals.nend }], block.nr, () => {
      this.setRange({ cols: [locals.jr, block.nr] });
      code.get(locals.b);
      this.skip(block.nr);
      code.set(locals.dst);
      this.pack(nest.b, nest.cols, locals.jr, block.nr);
      this.loop(locals.ip, [{ local: locals.ic }, { local: locals.mend }], block.mr, () => this.microTile());
    });
  }

  /** Stores of the row panel's columns [from, to). Tiles begin at multiples of their width. */
  finish(from: number, to: number, stride: number): void {
    const { mr, nr } = this.block;
    emitFinish(this, this.operands, { from, to, stride, rows: mr, multiple: nr });
  }

  microTile(): void {
    const { em, block, locals, width, parts } = this;
    const { code } = em;
    const micro = (): void => {
      this.setRange({ rows: [locals.ip, block.mr], cols: [locals.jr, block.nr] });
      this.pushPanel();
      this.skip(block.mr);
      code.get(locals.b);
      this.skip(block.nr);
      if (this.skips) code.get(locals.end).get(locals.begin).op(OP.i32Sub);
      else code.get(locals.kcur);
      code.get(locals.tile);
      code.i32Const((block.whole ? block.nc : block.nr) * width);
      if (block.deep) code.get(locals.pc);
      else code.i32Const(0);
      code.call(parts.micro);
    };
    if (block.whole) {
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
    } else code.get(locals.c).set(locals.tile);
    if (this.needed && !block.deep) {
      this.pushNeeded(this.needed);
      code.if(null, micro);
    } else micro();
    if (block.whole) return;
    const end = code.local("i32");
    this.setMin(end, locals.jr, block.nr, this.nest.cols.extent);
    this.finish(locals.jr, end, block.nr * width);
  }

  /** Whether any sum of the tile is read: the least that the plane comes to over it is 0 or less. */
  pushNeeded(needed: Needed): void {
    const { block, locals } = this;
    this.pushLeast(needed, { rows: [locals.ip, block.mr], cols: [locals.jr, block.nr] });
    this.em.code.i32Const(0).op(OP.i32LeS);
  }
}

export function emitContract(
  em: VectorEmitter,
  nest: ContractNest,
  operands: readonly Operand[],
  parts: ContractOptions,
): Units {
  if (nest.rows.extent === 0 || nest.cols.extent === 0 || nest.batch.some((v) => v.extent === 0)) return UNDIVIDED;
  return new ContractEmitter(em, nest, operands, parts).emit();
}
