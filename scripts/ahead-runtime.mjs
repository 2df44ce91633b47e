/** @file How the runtime of ahead-of-time programs is bundled, for the build and for tests: one module, minified. */
import { fileURLToPath } from "node:url";

/** None of its modules does anything when it is imported, so code that is not used is left out. */
export const aheadRuntime = () => ({
  input: fileURLToPath(new URL("../src/runtime/ahead/main.ts", import.meta.url)),
  platform: "neutral",
  treeshake: { moduleSideEffects: false, manualPureFunctions: ["DTYPES.filter", "Object.keys"] },
  logLevel: "warn",
});

export const AHEAD_OUTPUT = { format: "es", minify: true, comments: false };
