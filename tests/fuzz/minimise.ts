/**
 * @file The smallest program with a finding: steps are left out, first many at a time, then one by one, as long as a finding of
 * the same kind stays. What is left is printed as the traced graph.
 */
import { plansOf } from "../../src/api/plan.ts";
import { print } from "../../src/ir/print.ts";
import type { AnyFunction } from "../../src/trace/function.ts";
import type { Finding, Kind, Outcome } from "./findings.ts";
import type { Job } from "./jobs.ts";
import type { Child } from "./pool.ts";
import { drawRecipe, fuzzProgram, type Recipe, stepNames } from "./program.ts";

export interface Smallest {
  readonly job: Job;
  readonly finding: Finding;
  readonly text: string;
}

/** Parts of a list, first halves, then quarters, down to single ones. */
function* parts(list: readonly number[]): Generator<readonly number[]> {
  for (let length = Math.ceil(list.length / 2); ; length = Math.ceil(length / 2)) {
    for (let from = list.length - length; from > -length; from -= length) {
      yield list.slice(Math.max(0, from), from + length);
    }
    if (length <= 1) return;
  }
}

const findingOf = ({ findings }: Outcome, kind: Kind): Finding | undefined => findings.find((f) => f.kind === kind);

export async function minimise(child: Child, job: Job, finding: Finding): Promise<Smallest> {
  const count = recipeOf(job).steps.length;
  const without = new Set(job.without ?? []);
  let smallest = finding;
  const steps = Array.from({ length: count }, (_, i) => i);
  for (const part of parts(steps)) {
    const dropped = part.filter((i) => !without.has(i));
    if (dropped.length === 0) continue;
    const left = [...without, ...dropped];
    const found = findingOf(await child.run({ ...job, without: left }), finding.kind);
    if (!found) continue;
    smallest = found;
    for (const i of dropped) without.add(i);
  }
  const reduced = { ...job, without: [...without].sort((a, b) => a - b) };
  return { job: reduced, finding: smallest, text: programText(recipeOf(reduced)) };
}

export function recipeOf({ without, ...job }: Job): Recipe {
  return drawRecipe(job.seed, { ...job, without: new Set(without ?? []) });
}

/** Its steps, and the graph that is traced. */
export function programText(recipe: Recipe): string {
  const { dtype, cast, mode, size } = recipe;
  const program = fuzzProgram(recipe);
  const { source } = plansOf(program.fn as AnyFunction, program.args(0), { cache: false });
  return `${mode} ${dtype}${cast ? ` cast to ${cast}` : ""} ${size}: ${stepNames(recipe).join(", ")}\n${print(source.graph)}`;
}
