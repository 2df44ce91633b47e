/**
 * @file The two steps of a copy between memory spaces. A step has a node for its text; nodes of copies are in no graph,
 * and nothing lowers or differentiates their operations.
 */
import type { Node, Phase, Value } from "../ir/graph.ts";
import type { AnyOp, OpDef } from "../ir/op.ts";
import type { PlanStep } from "./program.ts";

/** An operation whose results are its inputs: a step of the planner's own has it for its text. */
export function identityOp(name: string): AnyOp {
  const op: OpDef = {
    name,
    defaults: {},
    infer: (inputs) => inputs,
    derivative: { kind: "none" },
    cost: () => ({ flops: 0 }),
    lower: { kind: "region" },
    alias: null,
    simplify: () => null,
    evaluate: ({ inputs }) => inputs,
    samples: () => [],
  };
  return op;
}

const COPY = identityOp("copy");
export const WAIT = identityOp("wait");

export interface CopyOptions {
  readonly from: Value;
  /** In another space. */
  readonly to: Value;
  /** The queue that copies; each queue does one copy after the other. */
  readonly queue: number;
}

export function nodeOf(op: AnyOp, inputs: readonly Value[], outputs: readonly Value[], phase: Phase): Node {
  return { op, inputs, attrs: {}, outputs, regions: [], phase, where: undefined, replay: 0 };
}

const BARE = { scratch: [], inPlace: [], alias: null } as const;

/** Starts the copy on its queue. */
export function startStep({ from, to, queue }: CopyOptions, phase: Phase): PlanStep {
  const node = nodeOf(COPY, [from], [to], phase);
  return { node, reads: [from], writes: [to], ...BARE, queue, copy: { kind: "start", from, to } };
}

/** Waits until the copy is done. */
export function waitStep({ from, to }: CopyOptions, phase: Phase): PlanStep {
  return {
    node: nodeOf(WAIT, [to], [], phase),
    reads: [from, to],
    writes: [],
    ...BARE,
    copy: { kind: "wait", from, to },
  };
}
