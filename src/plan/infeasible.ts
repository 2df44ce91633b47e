/**
 * @file The error for a plan that does not fit its budget: the numbers, the tightest step, what is live there and why,
 * and what to do. It distinguishes three cases: one step alone needs too much; too much else is live while it runs; or
 * the live bytes fit, but fragmentation does not allow it. Where there are several memory spaces it names the one that
 * is too small.
 */
import { grouped, TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { endsBytes } from "./bound.ts";
import { type LiveBuffer, liveAt, liveName, waitingBytes, whyText } from "./live.ts";
import { type NameOf, nameValues } from "./names.ts";
import { type BufferId, type BufferKind, type Layout, layoutIn, type Plan } from "./problem.ts";
import type { MemorySpace } from "./space.ts";
import { stepText } from "./statement.ts";
import { stripReports, stripText } from "./strips.ts";
import { table } from "./table.ts";

/** Buffers named in the message; the rest is summed up. */
const SHOWN = 8;

/** The plan in the memory space that it does not fit. */
interface ExceededSpace {
  readonly plan: Plan;
  readonly layout: Layout;
  readonly space: MemorySpace;
  readonly live: readonly LiveBuffer[];
}

/** The first space that is too small, otherwise the arena. */
function exceededSpace(plan: Plan): ExceededSpace {
  const { spaces } = plan.problem;
  const over = Math.max(
    0,
    spaces.findIndex(({ capacity }, space) => layoutIn(plan, space).height > capacity),
  );
  const layout = layoutIn(plan, over);
  return { plan, layout, space: at(spaces, over), live: liveAt(plan, layout.bound.step, over) };
}

/** `searched`: the plan is the smallest one found with recomputation. */
export function planInfeasible(plan: Plan, searched = false): TidemarkError {
  const { program, problem } = plan;
  const refused = exceededSpace(plan);
  const { layout, space, live } = refused;
  const { bound, height } = layout;
  const nameOf = nameValues(program);
  const step = program.steps[bound.step];
  const where = step ? `step ${bound.step}, ${stepText(step, nameOf, (v) => plan.bufferOf.has(v))}` : "the return";
  const lines = [
    problem.spaces.length === 1
      ? `${program.name} needs ${grouped(height)} bytes, the budget is ${grouped(space.capacity)}`
      : `${program.name} needs ${grouped(height)} bytes of ${space.name}, which has ${grouped(space.capacity)}`,
    ...(searched ? smallestLines(plan) : []),
    `  tightest at ${where}:`,
    ...liveTable(live, nameOf).map((line) => `    ${line}`),
    `  ${verdict(refused)}`,
  ];
  const what = problem.spaces.length === 1 ? "the budget" : space.name;
  const help = `raise ${what} to ${grouped(height)}${advice(refused, searched)}`;
  return new TidemarkError("PlanInfeasible", lines.join("\n"), { where: step?.node.where, help });
}

function smallestLines(plan: Plan): readonly string[] {
  const other = plan.program.spaces[1];
  if (other) return [`  that is the smallest plan found with values in the ${other.name}`];
  const strips = stripReports(plan);
  if (strips.length === 0) return ["  that is the smallest plan found with recomputation"];
  const lines = strips.map((report) => `    ${stripText(report)}`);
  return ["  that is the smallest plan found with recomputation and strips of rows:", ...lines];
}

/** The error for a plan with a buffer that is larger than its space's largest allocation. */
export function bufferTooLarge(plan: Plan, id: BufferId): TidemarkError {
  const { bytes, values, space } = at(plan.problem.buffers, id);
  const { name, largestAllocation } = at(plan.problem.spaces, space);
  const what = values[0] ? nameValues(plan.program)(values[0]) : "workspace";
  const summary = `${plan.program.name}: b${id} (${what}) has ${grouped(bytes)} bytes, a buffer of ${name} at most ${grouped(largestAllocation)}`;
  return new TidemarkError("PlanInfeasible", summary, { help: "use smaller batches, or split the value into parts" });
}

function liveTable(live: readonly LiveBuffer[], nameOf: NameOf): string[] {
  const shown = live.slice(0, SHOWN).map((b) => [`b${b.buffer}`, liveName(b, nameOf), grouped(b.bytes), whyText(b)]);
  const rest = live.slice(SHOWN);
  const sum = rest.reduce((bytes, b) => bytes + b.bytes, 0);
  if (rest.length > 0) shown.push(["…", `${grouped(rest.length)} more`, grouped(sum), ""]);
  return table(shown, ["left", "left", "right", "left"]);
}

function verdict({ plan, layout, space, live }: ExceededSpace): string {
  const { bound, height } = layout;
  const waiting = waitingBytes(live);
  if (bound.bytes <= space.capacity) {
    return `no more than ${grouped(bound.bytes)} bytes are live at once; ${grouped(height - bound.bytes)} are lost to fragmentation`;
  }
  const ends = layout === plan ? endsBytes(plan.program) : 0;
  if (ends > space.capacity)
    return `arguments, or results and persistent values, take ${grouped(ends)} bytes: no plan can be smaller`;
  if (waiting === 0) return "only this step's operands and persistent storage are live there";
  return `${grouped(waiting)} of ${grouped(bound.bytes)} bytes are held there for later steps or for the caller`;
}

/** What callers give and get is whole. */
const WHOLE: ReadonlySet<BufferKind> = new Set<BufferKind>(["persistent", "input", "result"]);

/** In how many strips of rows the largest value of the step would fit, if it alone were cut. */
function stripAdvice({ plan, layout, space, live }: ExceededSpace): string {
  const { program, bufferOf } = plan;
  const step = program.steps[layout.bound.step];
  const excess = layout.bound.bytes - space.capacity;
  const own = [...(step?.writes ?? []), ...(step?.reads ?? [])];
  const here = live.flatMap(({ buffer, kind, bytes }) => {
    const value = own.find((one) => bufferOf.get(one) === buffer);
    const [rows = 1] = value?.type.shape ?? [];
    const strips = WHOLE.has(kind) || bytes <= excess ? rows + 1 : Math.ceil(bytes / (bytes - excess));
    const equal = Array.from({ length: rows }, (_, i) => i + 1).find((n) => n >= strips && n > 1 && rows % n === 0);
    return value && equal !== undefined ? [{ value, equal, rows, bytes }] : [];
  });
  const [largest] = here.sort((a, b) => b.bytes - a.bytes);
  if (!largest || step?.copy) return "";
  const { value, equal, rows } = largest;
  return `: ${nameValues(program)(value)} in ${grouped(equal)} strips of ${grouped(rows / equal)} rows would fit`;
}

function advice(refused: ExceededSpace, searched: boolean): string {
  const { layout, space, live } = refused;
  if (layout.bound.bytes <= space.capacity) return "";
  if (searched) return `, use smaller batches, or split the large values of this step${stripAdvice(refused)}`;
  return waitingBytes(live) > 0
    ? ", use smaller batches, or recompute values held for later (checkpoint)"
    : ", use smaller batches, or split this step";
}
