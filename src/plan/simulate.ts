/**
 * @file Symbolic execution of a plan, for the validator: walks through the schedule with a map from byte ranges to what
 * they hold, and checks that every read finds the right value, whole, at its address. It knows nothing of lifespans or
 * buffers' sharing; it is what a run of the program would notice.
 *
 *     memory      [0:64) w   [64:128) x   [128:192) y
 *     write z at [96:160)  →  [0:64) w   [64:96) torn   [96:160) z   [160:192) torn
 *     read x at [64:128)   →  broken: torn by z
 */
import type { Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import type { Plan } from "./problem.ts";
import type { PlanStep } from "./program.ts";
import type { Report, Rule } from "./rules.ts";

/** A written range; `content` is null for workspace. */
interface Held {
  readonly from: number;
  readonly to: number;
  readonly content: Value | null;
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
  /** Disjoint, by first byte. */
  readonly #memory: Held[] = [];
  /** Renamed values hold the content of the original. */
  readonly #content = new Map<Value, Value>();

  constructor(plan: Plan, report: Report) {
    this.#plan = plan;
    this.#report = report;
  }

  /** All parameters are written before the first step. */
  start(): void {
    const { params } = this.#plan.program;
    for (const param of params) this.#write(this.#rangeOf(param), this.#define(param));
    for (const param of params) this.#expect(param, this.#rangeOf(param), "execution", "at the start");
  }

  step(step: PlanStep, i: number): void {
    for (const v of step.reads) this.#expect(v, this.#rangeOf(v), "execution", `step ${i} reads it`);
    if (step.alias) {
      const [read, written] = step.alias;
      this.#content.set(written, this.#contentOf(read));
      this.#expect(written, this.#rangeOf(written), "alias", `step ${i} renames ${text(read)}`);
      return;
    }
    const scratch = step.scratch.map((bytes, k) => this.#range(this.#plan.scratch[i]?.[k] ?? -1, bytes));
    for (const range of scratch) this.#write(range, null);
    for (const v of step.reads)
      this.#expect(v, this.#rangeOf(v), "scratch-overlap", `step ${i} reads it and has workspace there`);
    // A step writes while it reads: what it writes over must be allowed, and lie exactly on what it replaces.
    for (const w of step.writes) {
      const to = this.#rangeOf(w);
      for (const r of step.reads) {
        const at = this.#rangeOf(r);
        if (at.from >= to.to || to.from >= at.to) continue;
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

  /** Final copies, then everything that the caller and the next run rely on. */
  finish(): void {
    const { program, copies, resultBuffers } = this.#plan;
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

  #range(buffer: number, bytes: number): { from: number; to: number } {
    const from = this.#plan.offsets[buffer] ?? Number.NaN;
    return { from, to: from + bytes };
  }

  #rangeOf(value: Value): { from: number; to: number } {
    return this.#range(this.#plan.bufferOf.get(value) ?? -1, byteLength(value.type));
  }

  /** Tears whatever the range overlaps. */
  #write({ from, to }: { from: number; to: number }, content: Value | null): void {
    if (to <= from) return;
    const first = this.#firstAfter(from);
    let end = first;
    while ((this.#memory[end]?.from ?? to) < to) end++;
    this.#memory.splice(first, end - first, { from, to, content });
  }

  /** Which range is the first that ends after an address. */
  #firstAfter(address: number): number {
    let [low, high] = [0, this.#memory.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#memory[middle]?.to ?? 0) > address) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #holds({ from, to }: { from: number; to: number }, content: Value | null): boolean {
    const held = this.#memory[this.#firstAfter(from)];
    return held?.from === from && held.to === to && held.content === content;
  }

  #expect(value: Value, range: { from: number; to: number }, rule: Rule, why: string): void {
    if (range.to <= range.from) return;
    if (!this.#holds(range, this.#contentOf(value))) {
      this.#report(rule, `${text(value)} is not at [${range.from}:${range.to}): ${why}`);
    }
  }
}
