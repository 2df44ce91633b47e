/**
 * @file Symbolic execution of a plan, for the validator: executes the schedule on a map from byte ranges to their
 * content, and checks that every read finds the right and complete value at its address. It knows nothing of lifespans
 * or sharing; it checks what a run of the program would observe.
 *
 *     memory      [0:64) w   [64:128) x   [128:192) y
 *     write z at [96:160)  →  [0:64) w   [64:96) torn   [96:160) z   [160:192) torn
 *     read x at [64:128)   →  broken: torn by z
 *
 * Each memory space has its own map. A copy between spaces may read and write at any moment from its start to its wait:
 * until then its destination cannot be read, and no step may write to either end. So may a collective in flight, from its start to its
 * wait, with all that it reads and writes.
 */
import type { Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import type { Plan } from "./problem.ts";
import type { CopyStep, ExchangeStep, Flight, PlanStep } from "./program.ts";
import type { Report, Rule } from "./rules.ts";

/** Bytes of a memory space. */
interface Range {
  readonly space: number;
  readonly from: number;
  readonly to: number;
}

/** A written range; `content` is null for workspace and for the destination of a copy in flight. */
interface WrittenRange extends Range {
  readonly content: Value | null;
}

/** A copy that is not waited for yet, with the bytes of both ends. */
interface CopyInFlight {
  readonly copy: CopyStep;
  readonly ends: readonly Range[];
}

/** A collective that is not waited for yet: where it reads, but for what it writes over, and where it writes. */
interface ExchangeInFlight {
  readonly sources: readonly (readonly [Value, Range])[];
  readonly targets: readonly (readonly [Value, Range])[];
}

const text = (value: Value): string => `${value.name ?? "value"}#${value.id}`;

export function simulate(plan: Plan, report: Report): void {
  const run = new Simulation(plan, report);
  run.start();
  plan.program.steps.forEach((step, i) => {
    run.step(step, i);
  });
  run.finish();
}

class Simulation {
  readonly #plan: Plan;
  readonly #report: Report;
  /** Per memory space: disjoint, by first byte. */
  readonly #memory: readonly WrittenRange[][];
  /** By destination. */
  readonly #flights = new Map<Value, CopyInFlight>();
  readonly #exchanges = new Map<Flight, ExchangeInFlight>();
  /** Renamed values hold the content of the original. */
  readonly #content = new Map<Value, Value>();

  constructor(plan: Plan, report: Report) {
    this.#plan = plan;
    this.#report = report;
    this.#memory = plan.problem.spaces.map(() => []);
  }

  /** All parameters are written before the first step. */
  start(): void {
    const { params } = this.#plan.program;
    for (const param of params) this.#write(this.#rangeOf(param), this.#define(param));
    for (const param of params) this.#expect(param, this.#rangeOf(param), "execution", "at the start");
  }

  step(step: PlanStep, i: number): void {
    if (step.copy?.kind === "wait") {
      this.#wait(step.copy, i);
      return;
    }
    if (step.exchange?.kind === "wait") {
      this.#land(step.exchange, i);
      return;
    }
    for (const v of step.reads) {
      if (this.#isExchanged(v))
        this.#report("read-before-wait", `step ${i} reads ${text(v)} before its collective is done`);
      else if (this.#flights.has(v))
        this.#report("read-before-wait", `step ${i} reads ${text(v)} before its copy is done`);
      else this.#expect(v, this.#rangeOf(v), "execution", `step ${i} reads it`);
    }
    if (step.copy) this.#start(step.copy, i);
    else this.#kernel(step, i);
    if (step.exchange?.kind === "start") this.#takeOff(step.exchange.flight, i);
  }

  #isExchanged(value: Value): boolean {
    return [...this.#exchanges.values()].some(({ targets }) => targets.some(([written]) => written === value));
  }

  /** What a collective writes is undefined until it is waited for. */
  #takeOff(flight: Flight, i: number): void {
    if (this.#exchanges.has(flight)) this.#report("exchange", `step ${i} starts ${flight.node.op.name} again`);
    const targets = flight.writes.map((value) => [value, this.#rangeOf(value)] as const);
    const own = flight.reads.map((value) => [value, this.#rangeOf(value)] as const);
    const sources = own.filter(([, range]) => !targets.some(([, target]) => overlapInBytes(range, target)));
    for (const [, range] of targets) this.#write(range, null);
    this.#exchanges.set(flight, { sources, targets });
  }

  #land({ flight }: ExchangeStep, i: number): void {
    const flying = flight && this.#exchanges.get(flight);
    if (!flight || !flying) {
      this.#report("exchange", `step ${i} waits for a collective that was not started`);
      return;
    }
    this.#exchanges.delete(flight);
    const name = flight.node.op.name;
    for (const [value, range] of flying.sources)
      this.#expect(value, range, "in-flight", `step ${i} waits for ${name} of it`);
    for (const [value, range] of flying.targets) {
      if (range.to > range.from && !this.#holds(range, null))
        this.#report("in-flight", `${text(value)} was overwritten before step ${i}, which waits for ${name}`);
      this.#write(range, value);
    }
  }

  #kernel(step: PlanStep, i: number): void {
    if (step.alias) {
      const [read, written] = step.alias;
      this.#content.set(written, this.#contentOf(read));
      this.#expect(written, this.#rangeOf(written), "alias", `step ${i} renames ${text(read)}`);
      return;
    }
    const scratch = step.scratch.map((bytes, k) => this.#range(this.#plan.scratch[i]?.[k] ?? -1, bytes));
    if (this.#flights.size > 0 || this.#exchanges.size > 0) {
      for (const range of scratch) this.#requireNotInFlight(range, `step ${i}`);
      for (const w of step.writes) this.#requireNotInFlight(this.#rangeOf(w), `step ${i}`);
    }
    for (const range of scratch) this.#write(range, null);
    for (const v of step.reads)
      this.#expect(v, this.#rangeOf(v), "scratch-overlap", `step ${i} reads it and has workspace there`);
    // A step writes while it reads: an overwritten operand must be permitted and have exactly the result's address
    // range.
    for (const w of step.writes) {
      const to = this.#rangeOf(w);
      for (const r of step.reads) {
        const at = this.#rangeOf(r);
        if (!overlapInBytes(at, to)) continue;
        const allowed = step.inPlace.some(([read, written]) => read === r && written === w);
        if (!allowed || at.from !== to.from)
          this.#report("in-place", `step ${i} writes ${text(w)} over ${text(r)} while it reads it`);
      }
    }
    for (const w of step.writes) this.#write(this.#rangeOf(w), this.#define(w));
    for (const w of step.writes)
      this.#expect(w, this.#rangeOf(w), "execution", `step ${i} wrote it together with others`);
    for (const range of scratch) {
      if (range.to > range.from && !this.#holds(range, null))
        this.#report("scratch-overlap", `step ${i} writes into its own workspace [${range.from}:${range.to})`);
    }
  }

  #start(copy: CopyStep, i: number): void {
    const { from, to } = copy;
    const ends = [this.#rangeOf(from), this.#rangeOf(to)];
    const [source, destination] = ends as [Range, Range];
    if (source.space === destination.space) this.#report("copy", `step ${i} copies ${text(from)} within its space`);
    if (byteLength(from.type) !== byteLength(to.type)) this.#report("copy", `step ${i} copies to another size`);
    if (this.#flights.has(to)) this.#report("copy", `step ${i} starts the copy to ${text(to)} again`);
    this.#requireNotInFlight(destination, `step ${i}`);
    this.#define(to);
    this.#write(destination, null);
    this.#flights.set(to, { copy, ends });
  }

  #wait({ from, to }: CopyStep, i: number): void {
    const flight = this.#flights.get(to);
    if (flight?.copy.from !== from) {
      this.#report("copy", `step ${i} waits for a copy of ${text(from)} to ${text(to)} that was not started`);
      return;
    }
    this.#flights.delete(to);
    const [source, destination] = flight.ends as [Range, Range];
    this.#expect(from, source, "in-flight", `step ${i} waits for its copy to ${text(to)}`);
    if (destination.to > destination.from && !this.#holds(destination, null))
      this.#report("in-flight", `${text(to)} was overwritten before step ${i}, which waits for it`);
    this.#write(destination, to);
  }

  /** No step may write to what is in flight. */
  #requireNotInFlight(range: Range, who: string): void {
    for (const [{ node }, { sources, targets }] of this.#exchanges) {
      const touched = [...sources, ...targets].find(([, end]) => overlapInBytes(end, range));
      if (touched)
        this.#report("in-flight", `${who} writes on ${text(touched[0])} before ${node.op.name} of it is done`);
    }
    for (const { copy, ends } of this.#flights.values()) {
      if (ends.some((end) => overlapInBytes(end, range)))
        this.#report(
          "in-flight",
          `${who} writes on the copy of ${text(copy.from)} to ${text(copy.to)} before it is done`,
        );
    }
  }

  /** Final copies, then everything that the caller and the next run rely on. */
  finish(): void {
    const { program, copies, resultBuffers } = this.#plan;
    for (const { copy } of this.#flights.values())
      this.#report("copy", `the copy of ${text(copy.from)} to ${text(copy.to)} is never waited for`);
    for (const { node } of this.#exchanges.keys()) this.#report("exchange", `${node.op.name} is never waited for`);
    for (const { value, from, to } of copies) {
      const bytes = byteLength(value.type);
      this.#expect(value, this.#range(from, bytes), "execution", "a final copy reads it");
      this.#write(this.#range(to, bytes), this.#contentOf(value));
    }
    program.results.forEach((v, i) => {
      this.#expect(v, this.#range(resultBuffers[i] ?? -1, byteLength(v.type)), "result-missing", `it is result ${i}`);
    });
    for (const param of program.params) {
      const result = program.results[program.donated.get(param) ?? -1];
      if (result) this.#expect(result, this.#rangeOf(param), "donated-slot", `it replaces ${text(param)}`);
      else if (program.persistent.has(param) && !program.donated.has(param)) {
        this.#expect(param, this.#rangeOf(param), "persistent-overwritten", "the next run reads it");
      }
    }
  }

  #define(value: Value): Value {
    this.#content.set(value, value);
    return value;
  }

  #contentOf(value: Value): Value {
    return this.#content.get(value) ?? value;
  }

  #range(buffer: number, bytes: number): Range {
    const from = this.#plan.offsets[buffer] ?? Number.NaN;
    return { space: this.#plan.problem.buffers[buffer]?.space ?? 0, from, to: from + bytes };
  }

  #rangeOf(value: Value): Range {
    return this.#range(this.#plan.bufferOf.get(value) ?? -1, byteLength(value.type));
  }

  /** Tears whatever the range overlaps. */
  #write({ space, from, to }: Range, content: Value | null): void {
    if (to <= from) return;
    const memory = this.#memory[space] ?? [];
    const first = firstAfter(memory, from);
    let end = first;
    while ((memory[end]?.from ?? to) < to) end++;
    memory.splice(first, end - first, { space, from, to, content });
  }

  #holds({ space, from, to }: Range, content: Value | null): boolean {
    const memory = this.#memory[space] ?? [];
    const held = memory[firstAfter(memory, from)];
    return held?.from === from && held.to === to && held.content === content;
  }

  #expect(value: Value, range: Range, rule: Rule, why: string): void {
    if (range.to <= range.from) return;
    if (!this.#holds(range, this.#contentOf(value))) {
      this.#report(rule, `${text(value)} is not at [${range.from}:${range.to}): ${why}`);
    }
  }
}

/** The index of the first range that ends after an address. */
function firstAfter(memory: readonly WrittenRange[], address: number): number {
  let [low, high] = [0, memory.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((memory[middle]?.to ?? 0) > address) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Whether two ranges have a byte in common. */
function overlapInBytes(a: Range, b: Range): boolean {
  return a.space === b.space && a.from < b.to && b.from < a.to && a.from < a.to && b.from < b.to;
}
