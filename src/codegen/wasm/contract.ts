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
 */
import { bytesOf, type ScalarType } from "../../kernel/dtype.ts";
import type { Expr, LoopVar } from "../../kernel/expr.ts";
import { varIndex } from "../../kernel/index-math.ts";
import { type ContractNest, depthRun, type Operand } from "../../kernel/loops.ts";
import { type Context, SINGLE, VECTOR } from "./addresses.ts";
import { OP } from "./encoder.ts";
import { columnsOf, type Tile, tileOf } from "./micro-kernel.ts";
import type { VectorEmitter } from "./vector.ts";
import { emitCounters, emitStores, storeTargets } from "./walk.ts";

/** Bytes of the packed A block and of the block of partial sums; decisions/0004 has the measurements. */
const BLOCK_BYTES = 192 * 1024;
const SUMS_BYTES = 256 * 1024;

export interface Blocking {
  readonly tile: Tile;
  readonly mr: number;
  readonly nr: number;
  readonly mc: number;
  readonly kc: number;
  readonly nc: number;
  /** Whether sums are kept for a whole block between depth blocks. */
  readonly deep: boolean;
  /** Elements of scratch: A block, B panel, sums. */
  readonly scratch: readonly [number, number, number];
}

const roundUp = (n: number, to: number): number => Math.ceil(n / to) * to;
/** The greatest multiple of `to` that is at most n, but at least one. */
const roundDown = (n: number, to: number): number => Math.max(1, Math.floor(n / to)) * to;

/** Block sizes for a product. Pure: the planner asks for the scratch size before code exists. */
export function blockingOf(dtype: ScalarType, fma: boolean, m: number, n: number, k: number): Blocking {
  const kind = dtype === "f64" || dtype === "i32" ? dtype : "f32";
  const tile = tileOf(kind, fma);
  const mr = tile.rows;
  const width = bytesOf(kind);
  const nr = columnsOf(kind, tile);
  const kc = depthRun(k);
  const deep = kc < k;
  const mc = Math.min(roundUp(m, mr), roundDown(BLOCK_BYTES / (Math.max(1, kc) * width), mr));
  const nc = deep ? Math.min(roundUp(n, nr), roundDown(SUMS_BYTES / (mc * width), nr)) : roundUp(n, nr);
  return { tile, mr, nr, mc, kc, nc, deep, scratch: [mc * kc, kc * nr, deep ? mc * nc : mr * nr] };
}

/** Elements of the workspace operand. */
export function contractScratch(dtype: ScalarType, fma: boolean, m: number, n: number, k: number): number {
  if (m === 0 || n === 0) return 0;
  const [a, b, c] = blockingOf(dtype, fma, m, n, k).scratch;
  return a + b + c;
}

export interface ContractParts {
  /** Number of the micro kernel's function. */
  readonly micro: number;
  readonly fma: boolean;
  /** Local with the address of the workspace. */
  readonly scratch: number;
}

class ContractEmitter {
  readonly em: VectorEmitter;
  readonly nest: ContractNest;
  readonly operands: readonly Operand[];
  readonly parts: ContractParts;
  readonly block: Blocking;
  readonly width: number;
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
  loop(
    local: number,
    from: number | { local: number },
    to: number | { local: number },
    step: number,
    body: () => void,
  ): void {
    const { code } = this.em;
    const push = (v: number | { local: number }): void => {
      if (typeof v === "number") code.i32Const(v);
      else code.get(v.local);
    };
    push(from);
    code.set(local);
    code.while(
      () => {
        code.get(local);
        push(to);
        code.op(OP.i32LtS);
      },
      () => {
        this.em.scope(body);
        code.increment(local, step);
      },
    );
  }

  /** local = min(base + step, limit) */
  setMin(local: number, base: number, step: number, limit: number): void {
    const { code } = this.em;
    code.get(base).i32Const(step).op(OP.i32Add).tee(local).i32Const(limit).op(OP.i32GtS);
    code.if(null, () => code.i32Const(limit).set(local));
  }

  emit(): void {
    const { em, nest, block, locals, width, parts } = this;
    const { code } = em;
    const [m, n, k] = [nest.rows.extent, nest.cols.extent, nest.depth.extent];
    const [aElements, bElements] = block.scratch;
    code.get(parts.scratch).set(locals.a);
    code
      .get(parts.scratch)
      .i32Const(aElements * width)
      .op(OP.i32Add)
      .tee(locals.b);
    code
      .i32Const(bElements * width)
      .op(OP.i32Add)
      .set(locals.c);
    emitCounters(
      em,
      nest.batch.filter((v) => v.extent !== 1),
      () => {
        this.loop(locals.jc, 0, n, block.nc, () => {
          this.setMin(locals.nend, locals.jc, block.nc, n);
          this.loop(locals.ic, 0, m, block.mc, () => {
            this.setMin(locals.mend, locals.ic, block.mc, m);
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
      },
    );
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
    micro();
    const end = code.local("i32");
    this.setMin(end, locals.jr, block.nr, this.nest.cols.extent);
    this.finish({ local: locals.jr }, { local: end }, block.nr * width);
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
): void {
  if (nest.rows.extent === 0 || nest.cols.extent === 0 || nest.batch.some((v) => v.extent === 0)) return;
  new ContractEmitter(em, nest, operands, parts).emit();
}
