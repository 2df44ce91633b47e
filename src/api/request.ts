/**
 * @file What a user may ask of `plan` and `compile`, checked once and turned into one request, which is then passed whole:
 *
 *   PlanningOptions, CompileOptions ── parse ──→ CompileRequest ──→ trace, plan, load, run
 *
 * Sizes are numbers of bytes there, defaults are filled in, and nothing is checked again.
 */
import { parseBytes } from "../base/bytes.ts";
import { TidemarkError } from "../base/errors.ts";
import type { MemoryRequest, PlanProgress, PlanRequest } from "../compiler/request.ts";
import { pipeline } from "../passes/pipeline.ts";
import { LEVELS, type Level } from "../plan/recompute/levels.ts";
import type { ExactPlanner } from "../plan/recompute/solver.ts";
import { STRATEGY_NAMES, type StrategyName } from "../plan/recompute/strategy.ts";
import { DEFAULT_TARGET, TARGET_NAMES, type TargetName } from "../runtime/choose-target.ts";
import { isTarget, PRODUCTS, type Products, type SpillFolder, type Target } from "../runtime/device.ts";
import type { CostModel } from "../target/work.ts";
import { describe, fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import { type LossyOptions, lossyRequest } from "./lossy-options.ts";
import type { SpillFile } from "./page-file.ts";
import type { BoundedExtent, NamedAxes, NamedShapes, ShapeOptions } from "./shape-axes.ts";

/** More than any machine's cores: a larger number is a mistake. @internal */
export const MOST_THREADS = 1024;

/** Programs of a function that are kept where nothing else is asked for. */
const MOST_PROGRAMS = 64;

export type { PlanProgress };

/** How much is searched for a plan. */
export type PlanEffort = "quick" | "full";

const EFFORTS: readonly PlanEffort[] = ["quick", "full"];

/** Options of {@link plan}: those of {@link compile} that concern the plan. */
export interface PlanningOptions {
  /** Positions of arguments whose tensors are given up to the call: they are updated in place. */
  readonly donate?: readonly number[];
  /**
   * Positions of arguments whose numbers are constants: axes, extents, counts. For each value a program is compiled; other
   * numbers may differ from call to call.
   */
  readonly static?: readonly number[];
  /**
   * Positions of arguments that stay in the arena between calls, the weights of a network: the same tensors are not copied into it
   * again, whatever else the program needs. Without it they are copied where the plan has used their place for something else.
   */
  readonly resident?: readonly number[];
  /**
   * The most bytes that the arena may take: `"64MB"`, `"16MiB"` or a number; what does not fit is recomputed. `"min"`:
   * as few as possible.
   */
  readonly memory?: string | number;
  /**
   * With `memory`: a folder, or with the target `cuda` the host's memory, in which values may wait for their next use, where that is
   * faster than to compute them again (docs/spill.md). With `tidemark/node`, or in workers of pages.
   */
  readonly spill?: SpillOptions;
  /** In place of `memory`: as few bytes as possible at this multiple of the predicted time, 1.3 for example. */
  readonly maxSlowdown?: number;
  /**
   * How much is searched for a plan within `memory`. `"quick"`: the first good plan, in about a third of the time; its predicted time
   * is within a few per cent of the other's, in most programs equal. `"full"`: the whole search, whose plans for larger budgets are
   * never slower. Default: `"quick"` for `compile`, `"full"` for `plan`. A budget that can be met is met by both.
   */
  readonly effort?: PlanEffort;
  /** Which strategy decides what is recomputed; default: `"auto"`. */
  readonly strategy?: StrategyName;
  /**
   * What may be kept for the backward pass in few bits, at the price of rounding: results are not those of the program without
   * (docs/lossy.md). Default: nothing.
   */
  readonly lossy?: LossyOptions;
  /** What strategies with segments cut at: `"operation"`, or parts as named by `scope` and `checkpoint`. */
  readonly segments?: Level;
  /**
   * What the program is compiled for: by name `wasm`, with `tidemark/node` also `native` and `cuda`, after `await webgpu()` also `webgpu`,
   * or `auto` for the one of these that is predicted to be fastest; or a target of your own (docs/adding-a-target.md).
   */
  readonly target?: TargetName | Target;
  /**
   * What large products of f32 are multiplied in: `"f32"`, the default, or `"tf32"` on the tensor cores of an NVIDIA GPU of the Hopper
   * generation, which rounds their operands to 11 bits. Only with the target `cuda`.
   */
  readonly products?: Products;
  /** How many threads run it; default: 1. Bits do not depend on it. Without workers `wasm` has one (`targetNote`). */
  readonly threads?: number;
  /** How long kernels take on this machine; default: those of a server's core. */
  readonly costs?: CostModel;
  /** Solves integer programs for the strategy `"optimal"`; with `tidemark/node` the package `highs` is found by itself. */
  readonly solver?: ExactPlanner;
  /** Is told of every plan that is made while one is looked for: `"min"` and tight budgets of large programs take seconds. */
  readonly progress?: (made: PlanProgress) => void;
  /** Whether a plan that took long is kept on disk and read from there; with `tidemark/node`. Default: true. */
  readonly cache?: boolean;
  /** For reports and error messages. */
  readonly name?: string;
  /** Check the graph after every pass and the plan with the independent validator. */
  readonly validate?: boolean;
}

/** Where values wait for their next use. */
export interface SpillOptions {
  /**
   * A folder, which exists: a file without a name is made in it, which is gone when the process is. In a worker of a page: a file
   * from `pageFile()`. With the target `cuda`: `"host"`, pinned memory of the host.
   */
  readonly to: string | SpillFile;
  /** How fast it is, each way, for predictions: `"1GB/s"`, or `"auto"`, the default, to measure it once. */
  readonly bandwidth?: string;
  /** The most that is used of it, each way: `"500MB/s"`; default: no limit. */
  readonly limit?: string;
}

/** Options of {@link compile}. */
export interface CompileOptions extends PlanningOptions {
  /**
   * How many programs are kept, each for other shapes of arguments; default: 64. The one that was not called for longest is
   * dropped, and compiled again when it is called.
   */
  readonly programs?: number;
  /**
   * The extents that named dimensions may have: `{ T: [64, 128, 256] }`, all planned before the first run, or any up to a largest:
   * `{ T: { max: 256 } }`, which is planned before the first run. One arena of the largest one's size serves them. Another extent
   * is an error, or with `pad` padded to the next of a list (docs/shapes.md).
   */
  readonly shapes?: NamedShapes;
  /** Which axes of each argument those dimensions are, null for others: `[null, [null, "T"]]`. A tree for an argument that is one. */
  readonly axes?: readonly NamedAxes[];
  /**
   * Whether arguments of other extents are padded with zeros to the next that `shapes` has. The function gets the lengths before
   * padding as one more argument, scalars of i32 by name: `{ T }`.
   */
  readonly pad?: boolean;
  /** For finding faults: runs operation by operation and throws where NaN first appears. Slow; nothing is donated. */
  readonly checkNaN?: boolean;
  /**
   * `"borrowed"`: results stay in the arena and are valid until the next call, which `borrow()` reads without a copy; reading them
   * later throws `StaleResult`. Default: `"copied"`, in arrays of their own. State that is donated stays in the arena either way.
   */
  readonly results?: Results;
}

/** Options of a function whose arguments are padded: it has one more argument than its calls, the lengths. */
export interface PaddedOptions<Name extends string> extends CompileOptions {
  readonly shapes: { readonly [name in Name]: readonly number[] | BoundedExtent };
  readonly pad: true;
}

/** Where a call's results are. */
export type Results = "copied" | "borrowed";

/** @internal */
export const PLANNING_OPTIONS: OptionKinds<PlanningOptions> = {
  donate: "anything",
  static: "anything",
  resident: "anything",
  memory: "anything",
  spill: "anything",
  maxSlowdown: "anything",
  effort: "a text",
  strategy: "a text",
  segments: "a text",
  lossy: "anything",
  target: "anything",
  products: "a text",
  threads: "anything",
  costs: "anything",
  solver: "anything",
  progress: "a function",
  cache: "a boolean",
  name: "a text",
  validate: "a boolean",
};

const COMPILE_OPTIONS: OptionKinds<CompileOptions> = {
  ...PLANNING_OPTIONS,
  programs: "a number",
  shapes: "anything",
  axes: "anything",
  pad: "a boolean",
  checkNaN: "a boolean",
  results: "a text",
};

/** The options of `plan` or `compile`, parsed. @internal */
export interface CompileRequest extends PlanRequest {
  /** Positions of arguments. Whether a call has them shows when it is made. */
  readonly donate: readonly number[];
  readonly static: readonly number[];
  readonly resident: readonly number[];
  readonly target: TargetName | Target;
  readonly products: Products | undefined;
  readonly threads: number | undefined;
  readonly name: string | undefined;
  /** As it was given; the host checks it (spill.ts), and then there is `spillTo`. */
  readonly spill: SpillOptions | undefined;
  readonly spillTo?: SpillFolder | undefined;
  /** How many are kept. */
  readonly programs: number;
  /** Whether that number was asked for: many programs are no surprise then. */
  readonly expectsMany: boolean;
  readonly family: ShapeOptions | undefined;
  readonly checkNaN: boolean;
  readonly results: Results;
}

/** Checks options as `plan` has them; `caller` is named in errors. @internal */
export function parsePlanning(caller: string, options: PlanningOptions): CompileRequest {
  requireOptions(caller, options, PLANNING_OPTIONS);
  return parsed(caller, { effort: "full", ...options });
}

/** Checks options as `compile` has them; `caller` is named in errors, and `more` are options of its own. @internal */
export function parseCompile(caller: string, options: CompileOptions, more: OptionKinds<object> = {}): CompileRequest {
  requireOptions(caller, options, { ...COMPILE_OPTIONS, ...more });
  const { programs = MOST_PROGRAMS, checkNaN = false, shapes, axes, pad = false, results = "copied" } = options;
  const request = parsed(caller, { effort: "quick", ...options });
  if (!(Number.isInteger(programs) && programs >= 1)) {
    fail("InvalidArgument", `${caller}: programs is ${describe(programs)}`, "give a whole number from 1 on");
  }
  if (!["copied", "borrowed"].includes(results)) {
    fail("InvalidArgument", `${caller}: results is ${describe(results)}`, 'give "copied" or "borrowed"');
  }
  const isFamily = shapes !== undefined || axes !== undefined || pad;
  const family = isFamily ? { caller, name: options.name, shapes, axes, pad } : undefined;
  const expectsMany = options.programs !== undefined;
  // operation by operation, so that the one to blame can be named
  return { ...request, programs, expectsMany, family, checkNaN, results, passes: checkNaN ? pipeline : undefined };
}

function parsed(caller: string, options: PlanningOptions): CompileRequest {
  const lossy = lossyRequest(caller, options.lossy);
  const memory = { ...memoryRequest(options), ...(lossy ? { lossy } : {}) };
  requireTarget(caller, options);
  requirePositions(caller, "donate", options.donate);
  requirePositions(caller, "static", options.static);
  requirePositions(caller, "resident", options.resident);
  const { donate = [], static: constant = [], resident = [] } = options;
  const both = resident.find((n) => donate.includes(n));
  if (both !== undefined) {
    const help = "donate it if a result replaces it, else make it resident";
    fail("InvalidArgument", `${caller}: argument ${both} is donated and resident`, help);
  }
  const { target = DEFAULT_TARGET, cache = true, validate = false } = options;
  const { threads, products, costs, solver, progress, name, spill } = options;
  if (solver !== undefined && typeof solver?.family !== "function") {
    const help =
      "give highsSolver(await highs()), or exactPlanner(solve) for another solver; both are in tidemark/remat";
    fail("InvalidArgument", `${caller}: solver is ${describe(solver)}`, help);
  }
  return {
    ...{
      memory,
      donate,
      static: constant,
      resident,
      target,
      products,
      threads,
      costs,
      solver,
      progress,
      cache,
      name,
      validate,
      spill,
    },
    ...{
      passes: undefined,
      programs: MOST_PROGRAMS,
      expectsMany: false,
      family: undefined,
      checkNaN: false,
      results: "copied" as const,
    },
  };
}

function requirePositions(name: string, option: "donate" | "static" | "resident", given: unknown = []): void {
  const positions = Array.isArray(given) ? (given as readonly unknown[]) : null;
  if (positions?.every((n) => Number.isInteger(n) && (n as number) >= 0)) return;
  const got = positions ? JSON.stringify(positions) : describe(given);
  const help = `give a list of argument positions, from 0: { ${option}: [0] }`;
  fail("InvalidArgument", `${name}: ${option} is ${got}`, help);
}

/** Options that say what a program is for, checked or not. @internal */
export interface AskedTarget {
  readonly target?: TargetName | Target;
  readonly threads?: number | undefined;
  readonly products?: Products | undefined;
  readonly spillTo?: SpillFolder | undefined;
}

/** Throws unless target and threads can be asked for. @internal */
export function requireTarget(name: string, { target, threads, products }: AskedTarget): void {
  const isName = typeof target === "string" && TARGET_NAMES.includes(target);
  if (target !== undefined && !isName && !isTarget(target)) {
    const help = `give one of ${TARGET_NAMES.join(", ")}, or a target of your own`;
    fail("InvalidArgument", `${name}: target is ${describe(target)}`, help);
  }
  if (products !== undefined && !PRODUCTS.includes(products)) {
    fail("InvalidArgument", `${name}: products is ${describe(products)}`, `give one of ${PRODUCTS.join(", ")}`);
  }
  if (products !== undefined && isTarget(target)) {
    const help = "leave products out: a target of your own says what it multiplies in, cuda({ products }) for example";
    fail("InvalidArgument", `${name}: products is ${products}, and the target is an object`, help);
  }
  if (threads !== undefined && !(Number.isInteger(threads) && threads >= 1 && threads <= MOST_THREADS)) {
    const help = `give a whole number from 1 to ${MOST_THREADS}`;
    fail("InvalidArgument", `${name}: threads is ${describe(threads)}`, help);
  }
  if (isTarget(target) && threads !== undefined && threads !== target.threads) {
    const help = "leave threads out: a target of your own says how many it has";
    fail("InvalidArgument", `${name}: threads is ${threads}, ${target.description.name} has ${target.threads}`, help);
  }
}

/** What the options ask of memory. */
function memoryRequest({ memory, maxSlowdown, strategy, segments, effort }: PlanningOptions): MemoryRequest {
  if (effort !== undefined && !EFFORTS.includes(effort)) {
    fail("InvalidArgument", `effort is ${describe(effort)}`, `give one of ${EFFORTS.join(", ")}`);
  }
  if (segments !== undefined && !LEVELS.includes(segments)) {
    fail("InvalidArgument", `segments is ${describe(segments)}`, `give one of ${LEVELS.join(", ")}`);
  }
  if (strategy !== undefined && !STRATEGY_NAMES.includes(strategy)) {
    fail("InvalidArgument", `strategy is ${describe(strategy)}`, `give one of ${STRATEGY_NAMES.join(", ")}`);
  }
  if (maxSlowdown !== undefined && !(typeof maxSlowdown === "number" && maxSlowdown >= 1)) {
    const help = "give a factor of the time without recomputation, at least 1: { maxSlowdown: 1.3 }";
    fail("InvalidArgument", `maxSlowdown is ${describe(maxSlowdown)}`, help);
  }
  if (memory === "min") {
    if (maxSlowdown === undefined) return { least: true, strategy, segments };
    fail("InvalidArgument", 'memory is "min" and maxSlowdown is given', "give one of them: both ask for few bytes");
  }
  return { budgetBytes: budgetOf(memory), maxSlowdown, strategy, segments, quick: effort === "quick" };
}

function budgetOf(memory: unknown): number | undefined {
  if (memory === undefined) return undefined;
  if (typeof memory !== "number" && typeof memory !== "string") {
    fail("InvalidArgument", `memory is ${describe(memory)}`, 'give bytes, a size with its unit ("64MiB"), or "min"');
  }
  try {
    return parseBytes(memory);
  } catch (error) {
    if (!(error instanceof TidemarkError)) throw error;
    return fail(error.code, `memory: ${error.summary}`, error.help);
  }
}
