/** @file What CPU targets share about routines: their tiles behind the operands, and the workspace of those. */
import type { Operand, RoutineNest } from "../../kernel/loops.ts";
import { FIRST_TILE, tileOffsets } from "../../kernel/routine.ts";
import { product } from "../units.ts";

/** The operands of a kernel and, from `FIRST_TILE` on, the tiles of a routine. */
export function withTiles(operands: readonly Operand[], { tiles, dtype }: RoutineNest): readonly Operand[] {
  const all = [...operands];
  tiles.forEach((tile, t) => {
    const single = tile.kind === "single";
    all[FIRST_TILE + t] = {
      dtype: single ? tile.dtype : dtype,
      elements: single ? 1 : tile.elements,
      role: "scratch",
    };
  });
  return all;
}

/** Where each tile begins in the workspace of a thread, in elements of the nest's type: arrays, then single values. */
export function routineLayout({ tiles }: Pick<RoutineNest, "tiles">): {
  readonly offsets: readonly number[];
  readonly elements: number;
} {
  const arrays = tileOffsets(tiles);
  let { elements } = arrays;
  const offsets = arrays.offsets.map((offset) => {
    if (offset !== null) return offset;
    // room for the widest type
    elements += 2;
    return elements - 2;
  });
  return { offsets, elements: Math.ceil(elements / 16) * 16 };
}

/** Elements of workspace: the tiles of a unit for each thread, where there are several units. */
export function routineScratch(nest: Pick<RoutineNest, "tiles" | "loops">, threads: number): number {
  const units = product(nest.loops);
  if (units === 0) return 0;
  return (units === 1 ? 1 : threads) * Math.max(16, routineLayout(nest).elements);
}
