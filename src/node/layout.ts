/**
 * @file Several tensors as one block of bytes: the content of a memory slot or a file. Each tensor starts at a multiple
 * of eight, so that it can be viewed as elements of any type.
 */
import { at } from "../base/invariant.ts";
import { byteLength, elementsOf, type TensorType } from "../ir/type.ts";
import { newElements } from "../kernel/dtype.ts";
import { ArrayStorage } from "../trace/storage.ts";
import { storageOf, Tensor } from "../trace/tensor.ts";

const ALIGN = 8;

export interface Layout {
  readonly types: readonly TensorType[];
  readonly offsets: readonly number[];
  readonly bytes: number;
}

/** The bytes of a tensor, in an array or in the memory of a device. */
export interface Part {
  readonly bytes: number;
  readInto(into: Uint8Array): void;
  /** The array is valid only during the call of `fill`. */
  write(fill: (into: Uint8Array) => void): void;
}

/** The parts of a layout. */
export type Section = readonly Part[];

/** An array as a part. */
export const arrayPart = (data: Uint8Array): Part => ({
  bytes: data.length,
  readInto: (into) => into.set(data),
  write: (fill) => fill(data),
});

/** A copy of a part's bytes. */
export function bytesOfPart(part: Part): Uint8Array {
  const bytes = new Uint8Array(part.bytes);
  part.readInto(bytes);
  return bytes;
}

export function layoutOf(types: readonly TensorType[]): Layout {
  let bytes = 0;
  const offsets = types.map((type) => {
    const offset = bytes;
    bytes += Math.ceil(byteLength(type) / ALIGN) * ALIGN;
    return offset;
  });
  return { types, offsets, bytes };
}

export function bytesOfView(view: ArrayBufferView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

/** Copies a section into a block. */
export function gather({ offsets }: Layout, from: Section, block: Uint8Array): void {
  from.forEach((part, k) => {
    const offset = at(offsets, k);
    part.readInto(block.subarray(offset, offset + part.bytes));
  });
}

/** Copies a block into a section. */
export function scatter({ offsets }: Layout, block: Uint8Array, into: Section): void {
  into.forEach((part, k) => {
    const offset = at(offsets, k);
    part.write((to) => to.set(block.subarray(offset, offset + part.bytes)));
  });
}

/** Copies a section into another of the same layout. */
export function copySection(from: Section, into: Section): void {
  from.forEach((part, k) => {
    at(into, k).write((to) => part.readInto(to));
  });
}

/** A new tensor with these bytes; zeros if there are none. */
export function tensorFrom({ dtype, shape }: TensorType, bytes: Uint8Array | null): Tensor {
  const data = newElements(dtype, elementsOf(shape));
  if (bytes) bytesOfView(data).set(bytes.subarray(0, data.byteLength));
  return new Tensor(new ArrayStorage(dtype, shape, data));
}

/** The tensors of a block. */
export function tensorsOf({ types, offsets }: Layout, block: Uint8Array): readonly Tensor[] {
  return types.map((type, k) => tensorFrom(type, block.subarray(at(offsets, k))));
}

/** The bytes of tensors. */
export const bytesOfTensors = (tensors: readonly Tensor[]): readonly Uint8Array[] =>
  tensors.map((tensor) => bytesOfView(storageOf(tensor).read()));

export const sectionOf = (tensors: readonly Tensor[]): Section => bytesOfTensors(tensors).map(arrayPart);
