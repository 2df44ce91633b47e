/**
 * @file Maps that read across memory, as a transposition does: the counter in the lanes strides over rows of an operand, and
 * another counter, `along`, runs along them. One load per lane would touch as many cache lines as there are lanes for one
 * register; instead blocks of L × L are read along memory and transposed in registers (gemm-pack.ts).
 *
 *   y[i, j] = x[j, i] + …      L loads x[j + r, i … i + L), transposed: row r is x[j … j + L, i + r), the lanes of y[i + r, j … j + L)
 *
 * Elements are computed as elsewhere, also those outside of whole blocks.
 */

import { at } from "../../base/invariant.ts";
import { laneBytes, type ProductType, typeOf } from "../../kernel/dtype.ts";
import type { LoopVar } from "../../kernel/expr.ts";
import type { MapNest } from "../../kernel/loops.ts";
import { type Load, plainLoads } from "../cpu/strided.ts";
import { linearCoefficient } from "../intern.ts";
import { live, type Units } from "../units.ts";
import { emitOuter, emitStores } from "./emit-loops.ts";
import type { VectorEmitter } from "./emitter.ts";
import { shareVectors } from "./gemm-micro.ts";
import { sharePacking, transposeName } from "./gemm-pack.ts";
import type { NativeOptions, ShareFunction } from "./options.ts";

/** A load that can be transposed. */
type TransposableLoad = Load & { readonly dtype: ProductType };

/** A map that reads across memory. */
export interface TransposedMap {
  readonly outer: readonly LoopVar[];
  /** Memory runs along this counter, and `inner` is in the lanes. */
  readonly along: LoopVar;
  readonly inner: LoopVar;
  readonly loads: readonly TransposableLoad[];
}

/** Elements between lanes from which each lane reads a separate cache line. */
const APART = 16;

/** The loads of a map to transpose, or null. `lanes` of the emitter are those of a whole register. */
export function transposedMap(em: VectorEmitter, nest: MapNest, options: NativeOptions): TransposedMap | null {
  const loops = live(nest.loops);
  const inner = loops.pop();
  if (!inner || inner.extent < em.lanes || em.lanes !== options.lanes) return null;
  const step = ({ index }: Load, v: LoopVar): number | null => linearCoefficient(em.interner, index, v);
  const across = plainLoads(nest.stores.map((store) => store.value)).filter(
    (load): load is TransposableLoad =>
      typeOf(load.storage).plain && laneBytes(load.dtype) === 4 && Math.abs(step(load, inner) ?? 0) >= APART,
  );
  const along = loops.find((v) => v.extent >= em.lanes && across.some((load) => step(load, v) === 1));
  if (!along) return null;
  const loads = across.filter((load) => step(load, along) === 1);
  return { outer: loops.filter((v) => v !== along), along, inner, loads };
}

export function emitTransposedMap(em: VectorEmitter, nest: MapNest, map: TransposedMap, share: ShareFunction): Units {
  const { outer, along } = map;
  for (const { dtype } of map.loads) {
    shareVectors(share, dtype, em.lanes);
    sharePacking(share, dtype, em.lanes);
  }
  if (outer.length > 0) return emitOuter(em, outer, () => emitBlocks(em, nest, map, ["0", String(along.extent)]));
  const last = `(hi * ${em.lanes} < ${along.extent} ? hi * ${em.lanes} : ${along.extent})`;
  emitBlocks(em, nest, map, [`lo * ${em.lanes}`, last]);
  return { count: Math.ceil(along.extent / em.lanes), grain: 1 };
}

/** Rows [from, to) of the counter along memory. */
function emitBlocks(em: VectorEmitter, nest: MapNest, map: TransposedMap, [from, to]: readonly [string, string]): void {
  const { code, lanes } = em;
  const { along, inner } = map;
  const [row, end, done] = [code.name("row"), code.name("end"), code.name("done")];
  const whole = inner.extent - (inner.extent % lanes);
  code.line(`const idx ${end} = ${to};`);
  em.vec = inner;
  em.block(`for (idx ${row} = ${from}; ${row} < ${end}; ${row} += ${lanes})`, () => {
    code.line(`idx ${done} = 0;`);
    em.multiple = lanes;
    em.block(`if (${row} + ${lanes} <= ${end}) for (; ${done} < ${whole}; ${done} += ${lanes})`, () =>
      emitBlock(em, nest, map, [row, done]),
    );
    const r = em.counter(along);
    const stop = `(${row} + ${lanes} < ${end} ? ${row} + ${lanes} : ${end})`;
    em.block(`for (idx ${r} = ${row}; ${r} < ${stop}; ${r}++)`, () => {
      const column = em.counter(inner);
      em.block(`for (idx ${column} = ${done}; ${column} < ${whole}; ${column} += ${lanes})`, () =>
        emitStores(em, nest.stores, em.all),
      );
      if (whole === inner.extent) return;
      em.block("", () => {
        code.line(`const idx ${em.counter(inner)} = ${whole};`);
        emitStores(em, nest.stores, em.first(inner.extent - whole));
      });
    });
    em.multiple = 1;
  });
}

/** One block, its first row and column by name. */
function emitBlock(
  em: VectorEmitter,
  nest: MapNest,
  { along, inner, loads }: TransposedMap,
  [row, column]: readonly [string, string],
): void {
  const { code, lanes } = em;
  em.vars.set(along, row);
  em.vars.set(inner, column);
  const blocks = loads.map((load) => {
    const block = code.name("block");
    const step = linearCoefficient(em.interner, load.index, inner) ?? 0;
    const first = `${em.pointer(load.operand, load.index.offset)} + (${em.index(load.index, em.all, null, true)})`;
    code.line(`${em.type(load.dtype)} ${block}[${lanes}];`);
    code.line(
      `for (int r = 0; r < ${lanes}; r++) ${block}[r] = ${em.type(load.dtype)}_load(${first} + r * (idx)(${step}));`,
    );
    code.line(`${transposeName(load.dtype)}(${block});`);
    return block;
  });
  em.block(`for (int r = 0; r < ${lanes}; r++)`, () => {
    code.line(`const idx ${em.counter(along)} = ${row} + r;`);
    loads.forEach((load, i) => {
      em.bind(load, `${at(blocks, i)}[r]`);
    });
    emitStores(em, nest.stores, em.all);
  });
}
