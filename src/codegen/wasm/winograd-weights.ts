/**
 * @file The gradient of a convolution to its weights as WebAssembly, by Winograd's algorithm: the loops of
 * codegen/cpu/winograd-weights-choice.ts.
 *
 * A unit is a register of rows of the result and a block of channels. A thread's units of one block of channels lie next to
 * each other and are computed together, as many as a block holds, so that the image is transformed once for all of them.
 */
import type { ContractNest, Operand } from "../../kernel/loops.ts";
import { POSITIONS, TILE } from "../cpu/winograd-choice.ts";
import { type WeightsSides, weightsSides } from "../cpu/winograd-plane.ts";
import { product, type Units } from "../units.ts";
import { emitFinish } from "./contract-finish.ts";
import { emitSplit } from "./emit-loops.ts";
import { OP } from "./encoder.ts";
import type { VectorEmitter } from "./vector.ts";
import type { WinogradFunction } from "./winograd-functions.ts";
import { type Stretch, WinogradLoops, type WinogradParts } from "./winograd-loops.ts";
import { LANES, tileRowsOf, type WinogradWeightsPlan } from "./winograd-plan.ts";

const FLOAT = 4;
/** Registers of a row of a tile. */
const VECTORS = 2;

type Given = { readonly plan: WinogradWeightsPlan; readonly parts: WinogradParts };

class WeightsEmitter extends WinogradLoops<WinogradWeightsPlan> {
  readonly sides: WeightsSides;
  /** Locals of the block at work: channels, registers of rows, strips. */
  readonly c0: number = this.i32();
  readonly p0: number = this.i32();
  readonly count: number = this.i32();
  readonly strip0: number = this.i32();
  readonly strip1: number = this.i32();

  constructor(em: VectorEmitter, nest: ContractNest, operands: readonly Operand[], given: Given) {
    super(em, nest, operands, given);
    this.sides = weightsSides(nest, given.plan);
  }

  emit(): Units {
    const { em, plan, c0, p0, count, strip0 } = this;
    const { code } = em;
    const blocks = Math.ceil(plan.channels / plan.blockChannels);
    const units = product(plan.batch) * blocks * plan.panels;
    this.setWorkspace();
    // Rows have nothing around them; see imageRow.
    this.clear("rows");
    this.clear("seen");
    const batch = this.i32();
    this.groups(plan.panels, units, (block, first, end) => {
      code.get(block).i32Const(blocks).op(OP.i32DivU).tee(batch);
      code.i32Const(-blocks).op(OP.i32Mul).get(block).op(OP.i32Add).i32Const(plan.blockChannels).op(OP.i32Mul).set(c0);
      emitSplit(em, batch, plan.batch);
      this.loop(p0, [{ local: first }, { local: end }], plan.blockPanels, () => {
        this.setMin(count, p0, plan.blockPanels, { local: end });
        code.get(count).get(p0).op(OP.i32Sub).set(count);
        this.loop(strip0, [0, plan.strips], plan.blockStrips, () => this.strips());
        this.stores();
      });
    });
    return { count: units, grain: 1 };
  }

  /** Transforms a block of strips of both sides, and adds up their products. */
  strips(): void {
    const { plan, c0, count, strip0, strip1 } = this;
    const { code } = this.em;
    const [cp, p, xi, tiles, end] = [this.i32(), this.i32(), this.i32(), this.i32(), this.i32()];
    this.setMin(strip1, strip0, plan.blockStrips, plan.strips);
    // the channels of this block that there are
    this.setMin(end, c0, plan.blockChannels, plan.channels);
    code.get(end).get(c0).op(OP.i32Sub).set(end);
    this.loop(cp, [0, { local: end }], LANES, () =>
      this.stretches(strip0, strip1, (stretch) => this.transformImage(stretch, cp)),
    );
    this.loop(p, [0, { local: count }], 1, () =>
      this.stretches(strip0, strip1, (stretch) => this.transformGradient(stretch, p)),
    );
    code.get(strip1).get(strip0).op(OP.i32Sub).i32Const(plan.across).op(OP.i32Mul).set(tiles);
    this.loop(xi, [0, POSITIONS], 1, () => this.products(xi, tiles));
  }

  /** Rows [4 q0, 4 q1 + more) of a register of channels, each lane by `one`, transposed into the plane. */
  rows({ q0, q1 }: Stretch, more: number, one: (z: number, lane: number) => void, part: "rows" | "seen"): void {
    const { line, lanes } = this.plan;
    const { code } = this.em;
    const [z, from, to, lane] = [this.i32(), this.i32(), this.i32(), this.i32()];
    code.get(q0).i32Const(TILE).op(OP.i32Mul).set(from);
    code.get(q1).i32Const(TILE).op(OP.i32Mul).i32Const(more).op(OP.i32Add).set(to);
    this.loop(z, [{ local: from }, { local: to }], 1, () => {
      this.loop(lane, [0, LANES], 1, () => one(z, lane));
      this.address(part);
      code.i32Const(FLOAT * line).i32Const(line);
      const down = FLOAT * line * lanes;
      this.address("plane", [
        [z, down],
        [from, -down],
      ]);
      code.call(this.winograd.functions.number("transpose"));
    });
  }

  /** A register of channels: rows of each, transposed, transformed. */
  transformImage(stretch: Stretch, cp: number): void {
    const { em, plan, sides, c0 } = this;
    const { code } = em;
    const { line, across, blockChannels, steps } = plan;
    em.vars.set(sides.image, stretch.image);
    const [channel, row] = [this.i32(), this.i32()];
    const one = (z: number, lane: number): void => {
      code.get(c0).get(cp).op(OP.i32Add).get(lane).op(OP.i32Add).tee(channel).i32Const(plan.channels).op(OP.i32LtS);
      code.if(null, () =>
        em.scope(() => {
          em.vars.set(sides.channel, channel);
          this.setTo(row, () => this.address("rows", [[lane, FLOAT * line]]));
          this.imageRow(sides.plane, z, row);
        }),
      );
    };
    this.rows(stretch, 2, one, "rows");
    this.transform("tiles", stretch, [blockChannels, steps.v], (q) => {
      const tile = FLOAT * across * blockChannels;
      this.address("v", [
        [stretch.strip, tile],
        [this.strip0, -tile],
        [q, tile],
        [stretch.q0, -tile],
        [cp, FLOAT],
      ]);
    });
  }

  /** A register of rows of the result. */
  transformGradient(stretch: Stretch, p: number): void {
    const { em, plan, nest, p0 } = this;
    const { image, plane, gradient } = this.sides;
    const { code } = em;
    const { line, across, places, blockPanels, lanes, steps } = plan;
    em.vars.set(image, stretch.image);
    const [number, row] = [this.i32(), this.i32()];
    const one = (z: number, lane: number): void => {
      code.get(p0).get(p).op(OP.i32Add).i32Const(lanes).op(OP.i32Mul).get(lane).op(OP.i32Add).set(number);
      this.setTo(row, () => this.address("seen", [[lane, FLOAT * line]]));
      code.get(z).i32Const(places[0]).op(OP.i32LtS).get(number).i32Const(plan.rows).op(OP.i32LtS).op(OP.i32And);
      code.if(
        null,
        () => {
          em.vars.set(nest.rows, number);
          em.vars.set(plane.y, z);
          this.wholeRow(gradient, plane.x, row);
        },
        () =>
          code
            .get(row)
            .i32Const(0)
            .i32Const(FLOAT * line)
            .memoryFill(),
      );
    };
    this.rows(stretch, 0, one, "seen");
    const width = blockPanels * lanes;
    this.transform("seen", stretch, [width, steps.d], (q) => {
      const tile = FLOAT * across * width;
      this.address("d", [
        [stretch.strip, tile],
        [this.strip0, -tile],
        [q, tile],
        [stretch.q0, -tile],
        [p, FLOAT * lanes],
      ]);
    });
  }

  /** Rows of tiles from the plane, all pieces of as many; `to` pushes where tile 0 of row q goes. */
  transform(
    name: WinogradFunction,
    { q0, q1, piece }: Stretch,
    [width, step]: readonly [number, number],
    to: (q: number) => void,
  ): void {
    const { line, across, lanes } = this.plan;
    const { code } = this.em;
    const q = this.i32();
    this.loop(q, [{ local: q0 }, { local: q1 }], 1, () => {
      const down = FLOAT * TILE * line * lanes;
      this.address("plane", [
        [q, down],
        [q0, -down],
        [piece, FLOAT * TILE * across * lanes],
      ]);
      code.i32Const(FLOAT * line * lanes).i32Const(across);
      to(q);
      code.i32Const(FLOAT * width).i32Const(FLOAT * step);
      code.call(this.winograd.functions.number(name));
    });
  }

  /** Position xi of the block's rows against its channels. */
  products(xi: number, tiles: number): void {
    const { code } = this.em;
    const { lanes, blockChannels, blockPanels, steps } = this.plan;
    const [s, v, m, row, high] = [this.i32(), this.i32(), this.i32(), this.i32(), this.i32()];
    this.setTo(s, () => this.address("d", [[xi, FLOAT * steps.d]]));
    this.setTo(v, () => this.address("v", [[xi, FLOAT * steps.v]]));
    this.setTo(m, () => this.address("m", [[xi, FLOAT * steps.m]]));
    code.get(this.count).i32Const(lanes).op(OP.i32Mul).set(high);
    code.i32Const(0).set(row);
    const vectors = blockChannels / lanes;
    const tilesOf = (rows: number): void => {
      for (let from = 0; from < vectors; from += VECTORS) {
        const wide = Math.min(VECTORS, vectors - from);
        const step = { a: FLOAT * blockPanels * lanes, b: FLOAT * blockChannels };
        code.get(s);
        this.plus([[row, FLOAT]]);
        code
          .get(v)
          .i32Const(FLOAT * from * lanes)
          .op(OP.i32Add)
          .get(tiles);
        code
          .get(m)
          .i32Const(FLOAT * from * lanes)
          .op(OP.i32Add);
        this.plus([[row, FLOAT * blockChannels]]);
        code.i32Const(FLOAT * blockChannels).get(this.strip0);
        code.call(this.winograd.kernel({ rows, vectors: wide, steps: step }));
      }
      code.increment(row, rows);
    };
    const most = tileRowsOf(this.parts.fma);
    code.while(
      () => code.get(row).i32Const(most).op(OP.i32Add).get(high).op(OP.i32LeS),
      () => tilesOf(most),
    );
    // Rows come in registers: tiles of six leave none, two or four.
    for (let left = lanes; left >= 2 && most % lanes !== 0; left -= 2) {
      code.get(high).get(row).op(OP.i32Sub).i32Const(left).op(OP.i32Eq);
      code.if(null, () => tilesOf(left));
    }
  }

  /** The sums as rows of the result, and their stores. */
  stores(): void {
    const { plan, nest, locals, p0, c0 } = this;
    const { code } = this.em;
    const { lanes, blockChannels, steps } = plan;
    const [first, end, from, to] = [this.i32(), this.i32(), this.i32(), this.i32()];
    code.get(p0).i32Const(lanes).op(OP.i32Mul).set(first);
    code.get(p0).get(this.count).op(OP.i32Add).i32Const(lanes).op(OP.i32Mul).tee(end);
    code.i32Const(nest.rows.extent).op(OP.i32GtS);
    code.if(null, () => code.i32Const(nest.rows.extent).set(end));
    this.loop(locals.ip, [{ local: first }, { local: end }], 1, () => {
      const down = FLOAT * blockChannels;
      this.address("m", [
        [locals.ip, down],
        [first, -down],
      ]);
      code.i32Const(FLOAT * steps.m).i32Const(blockChannels);
      this.address("sums");
      code.call(this.winograd.functions.number("weightSums"));
      code.get(c0).i32Const(9).op(OP.i32Mul).set(from);
      this.setMin(to, from, 9 * blockChannels, nest.cols.extent);
      this.setTo(locals.tile, () => this.address("sums"));
      emitFinish(this, this.operands, { from, to, stride: 0, rows: 1, multiple: 1 });
    });
  }
}

/** Writes the body of the function of a gradient to weights. */
export function emitWinogradWeights(
  em: VectorEmitter,
  nest: ContractNest,
  operands: readonly Operand[],
  given: Given,
): Units {
  return new WeightsEmitter(em, nest, operands, given).emit();
}
