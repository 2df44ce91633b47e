/**
 * @file Reasons of the values of plans, by the name of the plan: `NAME` for a plan sent to the page, `NAME/STEP.BODY/…`
 * for bodies of its loops and branches. A server computes them one value at a time; a page in a file contains them all,
 * compressed per plan, and decompresses those of a plan when one of its values is selected.
 */
import { explainAll, explainValue } from "../plan/explain.ts";
import type { Plan } from "../plan/problem.ts";
import type { StoryTree } from "./story-tree.ts";

/** Plans by the names used in requests for explanations. */
export type NamedPlans = ReadonlyMap<string, Plan>;

export function storiesOf(plan: Plan): StoryTree {
  const bodies = plan.program.steps.flatMap((step, s) =>
    (step.bodies ?? []).map((body, b) => [`${s}.${b}`, storiesOf(body)] as const),
  );
  return {
    values: [...explainAll(plan).values()].map(({ sentences }) => sentences),
    bodies: Object.fromEntries(bodies),
  };
}

/** Of one value; null if there is no such value. */
export function storyOf(plans: NamedPlans, asks: string, value: number): readonly string[] | null {
  const [name = "", ...inside] = asks.split("/");
  const plan = planInside(plans.get(name), inside);
  const stored = plan && [...plan.bufferOf.keys()][value];
  return plan && stored ? explainValue(plan, stored).sentences : null;
}

function planInside(plan: Plan | undefined, path: readonly string[]): Plan | undefined {
  const [head, ...rest] = path;
  if (head === undefined || !plan) return plan;
  const [step = -1, body = -1] = head.split(".").map(Number);
  return planInside(plan.program.steps[step]?.bodies?.[body], rest);
}
