/**
 * @file What depends on the engine, for a second Node (tests/support/tool.mjs): code for WebAssembly with fused
 * multiply-add, and plans, since tiles, workspaces and costs are others with it. Part of `npm test`.
 */
import { defineConfig, mergeConfig } from "vitest/config";
import config from "./vitest.config.ts";

export default mergeConfig(
  { ...config, test: { ...config.test, include: [] } },
  defineConfig({
    test: {
      include: [
        "src/codegen/wasm/*.test.ts",
        "src/cli/calibration.test.ts",
        "tests/ahead-load.test.ts",
        "tests/budget.test.ts",
        "tests/fuzz/slice.test.ts",
        "tests/programs.test.ts",
        "tests/ratio.test.ts",
        "tests/wasm-threads.test.ts",
      ],
    },
  }),
);
