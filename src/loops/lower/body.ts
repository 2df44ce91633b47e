/**
 * @file Plans a region of a loop or branch as a separate program: ordered, aliased and placed once, however often it
 * runs. Values shared with the enclosing program have addresses there: constants, rows of stacks, storage of carries
 * and results. The planner sees them as persistent parameters, so it places them at the bottom and overwrites them only
 * with their replacements. Here that bottom part is removed and each parameter is bound to its real address:
 *
 *     the body's plan    ├ i │ c │ x │ k │ y ┼──── workspace ────┤
 *                          ▼   ▼   ▼   ▼   ▼          ▼
 *     the arena           storage of c, row of x, …   workspace of the loop's step, live while the step runs
 *
 * A carry is donated and replaced by its next value, which is written over it where the body allows it and copied at
 * the end of the iteration otherwise. A row of a stacked result is an output-only parameter replaced by the result, so
 * the result is written directly into the stack.
 */
import { at, invariant } from "../../base/invariant.ts";
import { copy, exchangeStatements, type Int, plus, type Statement } from "../../codegen/script.ts";
import { type Graph, type Node, newValue, type Value } from "../../ir/graph.ts";
import { hasBlockingExchanges } from "../../plan/exchange-step.ts";
import { planUnlimited } from "../../plan/plan.ts";
import { alignUp, type Plan } from "../../plan/problem.ts";
import type { PlanStep, Program } from "../../plan/program.ts";
import type { MemorySpace } from "../../target/space.ts";

/** A node as a plan step, and its code once all its operands have addresses. */
export interface LoweredStep {
  readonly step: PlanStep;
  statements(address: (value: Value) => Int, scratch: readonly Int[]): readonly Statement[];
}

/** Lowers a node to a step and its code. */
export interface LowerNode {
  (node: Node): LoweredStep;
  /** Work limit of the search for a body's order, in steps executed; undefined: the same as for a program. */
  readonly orderWork: number | undefined;
  /** The memory space of the program. */
  readonly space: MemorySpace;
  /** For bodies whose collectives go on while other steps run. */
  readonly overlap?: BodyOverlap;
}

/** Puts the collectives of bodies in flight that were planned with every one done when its step is. */
export interface BodyOverlap {
  /** With which they were planned so. */
  readonly blocking: LowerNode;
  /** Another plan for the program of a body; null: it stays what it is. */
  planOf(program: Program, blocking: Plan): Plan | null;
}

export interface Body {
  readonly plan: Plan;
  readonly region: Graph;
  /** For each result, the parameter whose storage contains it after the run. */
  readonly slots: readonly Value[];
  readonly workspaceBytes: number;
  /** Whether the region reads a parameter. */
  reads(param: Value): boolean;
  /** One run. `slot` gives the address of parameters and of `slots`. */
  statements(slot: (value: Value) => Int, workspace: Int): readonly Statement[];
}

/**
 * Plans a region. `replaced` gives the parameter that each result replaces; a result without one (undefined) gets an
 * output-only parameter.
 */
export function planBody(region: Graph, replaced: readonly (Value | undefined)[], lowerNode: LowerNode): Body {
  const regions = plannedBodies.get(lowerNode) ?? new WeakMap<Graph, CachedBody>();
  plannedBodies.set(lowerNode, regions);
  const cached = regions.get(region);
  const isSame =
    cached?.replaced.length === replaced.length && cached.replaced.every((value, i) => value === replaced[i]);
  if (cached && isSame) return cached.body;
  const { overlap } = lowerNode;
  const body = overlap
    ? overlappedBody(planBody(region, replaced, overlap.blocking), lowerNode, overlap)
    : newBody(region, replaced, lowerNode);
  regions.set(region, { replaced, body });
  return body;
}

interface CachedBody {
  readonly replaced: readonly (Value | undefined)[];
  readonly body: Body;
}

/** Variants of a program share regions, and planning these takes most of the time. */
const plannedBodies = new WeakMap<LowerNode, WeakMap<Graph, CachedBody>>();

const loweredNodes = ({ nodes }: Graph, lowerNode: LowerNode): Lowerings =>
  new Map(nodes.map((node) => [node, lowerNode(node)]));

function newBody(region: Graph, replaced: readonly (Value | undefined)[], lowerNode: LowerNode): Body {
  const slots = region.results.map((result, i) => replaced[i] ?? newValue(result.type, result.name));
  const empty = new Set(slots.filter((_, i) => replaced[i] === undefined));
  const params = [...region.params, ...empty];
  const lowered = loweredNodes(region, lowerNode);
  const program: Program = {
    name: region.name,
    params,
    donated: new Map(slots.map((slot, i) => [slot, i])),
    results: region.results,
    steps: region.nodes.map((node) => loweredIn(lowered, node).step),
    persistent: new Set(params),
    empty,
    spaces: [lowerNode.space],
  };
  return bodyOf({ region, slots, plan: planUnlimited(program, { orderWork: lowerNode.orderWork }) }, lowered);
}

/** A body with its collectives in flight while other steps of an iteration run; all that it starts is waited for in the same one. */
function overlappedBody(body: Body, lowerNode: LowerNode, overlap: BodyOverlap): Body {
  if (!hasBlockingExchanges(body.plan)) return body;
  const lowered = loweredNodes(body.region, lowerNode);
  const { program } = body.plan;
  const steps = program.steps.map(({ node }) => loweredIn(lowered, node).step);
  const plan = overlap.planOf({ ...program, steps }, body.plan);
  return plan ? bodyOf({ ...body, plan }, lowered) : body;
}

/** Addresses and code of a planned body. */
function bodyOf({ region, slots, plan }: Pick<Body, "region" | "slots" | "plan">, lowered: Lowerings): Body {
  // bound parameters are counted by the enclosing program
  const bound = boundBuffers(plan, plan.program.params);
  const [{ alignment }] = plan.program.spaces;
  const floor = [...bound.keys()].reduce((sum, id) => sum + alignUp(at(plan.problem.buffers, id).bytes, alignment), 0);
  const statements = (slot: (value: Value) => Int, workspace: Int): readonly Statement[] => {
    const place = (id: number): Int => {
      const param = bound.get(id);
      // a buffer without bytes is placed at the bottom
      return param ? slot(param) : plus(workspace, Math.max(0, at(plan.offsets, id) - floor));
    };
    const address = (value: Value): Int => place(plan.bufferOf.get(value) ?? -1);
    return [
      ...plan.program.steps.flatMap((step, i) =>
        stepStatements(step, lowered, address, at(plan.scratch, i).map(place)),
      ),
      ...plan.copies.flatMap(({ from, to }) => copy(place(to), place(from), at(plan.problem.buffers, from).bytes)),
    ];
  };
  const read = new Set([...region.nodes.flatMap((node) => node.inputs), ...region.results]);
  const workspaceBytes = Math.max(0, plan.height - floor);
  return { plan, region, slots, workspaceBytes, reads: (param) => read.has(param), statements };
}

type Lowerings = ReadonlyMap<Node, LoweredStep>;

function stepStatements(
  { node, exchange }: PlanStep,
  lowered: Lowerings,
  address: (value: Value) => Int,
  scratch: readonly Int[],
): readonly Statement[] {
  if (!exchange) return loweredIn(lowered, node).statements(address, scratch);
  // waits and tests are in no graph
  const calls = exchange.kind === "start" ? loweredIn(lowered, node).statements(address, scratch) : [];
  return exchangeStatements(exchange, calls);
}

function loweredIn(nodes: Lowerings, node: Node): LoweredStep {
  const step = nodes.get(node);
  invariant(step, () => `${node.op.name} is not in the body`);
  return step;
}

/** The buffers at the bottom, each with its parameter. */
function boundBuffers(plan: Plan, params: readonly Value[]): ReadonlyMap<number, Value> {
  const bound = new Map(params.map((param) => [plan.bufferOf.get(param) ?? -1, param]));
  invariant(bound.size === params.length, () => `${plan.program.name}: two parameters have one slot`);
  return bound;
}
