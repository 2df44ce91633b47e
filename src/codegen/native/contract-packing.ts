/**
 * @file Prepares the data that a product's tiles read: names for the workspace, tables of offsets, copies of padded images,
 * packed blocks and panels. contract-plan.ts decides which of them a product needs; contract.ts loops over the tiles.
 */
import type { ContractNest } from "../../kernel/loops.ts";
import { product } from "../units.ts";
import { indexOf } from "./contract-access.ts";
import { eachDepth, type Fill, fillRowMajor } from "./contract-fill.ts";
import { emitPadding } from "./contract-padded.ts";
import { PanelPacking } from "./contract-panel.ts";
import { type ProductPlan, widthOf, workspaceElements } from "./contract-plan.ts";
import { type Area, emitDepthRange } from "./contract-tile.ts";
import { fillLanes } from "./contract-window.ts";
import { splitUnit } from "./emit-loops.ts";
import type { VectorEmitter } from "./emitter.ts";

export class ContractPacking extends PanelPacking<ProductPlan> {
  /** Tiles of the broadcast side for each value of the merged batch counters, and in all; panels. */
  readonly tilesEach: number;
  readonly tiles: number;
  readonly panels: number;

  constructor(em: VectorEmitter, nest: ContractNest, plan: ProductPlan) {
    super(em, nest, plan);
    const { tiling, mergedBatch, panels } = this.plan;
    this.tilesEach = (tiling.extent / tiling.period) * tiling.sizes.length;
    this.tiles = this.tilesEach * product(mergedBatch);
    this.panels = panels.count + (panels.tail.length > 0 ? 1 : 0);
  }

  /** Names for the parts of this thread's workspace. */
  workspace(): void {
    const { plan, nest, em } = this;
    const { parts, dtype } = plan;
    let next = `${em.pointer(nest.scratch, 0)} + (idx)thread * ${workspaceElements(plan)}`;
    for (const [name, elements] of Object.entries(parts)) {
      if (elements === 0) continue;
      em.code.line(`${dtype} *const w_${name} = ${next};`);
      next = `w_${name} + ${elements}`;
    }
    if (parts.tables > 0) em.code.line("int *const sAt = (int *)w_tables;");
    if (parts.tables > 0) em.code.line(`int *const vAt = sAt + ${plan.s.step === "table" ? plan.run : 0};`);
    // A tile is read in whole registers, so beyond its end.
    const width = Math.max(plan.panels.count > 0 ? widthOf(plan.panels.widths) : 0, widthOf(plan.panels.tail));
    const tile = Math.max(...plan.tiling.sizes) * width + plan.lanes;
    em.code.line(`${dtype} tile[${tile}] __attribute__((aligned(64))) = {0};`);
  }

  /** Copies of the images that the block reads. */
  copyImages(): void {
    const { em, plan } = this;
    const { s } = plan;
    if (s.kind !== "padded") return;
    const each = this.tilesEach;
    em.block(`for (idx image = t / ${each}; image * ${each} < tEnd; image++)`, () => {
      splitUnit(em, "image", plan.mergedBatch);
      em.code.line(`${plan.dtype} *const copy = w_spread + (image - t / ${each}) * ${s.padding.elements};`);
      emitPadding(em, s.padding, "copy");
    });
  }

  /** The merged batch counters of a tile. */
  outer(tile: string): void {
    const { code } = this.em;
    if (this.plan.mergedBatch.length === 0) return;
    const name = code.name("outer");
    code.line(`const idx ${name} = ${tile} / ${this.tilesEach};`);
    splitUnit(this.em, name, this.plan.mergedBatch);
  }

  /** An area of the result, given by the broadcast side's counter and the vector side's. */
  area(broadcast: string, count: string, vector: string, lanes: number): Area {
    const [a, b] = [
      [broadcast, count],
      [vector, String(lanes)],
    ] as const;
    const [[row, rows], [col, cols]] = this.plan.swapped ? [b, a] : [a, b];
    return { row, rows, col, cols };
  }

  packBroadcast(): void {
    const { em, nest, plan } = this;
    if (plan.s.kind === "in-place" || plan.s.kind === "padded") return;
    const fill: Fill = {
      nest,
      expr: plan.broadcastExpr,
      lane: plan.broadcast,
      from: "row0",
      to: "row1",
      left: null,
      begin: nest.within ? "kc" : "pc",
      end: nest.within ? "kEnd" : "pEnd",
      origin: "pc",
      dst: "w_spread",
      stride: plan.s.stride,
    };
    em.block("", () => {
      if (nest.within) emitDepthRange(em, nest.within, this.area("row0", "(row1 - row0)", "0", plan.vector.extent));
      if (plan.s.kind === "row-major") fillRowMajor(em, fill);
      else fillLanes(em, fill);
    });
  }

  /** Tables of offsets along the depth, for sides that are read in place in uneven steps. */
  tables(): void {
    const { em, nest, plan } = this;
    for (const [side, name] of [
      [plan.s, "sAt"],
      [plan.v, "vAt"],
    ] as const) {
      if ((side.kind !== "in-place" && side.kind !== "padded") || side.step !== "table") continue;
      const { depth } = side.access;
      em.block("", () =>
        eachDepth(em, nest, { begin: "pc", end: "pEnd" }, (position) =>
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

  /** Packs all panels of all runs. */
  packAll(): void {
    const all = (): void =>
      this.em.block("for (idx p = first; p < panels; p++)", () => {
        this.anyPanel((widths, beyond) => {
          if (this.plan.v.kind === "in-place" && beyond === 0) return;
          this.packPanel(widthOf(widths), widthOf(widths) - beyond, this.packedAt(widthOf(widths)));
        });
      });
    if (this.plan.v.kind === "permuted") all();
    else this.runs(all);
  }

  /** Address of the packed panel at col0: of the whole depth of all panels, or of one run of one panel. */
  packedAt(width: number): string {
    const { resident, packedFirst, v } = this.plan;
    const panel = resident ? `w_panel + (col0 - ${packedFirst}) * ${this.nest.depth.extent}` : "w_panel";
    return v.kind === "permuted" || !resident ? panel : `${panel} + pc * ${width}`;
  }
}
