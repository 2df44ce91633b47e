/** @file Operators of newer sets: rotary embeddings, pooling by powers, columns as images, grids of affine maps. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import { elementsOf } from "../../ir/type.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { averagePool } from "../shared/pooling.ts";
import type { Call, Operator } from "./call.ts";
import { windowsOf } from "./spatial.ts";

/** Pairs of elements turned by an angle for each position: halves of a head, or neighbours where they are interleaved. */
function rotary(call: Call): Tensor {
  const given = call.x(0);
  const heads = call.int("num_heads", 0);
  const x =
    given.rank === 4
      ? given
      : t.transpose(
          t.reshape(given, [at(given.shape, 0), at(given.shape, 1), heads, at(given.shape, 2) / heads]),
          [0, 2, 1, 3],
        );
  const width = at(x.shape, 3);
  const turned = call.int("rotary_embedding_dim", 0) || width;
  const angle = (i: number): Tensor => {
    const table = call.has(3) ? t.take(call.x(i), call.x(3)) : call.x(i);
    return t.expandDims(table, 1);
  };
  const [cos, sin] = [angle(1), angle(2)];
  const part = (from: number, to: number, step = 1): Tensor => t.slice(x, [null, null, null, [from, to, step]]);
  const isPaired = call.flag("interleaved");
  const [a, b] = isPaired ? [part(0, turned, 2), part(1, turned, 2)] : [part(0, turned / 2), part(turned / 2, turned)];
  const [real, imaginary] = [t.sub(t.mul(a, cos), t.mul(b, sin)), t.add(t.mul(a, sin), t.mul(b, cos))];
  const joined = isPaired
    ? t.reshape(t.stack([real, imaginary], -1), [...x.shape.slice(0, 3), turned])
    : t.concat([real, imaginary], 3);
  const y = turned < width ? t.concat([joined, part(turned, width)], 3) : joined;
  return given.rank === 4 ? y : t.reshape(t.transpose(y, [0, 2, 1, 3]), given.shape);
}

/** (Σ |x|ᵖ)^(1/p) over windows. */
function powerPool(call: Call): Tensor {
  const window = call.ints("kernel_shape") ?? [];
  const p = call.int("p", 2);
  const powers = t.pow(t.abs(call.x(0)), p);
  const means = averagePool(powers, windowsOf(call, powers, window), true, 1);
  return t.pow(means, 1 / p);
}

/** Windows added up where they came from. */
function columnsAsImage(call: Call): Tensor {
  const [size, window] = [call.numbers(1, "image shape"), call.numbers(2, "block shape")];
  const axes = size.length;
  const pads = call.ints("pads") ?? new Array<number>(2 * axes).fill(0);
  return t.fold(call.x(0), size, window, {
    stride: call.ints("strides") ?? window.map(() => 1),
    dilation: call.ints("dilations") ?? window.map(() => 1),
    padding: size.map((_, k) => [at(pads, k), at(pads, k + axes)] as const),
  });
}

/** Points from -1 to 1 along each axis, last axis first, mapped by matrices [batch, axes, axes + 1]. */
function affineGrid(call: Call): Tensor {
  const theta = call.x(0);
  const [batch, , ...space] = call.numbers(1, "size") as [number, number, ...number[]];
  const isAligned = call.flag("align_corners");
  const count = elementsOf(space);
  const coordinate = (axis: number): Float64Array =>
    Float64Array.from({ length: count }, (_, i) => {
      const extent = at(space, axis);
      const position = Math.floor(i / elementsOf(space.slice(axis + 1))) % extent;
      if (isAligned) return extent === 1 ? 0 : (2 * position) / (extent - 1) - 1;
      return (2 * position + 1) / extent - 1;
    });
  const axes = space.map((_, axis) => axis).reverse();
  const columns = [...axes.map(coordinate), new Float64Array(count).fill(1)];
  const points = t.tensor(Float64Array.from(columns.flatMap((column) => [...column])), {
    dtype: theta.dtype,
    shape: [columns.length, count],
  });
  const mapped = t.matmul(theta, points);
  return t.reshape(t.transpose(mapped, [0, 2, 1]), [batch, ...space, space.length]);
}

export const NEWER: Readonly<Record<string, Operator>> = {
  RotaryEmbedding: rotary,
  LpPool: powerPool,
  Col2Im: columnsAsImage,
  AffineGrid: affineGrid,
};
