/**
 * @file The stores of a finished tile of a product, with the fused epilogue, while the tile is in cache.
 *
 *   plain     tile [rows of the result][columns]: a row at a time, columns in the lanes
 *   swapped   tile [columns][rows of the result]: transposed in blocks of L × L first, so that columns are in the lanes
 */
import type { ContractNest, Within } from "../../kernel/loops.ts";
import type { Needed } from "../needed-sums.ts";
import { type ProductPlan, widthOf } from "./contract-plan.ts";
import { emitStores } from "./emit-loops.ts";
import type { VectorEmitter } from "./emitter.ts";
import { packTransposedName } from "./gemm-pack.ts";

/** A tile in C: its address, the distance of its rows, and the counters of its first row and column. */
export interface TilePlace {
  readonly at: string;
  readonly stride: string;
  /** First element of the broadcast counter, and how many there are: a number where the tile is swapped. */
  readonly broadcast: string;
  readonly rows: string | number;
  /** First element of the vector counter. */
  readonly vector: string;
  readonly widths: readonly number[];
  /** Lanes of the tile that are beyond the matrix. */
  readonly beyond: number;
}

/** Stores a register of sums. */
function storeSums(em: VectorEmitter, nest: ContractNest, from: string, count: number): void {
  const acc = em.code.name("acc");
  em.code.line(`const ${em.type(nest.dtype)} ${acc} = *(const ${em.type(nest.dtype)}_mem *)(${from});`);
  em.bind({ kind: "acc", dtype: nest.dtype }, acc);
  emitStores(em, nest.stores, count === em.lanes ? em.all : em.first(count));
}

/** Runs the stores over a tile whose rows are those of the result. */
export function finishPlain(em: VectorEmitter, nest: ContractNest, tile: TilePlace): void {
  const { code } = em;
  em.vec = nest.cols;
  const [r, row, col] = [code.name("r"), em.counter(nest.rows), em.counter(nest.cols)];
  const columns = widthOf(tile.widths) - tile.beyond;
  const whole = columns - (columns % em.lanes);
  em.block(`for (idx ${r} = 0; ${r} < ${tile.rows}; ${r}++)`, () => {
    code.line(`const idx ${row} = ${tile.broadcast} + ${r};`);
    if (whole > 0) {
      em.block(`for (idx ${col} = ${tile.vector}; ${col} < ${tile.vector} + ${whole}; ${col} += ${em.lanes})`, () =>
        storeSums(em, nest, `${tile.at} + ${r} * ${tile.stride} + (${col} - (${tile.vector}))`, em.lanes),
      );
    }
    if (whole === columns) return;
    em.block("", () => {
      code.line(`const idx ${col} = ${tile.vector} + ${whole};`);
      storeSums(em, nest, `${tile.at} + ${r} * ${tile.stride} + ${whole}`, columns - whole);
    });
  });
  em.vec = null;
}

function finishSwapped(em: VectorEmitter, nest: ContractNest, plan: ProductPlan, tile: TilePlace): void {
  const { code } = em;
  const { dtype, lanes } = plan;
  em.vec = nest.cols;
  const [g, transposed] = [code.name("g"), code.name("turned")];
  const there = widthOf(tile.widths) - tile.beyond;
  const height = Number(tile.rows);
  em.block(`for (idx ${g} = 0; ${g} < ${there}; ${g} += ${lanes})`, () => {
    code.line(`${dtype} ${transposed}[${lanes * lanes}] __attribute__((aligned(64)));`);
    const last = `(${there} - ${g} < ${lanes} ? ${there} - ${g} : ${lanes})`;
    for (let first = 0; first < height; first += lanes) {
      const rows = Math.min(lanes, height - first);
      const from = `${tile.at} + ${first} * ${tile.stride} + ${g}`;
      code.line(
        `${packTransposedName(dtype)}(${from}, ${tile.stride}, ${rows}, ${lanes}, ${transposed}, ${lanes}, 0, 0);`,
      );
      const [i, row, col] = [code.name("i"), em.counter(nest.rows), em.counter(nest.cols)];
      em.block(`for (idx ${i} = 0, end = ${last}; ${i} < end; ${i}++)`, () => {
        code.line(`const idx ${row} = ${tile.vector} + ${g} + ${i};`);
        for (let at = 0; at < rows; at += em.lanes) {
          em.block("", () => {
            code.line(`const idx ${col} = ${tile.broadcast} + ${first + at};`);
            storeSums(em, nest, `${transposed} + ${i} * ${lanes} + ${at}`, Math.min(em.lanes, rows - at));
          });
        }
      });
    }
  });
  em.vec = null;
}

/** Runs the stores over a finished tile. */
export function finishTile(em: VectorEmitter, nest: ContractNest, plan: ProductPlan, tile: TilePlace): void {
  if (plan.swapped) {
    finishSwapped(em, nest, plan, tile);
    return;
  }
  // panels are whole registers
  em.multiple = plan.lanes;
  finishPlain(em, nest, tile);
  em.multiple = 1;
}

/** An area of the result in C: first row and column, and how many of each. */
export interface Area {
  readonly row: string;
  readonly rows: string;
  readonly col: string;
  readonly cols: string;
}

/** In C: the minimum of a plane over an area. */
function leastOver({ rows, cols, constant }: Needed, area: Area): string {
  const least = (coef: number, from: string, count: string): string =>
    coef === 0 ? "0" : `${coef} * (${coef < 0 ? `${from} + ${count} - 1` : from})`;
  return `${least(rows, area.row, area.rows)} + ${least(cols, area.col, area.cols)} + ${constant}`;
}

/** In C: whether any element of a tile is needed: the minimum of the plane over it is 0 or less. */
export const anyNeeded = (needed: Needed, tile: Area): string => `${leastOver(needed, tile)} <= 0`;

/**
 * Names the part of a run of the depth, [pc, pEnd), where factors of an area are not zero by construction: [kc, kEnd), empty
 * ones at kc = kEnd = pc.
 */
export function emitDepthRange(em: VectorEmitter, within: readonly Within[], area: Area): void {
  const { code } = em;
  code.line("idx kc = pc, kEnd = pEnd;");
  for (const half of within) {
    const least = leastOver(half, area);
    if (half.depth === 1) code.line(`if (1 - (${least}) < kEnd) kEnd = 1 - (${least});`);
    else code.line(`if (${least} > kc) kc = ${least};`);
  }
  code.line("if (kc >= kEnd) kc = kEnd = pc;");
}
