/**
 * @file Answers about one value: where is it, why does it live that long, why did it (not) take over an operand's
 * storage, and what uses its place before and after it. Every reason is worked out from the plan on the spot, none is
 * recorded while planning.
 */
import { grouped, TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import { typeText } from "../ir/type.ts";
import { liveness } from "./liveness.ts";
import { type NameOf, nameValues } from "./names.ts";
import { addressOf, type BufferId, type Lifespan, type Plan, rangeOf, type Step } from "./problem.ts";
import { type PlanStep, replacementOf } from "./program.ts";
import { stepText } from "./statement.ts";
import { listed } from "./table.ts";

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
  /** Sentences: where, how long and why, in place or why not, who shares the place. */
  readonly sentences: readonly string[];
}

/** Explains a value, given by its name in the plan's text or itself. */
export function explainValue(plan: Plan, which: string | Value): Explanation {
  const nameOf = nameValues(plan.program);
  const value = typeof which === "string" ? findValue(plan, which, nameOf) : which;
  if (!plan.bufferOf.has(value)) throw unknownValue(plan, nameOf(value), nameOf);
  const { buffer, from, to } = addressOf(plan, value);
  const lifespan = liveness(plan.program).get(value) ?? { start: 0, end: 0 };
  const readers = plan.program.steps.flatMap((step, i) => (step.reads.includes(value) ? [i] : []));
  const bufferLifespan = at(plan.problem.buffers, buffer).lifespan;
  const fates = { value, name: nameOf(value), buffer, from, to, lifespan, bufferLifespan, readers };
  const sentences = [
    `${nameOf(value)}: ${typeText(value.type)} is at b${buffer}[${from}:${to}], ${grouped(to - from)} bytes`,
    ...lifetimeSentences(plan, fates, nameOf),
    ...originSentences(plan, value, nameOf),
    ...sharingSentences(plan, buffer, value, nameOf),
  ];
  return { ...fates, sentences };
}

export function explainText(plan: Plan, which: string | Value): string {
  const [first, ...rest] = explainValue(plan, which).sentences;
  return `${[first, ...rest.map((sentence) => `  ${sentence}`)].join("\n")}\n`;
}

function findValue(plan: Plan, name: string, nameOf: NameOf): Value {
  for (const value of plan.bufferOf.keys()) if (nameOf(value) === name) return value;
  throw unknownValue(plan, name, nameOf);
}

function unknownValue(plan: Plan, name: string, nameOf: NameOf): TidemarkError {
  const names = [...plan.bufferOf.keys()].map(nameOf);
  const close = names.filter((n) => n.includes(name) || name.includes(n));
  return new TidemarkError("InvalidArgument", `explain: ${plan.program.name} stores no value named ${name}`, {
    help: `it stores ${listed(close.length > 0 ? close : names, 12)}`,
  });
}

function lifetimeSentences(plan: Plan, fate: Omit<Explanation, "sentences">, nameOf: NameOf): string[] {
  const { program } = plan;
  const { value, lifespan, bufferLifespan, readers } = fate;
  const text = (step: Step) =>
    `step ${step}, ${stepText(at(program.steps, step), nameOf, (v) => plan.bufferOf.has(v))}`;
  const born = program.params.includes(value)
    ? "it is a parameter, there from step 0"
    : `it is written at ${text(lifespan.start)}`;
  const lastReader = readers[readers.length - 1];
  let death =
    lastReader === undefined
      ? "nobody reads it"
      : `its ${readers.length > 1 ? `last of ${readers.length} readers` : "only reader"} is ${text(lastReader)}`;
  if (program.results.includes(value)) death = "it is a result, so it lives to the end";
  else if (program.persistent.has(value) && !program.donated.has(value))
    death = "it is persistent and not donated, so it is never overwritten";
  const sentences = [born, death];
  if (bufferLifespan.start !== lifespan.start || bufferLifespan.end !== lifespan.end) {
    sentences.push(`its content lives for steps ${spanText(lifespan)}, its buffer for ${spanText(bufferLifespan)}`);
  }
  const result = replacementOf(program, value);
  const copy = plan.copies.find((c) => c.param === value);
  if (result && copy)
    sentences.push(`${nameOf(result)} replaces it by a final copy: ${noSlotReason(plan, value, result, nameOf)}`);
  else if (result) sentences.push(`${nameOf(result)} replaces it in the same storage`);
  return sentences;
}

/** Why the replacement of a donated parameter was not written over it. */
function noSlotReason(plan: Plan, param: Value, result: Value, nameOf: NameOf): string {
  const { program, bufferOf } = plan;
  const rootOf = roots(plan);
  const root = rootOf(result);
  const writer = program.steps.findIndex((step) => step.writes.includes(root));
  if (writer < 0) return `${nameOf(result)} is a parameter's storage itself`;
  const late = program.steps.findIndex((step, i) => i > writer && step.reads.some((v) => rootOf(v) === param));
  if (late >= 0)
    return `${nameOf(param)} is still read at step ${late}, after ${nameOf(root)} is written at step ${writer}`;
  if (program.results.some((r) => rootOf(r) === param)) return `${nameOf(param)} is a result as well`;
  const taken = program.params.find((p) => p !== param && bufferOf.get(p) === bufferOf.get(result));
  if (taken) return `${nameOf(result)} is already in the storage of ${nameOf(taken)}`;
  return `step ${writer} reads ${nameOf(param)} and may not write ${nameOf(root)} over it`;
}

/** Follows renamings back to what was written. */
function roots(plan: Plan): (value: Value) => Value {
  const original = new Map<Value, Value>();
  for (const { alias } of plan.program.steps) if (alias) original.set(alias[1], original.get(alias[0]) ?? alias[0]);
  return (value) => original.get(value) ?? value;
}

/** In place over what, or why over none of the operands. */
function originSentences(plan: Plan, value: Value, nameOf: NameOf): string[] {
  const index = plan.program.steps.findIndex((s) => s.writes.includes(value));
  const step = plan.program.steps[index];
  if (!step) return [];
  if (step.alias) return [`it is another name of ${nameOf(step.alias[0])}`];
  const over = plan.inPlace.get(value);
  if (over) return [`it is written over ${nameOf(over)}, which dies there`];
  if (step.reads.length === 0) return [];
  return step.reads.map(
    (read) => `it is not written over ${nameOf(read)}: ${notInPlace(plan, step, index, read, value, nameOf)}`,
  );
}

function notInPlace(plan: Plan, step: PlanStep, index: Step, read: Value, value: Value, nameOf: NameOf): string {
  const { program } = plan;
  const rootOf = roots(plan);
  if (!step.inPlace.some(([r, w]) => r === read && w === value)) return "the step does not allow it";
  const root = rootOf(read);
  const later = program.steps.findIndex((s, i) => i > index && s.reads.some((v) => rootOf(v) === root));
  if (later >= 0) return `step ${later} still reads ${rootOf(read) === read ? "it" : nameOf(root)}`;
  if (program.results.some((r) => rootOf(r) === root)) return "it is a result";
  if (program.persistent.has(root) && !program.donated.has(root)) return "it is persistent and not donated";
  const other = step.writes.find((w) => w !== value && plan.bufferOf.get(w) === plan.bufferOf.get(read));
  if (other) return `${nameOf(other)} took it`;
  const unlike = step.reads.find((v) => v !== read && rootOf(v) === root);
  if (unlike) return `the step reads the same storage as ${nameOf(unlike)} too`;
  return "both are bound to storage that is in use at the same time";
}

/** Other values in the buffer, and buffers in the same bytes at other times. */
function sharingSentences(plan: Plan, id: BufferId, value: Value, nameOf: NameOf): string[] {
  const others = at(plan.problem.buffers, id).values.filter((v) => v !== value);
  const mine = rangeOf(plan, id);
  const here = at(plan.problem.buffers, id).lifespan;
  const sharing = plan.problem.buffers.filter((b) => {
    const range = rangeOf(plan, b.id);
    return b.id !== id && b.bytes > 0 && range.from < mine.to && mine.from < range.to;
  });
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
