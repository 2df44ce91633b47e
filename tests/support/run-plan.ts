/**
 * @file Runs plans of made-up programs on real bytes: every memory space is an array, what is not live is overwritten with
 * noise before each step, and copies between spaces take bytes over piece by piece from their start to their wait. A kernel
 * writes a function of everything that it reads. Whatever a step reads must be what it would be without any plan.
 */
import type { Value } from "../../src/ir/graph.ts";
import { byteLength } from "../../src/ir/type.ts";
import { layoutIn, type Plan } from "../../src/plan/problem.ts";
import type { CopyStep, PlanStep, Program } from "../../src/plan/program.ts";

/** When a copy takes bytes over: all at its start, all at its wait, or some at every step, as a seed says. */
export type Pace = "start" | "wait" | number;

/** A small generator of numbers below 2³². */
function noise(seed: number): () => number {
  let state = (seed * 2654435761 + 1) >>> 0;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state;
  };
}

/** What a kernel makes of its operands: depends on every byte, on their order, and on the result's number. */
function computed(step: PlanStep, operands: readonly Uint8Array[], result: number): Uint8Array {
  let hash = 7 + result;
  for (const c of step.node.op.name) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
  for (const operand of operands) for (const byte of operand) hash = (Math.imul(hash, 16777619) ^ byte) >>> 0;
  const next = noise(hash);
  return Uint8Array.from({ length: byteLength(step.writes[result]!.type) }, () => next() & 255);
}

function argument(index: number, value: Value): Uint8Array {
  const next = noise(1000 + index);
  return Uint8Array.from({ length: byteLength(value.type) }, () => next() & 255);
}

/** Every value of a program, without a plan. */
export function valuesOf(program: Program): ReadonlyMap<Value, Uint8Array> {
  const values = new Map(program.params.map((param, i) => [param, argument(i, param)]));
  const get = (value: Value): Uint8Array => values.get(value)!;
  for (const step of program.steps) {
    if (step.copy) values.set(step.copy.to, get(step.copy.from));
    else if (step.alias) values.set(step.alias[1], get(step.alias[0]));
    else for (const [r, value] of step.writes.entries()) values.set(value, computed(step, step.reads.map(get), r));
  }
  return values;
}

interface Flight {
  readonly source: Uint8Array;
  readonly destination: Uint8Array;
  readonly left: Set<number>;
}

/** Runs a plan; gives what went wrong: reads of something else than the value, results and slots without theirs. */
export function faultsOfRun(plan: Plan, pace: Pace = "wait"): readonly string[] {
  const run = new Run(plan, pace);
  plan.program.steps.forEach((step, i) => {
    run.step(step, i);
  });
  return run.finish();
}

class Run {
  readonly #plan: Plan;
  readonly #pace: Pace;
  readonly #memory: readonly Uint8Array[];
  readonly #expected: ReadonlyMap<Value, Uint8Array>;
  readonly #flights = new Map<Value, Flight>();
  readonly #next: () => number;
  readonly #faults: string[] = [];

  constructor(plan: Plan, pace: Pace) {
    this.#plan = plan;
    this.#pace = pace;
    this.#memory = plan.problem.spaces.map((_, space) => new Uint8Array(layoutIn(plan, space).height));
    this.#expected = valuesOf(plan.program);
    this.#next = noise(typeof pace === "number" ? pace : 1);
    for (const memory of this.#memory) this.#spoil(memory);
    for (const param of plan.program.params) this.#bytesOf(param).set(this.#expected.get(param)!);
  }

  step(step: PlanStep, i: number): void {
    this.#spoilDead(i);
    for (const flight of this.#flights.values()) this.#take(flight, false);
    if (step.copy?.kind === "wait") {
      const flight = this.#flights.get(step.copy.to);
      if (flight) this.#take(flight, true);
      this.#flights.delete(step.copy.to);
      this.#check(step.copy.to, this.#bytesOf(step.copy.to), `step ${i} waits for it`);
    } else if (step.copy) this.#start(step.copy);
    else this.#kernel(step, i);
  }

  #kernel(step: PlanStep, i: number): void {
    for (const value of step.reads) this.#check(value, this.#bytesOf(value), `step ${i} reads it`);
    if (step.alias) return;
    for (const id of this.#plan.scratch[i] ?? []) this.#spoil(this.#buffer(id));
    const operands = step.reads.map((value) => this.#bytesOf(value).slice());
    step.writes.forEach((value, r) => {
      this.#bytesOf(value).set(computed(step, operands, r));
    });
  }

  finish(): readonly string[] {
    const { program, copies, resultBuffers } = this.#plan;
    this.#spoilDead(program.steps.length);
    for (const { from, to } of copies) this.#buffer(to).set(this.#buffer(from));
    program.results.forEach((value, i) => {
      const bytes = this.#buffer(resultBuffers[i]!).subarray(0, byteLength(value.type));
      this.#check(value, bytes, `it is result ${i}`);
    });
    for (const param of program.params) {
      const replacement = program.results[program.donated.get(param) ?? -1];
      const kept = program.persistent.has(param) && !program.donated.has(param) ? param : undefined;
      const content = replacement ?? kept;
      if (content) this.#check(content, this.#bytesOf(param), `it ends in the storage of parameter ${param.name}`);
    }
    return this.#faults;
  }

  #start({ from, to }: CopyStep): void {
    const [source, destination] = [this.#bytesOf(from), this.#bytesOf(to)];
    this.#spoil(destination);
    const flight = { source, destination, left: new Set(source.keys()) };
    this.#flights.set(to, flight);
    if (this.#pace === "start") this.#take(flight, true);
  }

  /** Takes some bytes over, or all that are left. */
  #take({ source, destination, left }: Flight, all: boolean): void {
    for (const byte of [...left]) {
      if (!all && (typeof this.#pace !== "number" || this.#next() % 3 > 0)) continue;
      destination[byte] = source[byte]!;
      left.delete(byte);
    }
  }

  /** Noise wherever no live buffer is; and in buffers that begin, unless parameters are in them. */
  #spoilDead(step: number): void {
    const { problem, program } = this.#plan;
    const dead = this.#memory.map((memory) => new Uint8Array(memory.length).fill(1));
    const params = new Set(program.params.map((param) => this.#plan.bufferOf.get(param)));
    for (const { id, lifespan, space } of problem.buffers) {
      const [from, to] = this.#range(id);
      const begins = lifespan.start === step && !params.has(id);
      if (lifespan.start <= step && step < lifespan.end && !begins) dead[space]!.fill(0, from, to);
    }
    this.#memory.forEach((memory, space) => {
      dead[space]!.forEach((isDead, byte) => {
        if (isDead) memory[byte] = this.#next() & 255;
      });
    });
  }

  #spoil(bytes: Uint8Array): void {
    for (const i of bytes.keys()) bytes[i] = this.#next() & 255;
  }

  #range(id: number): readonly [number, number] {
    const from = this.#plan.offsets[id]!;
    return [from, from + this.#plan.problem.buffers[id]!.bytes];
  }

  #buffer(id: number): Uint8Array {
    return this.#memory[this.#plan.problem.buffers[id]!.space]!.subarray(...this.#range(id));
  }

  #bytesOf(value: Value): Uint8Array {
    return this.#buffer(this.#plan.bufferOf.get(value)!).subarray(0, byteLength(value.type));
  }

  #check(value: Value, bytes: Uint8Array, why: string): void {
    const expected = this.#expected.get(value)!;
    if (!expected.every((byte, i) => bytes[i] === byte))
      this.#faults.push(`${value.name}#${value.id} is wrong: ${why}`);
  }
}
