/** @file Compiling within a budget, and what that took. */
import { compile, TidemarkError } from "tidemark";

/** `1234567` → `1.18 MiB`. */
export function sizeText(bytes) {
  return bytes < 2 ** 20 ? `${(bytes / 2 ** 10).toFixed(1)} KiB` : `${(bytes / 2 ** 20).toFixed(2)} MiB`;
}

/**
 * Compiles a function for these arguments in at most `memory` bytes; where no plan does, without a limit.
 *
 * @returns the compiled function, its info, and whether the budget was kept
 */
export function compileWithin(fn, memory, args, options = {}) {
  try {
    const compiled = compile(fn, { ...options, memory });
    return { compiled, info: compiled.program(...args), within: true };
  } catch (error) {
    if (!(error instanceof TidemarkError) || error.code !== "PlanInfeasible") throw error;
    const compiled = compile(fn, options);
    return { compiled, info: compiled.program(...args), within: false };
  }
}

/** What a program needs, in a line. */
export function budgetText({ info, within }, memory) {
  const all = `with everything kept ${sizeText(info.storeAllArenaBytes)}`;
  if (!within) return `no plan within ${sizeText(memory)}, so ${all}`;
  return `arena ${sizeText(info.arenaBytes)} of ${sizeText(memory)}; ${all}; predicted slowdown ${info.slowdown.toFixed(2)}`;
}
