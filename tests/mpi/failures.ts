/** @file Processes that fail in one way or another. */
export const failures: Readonly<Record<string, () => unknown>> = {};
