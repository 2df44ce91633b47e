/**
 * @file The planner's input: a schedule of steps over stored values. A step is one kernel, or a node that only renames
 * storage. The planner knows no target and no kernel: lowering declares here what each step reads, writes and needs as
 * workspace, and which pairs may share storage.
 *
 * Time is counted in steps. Parameters are written before step 0. In the step after the last one, `returnStep`, donated
 * parameters receive their replacements and results are read:
 *
 *     inputs written │ step 0 │ step 1 │ … │ step n-1 │ returnStep = n: final copies, then results are read
 *
 * Queue 0 runs the steps one after the other. A copy to another memory space is two steps: `start` issues it to its
 * queue when all earlier steps are done, `wait` blocks queue 0 until the copy is done. In between it is in flight, in
 * parallel with the steps of queue 0: its source may be read but not overwritten, its destination may be neither read
 * nor overwritten.
 *
 *     step      3        4        5        6
 *     queue 0   start    matmul   relu     wait        reads of h' are after step 6
 *     queue 1        └── h → h' ────────┘
 *
 * A collective may be two steps as well: `start` begins the exchange with other devices, `wait` ends it. What it reads and writes is
 * in flight in between, under the same rules; a `test` between them lets it make progress.
 */
import { invariant } from "../base/invariant.ts";
import type { Node, Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { checkCopies } from "./check-copies.ts";
import { checkExchanges } from "./check-exchanges.ts";
import type { Plan } from "./problem.ts";
import { type SpaceId, type Spaces, spaceOf } from "./space.ts";

/** One step of the schedule: one kernel, or a node that only renames storage. */
export interface PlanStep {
  /** For text and reports. */
  readonly node: Node;
  /** Distinct stored values it reads. */
  readonly reads: readonly Value[];
  readonly writes: readonly Value[];
  /** Bytes of each workspace. */
  readonly scratch: readonly number[];
  /** [read, written] pairs that may share storage. */
  readonly inPlace: readonly (readonly [Value, Value])[];
  /** `[read, written]`: written IS read's storage (reshape); no kernel. */
  readonly alias: readonly [Value, Value] | null;
  /** Programs that the step runs, any number of times: bodies of a loop, branches. Their workspace is in `scratch`. */
  readonly bodies?: readonly Plan[];
  /** The queue that runs it, 0 by default. Only copies and collectives in flight run on others. */
  readonly queue?: number;
  /** It is half of a copy between spaces. */
  readonly copy?: CopyStep;
  /** It is part of a collective in flight. */
  readonly exchange?: ExchangeStep;
}

/** A collective that is in flight between its two steps. */
export interface Flight {
  /** The collective. */
  readonly node: Node;
  readonly reads: readonly Value[];
  readonly writes: readonly Value[];
}

/**
 * `start` reads and writes what the collective does; `wait` reads what it wrote, and what it read unless that may be written over,
 * so that all of it lives to the end of the flight. Nothing else touches what is written before `wait`. `test` has no operands.
 */
export type ExchangeStep =
  | { readonly kind: "start" | "wait"; readonly flight: Flight }
  | { readonly kind: "test"; readonly flight: null };

/**
 * `start` reads `from` and writes `to`, a value of the same type in another space; `wait` reads both, so that both live to
 * the end of the copy, and writes nothing. Nothing else reads `to` before `wait`.
 */
export interface CopyStep {
  readonly kind: "start" | "wait";
  readonly from: Value;
  readonly to: Value;
}

/** A schedule of steps over stored values: the planner's input. */
export interface Program {
  readonly name: string;
  readonly params: readonly Value[];
  /** Parameters whose storage may be overwritten, with the index of the result that replaces them (or -1). */
  readonly donated: ReadonlyMap<Value, number>;
  readonly results: readonly Value[];
  readonly steps: readonly PlanStep[];
  /** Parameters that stay in the arena between runs (donated state, captured constants). */
  readonly persistent: ReadonlySet<Value>;
  /** Output-only persistent parameters: uninitialised storage into which a result is written. */
  readonly empty?: ReadonlySet<Value>;
  /** The memories that values live in. */
  readonly spaces: Spaces;
  /** Values that are not in the first space. */
  readonly spaceOf?: ReadonlyMap<Value, SpaceId>;
}

/**
 * The step after the last one: final copies happen and results are read.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { returnStepOf } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(returnStepOf(plan.program) === plan.program.steps.length); // → true
 */
export function returnStepOf(program: Program): number {
  return program.steps.length;
}

/**
 * The result that must be in a donated parameter's storage after the run, if there is one.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { replacementOf } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(plan.program.params.map((param) => replacementOf(plan.program, param))); // → [undefined, undefined]
 */
export function replacementOf(program: Program, param: Value): Value | undefined {
  const index = program.donated.get(param);
  return index === undefined || index < 0 ? undefined : program.results[index];
}

/** Whether a parameter's storage must exist for the whole run: it persists between runs, or receives a replacement. */
export function needsSlot(program: Program, param: Value): boolean {
  return program.persistent.has(param) || replacementOf(program, param) !== undefined;
}

/**
 * Checks that a program is well formed: single assignment, definitions before uses, sizes of shared storage equal.
 *
 * @throws An internal error with the first rule that is broken: a value is read before it is written, for instance
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { checkProgram } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * checkProgram(plan.program); // throws where it is not well formed
 */
export function checkProgram(program: Program): void {
  const name = program.name;
  const text = (v: Value) => `${v.name ?? "value"}#${v.id}`;
  const params = new Set(program.params);
  invariant(params.size === program.params.length, () => `${name}: a parameter is listed twice`);
  for (const { alignment } of program.spaces)
    invariant(Number.isInteger(alignment) && alignment > 0, () => `${name}: alignment ${alignment}`);
  const defined = new Set(program.params);
  program.steps.forEach((step, i) => {
    for (const v of step.reads)
      invariant(defined.has(v), () => `${name}: step ${i} reads ${text(v)} before it is written`);
    for (const v of step.writes) {
      invariant(!defined.has(v), () => `${name}: step ${i} writes ${text(v)}, which exists already`);
      defined.add(v);
    }
    checkSharing(step, (what) => `${name}: step ${i} (${step.node.op.name}): ${what}`);
  });
  for (const v of program.results) invariant(defined.has(v), () => `${name}: result ${text(v)} is never written`);
  for (const v of program.persistent)
    invariant(params.has(v), () => `${name}: persistent ${text(v)} is not a parameter`);
  for (const [param, index] of program.donated) {
    invariant(params.has(param), () => `${name}: donated ${text(param)} is not a parameter`);
    const result = replacementOf(program, param);
    invariant(
      index === -1 || result,
      () => `${name}: ${text(param)} is donated to result ${index}, which does not exist`,
    );
    invariant(
      !result || byteLength(result.type) === byteLength(param.type),
      () => `${name}: ${text(param)} is replaced by ${text(result ?? param)} of another size`,
    );
    invariant(
      !result || spaceOf(program, result) === spaceOf(program, param),
      () => `${name}: ${text(param)} is replaced by ${text(result ?? param)} of another memory space`,
    );
  }
  checkCopies(program);
  checkExchanges(program);
}

function checkSharing(step: PlanStep, message: (what: string) => string): void {
  const pairs = step.alias ? [...step.inPlace, step.alias] : step.inPlace;
  for (const [read, written] of pairs) {
    invariant(step.reads.includes(read) && step.writes.includes(written), () =>
      message("shares storage of values it does not touch"),
    );
    invariant(byteLength(read.type) === byteLength(written.type), () =>
      message("shares storage of values of different sizes"),
    );
  }
  if (!step.alias) return;
  const bare =
    step.reads.length === 1 && step.writes.length === 1 && step.scratch.length === 0 && step.inPlace.length === 0;
  invariant(bare, () => message("an alias reads one value, writes one value and needs no workspace"));
}
