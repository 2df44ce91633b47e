/**
 * @file The gradient of a convolution to its weights as C, by Winograd's algorithm: the loops of
 * codegen/cpu/winograd-weights-choice.ts.
 *
 * A unit is a register of rows of the result and a block of channels. A thread's units of one block of channels lie next to
 * each other and are computed together, as many as a block holds, so that the image is transformed once for all of them.
 */
import type { ContractNest } from "../../kernel/loops.ts";
import { POSITIONS, TILE, total } from "../cpu/winograd-choice.ts";
import { type WeightsSides, weightsSides } from "../cpu/winograd-plane.ts";
import { product, type Units } from "../units.ts";
import { finishPlain } from "./contract-tile.ts";
import { splitUnit } from "./emit-loops.ts";
import type { VectorEmitter } from "./emitter.ts";
import { type MicroShape, sharedMicro, shareVectors } from "./gemm-micro.ts";
import { packTransposedName, sharePacking } from "./gemm-pack.ts";
import type { CFile } from "./options.ts";
import { emitImageRow, emitRow, emitStretches } from "./winograd-image.ts";
import type { WinogradWeightsPlan } from "./winograd-plan.ts";
import { rowsOf, VECTORS, winogradWeightsText } from "./winograd-transforms.ts";

class WeightsEmitter {
  readonly em: VectorEmitter;
  readonly nest: ContractNest;
  readonly plan: WinogradWeightsPlan;
  readonly file: CFile;
  readonly sides: WeightsSides;

  constructor(em: VectorEmitter, nest: ContractNest, plan: WinogradWeightsPlan, file: CFile) {
    this.em = em;
    this.nest = nest;
    this.plan = plan;
    this.file = file;
    this.sides = weightsSides(nest, plan);
    em.vars.set(this.sides.image, "image");
  }

  emit(): Units {
    const { em, plan } = this;
    const { code } = em;
    const blocks = Math.ceil(plan.channels / plan.blockChannels);
    this.functions();
    this.workspace();
    em.block("for (idx unit = lo; unit < hi;)", () => {
      code.line(`const idx block = unit / ${plan.panels}, first = unit - block * ${plan.panels};`);
      code.line(`const idx end = first + hi - unit < ${plan.panels} ? first + hi - unit : ${plan.panels};`);
      code.line("unit += end - first;");
      code.line(`const idx batch = block / ${blocks}, c0 = (block - batch * ${blocks}) * ${plan.blockChannels};`);
      splitUnit(em, "batch", plan.batch);
      em.block(`for (idx p0 = first; p0 < end; p0 += ${plan.blockPanels})`, () => {
        code.line(`const idx count = end - p0 < ${plan.blockPanels} ? end - p0 : ${plan.blockPanels};`);
        em.block(`for (idx strip0 = 0; strip0 < ${plan.strips}; strip0 += ${plan.blockStrips})`, () => this.block());
        this.stores();
      });
    });
    return { count: product(plan.batch) * blocks * plan.panels, grain: 1 };
  }

  functions(): void {
    const { plan } = this;
    const { share } = this.file;
    shareVectors(share, "f32", plan.lanes);
    sharePacking(share, "f32", plan.lanes);
    share("tide_winograd_to_weights", "function", () => winogradWeightsText(plan.lanes));
  }

  /** Names for the parts of this thread's workspace. Rows have nothing around them; see emitImageRow. */
  workspace(): void {
    const { plan, nest, em } = this;
    const { code } = em;
    let next = `${em.pointer(nest.scratch, 0)} + (idx)thread * ${total(plan.parts)}`;
    for (const [name, elements] of Object.entries(plan.parts)) {
      code.line(`f32 *const w_${name} = ${next};`);
      next = `w_${name} + ${elements}`;
    }
    const width = plan.blockStrips * plan.across;
    code.line(`int *const sAt = (int *)w_tables, *const vAt = sAt + ${width};`);
    const steps = `sAt[t] = t * ${plan.blockPanels * plan.lanes}, vAt[t] = t * ${plan.blockChannels}`;
    code.line(`for (int t = 0; t < ${width}; t++) ${steps};`);
    for (const name of ["rows", "seen"] as const) code.line(`memset(w_${name}, 0, ${plan.parts[name]} * sizeof(f32));`);
  }

  /** Transforms a block of strips of both sides, and adds up their products. */
  block(): void {
    const { em, plan } = this;
    const { lanes, blockChannels } = plan;
    const after = `strip0 + ${plan.blockStrips}`;
    em.code.line(`const idx strip1 = ${after} < ${plan.strips} ? ${after} : ${plan.strips};`);
    em.block(`for (idx cp = 0; cp < ${blockChannels} && c0 + cp < ${plan.channels}; cp += ${lanes})`, () =>
      emitStretches(em, plan, () => this.transformImage()),
    );
    em.block("for (idx p = 0; p < count; p++)", () => emitStretches(em, plan, () => this.transformGradient()));
    em.code.line(`const idx tiles = (strip1 - strip0) * ${plan.across};`);
    em.block(`for (idx xi = 0; xi < ${POSITIONS}; xi++)`, () => {
      em.block("for (idx p = 0; p < count; p++)", () => this.products());
    });
  }

  /** A register of channels: rows of each, transposed, transformed. */
  transformImage(): void {
    const { em, plan } = this;
    const { plane, channel } = this.sides;
    const { lanes, line, across, blockChannels, steps } = plan;
    em.block(`for (idx z = ${TILE} * q0; z < ${TILE} * q1 + 2; z++)`, () => {
      em.block(`for (idx l = 0; l < ${lanes} && c0 + cp + l < ${plan.channels}; l++)`, () => {
        em.code.line(`const idx ${em.counter(channel)} = c0 + cp + l;`);
        em.code.line(`f32 *const row = w_rows + l * ${line};`);
        emitImageRow(em, plane, "z", "row");
      });
      this.transposeRows("w_rows", `z - ${TILE} * q0`);
    });
    const to = `w_v + (st - strip0 + q - q0) * ${across * blockChannels} + cp`;
    this.transform("tide_winograd_tiles", `${to}, ${blockChannels}, ${steps.v}`);
  }

  /** A register of rows of the result. */
  transformGradient(): void {
    const { em, plan, nest } = this;
    const { plane, gradient } = this.sides;
    const { lanes, line, across, places, blockPanels, steps } = plan;
    em.block(`for (idx z = ${TILE} * q0; z < ${TILE} * q1; z++)`, () => {
      em.block(`if (z < ${places[0]})`, () => {
        em.block(`for (idx l = 0; l < ${lanes} && (p0 + p) * ${lanes} + l < ${plan.rows}; l++)`, () => {
          em.code.line(`const idx ${em.counter(nest.rows)} = (p0 + p) * ${lanes} + l;`);
          em.code.line(`const idx ${em.counter(plane.y)} = z;`);
          em.code.line(`f32 *const row = w_seen + l * ${line};`);
          emitRow(em, gradient, plane.x, "row");
        });
        this.transposeRows("w_seen", `z - ${TILE} * q0`);
      });
      const row = `w_plane + (z - ${TILE} * q0) * ${line * lanes}`;
      em.block("else", () => em.code.line(`memset(${row}, 0, ${line * lanes} * sizeof(f32));`));
    });
    const width = blockPanels * lanes;
    const to = `w_d + (st - strip0 + q - q0) * ${across * width} + p * ${lanes}`;
    this.transform("tide_winograd_seen", `${to}, ${width}, ${steps.d}`);
  }

  transposeRows(from: string, row: string): void {
    const { lanes, line } = this.plan;
    const to = `w_plane + (${row}) * ${line * lanes}`;
    this.em.code.line(`${packTransposedName("f32")}(${from}, ${line}, ${lanes}, ${line}, ${to}, ${lanes}, 0, 0);`);
  }

  transform(name: string, rest: string): void {
    const { lanes, line, across } = this.plan;
    const from = `w_plane + (q - q0) * ${TILE * line * lanes} + piece * ${TILE * across * lanes}`;
    this.em.code.line(`for (idx q = q0; q < q1; q++) ${name}(${from}, ${line * lanes}, ${across}, ${rest});`);
  }

  /** Position xi of a register of rows against the block's channels. */
  products(): void {
    const { em, plan } = this;
    const { lanes, blockChannels, steps } = plan;
    em.code.line(`const f32 *const s = w_d + xi * ${steps.d} + p * ${lanes}, *const v = w_v + xi * ${steps.v};`);
    em.code.line(`f32 *const m = w_m + xi * ${steps.m} + p * ${lanes * blockChannels};`);
    const vectors = blockChannels / lanes;
    const groups = Math.ceil(vectors / VECTORS);
    for (let row = 0; row < lanes; row += rowsOf(lanes)) {
      for (let g = 0; g < groups; g++) {
        const [from, to] = [Math.floor((vectors * g) / groups), Math.floor((vectors * (g + 1)) / groups)];
        const name = this.kernel(to - from);
        const at = `m + ${row * blockChannels + from * lanes}, ${blockChannels}`;
        em.code.line(`${name}(s + ${row}, v + ${from * lanes}, sAt, vAt, tiles, ${at}, strip0 > 0);`);
      }
    }
  }

  /** The sums as rows of the result, and their stores. */
  stores(): void {
    const { em, plan, nest } = this;
    const { lanes, rows, channels, blockChannels, steps } = plan;
    const finish = (columns: number): void =>
      finishPlain(em, nest, {
        ...{ at: "w_sums", stride: "0", broadcast: "k", rows: "1", vector: "column", widths: [columns], beyond: 0 },
      });
    em.block(`for (idx k = p0 * ${lanes}; k < (p0 + count) * ${lanes} && k < ${rows}; k++)`, () => {
      const from = `w_m + (k - p0 * ${lanes}) * ${blockChannels}`;
      em.code.line(`tide_winograd_weight_sums(${from}, ${steps.m}, ${blockChannels}, w_sums);`);
      em.code.line("const idx column = 9 * c0;");
      const left = channels % blockChannels;
      if (left === 0 || channels < blockChannels) finish(9 * Math.min(channels, blockChannels));
      else {
        em.block(`if (c0 + ${blockChannels} <= ${channels})`, () => finish(9 * blockChannels));
        em.block("else", () => finish(9 * left));
      }
    });
  }

  kernel(vectors: number): string {
    const { lanes } = this.plan;
    const shape: MicroShape = {
      dtype: "f32",
      widths: new Array<number>(vectors).fill(lanes),
      pattern: Array.from({ length: rowsOf(lanes) }, (_, i) => i),
      broadcastSteps: "table",
      vectorSteps: "table",
    };
    return sharedMicro(this.file.share, shape, this.file.options.fma);
  }
}

/** Writes the body of the function of a gradient to weights. */
export function emitWinogradWeights(
  em: VectorEmitter,
  nest: ContractNest,
  plan: WinogradWeightsPlan,
  file: CFile,
): Units {
  return new WeightsEmitter(em, nest, plan, file).emit();
}
