/**
 * @file The optional package `highs`, found and loaded when a plan first asks for it, within the call that asks: planning
 * is synchronous, and the package's loader is not. It has nothing to wait for but promises that are kept at once, as long as
 * it is handed its WebAssembly module; so it runs in a context whose promises are settled before the evaluation returns.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { createContext, runInContext } from "node:vm";
import { TidemarkError } from "../base/errors.ts";
import type { ExactPlanner } from "../plan/recompute/solver.ts";
import { type Highs, highsSolver } from "../remat/highs.ts";

const require = createRequire(import.meta.url);

/** The package's files; null where it is not installed. */
function filesOf(): { readonly code: string; readonly wasm: string } | null {
  try {
    return { code: require.resolve("highs"), wasm: require.resolve("highs/runtime") };
  } catch {
    return null;
  }
}

/** What the loader of the package uses of the globals. */
const GLOBALS = { WebAssembly, TextDecoder, TextEncoder, URL, console, performance, process };

function load({ code, wasm }: { readonly code: string; readonly wasm: string }): Highs {
  const module = new WebAssembly.Module(readFileSync(wasm));
  const instantiateWasm = (imports: WebAssembly.Imports, done: (instance: WebAssembly.Instance) => void): object => {
    done(new WebAssembly.Instance(module, imports));
    return {};
  };
  const exports: { exports: unknown } = { exports: {} };
  const context = createContext({ ...GLOBALS, options: { instantiateWasm } }, { microtaskMode: "afterEvaluate" });
  const wrapped = `(function (module, exports, require, __filename, __dirname) {${readFileSync(code, "utf8")}\n})`;
  runInContext(wrapped, context, { filename: code })(exports, exports.exports, require, code, dirname(code));
  context.load = exports.exports;
  runInContext("load(options).then((made) => { highs = made; }, (error) => { failure = error; })", context);
  if (context.highs === undefined) {
    const why = context.failure ?? "it did not load at once";
    throw new TidemarkError("InvalidArgument", `strategy "optimal": the package highs: ${why}`, {
      help: 'install it again, npm install highs, or take the strategy "auto"',
    });
  }
  return context.highs as Highs;
}

/** Loaded once: the package does not change while the process runs. */
let solver: ExactPlanner | undefined;

/** Why the package cannot be used, or null. */
export const solverProblem = (): string | null =>
  filesOf() ? null : "the package highs is not installed: npm install highs";

/** HiGHS, or undefined where the package is not installed. */
export function findSolver(): ExactPlanner | undefined {
  if (solver) return solver;
  const files = filesOf();
  if (files) solver = highsSolver(load(files));
  return solver;
}
