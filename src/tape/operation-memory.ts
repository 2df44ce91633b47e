/** @file `operationMemory`: what operations outside of `compile` and `tape` take while they run (api/operation-pool.ts), and a limit on it. */
import { operationPool, releaseOperations } from "../api/operation-pool.ts";
import { parseBytes } from "../base/bytes.ts";
import type { PoolStats } from "../pool/pool.ts";
import { poolSnapshot } from "../pool/snapshot.ts";

/** The memory that operations outside of `compile` and `tape` run in. */
export interface OperationMemory {
  /** Under the names of PyTorch's allocator. Between operations nothing is allocated: peaks say what they took. */
  stats(): PoolStats;
  /** The most that an operation's operands, results and workspace may take, `"64MiB"`; `null`: what the target has. */
  limit(memory: string | number | null): void;
  /** From now on so many allocations are remembered for `snapshot()`; 0: none. */
  record(history: number): void;
  /** What is remembered, as a file that `tidemark view` and PyTorch's memory_viz open. */
  snapshot(): Uint8Array;
  /** Gives memory and programs back; the next operation begins with new ones, without limit and history. */
  release(): void;
}

/**
 * The memory of operations that run outside of `compile` and `tape`.
 *
 * @throws InvalidArgument, by `limit` and `record`, for what is no size and no number of allocations. An operation
 * that exceeds the limit throws PoolExhausted
 *
 * @example
 * import { ones } from "tidemark";
 * import { operationMemory } from "tidemark/tape";
 *
 * operationMemory.limit("64MiB");
 * console.log(ones([4]).add(1).toArray()); // → [2, 2, 2, 2]
 * operationMemory.limit(null);
 */
export const operationMemory: OperationMemory = {
  stats: () => operationPool().stats(),
  limit(memory) {
    const limitBytes = memory === null ? Number.POSITIVE_INFINITY : parseBytes(memory);
    const pool = operationPool();
    pool.trim();
    pool.resetPeak();
    pool.limitBytes = limitBytes;
  },
  record(history) {
    operationPool().record(history);
  },
  snapshot: () => poolSnapshot(operationPool()),
  release: () => releaseOperations(),
};
