/**
 * @file Tensors in equal parts, one for each device of a group: elements in a row, padded with zeros to a multiple of the devices.
 *
 *   x [3, 3]  ──→  x0 x1 x2 │ x3 x4 x5 │ x6 x7 x8 │                    three devices
 *                  x0 x1 x2 x3 x4 │ x5 x6 x7 x8 0                      two
 */
import { dynamicSlice } from "../api/indexing.ts";
import { pad, reshape, slice } from "../api/shape.ts";
import { at } from "../base/invariant.ts";
import { elementsOf, type Shape } from "../ir/type.ts";
import type { Tensor } from "../trace/tensor.ts";
import { deviceIndex } from "./collectives.ts";
import { currentMesh } from "./current.ts";
import { axesOf, type Over } from "./mesh.ts";

/** Devices that differ along axes alone. */
export function devicesAlong(over: Over, name = "dataParallel"): number {
  const { mesh } = currentMesh(name);
  return axesOf(name, over, mesh).reduce((n, axis) => n * (mesh.axes[axis] ?? 1), 1);
}

/** Elements of one part. */
export const partElements = (shape: Shape, p: number): number => Math.ceil(elementsOf(shape) / p);

/** [p, part]: the parts of all devices. */
export function partsOf(x: Tensor, p: number): Tensor {
  const [count, part] = [x.elements, partElements(x.shape, p)];
  const flat = reshape(x, [count]);
  const all = p * part === count ? flat : pad(flat, [[0, p * part - count]]);
  return reshape(all, [p, part]);
}

/** The part of the device. */
export function ownPart(x: Tensor, over: Over): Tensor {
  const parts = partsOf(x, devicesAlong(over));
  const part = at(parts.shape, 1);
  return reshape(dynamicSlice(parts, [deviceIndex({ over }), 0], [1, part]), [part]);
}

/** The tensor of a shape from all of its parts. */
export function fromParts(parts: Tensor, shape: Shape): Tensor {
  const [flat, count] = [reshape(parts, [parts.elements]), elementsOf(shape)];
  return reshape(flat.elements === count ? flat : slice(flat, [[0, count]]), shape);
}
