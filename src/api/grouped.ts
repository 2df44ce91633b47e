/** @file Products of groups of rows, each with a matrix of its own; how many rows a group has is data. */
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import { isIndexType } from "../kernel/dtype.ts";
import { iota } from "../ops/create.ts";
import * as ops from "../ops/grouped.ts";
import { fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { applyOp } from "./apply.ts";
import { lessEqual, mul, sub } from "./elementwise.ts";
import { sum } from "./reduce.ts";
import { broadcastTo } from "./shape.ts";

/** Options of {@link groupedMatmul}. */
export interface GroupedMatmulOptions {
  /** Groups start at multiples of so many rows; 16 by default. */
  readonly tile?: number;
  /** Read the matrices with their last two axes swapped. */
  readonly tb?: boolean;
}

const OPTIONS: OptionKinds<GroupedMatmulOptions> = { tile: "a number", tb: "a boolean" };

/** Rows of a tile where nothing else is said: registers of a processor are full, and few rows are empty. @internal */
export const TILE = 16;

function requireGrouped(x: Tensor, w: Tensor, offsets: Tensor, tile: number): void {
  const name = "groupedMatmul";
  requireTensor(name, "x", x);
  requireTensor(name, "w", w);
  requireTensor(name, "offsets", offsets);
  if (!isIndexType(offsets.dtype)) {
    const message = `${name}: offsets must be i32, got ${typeText(offsets)}`;
    fail("DtypeMismatch", message, 'convert them: offsets.cast("i32")');
  }
  if (!Number.isInteger(tile) || tile < 1) {
    fail("InvalidArgument", `${name}: tile ${String(tile)}`, "a tile is a whole number of rows, 1 or more");
  }
  const all = `${typeText(x)}, ${typeText(w)}, ${typeText(offsets)}`;
  if (x.rank !== 2 || w.rank !== 3 || offsets.rank !== 1) {
    fail("ShapeMismatch", `${name}: takes x [rows, k], w [groups, k, n] and offsets [groups + 1], got ${all}`);
  }
  if (at(offsets.shape, 0) !== at(w.shape, 0) + 1) {
    const message = `${name}: ${offsets.shape[0]} offsets for ${w.shape[0]} groups in ${all}`;
    fail("ShapeMismatch", message, "give where each group starts, and where the last one ends");
  }
  if (at(x.shape, 0) % tile !== 0) {
    const message = `${name}: ${x.shape[0]} rows are not whole tiles of ${tile}`;
    fail("ShapeMismatch", message, "pad the rows with zeros, or give a tile that divides them");
  }
}

/** By tile, the group that it belongs to: -1 before all groups, their number after them. i32. @internal */
export function groupsOfTiles(offsets: Tensor, tiles: number, tile: number): Tensor {
  const shape = [tiles, at(offsets.shape, 0)];
  const starts = mul(applyOp(iota, [], { shape, axis: 0 }), tile);
  return sub(sum(lessEqual(broadcastTo(offsets, shape), starts), 1), 1);
}

/**
 * Rows times the matrix of their group: y[r] = x[r] · w[e] for offsets[e] ≤ r < offsets[e + 1]. Rows are sorted by group, and groups
 * start at multiples of `tile`: rows in between are padding, zeros as a rule. Rows of no group give zeros. Offsets ascend; they are
 * i32 data, so the same program serves any sizes of groups. Of a group that starts elsewhere, its first tile belongs to the group
 * before.
 *
 * @example
 * import { groupedMatmul, tensor } from "tidemark";
 *
 * const x = tensor([[1, 2], [3, 4], [5, 6]]);
 * const w = tensor([[[1], [1]], [[10], [0]]]);
 * const offsets = tensor([0, 1, 3], { dtype: "i32" });
 * console.log(groupedMatmul(x, w, offsets, { tile: 1 }).toArray()); // [[3], [30], [50]]
 */
export function groupedMatmul(x: Tensor, w: Tensor, offsets: Tensor, options: GroupedMatmulOptions = {}): Tensor {
  requireOptions("groupedMatmul", options, OPTIONS);
  const { tile = TILE, tb = false } = options;
  requireGrouped(x, w, offsets, tile);
  return asFunction("groupedMatmul", () => {
    const groups = groupsOfTiles(offsets, at(x.shape, 0) / tile, tile);
    return applyOp(ops.groupedMatmul, [x, w, groups], { tb });
  });
}
