/**
 * @file Several tensors as one block of bytes: what a slot of memory and a file hold. Each starts at a multiple of eight,
 * so that a block can be looked at as elements of any type.
 */
import { at } from "../base/invariant.ts";
import { byteLength, elementsOf, type TensorType } from "../ir/type.ts";
import { ArrayStorage } from "../trace/storage.ts";
import { storageOf, Tensor } from "../trace/tensor.ts";

const ALIGN = 8;

export interface Layout {
  readonly types: readonly TensorType[];
  readonly offsets: readonly number[];
  readonly bytes: number;
}

/** Where each of a layout's tensors is, elsewhere: in an arena. */
export type Section = readonly Uint8Array[];

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
    block.set(part, at(offsets, k));
  });
}

/** Copies a block into a section. */
export function scatter({ offsets }: Layout, block: Uint8Array, into: Section): void {
  into.forEach((part, k) => {
    const offset = at(offsets, k);
    part.set(block.subarray(offset, offset + part.length));
  });
}

/** Copies a section into another of the same layout. */
export function copySection(from: Section, into: Section): void {
  from.forEach((part, k) => {
    at(into, k).set(part);
  });
}

const ARRAYS = { f32: Float32Array, f64: Float64Array, i32: Int32Array, bool: Uint8Array } as const;

/** A tensor of its own with these bytes; zeros where there are none. */
export function tensorFrom({ dtype, shape }: TensorType, bytes: Uint8Array | null): Tensor {
  const data = new ARRAYS[dtype](elementsOf(shape));
  if (bytes) bytesOfView(data).set(bytes.subarray(0, data.byteLength));
  return new Tensor(new ArrayStorage(dtype, shape, data));
}

/** The tensors of a block. */
export function tensorsOf({ types, offsets }: Layout, block: Uint8Array): readonly Tensor[] {
  return types.map((type, k) => tensorFrom(type, block.subarray(at(offsets, k))));
}

/** The bytes of tensors where they are. */
export function sectionOf(tensors: readonly Tensor[]): Section {
  return tensors.map((tensor) => bytesOfView(storageOf(tensor).read()));
}
