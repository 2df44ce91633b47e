/**
 * @file Recomputation as an integer program, in stages as Checkmate has them (Jain et al., MLSys 2020): stage t ends with
 * the first execution of operation t, before which any earlier operations may run again, in their order.
 *
 * ```
 *   R[t,k] = 1   operation k runs (again) in stage t; R[t,t] = 1, so the frontier advances by one a stage
 *   S[t,v] = 1   value v is held from stage t - 1 into stage t
 *   minimise     Σ cost(k) · R[t,k]
 *   presence     R[t,k]   ≤ S[t,v] + R[t,maker(v)]      for every v that k reads
 *                S[t+1,v] ≤ S[t,v] + R[t,maker(v)]
 *   bytes        operation t with its operands, and all else that is held into stage t + 1, fit the budget
 * ```
 *
 * These are relations that every schedule with this order of first executions satisfies, so the optimum is a lower bound
 * for all of them. Bytes at repetitions inside a stage are added only where an answer breaks them (`tight` pairs): at
 * the step of k in stage t, H[v] = 1 for what was made before k and is read after or held on.
 *
 * A window of stages can be solved alone: what is held into its first and out of its last stage is given.
 */
import type { FlatGraph } from "../plan/recompute/flat-graph.ts";

export interface StageWindow {
  /** Stages `from` … `to` - 1. */
  readonly from: number;
  readonly to: number;
  /** Values held into the first stage. */
  readonly enter: ReadonlySet<number>;
  /** Values to be held out of the last. */
  readonly leave: ReadonlySet<number>;
  /** Operations that may run again in the window; null for all. */
  readonly candidates: ReadonlySet<number> | null;
}

export interface ProgramOptions {
  readonly budget: number;
  /** Pairs of a stage and an operation whose bytes at that repetition are in the program. */
  readonly tight: ReadonlySet<string>;
  /** Only answers whose repetitions cost at most this. */
  readonly cutoff: number;
  /** Leave out that variables are whole: the answer is a bound. */
  readonly relaxed: boolean;
}

/** All stages, and one more that reads the results: they may be recomputed after the last operation. */
export function wholeWindow(graph: FlatGraph): StageWindow {
  return { from: 0, to: graph.ops + 1, enter: new Set(), leave: new Set(), candidates: null };
}

// stage `ops` stands for the end: an operation that reads the results, writes nothing and costs nothing

function inputsOf(graph: FlatGraph, op: number): Int32Array {
  if (op === graph.ops) return graph.results;
  return graph.inputs.subarray(graph.inputStart[op] as number, graph.inputStart[op + 1] as number);
}

function outputsOf(graph: FlatGraph, op: number): Int32Array {
  if (op === graph.ops) return new Int32Array(0);
  return graph.outputs.subarray(graph.outputStart[op] as number, graph.outputStart[op + 1] as number);
}

function usesOf(graph: FlatGraph, value: number): readonly number[] {
  const uses = graph.uses.subarray(graph.useStart[value] as number, graph.useStart[value + 1] as number);
  return graph.result[value] ? [...uses, graph.ops] : [...uses];
}

/** A sum of named terms and a number. */
interface Sum {
  readonly terms: [number, string][];
  constant: number;
}

class StageProgram {
  readonly #graph: FlatGraph;
  readonly #window: StageWindow;
  readonly #options: ProgramOptions;
  readonly #rows: string[] = [];
  readonly #names = new Set<string>();
  readonly #values: readonly number[];

  constructor(graph: FlatGraph, window: StageWindow, options: ProgramOptions) {
    this.#graph = graph;
    this.#window = window;
    this.#options = options;
    this.#values = this.#valuesOf();
  }

  /** Values that can be present at some time in the window. */
  #valuesOf(): readonly number[] {
    const { from, to, enter, candidates } = this.#window;
    const values = new Set(enter);
    for (let op = 0; op < to; op++) {
      if (op < from && candidates !== null && !candidates.has(op)) continue;
      for (const v of outputsOf(this.#graph, op)) values.add(v);
    }
    return [...values].sort((a, b) => a - b);
  }

  #runs(stage: number, op: number): [number, string] | number {
    const { from, candidates } = this.#window;
    if (op >= stage) return Number(op === stage);
    if (this.#graph.once[op] || (op < from && candidates !== null && !candidates.has(op))) return 0;
    return this.#name(`R_${stage}_${op}`);
  }

  #held(stage: number, value: number): [number, string] | number {
    const { from, to, enter, leave } = this.#window;
    if (stage === from) return Number(enter.has(value));
    if (stage === to) return Number(leave.has(value));
    return (this.#graph.producer[value] as number) < stage ? this.#name(`S_${stage}_${value}`) : 0;
  }

  #name(name: string): [number, string] {
    this.#names.add(name);
    return [1, name];
  }

  #sum(parts: readonly (readonly [number, [number, string] | number])[]): Sum {
    const sum: Sum = { terms: [], constant: 0 };
    for (const [factor, part] of parts) {
      if (factor === 0) continue;
      if (typeof part === "number") sum.constant += factor * part;
      else sum.terms.push([factor, part[1]]);
    }
    return sum;
  }

  /** `sum ≤ limit`. */
  #atMost(sum: Sum, limit: number): void {
    if (sum.terms.length === 0 && sum.constant <= limit) return;
    // a row without variables that does not hold makes the program infeasible, as it should
    const left = sum.terms.length === 0 ? "0 ZERO" : printed(sum.terms);
    this.#rows.push(`${left} <= ${limit - sum.constant}`);
  }

  #presence(stage: number): void {
    const graph = this.#graph;
    const present = (v: number): readonly (readonly [number, [number, string] | number])[] => [
      [-1, this.#held(stage, v)],
      [-1, this.#runs(stage, graph.producer[v] as number)],
    ];
    for (const op of this.#opsOf(stage)) {
      for (const v of inputsOf(graph, op)) this.#atMost(this.#sum([[1, this.#runs(stage, op)], ...present(v)]), 0);
    }
    for (const v of this.#values) {
      if ((graph.producer[v] as number) > stage) continue;
      this.#atMost(this.#sum([[1, this.#held(stage + 1, v)], ...present(v)]), 0);
    }
  }

  /** Operations that may run in a stage, its own last. */
  #opsOf(stage: number): readonly number[] {
    const ops: number[] = [];
    for (let op = 0; op <= stage; op++) if (this.#runs(stage, op) !== 0) ops.push(op);
    return ops;
  }

  /** Bytes in thousandths of the budget: rows with numbers near 1 are easier to solve accurately. */
  #share(bytes: number): number {
    return (bytes / this.#options.budget) * 1000;
  }

  #bytesAtEnd(stage: number): void {
    const graph = this.#graph;
    const operands = new Set([...inputsOf(graph, stage), ...outputsOf(graph, stage)]);
    let fixed = (graph.madeBytes[stage] ?? 0) + (graph.pinnedBytes[stage] as number);
    for (const v of inputsOf(graph, stage)) fixed += graph.bytes[v] as number;
    const rest = this.#values.filter((v) => (graph.producer[v] as number) < stage && !operands.has(v));
    const sum = this.#sum(rest.map((v) => [this.#share(graph.bytes[v] as number), this.#held(stage + 1, v)] as const));
    this.#atMost(sum, this.#share(this.#options.budget - fixed));
  }

  #bytesAtRepetition(stage: number, op: number): void {
    const graph = this.#graph;
    const parts: (readonly [number, [number, string] | number])[] = [];
    for (const v of this.#values) {
      const maker = graph.producer[v] as number;
      const share = this.#share(graph.bytes[v] as number);
      if (maker > op) parts.push([share, this.#held(stage, v)]);
      if (maker >= op || maker >= stage) continue;
      const held = this.#name(`H_${stage}_${op}_${v}`);
      this.#atMost(
        this.#sum([
          [1, this.#held(stage + 1, v)],
          [-1, held],
        ]),
        0,
      );
      for (const user of usesOf(graph, v)) {
        if (user >= op && user <= stage)
          this.#atMost(
            this.#sum([
              [1, this.#runs(stage, user)],
              [-1, held],
            ]),
            0,
          );
      }
      parts.push([share, held]);
    }
    parts.push([this.#share(graph.madeBytes[op] as number), this.#runs(stage, op)]);
    const pinned = graph.pinnedBytes[stage] as number;
    this.#atMost(this.#sum(parts), this.#share(this.#options.budget - pinned));
  }

  /** The program in the LP format of CPLEX. */
  print(): string {
    const graph = this.#graph;
    const objective: [number, string][] = [];
    for (let stage = this.#window.from; stage < this.#window.to; stage++) {
      this.#presence(stage);
      this.#bytesAtEnd(stage);
      for (const op of this.#opsOf(stage)) {
        if (op < stage) objective.push([graph.cost[op] as number, `R_${stage}_${op}`]);
        if (op < stage && this.#options.tight.has(`${stage} ${op}`)) this.#bytesAtRepetition(stage, op);
      }
    }
    const scale = 1000 / Math.max(graph.baseCost, Number.MIN_VALUE);
    const costs = objective
      .filter(([cost]) => cost > 0)
      .map(([cost, name]) => [cost * scale, name] as [number, string]);
    const { cutoff } = this.#options;
    if (Number.isFinite(cutoff) && costs.length > 0) this.#rows.push(`${printed(costs)} <= ${cutoff * scale}`);
    const names = [...this.#names];
    const whole = names.filter((name) => !name.startsWith("H"));
    const bounds = (this.#options.relaxed ? names : names.filter((name) => name.startsWith("H"))).map(
      (n) => ` 0 <= ${n} <= 1`,
    );
    return [
      "Minimize",
      ` cost: ${costs.length > 0 ? printed(costs) : "0 ZERO"}`,
      "Subject To",
      ...this.#rows.map((row, i) => ` c${i}: ${row}`),
      "Bounds",
      ...bounds,
      " ZERO = 0",
      ...(this.#options.relaxed || whole.length === 0 ? [] : ["Binary", ...whole.map((name) => ` ${name}`)]),
      "End",
      "",
    ].join("\n");
  }
}

function printed(terms: readonly (readonly [number, string])[]): string {
  const parts: string[] = [];
  for (const [factor, name] of terms) {
    const sign = factor < 0 ? "-" : "+";
    parts.push(`${sign} ${Math.abs(factor)} ${name}`);
    // readers of the format have limits on the length of a line
    if (parts.length % 12 === 0) parts.push("\n");
  }
  return parts.join(" ");
}

export function printStageProgram(graph: FlatGraph, window: StageWindow, options: ProgramOptions): string {
  return new StageProgram(graph, window, options).print();
}

/** The operations of each stage of the window, read from the variables that are 1. */
export function sequenceOf(graph: FlatGraph, window: StageWindow, isOne: (name: string) => boolean): number[] {
  const sequence: number[] = [];
  for (let stage = window.from; stage < window.to; stage++) {
    for (let op = 0; op < stage; op++) if (isOne(`R_${stage}_${op}`)) sequence.push(op);
    if (stage < graph.ops) sequence.push(stage);
  }
  return sequence;
}
