/**
 * @file A plan as text: the program with addresses. Each statement ends in `@ buffer[from:to]`, and in `over x` when it
 * is written into the storage of x. Workspace follows as `scratch`. Comments mark where the phase changes.
 *
 *     func train(
 *       w: f32[64,16] @ b0[0:4096] persistent, becomes w_1
 *       x: f32[32,64] @ b1[4096:12288]
 *     ) {
 *       y:   f32[32,16] = matmul(x, w)    @ b2[12288:14336] scratch b3[14336:16384]
 *       // update
 *       w_1: f32[64,16] = sub(w, y)       @ b0[0:4096] over w
 *       return w_1
 *     }
 *
 * With several memory spaces, the first line has the figures of each, and values outside the first one name their
 * space. A copy between spaces is two lines:
 *
 *       h_1: f32[32,16] = copy(h)         @ host:b4[0:2048] queue 1
 *       …
 *       wait(h_1)
 *
 * So is a collective in flight; between its lines there may be tests, which let it make progress:
 *
 *       d_w: f32[64,16] = all_reduce(v7) {…}  @ b1[4096:8192] over v7 queue 1
 *       test()
 *       wait(d_w)
 *
 * Canonical: equal plans print equally.
 */
import { grouped } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import type { Phase, Value } from "../ir/graph.ts";
import { typeText } from "../ir/type.ts";
import { type NameOf, nameValues } from "./names.ts";
import { type BufferId, layoutIn, type Plan, rangeOf } from "./problem.ts";
import { type PlanStep, replacementOf } from "./program.ts";
import { formatStatement, type StatementFormat } from "./statement.ts";

/** Columns are aligned up to these widths; longer cells shift the rest to the right. */
const MAX_NAME = 36;
const MAX_CALL = 56;
const MAX_TYPE = 24;

/**
 * The whole program with addresses.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { printPlan } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(printPlan(plan).split("\n").slice(0, 2)); // → [// 6 buffers, 24,704 bytes, bound 24,704, func fn(]
 */
export function printPlan(plan: Plan, format: StatementFormat = formatStatement): string {
  const { program } = plan;
  const nameOf = nameValues(program);
  const lines = [
    `// ${grouped(plan.problem.buffers.length)} buffers, ${spacesText(plan)}`,
    ...head(plan, nameOf),
    ...body(plan, nameOf, format),
    ...plan.copies.map((copy) => {
      const goal = copy.param ? ` over ${nameOf(copy.param)}` : "";
      return `  copy ${nameOf(copy.value)} from ${placeText(plan, copy.from)} to ${placeText(plan, copy.to)}${goal}`;
    }),
    `  return ${program.results.map((v, i) => nameOf(v) + elsewhere(plan, v, i)).join(", ")}`.trimEnd(),
    "}",
  ];
  return `${lines.join("\n")}\n`;
}

function spacesText(plan: Plan): string {
  const { spaces } = plan.problem;
  const texts = spaces.map(({ name }, space) => {
    const { height, bound } = layoutIn(plan, space);
    return `${spaces.length > 1 ? `${name} ` : ""}${grouped(height)} bytes, bound ${grouped(bound.bytes)}`;
  });
  return texts.join("; ");
}

/** `b3[0:16384]`, or `host:b3[0:16384]` outside the first space. */
export function placeText(plan: Plan, id: BufferId): string {
  const { from, to } = rangeOf(plan, id);
  const space = plan.problem.buffers[id]?.space ?? 0;
  return `${space === 0 ? "" : `${at(plan.problem.spaces, space).name}:`}b${id}[${from}:${to}]`;
}

function head(plan: Plan, nameOf: NameOf): string[] {
  const { name, params } = plan.program;
  if (params.length === 0) return [`func ${name}() {`];
  const rows = params.map((param) => [`${nameOf(param)}:`, typeText(param.type), paramPlace(plan, param, nameOf)]);
  return [`func ${name}(`, ...columns(rows, [MAX_NAME, MAX_TYPE]), ") {"];
}

function paramPlace(plan: Plan, param: Value, nameOf: NameOf): string {
  const { persistent, donated } = plan.program;
  const result = replacementOf(plan.program, param);
  const notes = [
    ...(persistent.has(param) ? ["persistent"] : []),
    ...(result ? [`becomes ${nameOf(result)}`] : []),
    ...(donated.has(param) && !result ? ["donated"] : []),
  ];
  return `@ ${placeText(plan, plan.bufferOf.get(param) ?? -1)} ${notes.join(", ")}`.trimEnd();
}

function body(plan: Plan, nameOf: NameOf, format: StatementFormat): string[] {
  const { program } = plan;
  const rows = program.steps.map((step, i) => {
    const { names, types, call } = format(step, nameOf, (v) => plan.bufferOf.has(v));
    if (step.copy?.kind === "wait" || (step.exchange && step.exchange.kind !== "start")) return [call];
    const queue = step.queue ? ` queue ${step.queue}` : "";
    return [`${names}:`, types, `= ${call}`, `${places(plan, step, nameOf)}${scratchText(plan, i)}${queue}`.trim()];
  });
  const texts = columns(rows, [MAX_NAME, MAX_TYPE, MAX_CALL]);
  const lines: string[] = [];
  let phase: Phase = "forward";
  program.steps.forEach((step, i) => {
    if (step.node.phase !== phase) lines.push(`  // ${step.node.phase}`);
    phase = step.node.phase;
    lines.push(at(texts, i), ...bodyLines(step, format));
  });
  return lines;
}

/** Bodies of a loop or branch, below their step; their persistent buffers are the step's own values. */
function bodyLines({ bodies = [] }: PlanStep, format: StatementFormat): readonly string[] {
  if (bodies.length === 0) return [];
  const inside = bodies.flatMap((body) => printPlan(body, format).trimEnd().split("\n"));
  return ["  {", ...inside.map((line) => `    ${line}`), "  }"];
}

function places(plan: Plan, step: PlanStep, nameOf: NameOf): string {
  const texts = step.writes.map((value) => {
    const over = overwritten(plan, step, value);
    const id = plan.bufferOf.get(value) ?? -1;
    return `${placeText(plan, id)}${over ? ` over ${nameOf(over)}` : ""}`;
  });
  return texts.length > 0 ? `@ ${texts.join(", ")}` : "";
}

function scratchText(plan: Plan, step: number): string {
  const ids = plan.scratch[step] ?? [];
  return ids.length > 0 ? ` scratch ${ids.map((id) => placeText(plan, id)).join(", ")}` : "";
}

/** The value whose storage is taken over: in place, by renaming, or as the replacement of a donated parameter. */
function overwritten(plan: Plan, step: PlanStep, value: Value): Value | undefined {
  const read = plan.inPlace.get(value) ?? step.alias?.[0];
  if (read) return read;
  const { program, bufferOf, problem } = plan;
  const buffer = problem.buffers[bufferOf.get(value) ?? -1];
  return buffer?.values.find((v) => program.donated.has(v) && replacementOf(program, v) === value);
}

/** The address of a result that was copied because its own storage is overwritten. */
function elsewhere(plan: Plan, result: Value, index: number): string {
  const id = plan.resultBuffers[index] ?? -1;
  return id === plan.bufferOf.get(result) ? "" : ` @ ${placeText(plan, id)}`;
}

/** Rows of cells, all but the last padded to their column's width, up to a limit. */
function columns(rows: readonly (readonly string[])[], limits: readonly number[]): string[] {
  const widths = limits.map((limit, c) =>
    Math.min(
      limit,
      // a row of one cell takes the whole line
      rows.reduce((w, row) => Math.max(w, row.length > 1 ? (row[c]?.length ?? 0) : 0), 0),
    ),
  );
  return rows.map((row) => `  ${row.map((cell, c) => cell.padEnd(widths[c] ?? 0)).join(" ")}`.trimEnd());
}
