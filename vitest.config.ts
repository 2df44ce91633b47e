/** @file How the tests run: two processes at a time, so that figures and time limits mean the same on small machines. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "tests/**/*.test.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 180_000,
    hookTimeout: 120_000,
    restoreMocks: true,
    // Pages are drawn when a busy machine comes to it.
    expect: { poll: { timeout: 30_000 } },
  },
});
