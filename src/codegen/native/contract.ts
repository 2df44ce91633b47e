/**
 * @file Products as C: the nest `contract`, in the order of docs/numerics.md. contract-plan.ts makes the decisions; this file
 * emits the loops.
 *
 * The body is written into a C function (kernel.ts)
 *
 *   static void kN(idx lo, idx hi, int thread, T *s0, T *s1, …)
 *
 * that computes units [lo, hi) of the product; `emitContract` writes its body and says how many units there are. Units
 * depend only on shapes, never on the number of threads, and no two store to one address. Threads call the same function
 * at the same time, each with its own pieces and its number in `thread`, 0 ≤ thread < options.threads. Each thread has its
 * own workspace; `contractScratch` is the size of all of them.
 *
 * A unit is a range of tiles and of panels of one batch: rows of units along the side with more of them, cut across where there
 * would be few. Neighbouring units of a batch are computed together, so that one thread packs little twice.
 *
 * Functions of C that products share (tiles in registers) are passed to `share`, which adds each name to the file once.
 */

import { at } from "../../base/invariant.ts";
import { isFloatScalar } from "../../kernel/dtype.ts";
import type { ContractNest, Operand } from "../../kernel/loops.ts";
import { total } from "../cpu/winograd-choice.ts";
import { Interner } from "../intern.ts";
import { type Needed, neededSums } from "../needed-sums.ts";
import { product, type Units } from "../units.ts";
import { indexOf } from "./contract-access.ts";
import { ContractPacking } from "./contract-packing.ts";
import { type Product, planProduct, widthOf, workspaceElements } from "./contract-plan.ts";
import { anyNeeded, emitDepthRange, finishTile, type TilePlace } from "./contract-tile.ts";
import { splitUnit } from "./emit-loops.ts";
import type { VectorEmitter } from "./emitter.ts";
import { type DepthStep, type MicroShape, sharedMicro, shareVectors, stepKind } from "./gemm-micro.ts";
import { sharePacking } from "./gemm-pack.ts";
import type { CFile, NativeOptions } from "./options.ts";
import { emitWinograd } from "./winograd.ts";
import { planWinograd, planWinogradWeights } from "./winograd-plan.ts";
import { emitWinogradWeights } from "./winograd-weights.ts";

/** Elements of the workspace operand, for all threads together. */
export function contractScratch(nest: Product, operands: readonly Operand[], options: NativeOptions): number {
  if (isEmpty(nest)) return 0;
  const winograd = planWinograd(nest, operands, options);
  if (winograd) return options.threads * total(winograd.parts);
  const weights = planWinogradWeights(nest, options);
  if (weights) return options.threads * total(weights.parts);
  return options.threads * workspaceElements(planProduct(nest, operands, options));
}

const isEmpty = (nest: Product): boolean => product([...nest.batch, nest.rows, nest.cols]) === 0;

/** Units of a product: enough for threads to share, few enough to be worth a call. */
const MOST_UNITS = 64;

class ContractEmitter extends ContractPacking {
  readonly file: CFile;
  /** The elements of the result that are read; null: all. */
  readonly needed: Needed | null;

  constructor(em: VectorEmitter, nest: ContractNest, file: CFile) {
    super(em, nest, planProduct(nest, em.operands, file.options));
    this.file = file;
    const single = this.plan.sums === "tile" && !this.plan.swapped;
    this.needed = single ? neededSums(new Interner(), nest) : null;
  }

  emit(): Units {
    const { em, plan } = this;
    const { code } = em;
    const byPanels = this.panels > this.tiles;
    const [longer, shorter] = byPanels ? [this.panels, this.tiles] : [this.tiles, this.panels];
    const outer = Math.min(MOST_UNITS, longer);
    const inner = Math.min(shorter, Math.ceil(MOST_UNITS / (outer * product(plan.batch))));
    const each = outer * inner;
    this.workspace();
    this.permutation();
    em.block("for (idx unit = lo; unit < hi;)", () => {
      code.line(`const idx batch = unit / ${each}, u0 = unit - batch * ${each};`);
      code.line(`const idx most = u0 + hi - unit < ${each} ? hi - unit : ${each} - u0;`);
      this.unitRange(inner);
      splitUnit(em, "batch", plan.batch);
      this.span();
      const cut = (n: number, u: string, of: number): string => `${u} * ${n} / ${of}`;
      const along = [cut(longer, "o0", outer), cut(longer, "o1", outer)] as const;
      const across = [cut(shorter, "i0", inner), cut(shorter, "i1", inner)] as const;
      const [[t0, t1], [p0, p1]] = byPanels ? [across, along] : [along, across];
      code.line(`const idx tiles = ${t1}, first = ${p0}, panels = ${p1};`);
      if (plan.resident) this.packAll();
      em.block(`for (idx t = ${t0}; t < tiles;)`, () => this.block());
    });
    return { count: each * product(plan.batch), grain: 1 };
  }

  /** The units from `u0` on, at most `most`, that are computed together: whole rows of units, or a part of one. */
  unitRange(inner: number): void {
    const { code } = this.em;
    if (inner === 1) {
      code.line("const idx o0 = u0, o1 = u0 + most, i0 = 0, i1 = 1;");
      code.line("unit += most;");
      return;
    }
    code.line(`const idx o0 = u0 / ${inner}, i0 = u0 - o0 * ${inner};`);
    code.line(`const idx whole = i0 == 0 ? most / ${inner} : 0, left = ${inner} - i0;`);
    code.line("const idx o1 = o0 + (whole > 0 ? whole : 1);");
    code.line(`const idx i1 = whole > 0 ? ${inner} : i0 + (most < left ? most : left);`);
    code.line("unit += (o1 - o0) * (i1 - i0);");
  }

  /** A block of tiles; if packed, of one value of the merged batch counters. */
  block(): void {
    const { em, plan } = this;
    const { code } = em;
    const each = this.tilesEach;
    code.line(`idx tEnd = t + ${plan.blockTiles} < tiles ? t + ${plan.blockTiles} : tiles;`);
    // A packed block has one value of the merged batch counters; copies are made of as many as there is room for.
    if (plan.s.kind !== "in-place" && plan.mergedBatch.length > 0) {
      const end = `(t / ${each} + ${plan.copies}) * ${each}`;
      code.line(`if (tEnd > ${end}) tEnd = ${end};`);
    }
    if (plan.s.kind === "row-major" || plan.s.kind === "depth-major") {
      this.outer("t");
      code.line(`const idx row0 = ${this.start(`(t % ${each})`)}, row1 = ${this.start(`(t % ${each} + tEnd - t)`)};`);
    }
    this.copyImages();
    em.block(`for (idx p0 = first; p0 < panels; p0 += ${plan.blockPanels})`, () => {
      code.line(`const idx p1 = p0 + ${plan.blockPanels} < panels ? p0 + ${plan.blockPanels} : panels;`);
      const last = (): void => {
        if (plan.sums === "block") code.line(`const int last = ${this.lastRun};`);
      };
      const whole = plan.v.kind === "permuted" && !plan.resident;
      if (!whole) {
        this.runs(() => {
          last();
          this.packBroadcast();
          this.tables();
          em.block("for (idx p = p0; p < p1; p++)", () =>
            this.anyPanel((widths, beyond) => this.panel(widths, beyond)),
          );
        });
        return;
      }
      em.block("for (idx p = p0; p < p1; p++)", () => {
        this.anyPanel((widths, beyond) => {
          this.packPanel(widthOf(widths), widthOf(widths) - beyond, "w_panel");
          this.runs(() => {
            last();
            this.packBroadcast();
            this.tables();
            this.panel(widths, beyond);
          });
        });
      });
    });
    code.line("t = tEnd;");
  }

  /** First element of tile number q of the broadcast counter. */
  start(q: string): string {
    const { period, sizes } = this.plan.tiling;
    const [least, longer] = [
      sizes[sizes.length - 1] as number,
      sizes.filter((s) => s > (sizes[sizes.length - 1] as number)).length,
    ];
    const within = (x: string): string =>
      longer === 0 ? `${x} * ${least}` : `(${x} * ${least} + (${x} < ${longer} ? ${x} : ${longer}))`;
    if (period === this.plan.tiling.extent) return within(q);
    if (sizes.length === 1) return `${q} * ${period}`;
    return `(${q} / ${sizes.length} * ${period} + ${within(`(${q} % ${sizes.length})`)})`;
  }

  /** One panel of the vector side against the tiles of the block. */
  panel(widths: readonly number[], beyond: number): void {
    const { em, plan } = this;
    const { code } = em;
    const width = widthOf(widths);
    const direct = plan.v.kind === "in-place" && beyond === 0 ? plan.v : null;
    const permuted = plan.v.kind === "permuted";
    if (!direct && !plan.resident && !permuted) this.packPanel(width, width - beyond, "w_panel");
    const packed = `${this.packedAt(width)}${permuted ? ` + pc * ${width}` : ""}`;
    const panel = direct ? this.place(direct, plan.vector, "col0") : packed;
    code.line(`const ${plan.dtype} *const v = ${panel};`);
    em.block("for (idx tt = t; tt < tEnd; tt++)", () => {
      if (plan.s.kind === "in-place" || plan.s.kind === "padded") this.outer("tt");
      code.line(`const idx q = tt % ${this.tilesEach};`);
      code.line(`const idx row = ${this.start("q")};`);
      this.tile(widths, beyond, direct ? direct.step : width);
    });
  }

  /** The one or two sizes of even tiles; `i` is the number of the first tile that is not of this size. */
  sizes(): readonly { readonly pattern: readonly number[]; readonly i: number }[] {
    const { sizes, patterns } = this.plan.tiling;
    const [longest, least] = [sizes[0] as number, sizes[sizes.length - 1] as number];
    const even = { pattern: patterns[patterns.length - 1] as readonly number[], i: sizes.length };
    if (longest === least) return [even];
    return [{ pattern: patterns[0] as readonly number[], i: sizes.filter((s) => s === longest).length }, even];
  }

  /** Sums of one tile, and its stores. */
  tile(widths: readonly number[], beyond: number, vectorStep: DepthStep): void {
    const { em, plan } = this;
    const { code } = em;
    const { s } = plan;
    const width = widthOf(widths);
    const from = this.broadcastAt();
    code.line(`const ${plan.dtype} *const s = ${from};`);
    const place: TilePlace = {
      ...this.sumsAt(width, beyond),
      broadcast: "row",
      rows: "rows",
      vector: "col0",
      widths,
      beyond,
    };
    code.line("int rows;");
    this.kinds((pattern) => {
      const steps = { broadcastSteps: stepKind(s.step), vectorSteps: stepKind(vectorStep) };
      const name = this.kernel({ dtype: plan.dtype, widths, pattern, ...steps });
      code.line(`rows = ${pattern.length};`);
      if (plan.sums === "result" && beyond > 0) this.copyBeyond(place, "from result");
      this.sums(name, { vectorStep, lanes: width - beyond, at: `${place.at}, ${place.stride}` });
      if (plan.swapped) this.finish({ ...place, rows: pattern.length });
    });
    if (plan.sums === "result" && beyond > 0) this.copyBeyond(place, "to result");
    if (plan.sums !== "result" && !plan.swapped) this.finish(place);
  }

  /** The call that sums the tile's run of the depth, or the part of it with nonzero terms. */
  sums(name: string, to: { readonly vectorStep: DepthStep; readonly lanes: number; readonly at: string }): void {
    const { em, plan, nest } = this;
    const more = plan.sums === "tile" ? "0" : this.afterFirst;
    const tile = this.area("row", "rows", "col0", to.lanes);
    const skips = nest.within !== undefined;
    if (nest.within) emitDepthRange(em, nest.within, tile);
    const from = (side: string, step: DepthStep): string =>
      !skips || step === "table" ? side : `${side} + (kc - pc) * ${step}`;
    const by = (step: DepthStep, table: string): string => {
      if (step !== "table") return String(step);
      return skips ? `${table} + (kc - pc)` : table;
    };
    const sides = `${from("s", plan.s.step)}, ${from("v", to.vectorStep)}`;
    const steps = `${by(plan.s.step, "sAt")}, ${by(to.vectorStep, "vAt")}`;
    const depth = skips ? "kEnd - kc" : "pEnd - pc";
    const conditions = [
      ...(this.needed ? [anyNeeded(this.needed, tile)] : []),
      // No terms to add to the partial sums.
      ...(skips && plan.sums !== "tile" ? [`(kc < kEnd || !(${this.afterFirst}))`] : []),
    ];
    const call = `${name}(${sides}, ${steps}, ${depth}, ${to.at}, ${more});`;
    em.code.line(conditions.length > 0 ? `if (${conditions.join(" && ")}) ${call}` : call);
  }

  /** In C: the run is the last one. */
  get lastRun(): string {
    const { depth, span } = this.nest;
    return span ? `run + ${this.plan.run} >= ${depth.extent}` : `pEnd == ${depth.extent}`;
  }

  /** Address of the broadcast side's first element of the tile. */
  broadcastAt(): string {
    const { s, broadcast } = this.plan;
    switch (s.kind) {
      case "in-place":
        return this.place(s, broadcast, "row");
      case "padded":
        return this.place(
          s,
          broadcast,
          "row",
          `w_spread + (tt / ${this.tilesEach} - t / ${this.tilesEach}) * ${s.padding.elements} + ${s.access.load.index.offset}`,
        );
      case "row-major":
        return `w_spread + (row - row0) * ${s.stride}`;
      case "depth-major":
        return "w_spread + (row - row0)";
    }
  }

  /** Runs `body` for the kind of tile that tile q is. */
  kinds(body: (pattern: readonly number[]) => void): void {
    const { sizes, patterns, uneven } = this.plan.tiling;
    const kinds = uneven ? patterns.map((pattern, i) => ({ pattern, i })) : this.sizes();
    const inPeriod = sizes.length === this.tilesEach ? "q" : `q % ${sizes.length}`;
    kinds.forEach(({ pattern, i }, n) => {
      const when = uneven ? `${inPeriod} == ${i}` : `${inPeriod} < ${i}`;
      const condition = `${n > 0 ? "else " : ""}${n === kinds.length - 1 ? "" : `if (${when})`}`;
      this.em.block(condition, () => body(pattern));
    });
  }

  /** Destination of the tile's sums. */
  sumsAt(width: number, beyond: number): { readonly at: string; readonly stride: string } {
    const { em, nest, plan } = this;
    const { code } = em;
    if (plan.sums === "tile") return { at: "tile", stride: String(width) };
    if (plan.sums === "block") {
      const row = `(tt - t) * ${Math.max(...plan.tiling.sizes)}`;
      const column = `(col0 - p0 * ${widthOf(plan.panels.widths)})`;
      code.line(`${plan.dtype} *const c = w_sums + ${row} * ${plan.sumsWidth} + ${column};`);
      return { at: "c", stride: String(plan.sumsWidth) };
    }
    const store = at(nest.stores, 0);
    em.vars.set(nest.rows, "row");
    em.vars.set(nest.cols, "col0");
    const index = em.index(indexOf(store.index.terms), em.all);
    code.line(`${plan.dtype} *const c = ${em.pointer(store.operand, store.index.offset)} + (${index});`);
    return beyond > 0 ? { at: "tile", stride: String(width) } : { at: "c", stride: this.resultStride() };
  }

  /** Distance of rows of the result, where sums are stored into it directly. */
  resultStride(): string {
    const { nest } = this;
    return String(at(nest.stores, 0).index.terms.find((t) => t.atom === nest.rows)?.coef ?? 0);
  }

  /** Copies between the result and a temporary tile, for tiles with lanes beyond the matrix. */
  copyBeyond({ at: tile, stride, widths, beyond }: TilePlace, way: "from result" | "to result"): void {
    const { nest, plan, em } = this;
    if (way === "from result" && plan.run >= nest.depth.extent) return;
    const [inTile, inResult] = [`${tile} + r * ${stride}`, `c + r * ${this.resultStride()}`];
    const [to, from] = way === "to result" ? [inResult, inTile] : [inTile, inResult];
    const bytes = `${widthOf(widths) - beyond} * sizeof(${plan.dtype})`;
    em.code.line(
      `${way === "to result" ? "" : `if (${this.afterFirst}) `}for (int r = 0; r < rows; r++) memcpy(${to}, ${from}, ${bytes});`,
    );
  }

  finish(place: TilePlace): void {
    const { em, nest, plan } = this;
    const body = (): void => finishTile(em, nest, plan, place);
    if (plan.sums === "block") em.block("if (last)", body);
    else body();
  }

  /** The name of the tile's function, which is added to the file with its dependencies. */
  kernel(shape: MicroShape): string {
    const { plan } = this;
    const { options, share } = this.file;
    const { dtype } = plan;
    for (const lanes of new Set([plan.lanes, ...shape.widths])) shareVectors(share, dtype, lanes);
    if (plan.swapped || ["transposed", "computed-transposed", "permuted"].includes(plan.v.kind)) {
      sharePacking(share, dtype, plan.lanes);
    }
    return sharedMicro(share, shape, options.fma && isFloatScalar(dtype));
  }
}

/** Writes the body of a product's function. */
export function emitContract(em: VectorEmitter, nest: ContractNest, file: CFile): Units {
  if (isEmpty(nest)) return { count: 0, grain: 1 };
  const winograd = planWinograd(nest, em.operands, file.options);
  if (winograd) return emitWinograd(em, nest, winograd, file);
  const weights = planWinogradWeights(nest, file.options);
  if (weights) return emitWinogradWeights(em, nest, weights, file);
  return new ContractEmitter(em, nest, file).emit();
}
