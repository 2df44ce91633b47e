/**
 * @file Products as C: the nest `contract`, in the order of docs/numerics.md. What is decided is in contract-plan.ts; here
 * it becomes loops.
 *
 * How it is called (kernel.ts): the body is written into a C function
 *
 *   static void kN(idx lo, idx hi, int thread, T *s0, T *s1, …)
 *
 * that computes units [lo, hi) of the product; `emitContract` writes its body and says how many units there are. Units
 * depend on shapes alone, never on the number of threads, and no two of them store to one place. Threads call the same
 * function at the same time with pieces of their own and their number in `thread`, 0 ≤ thread < options.threads: workspace
 * is that of the thread, `contractScratch` asks for all of it.
 *
 * A unit is a range of tiles or of panels of one batch. Neighbouring units of a batch are computed together, so that one
 * thread packs nothing twice.
 *
 * Functions of C that products share (tiles in registers) are handed to `share`, which puts each name into the file once.
 */
import type { LoopVar } from "../../kernel/expr.ts";
import type { ContractNest, Operand } from "../../kernel/loops.ts";
import { type Access, indexOf } from "./contract-access.ts";
import { eachDepth, type Fill, fillAlong, fillRows } from "./contract-fill.ts";
import { isExact, type Product, type ProductPlan, planProduct, widthOf, workspaceElements } from "./contract-plan.ts";
import { finishTile, type TilePlace } from "./contract-tile.ts";
import type { VectorEmitter } from "./emitter.ts";
import { type DepthStep, type MicroShape, microKernel, microName, vectorTypes } from "./gemm-micro.ts";
import { packText } from "./gemm-pack.ts";
import type { NativeOptions } from "./options.ts";
import { product, splitUnit, type Units } from "./walk.ts";

/** Puts a C function, or other text, into the file under a name, once. */
export type ShareFunction = (name: string, text: () => string) => void;

/** Elements of the workspace operand, for all threads together. */
export function contractScratch(nest: Product, operands: readonly Operand[], options: NativeOptions): number {
  if (isEmpty(nest)) return 0;
  return options.threads * workspaceElements(planProduct(nest, operands, options));
}

const isEmpty = (nest: Product): boolean => product([...nest.batch, nest.rows, nest.cols]) === 0;

/** Units of a batch: enough for threads to share, few enough to be worth a call. */
const MOST_UNITS = 64;

class ContractEmitter {
  readonly em: VectorEmitter;
  readonly nest: ContractNest;
  readonly operands: readonly Operand[];
  readonly options: NativeOptions;
  readonly plan: ProductPlan;
  readonly share: ShareFunction;
  /** Tiles of the spread side for each value of the folded counters, and in all; panels. */
  readonly tilesEach: number;
  readonly tiles: number;
  readonly panels: number;
  /** Lanes of a block of sums. */
  readonly sumsWidth: number;

  constructor(
    em: VectorEmitter,
    nest: ContractNest,
    operands: readonly Operand[],
    options: NativeOptions,
    share: ShareFunction,
  ) {
    this.em = em;
    this.nest = nest;
    this.operands = operands;
    this.options = options;
    this.share = share;
    this.plan = planProduct(nest, operands, options);
    const { tiling, folded, panels, blockPanels } = this.plan;
    this.tilesEach = (tiling.extent / tiling.period) * tiling.sizes.length;
    this.tiles = this.tilesEach * product(folded);
    this.panels = panels.count + (panels.tail.length > 0 ? 1 : 0);
    const width = widthOf(panels.widths);
    this.sumsWidth = Math.min(blockPanels * width, panels.count * width + widthOf(panels.tail));
  }

  emit(): Units {
    const { em, plan } = this;
    const { code } = em;
    const byPanels = this.panels > this.tiles;
    const each = Math.min(MOST_UNITS, byPanels ? this.panels : this.tiles);
    this.workspace();
    em.block("for (idx unit = lo; unit < hi;)", () => {
      code.line(`const idx batch = unit / ${each}, u0 = unit - batch * ${each};`);
      code.line(`const idx u1 = u0 + hi - unit < ${each} ? u0 + hi - unit : ${each};`);
      code.line("unit += u1 - u0;");
      splitUnit(em, "batch", plan.batch);
      const cut = (n: number, u: string): string => `${u} * ${n} / ${each}`;
      const [t0, t1] = byPanels ? ["0", String(this.tiles)] : [cut(this.tiles, "u0"), cut(this.tiles, "u1")];
      const [p0, p1] = byPanels ? [cut(this.panels, "u0"), cut(this.panels, "u1")] : ["0", String(this.panels)];
      code.line(`const idx tiles = ${t1}, first = ${p0}, panels = ${p1};`);
      em.block(`for (idx t = ${t0}; t < tiles;)`, () => this.block());
    });
    return { count: each * product(plan.batch), grain: 1 };
  }

  /** Names for the parts of this thread's workspace. */
  workspace(): void {
    const { plan, nest, em } = this;
    const { parts, dtype } = plan;
    let at = `${em.slot(nest.scratch, 0)} + (idx)thread * ${workspaceElements(plan)}`;
    for (const [name, elements] of Object.entries(parts)) {
      if (elements === 0) continue;
      em.code.line(`${dtype} *const w_${name} = ${at};`);
      at = `w_${name} + ${elements}`;
    }
    if (parts.tables > 0) em.code.line("int *const sAt = (int *)w_tables;");
    const both =
      plan.s.kind === "direct" && plan.s.step === "table" && plan.v.kind === "direct" && plan.v.step === "table";
    if (parts.tables > 0) em.code.line(`int *const vAt = sAt + ${both ? plan.run : 0};`);
    // A tile is read in whole registers, and so beyond its end.
    const width = Math.max(plan.panels.count > 0 ? widthOf(plan.panels.widths) : 0, widthOf(plan.panels.tail));
    const tile = Math.max(...plan.tiling.sizes) * width + plan.lanes;
    em.code.line(`${dtype} tile[${tile}] __attribute__((aligned(64)));`);
  }

  /** A block of tiles: of one value of the folded counters where it is packed. */
  block(): void {
    const { em, plan } = this;
    const { code } = em;
    const packed = plan.s.kind !== "direct";
    const limit = `t + ${plan.blockTiles} < tiles ? t + ${plan.blockTiles} : tiles`;
    code.line(`idx tEnd = ${limit};`);
    if (packed && plan.folded.length > 0) {
      code.line(
        `if (tEnd > (t / ${this.tilesEach} + 1) * ${this.tilesEach}) tEnd = (t / ${this.tilesEach} + 1) * ${this.tilesEach};`,
      );
    }
    if (packed) this.outer("t");
    code.line(`const idx row0 = ${packed ? this.start(`(t % ${this.tilesEach})`) : "0"};`);
    if (packed) code.line(`const idx row1 = ${this.start(`(t % ${this.tilesEach} + tEnd - t)`)};`);
    const blocked = plan.sums === "block";
    em.block(`for (idx p0 = first; p0 < panels; p0 += ${plan.blockPanels})`, () => {
      code.line(`const idx p1 = p0 + ${plan.blockPanels} < panels ? p0 + ${plan.blockPanels} : panels;`);
      const depth = this.nest.depth.extent;
      em.block(`for (idx pc = 0; pc == 0 || pc < ${depth}; pc += ${plan.run})`, () => {
        code.line(`const idx pEnd = pc + ${plan.run} < ${depth} ? pc + ${plan.run} : ${depth};`);
        if (blocked) code.line(`const int last = pEnd == ${depth};`);
        this.packSpread();
        this.tables();
        em.block("for (idx p = p0; p < p1; p++)", () => this.anyPanel());
      });
    });
    code.line("t = tEnd;");
  }

  /** The folded counters of a tile. */
  outer(tile: string): void {
    const { code } = this.em;
    if (this.plan.folded.length === 0) return;
    const name = code.name("outer");
    code.line(`const idx ${name} = ${tile} / ${this.tilesEach};`);
    splitUnit(this.em, name, this.plan.folded);
  }

  /** First element of tile number q of the spread counter. */
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

  packSpread(): void {
    const { em, nest, plan } = this;
    if (plan.s.kind === "direct") return;
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
      if (side.kind !== "direct" || side.step !== "table") continue;
      const { depth } = side.access;
      em.block("", () =>
        eachDepth(em, nest, "pc", "pEnd", (position) =>
          em.code.line(`${name}[${position}] = (int)(${em.index(indexOf(depth), em.all)});`),
        ),
      );
    }
  }

  anyPanel(): void {
    const { em, plan } = this;
    const { count, widths, tail } = plan.panels;
    const exact = isExact(plan.panels, plan.vector.extent);
    const beyond = count * widthOf(widths) + widthOf(tail) - plan.vector.extent;
    if (tail.length === 0) this.panel(widths, 0);
    else if (count === 0) this.panel(tail, exact ? 0 : beyond);
    else {
      em.block(`if (p < ${count})`, () => this.panel(widths, 0));
      em.block("else", () => this.panel(tail, exact ? 0 : beyond));
    }
  }

  /** One panel of the vector side against the tiles of the block. */
  panel(widths: readonly number[], beyond: number): void {
    const { em, plan } = this;
    const { code } = em;
    const width = widthOf(widths);
    code.line(`const idx col0 = p * ${widthOf(plan.panels.widths)};`);
    const direct = plan.v.kind === "direct" && beyond === 0;
    if (direct && plan.v.kind === "direct") {
      code.line(`const ${plan.dtype} *const v = ${this.place(plan.v.access, plan.vector, "col0", plan.v.step)};`);
    } else {
      this.packPanel(width, width - beyond);
      code.line(`const ${plan.dtype} *const v = w_panel;`);
    }
    const vectorStep = direct && plan.v.kind === "direct" ? plan.v.step : width;
    em.block("for (idx tt = t; tt < tEnd; tt++)", () => {
      if (plan.s.kind === "direct") this.outer("tt");
      code.line(`const idx q = tt % ${this.tilesEach};`);
      code.line(`const idx row = ${this.start("q")};`);
      const { sizes, patterns, uneven } = plan.tiling;
      const kinds = uneven ? patterns.map((pattern, i) => ({ pattern, i })) : this.sizes();
      kinds.forEach(({ pattern, i }, n) => {
        const lastKind = n === kinds.length - 1;
        const inPeriod = sizes.length === this.tilesEach ? "q" : `q % ${sizes.length}`;
        const when = uneven ? `${inPeriod} == ${i}` : `${inPeriod} < ${i}`;
        const condition = `${n > 0 ? "else " : ""}${lastKind ? "" : `if (${when})`}`;
        em.block(condition, () => this.tile(pattern, widths, beyond, vectorStep));
      });
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

  /** Address of the first element of a side that is read in place, at the start of the run. */
  place(access: Access, v: LoopVar, at: string, step: DepthStep): string {
    const { em } = this;
    em.vars.set(v, at);
    const index = em.index(indexOf([...access.rest, ...access.lane]), em.all);
    const along = step === "table" ? "" : ` + pc * ${step}`;
    return `${em.slot(access.load.operand, access.load.index.offset)} + (${index})${along}`;
  }

  packPanel(width: number, lanes: number): void {
    const { em, nest, plan } = this;
    const { v, dtype } = plan;
    if (v.kind === "across") {
      const from = this.place(v.access, plan.vector, "col0", v.step);
      em.code.line(`tm_across_${dtype}(${from}, ${v.stride}, ${lanes}, pEnd - pc, w_panel, ${width});`);
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
      dst: turned ? "w_rows" : "w_panel",
      stride: turned ? v.stride : width,
    };
    em.block("", () => (turned ? fillRows(em, fill) : fillAlong(em, fill)));
    if (turned) em.code.line(`tm_across_${dtype}(w_rows, ${v.stride}, ${lanes}, pEnd - pc, w_panel, ${width});`);
  }

  /** Sums of one tile, and its stores. */
  tile(pattern: readonly number[], widths: readonly number[], beyond: number, vectorStep: DepthStep): void {
    const { em, nest, plan } = this;
    const { code } = em;
    const { s, dtype, sums } = plan;
    const width = widthOf(widths);
    const spreadStep = s.step;
    const name = this.kernel({ dtype, widths, pattern, spreadStep, vectorStep });
    const from =
      s.kind === "direct"
        ? this.place(s.access, plan.spread, "row", s.step)
        : `w_spread + (row - row0)${s.kind === "rows" ? ` * ${s.stride}` : ""}`;
    const tables = `${spreadStep === "table" ? "sAt" : "0"}, ${vectorStep === "table" ? "vAt" : "0"}`;
    const run = (to: string, stride: string, more: string): void =>
      code.line(`${name}(${from}, v, ${tables}, pEnd - pc, ${to}, ${stride}, ${more});`);
    const place: TilePlace = {
      at: "tile",
      stride: String(width),
      spread: "row",
      rows: pattern.length,
      vector: "col0",
      widths,
      beyond,
    };
    if (sums === "block") {
      const at = `w_sums + ((tt - t) * ${Math.max(...plan.tiling.sizes)}) * ${this.sumsWidth} + (col0 - p0 * ${widthOf(plan.panels.widths)})`;
      code.line(`${dtype} *const c = ${at};`);
      run("c", String(this.sumsWidth), "pc > 0");
      em.block("if (last)", () =>
        finishTile(em, nest, this.operands, plan, { ...place, at: "c", stride: String(this.sumsWidth) }),
      );
      return;
    }
    if (sums === "tile") {
      run("tile", String(width), "0");
      finishTile(em, nest, this.operands, plan, place);
      return;
    }
    this.intoResult(run, place);
  }

  /** Sums that are the result: straight into it, but for the lanes beyond. */
  intoResult(run: (to: string, stride: string, more: string) => void, place: TilePlace): void {
    const { em, nest, plan } = this;
    const [store] = nest.stores;
    if (!store) return;
    em.vars.set(nest.rows, "row");
    em.vars.set(nest.cols, "col0");
    const stride = String(store.index.terms.find((t) => t.atom === nest.rows)?.coef ?? 0);
    em.code.line(
      `${plan.dtype} *const c = ${em.slot(store.operand, store.index.offset)} + (${em.index(indexOf(store.index.terms), em.all)});`,
    );
    if (place.beyond === 0) {
      run("c", stride, "pc > 0");
      return;
    }
    const columns = widthOf(place.widths) - place.beyond;
    const copy = (to: string, from: string): string =>
      `for (int r = 0; r < ${place.rows}; r++) memcpy(${to}, ${from}, ${columns} * sizeof(${plan.dtype}));`;
    const [inTile, inResult] = [`tile + r * ${place.stride}`, `c + r * ${stride}`];
    if (plan.run < nest.depth.extent) em.code.line(`if (pc > 0) ${copy(inTile, inResult)}`);
    run("tile", place.stride, "pc > 0");
    em.code.line(copy(inResult, inTile));
  }

  /** The tile's function, put into the file with what it needs. */
  kernel(shape: MicroShape): string {
    const { share, plan } = this;
    const { dtype } = plan;
    for (const lanes of new Set([plan.lanes, ...shape.widths]))
      share(`tm_${dtype}x${lanes}`, () => vectorTypes(dtype, lanes));
    if (plan.swapped || plan.v.kind === "across" || plan.v.kind === "turned") {
      share(`tm_turn_${dtype}`, () => packText(dtype, plan.lanes));
    }
    const name = microName(shape);
    share(name, () => microKernel(shape, this.options.fma && dtype !== "i32"));
    return name;
  }
}

/** Writes the body of a product's function. */
export function emitContract(
  em: VectorEmitter,
  nest: ContractNest,
  operands: readonly Operand[],
  options: NativeOptions,
  share: ShareFunction,
): Units {
  if (isEmpty(nest)) return { count: 0, grain: 1 };
  return new ContractEmitter(em, nest, operands, options, share).emit();
}
