/** @file How the slow tests of budgets run: one process, lines printed as they come; not part of `npm test`. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.slow.ts"],
    pool: "forks",
    maxWorkers: 1,
    disableConsoleIntercept: true,
  },
});
