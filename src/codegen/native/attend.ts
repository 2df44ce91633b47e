/**
 * @file Attention as C: the stages of kernel/attend.ts one after the other, on tiles in a thread's own workspace. Products
 * are tiles of sums in registers (gemm-micro.ts), whose vectors run along the block of the unit, read from a tile; the other
 * side is read from its operand in place, element by element:
 *
 *              tile [c, x]   ░░░░░░░░ 64 ░░░░░░░░
 *   keys [y, c]   → k[y, c]  ████ sums [y, x] ████     13 rows × 2 vectors at a time
 *
 * So neither keys nor values are packed or copied, and every maximum, exponential and sum over keys is one of whole vectors.
 */
import { at, invariant } from "../../base/invariant.ts";
import { attendByHeads, attendStages } from "../../kernel/attend.ts";
import type { AttendStages, Repeat, Stage } from "../../kernel/attend-stages.ts";
import { bytesOf, isFloatScalar } from "../../kernel/dtype.ts";
import { type Expr, type LoopVar, load } from "../../kernel/expr.ts";
import { addIndex, scaleIndex, varIndex } from "../../kernel/index-math.ts";
import { type AttendNest, type ContractNest, type Nest, type Operand, tileRows } from "../../kernel/loops.ts";
import {
  type AttendLayout,
  afterProduct,
  attendLayout,
  depthRuns,
  hasHeadsFor,
  type InPlace,
  inPlace,
  isAdded,
  unitsOf,
} from "../cpu/attend.ts";
import { addressesOf } from "../operand-addresses.ts";
import { product, type Units } from "../units.ts";
import { splitUnit } from "./emit-loops.ts";
import { VectorEmitter } from "./emitter.ts";
import { sharedMicro, shareVectors } from "./gemm-micro.ts";
import { emitMap } from "./nests.ts";
import type { CFile, NativeOptions } from "./options.ts";
import { emitReduce } from "./reduce.ts";

/** Vectors of a tile of sums, and the most rows: with two vectors of the right side they fill the registers. */
const VECTORS = 2;
const mostRows = (lanes: number): number => (lanes === 16 ? 14 : 6);

/** The left side of a product as C. */
interface Left {
  readonly pointer: string;
  readonly rowStep: number;
  readonly depthStep: number;
}

/** Tiles of sums below each other: rows of each, the first row, how many; vectors of a row; from row to row. */
interface Tiles {
  readonly rows: number;
  readonly from: number;
  readonly count: number;
  readonly vectors: number;
  readonly added: boolean;
  readonly rightStep: number;
  readonly sumsStep: number;
}

/** Units of whole heads where there are enough for all threads, and where keys and dq can be read and added to as vectors. */
function nativeStages(nest: AttendNest, operands: readonly Operand[], options: NativeOptions): AttendStages {
  const dq = at(nest.stores, 0);
  const lanes = (options.lanes * 4) / bytesOf(nest.dtype);
  const isDense = (expr: Expr, along: LoopVar): boolean => inPlace(expr, [along, nest.depth])?.steps[1] === 1;
  const byHeads =
    nest.backward !== null &&
    hasHeadsFor(nest, options.threads) &&
    nest.depth.extent % lanes === 0 &&
    operands[dq.operand]?.dtype === nest.dtype &&
    isDense(nest.k, nest.cols) &&
    isDense(load(nest.dtype, dq.operand, dq.index), nest.rows);
  return byHeads ? attendByHeads(nest, operands.length) : attendStages(nest, operands.length);
}

/** Elements of the workspace: of every thread where there is anything to compute. */
export function attendScratch(nest: AttendNest, operands: readonly Operand[], options: NativeOptions): number {
  const { stages, elements } = attendLayout(nativeStages(nest, operands, options));
  return unitsOf(stages).count === 0 ? 0 : options.threads * elements;
}

class AttendEmitter {
  readonly em: VectorEmitter;
  /** Of the kernel, behind which are the tiles. */
  readonly operands: number;
  readonly nest: AttendNest;
  readonly file: CFile;
  readonly layout: AttendLayout;
  readonly copy: string;

  constructor(outer: VectorEmitter, nest: AttendNest, file: CFile) {
    const { code, operands } = outer;
    this.nest = nest;
    this.file = file;
    this.operands = operands.length;
    this.layout = attendLayout(nativeStages(nest, operands, file.options));
    const { offsets, elements, copy } = this.layout;
    const w = code.name("w");
    code.line(`${nest.dtype} *const ${w} = ${outer.pointer(nest.scratch ?? 0, 0)} + thread * ${elements};`);
    const known = new Map(addressesOf(nest).map(({ operand, offset }) => [operand, offset]));
    const pointer = (operand: number, offset: number): string => {
      const tile = offsets[operand - operands.length];
      if (tile !== undefined) return `(${w} + ${tile + offset})`;
      const from = known.get(operand) ?? 0;
      const name = outer.pointer(operand, from);
      return offset === from ? name : `(${name} + ${offset - from})`;
    };
    const tiles = offsets.map((): Operand => ({ dtype: nest.dtype, elements: 0, role: "scratch" }));
    this.em = new VectorEmitter(code, outer.lanes, pointer, [...operands, ...tiles]);
    this.copy = `(${w} + ${copy})`;
  }

  emit(): Units {
    const { em, layout } = this;
    const { code } = em;
    const { starts, count } = unitsOf(layout.stages);
    layout.stages.programs.forEach(({ units, body }, p) => {
      const [from, to] = [at(starts, p), at(starts, p) + product(units)];
      if (from === to) return;
      const unit = code.name("unit");
      const first = `lo > ${from} ? lo : ${from}`;
      em.block(`for (idx ${unit} = ${first}; ${unit} < hi && ${unit} < ${to}; ${unit}++)`, () => {
        const number = code.name("unit");
        code.line(`const idx ${number} = ${unit} - ${from};`);
        splitUnit(em, number, units);
        this.stages(body);
      });
    });
    return { count, grain: 1 };
  }

  stages(stages: readonly Stage[]): void {
    for (const stage of stages) {
      if (stage.kind === "repeat") this.repeat(stage);
      else if (stage.kind === "contract") this.product(stage);
      else this.whole(stage);
    }
  }

  repeat({ counter, first, last, from, to, body }: Repeat): void {
    const { em } = this;
    const { code } = em;
    const [lo, hi] = [code.name("from"), code.name("to")];
    em.vec = null;
    const ends = to.map((index) => em.index(index, em.all));
    code.line(`idx ${lo} = ${from ? em.index(from, em.all) : first}, ${hi} = ${ends[0] ?? last};`);
    if (from) code.line(`if (${lo} < ${first}) ${lo} = ${first};`);
    for (const end of ends.slice(1)) code.line(`if (${hi} > ${end}) ${hi} = ${end};`);
    if (to.length > 0) code.line(`if (${hi} > ${last}) ${hi} = ${last};`);
    const name = em.counter(counter);
    em.block(`for (idx ${name} = ${lo}; ${name} < ${hi}; ${name}++)`, () => this.stages(body));
  }

  /** A map or a reduction, all of it on this thread. */
  whole(nest: Nest): void {
    const { em } = this;
    const { code } = em;
    em.block("", () => {
      const line = code.lines.length;
      const { count } = nest.kind === "reduce" ? emitReduce(em, nest) : emitMap(em, nest as never, this.file);
      code.lines.splice(line, 0, `const idx lo = 0, hi = ${count}; (void)lo; (void)hi;`);
    });
  }

  // ---- products -----------------------------------------------------------------------------------------------------

  /** Sums into the tile or result that is stored to; then what is computed of them. */
  product(nest: ContractNest): void {
    const { em, file } = this;
    const { code } = em;
    const { rows, cols, depth, dtype } = nest;
    if (rows.extent === 0 || cols.extent === 0) return;
    em.vec = null;
    const store = at(nest.stores, 0);
    const right = inPlace(nest.b, [depth, cols]);
    const sums = inPlace(load(dtype, store.operand, store.index), [rows, cols]);
    invariant(right && sums, () => "the right side of a product of attention is a tile, or lies side by side");
    const added = isAdded(store);
    // rows of tiles have room for whole vectors; those of operands have none to spare
    const wide = Math.ceil(cols.extent / em.lanes);
    const vectors = wide % VECTORS === 0 || sums.operand >= this.operands ? VECTORS : 1;
    em.block("", () => {
      const left = this.left(nest);
      code.line(`const ${dtype} *const left = ${left.pointer};`);
      code.line(`const ${dtype} *const right = ${this.place(right)};`);
      code.line(`${dtype} *const sums = ${this.place(sums)};`);
      const most = mostRows(file.options.lanes);
      const [high, tiles] = [tileRows(rows.extent, most), Math.ceil(rows.extent / most)];
      const taller = rows.extent - tiles * (high - 1);
      const width = vectors * em.lanes;
      em.block(`for (idx col = 0; col < ${Math.ceil(wide / vectors) * width}; col += ${width})`, () => {
        const shared = { vectors, added, rightStep: right.steps[0], sumsStep: sums.steps[0] };
        this.tiles(nest, left, { ...shared, rows: high, from: 0, count: taller });
        this.tiles(nest, left, { ...shared, rows: high - 1, from: taller * high, count: tiles - taller });
      });
    });
    if (!added) this.whole(afterProduct(nest));
  }

  /** Address of an element at counters that are 0. */
  place({ operand, start }: InPlace): string {
    return `${this.em.pointer(operand, start.offset)} + (${this.em.index(start, this.em.all, null, true)})`;
  }

  /** Equal tiles, one below the other. */
  tiles({ dtype, depth }: ContractNest, { rowStep, depthStep }: Left, tiles: Tiles): void {
    const { rows, from, count, vectors, added, rightStep, sumsStep } = tiles;
    if (count === 0) return;
    const { em, file } = this;
    const { share, options } = file;
    shareVectors(share, dtype, em.lanes);
    const pattern = Array.from({ length: rows }, (_, r) => r * rowStep);
    const widths = new Array<number>(vectors).fill(em.lanes);
    const shape = { dtype, widths, pattern, broadcastSteps: "number", vectorSteps: "number" } as const;
    const name = sharedMicro(share, shape, options.fma && isFloatScalar(dtype));
    em.block(`for (idx row = ${from}; row < ${from + count * rows}; row += ${rows})`, () => {
      for (const [start, length] of depthRuns(depth)) {
        const [s, v] = [`left + row * ${rowStep} + ${start * depthStep}`, `right + col + ${start * rightStep}`];
        const more = added || start > 0 ? 1 : 0;
        const steps = `${depthStep}, ${rightStep}`;
        em.code.line(`${name}(${s}, ${v}, ${steps}, ${length}, sums + row * ${sumsStep} + col, ${sumsStep}, ${more});`);
      }
    });
  }

  /** The left side in place, or a copy of it [row, depth]. */
  left(nest: ContractNest): Left {
    const { em } = this;
    const direct = inPlace(nest.a, [nest.rows, nest.depth]);
    if (direct) return { pointer: this.place(direct), rowStep: direct.steps[0], depthStep: direct.steps[1] };
    const { rows, depth, a } = nest;
    const copied: Operand = { dtype: nest.dtype, elements: 0, role: "scratch" };
    const own = em.operands.length;
    const copying = new VectorEmitter(
      em.code,
      em.lanes,
      (operand, offset) => {
        return operand === own ? `(${this.copy} + ${offset})` : em.pointer(operand, offset);
      },
      [...em.operands, copied],
    );
    for (const [v, name] of em.vars) copying.vars.set(v, name);
    const index = addIndex(scaleIndex(varIndex(rows), depth.extent), varIndex(depth));
    const { code } = em;
    code.block("", () => {
      const line = code.lines.length;
      const stores = [{ operand: own, index, value: a }];
      const { count } = emitMap(copying, { kind: "map", loops: [rows, depth], stores }, this.file);
      code.lines.splice(line, 0, `const idx lo = 0, hi = ${count}; (void)lo; (void)hi;`);
    });
    return { pointer: this.copy, rowStep: depth.extent, depthStep: 1 };
  }
}

export function emitAttend(em: VectorEmitter, nest: AttendNest, file: CFile): Units {
  if (nest.scratch === undefined) return { count: 0, grain: 1 };
  return new AttendEmitter(em, nest, file).emit();
}
