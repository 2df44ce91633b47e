/** @file The option `--strategies A,B`, for commands that show plans of several. */

import type { StrategyName } from "../plan/recompute/strategy.ts";
import { STRATEGY_NAMES } from "../plan/recompute/strategy.ts";
import { type Arguments, usageError } from "./command.ts";

/** @param otherwise those that are taken where the option is not given */
export function strategiesOption(args: Arguments, otherwise: readonly StrategyName[]): readonly StrategyName[] {
  const text = args.value("strategies");
  if (text === undefined) return otherwise;
  return text.split(",").map((name) => {
    const match = STRATEGY_NAMES.find((known) => known === name);
    if (match) return match;
    throw usageError(`--strategies: there is no ${name}`, `strategies are ${STRATEGY_NAMES.join(", ")}`);
  });
}
