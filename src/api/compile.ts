/**
 * @file `compile`: a function over tensors becomes programs over one planned arena. Traced once for each structure, shapes
 * and constants of its arguments; after that a call writes its inputs, runs the code once and hands out results.
 */

import { withLocation } from "../base/errors.ts";
import type { ChosenProgram } from "../compiler/stored.ts";
import type { Target } from "../runtime/device.ts";
import { fail, requireFunction } from "../trace/arguments.ts";
import { type AnyFunction, callByValue, type FlatArguments, type Traced } from "../trace/function.ts";
import { sourceLocation } from "../trace/source-location.ts";
import type { Tensor } from "../trace/tensor.ts";
import { currentTrace, requireActive } from "../trace/trace.ts";
import { type Tree, unflatten } from "../trace/tree.ts";
import { spec } from "./create.ts";
import { currentHost, type Host, spilling } from "./host.ts";
import { KeptPrograms, type Stats, type Usage } from "./kept-programs.ts";
import { type PlanInfo, planInfo } from "./plan-info.ts";
import { type LoadedProgram, loadPlaced } from "./program.ts";
import { type CompileOptions, type CompileRequest, type PaddedOptions, parseCompile } from "./request.ts";
import type { Lengths } from "./shape-axes.ts";
import type { ShapeFamily, ShapeFamilyInfo } from "./shape-family.ts";
import { CallReader, numberTensors, type TracedProgram, traceProgram } from "./traced-program.ts";

/** What a compiled program is and needs. */
export interface ProgramInfo extends PlanInfo {
  /** Of the code: a WebAssembly module, a shared object. */
  readonly moduleBytes: number;
  readonly kernelFunctions: number;
  /** From trace to ready. */
  readonly compileMs: number;
  /** 1, and 2 once a better plan has replaced the first one (`refine` of `compileAsync`). */
  readonly planVersion: number;
}

/** What {@link compile} returns: the function, and what its programs are. */
export interface Compiled<A extends readonly unknown[], R> {
  (...args: A): R;
  /** Plans and compiles for these arguments without running. */
  program(...args: A): ProgramInfo;
  /** What is held now. All programs run in one arena: `arenaBytes` is at most `memory`, whatever shapes are called. */
  usage(): Usage;
  /** The same, and how many programs were planned, compiled and dropped so far. */
  stats(): Stats;
  /** With `shapes`: plans all members for arguments like these, without compiling or running; as text, the peak by extent. */
  family(...args: A): ShapeFamilyInfo;
  /**
   * Frees programs and arena at once; a later call throws `Disposed`. Tensors that calls returned stay readable. Never
   * needed: what is not referred to any more is freed anyway.
   */
  dispose(): void;
}

/** The large parts of what a program is. */
type Details = Pick<PlanInfo, "graph" | "plan">;

/** A program and what its calls need. @internal */
export interface Entry {
  readonly program: LoadedProgram;
  readonly captures: readonly Tensor[];
  readonly numbers: Traced["numbers"];
  readonly resultTree: Traced["resultTree"];
  readonly figures: Omit<ProgramInfo, keyof Details>;
  /** Until the first run; later the program is planned once more where they are asked for. */
  details: (() => Details) | null;
  /** What it was planned for. */
  readonly request: CompileRequest;
}

/** What a function's programs are made with. @internal */
export interface Maker {
  readonly fn: AnyFunction;
  readonly request: CompileRequest;
  readonly kept: KeptPrograms<Entry>;
  readonly reader: CallReader;
  /** The programs for the extents of named dimensions. */
  readonly family: ShapeFamily | null;
  /** Is told of each program that was not expected. */
  readonly counted: ((args: FlatArguments) => void) | undefined;
}

/** @internal */
export function makerOf(fn: AnyFunction, asked: CompileRequest): Maker {
  const request = spilling(asked, currentHost());
  const kept = new KeptPrograms<Entry>(fn.name || "the compiled function", request);
  const { family: shapes, expectsMany, programs } = request;
  const { families } = currentHost();
  const family = shapes ? (families ?? notImported(shapes.caller)).familyOf(fn, shapes, programs) : null;
  const counted = expectsMany ? undefined : families?.counterOf(kept.name);
  return { fn, request, kept, reader: new CallReader(fn, request), family, counted };
}

const notImported = (caller: string): never =>
  fail("InvalidArgument", `${caller}: shapes is not imported`, 'import "tidemark/core/budget" as well');

/** What cannot be planned or loaded names the line of the call that asked for it. */
function located<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw withLocation(error, sourceLocation());
  }
}

/** What calls need of a traced function, beside its program. @internal */
export function tracedParts({ traced }: TracedProgram): Pick<Entry, "captures" | "numbers" | "resultTree"> {
  const { numbers, resultTree } = traced;
  return { captures: traced.captures.map(({ tensor }) => tensor), numbers, resultTree };
}

/** Plans and loads a program on this thread. @internal */
export function build(maker: Maker, source: TracedProgram): Entry {
  const { request, kept, family } = maker;
  const started = performance.now();
  const host = currentHost();
  located(() => kept.settle(source));
  const { program, placed } = located(() =>
    kept.load(({ target }) => {
      const planned = family?.plan(maker, source, target) ?? planOne(maker, source, target);
      const on = { target, host, arena: () => kept.arena };
      return { program: loadPlaced(source, planned, on, request), placed: planned };
    }),
  );
  const { graph, plan, ...info } = planInfo(source, placed, kept.target);
  const { moduleBytes, kernelFunctions } = program;
  const compileMs = source.traceMs + performance.now() - started;
  return {
    ...{ program, ...tracedParts(source) },
    figures: { ...info, moduleBytes, kernelFunctions, compileMs, planVersion: 1 },
    details: () => ({ graph, plan }),
    request,
  };
}

function planOne({ request, kept }: Maker, source: TracedProgram, { description }: Target): ChosenProgram {
  const host = currentHost();
  const placed = host.planner.assemble(source, description, request, host);
  kept.counts.planned++;
  return placed;
}

interface Call {
  readonly flat: FlatArguments;
  readonly entry: Entry;
}

/** Planning is a function of types: it gives the same graph and plan as the first time. @internal */
export function planAgain({ fn, request, kept }: Maker, flat: FlatArguments, host: Host): Details {
  const source = traceProgram(fn, flat, request);
  const { graph, plan } = host.planner.assemble(source, kept.target.target.description, request, host);
  return { graph, plan };
}

/** Types alone: a user who keeps information about a program does not keep the arguments with it. @internal */
export const typesOf = (flat: FlatArguments): FlatArguments => ({
  ...flat,
  tensors: flat.tensors.map(({ shape, dtype }) => spec(shape, dtype)),
});

function infoOf(maker: Maker, { flat, entry: { figures, details, request } }: Call): ProgramInfo {
  const types = typesOf(flat);
  let planned: Details | undefined;
  const detailed = (): Details => {
    planned ??= details?.() ?? planAgain({ ...maker, request }, types, currentHost());
    return planned;
  };
  return {
    ...figures,
    get graph() {
      return detailed().graph;
    },
    get plan() {
      return detailed().plan;
    },
  };
}

/**
 * With dimensions that have names and extents, and are padded to them (`shapes`, `pad`): the function gets the lengths before padding
 * as its last argument, one scalar for each name.
 *
 * @memory That of a program for padded extents.
 *
 * @example
 * ```ts
 * import { compile, tensor, type Tensor } from "tidemark";
 *
 * const meanOf = (x: Tensor, { T }: { T: Tensor }) => x.sum().div(T.cast("f32"));
 * const mean = compile(meanOf, { shapes: { T: [4, 8] }, axes: [["T"]], pad: true });
 * console.log(mean(tensor([1, 2, 6])).item()); // 3
 * ```
 */
export function compile<A extends readonly (Tree | undefined)[] = [Tensor], R = unknown, N extends string = string>(
  fn: (...args: [...A, Lengths<N>]) => R,
  options: PaddedOptions<N>,
): Compiled<A, R>;
/**
 * Compiles a function over tensors. The result is called like the function; its first call with arguments of a new
 * structure or new shapes traces and plans, later ones only run. A number among the arguments may differ from call to call;
 * inside the function it is a scalar that takes the element type of what it meets, and `static` makes it a constant.
 *
 * @memory A program runs in one arena, whose bytes are known before it runs: `step.program(...args).arenaBytes`. The option `memory`
 * limits them.
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
  options?: CompileOptions,
): Compiled<A, R>;
export function compile(fn: AnyFunction, options: CompileOptions = {}): Compiled<unknown[], unknown> {
  requireFunction("compile", "its first argument", fn);
  return compiledBy(makerOf(fn, parseCompile("compile", options)));
}

/** The arguments of a call and its program; the function is traced where there is none. */
function callOf(maker: Maker, given: readonly unknown[]): Call {
  const { kept, reader, family, counted } = maker;
  const args = family?.fit(given) ?? given;
  const flat = reader.read(args);
  for (const leaf of flat.tensors) requireActive(leaf);
  const known = kept.find(flat.key);
  if (known) return { flat, entry: known };
  return currentHost().heap.keptSmall(() => {
    const planned = family?.source(flat.key);
    if (planned) return { flat, entry: kept.add(flat.key, build(maker, planned)) };
    const source = reader.trace(args);
    // Numbers may have turned out to be constants.
    const { key } = source.flat;
    const entry = kept.find(key) ?? kept.add(key, build(maker, source));
    counted?.(source.flat);
    return { flat: source.flat, entry };
  });
}

/** A compiled function, with the programs that its maker has. @internal */
export function compiledBy<A extends readonly unknown[], R>(maker: Maker): Compiled<A, R> {
  const { fn, kept, family } = maker;
  const compiled = (...args: A): R => {
    // Inside another trace a compiled function is the function itself, but for changes to its arguments.
    const trace = currentTrace();
    if (trace) return callByValue(trace, fn, family?.unpadded(args) ?? args) as R;
    const { flat, entry } = callOf(maker, args);
    kept.counts.calls++;
    const given = [...flat.tensors, ...numberTensors(entry, flat), ...entry.captures];
    const run = (): R => unflatten(entry.resultTree, entry.program.run(given)) as R;
    if (!entry.details) return run();
    entry.details = null;
    // before the arena is written, so that the two are not resident at once
    const { heap } = currentHost();
    heap.giveBack();
    // initial values may be drawn now
    return heap.keptSmall(run);
  };
  return Object.assign(compiled, {
    program: (...args: A): ProgramInfo => infoOf(maker, callOf(maker, args)),
    usage: () => kept.usage(),
    stats: () => kept.stats(),
    family: (...args: A): ShapeFamilyInfo =>
      (family ?? fail("InvalidArgument", `${kept.name} was compiled without shapes`, "give { shapes, axes }")).info(
        maker,
        args,
      ),
    dispose: () => kept.dispose(),
  });
}
