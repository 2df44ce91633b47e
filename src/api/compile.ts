/**
 * @file `compile`: a function over tensors becomes programs over one planned arena. Traced once for each structure, shapes
 * and constants of its arguments; after that a call writes its inputs, runs the code once and hands out results.
 */

import { withLocation } from "../base/errors.ts";
import type { Target } from "../runtime/device.ts";
import { inSmallHeap, returnHeap } from "../runtime/engine-heap.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import { type AnyFunction, callByValue, type FlatArguments, type Traced } from "../trace/function.ts";
import { sourceLocation } from "../trace/source-location.ts";
import type { Tensor } from "../trace/tensor.ts";
import { currentTrace, requireActive } from "../trace/trace.ts";
import { type Tree, unflatten } from "../trace/tree.ts";
import { spec } from "./create.ts";
import { KeptPrograms, MOST_PROGRAMS, type Usage } from "./kept-programs.ts";
import {
  CallReader,
  numberTensors,
  PLANNING_OPTIONS,
  type PlanInfo,
  type PlanningOptions,
  planInfo,
  requestOf,
  requirePlanning,
  type TracedProgram,
  targetOf,
  traceProgram,
} from "./plan.ts";
import { type LoadedProgram, loadProgram, type ProgramOptions, planned } from "./program.ts";

export interface CompileOptions extends PlanningOptions {
  /**
   * How many programs are kept, each for other shapes of arguments; default: 64. The one that was not called for longest is
   * dropped, and compiled again when it is called.
   */
  readonly programs?: number;
  /** For finding faults: runs operation by operation and throws where NaN first appears. Slow; nothing is donated. */
  readonly checkNaN?: boolean;
}

const OPTIONS: OptionKinds<CompileOptions> = { ...PLANNING_OPTIONS, programs: "a number", checkNaN: "a boolean" };

/** What a compiled program is and needs. */
export interface ProgramInfo extends PlanInfo {
  /** Of the code: a WebAssembly module, a shared object. */
  readonly moduleBytes: number;
  readonly kernelFunctions: number;
  /** From trace to ready. */
  readonly compileMs: number;
}

export interface Compiled<A extends readonly unknown[], R> {
  (...args: A): R;
  /** Plans and compiles for these arguments without running. */
  program(...args: A): ProgramInfo;
  /** What is held now. All programs run in one arena: `arenaBytes` is at most `memory`, whatever shapes are called. */
  usage(): Usage;
  /**
   * Frees programs and arena at once; a later call throws `Disposed`. Tensors that calls returned stay readable. Never
   * needed: what nobody refers to is freed anyway.
   */
  dispose(): void;
}

/** The large parts of what a program is. */
type Details = Pick<PlanInfo, "graph" | "plan">;

interface Entry {
  readonly program: LoadedProgram;
  readonly captures: readonly Tensor[];
  readonly numbers: Traced["numbers"];
  readonly resultTree: Traced["resultTree"];
  readonly figures: Omit<ProgramInfo, keyof Details>;
  /** Until the first run; for whoever asks later it is planned once more. */
  details: Details | null;
}

/** What a function's programs are made with. */
interface Maker {
  readonly fn: AnyFunction;
  readonly options: CompileOptions;
  readonly kept: KeptPrograms<Entry>;
}

function programOptions(source: TracedProgram, { options, kept }: Maker, target: Target): ProgramOptions {
  const { graph, donated, firstCapture, memory } = source;
  return {
    name: graph.name,
    donated,
    firstCapture,
    memory,
    target,
    costs: options.costs,
    solver: options.solver,
    progress: options.progress,
    cache: options.cache,
    verify: options.validate ?? false,
    checkNaN: options.checkNaN ?? false,
    arena: () => kept.arena,
  };
}

/** What cannot be planned or loaded names the line of the call that asked for it. */
function located<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw withLocation(error, sourceLocation());
  }
}

function build(maker: Maker, source: TracedProgram): Entry {
  const { options, kept } = maker;
  const started = performance.now();
  const { traced, graph } = source;
  const { program, placed } = located(() =>
    kept.load(({ target }) => loadProgram(graph, programOptions(source, maker, target))),
  );
  const { graph: ordered, plan, ...info } = planInfo(source, placed, options, kept.target);
  const { moduleBytes, kernelFunctions } = program;
  const captures = traced.captures.map(({ tensor }) => tensor);
  const compileMs = source.traceMs + performance.now() - started;
  return {
    ...{ program, captures, numbers: traced.numbers, resultTree: traced.resultTree },
    figures: { ...info, moduleBytes, kernelFunctions, compileMs },
    details: { graph: ordered, plan },
  };
}

interface Call {
  readonly flat: FlatArguments;
  readonly entry: Entry;
}

/** Planning is a function of types: it gives the same graph and plan as the first time. */
function planAgain(maker: Maker, flat: FlatArguments): Details {
  const source = traceProgram(maker.fn, flat, maker.options);
  return planned(source.graph, programOptions(source, maker, maker.kept.target.target));
}

function infoOf(maker: Maker, { flat, entry: { figures, details } }: Call): ProgramInfo {
  // types alone: whoever keeps what is said here does not keep the arguments
  const types = { ...flat, tensors: flat.tensors.map(({ shape, dtype }) => spec(shape, dtype)) };
  let known = details;
  const made = (): Details => {
    known ??= planAgain(maker, types);
    return known;
  };
  return {
    ...figures,
    get graph() {
      return made().graph;
    },
    get plan() {
      return made().plan;
    },
  };
}

function requirePrograms({ programs }: CompileOptions): void {
  if (programs === undefined || (Number.isInteger(programs) && programs >= 1)) return;
  fail("InvalidArgument", `compile: programs is ${describe(programs)}`, "give a whole number from 1 on");
}

/**
 * Compiles a function over tensors. The result is called like the function; its first call with arguments of a new
 * structure or new shapes traces and plans, later ones only run. A number among the arguments may differ from call to call;
 * inside the function it is a scalar that takes the element type of what it meets, and `static` makes it a constant.
 *
 * @example
 * ```ts
 * import { compile, tensor } from "tidemark";
 *
 * const scale = compile((x) => x.mul(2).add(1));
 * console.log(scale(tensor([1, 2, 3])).toArray()); // [3, 5, 7]
 * ```
 */
export function compile<A extends readonly (Tree | undefined)[] = [Tensor], R = unknown>(
  fn: (...args: A) => R,
  options: CompileOptions = {},
): Compiled<A, R> {
  requireFunction("compile", "its first argument", fn);
  requireOptions("compile", options, OPTIONS);
  requirePlanning("compile", options);
  requirePrograms(options);
  const kept = new KeptPrograms<Entry>({
    name: options.name ?? (fn.name || "the compiled function"),
    limit: options.programs ?? MOST_PROGRAMS,
    budgetBytes: requestOf(options).budgetBytes,
    target: () => targetOf(options),
  });
  const maker: Maker = { fn: fn as AnyFunction, options, kept };
  const reader = new CallReader(fn as AnyFunction, options);
  /** The arguments of a call and its program; the function is traced where there is none. */
  const programFor = (args: A): Call => {
    const flat = reader.read(args);
    for (const leaf of flat.tensors) requireActive(leaf);
    const known = kept.find(flat.key);
    if (known) return { flat, entry: known };
    return inSmallHeap(() => {
      const source = reader.trace(args);
      // Numbers may have turned out to be constants.
      const { key } = source.flat;
      return { flat: source.flat, entry: kept.find(key) ?? kept.add(key, build(maker, source)) };
    });
  };
  const compiled = (...args: A): R => {
    // Inside another trace a compiled function is the function itself, but for changes to its arguments.
    const trace = currentTrace();
    if (trace) return callByValue(trace, fn as AnyFunction, args) as R;
    const { flat, entry } = programFor(args);
    const given = [...flat.tensors, ...numberTensors(entry, flat), ...entry.captures];
    const run = (): R => unflatten(entry.resultTree, entry.program.run(given)) as R;
    if (!entry.details) return run();
    entry.details = null;
    // before the arena is written, so that the two are not resident at once
    returnHeap();
    // initial values may be drawn now
    return inSmallHeap(run);
  };
  return Object.assign(compiled, {
    program: (...args: A): ProgramInfo => infoOf(maker, programFor(args)),
    usage: () => kept.usage(),
    dispose: () => kept.dispose(),
  });
}
