/**
 * @file Batches of products of groups of rows, each as one such product: rows of all elements one below the other, groups of all
 * elements one after the other, so that groups still ascend.
 *
 *   groups   0 0 1 │ 0 1 1      two elements of two groups each      →      0 0 1 2 3 3
 *
 * Tiles without a group would break the order: they go to the nearest group with rows of zeros, and their results are zero.
 */
import { at } from "../base/invariant.ts";
import type { BatchSite } from "../ir/batch.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { OpDef } from "../ir/op.ts";
import { joinedAxes, reshaped, splitAxis, withAxis } from "./batch.ts";
import { broadcast } from "./broadcast.ts";
import { concat } from "./concat.ts";
import { full, fullLike, iota } from "./create.ts";
import { apply } from "./define.ts";
import { add, and, ge, lt, max, min, mul } from "./elementwise.ts";
import type { GroupedMatmulAttrs, GroupedOuterAttrs, PermuteRowsAttrs } from "./grouped.ts";
import { where } from "./select.ts";
import { partAlong } from "./slice.ts";

const limited = (b: Build, x: Value, least: number, most: number): Value =>
  apply(b, min, apply(b, max, x, fullLike(b, x, least)), fullLike(b, x, most));

/** Numbers of an element, [B, …], as numbers among those of all: increased by `step` for each element before. */
function amongAll(b: Build, x: Value, step: number): Value {
  const element = b.call(iota, [], { shape: x.type.shape, axis: 0 });
  return apply(b, add, x, apply(b, mul, element, fullLike(b, x, step)));
}

const isWithin = (b: Build, x: Value, count: number): Value =>
  apply(b, and, apply(b, ge, x, fullLike(b, x, 0)), apply(b, lt, x, fullLike(b, x, count)));

/** Rows [B, R, …] as they are where a flag for their tile, [B, R / tile], holds, and zeros elsewhere. */
function rowsWhere(b: Build, holds: Value, rows: Value): Value {
  const [size = 0, count = 0, ...rest] = rows.type.shape;
  const tiles = at(holds.type.shape, 1);
  const shape = [size, tiles, tiles === 0 ? 0 : count / tiles, ...rest];
  const own = reshaped(b, rows, shape);
  const mask = b.call(broadcast, [holds], { shape, axes: [0, 1] });
  return reshaped(b, apply(b, where, mask, own, fullLike(b, own, 0)), rows.type.shape);
}

export const groupedMatmulOfBatch =
  (op: () => OpDef<GroupedMatmulAttrs>) =>
  (b: Build, site: BatchSite<GroupedMatmulAttrs>): readonly Value[] => {
    const [x, w, groups] = [withAxis(b, site, 0), withAxis(b, site, 1), withAxis(b, site, 2)];
    const { size, attrs } = site;
    const count = at(w.type.shape, 1);
    const columns = at(w.type.shape, attrs.tb ? 2 : 3);
    const { dtype } = x.type;
    if (count === 0) return [b.call(full, [], { dtype, shape: [size, at(x.type.shape, 1), columns], value: 0 })];
    const isGroup = isWithin(b, groups, count);
    const all = amongAll(b, limited(b, groups, 0, count - 1), count);
    const operands = [rowsWhere(b, isGroup, x), w, all].map((value) => joinedAxes(b, value, 0));
    return [rowsWhere(b, isGroup, splitAxis(b, b.call(op(), operands, attrs), 0, size))];
  };

/** Between the last end of an element and the first of the next is a group of no one. */
export const groupedOuterOfBatch =
  (op: () => OpDef<GroupedOuterAttrs>) =>
  (b: Build, site: BatchSite<GroupedOuterAttrs>): readonly Value[] => {
    const [x, y, offsets] = [withAxis(b, site, 0), withAxis(b, site, 1), withAxis(b, site, 2)];
    const { size, attrs } = site;
    const rows = at(x.type.shape, 1);
    const ends = joinedAxes(b, amongAll(b, limited(b, offsets, 0, rows), rows), 0);
    const last = b.call(full, [], { dtype: offsets.type.dtype, shape: [1], value: size * rows });
    const table = b.call(concat, [ends, last], { axis: 0 });
    const factors = [joinedAxes(b, x, 0), joinedAxes(b, y, 0)];
    const made = splitAxis(b, b.call(op(), [...factors, table], { tiles: size * attrs.tiles }), 0, size);
    return [partAlong(b, made, 1, [0, at(made.type.shape, 1) - 1])];
  };

export const permuteRowsOfBatch =
  (op: () => OpDef<PermuteRowsAttrs>) =>
  (b: Build, site: BatchSite<PermuteRowsAttrs>): readonly Value[] => {
    const [x, to, back] = [withAxis(b, site, 0), withAxis(b, site, 1), withAxis(b, site, 2)];
    // places of one element are no places of the next
    const placesOf = (table: Value, count: number): Value =>
      apply(b, where, isWithin(b, table, count), amongAll(b, table, count), fullLike(b, table, -1));
    const [places, rows] = [at(back.type.shape, 1), at(to.type.shape, 1)];
    const operands = [x, placesOf(to, places), placesOf(back, rows)].map((value) => joinedAxes(b, value, 0));
    return [reshaped(b, b.call(op(), operands, site.attrs), [...to.type.shape, ...x.type.shape.slice(2)])];
  };
