/**
 * @file The index of a checkpoint in several safetensors files, as the Hugging Face libraries write it:
 *
 *   { "metadata": { "total_size": 16060522496 },
 *     "weight_map": { "model.norm.weight": "model-00004-of-00004.safetensors", … } }
 *
 * A shard is named without a folder and lies beside its index; a name with a separator or `..` is refused.
 */
import { grouped } from "../base/errors.ts";
import { badFile } from "./safetensors.ts";

/** Names of tensors by the file that holds them, files in the order of their names. */
export type ShardMap = ReadonlyMap<string, readonly string[]>;

/** More would be no checkpoint. */
const MOST_INDEX_BYTES = 100_000_000;

export const isIndexName = (path: string): boolean => path.endsWith(".index.json");

const HELP = "the index is damaged or belongs to other files; fetch it again";

export function parseIndex(bytes: Uint8Array): ShardMap {
  if (bytes.length > MOST_INDEX_BYTES) {
    throw badFile(`the index has ${grouped(bytes.length)} bytes, at most ${grouped(MOST_INDEX_BYTES)} are read`, HELP);
  }
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw badFile(`the index is not JSON text: ${error instanceof Error ? error.message : String(error)}`, HELP);
  }
  const map = (json as { readonly weight_map?: unknown } | null)?.weight_map;
  if (typeof map !== "object" || map === null || Array.isArray(map)) {
    throw badFile("the index has no weight_map from names of tensors to files", HELP);
  }
  const shards = new Map<string, string[]>();
  for (const [name, file] of Object.entries(map)) {
    requireShardName(name, file);
    const names = shards.get(file);
    if (names) names.push(name);
    else shards.set(file, [name]);
  }
  return new Map([...shards].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function requireShardName(name: string, file: unknown): asserts file is string {
  if (typeof file === "string" && /^[^/\\:\0]+$/.test(file) && file !== "." && file !== "..") return;
  throw badFile(`the index says that ${name} is in ${JSON.stringify(file)}, which is no file beside it`, HELP);
}

/** Tensors with their sizes, divided in order into files of at most so many bytes; one that is larger has its own. */
export function divide<T extends { readonly bytes: number }>(tensors: readonly T[], most: number): readonly T[][] {
  const shards: T[][] = [];
  let room = 0;
  for (const tensor of tensors) {
    if (shards.length === 0 || tensor.bytes > room) {
      shards.push([]);
      room = most;
    }
    shards.at(-1)?.push(tensor);
    room -= tensor.bytes;
  }
  return shards;
}

/** `model.safetensors` in n files: the name of file i, counted from 1. */
export function shardName(file: string, i: number, n: number): string {
  const digits = (count: number): string => String(count).padStart(5, "0");
  return `${file.replace(/\.safetensors$/, "")}-${digits(i)}-of-${digits(n)}.safetensors`;
}

/** The text of an index. */
export function indexText(shards: ReadonlyMap<string, readonly string[]>, totalBytes: number): string {
  const entries = [...shards].flatMap(([file, names]) => names.map((name) => [name, file] as const));
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  const index = { metadata: { total_size: totalBytes }, weight_map: Object.fromEntries(entries) };
  return `${JSON.stringify(index, null, 2)}\n`;
}
