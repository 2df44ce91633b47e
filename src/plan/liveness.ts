/**
 * @file Lifespans: the half-open interval of steps during which each value's content is needed:
 *
 *   - a value lives from the step that writes it to its last reader: [written, last read + 1)
 *   - parameters live from step 0
 *   - results live through the return step
 *   - both ends of a copy live until the step that waits for it, which reads them (program.ts)
 *   - a persistent parameter is needed for the whole run (the next run reads it), unless it was donated: then its
 *     content dies at its last use. Its storage stays, which alias.ts takes care of.
 *
 * Values that are names of the same bytes (alias steps) form one `Storage`, which lives as long as any of them.
 */
import { invariant } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import type { Lifespan } from "./problem.ts";
import { type PlanStep, type Program, returnStepOf } from "./program.ts";
import { type SpaceId, spaceOf } from "./space.ts";

interface Span {
  start: number;
  end: number;
}

/**
 * The rules above, in program order: `begin` for each value, with the step that writes it (null for parameters), and
 * `need` for every end that its lifespan must reach.
 */
function visitSpans(
  program: Program,
  begin: (value: Value, span: Span, step: PlanStep | null) => void,
  need: (value: Value, end: number) => void,
): void {
  // Output-only storage has no content to keep.
  for (const param of program.params) begin(param, { start: 0, end: program.empty?.has(param) ? 0 : 1 }, null);
  program.steps.forEach((step, i) => {
    for (const value of step.reads) need(value, i + 1);
    for (const value of step.writes) begin(value, { start: i, end: i + 1 }, step);
  });
  const whole = returnStepOf(program) + 1;
  for (const value of program.results) need(value, whole);
  for (const param of program.persistent) if (!program.donated.has(param)) need(param, whole);
}

/**
 * Lifespan of every stored value's content.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { liveness } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * for (const result of plan.program.results) console.log(liveness(plan.program).get(result)); // → { start: 1, end: 3 }
 */
export function liveness(program: Program): ReadonlyMap<Value, Lifespan> {
  const spans = new Map<Value, Span>();
  visitSpans(
    program,
    (value, span) => spans.set(value, span),
    (value, end) => {
      const span = spans.get(value);
      if (span) span.end = end;
    },
  );
  return spans;
}

/** Values that are the same bytes by definition: one that is written, and its renamings. */
export interface Storage {
  /** Parameters in order, then in order of the first write. Breaks ties. */
  readonly id: number;
  readonly values: readonly Value[];
  readonly bytes: number;
  /** When its content is needed. */
  readonly lifespan: Lifespan;
  readonly isParam: boolean;
  readonly space: SpaceId;
}

export interface Storages {
  readonly all: readonly Storage[];
  readonly of: (value: Value) => Storage;
}

/** Joins values over alias steps. */
export function storagesOf(program: Program): Storages {
  const all: Storage[] = [];
  const storageOf = new Map<Value, Storage & { readonly values: Value[]; readonly lifespan: Span }>();
  visitSpans(
    program,
    (value, lifespan, step) => {
      const renamed = step?.alias ? storageOf.get(step.alias[0]) : undefined;
      if (renamed) {
        renamed.values.push(value);
        renamed.lifespan.end = Math.max(renamed.lifespan.end, lifespan.end);
        storageOf.set(value, renamed);
        return;
      }
      const bytes = byteLength(value.type);
      const space = spaceOf(program, value);
      const storage = { id: all.length, values: [value], bytes, lifespan, isParam: step === null, space };
      all.push(storage);
      storageOf.set(value, storage);
    },
    (value, end) => {
      const storage = storageOf.get(value);
      if (storage) storage.lifespan.end = end;
    },
  );
  const of = (value: Value): Storage => {
    const storage = storageOf.get(value);
    if (storage) return storage;
    return invariant(false, () => `${program.name}: ${value.name ?? "value"}#${value.id} is not stored`) as never;
  };
  return { all, of };
}
