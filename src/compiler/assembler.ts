/**
 * @file From a graph to a placed program: the last passes, kernels, plan, addresses. What comes out is data; nothing has
 * been compiled for a machine yet, so `plan` commands and `compile` share everything up to here.
 */
import { at, invariant } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { bytesOf } from "../kernel/dtype.ts";
import { inPlacePairs, type Kernel } from "../kernel/loops.ts";
import type { BodyOverlap, LoweredStep, LowerNode } from "../loops/lower/body.ts";
import type { Lowered } from "../lower/lower.ts";
import { sharedLowering } from "../lower/share.ts";
import { alignRows } from "../passes/align-rows.ts";
import { fuseWithin, leanFusions } from "../passes/fuse.ts";
import type { Pass } from "../passes/pass.ts";
import { runPasses } from "../passes/pipeline.ts";
import { hasBlockingExchanges } from "../plan/exchange-step.ts";
import { planAsPlaced, planUnlimited, planVariant } from "../plan/plan.ts";
import type { Plan } from "../plan/problem.ts";
import type { PlanStep, Program } from "../plan/program.ts";
import { arenaSpace, type TargetDescription } from "../target/description.ts";
import type { LoopSupport } from "./loops.ts";
import type { SourceProgram } from "./request.ts";

/** Of the search for an order for one of many variants, in steps run. */
const VARIANT_WORK = 1e5;

/** What may be done to make one variant of many. */
export interface VariantOptions {
  /** The order of the steps is changed only where the arena is larger than this as it is; default: always. */
  readonly budgetBytes?: number;
  /** Bodies of loops are variants too, on whose orders little is spent. */
  readonly quick?: boolean;
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

/** A graph after fusion with its plan; kernels are there, addresses are not yet bound to them. */
export interface PlannedProgram {
  readonly graph: Graph;
  /** Before its steps were ordered. */
  readonly program: Program;
  readonly plan: Plan;
  readonly lowered: ReadonlyMap<Node, Lowered>;
  /** Loops and branches. */
  readonly controls: ReadonlyMap<Node, LoweredStep>;
}

export interface AssemblerOptions {
  /** Check graphs after every pass. */
  readonly validate?: boolean;
  /** For graphs with loops or branches. */
  readonly loops?: LoopSupport | null;
}

/** Fuses, lowers and plans graphs that are variants of one program; equal kernels are lowered once for all of them. */
export class Assembler {
  readonly lower: (node: Node) => Lowered;
  /** Within the target's limits, and in smaller kernels. */
  readonly fuse: Pass;
  readonly leanFusions: readonly Pass[];
  readonly target: TargetDescription;
  readonly #source: Omit<SourceProgram, "graph">;
  readonly #validate: boolean;
  readonly #loops: LoopSupport | null;
  readonly #pairs = new Map<Kernel, Pairs>();

  /** `source`: the program of which all graphs are variants. */
  constructor(
    target: TargetDescription,
    source: Omit<SourceProgram, "graph">,
    { validate = false, loops = null }: AssemblerOptions = {},
  ) {
    this.lower = sharedLowering(target);
    this.fuse = fuseWithin(target.fusion);
    this.leanFusions = leanFusions(target.fusion);
    this.target = target;
    this.#source = source;
    this.#validate = validate;
    this.#loops = loops;
    this.#unitOf = this.#newUnitOf(undefined);
    this.#quickUnitOf = this.#newUnitOf(VARIANT_WORK);
  }

  /** Plans a variant of the program; `passes` are still to be run on it. */
  make(graph: Graph, passes: readonly Pass[], { budgetBytes = 0, quick = false }: VariantOptions = {}): PlannedProgram {
    const optimised = this.#aligned(runPasses(graph, passes, { verify: this.#validate }));
    const { program, lowered, controls } = this.#program(optimised, quick);
    const plan = budgetBytes > 0 ? planVariant(program, budgetBytes, VARIANT_WORK) : planUnlimited(program);
    const ordered: Graph = { ...optimised, nodes: plan.program.steps.map((step) => step.node) };
    return { graph: ordered, program, plan, lowered, controls };
  }

  /** The same for a graph whose nodes are in the order that was planned, with the places that were found for its buffers. */
  remake(kept: Graph, placement: Pick<Plan, "offsets" | "strategy">): PlannedProgram {
    const graph = this.#aligned(kept);
    const parts = this.#program(graph);
    return { graph, ...parts, plan: planAsPlaced(parts.program, placement) };
  }

  #aligned(graph: Graph): Graph {
    const { rowBytes } = this.target;
    return rowBytes === undefined ? graph : alignRows(graph, rowBytes);
  }

  /** The steps of a graph after fusion. */
  #program(optimised: Graph, quick = false): Omit<PlannedProgram, "graph" | "plan"> {
    const { donated = [], persistent = [] } = this.#source;
    const lowered = new Map<Node, Lowered>();
    const controls = new Map<Node, LoweredStep>();
    const steps = optimised.nodes.map((node) => {
      const alias = aliasStep(node);
      if (alias || node.op.lower.kind !== "control") return alias ?? this.#kernelStep(node, lowered);
      const unit = (quick ? this.#quickUnitOf : this.#unitOf)(node);
      controls.set(node, unit);
      return unit.step;
    });
    const param = (i: number): Value => {
      const value = optimised.params[i];
      invariant(value, () => `${optimised.name} has no parameter ${i}`);
      return value;
    };
    const program: Program = {
      name: optimised.name,
      params: optimised.params,
      donated: new Map([...donated].map(([p, r]) => [param(p), r])),
      results: optimised.results,
      steps,
      persistent: new Set([...persistent].map(param)),
      spaces: this.target.spaces,
    };
    return { program, lowered, controls };
  }

  /** One function for all bodies, which are planned once for it. */
  readonly #unitOf: LowerNode;
  readonly #quickUnitOf: LowerNode;

  /** Loops and branches of a plan whose bodies have collectives, these as `planOf` says. */
  overlapped({ program }: Plan, planOf: BodyOverlap["planOf"]): ReadonlyMap<Node, LoweredStep> {
    const unitOf = this.#newUnitOf(undefined, { blocking: this.#unitOf, planOf });
    const connecting = program.steps.filter(({ bodies }) => bodies?.some(hasBlockingExchanges));
    return new Map(connecting.map(({ node }) => [node, unitOf(node)]));
  }

  #newUnitOf(orderWork: number | undefined, overlap?: BodyOverlap): LowerNode {
    const facts = { orderWork, space: arenaSpace(this.target), ...(overlap && { overlap }) };
    const unitOf: LowerNode = Object.assign((node: Node): LoweredStep => this.#unit(node, unitOf), facts);
    return unitOf;
  }

  /** A node of a body. */
  #unit(node: Node, unitOf: LowerNode): LoweredStep {
    const alias = aliasStep(node);
    if (alias) return { step: alias, statements: () => [] };
    const { lower } = node.op;
    if (lower.kind === "control") {
      const loops = this.#loops;
      invariant(loops, () => `${node.op.name} in a program that was said to have no loops`);
      return loops.lowerControl(node, lower.control(node), unitOf);
    }
    const lowered = new Map<Node, Lowered>();
    const step = this.#kernelStep(node, lowered);
    const { kernel, values } = lowered.get(node) as Lowered;
    return {
      step,
      statements(address, scratch) {
        let next = 0;
        const addresses = values.map((value) => (value ? address(value) : at(scratch, next++)));
        return [{ kind: "kernel", kernel, addresses }];
      },
    };
  }

  #kernelStep(node: Node, lowered: Map<Node, Lowered>): PlanStep {
    const kernel = this.lower(node);
    lowered.set(node, kernel);
    const pairs = this.#pairs.get(kernel.kernel) ?? inPlacePairs(kernel.kernel);
    this.#pairs.set(kernel.kernel, pairs);
    return kernelStep(node, kernel, pairs);
  }
}
