/**
 * @file Tensors of safetensors files as bytes: every type of the format, also those that no tensor here has. What is read is written
 * back bit by bit, so that a program can copy, rename and drop tensors of files that it cannot compute with.
 */
import { type FileType, isReserved, layOut, type Unplaced } from "../formats/safetensors.ts";
import { fail, requireOptions } from "../trace/arguments.ts";
import { readHeader } from "./read-tensors.ts";

/** A tensor of a file as it lies there. */
export interface FileBytes {
  /** `"BF16"`, `"F8_E4M3"`, … */
  readonly type: string;
  readonly shape: readonly number[];
  /** Little-endian, row by row. */
  readonly bytes: Uint8Array;
}

/** Options of {@link save}. */
export interface SaveBytesOptions {
  readonly metadata?: Readonly<Record<string, string>>;
}

/**
 * The tensors of a safetensors file as bytes, by their names. The bytes are parts of the given array.
 *
 * @memory None: `bytes` are views of the file.
 *
 * @example
 * import { loadBytes, save, tensor } from "tidemark";
 *
 * const file = save({ w: tensor([1, 2]) }, { types: { w: "BF16" } });
 * console.log(loadBytes(file).w); // { type: "BF16", shape: [2], bytes: Uint8Array [128, 63, 0, 64] }
 */
export function loadBytes(file: Uint8Array): Record<string, FileBytes> {
  if (!(file instanceof Uint8Array))
    fail("InvalidArgument", "loadBytes: the file must be a Uint8Array", "pass its bytes");
  const steps = readHeader(file.length);
  let next = 0;
  let step = steps.next();
  while (!step.done) {
    const count = step.value;
    step = steps.next(file.subarray(next, next + count));
    next += count;
  }
  const tensors = step.value.tensors.map(({ name, type, shape, begin, end }) => {
    return [name, { type, shape, bytes: file.subarray(next + begin, next + end) }] as const;
  });
  return Object.fromEntries(tensors);
}

/**
 * A safetensors file of tensors that are given as bytes.
 *
 * @throws InvalidArgument for bytes that are not as many as type and shape say, and for options that are none;
 * InvalidTree for a name that the format keeps for itself; InvalidFile for a type that the format does not have
 *
 * @memory The file is made whole, beside the bytes that are given.
 *
 * @example
 * import { fileInfo, loadBytes, save, saveBytes, tensor } from "tidemark";
 *
 * const { w } = loadBytes(save({ w: tensor([1, 2]) }));
 * console.log(fileInfo(saveBytes({ "fc.weight": w! })).tensors[0]?.name); // fc.weight
 */
export function saveBytes(tensors: Readonly<Record<string, FileBytes>>, options: SaveBytesOptions = {}): Uint8Array {
  requireOptions("saveBytes", options, { metadata: "anything" });
  const entries = Object.entries(tensors);
  const unplaced = entries.map(([name, { type, shape }]): Unplaced => {
    if (isReserved(name)) fail("InvalidTree", `saveBytes: ${name} cannot be the name of a tensor`, "rename that key");
    return { name, type: type as FileType, shape };
  });
  const { head, tensors: placed } = layOut(unplaced, options.metadata ?? {});
  const file = new Uint8Array(head.length + (placed.at(-1)?.end ?? 0));
  file.set(head);
  for (const { name, type, shape, begin, end } of placed) {
    const { bytes } = tensors[name] as FileBytes;
    if (bytes.length !== end - begin) {
      const summary = `saveBytes: ${name} has ${bytes.length} bytes, ${type}[${shape.join(",")}] has ${end - begin}`;
      fail("InvalidArgument", summary, "give all elements, packed and little-endian");
    }
    file.set(bytes, head.length + begin);
  }
  return file;
}
