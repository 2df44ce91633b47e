/** @file What devices of a mesh send each other, for functions that are given to `shard`. */
import { applyOp } from "../api/apply.ts";
import { mul } from "../api/elementwise.ts";
import { normalAxis } from "../api/operands.ts";
import { reshape, transpose } from "../api/shape.ts";
import { at } from "../base/invariant.ts";
import type { Shape } from "../ir/type.ts";
import { groupSize } from "../kernel/device-group.ts";
import { type GroupAttrs, groupOf } from "../ops/collective/mesh.ts";
import * as ops from "../ops/collective.ts";
import { describe, fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import { type Tensor, tensorTypeOf } from "../trace/tensor.ts";
import { currentMesh } from "./current.ts";
import { axesOf, type Over } from "./mesh.ts";

/** Which devices exchange with each other. */
export interface OverOptions {
  /** Axes of the mesh: devices that differ along these alone exchange with each other. */
  readonly over: Over;
}

/** The group, after checking that there is one and that the devices have different values. */
function groupFor(name: string, x: Tensor, over: Over): GroupAttrs {
  requireTensor(name, "x", x);
  const attrs = attrsFor(name, over);
  const own = tensorTypeOf(x).varies?.over ?? [];
  const missing = groupOf(attrs).over.filter((axis) => !own.includes(axis));
  if (missing.length > 0) {
    fail(
      "VarianceMismatch",
      `${name} over ${missing.join(", ")}: x is equal on all devices along it`,
      `it comes from no argument or collective that varies over ${missing.join(", ")}: leave ${name} out, or mark it with vary`,
    );
  }
  return attrs;
}

function attrsFor(name: string, over: Over): GroupAttrs {
  const { mesh, text } = currentMesh(name);
  const axes = axesOf(name, over, mesh);
  if (axes.length === 0)
    fail("InvalidArgument", `${name}: over no axis`, `name one: ${name}(x, { over: "${Object.keys(mesh.axes)[0]}" })`);
  return { mesh: text, over: axes.join() };
}

const sizeOf = (attrs: GroupAttrs): number => groupSize(groupOf(attrs));

/** An axis becomes the first one, or the first one an axis. */
function moved(x: Tensor, from: number, to: number): Tensor {
  if (from === to) return x;
  const order = x.shape.map((_, axis) => axis).filter((axis) => axis !== from);
  order.splice(to, 0, from);
  return transpose(x, order);
}

/** [p, …, n, …] → […, p·n, …]: parts one behind the other along an axis of theirs. */
function joinedAlong(parts: Tensor, axis: number): Tensor {
  const [p = 1, ...shape] = parts.shape;
  return reshape(moved(parts, 0, axis), shape.with(axis, p * at(shape, axis)));
}

/** […, p·n, …] → [p, …, n, …]. */
function cutAlong(name: string, x: Tensor, axis: number, p: number): Tensor {
  const extent = at(x.shape, axis);
  if (extent % p !== 0) {
    fail(
      "ShapeMismatch",
      `${name}: axis ${axis} of ${extent} in ${p} parts`,
      `pad it to a multiple of ${p}, or choose another axis`,
    );
  }
  const shape: Shape = [...x.shape.slice(0, axis), p, extent / p, ...x.shape.slice(axis + 1)];
  return moved(reshape(x, shape), axis, 0);
}

/** Options of `allReduce`. */
export interface AllReduceOptions extends OverOptions {
  /** Default: `"sum"`. */
  readonly op?: "sum" | "mean" | "max";
}

const ALL_REDUCE: OptionKinds<AllReduceOptions> = { over: "anything", op: "a text" };

/**
 * The sum of what all devices have (or the mean, or the largest), equal on all of them afterwards.
 *
 * @memory The derivative of a sum or a mean reads nothing of the forward pass, that of the largest `x` and the
 * result.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { allReduce, mesh, shard } from "tidemark/parallel";
 *
 * const total = shard((x) => allReduce(x.sum(), { over: "data" }), { mesh: mesh({ data: 1 }), in: ["data"], out: [] });
 * console.log(total(tensor([1, 2, 3])).item()); // 6
 */
export function allReduce(x: Tensor, options: AllReduceOptions): Tensor {
  requireOptions("allReduce", options, ALL_REDUCE);
  const { over, op = "sum" } = options;
  const attrs = groupFor("allReduce", x, over);
  if (op === "max") return applyOp(ops.allReduceMax, [x], attrs);
  if (op !== "sum" && op !== "mean")
    fail("InvalidArgument", `allReduce: op is ${describe(op)}`, 'give "sum", "mean" or "max"');
  const sum = applyOp(ops.allReduce, [x], attrs);
  return op === "mean" ? mul(sum, 1 / sizeOf(attrs)) : sum;
}

/** Options of `allGather`. */
export interface AllGatherOptions extends OverOptions {
  /** Along which parts are joined, in the order of devices. Default: 0. */
  readonly axis?: number;
  /** The result counts as equal on all devices, for a value that all of them use alike. Default: each uses it in its own way. */
  readonly invariant?: boolean;
  /** The backward pass gathers again in place of keeping the result. Within a budget the planner decides. */
  readonly again?: boolean;
}

const ALL_GATHER: OptionKinds<AllGatherOptions> = {
  over: "anything",
  axis: "a number",
  invariant: "a boolean",
  again: "a boolean",
};

/**
 * The parts of all devices, joined along an axis.
 *
 * @memory The derivative reads nothing of the forward pass. What is computed from the result may keep it whole;
 * with `again` it is gathered a second time in its place.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { allGather, mesh, shard } from "tidemark/parallel";
 *
 * const all = shard((x) => allGather(x, { over: "data", invariant: true }), { mesh: mesh({ data: 1 }), in: ["data"], out: [] });
 * console.log(all(tensor([1, 2])).toArray()); // [1, 2]
 */
export function allGather(x: Tensor, options: AllGatherOptions): Tensor {
  requireOptions("allGather", options, ALL_GATHER);
  const { over, axis = 0, invariant = false, again = false } = options;
  const attrs = groupFor("allGather", x, over);
  const along = normalAxis("allGather", axis, x);
  return joinedAlong(applyOp(ops.allGather, [x], { ...attrs, invariant, again }), along);
}

/** Options of `reduceScatter`. */
export interface ReduceScatterOptions extends OverOptions {
  /** Along which the sum is cut into parts, one for each device. Default: 0. */
  readonly axis?: number;
}

const REDUCE_SCATTER: OptionKinds<ReduceScatterOptions> = { over: "anything", axis: "a number" };

/**
 * The sum of what all devices have, of which each gets its part along an axis.
 *
 * @memory The derivative reads nothing of the forward pass.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { mesh, reduceScatter, shard } from "tidemark/parallel";
 *
 * const part = shard((x) => reduceScatter(x, { over: "data" }), { mesh: mesh({ data: 1 }), in: ["data"], out: "data" });
 * console.log(part(tensor([1, 2])).toArray()); // [1, 2]
 */
export function reduceScatter(x: Tensor, options: ReduceScatterOptions): Tensor {
  requireOptions("reduceScatter", options, REDUCE_SCATTER);
  const { over, axis = 0 } = options;
  const attrs = groupFor("reduceScatter", x, over);
  const parts = cutAlong("reduceScatter", x, normalAxis("reduceScatter", axis, x), sizeOf(attrs));
  return applyOp(ops.reduceScatter, [parts], attrs);
}

/** Options of `allToAll`. */
export interface AllToAllOptions extends OverOptions {
  /** Along which a value is cut into parts, one for each device. */
  readonly split: number;
  /** Along which the parts that arrive are joined, in the order of devices. */
  readonly join: number;
}

const ALL_TO_ALL: OptionKinds<AllToAllOptions> = { over: "anything", split: "a number", join: "a number" };

/**
 * Every device sends each other one a part: a value that was cut along one axis is then cut along another.
 *
 * @memory The derivative reads nothing of the forward pass.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { allToAll, mesh, shard } from "tidemark/parallel";
 *
 * const turned = shard((x) => allToAll(x, { over: "data", split: 0, join: 1 }), { mesh: mesh({ data: 1 }), in: ["data"], out: "data" });
 * console.log(turned(tensor([[1, 2]])).toArray()); // [[1, 2]]
 */
export function allToAll(x: Tensor, options: AllToAllOptions): Tensor {
  requireOptions("allToAll", options, ALL_TO_ALL);
  const attrs = groupFor("allToAll", x, options.over);
  const [split, join] = [normalAxis("allToAll", options.split, x), normalAxis("allToAll", options.join, x)];
  const parts = cutAlong("allToAll", x, split, sizeOf(attrs));
  return joinedAlong(applyOp(ops.allToAll, [parts], attrs), join);
}

/** Options of `permute`. */
export interface PermuteOptions extends OverOptions {
  /** Numbers in the group: the first sends to the second. Devices that nothing is sent to get zeros. */
  readonly pairs?: readonly (readonly [from: number, to: number])[];
  /** In place of pairs: every device sends to the one so many further on, around the ring. */
  readonly shift?: number;
}

const PERMUTE: OptionKinds<PermuteOptions> = { over: "anything", pairs: "anything", shift: "a number" };

/**
 * Devices send to other devices, each to at most one: a step around a ring, or to the next stage of a pipeline.
 *
 * @memory The derivative reads nothing of the forward pass.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { mesh, permute, shard } from "tidemark/parallel";
 *
 * const next = shard((x) => permute(x, { over: "ring", shift: 1 }), { mesh: mesh({ ring: 1 }), in: ["ring"], out: "ring" });
 * console.log(next(tensor([1, 2])).toArray()); // [1, 2]
 */
export function permute(x: Tensor, options: PermuteOptions): Tensor {
  requireOptions("permute", options, PERMUTE);
  const { over, pairs, shift } = options;
  const attrs = groupFor("permute", x, over);
  if ((pairs === undefined) === (shift === undefined)) {
    fail("InvalidArgument", "permute: give either pairs or shift", 'permute(x, { over: "ring", shift: 1 })');
  }
  const p = sizeOf(attrs);
  const ring = (by: number): readonly number[] =>
    Array.from({ length: p }, (_, i) => [i, (((i + by) % p) + p) % p]).flat();
  return applyOp(ops.permute, [x], { ...attrs, pairs: shift === undefined ? (pairs ?? []).flat() : ring(shift) });
}

/** Options of `broadcast`. */
export interface BroadcastOptions extends OverOptions {
  /** The number in its group of the device whose value all get. Default: 0. */
  readonly root?: number;
}

const BROADCAST: OptionKinds<BroadcastOptions> = { over: "anything", root: "a number" };

/**
 * What one device has, for all of its group.
 *
 * @memory The derivative reads nothing of the forward pass.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { broadcast, mesh, shard } from "tidemark/parallel";
 *
 * const first = shard((x) => broadcast(x, { over: "data" }), { mesh: mesh({ data: 1 }), in: ["data"], out: [] });
 * console.log(first(tensor([1, 2])).toArray()); // [1, 2]
 */
export function broadcast(x: Tensor, options: BroadcastOptions): Tensor {
  requireOptions("broadcast", options, BROADCAST);
  const { over, root = 0 } = options;
  return applyOp(ops.broadcastFrom, [x], { ...groupFor("broadcast", x, over), root });
}

const OVER: OptionKinds<OverOptions> = { over: "anything" };

/**
 * The same value, from here on as one that each device uses in its own way. This happens by itself where such values meet; to say it earlier
 * makes one sum of what is sent for the derivative.
 *
 * @memory The derivative reads nothing of the forward pass.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { mesh, shard, vary } from "tidemark/parallel";
 *
 * const own = shard((x) => vary(x, { over: "data" }), { mesh: mesh({ data: 1 }), in: [[]], out: "data" });
 * console.log(own(tensor([1, 2])).toArray()); // [1, 2]
 */
export function vary(x: Tensor, options: OverOptions): Tensor {
  requireOptions("vary", options, OVER);
  requireTensor("vary", "x", x);
  const attrs = attrsFor("vary", options.over);
  const own = tensorTypeOf(x).varies?.over ?? [];
  const over = groupOf(attrs).over.filter((axis) => !own.includes(axis));
  return over.length === 0 ? x : applyOp(ops.vary, [x], { ...attrs, over: over.join() });
}

/**
 * The number of a device among those that differ from it along some axes alone, an i32 scalar.
 *
 * @memory It depends on no tensor: nothing is kept for derivatives.
 *
 * @example
 * import { deviceIndex, mesh, shard } from "tidemark/parallel";
 *
 * const number = shard(() => deviceIndex({ over: "data" }), { mesh: mesh({ data: 1 }), in: [], out: "data" });
 * console.log(number().item()); // 0
 */
export function deviceIndex(options: OverOptions): Tensor {
  requireOptions("deviceIndex", options, OVER);
  const attrs = attrsFor("deviceIndex", options.over);
  return applyOp(ops.shardIn, [applyOp(ops.deviceIndex, [], attrs)], attrs);
}
