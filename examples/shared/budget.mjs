/** @file The memory of a compiled program relative to its budget. */

/** `1234567` → `1.18 MiB`. */
export function sizeText(bytes) {
  return bytes < 2 ** 20 ? `${(bytes / 2 ** 10).toFixed(1)} KiB` : `${(bytes / 2 ** 20).toFixed(2)} MiB`;
}

/** The memory needs of a program, in one line. */
export function budgetText({ arenaBytes, storeAllArenaBytes, slowdown }, memory) {
  const arena = `arena ${sizeText(arenaBytes)} of ${sizeText(memory)}`;
  return `${arena}; with everything kept ${sizeText(storeAllArenaBytes)}; predicted slowdown ${slowdown.toFixed(2)}`;
}
