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
import { at } from "../../base/invariant.ts";
import type { Repeat, Stage } from "../../kernel/attend-stages.ts";
import { ATTEND_BLOCK } from "../../kernel/attend-stages.ts";
import { isFloatScalar } from "../../kernel/dtype.ts";
import { addIndex, scaleIndex, varIndex } from "../../kernel/index-math.ts";
import { type AttendNest, type ContractNest, type Nest, type Operand, tileRows } from "../../kernel/loops.ts";
import {
  type AttendLayout,
  afterProduct,
  attendLayout,
  depthRuns,
  isAdded,
  leftInPlace,
  unitsOf,
} from "../cpu/attend.ts";
import { addressesOf } from "../operand-addresses.ts";
import { product, type Units } from "../units.ts";
import { splitUnit } from "./emit-loops.ts";
import { VectorEmitter } from "./emitter.ts";
import { sharedMicro, shareVectors } from "./gemm-micro.ts";
import { emitMap } from "./nests.ts";
import type { CFile } from "./options.ts";
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

class AttendEmitter {
  readonly em: VectorEmitter;
  readonly nest: AttendNest;
  readonly file: CFile;
  readonly layout: AttendLayout;
  readonly copy: string;

  constructor(outer: VectorEmitter, nest: AttendNest, file: CFile) {
    const { code, operands } = outer;
    this.nest = nest;
    this.file = file;
    this.layout = attendLayout(nest, operands.length);
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
    code.line(`idx ${lo} = ${from ? em.index(from, em.all) : first}, ${hi} = ${to ? em.index(to, em.all) : last};`);
    if (from) code.line(`if (${lo} < ${first}) ${lo} = ${first};`);
    if (to) code.line(`if (${hi} > ${last}) ${hi} = ${last};`);
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

  /** Sums into the tile that is stored to; then what is computed of them. */
  product(nest: ContractNest): void {
    const { em, file } = this;
    const { code } = em;
    const { rows, cols, dtype } = nest;
    if (rows.extent === 0) return;
    em.vec = null;
    const store = at(nest.stores, 0);
    const added = isAdded(store);
    const width = VECTORS * em.lanes;
    const right = em.pointer((nest.b as { operand: number }).operand, 0);
    em.block("", () => {
      const left = this.left(nest);
      code.line(`const ${dtype} *const left = ${left.pointer};`);
      code.line(`const ${dtype} *const right = ${right};`);
      code.line(`${dtype} *const sums = ${em.pointer(store.operand, 0)};`);
      const most = mostRows(file.options.lanes);
      const [high, tiles] = [tileRows(rows.extent, most), Math.ceil(rows.extent / most)];
      const taller = rows.extent - tiles * (high - 1);
      em.block(
        `for (idx col = 0; col < ${Math.min(ATTEND_BLOCK, Math.ceil(cols.extent / width) * width)}; col += ${width})`,
        () => {
          this.tiles(nest, left, { rows: high, from: 0, count: taller, added });
          this.tiles(nest, left, { rows: high - 1, from: taller * high, count: tiles - taller, added });
        },
      );
    });
    if (!added) this.whole(afterProduct(nest));
  }

  /** Equal tiles, one below the other. */
  tiles(
    { dtype, depth }: ContractNest,
    { rowStep, depthStep }: Left,
    { rows, from, count, added }: { rows: number; from: number; count: number; added: boolean },
  ): void {
    if (count === 0) return;
    const { em, file } = this;
    const { share, options } = file;
    shareVectors(share, dtype, em.lanes);
    const pattern = Array.from({ length: rows }, (_, r) => r * rowStep);
    const widths = new Array<number>(VECTORS).fill(em.lanes);
    const shape = { dtype, widths, pattern, broadcastStep: depthStep, vectorStep: ATTEND_BLOCK };
    const name = sharedMicro(share, shape, options.fma && isFloatScalar(dtype));
    em.block(`for (idx row = ${from}; row < ${from + count * rows}; row += ${rows})`, () => {
      for (const [start, length] of depthRuns(depth)) {
        const [s, v] = [`left + row * ${rowStep} + ${start * depthStep}`, `right + col + ${start * ATTEND_BLOCK}`];
        const more = added || start > 0 ? 1 : 0;
        em.code.line(
          `${name}(${s}, ${v}, 0, 0, ${length}, sums + row * ${ATTEND_BLOCK} + col, ${ATTEND_BLOCK}, ${more});`,
        );
      }
    });
  }

  /** The left side in place, or a copy of it [row, depth]. */
  left(nest: ContractNest): Left {
    const { em } = this;
    const direct = leftInPlace(nest);
    if (direct) {
      const { operand, start, rowStep, depthStep } = direct;
      const pointer = `${em.pointer(operand, start.offset)} + (${em.index(start, em.all, null, true)})`;
      return { pointer, rowStep, depthStep };
    }
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
