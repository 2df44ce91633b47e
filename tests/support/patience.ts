/** @file Limits of time grow where the machine is slow: `vitest.config.ts` measures it once and says how slow it is. */

/** How many times as long as on the machine that limits were written for; at least 1. */
export const SLOWNESS = Math.max(1, Number(process.env.TEST_SLOWNESS ?? "1"));

/** A limit of time, in milliseconds. */
export const patience = (ms: number): number => Math.ceil(ms * SLOWNESS);
