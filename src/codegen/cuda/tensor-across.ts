/**
 * @file A left side across the depth, as the copy engine brings it and warps read it.
 *
 * A box of a side across the depth has 32 rows of the side in each of its 32 rows of 128 bytes, swizzled. A thread's elements
 * of a depth of 8 are four: rows y and y + 4, depths l and l + 4. Warps have rows such that no two threads meet in a bank:
 *
 *   warp        0              1
 *   rows        0-7, 16-23     8-15, 24-31
 */
import type { Index } from "../../kernel/expr.ts";
import { addIndex, divIndex, modIndex, scaleIndex } from "../../kernel/index-math.ts";
import type { ContractNest } from "../../kernel/loops.ts";
import type { TensorMap } from "./copied-maps.ts";
import { TILE_DEPTH } from "./tensor-plan.ts";
import type { Matrix } from "./tensor-side.ts";

/** The first of a thread's rows in those of its group of warps; the other is four below. */
export const ACROSS_ROW =
  "threadIdx.x % 128 / 64 * 32 + threadIdx.x / 32 % 2 * 8 + threadIdx.x % 32 / 16 * 16 + threadIdx.x / 4 % 4";

/** The upper or lower one of a thread's rows in the tile. */
export const acrossRow = (thread: Index, lower: Index): Index =>
  addIndex(
    scaleIndex(divIndex(thread, 64), 32),
    scaleIndex(modIndex(divIndex(thread, 32), 2), 8),
    scaleIndex(modIndex(divIndex(thread, 16), 2), 16),
    modIndex(divIndex(thread, 4), 4),
    scaleIndex(lower, 4),
  );

export const acrossMap = (
  { operand, offset, depthStride }: Omit<Matrix, "alongStride">,
  { rows, depth }: ContractNest,
): TensorMap => ({
  ...{ operand, offset, pitch: depthStride, factors: "tf32" },
  extents: [rows.extent, depth.extent],
  box: [32, TILE_DEPTH],
});
