/**
 * @file Parses a plan file: text that may be truncated, edited, hostile or from a newer version becomes a `PlanJson` in
 * which every number is a safe integer and every index is valid, or an error that says what is wrong and where. Nothing
 * in a file is executed, and later readers need no further checks.
 *
 * Unknown fields are ignored; optional ones are checked if present.
 */
import { TidemarkError } from "../base/errors.ts";
import { PLAN_JSON_VERSION, type PlanJson } from "./json.ts";
import { BUFFER_KINDS } from "./problem.ts";

/** The deepest nesting of plans: loops in loops. */
const DEEPEST = 32;
/** The most faults named in one message. */
const NAMED = 5;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads a plan file.
 *
 * @throws ParseError for text that is no plan, or one of another version
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { planJson, readPlanJson } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * const text = JSON.stringify(planJson(plan));
 * console.log(readPlanJson(text).heightBytes === plan.height); // → true
 */
export function readPlanJson(text: string): PlanJson {
  return checkedPlan(parsed(text));
}

function parsed(text: string): unknown {
  if (typeof text !== "string") {
    throw notReadable(
      `plan file: ${shown(text)} is not text`,
      'give the contents of a file: readFileSync(path, "utf8")',
    );
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw notReadable(`plan file: not JSON (${why.slice(0, 120)})`, "it may be cut off: write it again");
  }
}

function notReadable(summary: string, help: string): TidemarkError {
  return new TidemarkError("ParseError", summary, { help });
}

/**
 * Data that claims to be a plan.
 *
 * @throws ParseError for data that is no plan, or one of another version
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { checkedPlan, planJson } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(checkedPlan(JSON.parse(JSON.stringify(planJson(plan)))).heightBytes === plan.height); // → true
 */
export function checkedPlan(data: unknown): PlanJson {
  const { version } = fieldsOf(data) ?? {};
  if (typeof version !== "number" || !Number.isInteger(version) || version < 1) {
    throw notReadable("plan file: there is no version in it", "tidemark plan PROGRAM --plan-json FILE writes one");
  }
  if (version > PLAN_JSON_VERSION) {
    const summary = `plan file: version ${version}, this reads up to version ${PLAN_JSON_VERSION}`;
    throw notReadable(summary, "it is from a newer Tidemark: update this one");
  }
  const faults = new Faults();
  checkPlan(data, "", faults, 0);
  faults.throwAny();
  return data as PlanJson;
}

class Faults {
  readonly #found: string[] = [];
  #count = 0;

  add(where: string, what: string): void {
    this.#count += 1;
    if (this.#found.length < NAMED) this.#found.push(`${where || "plan"}: ${what}`);
  }

  throwAny(): void {
    if (this.#count === 0) return;
    const more = this.#count > this.#found.length ? `\n  … ${this.#count - this.#found.length} more` : "";
    throw notReadable(`plan file: ${this.#found.join("\n  ")}${more}`, "docs/plan-json.md has the format");
  }
}

function fieldsOf(data: unknown): Fields | null {
  return typeof data === "object" && data !== null && !Array.isArray(data) ? (data as Fields) : null;
}

/** A short text of an invalid value. */
function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "a list" : "an object";
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

/** One object of the file with its path, for field-by-field checks. */
class CheckedObject {
  readonly #fields: Fields;
  readonly where: string;
  readonly faults: Faults;

  constructor(data: unknown, where: string, faults: Faults) {
    const fields = fieldsOf(data);
    if (!fields) faults.add(where, `${shown(data)} is not an object`);
    this.#fields = fields ?? {};
    this.where = where;
    this.faults = faults;
  }

  get(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined;
  }

  #path(name: string): string {
    return this.where === "" ? name : `${this.where}.${name}`;
  }

  text(...names: readonly string[]): void {
    for (const name of names)
      if (typeof this.get(name) !== "string") this.faults.add(this.#path(name), `${shown(this.get(name))} is not text`);
  }

  flag(...names: readonly string[]): void {
    for (const name of names) {
      if (typeof this.get(name) !== "boolean") this.faults.add(this.#path(name), "is neither true nor false");
    }
  }

  /** An integer of at least 0 and below `limit`; 0 if it is invalid. */
  whole(name: string, limit: number = Number.MAX_SAFE_INTEGER, orNull = false): number {
    const value = this.get(name);
    if (orNull && value === null) return 0;
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value < limit) return value;
    const range = limit === Number.MAX_SAFE_INTEGER ? "a whole number of at least 0" : `an index below ${limit}`;
    this.faults.add(this.#path(name), `${shown(value)} is not ${range}`);
    return 0;
  }

  list(name: string): readonly unknown[] {
    const value = this.get(name);
    if (Array.isArray(value)) return value;
    this.faults.add(this.#path(name), `${shown(value)} is not a list`);
    return [];
  }

  objects(name: string, check: (item: CheckedObject, index: number) => void): void {
    this.list(name).forEach((item, i) => {
      check(new CheckedObject(item, `${this.#path(name)}[${i}]`, this.faults), i);
    });
  }

  texts(name: string): void {
    this.list(name).forEach((item, i) => {
      if (typeof item !== "string") this.faults.add(`${this.#path(name)}[${i}]`, `${shown(item)} is not text`);
    });
  }

  indices(name: string, limit: number): void {
    this.list(name).forEach((item, i) => {
      const good = typeof item === "number" && Number.isInteger(item) && item >= 0 && item < limit;
      if (!good) this.faults.add(`${this.#path(name)}[${i}]`, `${shown(item)} is not an index below ${limit}`);
    });
  }
}

function checkPlan(data: unknown, where: string, faults: Faults, depth: number): void {
  if (depth > DEEPEST) {
    faults.add(where, `more than ${DEEPEST} plans inside each other`);
    return;
  }
  const plan = new CheckedObject(data, where, faults);
  const version = plan.get("version");
  // The version of the file itself is checked first.
  if (depth > 0 && version !== PLAN_JSON_VERSION)
    faults.add(`${where}.version`, `${shown(version)} is not ${PLAN_JSON_VERSION}`);
  plan.text("name", "strategy");
  const height = plan.whole("heightBytes");
  plan.whole("boundBytes");
  plan.whole("budgetBytes", Number.MAX_SAFE_INTEGER, true);
  if (plan.whole("alignment") === 0) faults.add(`${where === "" ? "" : `${where}.`}alignment`, "is 0");
  const [buffers, values, steps] = [plan.list("buffers").length, plan.list("values").length, plan.list("steps").length];
  plan.whole("boundStep", steps + 1);
  const heights = plan.get("spaces") === undefined ? [height] : checkSpaces(plan, steps, height);
  plan.objects("buffers", (buffer) => checkBuffer(buffer, values, steps, heights));
  plan.objects("values", (value) => {
    value.text("name", "type");
    value.whole("buffer", buffers);
    value.whole("offset");
    value.whole("over", values, true);
    if (value.get("again") !== undefined) value.flag("again");
    if (value.get("story") !== undefined) value.texts("story");
  });
  plan.objects("steps", (step) => checkStep(step, values, buffers, depth));
  checkCopies(plan, values, steps);
  checkExchanges(plan, steps);
  checkEnds(plan, values, buffers);
  checkOverChains(plan, values);
}

/** The heights of the memory spaces. */
function checkSpaces(plan: CheckedObject, steps: number, arena: number): readonly number[] {
  const heights: number[] = [];
  plan.objects("spaces", (space) => {
    space.text("name");
    if (space.whole("alignment") === 0) space.faults.add(`${space.where}.alignment`, "is 0");
    space.whole("capacityBytes", Number.MAX_SAFE_INTEGER, true);
    space.whole("largestAllocationBytes", Number.MAX_SAFE_INTEGER, true);
    space.flag("hostVisible");
    heights.push(space.whole("heightBytes"));
    space.whole("boundBytes");
    space.whole("boundStep", steps + 1);
  });
  if (heights[0] !== arena)
    plan.faults.add(plan.where, `the first space has ${heights[0] ?? "no"} bytes, the plan ${arena}`);
  return heights;
}

/** Halves of copies name each other: a start comes before its wait. */
function checkCopies(plan: CheckedObject, values: number, steps: number): void {
  const halves = plan.list("steps").map((step) => fieldsOf(fieldsOf(step)?.copy));
  plan.objects("steps", (step, i) => {
    if (step.get("queue") !== undefined) step.whole("queue");
    if (step.get("copy") === undefined) return;
    const copy = new CheckedObject(step.get("copy"), `${step.where}.copy`, step.faults);
    const kind = copy.get("kind");
    if (kind !== "start" && kind !== "wait")
      copy.faults.add(`${copy.where}.kind`, `${shown(kind)} is not start or wait`);
    const [from, to, other] = [copy.whole("from", values), copy.whole("to", values), copy.whole("other", steps)];
    const half = halves[other];
    const paired = half && half.other === i && half.kind !== kind && half.from === from && half.to === to;
    if (!paired || (kind === "start") !== i < other)
      copy.faults.add(`${copy.where}.other`, `step ${other} is not the other half of this copy`);
  });
}

const EXCHANGE_KINDS: readonly unknown[] = ["start", "wait", "test", "whole"];

/** Halves of a collective in flight name each other: a start comes before its wait. */
function checkExchanges(plan: CheckedObject, steps: number): void {
  const halves = plan.list("steps").map((step) => fieldsOf(fieldsOf(step)?.exchange));
  plan.objects("steps", (step, i) => {
    if (step.get("exchange") === undefined) return;
    const exchange = new CheckedObject(step.get("exchange"), `${step.where}.exchange`, step.faults);
    const kind = exchange.get("kind");
    if (!EXCHANGE_KINDS.includes(kind))
      exchange.faults.add(`${exchange.where}.kind`, `${shown(kind)} is not start, wait, test or whole`);
    exchange.text("over");
    exchange.whole("bytes");
    const isHalf = kind === "start" || kind === "wait";
    const other = exchange.whole("other", steps, !isHalf);
    const half = halves[other];
    const isPaired = half && half.other === i && half.kind === (kind === "start" ? "wait" : "start");
    if (isHalf && (!isPaired || (kind === "start") !== i < other))
      exchange.faults.add(`${exchange.where}.other`, `step ${other} is not the other half of this collective`);
  });
}

function checkBuffer(buffer: CheckedObject, values: number, steps: number, heights: readonly number[]): void {
  const kind = buffer.get("kind");
  if (!BUFFER_KINDS.some((valid) => valid === kind))
    buffer.faults.add(`${buffer.where}.kind`, `${shown(kind)} is not one of ${BUFFER_KINDS.join(", ")}`);
  const [start, end] = [buffer.whole("start", steps + 1), buffer.whole("end", steps + 2)];
  if (start >= end) buffer.faults.add(buffer.where, `lives for steps [${start}, ${end}): none`);
  const [offset, bytes] = [buffer.whole("offset"), buffer.whole("bytes")];
  const space = buffer.get("space") === undefined ? 0 : buffer.whole("space", heights.length);
  const height = heights[space] ?? 0;
  if (bytes > 0 && offset + bytes > height)
    buffer.faults.add(buffer.where, `ends at ${offset + bytes}, above the arena's ${height}`);
  buffer.indices("values", values);
}

function checkStep(step: CheckedObject, values: number, buffers: number, depth: number): void {
  step.text("op", "text", "phase");
  if (step.get("where") !== null) step.text("where");
  if (step.get("kernel") !== undefined) step.text("kernel");
  step.indices("reads", values);
  step.indices("writes", values);
  step.indices("scratch", buffers);
  step.flag("alias");
  if (step.get("strips") !== undefined) checkStrips(step);
  if (step.get("bodies") === undefined) return;
  step.list("bodies").forEach((body, i) => {
    checkPlan(body, `${step.where}.bodies[${i}]`, step.faults, depth + 1);
  });
}

function checkStrips(step: CheckedObject): void {
  const strips = new CheckedObject(step.get("strips"), `${step.where}.strips`, step.faults);
  strips.text("value");
  for (const name of ["strips", "rows", "stripBytes", "wholeBytes", "carriedBytes"]) strips.whole(name);
}

function checkEnds(plan: CheckedObject, values: number, buffers: number): void {
  plan.objects("params", (param) => {
    param.whole("value", values);
    param.flag("persistent", "donated");
    param.whole("replacement", plan.list("results").length, true);
  });
  plan.objects("results", (result) => {
    result.whole("value", values);
    result.whole("buffer", buffers);
  });
  plan.objects("copies", (copy) => {
    copy.whole("value", values);
    copy.whole("from", buffers);
    copy.whole("to", buffers);
    copy.whole("param", values, true);
  });
}

/** A value overwrites an earlier one; the chain must not be circular. */
function checkOverChains(plan: CheckedObject, count: number): void {
  const over = plan.list("values").map((value) => fieldsOf(value)?.over);
  const state = new Uint8Array(count); // 0 not visited, 1 on this chain, 2 ends
  for (let first = 0; first < count; first++) {
    const chain: number[] = [];
    let at: unknown = first;
    while (typeof at === "number" && at >= 0 && at < count && state[at] === 0) {
      state[at] = 1;
      chain.push(at);
      at = over[at];
    }
    if (typeof at === "number" && state[at] === 1) plan.faults.add(`values[${first}].over`, "leads back to itself");
    for (const seen of chain) state[seen] = 2;
  }
}
