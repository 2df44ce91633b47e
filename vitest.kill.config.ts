/** @file How the long tests of kills run: one process, lines printed as they come; not part of `npm test`. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/node/hundred-kills.ts", "tests/mpi/kills.ts"],
    pool: "forks",
    maxWorkers: 1,
    disableConsoleIntercept: true,
  },
});
