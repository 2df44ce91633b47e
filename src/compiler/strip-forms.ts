/**
 * @file The form of a program in which the parts with the largest operands run in strips (docs/decisions/0039-strips.md).
 * Recomputation cannot make a step smaller than its operands: where these are the limit, the value that takes most of them
 * is cut, and the nodes around it become a loop. With what is tightest then it goes on, as long as that helps:
 *
 * ```
 *   operands of steps    ████████████ logits         in 16 strips     ██ loop
 *                        ███ mlp                                      ███ mlp
 * ```
 *
 * The form is a base for the same families of plans as the program itself.
 */
import { at } from "../base/invariant.ts";
import type { Graph, Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { StripGraph, type StripRegion, stripRegion } from "../loops/strips/region.ts";
import { intoStrips } from "../loops/strips/rewrite.ts";
import { type Candidate, UNREACHED } from "../plan/budget/budget-levels.ts";
import { liveBytes } from "../plan/budget/slices.ts";
import type { Plan } from "../plan/problem.ts";
import type { PlanStep } from "../plan/program.ts";
import { auto } from "../plan/recompute/strategies.ts";
import type { PlannedProgram } from "./assembler.ts";
import { candidateOf, type PlanTools } from "./candidate.ts";
import { GraphPlans } from "./graph-plans.ts";
import { sameBitsOn } from "./strip-bits.ts";

/** Bytes of a value below which a loop saves too little. */
const LEAST_BYTES = 2 ** 20;
/** Loops that are made one after the other, at most. */
const ROUNDS = 4;
/** A loop is made only if the tightest step is smaller by this factor afterwards. */
const WORTH = 0.9;
/** Values of the tightest step that are tried, largest first. */
const TRIED = 3;
/** Strips are as narrow as makes the loop this share of the next tightest step, if they can be: a loop stores several values. */
const SHARE = 0.25;
const MOST_STRIPS = 256;

/** Values of so many sizes are tried to cut the batch of a program, with all values that are at most so many times smaller. */
const [SIZES, NARROWER] = [4, 8];
/** Of the smallest plan, steps are cut that hold this share of its arena. */
const TIGHT = 0.95;

/** A step with the bytes of its operands and workspace, but for what persists. */
interface Footprint {
  readonly step: PlanStep;
  readonly bytes: number;
}

function footprints(plan: Plan): readonly Footprint[] {
  const { buffers } = plan.problem;
  return plan.program.steps.map((step, i) => {
    const values = [...step.reads, ...step.writes].flatMap((value) => plan.bufferOf.get(value) ?? []);
    const own = new Set([...values, ...at(plan.scratch, i)]);
    const bytes = [...own].reduce((sum, id) => {
      const { kind, bytes: size } = at(buffers, id);
      return kind === "persistent" ? sum : sum + size;
    }, 0);
    return { step, bytes };
  });
}

const widest = (all: readonly Footprint[]): Footprint | undefined =>
  all.reduce<Footprint | undefined>((a, b) => (a && a.bytes >= b.bytes ? a : b), undefined);

/** A graph in which one more part runs in strips. */
class Cutter {
  readonly #of: StripGraph;
  readonly #all: readonly Footprint[];
  readonly #tools: PlanTools;
  /** Values that cannot be cut. */
  readonly #uncut = new Set<Value>();

  constructor(graph: Graph, all: readonly Footprint[], tools: PlanTools) {
    this.#of = new StripGraph(graph);
    this.#all = all;
    this.#tools = tools;
  }

  /** With the tightest step cut; null where it cannot be. */
  cut(): Graph | null {
    const tightest = widest(this.#all);
    return tightest ? (this.cutAt(tightest.step) ?? this.#cutInside(tightest.step)) : null;
  }

  /** With a part of each body of a loop or branch cut that can be, where the step is one; null where none can be. */
  #cutInside({ writes, bodies = [] }: PlanStep): Graph | null {
    const { graph, producers } = this.#of;
    const node = writes.map((value) => producers.get(value)).find((maker) => maker?.regions.length === bodies.length);
    const regions = node?.regions.map((region, i) => {
      return new Cutter(region, footprints(at(bodies, i)), this.#tools).cut() ?? region;
    });
    if (!node || !regions || regions.every((region, i) => region === node.regions[i])) return null;
    return { ...graph, nodes: graph.nodes.map((one) => (one === node ? { ...one, regions } : one)) };
  }

  /** With a part cut that makes or reads one of the largest values of a step; null where there is none. */
  cutAt({ reads, writes }: PlanStep): Graph | null {
    const isLarge = (value: Value): boolean =>
      this.#of.producers.has(value) && byteLength(value.type) >= LEAST_BYTES && !this.#uncut.has(value);
    const large = [...new Set([...writes, ...reads])]
      .filter(isLarge)
      .sort((x, y) => byteLength(y.type) - byteLength(x.type));
    for (const value of large.slice(0, TRIED)) {
      for (const axis of value.type.shape.keys()) {
        const made = this.#along(value, axis);
        if (made) return made;
      }
      this.#uncut.add(value);
    }
    return null;
  }

  /** In as few strips as make the loop small beside the next tightest step, or in as many as there can be. */
  #along(value: Value, axis: number): Graph | null {
    let best: Graph | null = null;
    const extent = at(value.type.shape, axis);
    for (let strips = 2; strips <= MOST_STRIPS && strips <= extent; strips *= 2) {
      const region = stripRegion(this.#of, { value, axis, strips }, byteLength(value.type) / 2);
      const { assembler } = this.#tools;
      const made = region && intoStrips(this.#of, region, sameBitsOn(assembler.target, assembler.lower));
      // strips of half the rows are no better then
      if (!made || !region) break;
      best = made;
      if ((2 * byteLength(value.type)) / strips <= SHARE * this.#elsewhere(region)) break;
    }
    return best;
  }

  /** Bytes of the tightest step outside of a region. */
  #elsewhere({ nodes }: StripRegion): number {
    const isInside = (value: Value): boolean => {
      const maker = this.#of.producers.get(value);
      return maker !== undefined && nodes.has(maker);
    };
    const others = this.#all.filter(({ step }) => !step.writes.some(isInside) && !step.reads.some(isInside));
    return widest(others)?.bytes ?? 0;
  }
}

/** The program in strips; null where its tightest steps are not made smaller by them. */
export function stripForm(graph: Graph, stored: GraphPlans, tools: PlanTools): GraphPlans | null {
  let form: GraphPlans | null = null;
  let now = graph;
  for (let round = 0, plan = stored.base.result.plan; round < ROUNDS; round++) {
    const cut = new Cutter(now, footprints(plan), tools).cut();
    if (!cut) break;
    const made = tools.assembler.make(cut, [tools.assembler.fuse], { budgetBytes: UNREACHED });
    const [before, after] = [plan, made.plan].map((one) => widest(footprints(one))?.bytes ?? 0);
    if (after === undefined || before === undefined || after > WORTH * before) break;
    form = new GraphPlans(cut, candidateOf(made, auto.name, tools), tools);
    [now, plan] = [cut, made.plan];
  }
  return form;
}

/** The graph with every step cut that holds more than a number of bytes; null where none can be. */
function cutAbove(graph: Graph, plan: Plan, bytes: number, tools: PlanTools): Graph | null {
  const [live, all] = [liveBytes(plan), footprints(plan)];
  let cutter = new Cutter(graph, all, tools);
  let best: Graph | null = null;
  for (const [i, { step }] of all.entries()) {
    const cut = at(live, i) > bytes ? cutter.cutAt(step) : null;
    if (!cut) continue;
    best = cut;
    cutter = new Cutter(cut, all, tools);
  }
  return best;
}

/**
 * A plan with values recomputed, and its tightest steps in strips: a value that is computed a second time for its backward
 * nodes is made and read in one place, as halves of blocks are, and only there its rows can be cut. The plan itself where
 * nothing is gained.
 */
export function cutFurther(
  plans: GraphPlans,
  start: Candidate<PlannedProgram>,
  tools: PlanTools,
): Candidate<PlannedProgram> {
  let [best, graph] = [start, plans.sourceOf(start)];
  for (let round = 0; graph && round < ROUNDS; round++) {
    const { plan, arenaBytes } = { ...best, plan: best.result.plan };
    const cut = cutAbove(graph, plan, TIGHT * arenaBytes, tools);
    if (!cut) break;
    const made = tools.assembler.make(cut, [tools.assembler.fuse], { budgetBytes: UNREACHED });
    if (made.plan.height >= arenaBytes) break;
    [best, graph] = [candidateOf(made, start.strategy, tools), cut];
  }
  return best;
}

/** The largest value of each size among those that are live where most is. */
function heldValues({ program, problem, bound, bufferOf }: Plan): readonly Value[] {
  const live = new Set(bound.live.filter((id) => at(problem.buffers, id).kind !== "persistent"));
  const sizes = new Map<number, Value>();
  for (const value of program.steps.flatMap(({ writes }) => writes)) {
    const bytes = byteLength(value.type);
    const isHeld = live.has(bufferOf.get(value) ?? -1) && bytes >= LEAST_BYTES;
    if (isHeld && !sizes.has(bytes)) sizes.set(bytes, value);
  }
  return [...sizes].sort(([a], [b]) => b - a).map(([, value]) => value);
}

/**
 * Plans with most of the program in one loop, over parts of its batch: what is held from the forward to the backward pass is
 * held of one part at a time, and gradients of weights are carried. Nothing is recomputed, so they are about as fast as
 * storing everything; from two strips on to as many as make the arena smaller. Empty where rows are not independent.
 */
export function batchPlans(graph: Graph, stored: GraphPlans, tools: PlanTools): readonly Candidate<PlannedProgram>[] {
  const { assembler } = tools;
  const of = new StripGraph(graph);
  const hasSameBits = sameBitsOn(assembler.target, assembler.lower);
  const passes = graph.nodes.filter(({ phase }) => phase !== "update").length;
  const cut = (value: Value, axis: number, strips: number): Graph | null => {
    const region = stripRegion(of, { value, axis, strips }, byteLength(value.type) / NARROWER);
    return region && region.nodes.size > passes / 2 ? intoStrips(of, region, hasSameBits) : null;
  };
  for (const value of heldValues(stored.base.result.plan).slice(0, SIZES)) {
    const axis = [...value.type.shape.keys()].find((one) => cut(value, one, 2) !== null);
    const plans: Candidate<PlannedProgram>[] = [];
    for (let strips = 2; axis !== undefined && strips <= MOST_STRIPS; strips *= 2) {
      const made = cut(value, axis, strips);
      if (!made) break;
      const planned = assembler.make(made, [assembler.fuse], { budgetBytes: UNREACHED, quick: true });
      const least = plans.at(-1)?.arenaBytes ?? stored.base.arenaBytes;
      if (planned.plan.height > WORTH * least) break;
      plans.push(candidateOf(planned, auto.name, tools));
    }
    if (plans.length > 0) return plans;
  }
  return [];
}
