/**
 * @file `tape(fn)`: runs an ordinary function on tensors that record what is done to them. What it returns are concrete tensors.
 */

import { currentHost } from "../api/host.ts";
import { PoolMemory } from "../api/pool-memory.ts";
import { parseBytes } from "../base/bytes.ts";
import { TidemarkError } from "../base/errors.ts";
import type { PoolStats } from "../pool/pool.ts";
import { poolSnapshot } from "../pool/snapshot.ts";
import { isTarget } from "../runtime/device.ts";
import { wasmTarget } from "../runtime/wasm-target.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import { laterLocation } from "../trace/source-location.ts";
import type { TensorStorage } from "../trace/storage.ts";
import { Tensor } from "../trace/tensor.ts";
import { currentTrace } from "../trace/trace.ts";
import { flatten, type Tree, unflatten } from "../trace/tree.ts";
import { Cuts } from "./cuts.ts";
import type { Engine } from "./evaluate.ts";
import { type GradientOptions, requireTarget, sourcesOf, type TapePart } from "./gradient-request.ts";
import { LastingPlaces } from "./lifetimes.ts";
import { Log } from "./log.ts";
import { PoolStorage } from "./pool-storage.ts";
import { CompiledRuns } from "./runs.ts";
import { Signatures } from "./signatures.ts";
import { TapeTrace } from "./tape-trace.ts";

/** Options of {@link tape}. */
export interface TapeOptions {
  /** The most memory that values of the tape may take: `"64MiB"`; default: what the target has. */
  readonly memory?: string | number;
  /** Whether values are recomputed where `memory` has not room for all of them; default: false, which is an error then. */
  readonly recompute?: boolean;
  /** Whether runs of operations that come again are compiled as one; default: true. Bits are the same. */
  readonly compileRuns?: boolean;
  /** Allocations that are remembered for `snapshot()`; default: none. */
  readonly history?: number;
  /**
   * Tensors that are not used after the tape, such as a state of which it returns the next one: results of their types take their memory, and
   * stay in it for the next tape instead of being copied out and in.
   */
  readonly donate?: Tree;
}

const OPTIONS: OptionKinds<TapeOptions> = {
  memory: "anything",
  recompute: "a boolean",
  compileRuns: "a boolean",
  history: "a number",
  donate: "anything",
};

/** Tapes run where their pool is: what is compiled for other targets is not asked of them. */
function requireOwnTarget(options: (TapeOptions & { readonly target?: unknown }) | null): void {
  const target = options?.target;
  if (target === undefined) return;
  const name = isTarget(target) ? target.description.name : describe(target);
  fail(
    "TargetUnsupported",
    `tape: the target is ${name}, and tapes run on wasm`,
    "leave target out, or compile the function for it: compile(fn, { target })",
  );
}

/** What ran by itself and what in compiled runs, since the library was loaded. */
export interface TapeCounts {
  /** Operations that ran by themselves. */
  readonly single: number;
  /** Operations that ran within compiled runs. */
  readonly inRuns: number;
  /** Operations that ran a second time, for values that had been given back. */
  readonly recomputed: number;
  /** Programs that were compiled, of one operation and of several, since what is kept between tapes was last given back. */
  readonly programs: number;
}

/** A tape while its function runs. */
export interface Tape {
  /**
   * The gradient of a scalar with respect to a tree of tensors, as a tree of the same form. Sources may be any tensors that the function
   * used or made; those that the target does not depend on have a gradient of zero. Gradients are on the tape too: they can be
   * differentiated again.
   */
  gradient<T extends Tree>(target: Tensor, sources: T, options?: GradientOptions): T;
  /**
   * Says that gradients will be taken only with respect to these, so that nothing is kept for others. Without it everything that was
   * used from outside counts.
   */
  watch(sources: Tree): void;
  /** Of the memory that tapes take. */
  memory(): PoolStats;
  /** That memory and what the option `history` remembers, as a file that `tidemark view` and PyTorch's memory_viz open. */
  snapshot(): Uint8Array;
}

/** Signatures above which everything that is kept between tapes is dropped: programs that never repeat would fill memory. */
const MOST_SIGNATURES = 20_000;

interface KeptEngine extends Engine {
  readonly signatures: Signatures;
  /** Tapes that are running, one inside the other. */
  running: number;
  /** Results that are in the pool. */
  residents: readonly PoolStorage[];
}

let kept: KeptEngine | null = null;

const counts: Engine["counts"] = { single: 0, inRuns: 0, recomputed: 0 };

function newEngine(): KeptEngine {
  const memory = new PoolMemory(wasmTarget(), "tape");
  return {
    ...{
      memory,
      runs: new CompiledRuns(memory),
      cuts: new Cuts(),
      lasting: new LastingPlaces(),
      signatures: new Signatures(),
    },
    counts,
    compilesRuns: true,
    running: 0,
    residents: [],
  };
}

function engineNow(): KeptEngine {
  if (kept && kept.running === 0 && kept.signatures.count > MOST_SIGNATURES) drop(kept);
  kept ??= newEngine();
  return kept;
}

function drop(engine: KeptEngine): void {
  moveOut(engine, NONE);
  kept = null;
}

const NONE: ReadonlySet<TensorStorage> = new Set();

/** Results in the pool become arrays, but those that are given to the tape that begins. */
function moveOut(engine: KeptEngine, donated: ReadonlySet<TensorStorage>): void {
  for (const resident of engine.residents) if (!donated.has(resident)) resident.moveOut();
  engine.residents = engine.residents.filter((resident) => donated.has(resident));
  // they lie where they were computed, and the workspace of a whole run has to fit beside them
  if (engine.residents.length > 0) engine.memory.pool.closeGaps();
}

/**
 * Gives back what is kept between tapes: their memory, which otherwise stays as large as it once had to be, and compiled programs. Not while a
 * tape runs.
 *
 * @throws SideEffect while a tape runs
 *
 * @memory Everything that tapes have kept is free afterwards.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { releaseTapes, tape } from "tidemark/tape";
 *
 * const w = tensor([1, 2]);
 * console.log(tape((t) => t.gradient(w.square().sum(), w)).toArray()); // → [2, 4]
 * releaseTapes();
 */
export function releaseTapes(): void {
  if (kept && kept.running > 0) {
    fail("SideEffect", "releaseTapes: a tape is running", "call it when the function given to tape has returned");
  }
  if (kept) drop(kept);
}

/**
 * How much of what tapes did ran in compiled runs.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { tape, tapeCounts } from "tidemark/tape";
 *
 * const w = tensor([1, 2]);
 * tape((t) => t.gradient(w.square().sum(), w));
 * console.log(tapeCounts().programs > 0); // → true
 */
export function tapeCounts(): TapeCounts {
  return { ...counts, programs: engineNow().runs.compiledRuns };
}

/**
 * Runs a function on tensors that record what is done to them, and returns what it returns, as concrete tensors. Inside, tensors have
 * values: `x.item()`, `if`, `while`, recursion and early return work on numbers. Memory of everything else is given back at the end.
 *
 * @memory Values are in one pool, which `memory` limits. What neither a gradient nor the function seems to need is
 * given back while it runs, and recomputed if it is read after all.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { tape } from "tidemark/tape";
 *
 * const a = tensor(2);
 * const { root, slope } = tape((t) => {
 *   let x = tensor(1).mul(1); // Newton's iteration for the square root of a
 *   while (Math.abs(x.square().sub(a).item()) > 1e-6) x = x.sub(x.square().sub(a).div(x.mul(2)));
 *   return { root: x, slope: t.gradient(x, a) };
 * });
 * console.log(root.item().toFixed(4), slope.item().toFixed(4)); // 1.4142 0.3536
 */
export function tape<R>(fn: (tape: Tape) => R, options: TapeOptions = {}): R {
  requireFunction("tape", "its argument", fn, "tape((t) => t.gradient(loss(w), w))");
  requireOwnTarget(options);
  requireOptions("tape", options, OPTIONS);
  requireNoTrace();
  const engine = engineNow();
  const donated = donatedOf(engine, options);
  const { recompute: recomputes = false } = options;
  if (engine.running === 0) moveOut(engine, recomputes ? NONE : donated);
  const before = settingsOf(engine);
  applyOptions(engine, options);
  // lines are for those who look at memory, or may run out of it
  const modes = { hasLines: options.memory !== undefined || options.history !== undefined, recomputes };
  const outer = currentTrace();
  engine.running += 1;
  try {
    if (outer instanceof TapeTrace) return outer.within(modes, () => resultOfPart(outer, fn, { engine, options }));
    return resultOfWhole(new TapeTrace(engine, new Log(engine.signatures), { ...modes, donated }), fn, engine);
  } catch (error) {
    throw overflowOf(error) ?? error;
  } finally {
    engine.running -= 1;
    restore(engine, before);
    // what compiling left
    if (engine.running === 0) currentHost().heap.giveBack();
  }
}

function resultOfWhole<R>(trace: TapeTrace, fn: (tape: Tape) => R, engine: KeptEngine): R {
  const part = { start: 0, hasEnded: false };
  try {
    return trace.run(() => resultOf(trace, waitedFor(fn(tapeOf(trace, engine, part))), engine));
  } finally {
    part.hasEnded = true;
    trace.close();
  }
}

/** A tape inside of another one: what it records is on that one too, which can differentiate what it returns. */
function resultOfPart<R>(
  trace: TapeTrace,
  fn: (tape: Tape) => R,
  { engine, options }: { engine: KeptEngine; options: TapeOptions },
): R {
  const part = { start: trace.log.values, hasEnded: false };
  try {
    const result = waitedFor(fn(tapeOf(trace, engine, part)));
    // a limit holds for what the function returns, too
    if (options.memory !== undefined) trace.compute(tensorsOf(trace, result));
    return result;
  } finally {
    part.hasEnded = true;
  }
}

/** Storage of tensors that are given up to a tape. */
function donatedOf({ running }: KeptEngine, { donate }: TapeOptions): ReadonlySet<TensorStorage> {
  if (donate === undefined) return NONE;
  if (running > 0) {
    fail(
      "InvalidArgument",
      "tape: donate on a tape inside of another one",
      "donate to the outer tape, which may read them later",
    );
  }
  const { leaves, paths } = flatten(donate, "donate");
  leaves.forEach(({ storage }, i) => {
    if (storage?.isConsumed) storage.read();
    if (!storage)
      fail("InvalidArgument", `tape: ${paths[i] ?? "donate"} is traced`, "donate tensors that have elements");
  });
  return new Set(leaves.flatMap(({ storage }) => (storage ? [storage] : [])));
}

/** A recursion that does not end; on a tape it decides on values. */
function overflowOf(error: unknown): TidemarkError | null {
  if (!(error instanceof TidemarkError) || error.code !== "EndlessRecursion") return null;
  return new TidemarkError(
    "EndlessRecursion",
    "the call stack overflowed on a tape: recursion is infinite or too deep",
    {
      where: error.where,
      help: "check what ends the recursion; for depths beyond some thousands write a loop, or give Node a larger --stack-size",
    },
  );
}

function requireNoTrace(): void {
  const trace = currentTrace();
  if (!trace || trace instanceof TapeTrace) return;
  fail(
    "SideEffect",
    `tape: inside of ${trace.build.name}, which is being traced, tensors have no values to decide on`,
    "call tape outside of compile and grad; inside, take gradients with grad, and loop with whileLoop",
  );
}

interface Settings {
  readonly limitBytes: number;
  readonly compilesRuns: boolean;
}

const settingsOf = ({ memory, compilesRuns }: Engine): Settings => ({
  limitBytes: memory.pool.limitBytes,
  compilesRuns,
});

function applyOptions(engine: KeptEngine, { memory, compileRuns, history = 0 }: TapeOptions): void {
  const { pool } = engine.memory;
  if (engine.running === 0) {
    pool.record(history);
    // nothing is live now: peaks are those of this tape
    pool.trim();
    pool.resetPeak();
  }
  if (memory !== undefined) pool.limitBytes = Math.min(pool.limitBytes, parseBytes(memory));
  if (compileRuns !== undefined) engine.compilesRuns = compileRuns;
}

function restore(engine: Engine, { limitBytes, compilesRuns }: Settings): void {
  engine.memory.pool.limitBytes = limitBytes;
  engine.compilesRuns = compilesRuns;
}

function waitedFor<R>(result: R): R {
  if (!(result instanceof Promise)) return result;
  return fail(
    "InvalidArgument",
    "tape: the function returned a promise",
    "a tape ends when its function returns: await before or after it",
  );
}

/** Tensors of the tape in what its function returned. */
function tensorsOf(trace: TapeTrace, result: unknown): readonly Tensor[] {
  const own = new Set<Tensor>();
  mapped(result, (leaf) => {
    if (trace.owns(leaf)) own.add(leaf);
    return leaf;
  });
  return [...own];
}

/** What the function returned, with tensors of the tape as concrete ones. */
function resultOf<R>(trace: TapeTrace, result: R, engine: KeptEngine): R {
  const tensors = tensorsOf(trace, result);
  const storages = trace.results(tensors, { by: "tape", where: trace.donates ? laterLocation() : () => undefined });
  if (engine.running === 1) engine.residents = storages.filter((storage) => storage instanceof PoolStorage);
  const made = new Map(tensors.map((leaf, i) => [leaf, new Tensor(storages[i] as TensorStorage)]));
  return mapped(result, (leaf) => made.get(leaf) ?? leaf) as R;
}

/** Arrays and plain objects with other tensors in the place of theirs, to any depth; everything else as it is. */
function mapped(value: unknown, visit: (leaf: Tensor) => Tensor, seen = new Map<unknown, unknown>()): unknown {
  if (value instanceof Tensor) return visit(value);
  if (typeof value !== "object" || value === null) return value;
  const known = seen.get(value);
  if (known !== undefined) return known;
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === Object.prototype || prototype === null;
  if (!Array.isArray(value) && !isPlain) return value;
  const made: Record<string, unknown> | unknown[] = Array.isArray(value) ? [] : {};
  seen.set(value, made);
  for (const [key, item] of Object.entries(value)) (made as Record<string, unknown>)[key] = mapped(item, visit, seen);
  return made;
}

function tapeOf(trace: TapeTrace, { memory }: Engine, part: TapePart): Tape {
  const requireRunning = (name: string): void => {
    if (!part.hasEnded) return;
    fail(
      "TraceLeak",
      `tape.${name}: the tape has ended`,
      "use it inside of the function given to tape, and return results",
    );
  };
  return {
    gradient<T extends Tree>(target: Tensor, sources: T, options: GradientOptions = {}): T {
      requireRunning("gradient");
      const cotangent = requireTarget(trace, part, target, options);
      const { leaves, paths, def } = sourcesOf(trace, sources);
      return unflatten(def, trace.gradient(target, { tensors: leaves, paths }, cotangent)) as T;
    },
    watch(sources) {
      requireRunning("watch");
      trace.watch(flatten(sources, "sources").leaves, part.start === 0);
    },
    memory: () => memory.pool.stats(),
    snapshot: () => poolSnapshot(memory.pool),
  };
}
