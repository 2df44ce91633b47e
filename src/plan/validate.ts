/**
 * @file The validator. It shares no code with the planner: it derives lifespans, renamings and permissions from the
 * program, compares all pairs that share bytes, and reports every violated rule. Simple rather than fast: O(buffers²)
 * in the worst case. The last check is a symbolic execution (simulate.ts), which needs no notion of lifespan at all.
 */
import { grouped } from "../base/errors.ts";
import type { Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { alignUp, type Plan } from "./problem.ts";
import type { PlanStep, Program } from "./program.ts";
import type { Report, Rule, Violation } from "./rules.ts";
import { simulate } from "./simulate.ts";
import { checkSpaces } from "./validate-spaces.ts";

/**
 * All violated rules; empty for a valid plan. `program` is the input of the planner, before steps were ordered.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { validate } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(validate(plan.program, plan)); // → []
 */
export function validate(program: Program, plan: Plan): readonly Violation[] {
  const violations: Violation[] = [];
  const report = (rule: Rule, message: string): void => {
    violations.push({ rule, message });
  };
  checkSchedule(program, plan, report);
  if (!checkStorage(plan, report)) return violations; // the other checks would access buffers that do not exist
  checkSpaces(plan, report);
  checkPairs(plan, report);
  checkSharing(plan, report);
  simulate(plan, report);
  plan.program.steps.forEach((step, i) => {
    for (const body of step.bodies ?? []) violations.push(...checkBody(step, i, body));
  });
  return violations;
}

/** The body of a step has its own plan; all its buffers but the persistent ones lie in the step's first workspace. */
function checkBody(step: PlanStep, i: number, body: Plan): readonly Violation[] {
  const where = `${body.program.name} of step ${i}`;
  const violations = validate(body.program, body).map(({ rule, message }) => ({
    rule,
    message: `${where}: ${message}`,
  }));
  const { buffers, spaces } = body.problem;
  const bottom = buffers.filter((b) => b.kind === "persistent" && b.space === 0);
  const outside = bottom.reduce((sum, b) => sum + alignUp(b.bytes, spaces[0].alignment), 0);
  const inside = body.height - outside;
  const workspace = step.scratch[0] ?? 0;
  if (inside <= workspace) return violations;
  const message = `${where} needs ${grouped(inside)} bytes of workspace, the step has ${grouped(workspace)}`;
  return [...violations, { rule: "no-storage", message }];
}

const text = (value: Value): string => `${value.name ?? "value"}#${value.id}`;

/** The plan's program is the given one, perhaps with its steps in another order that defines before it uses. */
function checkSchedule(program: Program, plan: Plan, report: Report): void {
  const planned = plan.program;
  const steps = new Set(planned.steps);
  if (steps.size !== planned.steps.length) report("schedule", "a step runs twice");
  for (const step of program.steps)
    if (!steps.has(step)) report("schedule", `a step that writes ${step.writes.map(text)} is missing`);
  if (planned.steps.length > program.steps.length) report("schedule", "there are steps that the program does not have");
  const same = (a: readonly Value[], b: readonly Value[]) => a.length === b.length && a.every((v, i) => v === b[i]);
  if (!same(program.params, planned.params) || !same(program.results, planned.results)) {
    report("schedule", "parameters or results are not the program's");
  }
  const written = new Set(planned.params);
  planned.steps.forEach((step, i) => {
    for (const v of step.reads)
      if (!written.has(v)) report("read-before-write", `step ${i} reads ${text(v)} before it is written`);
    for (const v of step.writes) written.add(v);
  });
  for (const v of planned.results) if (!written.has(v)) report("result-missing", `result ${text(v)} is never written`);
}

/** Everything has a buffer that is large enough. */
function checkStorage(plan: Plan, report: Report): boolean {
  const { program, problem } = plan;
  let complete = true;
  const need = (id: number | undefined, bytes: number, what: string): void => {
    const buffer = id === undefined ? undefined : problem.buffers[id];
    const offset = id === undefined ? undefined : plan.offsets[id];
    if (!buffer || offset === undefined) {
      report("no-storage", `${what} has no buffer`);
      complete = false;
    } else if (buffer.bytes < bytes) {
      report("no-storage", `${what} needs ${grouped(bytes)} bytes, b${id} has ${grouped(buffer.bytes)}`);
    }
  };
  for (const v of program.params) need(plan.bufferOf.get(v), byteLength(v.type), text(v));
  program.steps.forEach((step, i) => {
    for (const v of [...step.reads, ...step.writes]) need(plan.bufferOf.get(v), byteLength(v.type), text(v));
    step.scratch.forEach((bytes, k) => {
      need(plan.scratch[i]?.[k], bytes, `workspace ${k} of step ${i}`);
    });
  });
  program.results.forEach((v, i) => {
    need(plan.bufferOf.get(v), byteLength(v.type), `result ${text(v)}`);
    need(plan.resultBuffers[i], byteLength(v.type), `result ${i}, ${text(v)}, at the end`);
  });
  for (const { value, from, to } of plan.copies) {
    need(from, byteLength(value.type), `the source of the copy of ${text(value)}`);
    need(to, byteLength(value.type), `the target of the copy of ${text(value)}`);
  }
  return complete;
}

/** No two buffers of one memory space share bytes and a step. */
function checkPairs(plan: Plan, report: Report): void {
  const { buffers, spaces } = plan.problem;
  const from = Float64Array.from(buffers, (b) => plan.offsets[b.id] ?? 0);
  const to = Float64Array.from(buffers, (b, i) => (from[i] ?? 0) + b.bytes);
  const broken: (readonly [number, number])[] = [];
  for (const space of spaces.keys()) {
    // by first byte: a buffer that begins behind the end of another shares no byte with it, nor does any after that one
    const order = Int32Array.from(buffers.keys())
      .filter((i) => buffers[i]?.space === space)
      .sort((i, j) => (from[i] ?? 0) - (from[j] ?? 0) || i - j);
    for (let p = 0; p < order.length; p++) {
      const i = order[p] ?? 0;
      const [a, aTo] = [buffers[i], to[i] ?? 0];
      for (let q = p + 1; q < order.length; q++) {
        const j = order[q] ?? 0;
        if ((from[j] ?? 0) >= aTo) break;
        const b = buffers[j];
        if (!a || !b || a.bytes === 0 || b.bytes === 0) continue;
        if (a.lifespan.start >= b.lifespan.end || b.lifespan.start >= a.lifespan.end) continue;
        broken.push(i < j ? [i, j] : [j, i]);
      }
    }
  }
  for (const [i, j] of broken.sort((x, y) => x[0] - y[0] || x[1] - y[1])) {
    const [a, b] = [buffers[i], buffers[j]];
    if (!a || !b) continue;
    const workspace = plan.scratch.some((ids) => ids.includes(a.id) || ids.includes(b.id));
    const when = Math.max(a.lifespan.start, b.lifespan.start);
    report(
      workspace ? "scratch-overlap" : "overlap",
      `b${a.id}[${from[i]}:${to[i]}] and b${b.id}[${from[j]}:${to[j]}] are both live at step ${when}`,
    );
  }
}

/** When one value is needed, derived from the program alone. */
interface Need {
  /** The step that writes it, -1 for parameters. */
  readonly written: number;
  /** The last step that needs its content; the return step for results and undonated persistent parameters. */
  readonly until: number;
}

function needs({ program, bufferOf }: Plan): Map<Value, Need> {
  const end = program.steps.length;
  const result = new Map<Value, Need>();
  const values: [Value, number][] = program.params.map((v) => [v, -1]);
  program.steps.forEach((step, i) => {
    for (const v of step.writes) values.push([v, i]);
  });
  const lastRead = new Map<Value, number>();
  program.steps.forEach((step, i) => {
    for (const v of step.reads) lastRead.set(v, i);
    // until a copy is waited for, both of its ends are in use
    if (step.copy) for (const v of [step.copy.from, step.copy.to]) lastRead.set(v, i);
    // and until a collective is, but for what it writes over
    const flight = step.exchange?.flight;
    if (!flight) return;
    const over = new Set(flight.writes.map((v) => bufferOf.get(v)));
    for (const v of flight.writes) lastRead.set(v, i);
    for (const v of flight.reads) if (!over.has(bufferOf.get(v))) lastRead.set(v, i);
  });
  const returned = new Set(program.results);
  for (const [v, written] of values) {
    const toTheEnd = returned.has(v) || (program.persistent.has(v) && !program.donated.has(v));
    result.set(v, { written, until: toTheEnd ? end : Math.max(written, lastRead.get(v) ?? written) });
  }
  return result;
}

/**
 * Values of one buffer: the buffer exists while they are needed; they are renamings of each other, live one after the
 * other, or may share storage in one step.
 */
function checkSharing(plan: Plan, report: Report): void {
  const { program } = plan;
  const need = needs(plan);
  const original = new Map<Value, Value>();
  const rootOf = (v: Value): Value => original.get(v) ?? v;
  for (const { alias } of program.steps) {
    if (!alias) continue;
    original.set(alias[1], rootOf(alias[0]));
    if (plan.bufferOf.get(alias[0]) !== plan.bufferOf.get(alias[1])) {
      report("alias", `${text(alias[1])} is ${text(alias[0])} under another name, but in another buffer`);
    }
  }
  const inBuffer = new Map<number, Value[]>();
  for (const v of need.keys()) {
    const id = plan.bufferOf.get(v) ?? -1;
    inBuffer.set(id, [...(inBuffer.get(id) ?? []), v]);
  }
  for (const [id, values] of inBuffer) {
    const lifespan = plan.problem.buffers[id]?.lifespan ?? { start: 0, end: 0 };
    for (const v of values) {
      const { written, until } = need.get(v) ?? { written: 0, until: 0 };
      const slot = program.persistent.has(v) || (program.donated.get(v) ?? -1) >= 0;
      const last = slot ? program.steps.length : until;
      if (lifespan.start > Math.max(written, 0) || lifespan.end <= last) {
        report(
          "lifespan",
          `b${id} lives for [${lifespan.start}, ${lifespan.end}), but ${text(v)} is needed in steps ${Math.max(written, 0)} to ${last}`,
        );
      }
    }
    checkSharedPairs(values, { program, need, rootOf }, report);
  }
  plan.scratch.forEach((ids, step) => {
    for (const id of ids) {
      const span = plan.problem.buffers[id]?.lifespan;
      if (span && (span.start > step || span.end <= step))
        report("lifespan", `workspace b${id} does not live at step ${step}`);
    }
  });
}

/** When the values of a program are needed, and which are names of one another. */
interface Uses {
  readonly program: Program;
  readonly need: ReadonlyMap<Value, Need>;
  readonly rootOf: (v: Value) => Value;
}

/** Any two values of one buffer. */
function checkSharedPairs(values: readonly Value[], { program, need, rootOf }: Uses, report: Report): void {
  for (const a of values) {
    for (const b of values) {
      const [first, second] = [need.get(a), need.get(b)];
      if (!first || !second || a === b || rootOf(a) === rootOf(b) || byteLength(a.type) === 0) continue;
      if (first.written > second.written || (first.written === second.written && a.id > b.id)) continue;
      const protectedParam = program.persistent.has(a) && !program.donated.has(a);
      if (protectedParam)
        report("persistent-overwritten", `${text(b)} is written into the storage of ${text(a)}, which is not donated`);
      else if (first.until > second.written)
        report(
          "in-place",
          `${text(b)} is written over ${text(a)} at step ${second.written}, which is needed until step ${first.until}`,
        );
      else if (first.until === second.written || first.written === second.written) {
        const allowed = program.steps[second.written]?.inPlace.some(([r, w]) => r === a && w === b);
        if (!allowed) report("in-place", `step ${second.written} may not write ${text(b)} over ${text(a)}`);
      }
    }
  }
}
