/**
 * @file `plan`: what a program would need, without making it. The function is traced, differentiated, optimised and
 * placed as `compile` does it; then nothing is emitted and nothing allocated, so arguments may be specs (`spec`,
 * `specsOf`) and arenas may be larger than any memory here.
 *
 *   trace ─→ passes ─→ kernels ─→ plan ─┬─→ PlanInfo                       plan
 *                                       └─→ WebAssembly, an arena, a run   compile
 */

import { parseBytes } from "../base/bytes.ts";
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { Recent } from "../base/recent.ts";
import { isTransfer } from "../codegen/placed.ts";
import { type ChosenProgram, type MemoryRequest, ProgramPlans } from "../compiler/assemble.ts";
import type { PlanProgress } from "../compiler/graph-plans.ts";
import type { Graph } from "../ir/graph.ts";
import { elementWriter } from "../kernel/dtype.ts";
import { graphCost } from "../ops/control.ts";
import type { Plan } from "../plan/problem.ts";
import { LEVELS, type Level } from "../plan/recompute/levels.ts";
import type { IntegerSolver } from "../plan/recompute/optimal.ts";
import { STRATEGIES, type StrategyName } from "../plan/recompute/strategies.ts";
import { validate } from "../plan/validate.ts";
import {
  type ChosenTarget,
  chooseTarget,
  DEFAULT_TARGET,
  TARGET_NAMES,
  type TargetName,
} from "../runtime/choose-target.ts";
import { isTarget, type Target } from "../runtime/device.ts";
import type { CostModel } from "../target/work.ts";
import {
  describe,
  fail,
  type OptionKinds,
  requireFunction,
  requireLiteral,
  requireOptions,
} from "../trace/arguments.ts";
import { type AnyFunction, type FlatArguments, flattenArguments, type Traced, traceFlat } from "../trace/function.ts";
import { ArrayStorage, newArray } from "../trace/storage.ts";
import { Tensor } from "../trace/tensor.ts";
import { leafPaths, type Tree, unflatten } from "../trace/tree.ts";
import { spec } from "./create.ts";
import { matchDonated, persistentParams } from "./program.ts";

/** More than any machine's cores: a larger number is a mistake. @internal */
export const MOST_THREADS = 1024;

export type { PlanProgress };

export interface PlanningOptions {
  /** Positions of arguments whose tensors are given up to the call: they are updated in place. */
  readonly donate?: readonly number[];
  /**
   * Positions of arguments whose numbers are constants: axes, extents, counts. For each value a program is compiled; other
   * numbers may differ from call to call.
   */
  readonly static?: readonly number[];
  /**
   * The most bytes that the arena may take: `"64MB"`, `"16MiB"` or a number; what does not fit is computed again. `"min"`:
   * as few as possible.
   */
  readonly memory?: string | number;
  /** In place of `memory`: as few bytes as possible at this multiple of the predicted time, 1.3 for example. */
  readonly maxSlowdown?: number;
  /** Which strategy decides what is recomputed; default: `"auto"`. */
  readonly strategy?: StrategyName;
  /** What strategies with segments cut at: `"operation"`, or parts as named by `scope` and `checkpoint`. */
  readonly segments?: Level;
  /**
   * What the program is compiled for: by name `wasm`, with `tidemark/node` also `native`, or `auto` for the faster one; or a
   * target of your own (docs/adding-a-target.md).
   */
  readonly target?: TargetName | Target;
  /** How many threads run it; default: 1. Bits do not depend on it. Without workers `wasm` has one (`targetNote`). */
  readonly threads?: number;
  /** How long kernels take on this machine; default: those of a server's core. */
  readonly costs?: CostModel;
  /** Solves integer programs for the strategy `"optimal"`; with `tidemark/node` the package `highs` is found by itself. */
  readonly solver?: IntegerSolver;
  /** Is told of every plan that is made while one is looked for: `"min"` and tight budgets of large programs take seconds. */
  readonly progress?: (made: PlanProgress) => void;
  /** Whether a plan that took long is kept on disk and read from there; with `tidemark/node`. Default: true. */
  readonly cache?: boolean;
  /** For reports and error messages. */
  readonly name?: string;
  /** Check the graph after every pass and the plan with the independent validator. */
  readonly validate?: boolean;
}

/** @internal */
export const PLANNING_OPTIONS: OptionKinds<PlanningOptions> = {
  donate: "anything",
  static: "anything",
  memory: "anything",
  maxSlowdown: "anything",
  strategy: "a text",
  segments: "a text",
  target: "anything",
  threads: "anything",
  costs: "anything",
  solver: "a function",
  progress: "a function",
  cache: "a boolean",
  name: "a text",
  validate: "a boolean",
};

/** Throws unless options can be right for some call; whether donated arguments exist shows when it is made. @internal */
export function requirePlanning(name: string, options: PlanningOptions): void {
  requestOf(options);
  requireTarget(name, options);
  requirePositions(name, "donate", options.donate);
  requirePositions(name, "static", options.static);
}

function requirePositions(name: string, option: "donate" | "static", given: unknown = []): void {
  const positions = Array.isArray(given) ? (given as readonly unknown[]) : null;
  if (positions?.every((n) => Number.isInteger(n) && (n as number) >= 0)) return;
  const got = positions ? JSON.stringify(positions) : describe(given);
  const help = `give a list of argument positions, from 0: { ${option}: [0] }`;
  fail("InvalidArgument", `${name}: ${option} is ${got}`, help);
}

/** Throws unless target and threads can be asked for. @internal */
export function requireTarget(name: string, { target, threads }: Pick<PlanningOptions, "target" | "threads">): void {
  const isName = typeof target === "string" && TARGET_NAMES.includes(target);
  if (target !== undefined && !isName && !isTarget(target)) {
    const help = `give one of ${TARGET_NAMES.join(", ")}, or a target of your own`;
    fail("InvalidArgument", `${name}: target is ${describe(target)}`, help);
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

/** The target of a program by its options. @internal */
export function targetOf({
  target = DEFAULT_TARGET,
  threads,
}: Pick<PlanningOptions, "target" | "threads">): ChosenTarget {
  return isTarget(target) ? { target, note: target.note ?? null } : chooseTarget(target, { threads });
}

/** What the options ask of memory. @internal */
export function requestOf({ memory, maxSlowdown, strategy, segments }: PlanningOptions): MemoryRequest {
  if (segments !== undefined && !LEVELS.includes(segments)) {
    fail("InvalidArgument", `segments is ${describe(segments)}`, `give one of ${LEVELS.join(", ")}`);
  }
  if (strategy !== undefined && !STRATEGIES.includes(strategy)) {
    fail("InvalidArgument", `strategy is ${describe(strategy)}`, `give one of ${STRATEGIES.join(", ")}`);
  }
  if (maxSlowdown !== undefined && !(typeof maxSlowdown === "number" && maxSlowdown >= 1)) {
    const help = "give a factor of the time without recomputation, at least 1: { maxSlowdown: 1.3 }";
    fail("InvalidArgument", `maxSlowdown is ${describe(maxSlowdown)}`, help);
  }
  if (memory === "min") {
    if (maxSlowdown === undefined) return { least: true, strategy, segments };
    fail("InvalidArgument", 'memory is "min" and maxSlowdown is given', "give one of them: both ask for few bytes");
  }
  return { budgetBytes: budgetOf(memory), maxSlowdown, strategy, segments };
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

function requireDonated(donate: readonly number[], { trees }: FlatArguments): void {
  const missing = donate.find((n) => n >= trees.length);
  if (missing === undefined) return;
  const summary = `donate names argument ${missing} of a call with ${trees.length}`;
  fail("InvalidArgument", summary, "positions count from 0; donate arguments that the call has");
}

/** Structures of arguments of which is remembered what is constant in them. */
const MOST_STRUCTURES = 1024;

/** How the arguments of a function's calls are taken apart: which of their numbers are constants. @internal */
export class CallReader {
  readonly #fn: AnyFunction;
  readonly #options: PlanningOptions;
  readonly #static: ReadonlySet<number>;
  /** Paths of numbers that no operation met when the function was traced, by the key of the arguments without them. */
  readonly #unmet = new Recent<string, ReadonlySet<string>>(MOST_STRUCTURES);

  constructor(fn: AnyFunction, options: PlanningOptions) {
    this.#fn = fn;
    this.#options = options;
    this.#static = new Set(options.static ?? []);
  }

  read(args: readonly unknown[]): FlatArguments {
    const flat = this.#read(args);
    const unmet = flat.numbers.length === 0 ? undefined : this.#unmet.find(flat.key);
    return unmet ? this.#read(args, unmet) : flat;
  }

  #read(args: readonly unknown[], constants?: ReadonlySet<string>): FlatArguments {
    return flattenArguments(this.#fn, args, (argument, path) => !this.#static.has(argument) && !constants?.has(path));
  }

  /**
   * Traces a call. A number that no operation meets may still have decided something (`if (n)`, `n === 3`), which JavaScript
   * lets nobody see: it is a constant from then on, and the function is traced again with its value.
   */
  trace(args: readonly unknown[]): TracedProgram {
    const flat = this.read(args);
    const source = traceProgram(this.#fn, flat, this.#options);
    const met = new Set(source.traced.numbers.map(({ index }) => index));
    const unmet = flat.numbers.filter((_, i) => !met.has(i));
    if (unmet.length === 0) return source;
    const { key } = this.#read(args);
    const known = this.#unmet.find(key) ?? [];
    this.#unmet.add(key, new Set([...known, ...unmet.map(({ path }) => path)]));
    return this.trace(args);
  }
}

/** What the numbers of a call are to its program: a scalar for each parameter. @internal */
export function numberTensors({ numbers }: Pick<Traced, "numbers">, flat: FlatArguments): readonly Tensor[] {
  return numbers.map(({ index, path, type }) => {
    const { value } = at(flat.numbers, index);
    requireLiteral(path, value, type.dtype);
    return new Tensor(new ArrayStorage(type.dtype, [], newArray(type.dtype, 1).fill(elementWriter(type.dtype)(value))));
  });
}

/** What a program needs. */
export interface PlanInfo {
  /** After all passes, in planned order. */
  readonly graph: Graph;
  readonly plan: Plan;
  readonly arenaBytes: number;
  /** With nothing computed again, and loops that keep all that their reverses read. */
  readonly storeAllArenaBytes: number;
  /** What it is for, and with `target: "auto"` why it is not for a faster one. */
  readonly target: string;
  readonly targetNote: string | null;
  /** Who decided what is computed again. */
  readonly strategy: string;
  /** How long a run should take, and the same as a multiple of what it would take with nothing computed again. */
  readonly predictedMs: number;
  readonly slowdown: number;
  /**
   * Under the strategy `"optimal"`: what recomputation costs over the solver's bound for this budget, less 1, in the planner's
   * own count (docs/budget.md). Null where no solver was asked.
   */
  readonly gap: number | null;
  /** Whether the solver showed that no plan costs less; false where none was asked. */
  readonly proven: boolean;
  readonly lowerBoundBytes: number;
  readonly persistentBytes: number;
  /** Where each parameter of the graph comes from: `state.params.w0` of the arguments, or `captured[0]`. */
  readonly paths: readonly string[];
  /** Floating-point operations of one run. */
  readonly flops: number;
  readonly kernelCalls: number;
  readonly traceMs: number;
  /** Passes, kernels and the plan. */
  readonly planMs: number;
  /** Whether the plan was read from the cache (`cache`): `planMs` is then the time to read and check it. */
  readonly planCached: boolean;
}

/** A traced function with the parts of `PlanningOptions` that are about its arguments worked out. @internal */
export interface TracedProgram {
  readonly flat: FlatArguments;
  readonly traced: Traced;
  /** The traced graph under the program's name. */
  readonly graph: Graph;
  readonly donated: ReadonlyMap<number, number>;
  readonly firstCapture: number;
  readonly memory: MemoryRequest;
  readonly traceMs: number;
}

/** @internal */
export function traceProgram(fn: AnyFunction, flat: FlatArguments, options: PlanningOptions): TracedProgram {
  requireDonated(options.donate ?? [], flat);
  const started = performance.now();
  const traced = traceFlat(fn, flat, "returned");
  const traceMs = performance.now() - started;
  const donate = new Set(options.donate ?? []);
  const params = traced.leaves.flatMap((leaf, index) =>
    donate.has(leaf.argument) ? [{ index, path: leaf.path, type: leaf.type }] : [],
  );
  const paths = leafPaths(traced.resultTree);
  const results = traced.graph.results.map((value, i) => ({ path: at(paths, i), type: value.type }));
  return {
    flat,
    traced,
    graph: { ...traced.graph, name: options.name ?? traced.graph.name },
    donated: matchDonated(params, results),
    firstCapture: traced.leaves.length + traced.numbers.length,
    memory: requestOf(options),
    traceMs,
  };
}

/** The numbers of a placed program; throws when `options.validate` finds the plan broken. @internal */
export function planInfo(
  source: TracedProgram,
  placed: ChosenProgram,
  options: PlanningOptions,
  { target, note }: ChosenTarget,
): PlanInfo {
  const { plan, graph } = placed;
  if (options.validate) requireValidPlan(plan);
  return {
    graph,
    plan,
    arenaBytes: plan.height,
    storeAllArenaBytes: placed.storeAll.arenaBytes,
    target: target.description.name,
    targetNote: note,
    strategy: placed.strategy,
    predictedMs: placed.predictedMs,
    slowdown: placed.predictedMs / placed.storeAll.predictedMs,
    gap: placed.proof?.gap ?? null,
    proven: placed.proof?.proven ?? false,
    lowerBoundBytes: plan.bound.bytes,
    persistentBytes: plan.problem.buffers.reduce((sum, b) => sum + (b.kind === "persistent" ? b.bytes : 0), 0),
    paths: pathsOf(source),
    flops: graphCost(graph).flops,
    kernelCalls: placed.kernels.filter((step) => !isTransfer(step)).length,
    traceMs: source.traceMs,
    planMs: placed.planMs,
    planCached: placed.planCached,
  };
}

/** Where each parameter of the program comes from. @internal */
export function pathsOf({ traced }: TracedProgram): readonly string[] {
  const given = [...traced.leaves, ...traced.numbers].map((leaf) => leaf.path);
  return [...given, ...traced.captures.map((_, i) => `captured[${i}]`)];
}

function requireValidPlan(plan: Plan): void {
  const broken = validate(plan.program, plan);
  if (broken.length === 0) return;
  throw new TidemarkError("InvalidPlan", broken.map((b) => `${b.rule}: ${b.message}`).join("\n  "), {
    help: "this is a mistake of the planner's: report it with the text of the traced graph",
  });
}

/**
 * Plans a function over tensors without compiling it: the result takes the function's arguments and says what a program
 * for arguments of these types would need. Throws `PlanInfeasible` when that is more than `memory`.
 *
 * @example
 * import { plan, spec, type Tensor, valueAndGrad } from "tidemark";
 *
 * const step = (w: Tensor, x: Tensor) => valueAndGrad((v: Tensor) => x.matmul(v).tanh().sum())(w);
 * const { arenaBytes, lowerBoundBytes } = plan(step)(spec([64, 16]), spec([32, 64]));
 * console.log(arenaBytes === lowerBoundBytes); // true
 */
export function plan<A extends readonly Tree[] = [Tensor], R = unknown>(
  fn: (...args: A) => R,
  options: PlanningOptions = {},
): (...args: A) => PlanInfo {
  requireFunction("plan", "its first argument", fn);
  requireOptions("plan", options, PLANNING_OPTIONS);
  requirePlanning("plan", options);
  return (...args) => {
    const target = targetOf(options);
    const { source, plans } = plansOf(fn as AnyFunction, args, options, target.target);
    const started = performance.now();
    const chosen = plans.choose(source.memory);
    return planInfo(source, plans.placed(chosen, performance.now() - started), options, target);
  };
}

/** All plans of a function's program for arguments like these. @internal */
export function plansOf(
  fn: AnyFunction,
  args: readonly unknown[],
  options: PlanningOptions,
  { description }: Pick<Target, "description"> = targetOf(options).target,
): { readonly source: TracedProgram; readonly plans: ProgramPlans } {
  const source = new CallReader(fn, options).trace(args);
  const { graph, donated, firstCapture } = source;
  const persistent = persistentParams(graph, donated, firstCapture);
  const { costs, solver, progress, cache, validate: verify = false } = options;
  const plans = new ProgramPlans(graph, description, { donated, persistent, costs, solver, progress, cache, verify });
  return { source, plans };
}

/**
 * What a function returns, as specs: it is traced and not run, so that the state of a model can be planned with before
 * there is memory for it. Constants of the function are specs of their types as well.
 *
 * @example
 * import { spec, specsOf } from "tidemark";
 * import { adam } from "tidemark/optim";
 *
 * const state = specsOf(() => adam().init({ w: spec([50257, 768]) }))();
 * console.log(state.slots.m?.w.shape); // [50257, 768]
 */
export function specsOf<A extends readonly Tree[], R>(fn: (...args: A) => R): (...args: A) => R {
  requireFunction("specsOf", "its argument", fn);
  return (...args) => {
    const { graph, resultTree } = traceFlat(fn as AnyFunction, flattenArguments(fn as AnyFunction, args));
    return unflatten(
      resultTree,
      graph.results.map(({ type }) => spec(type.shape, type.dtype)),
    ) as R;
  };
}
