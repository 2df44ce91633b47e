/** @file What may be asked of the memory of a program. */
import type { Level } from "../plan/recompute/levels.ts";
import type { StrategyName } from "../plan/recompute/strategies.ts";

/** What a user may ask of memory. */
export interface MemoryRequest {
  /** The arena may not be larger. */
  readonly budgetBytes?: number | undefined;
  /** As small as possible. */
  readonly least?: boolean | undefined;
  /** As small as possible at this multiple of the predicted time of storing everything. */
  readonly maxSlowdown?: number | undefined;
  /** Which strategy decides what is recomputed; default: `auto`. */
  readonly strategy?: StrategyName | undefined;
  /** What segments are made of, for strategies that have segments; default: operations. */
  readonly segments?: Level | undefined;
}
