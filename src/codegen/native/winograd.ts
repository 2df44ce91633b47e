/**
 * @file Winograd's convolution as C: the loops of codegen/cpu/winograd-choice.ts. It is another way to compute a nest `contract` that says
 * it is a convolution, with the same function, units and workspace as other products have (contract.ts).
 *
 * A unit is one panel of one block. A thread's units lie next to each other, so it transforms the image of a block once for
 * all of its panels; at most two blocks are shared with another thread, which transforms them too.
 *
 *   units of a thread       block 0: panels 2 3 | block 1: panels 0 1 2 3 | block 2: panel 0
 */
import { linearIndex } from "../../kernel/index-math.ts";
import type { ContractNest } from "../../kernel/loops.ts";
import { POSITIONS, TILE, total } from "../cpu/winograd-choice.ts";
import { type Plane, planeOf } from "../cpu/winograd-plane.ts";
import type { Units } from "../units.ts";
import { product } from "../units.ts";
import { PanelPacking } from "./contract-panel.ts";
import { finishPlain } from "./contract-tile.ts";
import { splitUnit } from "./emit-loops.ts";
import type { VectorEmitter } from "./emitter.ts";
import { type MicroShape, sharedMicro, shareVectors } from "./gemm-micro.ts";
import { sharePacking } from "./gemm-pack.ts";
import type { CFile } from "./options.ts";
import { emitImageRow, emitStretches } from "./winograd-image.ts";
import type { WinogradPlan } from "./winograd-plan.ts";
import { rowsOf, VECTORS, winogradText } from "./winograd-transforms.ts";

class WinogradEmitter extends PanelPacking<WinogradPlan> {
  readonly file: CFile;
  readonly plane: Plane;

  constructor(em: VectorEmitter, nest: ContractNest, plan: WinogradPlan, file: CFile) {
    super(em, nest, plan);
    this.file = file;
    const taps = nest.split?.[0] ?? nest.depth;
    this.plane = planeOf(nest.b, plan.places, plan.slides, (place, tap) => {
      return new Map([
        [nest.cols, linearIndex(place, plan.places)],
        [taps, linearIndex(tap, [3, 3])],
      ]);
    });
  }

  emit(): Units {
    const { em, plan } = this;
    const { code } = em;
    const blocks = Math.ceil(plan.strips / plan.blockStrips);
    this.functions();
    this.workspace();
    this.permutation();
    // Around the image there is nothing; see emitImageRow. Lanes without a tile are computed too, and numbers that are left there by
    // others could be subnormal, with which some processors are slow.
    for (const name of ["plane", "lines"] as const) {
      code.line(`memset(w_${name}, 0, ${plan.parts[name]} * sizeof(f32));`);
    }
    if (plan.resident) code.line(`u8 kept[${plan.panels}] = {0}; idx keptBatch = -1;`);
    em.block("for (idx unit = lo; unit < hi;)", () => {
      code.line(`const idx block = unit / ${plan.panels}, first = unit - block * ${plan.panels};`);
      code.line(`const idx end = first + hi - unit < ${plan.panels} ? first + hi - unit : ${plan.panels};`);
      code.line("unit += end - first;");
      code.line(`const idx batch = block / ${blocks}, strip0 = (block - batch * ${blocks}) * ${plan.blockStrips};`);
      const after = `strip0 + ${plan.blockStrips}`;
      code.line(`const idx strip1 = ${after} < ${plan.strips} ? ${after} : ${plan.strips};`);
      splitUnit(em, "batch", plan.batch);
      if (plan.resident) code.line("if (batch != keptBatch) memset(kept, 0, sizeof kept), keptBatch = batch;");
      this.image();
      em.block("for (idx p = first; p < end; p++)", () => this.anyPanel());
    });
    return { count: product(plan.batch) * blocks * plan.panels, grain: 1 };
  }

  functions(): void {
    const { plan } = this;
    const { share } = this.file;
    shareVectors(share, "f32", plan.lanes);
    if (["transposed", "computed-transposed", "permuted"].includes(plan.v.kind)) sharePacking(share, "f32", plan.lanes);
    share("tide_winograd", "function", () => winogradText(plan.lanes));
  }

  /** Names for the parts of this thread's workspace. */
  workspace(): void {
    const { plan, nest, em } = this;
    let next = `${em.pointer(nest.scratch, 0)} + (idx)thread * ${total(plan.parts)}`;
    for (const [name, elements] of Object.entries(plan.parts)) {
      if (elements === 0) continue;
      em.code.line(`f32 *const w_${name} = ${next};`);
      next = `w_${name} + ${elements}`;
    }
    if (plan.parts.tables > 0) em.code.line("int *const vAt = (int *)w_tables;");
    // In a table, so that convolutions of all widths share the functions of their tiles.
    em.code.line("int *const along = (int *)w_along;");
    em.code.line(`for (int c = 0; c < ${plan.chunk}; c++) along[c] = c * ${plan.width};`);
  }

  /** Transforms the block's tiles of all channels. */
  image(): void {
    const { em, plan, plane, nest } = this;
    const { line, across, width, steps } = plan;
    const channel = nest.split?.[1] ?? nest.depth;
    const c = em.counter(channel);
    // Channels outermost: a register of tiles that reaches beyond a strip is written over by what comes behind it.
    em.block(`for (idx ${c} = 0; ${c} < ${plan.channels}; ${c}++)`, () => {
      emitStretches(em, plan, () => {
        splitUnit(em, "image", plan.folded);
        em.block(`for (idx z = ${TILE} * q0; z < ${TILE} * q1 + 2; z++)`, () => {
          em.code.line(`f32 *const row = w_plane + (z - ${TILE} * q0) * ${line};`);
          emitImageRow(em, plane, "z", "row");
        });
        const from = `w_plane + (q - q0) * ${TILE * line} + piece * ${TILE * across}`;
        const to = `w_v + ${c} * ${width} + (st - strip0 + q - q0) * ${across}`;
        em.code.line(
          `for (idx q = q0; q < q1; q++) tide_winograd_image(${from}, ${line}, across, ${to}, ${steps.v}, w_lines);`,
        );
      });
    });
  }

  /** Panel p: code for whole ones, and for the last where that has fewer rows. */
  anyPanel(): void {
    const { em, plan, nest } = this;
    const left = nest.rows.extent % plan.lanes;
    const whole = Math.floor(nest.rows.extent / plan.lanes);
    em.code.line(`const idx col0 = p * ${plan.lanes};`);
    if (left === 0) this.panel(plan.lanes);
    else if (whole === 0) this.panel(left);
    else {
      em.block(`if (p < ${whole})`, () => this.panel(plan.lanes));
      em.block("else", () => this.panel(left));
    }
  }

  panel(rows: number): void {
    const { em, plan } = this;
    const { channels, chunk, lanes, steps, resident } = plan;
    em.code.line(`f32 *const u = w_u${resident ? ` + p * ${POSITIONS * steps.u}` : ""};`);
    if (resident) em.block("if (!kept[p])", () => this.keep(rows));
    else this.pack(rows);
    const registers = `((strip1 - strip0) * ${plan.across} + ${lanes - 1}) / ${lanes}`;
    em.code.line(`const idx registers = ${registers};`);
    em.block(`for (idx c0 = 0; c0 < ${channels}; c0 += ${chunk})`, () => {
      em.code.line(`const idx count = c0 + ${chunk} < ${channels} ? ${chunk} : ${channels} - c0;`);
      if (!resident) this.transformWeights("c0", "count");
      em.block(`for (idx xi = 0; xi < ${POSITIONS}; xi++)`, () => this.products(rows));
    });
    this.sums(rows);
  }

  /** Packs the panel's weights: [tap][channel][row]. */
  pack(rows: number): void {
    const { plan } = this;
    const put = (to: string): void => this.packPanel(plan.lanes, rows, to);
    if (plan.v.kind === "permuted") put("w_panel");
    else this.runs(() => put(`w_panel + pc * ${plan.lanes}`));
  }

  transformWeights(from: string, count: string): void {
    const { channels, lanes, slides, steps } = this.plan;
    const tap = channels * lanes;
    const first = slides === 1 ? "w_panel" : `w_panel + ${8 * tap}`;
    this.em.code.line(
      `tide_winograd_weights(${first} + ${from} * ${lanes}, ${slides * tap}, ${count}, u, ${steps.u});`,
    );
  }

  keep(rows: number): void {
    this.pack(rows);
    this.transformWeights("0", String(this.plan.channels));
    this.em.code.line("kept[p] = 1;");
  }

  /** Position xi of the panel against all tiles of the block. */
  products(rows: number): void {
    const { em, plan } = this;
    const { lanes, width, steps, resident } = plan;
    const from = resident ? ` + c0 * ${lanes}` : "";
    em.code.line(`const f32 *const s = u + xi * ${steps.u}${from}, *const v = w_v + xi * ${steps.v} + c0 * ${width};`);
    em.code.line(`f32 *const m = w_m + xi * ${steps.m};`);
    for (let row = 0; row < rows; row += rowsOf(lanes)) {
      // Rows beyond the panel's are computed from unspecified memory and not stored, which keeps the number of functions small.
      const high = Math.min(rowsOf(lanes), 2 ** Math.ceil(Math.log2(Math.max(2, rows - row))));
      const call = (vectors: number): string => {
        const name = this.kernel(high, vectors);
        return `${name}(s + ${row}, v + r * ${lanes}, ${lanes}, along, count, m + ${row * width} + r * ${lanes}, ${width}, c0 > 0);`;
      };
      em.block("", () => {
        em.code.line("idx r = 0;");
        em.code.line(`for (; r + ${VECTORS} <= registers; r += ${VECTORS}) ${call(VECTORS)}`);
        for (const left of this.leftOver()) em.code.line(`if (registers - r == ${left}) ${call(left)}`);
      });
    }
  }

  /** Registers that whole tiles of sums leave over: in most blocks, and in the last. */
  leftOver(): readonly number[] {
    const { strips, blockStrips, across, lanes } = this.plan;
    const last = strips - (Math.ceil(strips / blockStrips) - 1) * blockStrips;
    const left = [blockStrips, last].map((n) => Math.ceil((n * across) / lanes) % VECTORS);
    return [...new Set(left)].filter((n) => n > 0);
  }

  /** The sums of the panel as rows of the result, and their stores. */
  sums(rows: number): void {
    const { em, plan } = this;
    const { places, pieces, across, width, steps, sumsLine } = plan;
    const wide = TILE * across;
    emitStretches(em, plan, () => {
      splitUnit(em, "image", plan.folded);
      em.block("for (idx q = q0; q < q1; q++)", () => {
        const from = `w_m + k * ${width} + (st - strip0 + q - q0) * ${across}`;
        const to = `w_sums + k * ${TILE * sumsLine}`;
        em.code.line(
          `for (idx k = 0; k < ${rows}; k++) tide_winograd_sums(${from}, ${steps.m}, across, ${to}, ${sumsLine});`,
        );
        em.block(`for (idx i = 0; i < ${TILE} && ${TILE} * q + i < ${places[0]}; i++)`, () => {
          em.code.line(`const idx place = (${TILE} * q + i) * ${places[1]} + piece * ${wide};`);
          const last = places[1] - (pieces - 1) * wide;
          if (pieces > 1 && last !== wide) em.block(`if (piece < ${pieces - 1})`, () => this.stores(rows, wide));
          em.block(pieces > 1 && last !== wide ? "else" : "", () => this.stores(rows, last));
        });
      });
    });
  }

  /** Row `i` of the strip. */
  stores(rows: number, columns: number): void {
    const { em, nest, plan } = this;
    finishPlain(em, nest, {
      at: `w_sums + i * ${plan.sumsLine}`,
      stride: String(TILE * plan.sumsLine),
      broadcast: "col0",
      rows: String(rows),
      vector: "place",
      widths: [columns],
      beyond: 0,
    });
  }

  /** The function of a tile of sums, put into the file. */
  kernel(rows: number, vectors: number): string {
    const { lanes } = this.plan;
    const shape: MicroShape = {
      dtype: "f32",
      widths: new Array<number>(vectors).fill(lanes),
      pattern: Array.from({ length: rows }, (_, i) => i),
      broadcastSteps: "number",
      vectorSteps: "table",
    };
    return sharedMicro(this.file.share, shape, this.file.options.fma);
  }
}

/** Writes the body of a convolution's function. */
export function emitWinograd(em: VectorEmitter, nest: ContractNest, plan: WinogradPlan, file: CFile): Units {
  return new WinogradEmitter(em, nest, plan, file).emit();
}
