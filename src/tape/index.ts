/** @file `tidemark/tape`: programs that are decided as they run, and the pools that they take memory from. */

export { Pool, type PoolBlock, type PoolOptions, type PoolStats } from "../pool/pool.ts";
export { largestBlocks } from "../pool/refusal.ts";
export { poolSnapshot } from "../pool/snapshot.ts";
export type { AccountRow, AccountTotals, TapeAccount } from "./account.ts";
export { type FunctionAccount, tapeAccount } from "./account-function.ts";
export { maskedSelect, nonzeroPositions, uniqueValues } from "./data-sizes.ts";
export type { GradientOptions } from "./gradient-request.ts";
export { type OperationMemory, operationMemory } from "./operation-memory.ts";
export {
  releaseTapes,
  type Tape,
  type TapeCounts,
  type TapeOptions,
  tape,
  tapeCounts,
} from "./tape.ts";
