/**
 * @file How the tests run: two processes at a time, so that figures mean the same on small machines. Limits of time are for
 * tests that hang, not for slow machines: they grow with the time that a fixed amount of work takes here.
 */
import { defineConfig } from "vitest/config";

/** Milliseconds of the work below on one quiet core of a server. */
const USUAL_MS = 120;
/** A machine that seems slower than this is stuck. */
const SLOWEST = 60;

/** Longer than the periods in which systems hand out processor time. */
function workMs(): number {
  const started = performance.now();
  let x = 1;
  for (let i = 0; i < 6e7; i++) x = (Math.imul(x, 1664525) + 1013904223) | 0;
  return performance.now() - started + (x === 0 ? 1 : 0);
}

/** Test files that run at a time; the measurement below has for itself what they share. */
const WORKERS = 2;

/** Minutes of processor time: `npm run test:slow` runs them. */
export const SLOW = [
  "tests/adding-a-type.test.ts",
  "tests/budget-order.test.ts",
  "tests/cuda-registers.test.ts",
  "tests/damaged-files-all.test.ts",
  "tests/random-lengths.test.ts",
  "tests/models-of-others-all.test.ts",
  "tests/offload-chain-slow-link.test.ts",
  "tests/explainer.test.ts",
  "tests/explainer-all.test.ts",
  "tests/fit-all.test.ts",
  "tests/mpi-gpt.test.ts",
  "tests/onnx/checker.test.ts",
  "tests/remat.test.ts",
  "tests/resident-memory.test.ts",
  "tests/strips-programs.test.ts",
  "tests/thousand-shapes.test.ts",
];

const measured = Math.min(SLOWEST, Math.max(1, (WORKERS * workMs()) / USUAL_MS));
const slowness = Number(process.env.TEST_SLOWNESS ?? measured);

// the build is JavaScript, since Node 20 runs it
const { workerSource } = await import(new URL("scripts/worker-source.mjs", import.meta.url).href);

export default defineConfig({
  plugins: [workerSource()],
  test: {
    include: ["src/**/*.test.ts", "tests/**/*.test.ts"],
    exclude: SLOW,
    env: { TEST_SLOWNESS: String(slowness) },
    pool: "forks",
    maxWorkers: WORKERS,
    testTimeout: 600_000 * slowness,
    hookTimeout: 600_000 * slowness,
    restoreMocks: true,
    // Pages are drawn when a busy machine comes to it.
    expect: { poll: { timeout: 30_000 * slowness } },
  },
});
