/**
 * @file From a traced graph to a placed program: passes, kernels, plan, addresses. What comes out is data; nothing has
 * been compiled for a machine yet, so `plan` commands and `compile` share everything up to here.
 */
import { invariant } from "../base/invariant.ts";
import type { PlacedCopy, PlacedKernel } from "../codegen/wasm/program.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { bytesOf } from "../kernel/dtype.ts";
import { inPlacePairs, type Kernel } from "../kernel/loops.ts";
import type { Lowered, LowerTraits } from "../lower/lower.ts";
import { sharedLowering } from "../lower/share.ts";
import type { Pass } from "../passes/pass.ts";
import { fusedPipeline, runPasses } from "../passes/pipeline.ts";
import { planProgram } from "../plan/plan.ts";
import type { Plan } from "../plan/problem.ts";
import type { PlanStep, Program } from "../plan/program.ts";

/** Bytes; a cache line. */
export const ALIGNMENT = 64;

export interface AssembleOptions {
  /** Parameter numbers whose storage may be overwritten, with the number of the result that replaces them or -1. */
  readonly donated?: ReadonlyMap<number, number>;
  /** Parameter numbers that stay in the arena between runs. */
  readonly persistent?: ReadonlySet<number>;
  readonly budgetBytes?: number | undefined;
  /** Check the graph after every pass. */
  readonly verify?: boolean;
  /** What happens to the graph first; default: everything, fusion last. */
  readonly passes?: readonly Pass[];
}

/** A program with an address for everything. */
export interface PlacedProgram {
  /** After all passes, in the planned order. */
  readonly graph: Graph;
  readonly plan: Plan;
  readonly kernels: readonly PlacedKernel[];
  /** The node of each kernel. */
  readonly kernelNodes: readonly Node[];
  readonly copies: readonly PlacedCopy[];
  /** Addresses of parameters and, after the run, of results. */
  readonly params: readonly number[];
  readonly results: readonly number[];
  /** Time spent on passes, kernels and the plan. */
  readonly planMs: number;
}

function aliasStep(node: Node): PlanStep | null {
  const [output] = node.outputs;
  const input = node.op.alias === null ? undefined : node.inputs[node.op.alias];
  if (!input || !output) return null;
  return { node, reads: [input], writes: [output], scratch: [], inPlace: [], alias: [input, output] };
}

type Pairs = ReturnType<typeof inPlacePairs>;

function kernelStep(node: Node, { kernel, values }: Lowered, pairs: Pairs): PlanStep {
  const inPlace = pairs.flatMap(([from, to]): (readonly [Value, Value])[] => {
    const [read, written] = [values[from], values[to]];
    return read && written ? [[read, written]] : [];
  });
  const scratch = kernel.operands.filter((o) => o.role === "scratch").map((o) => o.elements * bytesOf(o.dtype));
  const distinct = [...new Set(node.inputs)];
  // The same value under two operands is read in two places: neither may be overwritten on the other's word.
  const repeated = new Set(distinct.filter((v) => values.filter((w) => w === v).length > 1));
  return {
    node,
    reads: distinct,
    writes: node.outputs,
    scratch,
    inPlace: inPlace.filter(([read]) => !repeated.has(read)),
    alias: null,
  };
}

export function assemble(graph: Graph, traits: LowerTraits, options: AssembleOptions = {}): PlacedProgram {
  const started = performance.now();
  const optimised = runPasses(graph, options.passes ?? fusedPipeline, options.verify ? { verify: true } : {});
  const lowered = new Map<Node, Lowered>();
  const lower = sharedLowering(traits);
  const pairs = new Map<Kernel, Pairs>();
  const pairsOf = (kernel: Kernel): Pairs => {
    const found = pairs.get(kernel) ?? inPlacePairs(kernel);
    pairs.set(kernel, found);
    return found;
  };
  const steps = optimised.nodes.map((node) => {
    const alias = aliasStep(node);
    if (alias) return alias;
    const made = lower(node);
    lowered.set(node, made);
    return kernelStep(node, made, pairsOf(made.kernel));
  });
  const param = (i: number): Value => {
    const value = optimised.params[i];
    invariant(value, () => `${graph.name} has no parameter ${i}`);
    return value;
  };
  const program: Program = {
    name: graph.name,
    params: optimised.params,
    donated: new Map([...(options.donated ?? [])].map(([p, r]) => [param(p), r])),
    results: optimised.results,
    steps,
    persistent: new Set([...(options.persistent ?? [])].map(param)),
    alignment: ALIGNMENT,
  };
  const plan = planProgram(program, { budgetBytes: options.budgetBytes });
  const ordered = { ...optimised, nodes: plan.program.steps.map((s) => s.node) };
  return { ...place(plan, lowered), graph: ordered, plan, planMs: performance.now() - started };
}

function place(plan: Plan, lowered: ReadonlyMap<Node, Lowered>): Omit<PlacedProgram, "graph" | "plan" | "planMs"> {
  const bufferAddress = (id: number): number => plan.offsets[id] ?? 0;
  const address = (value: Value): number => {
    const id = plan.bufferOf.get(value);
    invariant(id !== undefined, () => `${value.name ?? value.id} has no place`);
    return bufferAddress(id);
  };
  const kernels = plan.program.steps.flatMap((step, i): PlacedKernel[] => {
    const made = lowered.get(step.node);
    if (!made) return [];
    const scratch = [...(plan.scratch[i] ?? [])];
    return [
      {
        kernel: made.kernel,
        addresses: made.values.map((v) => (v ? address(v) : bufferAddress(scratch.shift() ?? -1))),
      },
    ];
  });
  const copies = plan.copies.map(
    (c): PlacedCopy => ({
      from: bufferAddress(c.from),
      to: bufferAddress(c.to),
      bytes: plan.problem.buffers[c.from]?.bytes ?? 0,
    }),
  );
  const kernelNodes = plan.program.steps.flatMap((step) => (lowered.has(step.node) ? [step.node] : []));
  return {
    kernels,
    kernelNodes,
    copies,
    params: plan.program.params.map(address),
    results: plan.resultBuffers.map(bufferAddress),
  };
}
