/**
 * @file `compile`: a function over tensors becomes one program over one planned arena. Traced once for each structure,
 * shapes and constants of its arguments; after that a call writes its inputs, runs the module once and hands out results.
 */

import { parseBytes } from "../base/bytes.ts";
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import type { Graph } from "../ir/graph.ts";
import { graphCost } from "../ops/control.ts";
import type { Plan } from "../plan/problem.ts";
import { validate } from "../plan/validate.ts";
import { type AnyFunction, flattenArguments, type Traced, traceFlat } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import { currentTrace, requireActive } from "../trace/trace.ts";
import { leafPaths, type Tree, unflatten } from "../trace/tree.ts";
import { LoadedProgram, matchDonated } from "./program.ts";

export interface CompileOptions {
  /** Positions of arguments whose tensors are given up to the call: they are updated in place. */
  readonly donate?: readonly number[];
  /** The most bytes that the arena may take: `"64MB"`, `"16MiB"` or a number. */
  readonly memory?: string | number;
  /** For reports and error messages. */
  readonly name?: string;
  /** Check the graph after every pass and the plan with the independent validator. */
  readonly validate?: boolean;
  /** For finding faults: runs operation by operation and throws where NaN first appears. Slow; nothing is donated. */
  readonly checkNaN?: boolean;
}

/** What a compiled program is and needs. */
export interface ProgramInfo {
  /** After all passes, in planned order. */
  readonly graph: Graph;
  readonly plan: Plan;
  readonly arenaBytes: number;
  readonly lowerBoundBytes: number;
  readonly persistentBytes: number;
  /** Floating-point operations of one run. */
  readonly flops: number;
  readonly moduleBytes: number;
  readonly kernelFunctions: number;
  readonly kernelCalls: number;
  readonly traceMs: number;
  readonly planMs: number;
  /** From trace to ready. */
  readonly compileMs: number;
}

export interface Compiled<A extends readonly unknown[], R> {
  (...args: A): R;
  /** Plans and compiles for these arguments without running. */
  program(...args: A): ProgramInfo;
}

interface Entry {
  readonly traced: Traced;
  readonly program: LoadedProgram;
  readonly info: ProgramInfo;
}

function requireValidPlan(plan: Plan): void {
  const broken = validate(plan.program, plan);
  if (broken.length === 0) return;
  throw new TidemarkError("InvalidPlan", broken.map((b) => `${b.rule}: ${b.message}`).join("\n  "));
}

function build(fn: AnyFunction, flat: ReturnType<typeof flattenArguments>, options: CompileOptions): Entry {
  const started = performance.now();
  const traced = traceFlat(fn, flat);
  const tracedAt = performance.now();
  const donate = new Set(options.donate ?? []);
  const params = traced.leaves.flatMap((leaf, index) =>
    donate.has(leaf.argument) ? [{ index, path: leaf.path, type: leaf.type }] : [],
  );
  const paths = leafPaths(traced.resultTree);
  const results = traced.graph.results.map((value, i) => ({ path: at(paths, i), type: value.type }));
  const name = options.name ?? traced.graph.name;
  const program = new LoadedProgram(
    { ...traced.graph, name },
    {
      name,
      donated: matchDonated(params, results),
      firstCapture: traced.leaves.length,
      budgetBytes: options.memory === undefined ? undefined : parseBytes(options.memory),
      verify: options.validate ?? false,
      checkNaN: options.checkNaN ?? false,
    },
  );
  const { placed, moduleBytes, kernelFunctions } = program.executable;
  if (options.validate) requireValidPlan(placed.plan);
  const ready = performance.now();
  const info: ProgramInfo = {
    graph: placed.graph,
    plan: placed.plan,
    arenaBytes: placed.plan.height,
    lowerBoundBytes: placed.plan.bound.bytes,
    persistentBytes: placed.plan.problem.buffers.reduce((sum, b) => sum + (b.kind === "persistent" ? b.bytes : 0), 0),
    flops: graphCost(placed.graph).flops,
    moduleBytes,
    kernelFunctions,
    kernelCalls: placed.kernels.length,
    traceMs: tracedAt - started,
    planMs: placed.planMs,
    compileMs: ready - started,
  };
  return { traced, program, info };
}

/**
 * Compiles a function over tensors. The result is called like the function; its first call with arguments of a new
 * structure or new shapes traces and plans, later ones only run.
 *
 * @example
 * ```ts
 * import { compile, tensor } from "tidemark";
 *
 * const scale = compile((x) => x.mul(2).add(1));
 * console.log(scale(tensor([1, 2, 3])).toArray()); // [3, 5, 7]
 * ```
 */
export function compile<A extends readonly Tree[] = [Tensor], R = unknown>(
  fn: (...args: A) => R,
  options: CompileOptions = {},
): Compiled<A, R> {
  const cache = new Map<string, Entry>();
  const entryFor = (flat: ReturnType<typeof flattenArguments>): Entry => {
    let entry = cache.get(flat.key);
    if (!entry) {
      entry = build(fn as AnyFunction, flat, options);
      cache.set(flat.key, entry);
    }
    return entry;
  };
  const compiled = (...args: A): R => {
    // Inside another trace a compiled function is the function itself.
    if (currentTrace()) return fn(...args);
    const flat = flattenArguments(fn as AnyFunction, args);
    for (const leaf of flat.tensors) requireActive(leaf);
    const { traced, program } = entryFor(flat);
    const results = program.run([...flat.tensors, ...traced.captures.map((capture) => capture.tensor)]);
    return unflatten(traced.resultTree, results) as R;
  };
  return Object.assign(compiled, {
    program: (...args: A): ProgramInfo => entryFor(flattenArguments(fn as AnyFunction, args)).info,
  });
}
