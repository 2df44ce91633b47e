/**
 * @file NumPy's files: `.npy` with one array, `.npz` with several by name. Types are converted as for safetensors files; the names in an
 * `.npz` are the paths of the tree.
 */

import { FILE_TYPE_OF } from "../formats/elements.ts";
import { type NpyArray, parseNpy, writeNpy } from "../formats/npy.ts";
import { readZip, writeZip } from "../formats/zip.ts";
import { fail } from "../trace/arguments.ts";
import { ArrayStorage } from "../trace/storage.ts";
import { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import { requireMatch } from "./read-tensors.ts";
import { type LoadOptions, namedTensors, type SaveOptions, treeFrom, wantedBy } from "./save.ts";

const SUFFIX = ".npy";

const tensorFrom = ({ dtype, shape, elements }: NpyArray): Tensor =>
  new Tensor(new ArrayStorage(dtype, shape, elements));

function bytesFrom(name: string, file: Uint8Array | ArrayBuffer): Uint8Array {
  const bytes = file instanceof ArrayBuffer ? new Uint8Array(file) : file;
  if (bytes instanceof Uint8Array) return bytes;
  return fail(
    "InvalidArgument",
    `${name}: the file must be a Uint8Array or an ArrayBuffer`,
    "pass the bytes of the file",
  );
}

/**
 * The array of an `.npy` file. Half floats become f32 and other whole numbers i32 where they fit; either byte order and column-major
 * arrays are read.
 *
 * @memory The elements, beside the file.
 *
 * @example
 * import { loadNpy, saveNpy, tensor } from "tidemark";
 *
 * console.log(loadNpy(saveNpy(tensor([[1, 2]]))).toArray()); // [[1, 2]]
 */
export function loadNpy(file: Uint8Array | ArrayBuffer): Tensor {
  return tensorFrom(parseNpy("the file", bytesFrom("loadNpy", file)));
}

/**
 * A tensor as an `.npy` file.
 *
 * @memory The file is made whole, beside the tensor.
 *
 * @example
 * import { loadNpy, saveNpy, tensor } from "tidemark";
 *
 * const bytes = saveNpy(tensor([1, 2]));
 * console.log(loadNpy(bytes).toArray()); // → [1, 2]
 */
export function saveNpy(x: Tensor): Uint8Array {
  if (!(x instanceof Tensor)) fail("InvalidArgument", "saveNpy: takes a tensor", "saveNpz takes a tree of tensors");
  return writeNpy({ dtype: x.dtype, shape: x.shape, elements: x.data() });
}

/**
 * The arrays of an `.npz` file: into the places of a tree, as `load` does, or without one an object of tensors by name.
 *
 * @memory All arrays at once, beside the file.
 *
 * @example
 * import { loadNpz, saveNpz, tensor } from "tidemark";
 *
 * const file = saveNpz({ w: tensor([1, 2]), layers: [{ b: tensor([3]) }] });
 * console.log(Object.keys(loadNpz(file))); // ["w", "layers.0.b"]
 */
export function loadNpz(file: Uint8Array | ArrayBuffer): Record<string, Tensor>;
export function loadNpz<T extends Tree>(file: Uint8Array | ArrayBuffer, like: T, options?: LoadOptions): T;
export function loadNpz(file: Uint8Array | ArrayBuffer, like?: Tree, options: LoadOptions = {}): unknown {
  const tensors = new Map<string, Tensor>();
  for (const [entry, zipped] of readZip(bytesFrom("loadNpz", file))) {
    if (entry.endsWith("/")) continue;
    const name = entry.endsWith(SUFFIX) ? entry.slice(0, -SUFFIX.length) : entry;
    tensors.set(name, tensorFrom(parseNpy(name, zipped.read())));
  }
  return placed(tensors, like, options);
}

/**
 * A tree of tensors as an `.npz` file, uncompressed as `numpy.savez` writes it.
 *
 * @memory The file is made whole, beside the tensors and a copy of them.
 *
 * @example
 * import { loadNpz, saveNpz, tensor } from "tidemark";
 *
 * const bytes = saveNpz({ w: tensor([1, 2]) });
 * console.log(loadNpz(bytes).w?.toArray()); // → [1, 2]
 */
export function saveNpz(tree: Tree): Uint8Array {
  const parts = namedTensors("saveNpz", tree, {}).map(({ name, tensor }) => {
    return { name: `${name}${SUFFIX}`, bytes: saveNpy(tensor) };
  });
  return writeZip(parts);
}

function placed(tensors: ReadonlyMap<string, Tensor>, like: Tree | undefined, options: LoadOptions): unknown {
  const wanted = wantedBy(like, options);
  const entries = [...tensors].map(([name, { dtype, shape }]) => {
    return { name, type: FILE_TYPE_OF[dtype], shape, begin: 0, end: 0 };
  });
  if (wanted) requireMatch({ tensors: entries }, wanted);
  return treeFrom(tensors, like, options);
}

/** @internal */
export const isNumpyName = (path: string): boolean => /\.np[yz]$/.test(path);

/** A file of the kind that its name says. @internal */
export async function numpyFile(path: string, tree: Tree, { metadata, types }: SaveOptions): Promise<Uint8Array> {
  if (metadata || types) {
    fail(
      "InvalidArgument",
      `saveFile: NumPy's files have no metadata and no other types (${path})`,
      "use .safetensors",
    );
  }
  if (path.endsWith(SUFFIX)) return saveNpy(tree as Tensor);
  return saveNpz(tree);
}

/** @internal */
export function treeFromNumpy(path: string, file: Uint8Array, like: Tree | undefined, options: LoadOptions): unknown {
  if (!path.endsWith(SUFFIX)) return like === undefined ? loadNpz(file) : loadNpz(file, like, options);
  return placed(new Map([["value", loadNpy(file)]]), like, options);
}
