/**
 * @file Layers whose weights are in parts on the devices of an axis of the mesh (M. Shoeybi et al., Megatron-LM, 2019; V. Korthikanti et al.,
 * Reducing activation recomputation, 2022). A weight cut by columns is followed by one that is cut by rows, so that devices meet
 * once for two products:
 *
 *              equal on all      own columns        own rows        a sum over devices
 *   x [n, d] ─────────────→ x·A [n, h/t] ── gelu ──→ (…)·B [n, d] ─────────────────→ y [n, d]
 *
 * With `sequence` what is in between blocks is cut, too, along an axis of x: it is gathered in front of the columns, and the sum is cut again. The
 * derivatives need nothing here: x varies where it meets the weights, so its cotangents are added up; a gather is a sum and a cut in
 * reverse.
 */
import { attention } from "../api/attention.ts";
import { arange } from "../api/create.ts";
import { add, equal, greaterEqual, less, logicalAnd, mul, stopGradient, sub, where } from "../api/elementwise.ts";
import { dynamicSlice, take } from "../api/indexing.ts";
import { matmul } from "../api/linear.ts";
import { exp, gelu, log } from "../api/math.ts";
import { normalAxis } from "../api/operands.ts";
import { max, mean, sum } from "../api/reduce.ts";
import { expandDims, reshape, swapAxes } from "../api/shape.ts";
import { at } from "../base/invariant.ts";
import { fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { allGather, allReduce, deviceIndex, type OverOptions, reduceScatter } from "./collectives.ts";
import { devicesAlong } from "./shards.ts";

/** Options of `part`. */
export interface PartOptions extends OverOptions {
  /** Along which the tensor is cut into equal parts, in the order of devices. */
  readonly axis: number;
}

const PART: OptionKinds<PartOptions> = { over: "anything", axis: "a number" };

/**
 * The device's part of a tensor that all devices have.
 *
 * @memory The derivative reads nothing of `x`.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { mesh, part, shard } from "tidemark/parallel";
 *
 * const own = shard((w) => part(w, { over: "tensor", axis: 1 }), { mesh: mesh({ tensor: 1 }), in: [[]], out: "tensor" });
 * console.log(own(tensor([[1, 2]])).toArray()); // [[1, 2]]
 */
export function part(x: Tensor, options: PartOptions): Tensor {
  requireOptions("part", options, PART);
  const { over } = options;
  const [along, p] = [normalAxis("part", options.axis, x), devicesAlong(over, "part")];
  const extent = at(x.shape, along);
  if (extent % p !== 0) {
    fail("ShapeMismatch", `part: axis ${along} of ${extent} in ${p} parts`, `make it a multiple of ${p}`);
  }
  const start = mul(deviceIndex({ over }), extent / p);
  const starts = x.shape.map((_, axis) => (axis === along ? start : 0));
  return dynamicSlice(x, starts, x.shape.with(along, extent / p));
}

/** A product and what is added to it. */
export interface LinearParams {
  readonly w: Tensor;
  readonly b?: Tensor;
}

/** Options of layers with weights in parts. */
export interface TensorParallelOptions extends OverOptions {
  /** What goes in and comes out is cut along this axis, over the same devices. Default: it is equal on all of them. */
  readonly sequence?: number;
}

const LAYER: OptionKinds<TensorParallelOptions> = { over: "anything", sequence: "a number" };

/** All of what is cut; the backward pass gathers again, so that only the own part is kept. */
const gathered = (x: Tensor, { over, sequence }: TensorParallelOptions): Tensor =>
  sequence === undefined ? x : allGather(x, { over, axis: sequence, again: true });

/** A sum over devices, or the own part of it. */
const summed = (x: Tensor, { over, sequence }: TensorParallelOptions): Tensor =>
  sequence === undefined ? allReduce(x, { over }) : reduceScatter(x, { over, axis: sequence });

const linear = (x: Tensor, { w, b }: LinearParams): Tensor => (b ? add(matmul(x, w), b) : matmul(x, w));

/**
 * x·w + b where each device has some columns of w and of b; the result is as it is cut by them.
 *
 * @example
 * import { ones, type Tensor } from "tidemark";
 * import { columnLinear, mesh, shard } from "tidemark/parallel";
 *
 * const devices = mesh({ tensor: 1 });
 * const options = { over: "tensor" };
 * const layer = shard((x: Tensor, w: Tensor) => columnLinear(x, { w }, options), { mesh: devices, in: [[], "tensor"], out: "tensor" });
 * console.log(layer(ones([1, 2]), ones([2, 3])).toArray()); // [[2, 2, 2]]
 */
export function columnLinear(x: Tensor, params: LinearParams, options: TensorParallelOptions): Tensor {
  requireOptions("columnLinear", options, LAYER);
  return linear(gathered(x, options), params);
}

/**
 * x·w + b where each device has some rows of w, and the columns of x for them; all have b.
 *
 * @memory The derivative reads the own parts of `x` and of `w`.
 *
 * @example
 * import { ones, type Tensor } from "tidemark";
 * import { mesh, rowLinear, shard } from "tidemark/parallel";
 *
 * const devices = mesh({ tensor: 1 });
 * const layer = shard((x: Tensor, w: Tensor) => rowLinear(x, { w }, { over: "tensor" }), {
 *   mesh: devices,
 *   in: ["tensor", "tensor"],
 *   out: [],
 * });
 * console.log(layer(ones([1, 2]), ones([2, 3])).toArray()); // [[2, 2, 2]]
 */
export function rowLinear(x: Tensor, { w, b }: LinearParams, options: TensorParallelOptions): Tensor {
  requireOptions("rowLinear", options, LAYER);
  const y = summed(matmul(x, w), options);
  return b ? add(y, b) : y;
}

/** Weights of `parallelMlp`. */
export interface MlpParams {
  /** By columns. */
  readonly up: LinearParams;
  /** By rows. */
  readonly down: LinearParams;
}

/**
 * Two layers with a function in between, by default gelu.
 *
 * @memory The derivative reads `x`, own parts of the weights and of what is between the layers. With `sequence`,
 * `x` is gathered again in place of being kept whole.
 *
 * @example
 * import { ones, type Tensor } from "tidemark";
 * import { mesh, parallelMlp, shard } from "tidemark/parallel";
 *
 * const devices = mesh({ tensor: 1 });
 * const layer = shard(
 *   (x: Tensor, up: Tensor, down: Tensor) => parallelMlp(x, { up: { w: up }, down: { w: down } }, { over: "tensor" }, (y) => y.relu()),
 *   { mesh: devices, in: [[], "tensor", "tensor"], out: [] },
 * );
 * console.log(layer(ones([1, 2]), ones([2, 4]), ones([4, 1])).toArray()); // [[8]]
 */
export function parallelMlp(
  x: Tensor,
  { up, down }: MlpParams,
  options: TensorParallelOptions,
  activation: (x: Tensor) => Tensor = gelu,
): Tensor {
  return rowLinear(activation(columnLinear(x, up, options)), down, options);
}

/** Weights of `parallelAttention`. */
export interface HeadsParams {
  /** By columns: whole heads, q, k and v of the same ones. */
  readonly q: LinearParams;
  readonly k: LinearParams;
  readonly v: LinearParams;
  /** By rows. */
  readonly out: LinearParams;
}

/** Options of `parallelAttention`. */
export interface ParallelAttentionOptions extends TensorParallelOptions {
  /** Heads of all devices together. */
  readonly heads: number;
  readonly causal?: boolean;
}

const HEADS: OptionKinds<ParallelAttentionOptions> = { ...LAYER, heads: "a number", causal: "a boolean" };

/**
 * Self-attention of x [..., tokens, features] where each device has some of the heads.
 *
 * @memory What `attention` keeps, for the own heads. With `sequence`, `x` is gathered again in place of being kept
 * whole.
 *
 * @example
 * import { ones, type Tensor } from "tidemark";
 * import { mesh, parallelAttention, shard } from "tidemark/parallel";
 *
 * const devices = mesh({ tensor: 1 });
 * const options = { over: "tensor", heads: 2, causal: true };
 * const layer = shard(
 *   (x: Tensor, w: Tensor) => parallelAttention(x, { q: { w }, k: { w }, v: { w }, out: { w } }, options),
 *   { mesh: devices, in: [[], "tensor"], out: [] },
 * );
 * console.log(layer(ones([3, 4]), ones([4, 4])).shape); // [3, 4]
 */
export function parallelAttention(x: Tensor, params: HeadsParams, options: ParallelAttentionOptions): Tensor {
  requireOptions("parallelAttention", options, HEADS);
  const { heads, causal = false, ...rest } = options;
  const p = devicesAlong(options.over, "parallelAttention");
  if (!Number.isInteger(heads / p)) {
    fail("InvalidArgument", `parallelAttention: ${heads} heads on ${p} devices`, `make them a multiple of ${p}`);
  }
  const all = gathered(x, rest);
  const byHead = (own: LinearParams): Tensor => {
    const y = linear(all, own);
    const features = at(y.shape, y.rank - 1);
    return swapAxes(reshape(y, [...y.shape.slice(0, -1), heads / p, (features * p) / heads]), -2, -3);
  };
  const y = swapAxes(attention(byHead(params.q), byHead(params.k), byHead(params.v), { causal }), -2, -3);
  const [own, depth] = [at(y.shape, y.rank - 2), at(y.shape, y.rank - 1)];
  return rowLinear(reshape(y, [...y.shape.slice(0, -2), own * depth]), params.out, rest);
}

/** Numbers of classes as numbers of the device's own, of which it has `count`, and whether they are its own. */
function ownClasses(classes: Tensor, count: number, over: OverOptions["over"]): readonly [Tensor, Tensor] {
  const local = sub(classes, mul(deviceIndex({ over }), count));
  return [local, logicalAnd(greaterEqual(local, 0), less(local, count))];
}

/**
 * Rows of a table [classes, features] of which each device has some: those of tokens, an i32 tensor that all have.
 *
 * @memory The derivative reads `tokens` and nothing of the table.
 *
 * @example
 * import { type Tensor, tensor } from "tidemark";
 * import { mesh, parallelEmbedding, shard } from "tidemark/parallel";
 *
 * const rows = shard((table: Tensor, tokens: Tensor) => parallelEmbedding(table, tokens, { over: "tensor" }), {
 *   mesh: mesh({ tensor: 1 }),
 *   in: ["tensor", []],
 *   out: [],
 * });
 * console.log(rows(tensor([[1], [2], [3]]), tensor([2, 0], "i32")).toArray()); // [[3], [1]]
 */
export function parallelEmbedding(table: Tensor, tokens: Tensor, options: TensorParallelOptions): Tensor {
  requireOptions("parallelEmbedding", options, LAYER);
  const [local, isOwn] = ownClasses(tokens, at(table.shape, 0), options.over);
  const rows = take(table, where(isOwn, local, 0));
  return summed(where(expandDims(isOwn, -1), rows, 0), options);
}

/**
 * The mean cross entropy of logits [..., classes] of which each device has those of some classes, in the order of devices. No device
 * has all logits: their largest, the sum of their exponentials and the logit of the target are what devices send.
 *
 * @memory The derivative reads what is computed of the own classes, and numbers for each row.
 *
 * @example
 * import { type Tensor, tensor } from "tidemark";
 * import { mesh, parallelCrossEntropy, shard } from "tidemark/parallel";
 *
 * const loss = shard((logits: Tensor, targets: Tensor) => parallelCrossEntropy(logits, targets, { over: "tensor" }), {
 *   mesh: mesh({ tensor: 1 }),
 *   in: ["tensor", []],
 *   out: [],
 * });
 * console.log(loss(tensor([[0, 0]]), tensor([1], "i32")).item().toFixed(4)); // 0.6931
 */
export function parallelCrossEntropy(logits: Tensor, targets: Tensor, options: OverOptions): Tensor {
  requireOptions("parallelCrossEntropy", options, { over: "anything" });
  const { over } = options;
  const count = at(logits.shape, logits.rank - 1);
  // any number may be subtracted: the derivative does not see which
  const top = allReduce(max(stopGradient(logits), -1), { over, op: "max" });
  const shifted = sub(logits, expandDims(top, -1));
  const total = allReduce(sum(exp(shifted), -1), { over });
  const [local, isOwn] = ownClasses(targets, count, over);
  const isTarget = equal(expandDims(where(isOwn, local, -1), -1), arange(count, "i32"));
  const own = allReduce(sum(where(isTarget, shifted, 0), -1), { over });
  return mean(sub(log(total), own));
}
