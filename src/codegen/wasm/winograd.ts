/**
 * @file Winograd's convolution as WebAssembly: the loops of codegen/cpu/winograd-choice.ts. It is another way to compute a nest
 * `contract` that says it is a convolution, with the same function, units and workspace as other products have (contract.ts).
 *
 * A unit is one panel of one block. A thread's units lie next to each other, so it transforms the image of a block once for
 * all of its panels.
 */
import { linearIndex } from "../../kernel/index-math.ts";
import type { ContractNest, Operand } from "../../kernel/loops.ts";
import { POSITIONS, TILE } from "../cpu/winograd-choice.ts";
import { type Plane, planeOf } from "../cpu/winograd-plane.ts";
import { product, type Units } from "../units.ts";
import { emitFinish } from "./contract-finish.ts";
import { emitSplit } from "./emit-loops.ts";
import { OP } from "./encoder.ts";
import type { VectorEmitter } from "./vector.ts";
import { WinogradLoops, type WinogradParts } from "./winograd-loops.ts";
import { LANES, tileRowsOf, type WinogradPlan } from "./winograd-plan.ts";

const FLOAT = 4;
/** Registers of a row of a tile. */
const VECTORS = 2;

/** Locals: the first channel of a run and how many, addresses of weights, image and sums, registers of tiles. */
type ProductLocals = Readonly<Record<"c0" | "count" | "s" | "v" | "m" | "registers", number>>;

class WinogradEmitter extends WinogradLoops<WinogradPlan> {
  readonly plane: Plane;
  /** Locals of the block and panel at work. */
  readonly strip0: number = this.i32();
  readonly strip1: number = this.i32();
  readonly p: number = this.i32();
  readonly col0: number = this.i32();
  readonly u: number = this.i32();

  constructor(
    em: VectorEmitter,
    nest: ContractNest,
    operands: readonly Operand[],
    given: { plan: WinogradPlan; parts: WinogradParts },
  ) {
    super(em, nest, operands, given);
    const { plan } = given;
    const taps = nest.split?.[0] ?? nest.depth;
    this.plane = planeOf(nest.b, plan.places, plan.slides, (place, tap) => {
      return new Map([
        [nest.cols, linearIndex(place, plan.places)],
        [taps, linearIndex(tap, [3, 3])],
      ]);
    });
  }

  emit(): Units {
    const { em, plan, strip0, strip1 } = this;
    const { code } = em;
    const blocks = Math.ceil(plan.strips / plan.blockStrips);
    const count = product(plan.batch) * blocks * plan.panels;
    this.setWorkspace();
    // Around the image there is nothing; see imageRow.
    this.clear("plane");
    // Lanes without a tile are computed too, and what others left there could be subnormal: slow on some processors.
    this.clear("lines");
    const [batch, keptBatch] = [this.i32(), this.i32()];
    code.i32Const(-1).set(keptBatch);
    this.groups(plan.panels, count, (block, first, end) => {
      code.get(block).i32Const(blocks).op(OP.i32DivU).tee(batch);
      code
        .i32Const(-blocks)
        .op(OP.i32Mul)
        .get(block)
        .op(OP.i32Add)
        .i32Const(plan.blockStrips)
        .op(OP.i32Mul)
        .set(strip0);
      this.setMin(strip1, strip0, plan.blockStrips, plan.strips);
      emitSplit(em, batch, plan.batch);
      if (plan.resident) {
        code.get(batch).get(keptBatch).op(OP.i32Ne);
        code.if(null, () => {
          this.clear("kept");
          code.get(batch).set(keptBatch);
        });
      }
      this.image();
      this.loop(this.p, [{ local: first }, { local: end }], 1, () => this.panel());
    });
    return { count, grain: 1 };
  }

  /** Transforms the block's tiles of all channels. */
  image(): void {
    const { em, plan, plane, nest, strip0 } = this;
    const { code } = em;
    const { line, across, width, steps } = plan;
    const [c, z, q, row] = [this.i32(), this.i32(), this.i32(), this.i32()];
    em.vars.set(nest.split?.[1] ?? nest.depth, c);
    // Channels outermost: a register of tiles that reaches beyond a strip is written over by what comes behind it.
    this.loop(c, [0, plan.channels], 1, () => {
      this.stretches(strip0, this.strip1, (s) => {
        emitSplit(em, s.image, plan.folded);
        const [from, to] = [this.i32(), this.i32()];
        code.get(s.q0).i32Const(TILE).op(OP.i32Mul).set(from);
        code.get(s.q1).i32Const(TILE).op(OP.i32Mul).i32Const(2).op(OP.i32Add).set(to);
        this.loop(z, [{ local: from }, { local: to }], 1, () => {
          this.setTo(row, () =>
            this.address("plane", [
              [z, FLOAT * line],
              [from, -FLOAT * line],
            ]),
          );
          this.imageRow(plane, z, row);
        });
        this.loop(q, [{ local: s.q0 }, { local: s.q1 }], 1, () => {
          const down = FLOAT * TILE * line;
          this.address("plane", [
            [q, down],
            [s.q0, -down],
            [s.piece, FLOAT * TILE * across],
          ]);
          code.i32Const(FLOAT * line).get(s.across);
          const tile = FLOAT * across;
          this.address("v", [
            [c, FLOAT * width],
            [s.strip, tile],
            [strip0, -tile],
            [q, tile],
            [s.q0, -tile],
          ]);
          code.i32Const(FLOAT * steps.v);
          this.address("lines");
          code.call(this.winograd.functions.number("image"));
        });
      });
    });
  }

  panel(): void {
    const { em, plan, p, col0, u } = this;
    const { code } = em;
    const { channels, chunk, resident, panelRows, steps } = plan;
    code.get(p).i32Const(panelRows).op(OP.i32Mul).set(col0);
    this.setTo(u, () => this.address("u", resident ? [[p, FLOAT * POSITIONS * steps.u]] : []));
    const [c0, count, xi, zero] = [this.i32(), this.i32(), this.i32(), this.i32()];
    code.i32Const(0).set(zero);
    if (resident) {
      this.address("kept", [[p, FLOAT]]);
      code.i32Load().op(OP.i32Eqz);
      code.if(null, () => {
        this.packWeights();
        code.i32Const(channels).set(count);
        this.transformWeights(zero, count);
        this.address("kept", [[p, FLOAT]]);
        code.i32Const(1).i32Store();
      });
    } else this.packWeights();
    this.loop(c0, [0, channels], chunk, () => {
      this.setMin(count, c0, chunk, channels);
      code.get(count).get(c0).op(OP.i32Sub).set(count);
      if (!resident) this.transformWeights(c0, count);
      this.loop(xi, [0, POSITIONS], 1, () => this.products(c0, count, xi));
    });
    this.sums();
  }

  /** Packs the panel's weights: [tap][channel][row]. */
  packWeights(): void {
    const { em, nest, plan, locals } = this;
    em.code
      .i32Const(0)
      .set(locals.pc)
      .i32Const(9 * plan.channels)
      .set(locals.kcur);
    this.setTo(locals.dst, () => this.address("panel"));
    this.pack(nest.a, nest.rows, this.col0, plan.panelRows);
  }

  transformWeights(from: number, count: number): void {
    const { code } = this.em;
    const { channels, panelRows, slides, steps } = this.plan;
    const tap = FLOAT * channels * panelRows;
    this.address("panel", [[from, FLOAT * panelRows]]);
    if (slides === -1) code.i32Const(8 * tap).op(OP.i32Add);
    code.i32Const(slides * tap);
    code
      .get(count)
      .i32Const(panelRows / LANES)
      .op(OP.i32Mul);
    code
      .get(this.u)
      .i32Const(FLOAT * steps.u)
      .call(this.winograd.functions.number("weights"));
  }

  /** Position xi of the panel against all tiles of the block. */
  products(c0: number, count: number, xi: number): void {
    const { code } = this.em;
    const { width, steps, resident, panelRows, rows, across } = this.plan;
    const [s, v, m, registers] = [this.i32(), this.i32(), this.i32(), this.i32()];
    this.setTo(s, () => {
      code.get(this.u);
      this.plus([[xi, FLOAT * steps.u], ...(resident ? [[c0, FLOAT * panelRows] as const] : [])]);
    });
    this.setTo(v, () =>
      this.address("v", [
        [xi, FLOAT * steps.v],
        [c0, FLOAT * width],
      ]),
    );
    this.setTo(m, () => this.address("m", [[xi, FLOAT * steps.m]]));
    code.get(this.strip1).get(this.strip0).op(OP.i32Sub).i32Const(across).op(OP.i32Mul);
    code
      .i32Const(LANES - 1)
      .op(OP.i32Add)
      .i32Const(LANES)
      .op(OP.i32DivU)
      .set(registers);
    const at: ProductLocals = { c0, count, s, v, m, registers };
    const left = rows % panelRows;
    if (left === 0 || rows < panelRows) this.tilesOf(Math.min(rows, panelRows), at);
    else {
      code
        .get(this.p)
        .i32Const(Math.floor(rows / panelRows))
        .op(OP.i32LtS);
      code.if(
        null,
        () => this.tilesOf(panelRows, at),
        () => this.tilesOf(left, at),
      );
    }
  }

  /** Tiles of some rows of the panel and all registers of tiles of the block. */
  tilesOf(rows: number, { c0, count, s, v, m, registers }: ProductLocals): void {
    const { code } = this.em;
    const { width, panelRows } = this.plan;
    const r = this.i32();
    const most = tileRowsOf(this.parts.fma);
    const call = (row: number, vectors: number): void => {
      code
        .get(s)
        .i32Const(FLOAT * row)
        .op(OP.i32Add)
        .get(v);
      this.plus([[r, FLOAT * LANES]]);
      code
        .get(count)
        .get(m)
        .i32Const(FLOAT * row * width)
        .op(OP.i32Add);
      this.plus([[r, FLOAT * LANES]]);
      const tile = { rows: Math.min(most, rows - row), vectors, steps: { a: FLOAT * panelRows, b: FLOAT * width } };
      code
        .i32Const(FLOAT * width)
        .get(c0)
        .call(this.winograd.kernel(tile));
    };
    for (let row = 0; row < rows; row += most) {
      code.i32Const(0).set(r);
      code.while(
        () => code.get(r).i32Const(VECTORS).op(OP.i32Add).get(registers).op(OP.i32LeS),
        () => {
          call(row, VECTORS);
          code.increment(r, VECTORS);
        },
      );
      code.get(r).get(registers).op(OP.i32LtS);
      code.if(null, () => call(row, 1));
    }
  }

  /** The sums of the panel as rows of the result, and their stores. */
  sums(): void {
    const { em, plan, nest, strip0, col0, locals } = this;
    const { code } = em;
    const { places, pieces, across, width, steps, sumsLine, panelRows } = plan;
    const wide = TILE * across;
    const [q, k, high, i, place, to] = [this.i32(), this.i32(), this.i32(), this.i32(), this.i32(), this.i32()];
    this.setMin(high, col0, panelRows, nest.rows.extent);
    code.get(high).get(col0).op(OP.i32Sub).set(high);
    code.get(col0).set(locals.ip);
    this.stretches(strip0, this.strip1, (s) => {
      emitSplit(em, s.image, plan.folded);
      this.loop(q, [{ local: s.q0 }, { local: s.q1 }], 1, () => {
        this.loop(k, [0, { local: high }], 1, () => {
          const tile = FLOAT * across;
          this.address("m", [
            [k, FLOAT * width],
            [s.strip, tile],
            [strip0, -tile],
            [q, tile],
            [s.q0, -tile],
          ]);
          code.i32Const(FLOAT * steps.m).get(s.across);
          this.address("sums", [[k, FLOAT * TILE * sumsLine]]);
          code.i32Const(FLOAT * sumsLine).call(this.winograd.functions.number("sums"));
        });
        this.loop(i, [0, TILE], 1, () => {
          code.get(q).i32Const(TILE).op(OP.i32Mul).get(i).op(OP.i32Add).tee(place).i32Const(places[0]).op(OP.i32LtS);
          code.if(null, () =>
            em.scope(() => {
              code.get(place).i32Const(places[1]).op(OP.i32Mul).get(s.piece).i32Const(wide).op(OP.i32Mul).op(OP.i32Add);
              code.tee(place).i32Const(wide).op(OP.i32Add).set(to);
              code
                .get(s.piece)
                .i32Const(pieces - 1)
                .op(OP.i32Eq);
              code.if(null, () =>
                code
                  .get(place)
                  .i32Const(places[1] - (pieces - 1) * wide)
                  .op(OP.i32Add)
                  .set(to),
              );
              this.setTo(locals.tile, () => this.address("sums", [[i, FLOAT * sumsLine]]));
              emitFinish(this, this.operands, {
                ...{ from: place, to, stride: FLOAT * TILE * sumsLine, rows: panelRows, multiple: 1 },
              });
            }),
          );
        });
      });
    });
  }
}

/** Writes the body of a convolution's function. */
export function emitWinograd(
  em: VectorEmitter,
  nest: ContractNest,
  operands: readonly Operand[],
  given: { plan: WinogradPlan; parts: WinogradParts },
): Units {
  return new WinogradEmitter(em, nest, operands, given).emit();
}
