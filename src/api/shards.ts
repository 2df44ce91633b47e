/**
 * @file Checkpoints in several safetensors files with an index. One file is open at a time, and of each only the tensors that the index
 * puts there and that are wanted stay in memory.
 */
import { badFile, type FileTensor } from "../formats/safetensors.ts";
import { parseIndex } from "../formats/shard-index.ts";
import { requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import { ByteReader, type ByteSource } from "./byte-streams.ts";
import { readChosen, requireMatch } from "./read-tensors.ts";
import { LOAD, type LoadOptions, treeFrom, wantedBy } from "./save.ts";

/** Gives the bytes of a file that lies beside the index. */
export type OpenShard = (name: string) => ByteSource | Promise<ByteSource>;

/**
 * The tensors of a checkpoint in several files, as `loadFrom` gives them for one: `index` has the bytes of its
 * `model.safetensors.index.json`, and `open` gives each file when it is its turn. In Node, `loadFile` takes the path of the index.
 *
 * @throws InvalidFile where the index or a file is damaged or incomplete
 *
 * @memory The tensors, and the bytes of one of them as its file has them.
 *
 * @example
 * import { loadShards, save, tensor } from "tidemark";
 *
 * const shard = new Blob([save({ w: tensor([1, 2]) }) as Uint8Array<ArrayBuffer>]);
 * const index = new TextEncoder().encode('{ "weight_map": { "w": "model-00001-of-00001.safetensors" } }');
 * console.log((await loadShards(index, () => shard)).w?.toArray()); // [1, 2]
 */
export async function loadShards(index: Uint8Array, open: OpenShard): Promise<Record<string, Tensor>>;
export async function loadShards<T extends Tree>(
  index: Uint8Array,
  open: OpenShard,
  like: T,
  options?: LoadOptions,
): Promise<T>;
export async function loadShards(
  index: Uint8Array,
  open: OpenShard,
  like?: Tree,
  options: LoadOptions = {},
): Promise<unknown> {
  requireOptions("loadShards", options, LOAD);
  const shards = parseIndex(index);
  const wanted = wantedBy(like, options);
  const asked = wanted && new Set(wanted.tensors.map(({ name }) => name));
  const tensors = new Map<string, Tensor>();
  const listed: FileTensor[] = [];
  for (const [file, names] of shards) {
    const reader = await ByteReader.of(await open(file));
    try {
      const own = new Set(names);
      const steps = readChosen(reader.bytes, {
        check: ({ tensors: entries }) => requireListed(file, names, entries),
        keeps: ({ name }) => own.has(name) && (asked?.has(name) ?? true),
      });
      let step = steps.next();
      while (!step.done) step = steps.next(await reader.take(step.value));
      await reader.requireEnd();
      listed.push(...step.value.entries.filter(({ name }) => own.has(name)));
      for (const [name, made] of step.value.tensors) tensors.set(name, made);
    } finally {
      await reader.close();
    }
  }
  if (wanted) requireMatch({ tensors: listed }, wanted);
  return treeFrom(tensors, like, options);
}

function requireListed(file: string, names: readonly string[], entries: readonly FileTensor[]): void {
  const there = new Set(entries.map(({ name }) => name));
  const missing = names.filter((name) => !there.has(name));
  if (missing.length === 0) return;
  const more = missing.length > 8 ? ` and ${missing.length - 8} more` : "";
  throw badFile(`the index says that ${missing.slice(0, 8).join(", ")}${more} is in ${file}, which lacks it`);
}
