/**
 * @file A plan as plain data, for files, for the viewer and for other programs. Values and buffers are numbered by
 * their position in the lists; nothing refers to objects of this process. `version` changes when a field changes its
 * meaning; new fields that may be missing do not change it. docs/plan-json.md describes the format, read-json.ts parses
 * it.
 */
import type { Value } from "../ir/graph.ts";
import { typeText } from "../ir/type.ts";
import { exchangesOf } from "./exchanges.ts";
import { explainAll } from "./explain.ts";
import { type NameOf, nameValues } from "./names.ts";
import { addressOf, type BufferKind, layoutIn, type Plan } from "./problem.ts";
import { type CopyStep, type PlanStep, type Program, replacementOf } from "./program.ts";
import { formatStatement } from "./statement.ts";
import { type StripReport, stripReport } from "./strips.ts";

/**
 * The newest version of the format.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { PLAN_JSON_VERSION, planJson } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(planJson(plan).version === PLAN_JSON_VERSION); // → true
 */
export const PLAN_JSON_VERSION = 1;

/** Options of {@link planJson}. */
export interface PlanJsonOptions {
  /** With the sentences of `explainValue` for each value. */
  readonly stories?: boolean | undefined;
}

/** A memory space; null: without limit. */
export interface SpaceJson {
  readonly name: string;
  readonly alignment: number;
  readonly capacityBytes: number | null;
  readonly largestAllocationBytes: number | null;
  readonly hostVisible: boolean;
  readonly heightBytes: number;
  readonly boundBytes: number;
  readonly boundStep: number;
}

/** `value` is the name of the largest value inside, `wholeBytes` what it would take, `stripBytes` what it takes. */
export type StripsJson = Omit<StripReport, "where">;

export interface ExchangeJson {
  readonly kind: "start" | "wait" | "test" | "whole";
  readonly other: number | null;
  readonly over: string;
  readonly bytes: number;
}

/** A plan as data; docs/plan-json.md defines the fields. */
export interface PlanJson {
  readonly version: 1;
  readonly name: string;
  /** Bytes of the arena, the least that any placement needs, the budget (null: none). */
  readonly heightBytes: number;
  readonly boundBytes: number;
  readonly budgetBytes: number | null;
  /** The first step at which `boundBytes` are live. */
  readonly boundStep: number;
  readonly alignment: number;
  readonly strategy: string;
  /** Present if there are several memory spaces. The first is the arena and repeats the figures above. */
  readonly spaces?: readonly SpaceJson[];
  /** `start` and `end` are steps, half-open; step `steps.length` is the return. `values` index into `values`. */
  readonly buffers: readonly {
    readonly kind: BufferKind;
    readonly start: number;
    readonly end: number;
    readonly offset: number;
    readonly bytes: number;
    readonly values: readonly number[];
    /** The memory space that it is in; missing where there is one. */
    readonly space?: number;
  }[];
  /** `over` is the value whose storage it took over in place, or null. */
  readonly values: readonly {
    readonly name: string;
    readonly type: string;
    readonly buffer: number;
    readonly offset: number;
    readonly over: number | null;
    /** This value is a recomputation of an earlier one. */
    readonly again?: boolean;
    /** Address, lifespan and reasons, in sentences. */
    readonly story?: readonly string[];
  }[];
  /** In execution order. `alias` steps run no kernel. `scratch` are buffers. */
  readonly steps: readonly {
    readonly op: string;
    readonly text: string;
    /** For a kernel of several operations, its anchor: `matmul`. */
    readonly kernel?: string;
    readonly phase: string;
    readonly where: string | null;
    readonly reads: readonly number[];
    readonly writes: readonly number[];
    readonly scratch: readonly number[];
    readonly alias: boolean;
    /** The queue that runs it; missing: 0. */
    readonly queue?: number;
    /** For half of a copy between spaces: the values, and the step that is the other half. */
    readonly copy?: {
      readonly kind: "start" | "wait";
      readonly from: number;
      readonly to: number;
      readonly other: number;
    };
    /**
     * For a collective: half of one in flight, or all of it, with the step that is the other half (null: none), the axes that it is
     * over and the bytes that it gives. A `test` lets those in flight make progress.
     */
    readonly exchange?: ExchangeJson | undefined;
    /** For a loop over strips of rows: how many, of how many rows, and the largest value inside, which is never whole. */
    readonly strips?: StripsJson;
    /** For a loop or branch: the plans of its bodies. Their persistent buffers are the step's own values. */
    readonly bodies?: readonly PlanJson[];
  }[];
  /** `replacement` is the index of the result that ends in its storage, or null. */
  readonly params: readonly {
    readonly value: number;
    readonly persistent: boolean;
    readonly donated: boolean;
    readonly replacement: number | null;
  }[];
  /** The value, and the buffer that contains it after the run. */
  readonly results: readonly { readonly value: number; readonly buffer: number }[];
  /** After the last step, in order; `param` is the donated parameter that is replaced, or null. */
  readonly copies: readonly {
    readonly value: number;
    readonly from: number;
    readonly to: number;
    readonly param: number | null;
  }[];
}

/** The anchor of a kernel of several operations; undefined for a single operation, and for loops and branches. */
export function kernelName({ node, bodies }: PlanStep): string | undefined {
  return bodies ? undefined : node.regions[0]?.name;
}

/** Whether a step recomputes one of its values: the step is a replay, or the node in it that produces the value is. */
function isAgain({ node, bodies }: PlanStep, value: Value): boolean {
  if (node.replay > 0 || bodies) return node.replay > 0;
  const result = node.outputs.indexOf(value);
  return node.regions.some(({ nodes, results }) =>
    nodes.some(({ outputs, replay }) => replay > 0 && outputs.some((v) => v === results[result])),
  );
}

function paramsJson(program: Program, indexOf: (value: Value) => number): PlanJson["params"] {
  return program.params.map((param) => ({
    value: indexOf(param),
    persistent: program.persistent.has(param),
    donated: program.donated.has(param),
    replacement: replacementOf(program, param) ? (program.donated.get(param) ?? null) : null,
  }));
}

const finite = (bytes: number): number | null => (Number.isFinite(bytes) ? bytes : null);

function spacesJson(plan: Plan): readonly SpaceJson[] {
  return plan.problem.spaces.map(({ name, alignment, capacity, largestAllocation, hostVisible }, space) => {
    const { height, bound } = layoutIn(plan, space);
    const limits = { capacityBytes: finite(capacity), largestAllocationBytes: finite(largestAllocation), hostVisible };
    return { name, alignment, ...limits, heightBytes: height, boundBytes: bound.bytes, boundStep: bound.step };
  });
}

function copyJson(
  { steps }: Program,
  { kind, from, to }: CopyStep,
  indexOf: (value: Value) => number,
): NonNullable<PlanJson["steps"][number]["copy"]> {
  const other = steps.findIndex(({ copy }) => copy?.to === to && copy.kind !== kind);
  return { kind, from: indexOf(from), to: indexOf(to), other };
}

/** By step: the collectives of a program. */
function exchangesJson(program: Program): ReadonlyMap<number, ExchangeJson> {
  const json = new Map<number, ExchangeJson>();
  for (const { start, wait, over, bytes } of exchangesOf(program)) {
    json.set(start, { kind: wait === null ? "whole" : "start", other: wait, over, bytes });
    if (wait !== null) json.set(wait, { kind: "wait", other: start, over, bytes });
  }
  program.steps.forEach(({ exchange }, i) => {
    if (exchange?.kind === "test") json.set(i, { kind: "test", other: null, over: "", bytes: 0 });
  });
  return json;
}

function stripsJson(step: PlanStep): { readonly strips?: StripsJson } {
  const report = stripReport(step);
  if (!report) return {};
  const { where: _, ...strips } = report;
  return { strips };
}

function stepsJson(
  plan: Plan,
  nameOf: NameOf,
  indexOf: (value: Value) => number,
  options: PlanJsonOptions,
): PlanJson["steps"] {
  const { program } = plan;
  const exchanges = exchangesJson(program);
  return program.steps.map((step, i) => ({
    op: step.node.op.name,
    text: formatStatement(step, nameOf, (v) => plan.bufferOf.has(v)).call,
    ...(kernelName(step) === undefined ? {} : { kernel: kernelName(step) ?? "" }),
    phase: step.node.phase,
    where: step.node.where ?? null,
    reads: step.reads.map(indexOf),
    writes: step.writes.map(indexOf),
    scratch: plan.scratch[i] ?? [],
    alias: step.alias !== null,
    ...(step.queue ? { queue: step.queue } : {}),
    ...(step.copy ? { copy: copyJson(program, step.copy, indexOf) } : {}),
    ...(exchanges.has(i) ? { exchange: exchanges.get(i) } : {}),
    ...stripsJson(step),
    ...(step.bodies ? { bodies: step.bodies.map((body) => planJson(body, options)) } : {}),
  }));
}

/**
 * The plan as plain data, for files and other programs.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { planJson } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(planJson(plan).buffers.length === plan.problem.buffers.length); // → true
 */
export function planJson(plan: Plan, options: PlanJsonOptions = {}): PlanJson {
  const { program, problem } = plan;
  const nameOf = nameValues(program);
  const values = [...plan.bufferOf.keys()];
  const numbers = new Map(values.map((value, i) => [value, i]));
  const indexOf = (value: (typeof values)[number]): number => numbers.get(value) ?? -1;
  const stories = options.stories ? explainAll(plan) : null;
  const again = new Set(program.steps.flatMap((step) => step.writes.filter((value) => isAgain(step, value))));
  return {
    version: PLAN_JSON_VERSION,
    name: program.name,
    heightBytes: plan.height,
    boundBytes: plan.bound.bytes,
    budgetBytes: finite(problem.spaces[0].capacity),
    boundStep: plan.bound.step,
    alignment: problem.spaces[0].alignment,
    strategy: plan.strategy,
    ...(problem.spaces.length > 1 ? { spaces: spacesJson(plan) } : {}),
    buffers: problem.buffers.map(({ id, kind, lifespan, bytes, values: bufferValues, space }) => ({
      kind,
      ...lifespan,
      offset: plan.offsets[id] ?? 0,
      bytes,
      values: bufferValues.map(indexOf),
      ...(problem.spaces.length > 1 ? { space } : {}),
    })),
    values: values.map((value) => {
      const { buffer, from } = addressOf(plan, value);
      const over = plan.inPlace.get(value);
      return {
        name: nameOf(value),
        type: typeText(value.type),
        buffer,
        offset: from,
        over: over ? indexOf(over) : null,
        ...(again.has(value) ? { again: true } : {}),
        ...(stories ? { story: stories.get(value)?.sentences ?? [] } : {}),
      };
    }),
    steps: stepsJson(plan, nameOf, indexOf, options),
    params: paramsJson(program, indexOf),
    results: program.results.map((value, i) => ({ value: indexOf(value), buffer: plan.resultBuffers[i] ?? -1 })),
    copies: plan.copies.map(({ value, from, to, param }) => ({
      value: indexOf(value),
      from,
      to,
      param: param ? indexOf(param) : null,
    })),
  };
}
