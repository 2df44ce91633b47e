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
import { UNREACHED } from "../plan/budget/budget-levels.ts";
import type { Plan } from "../plan/problem.ts";
import type { PlanStep } from "../plan/program.ts";
import { auto } from "../plan/recompute/strategies.ts";
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
/** Strips are as narrow as makes the loop this share of the next tightest step, if they can be. */
const SHARE = 0.5;
const MOST_STRIPS = 256;

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

  constructor(graph: Graph, plan: Plan, tools: PlanTools) {
    this.#of = new StripGraph(graph);
    this.#all = footprints(plan);
    this.#tools = tools;
  }

  /** Null where the tightest step cannot be cut. */
  cut(): Graph | null {
    const tightest = widest(this.#all);
    if (!tightest) return null;
    const values = new Set([...tightest.step.writes, ...tightest.step.reads]);
    const large = [...values]
      .filter((value) => this.#of.producers.has(value) && byteLength(value.type) >= LEAST_BYTES)
      .sort((a, b) => byteLength(b.type) - byteLength(a.type));
    for (const value of large.slice(0, TRIED)) {
      for (const axis of value.type.shape.keys()) {
        const made = this.#along(value, axis);
        if (made) return made;
      }
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
      if (!made || !region) continue;
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
    const cut = new Cutter(now, plan, tools).cut();
    if (!cut) break;
    const made = tools.assembler.make(cut, [tools.assembler.fuse], { budgetBytes: UNREACHED });
    const [before, after] = [plan, made.plan].map((one) => widest(footprints(one))?.bytes ?? 0);
    if (after === undefined || before === undefined || after > WORTH * before) break;
    form = new GraphPlans(cut, candidateOf(made, auto.name, tools), tools);
    [now, plan] = [cut, made.plan];
  }
  return form;
}
