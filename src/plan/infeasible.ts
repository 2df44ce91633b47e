/**
 * @file The refusal of a plan that does not fit its budget: the numbers, the tightest step, what is live there and why,
 * what could be done. Tells apart the three cases: one step alone needs too much, too much waits while it runs, or all
 * would fit but was not packed tightly enough.
 */
import { grouped, TidemarkError } from "../base/errors.ts";
import { endsBytes } from "./bound.ts";
import { type LiveBuffer, liveAt, liveName, waitingBytes, whyText } from "./live.ts";
import { type NameOf, nameValues } from "./names.ts";
import type { Plan } from "./problem.ts";
import { stepText } from "./statement.ts";
import { table } from "./table.ts";

/** Buffers named in the message; the rest is summed up. */
const SHOWN = 8;

/** `searched`: the plan is the smallest that was found, with whatever helps computed again. */
export function planInfeasible(plan: Plan, searched = false): TidemarkError {
  const { program, bound, height, problem } = plan;
  const nameOf = nameValues(program);
  const live = liveAt(plan, bound.step);
  const step = program.steps[bound.step];
  const where = step ? `step ${bound.step}, ${stepText(step, nameOf, (v) => plan.bufferOf.has(v))}` : "the return";
  const lines = [
    `${program.name} needs ${grouped(height)} bytes, the budget is ${grouped(problem.capacity)}`,
    ...(searched ? ["  that is the smallest plan found, with whatever helps computed again"] : []),
    `  tightest at ${where}:`,
    ...liveTable(live, nameOf).map((line) => `    ${line}`),
    `  ${verdict(plan, live)}`,
  ];
  const help = `raise the budget to ${grouped(height)}${advice(plan, live, searched)}`;
  return new TidemarkError("PlanInfeasible", lines.join("\n"), { where: step?.node.where, help });
}

function liveTable(live: readonly LiveBuffer[], nameOf: NameOf): string[] {
  const shown = live.slice(0, SHOWN).map((b) => [`b${b.buffer}`, liveName(b, nameOf), grouped(b.bytes), whyText(b)]);
  const rest = live.slice(SHOWN);
  const sum = rest.reduce((bytes, b) => bytes + b.bytes, 0);
  if (rest.length > 0) shown.push(["…", `${grouped(rest.length)} more`, grouped(sum), ""]);
  return table(shown, ["left", "left", "right", "left"]);
}

function verdict(plan: Plan, live: readonly LiveBuffer[]): string {
  const { bound, height, problem } = plan;
  const waiting = waitingBytes(live);
  if (bound.bytes <= problem.capacity) {
    return `no more than ${grouped(bound.bytes)} bytes are live at once; ${grouped(height - bound.bytes)} are lost between buffers`;
  }
  const ends = endsBytes(plan.program);
  if (ends > problem.capacity)
    return `arguments, or results and what persists, take ${grouped(ends)} bytes: no plan can be smaller`;
  if (waiting === 0) return "only what this step touches and persistent storage are live there";
  return `${grouped(waiting)} of ${grouped(bound.bytes)} bytes wait there for later steps or for the caller`;
}

function advice(plan: Plan, live: readonly LiveBuffer[], searched: boolean): string {
  if (plan.bound.bytes <= plan.problem.capacity) return "";
  if (searched) return ", use smaller batches, or split what is large at this step into parts";
  return waitingBytes(live) > 0
    ? ", use smaller batches, or recompute what waits (checkpoint)"
    : ", use smaller batches, or split this step";
}
