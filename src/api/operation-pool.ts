/**
 * @file Operations outside of traces and tapes run in one pool, one at a time: operands are written into blocks of it, the program
 * of the operation runs on them, results are read, and the blocks are given back. So memory beside the tensors themselves is that of
 * the largest operation, whatever shapes come.
 *
 *   x, y (arrays) ──→ │ x │ y │ result │ workspace │ ──→ result (array)          everything is free again
 */
import { at } from "../base/invariant.ts";
import type { Graph } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import type { Pool } from "../pool/pool.ts";
import { wasmTarget } from "../runtime/wasm-target.ts";
import { sourceLocation } from "../trace/source-location.ts";
import { ArrayStorage, type TensorStorage } from "../trace/storage.ts";
import { storageOf, Tensor } from "../trace/tensor.ts";
import { PoolMemory, type PoolProgram } from "./pool-memory.ts";

/** What the pool has, and the programs that were loaded for it; null: too large for its table. */
interface Engine {
  readonly memory: PoolMemory;
  readonly programs: WeakMap<object, PoolProgram | null>;
}

let engine: Engine | null = null;

function engineNow(): Engine {
  engine ??= { memory: new PoolMemory(wasmTarget(), "operations"), programs: new WeakMap() };
  return engine;
}

/** The pool that operations run in now. */
export const operationPool = (): Pool => engineNow().memory.pool;

/** Gives memory and programs back; the next operation begins with new ones. */
export function releaseOperations(): void {
  engine = null;
}

function programOf({ memory, programs }: Engine, key: object, graph: Graph): PoolProgram | null {
  const known = programs.get(key);
  if (known !== undefined) return known;
  const made = memory.load({ graph, donated: new Map() });
  programs.set(key, made);
  return made;
}

/** Blocks of the operation that runs, by their numbers in the table: workspace, parameters, results. Small operations make no other. */
let blocks = new Int32Array(64);

/** Runs a graph of one operation; null where it has too many operands for the pool's table. */
export function runInPool(key: object, graph: Graph, args: readonly Tensor[]): readonly Tensor[] | null {
  const own = engineNow();
  const program = programOf(own, key, graph);
  if (!program) return null;
  const storages = args.map(storageOf);
  // elements that are not there yet are computed by other operations
  const data = storages.map((storage) => storage.read());
  const words = 1 + storages.length + program.bufferBytes.length;
  if (words > blocks.length) blocks = new Int32Array(2 * words);
  blocks.fill(-1, 0, words);
  const { memory } = own;
  try {
    takeBlocks(memory.pool, program, storages);
    // an operand that is given twice is there once
    for (let i = 0; i < data.length; i++) memory.put(blocks[1 + i] as number, at(storages, i).dtype, at(data, i));
    memory.bind(blocks, words);
    program.run();
    return graph.results.map(({ type }, i) => {
      const place = at(program.results, i);
      const word = "buffer" in place ? 1 + storages.length + place.buffer : 1 + place.param;
      return new Tensor(new ArrayStorage(type.dtype, type.shape, memory.read(blocks[word] as number, type)));
    });
  } finally {
    for (let word = 0; word < words; word++) giveBlock(memory.pool, word);
  }
}

function takeBlocks(pool: Pool, program: PoolProgram, storages: readonly TensorStorage[]): void {
  // lines are for those who look at memory, or may run out of it: looking one up takes longer than a small operation
  const hasLines = pool.events !== null || pool.limitBytes < Number.POSITIVE_INFINITY;
  const tag = hasLines ? pool.tag(sourceLocation() ?? "an operation") : 0;
  for (let i = 0; i < storages.length; i++) {
    const storage = at(storages, i);
    const first = storages.indexOf(storage);
    blocks[1 + i] = first < i ? (blocks[1 + first] as number) : pool.allocate(byteLength(storage), tag);
  }
  const { bufferBytes, slotBytes } = program;
  for (let i = 0; i < bufferBytes.length; i++) {
    blocks[1 + storages.length + i] = pool.allocate(at(bufferBytes, i), tag);
  }
  if (slotBytes > 0) blocks[0] = pool.allocate(slotBytes, tag);
}

/** The first of several words of one block gives it back. */
function giveBlock(pool: Pool, word: number): void {
  const block = blocks[word] as number;
  if (block >= 0 && blocks.indexOf(block) === word) pool.free(block);
}
