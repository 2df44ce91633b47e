/**
 * @file `npm run test:fast`: what needs no compiler, no browser, no worker and no process of its own, in less than a minute of
 * processor time. Files share what they import. Slow ones of these layers are left to `npm test`.
 */
import { defineConfig, mergeConfig } from "vitest/config";
import config from "./vitest.config.ts";

const LAYERS = [
  "base",
  "kernel",
  "target",
  "ir",
  "ops",
  "trace",
  "autodiff",
  "batching",
  "passes",
  "lower",
  "plan",
  "loops",
  "compiler",
];

export default mergeConfig(
  { ...config, test: { ...config.test, include: [] } },
  defineConfig({
    test: {
      isolate: false,
      include: [
        ...LAYERS.map((layer) => `src/${layer}/**/*.test.ts`),
        "src/codegen/{cpu,wasm}/**/*.test.ts",
        "src/{api,nn,optim}/**/*.test.ts",
        "tests/{architecture,errors,goldens,nan,regressions}.test.ts",
      ],
      exclude: [
        "src/kernel/math*.test.ts",
        "src/plan/move.test.ts",
        "src/plan/order.test.ts",
        "src/plan/order/search.test.ts",
        "src/plan/place/**",
        "src/plan/recompute/**",
        "src/remat/**",
        "src/compiler/plan-cache.test.ts",
        "src/api/reversible.test.ts",
      ],
    },
  }),
);
