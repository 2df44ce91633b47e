/**
 * @file What nodes take on a target: lowered as for running, and asked of the target's description. Equal nodes are lowered
 * once.
 */
import type { Graph, Node } from "../ir/graph.ts";
import type { Kernel } from "../kernel/loops.ts";
import type { Lowered } from "../lower/lower.ts";
import { sharedLowering } from "../lower/share.ts";
import { graphCost } from "../ops/control.ts";
import { controlRuns, type NodeCosts } from "../plan/cost/model.ts";
import type { TargetDescription } from "../target/description.ts";
import { addWork, type CostModel, NO_WORK, scaleWork, type Work } from "../target/work.ts";

const hasRegions = ({ op }: Node): boolean => op.lower.kind === "region" || op.lower.kind === "control";

/** Whether a node becomes one kernel: a plain operation, or a region of such with at most one that is not a map. */
function isKernel(node: Node): boolean {
  if (!hasRegions(node)) return true;
  const [region, ...others] = node.regions;
  if (node.op.lower.kind === "control" || !region || others.length > 0) return false;
  const anchors = region.nodes.filter((inner) => inner.op.lower.kind !== "map");
  return anchors.length <= 1 && !anchors.some(hasRegions);
}

/** What part of a description prices kernels. */
export type PricedTarget = Pick<TargetDescription, "key" | "work" | "workspace" | "shapeLoops" | "arithmetic">;

export interface TargetCostsOptions {
  /** Of the machine. */
  readonly rates: CostModel;
  /** Lowers nodes; default: a lowering of its own. */
  readonly lower?: ((node: Node) => Lowered) | undefined;
  /** Whether nothing else happens during a copy between memory spaces. */
  readonly copiesBlock?: boolean | undefined;
}

/** Targets without a key are told apart by numbers. */
const numbers = new WeakMap<PricedTarget, number>();
let numbered = 0;

function numberOf(target: PricedTarget): number {
  const number = numbers.get(target) ?? numbered++;
  numbers.set(target, number);
  return number;
}

export class TargetCosts implements NodeCosts {
  readonly rates: CostModel;
  readonly key: string;
  readonly #target: PricedTarget;
  readonly #lower: (node: Node) => Lowered;
  readonly #kernels = new WeakMap<Node, Kernel>();

  readonly copiesBlock: boolean;

  constructor(
    target: PricedTarget,
    { rates, lower = sharedLowering(target), copiesBlock = false }: TargetCostsOptions,
  ) {
    this.rates = rates;
    this.copiesBlock = copiesBlock;
    this.key = `${target.key ?? numberOf(target)} ${JSON.stringify(rates)}`;
    this.#target = target;
    this.#lower = lower;
  }

  workOf(node: Node, inPlace = false): Work {
    if (node.op.alias !== null) return NO_WORK;
    const kernel = this.kernelOf(node);
    return kernel ? this.#target.work(kernel, inPlace) : this.#regionWork(node);
  }

  /** The kernel that a node becomes; null where it becomes several, or loops and branches around them. */
  kernelOf(node: Node): Kernel | null {
    if (!isKernel(node)) return null;
    const kernel = this.#kernels.get(node) ?? this.#lower(node).kernel;
    this.#kernels.set(node, kernel);
    return kernel;
  }

  /** Of all nodes of a graph, each on its own. */
  workOfGraph(graph: Graph): Work {
    return graph.nodes.reduce((sum, node) => addWork(sum, this.workOf(node)), NO_WORK);
  }

  /** Calls, loops and branches: how often regions run is said, or shows in the cost compared with running each once. */
  #regionWork(node: Node): Work {
    const { op, inputs, outputs, attrs, regions } = node;
    const works = regions.map((region) => this.workOfGraph(region));
    const control = controlRuns(node);
    if (control) {
      const moved = { ...NO_WORK, bytes: 2 * control.copied };
      return works.reduce((sum, work, n) => addWork(sum, scaleWork(work, control.runs[n] ?? 0)), moved);
    }
    const once = works.reduce(addWork, NO_WORK);
    const inside = regions.reduce((sum, region) => sum + graphCost(region).flops, 0);
    const [from, to] = [inputs.map((value) => value.type), outputs.map((value) => value.type)];
    const { flops } = op.cost(from, to, attrs, regions);
    return inside > 0 && flops > 0 ? scaleWork(once, flops / inside) : once;
  }
}
