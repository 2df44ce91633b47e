/**
 * @file What a product's tiles read, made ready: names for the workspace, tables of offsets, copies of padded images, packed
 * blocks and panels. contract-plan.ts says which of them a product has; contract.ts loops over the tiles.
 */
import { at } from "../../base/invariant.ts";
import type { LoopVar } from "../../kernel/expr.ts";
import type { ContractNest, Operand } from "../../kernel/loops.ts";
import { product } from "../units.ts";
import { type Access, indexOf } from "./contract-access.ts";
import { eachDepth, type Fill, fillAlong, fillRows } from "./contract-fill.ts";
import { emitPadding } from "./contract-padded.ts";
import { type ProductPlan, widthOf, workspaceElements } from "./contract-plan.ts";
import type { VectorEmitter } from "./emitter.ts";
import type { DepthStep } from "./gemm-micro.ts";
import { splitUnit } from "./walk.ts";

export class ContractPacking {
  readonly em: VectorEmitter;
  readonly nest: ContractNest;
  readonly operands: readonly Operand[];
  readonly plan: ProductPlan;
  /** Tiles of the spread side for each value of the folded counters, and in all; panels. */
  readonly tilesEach: number;
  readonly tiles: number;
  readonly panels: number;

  constructor(em: VectorEmitter, nest: ContractNest, operands: readonly Operand[], plan: ProductPlan) {
    this.em = em;
    this.nest = nest;
    this.operands = operands;
    this.plan = plan;
    const { tiling, folded, panels } = this.plan;
    this.tilesEach = (tiling.extent / tiling.period) * tiling.sizes.length;
    this.tiles = this.tilesEach * product(folded);
    this.panels = panels.count + (panels.tail.length > 0 ? 1 : 0);
  }

  /** Names for the parts of this thread's workspace. */
  workspace(): void {
    const { plan, nest, em } = this;
    const { parts, dtype } = plan;
    let next = `${em.slot(nest.scratch, 0)} + (idx)thread * ${workspaceElements(plan)}`;
    for (const [name, elements] of Object.entries(parts)) {
      if (elements === 0) continue;
      em.code.line(`${dtype} *const w_${name} = ${next};`);
      next = `w_${name} + ${elements}`;
    }
    if (parts.tables > 0) em.code.line("int *const sAt = (int *)w_tables;");
    if (parts.tables > 0) em.code.line(`int *const vAt = sAt + ${plan.s.step === "table" ? plan.run : 0};`);
    // A tile is read in whole registers, and so beyond its end.
    const width = Math.max(plan.panels.count > 0 ? widthOf(plan.panels.widths) : 0, widthOf(plan.panels.tail));
    const tile = Math.max(...plan.tiling.sizes) * width + plan.lanes;
    em.code.line(`${dtype} tile[${tile}] __attribute__((aligned(64))) = {0};`);
  }

  /** Where each element of a stretch of memory comes in the depth. */
  permutation(): void {
    const { em, nest, plan } = this;
    const { v } = plan;
    if (v.kind !== "permuted") return;
    const { first, count, length, stride } = v.stretches;
    em.code.line(`memset(vAt, -1, ${count * length} * sizeof(int));`);
    em.block("", () =>
      eachDepth(em, nest, "0", String(nest.depth.extent), (position) => {
        em.code.line(`const idx g = ${em.index(indexOf(v.access.depth), em.all)} - (${first});`);
        em.code.line(`vAt[${count === 1 ? "g" : `g / ${stride} * ${length} + g % ${stride}`}] = (int)${position};`);
      }),
    );
  }

  /** Copies of the images that the block reads. */
  copyImages(): void {
    const { em, plan } = this;
    const { s } = plan;
    if (s.kind !== "padded") return;
    const each = this.tilesEach;
    em.block(`for (idx image = t / ${each}; image * ${each} < tEnd; image++)`, () => {
      splitUnit(em, "image", plan.folded);
      em.code.line(`${plan.dtype} *const copy = w_spread + (image - t / ${each}) * ${s.padding.elements};`);
      emitPadding(em, s.padding, "copy");
    });
  }

  /** The folded counters of a tile. */
  outer(tile: string): void {
    const { code } = this.em;
    if (this.plan.folded.length === 0) return;
    const name = code.name("outer");
    code.line(`const idx ${name} = ${tile} / ${this.tilesEach};`);
    splitUnit(this.em, name, this.plan.folded);
  }

  packSpread(): void {
    const { em, nest, plan } = this;
    if (plan.s.kind === "direct" || plan.s.kind === "padded") return;
    const fill: Fill = {
      nest,
      expr: plan.spreadExpr,
      lane: plan.spread,
      from: "row0",
      to: "row1",
      left: null,
      begin: "pc",
      end: "pEnd",
      dst: "w_spread",
      stride: plan.s.stride,
    };
    em.block("", () => (plan.s.kind === "rows" ? fillRows(em, fill) : fillAlong(em, fill)));
  }

  /** Offsets along the depth of what is read in place in uneven steps. */
  tables(): void {
    const { em, nest, plan } = this;
    for (const [side, name] of [
      [plan.s, "sAt"],
      [plan.v, "vAt"],
    ] as const) {
      if ((side.kind !== "direct" && side.kind !== "padded") || side.step !== "table") continue;
      const { depth } = side.access;
      em.block("", () =>
        eachDepth(em, nest, "pc", "pEnd", (position) =>
          em.code.line(`${name}[${position}] = (int)(${em.index(indexOf(depth), em.all)});`),
        ),
      );
    }
  }

  /** Runs `body` for panel `p`, once as code for whole panels and once for the last. */
  anyPanel(body: (widths: readonly number[], beyond: number) => void): void {
    const { em, plan } = this;
    const { count, widths, tail } = plan.panels;
    const beyond = count * widthOf(widths) + widthOf(tail) - plan.vector.extent;
    em.code.line(`const idx col0 = p * ${widthOf(widths)};`);
    if (tail.length === 0) body(widths, 0);
    else if (count === 0) body(tail, beyond);
    else {
      em.block(`if (p < ${count})`, () => body(widths, 0));
      em.block("else", () => body(tail, beyond));
    }
  }

  /** A loop over the runs of the depth, [pc, pEnd). */
  runs(body: () => void): void {
    const [depth, run] = [this.nest.depth.extent, this.plan.run];
    this.em.block(`for (idx pc = 0; pc == 0 || pc < ${depth}; pc += ${run})`, () => {
      this.em.code.line(`const idx pEnd = pc + ${run} < ${depth} ? pc + ${run} : ${depth};`);
      body();
    });
  }

  /** Packs all panels of all runs. */
  packAll(): void {
    const all = (): void =>
      this.em.block("for (idx p = first; p < panels; p++)", () => {
        this.anyPanel((widths, beyond) => {
          if (this.plan.v.kind === "direct" && beyond === 0) return;
          this.packPanel(widthOf(widths), widthOf(widths) - beyond, this.packedAt(widthOf(widths)));
        });
      });
    if (this.plan.v.kind === "permuted") all();
    else this.runs(all);
  }

  /** Where the panel at col0 is packed: the whole depth of one after the other, or one run of one. */
  packedAt(width: number): string {
    const { resident, packedFirst, v } = this.plan;
    const panel = resident ? `w_panel + (col0 - ${packedFirst}) * ${this.nest.depth.extent}` : "w_panel";
    return v.kind === "permuted" || !resident ? panel : `${panel} + pc * ${width}`;
  }

  /** Address of the first element of a side that is read in place, at the start of the run. */
  place(access: Access, v: LoopVar, counter: string, step: DepthStep, base?: string): string {
    const { em } = this;
    em.vars.set(v, counter);
    const index = em.index(indexOf([...access.rest, ...access.lane]), em.all);
    const along = step === "table" ? "" : ` + pc * ${step}`;
    return `${base ?? em.slot(access.load.operand, access.load.index.offset)} + (${index})${along}`;
  }

  packPanel(width: number, lanes: number, to: string): void {
    const { em, nest, plan } = this;
    const { v, dtype } = plan;
    const end = this.operandEnd();
    const turn = (from: string, stride: number, depth: string, table: string): void =>
      em.code.line(`tm_across_${dtype}(${from}, ${stride}, ${lanes}, ${depth}, ${to}, ${width}, ${table}, ${end});`);
    if (v.kind === "across") {
      turn(this.place(v.access, plan.vector, "col0", v.step), v.stride, "pEnd - pc", "0");
      return;
    }
    if (v.kind === "permuted") {
      const { first, count, length, stride } = v.stretches;
      const from = `${this.place(v.access, plan.vector, "col0", "table")} + ${first}`;
      em.block(`for (idx g = 0; g < ${count}; g++)`, () =>
        turn(`${from} + g * ${stride}`, v.stride, String(length), `vAt + g * ${length}`),
      );
      return;
    }
    const turned = v.kind === "turned";
    const fill: Fill = {
      nest,
      expr: plan.vectorExpr,
      lane: plan.vector,
      from: "col0",
      to: `col0 + ${lanes}`,
      left: lanes % em.lanes,
      begin: "pc",
      end: "pEnd",
      dst: turned ? "w_rows" : to,
      stride: turned ? v.stride : width,
    };
    em.block("", () => (turned ? fillRows(em, fill) : fillAlong(em, fill)));
    if (turned) turn("w_rows", v.stride, "pEnd - pc", "0");
  }

  /** Where memory ends that a turn may read beyond a stretch: of the vector side's operand, if it is read there. */
  operandEnd(): string {
    const { v } = this.plan;
    if (v.kind !== "across" && v.kind !== "permuted") return "0";
    const { operand, index } = v.access.load;
    return `${this.em.slot(operand, index.offset)} + ${at(this.operands, operand).elements - index.offset}`;
  }
}
