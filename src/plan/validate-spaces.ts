/**
 * @file The validator's rules for memory spaces: every buffer is inside its space and aligned as the space requires, no
 * space and no buffer exceeds its limit, and every value is in the space that the program assigns and its readers can
 * reach. Kernels reach the first space; copies reach the spaces of their two values.
 */
import { grouped } from "../base/errors.ts";
import type { Value } from "../ir/graph.ts";
import type { Plan } from "./problem.ts";
import type { Report } from "./rules.ts";

const text = (value: Value): string => `${value.name ?? "value"}#${value.id}`;

export function checkSpaces(plan: Plan, report: Report): void {
  checkLimits(plan, report);
  checkAddresses(plan, report);
  checkReach(plan, report);
}

/** Index 0 is the plan's own height. */
const heightsOf = ({ height, others }: Plan): readonly number[] => [height, ...others.map((other) => other.height)];

function checkLimits(plan: Plan, report: Report): void {
  const heights = heightsOf(plan);
  plan.problem.spaces.forEach(({ name, capacity }, space) => {
    // the program's own limit applies whatever the plan's budget
    const limit = Math.min(capacity, plan.program.spaces[space]?.capacity ?? 0);
    const height = heights[space] ?? Number.NaN;
    if (!(height <= limit))
      report("over-capacity", `${grouped(height)} bytes of ${name} are used, it has ${grouped(limit)}`);
  });
  for (const { id, bytes, space } of plan.problem.buffers) {
    const { name, largestAllocation } = plan.program.spaces[space] ?? { name: `space ${space}`, largestAllocation: 0 };
    if (bytes > largestAllocation)
      report(
        "largest-allocation",
        `b${id} has ${grouped(bytes)} bytes, a buffer of ${name} ${grouped(largestAllocation)}`,
      );
  }
}

function checkAddresses(plan: Plan, report: Report): void {
  const heights = heightsOf(plan);
  for (const { id, bytes, align, space } of plan.problem.buffers) {
    const from = plan.offsets[id] ?? Number.NaN;
    const height = heights[space] ?? Number.NaN;
    if (!(from >= 0 && from + bytes <= height)) {
      const where = space === 0 ? "the arena" : (plan.program.spaces[space]?.name ?? `space ${space}`);
      report("out-of-arena", `b${id}[${from}:${from + bytes}] is outside of ${where} [0:${height}]`);
    }
    if (from % align !== 0 || from % (plan.program.spaces[space]?.alignment ?? 1) !== 0) {
      report("misaligned", `b${id} starts at ${from}, not a multiple of ${align}`);
    }
  }
}

function checkReach(plan: Plan, report: Report): void {
  const { program, problem, bufferOf } = plan;
  if (program.spaces.length === 1 && problem.spaces.length === 1) return;
  const nameOf = (space: number): string => program.spaces[space]?.name ?? `space ${space}`;
  const inBuffer = (id: number | undefined): number => problem.buffers[id ?? -1]?.space ?? -1;
  for (const [value, id] of bufferOf) {
    const [is, should] = [inBuffer(id), program.spaceOf?.get(value) ?? 0];
    if (is !== should) report("wrong-space", `${text(value)} belongs to ${nameOf(should)}, b${id} is in ${nameOf(is)}`);
  }
  program.steps.forEach((step, i) => {
    if (step.copy) return;
    const far = [...step.reads, ...step.writes].filter((v) => inBuffer(bufferOf.get(v)) !== 0);
    for (const v of far)
      report("wrong-space", `step ${i} computes with ${text(v)}, which is in ${nameOf(inBuffer(bufferOf.get(v)))}`);
    for (const id of plan.scratch[i] ?? [])
      if (inBuffer(id) !== 0) report("wrong-space", `workspace b${id} of step ${i} is in ${nameOf(inBuffer(id))}`);
  });
  for (const { value, from, to } of plan.copies)
    if (inBuffer(from) !== inBuffer(to)) report("wrong-space", `the final copy of ${text(value)} leaves its space`);
  program.results.forEach((v, i) => {
    if (inBuffer(plan.resultBuffers[i]) !== inBuffer(bufferOf.get(v)))
      report("wrong-space", `result ${text(v)} is in another space at the end`);
  });
}
