/**
 * @file Answers about one value or buffer: its address, the reason for its lifespan, why it does or does not reuse an
 * operand's storage, and which buffers use the same bytes before and after it. Reasons are derived from the finished
 * plan; none is recorded during planning.
 */
import { grouped, TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import { typeText } from "../ir/type.ts";
import { type CopySpan, type PlanFacts, planFacts } from "./explain-facts.ts";
import { noSlotReason, notInPlaceReason, stepName } from "./explain-reasons.ts";
import type { NameOf } from "./names.ts";
import { placeText } from "./print.ts";
import { addressOf, type BufferId, type Lifespan, type Plan, rangeOf, type Step } from "./problem.ts";
import { replacementOf } from "./program.ts";
import { spaceOf } from "./space.ts";
import { listed } from "./table.ts";

/** Why a value is where it is. */
export interface Explanation {
  readonly value: Value;
  readonly name: string;
  readonly buffer: BufferId;
  readonly from: number;
  readonly to: number;
  /** When the content is needed. */
  readonly lifespan: Lifespan;
  /** When the buffer exists. */
  readonly bufferLifespan: Lifespan;
  readonly readers: readonly Step[];
  /** Sentences: address, lifespan and reason, in place or why not, buffers in the same bytes. */
  readonly sentences: readonly string[];
}

/**
 * Explains a value, given by its name in the plan's text, by its path in the arguments, or itself.
 *
 * @throws InvalidArgument for a name that the plan does not have
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { explainValue } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(explainValue(plan, "d_w").sentences.length > 0); // → true
 */
export function explainValue(plan: Plan, which: string | Value): Explanation {
  const facts = planFacts(plan);
  const { nameOf } = facts;
  const value = typeof which === "string" ? findValue(plan, which, nameOf) : which;
  if (!plan.bufferOf.has(value)) throw unknownValue(plan, nameOf(value), nameOf);
  return explained(facts, value);
}

/**
 * What `explainValue` says about each stored value.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { explainAll } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(explainAll(plan).size > 3); // → true
 */
export function explainAll(plan: Plan): ReadonlyMap<Value, Explanation> {
  const facts = planFacts(plan);
  return new Map([...plan.bufferOf.keys()].map((value) => [value, explained(facts, value)]));
}

function explained(facts: PlanFacts, value: Value): Explanation {
  const { plan, nameOf } = facts;
  const { buffer, from, to } = addressOf(plan, value);
  const lifespan = facts.lifespans.get(value) ?? { start: 0, end: 0 };
  const readers = facts.readers(value);
  const bufferLifespan = at(plan.problem.buffers, buffer).lifespan;
  const fates = { value, name: nameOf(value), buffer, from, to, lifespan, bufferLifespan, readers };
  const sentences = [
    `${nameOf(value)}: ${typeText(value.type)} is at ${placeText(plan, buffer)}, ${grouped(to - from)} bytes`,
    ...lifetimeSentences(facts, fates),
    ...copySentences(facts, value),
    ...originSentences(facts, value),
    ...sharingSentences(facts, buffer, value),
  ];
  return { ...fates, sentences };
}

/**
 * What `explainValue` says, as text; `b12` asks for a buffer.
 *
 * @throws InvalidArgument for a name that the plan does not have
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { explainText } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(explainText(plan, "d_w").split("\n").length > 1); // → true
 */
export function explainText(plan: Plan, which: string | Value): string {
  const facts = planFacts(plan);
  const { nameOf } = facts;
  const id = typeof which === "string" ? /^b(\d+)$/.exec(which)?.[1] : undefined;
  const named = [...plan.bufferOf.keys()].some((value) => nameOf(value) === which);
  const buffer = id === undefined || named ? undefined : plan.problem.buffers[Number(id)];
  const sentences = buffer ? bufferSentences(facts, buffer.id) : explainValue(plan, which).sentences;
  return `${sentences.map((sentence, i) => (i === 0 ? sentence : `  ${sentence}`)).join("\n")}\n`;
}

/** By name, or by path: `state.params.w`, in which every character but letters and digits becomes `_`. */
function findValue(plan: Plan, name: string, nameOf: NameOf): Value {
  for (const value of plan.bufferOf.keys()) if (nameOf(value) === name) return value;
  const path = name.replaceAll(/\W+/g, "_").replace(/_$/, "");
  const { params } = plan.program;
  const match = params.find((p) => p.name === path) ?? params.find((p) => p.name?.endsWith(`_${path}`));
  if (match) return match;
  throw unknownValue(plan, name, nameOf);
}

function unknownValue(plan: Plan, name: string, nameOf: NameOf): TidemarkError {
  const names = [...plan.bufferOf.keys()].map(nameOf);
  const close = names.filter((n) => n.includes(name) || name.includes(n));
  return new TidemarkError("InvalidArgument", `explain: ${plan.program.name} stores no value named ${name}`, {
    help: `it stores ${listed(close.length > 0 ? close : names, 12)}`,
  });
}

function bufferSentences(facts: PlanFacts, id: BufferId): readonly string[] {
  const { plan, nameOf, writers } = facts;
  const { kind, bytes, lifespan, values, space } = at(plan.problem.buffers, id);
  const where = space === 0 ? "" : ` of ${at(plan.problem.spaces, space).name}`;
  const { from, to } = rangeOf(plan, id);
  const step = plan.scratch.findIndex((ids) => ids.includes(id));
  const use = step < 0 ? kind : `workspace of ${stepName(facts, step)}`;
  return [
    `b${id} is at [${from}:${to}]${where}, ${grouped(bytes)} bytes, for steps ${spanText(lifespan)}: ${use}`,
    ...values.map((value) => {
      const writer = writers.get(value);
      const origin = writer === undefined ? "is there from step 0" : `is written at ${stepName(facts, writer)}`;
      return `${nameOf(value)}: ${typeText(value.type)} ${origin}`;
    }),
    ...sharingSentences(facts, id, null),
  ];
}

function lifetimeSentences(facts: PlanFacts, fate: Omit<Explanation, "sentences">): string[] {
  const { plan, nameOf, writers } = facts;
  const { program } = plan;
  const { value, lifespan, bufferLifespan, readers } = fate;
  const text = (step: Step) => stepName(facts, step);
  const isParam = !writers.has(value);
  const born = isParam ? "it is a parameter, there from step 0" : `it is written at ${text(lifespan.start)}`;
  const last = readers[readers.length - 1];
  let death =
    last === undefined
      ? "nobody reads it"
      : `its ${readers.length > 1 ? `last of ${readers.length} readers` : "only reader"} is ${text(last)}`;
  if (facts.results.has(value)) death = "it is a result, so it lives to the end";
  else if (program.persistent.has(value) && !program.donated.has(value))
    death = "it is persistent and not donated, so it is never overwritten";
  const sentences = [born, death];
  const wait = isParam ? null : longestWait(lifespan.start, readers);
  if (wait) sentences.push(`from step ${wait.from} on it waits ${grouped(wait.steps)} steps for ${text(wait.reader)}`);
  if (bufferLifespan.start !== lifespan.start || bufferLifespan.end !== lifespan.end) {
    sentences.push(`its content lives for steps ${spanText(lifespan)}, its buffer for ${spanText(bufferLifespan)}`);
  }
  const result = replacementOf(program, value);
  const copy = plan.copies.find((c) => c.param === value);
  if (result && copy)
    sentences.push(`${nameOf(result)} replaces it by a final copy: ${noSlotReason(facts, value, result)}`);
  else if (result) sentences.push(`${nameOf(result)} replaces it in the same storage`);
  return sentences;
}

/** The copies between memory spaces that write and read a value, and when they are in flight. */
function copySentences(facts: PlanFacts, value: Value): string[] {
  const { plan, nameOf } = facts;
  const spaceName = (v: Value): string => at(plan.problem.spaces, spaceOf(plan.program, v)).name;
  const flight = ({ start, wait }: CopySpan) => `from step ${start} to step ${wait}, on queue ${queueOf(plan, start)}`;
  const origin = facts.copyTo(value);
  return [
    ...(origin ? [`it is a copy of ${nameOf(origin.from)} in ${spaceName(origin.from)}: ${flight(origin)}`] : []),
    ...facts
      .copiesFrom(value)
      .map((span) => `it is copied to ${nameOf(span.to)} in ${spaceName(span.to)}: ${flight(span)}`),
  ];
}

const queueOf = (plan: Plan, step: Step): number => plan.program.steps[step]?.queue ?? 0;

/** The longest gap between two uses, which recomputation would free. Null if it is short. */
function longestWait(written: Step, readers: readonly Step[]): { from: Step; steps: number; reader: Step } | null {
  let longest = { from: 0, steps: 1, reader: 0 };
  readers.forEach((reader, i) => {
    const before = readers[i - 1] ?? written;
    if (reader - before - 1 > longest.steps) longest = { from: before + 1, steps: reader - before - 1, reader };
  });
  return longest.steps > 1 ? longest : null;
}

/** In place over what, or why over none of the operands. */
function originSentences(facts: PlanFacts, value: Value): string[] {
  const { plan, nameOf } = facts;
  const index = facts.writers.get(value) ?? -1;
  const step = plan.program.steps[index];
  if (!step) return [];
  if (step.alias) return [`it is another name of ${nameOf(step.alias[0])}`];
  const over = plan.inPlace.get(value);
  if (over) return [`it is written over ${nameOf(over)}, which dies there`];
  if (step.copy) return [];
  return step.reads.map(
    (read) => `it is not written over ${nameOf(read)}: ${notInPlaceReason(facts, index, read, value)}`,
  );
}

/** Other values in the buffer, and buffers in the same bytes at other times. */
function sharingSentences(facts: PlanFacts, id: BufferId, value: Value | null): string[] {
  const { plan, nameOf } = facts;
  const { buffers } = plan.problem;
  const { lifespan: here, values } = at(buffers, id);
  const others = value ? values.filter((v) => v !== value) : [];
  const mine = rangeOf(plan, id);
  const sharing = facts.overlapping(id).map((other) => at(buffers, other));
  const text = (b: (typeof sharing)[number]) => `b${b.id} (${b.values[0] ? nameOf(b.values[0]) : "workspace"})`;
  const before = sharing.filter((b) => b.lifespan.end <= here.start).map(text);
  const after = sharing.filter((b) => b.lifespan.start >= here.end).map(text);
  const sentences: string[] = [];
  if (others.length > 0) sentences.push(`b${id} also holds ${listed(others.map(nameOf), 6)}`);
  if (before.length > 0) sentences.push(`before it, the place belongs to ${listed(before, 6)}`);
  if (after.length > 0) sentences.push(`after it, the place is reused by ${listed(after, 6)}`);
  if (mine.to > mine.from && before.length + after.length + others.length === 0) {
    const whole = here.start === 0 && here.end > plan.program.steps.length;
    sentences.push(whole ? "its place is never free, so nothing else uses it" : "nothing else uses its place");
  }
  return sentences;
}

function spanText({ start, end }: Lifespan): string {
  return `[${start}, ${end})`;
}
