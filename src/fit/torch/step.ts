/**
 * @file Three training steps of a program as PyTorch runs them eagerly: operation by operation, each value given back after its last reader
 * unless a derivative keeps it. The third step is the one that is reported: state and cached blocks are there as in all later ones.
 */
import type { InputKind, Pt2Node, Pt2Program } from "../../formats/pt2-program.ts";
import { tensorName } from "../../formats/pt2-program.ts";
import { Autograd, type EagerTensor, type Parameter, type RecomputedPart } from "./autograd.ts";
import { Call, type CallContext, type EagerType, outputNames } from "./call.ts";
import { contiguousStrides } from "./layout.ts";
import { lastReads, namesIn } from "./lifetimes.ts";
import type { Peak, Purpose } from "./memory.ts";
import { Optimizer, type OptimizerName } from "./optimizer.ts";
import { ruleOf } from "./rules/all.ts";
import { opaque } from "./rules/networks.ts";
import { changesOperand } from "./rules/pointwise.ts";
import { CUBLAS_WORKSPACES } from "./workspaces.ts";

export type Loss = "squares" | "cross-entropy" | "result";

/** A program with all of its sizes. */
export interface EagerProgram {
  readonly program: Pt2Program;
  readonly type: (name: string) => EagerType | undefined;
  /** Sizes that nodes compute. */
  readonly number: (name: string) => number | undefined;
  /** Inputs that are one storage have one name here; by value in the graph. */
  readonly storageOf: (value: string) => string;
  /** The mean of squares of all results, the cross-entropy of the first with labels, or the first result itself. */
  readonly loss: Loss;
  /** Parts of the forward pass that are recomputed in the backward pass; none by default. */
  readonly recompute?: readonly RecomputedRange[];
}

/** Nodes from `start` up to `end`, of which some keep their results. */
export interface RecomputedRange {
  readonly start: number;
  readonly end: number;
  readonly saved: ReadonlySet<number>;
}

export interface EagerStep {
  /** What `max_memory_allocated` reports after a step. */
  readonly peak: Peak;
  /** What stays between steps. */
  readonly heldBytes: number;
  /** What derivatives keep when the forward pass is done. */
  readonly savedBytes: number;
  readonly reservedBytes: number;
  /** Operations without a rule, with their number of nodes. */
  readonly unknown: ReadonlyMap<string, number>;
}

const STEPS = 3;

const PURPOSE_OF: Readonly<Record<InputKind, Purpose>> = {
  parameter: "parameters",
  buffer: "buffers",
  tensor_constant: "buffers",
  user_input: "inputs",
};

export function eagerStep(of: EagerProgram, optimizerName: OptimizerName): EagerStep {
  const g = new Autograd();
  const unknown = new Map<string, number>();
  const run = new Run(g, of, unknown);
  const optimizer = new Optimizer(g, optimizerName);
  let [held, saved] = [0, 0];
  for (let step = 0; step < STEPS; step++) {
    g.memory.resetPeak();
    const loss = run.forward();
    saved = g.memory.live("activations");
    g.backward(loss);
    optimizer.step(run.parameters);
    optimizer.clear(run.parameters);
    run.endStep(loss);
    held = g.memory.allocated;
  }
  for (const [target, count] of unknown) unknown.set(target, count / STEPS);
  return { peak: g.memory.peak, heldBytes: held, savedBytes: saved, reservedBytes: g.memory.reserved, unknown };
}

class Run {
  readonly #g: Autograd;
  readonly #of: EagerProgram;
  readonly #unknown: Map<string, number>;
  readonly #given = new Map<string, EagerTensor>();
  /** Names whose last reader a node is, by its position. */
  readonly #lastReads: readonly (readonly string[])[];
  readonly parameters: Parameter[] = [];
  #lastLoss: EagerTensor | null = null;
  #labels: EagerTensor | null = null;

  constructor(g: Autograd, of: EagerProgram, unknown: Map<string, number>) {
    this.#g = g;
    this.#of = of;
    this.#unknown = unknown;
    for (const _thread of ["forward", "backward"]) {
      for (const bytes of CUBLAS_WORKSPACES) g.memory.allocate(bytes, "workspaces");
    }
    this.#place();
    this.#lastReads = lastReads(of.program);
  }

  /** Parameters, buffers and inputs, each storage once. */
  #place(): void {
    const g = this.#g;
    const placed = new Map<string, EagerTensor>();
    for (const { kind, value } of this.#of.program.inputs) {
      const type = this.#of.type(value);
      if (!type) continue;
      const key = this.#of.storageOf(value);
      const known = placed.get(key);
      if (known) {
        this.#given.set(value, known);
        continue;
      }
      g.purpose = PURPOSE_OF[kind];
      const tensor = g.fresh(type.shape, type);
      placed.set(key, tensor);
      this.#given.set(value, tensor);
      if (kind === "parameter") this.parameters.push(g.parameter(tensor));
    }
    g.purpose = "activations";
  }

  #around(values: ReadonlyMap<string, EagerTensor>): CallContext {
    return {
      autograd: this.#g,
      tensor: (name) => values.get(name) ?? this.#given.get(name),
      number: this.#of.number,
      type: this.#of.type,
    };
  }

  forward(): EagerTensor {
    const { program } = this.#of;
    const values = new Map<string, EagerTensor>();
    const around = this.#around(values);
    const ranges = new Map((this.#of.recompute ?? []).map((range) => [range.start, range]));
    for (let i = 0; i < program.nodes.length; i++) {
      const range = ranges.get(i);
      if (range) this.#checkpointed(range, values, around);
      else this.#at(i, values, around);
      if (range) i = range.end - 1;
    }
    const loss = this.#loss(around);
    for (const name of [...values.keys()]) this.#drop(values, name);
    return loss;
  }

  #at(i: number, values: Map<string, EagerTensor>, around: CallContext): void {
    this.#node(this.#of.program.nodes[i] as Pt2Node, values, around);
    for (const name of this.#lastReads[i] ?? []) this.#drop(values, name);
  }

  /** A part under `torch.utils.checkpoint`: its inputs are kept, and results of saved operations. */
  #checkpointed({ start, end, saved }: RecomputedRange, values: Map<string, EagerTensor>, around: CallContext): void {
    const g = this.#g;
    const nodes = this.#of.program.nodes.slice(start, end);
    const reads = new Set(nodes.flatMap(({ inputs }) => inputs.flatMap(({ arg }) => namesIn(arg))));
    const held = [...reads].flatMap((name) => {
      const tensor = values.get(name);
      return tensor ? [[name, { ...g.view(tensor), edge: tensor.edge }] as const] : [];
    });
    const results = new Map<number, readonly EagerTensor[]>();
    const part: RecomputedPart = {
      nodes: [],
      isDone: false,
      left: 0,
      again: () => this.#runAgain({ start, end, saved }, held, results),
      end: () => {
        for (const [, tensor] of held) g.release(tensor);
        for (const tensor of [...results.values()].flat()) g.release(tensor);
      },
    };
    g.recomputing(part, () => {
      for (let i = start; i < end; i++) {
        g.memory.made = saved.has(i) ? new Set() : null;
        this.#node(nodes[i - start] as Pt2Node, values, around);
        g.memory.made = null;
        if (saved.has(i)) {
          const names = outputNames(nodes[i - start]?.outputs ?? []);
          results.set(
            i,
            names.flatMap((name) => (values.has(name ?? "") ? [g.view(values.get(name ?? "") as EagerTensor)] : [])),
          );
        }
        for (const name of this.#lastReads[i] ?? []) this.#drop(values, name);
      }
    });
    if (part.nodes.length === 0) part.end();
  }

  #runAgain(
    { start, end, saved }: RecomputedRange,
    held: readonly (readonly [string, EagerTensor])[],
    results: ReadonlyMap<number, readonly EagerTensor[]>,
  ): void {
    const g = this.#g;
    const { nodes } = this.#of.program;
    const values = new Map(held.map(([name, tensor]) => [name, { ...g.view(tensor), edge: tensor.edge }]));
    const around = this.#around(values);
    for (let i = start; i < end; i++) {
      g.memory.isSkipping = saved.has(i);
      this.#node(nodes[i] as Pt2Node, values, around);
      g.memory.isSkipping = false;
      const names = outputNames(nodes[i]?.outputs ?? []);
      results.get(i)?.forEach((tensor, k) => {
        const name = names[k] ?? "";
        const skipped = values.get(name);
        if (skipped) values.set(name, { ...g.view(tensor), edge: skipped.edge });
      });
      for (const name of this.#lastReads[i] ?? []) this.#drop(values, name);
    }
    for (const name of [...values.keys()]) this.#drop(values, name);
  }

  #drop(values: Map<string, EagerTensor>, name: string): void {
    const value = values.get(name);
    if (!value) return;
    values.delete(name);
    this.#g.release(value);
  }

  #node(node: Pt2Node, values: Map<string, EagerTensor>, around: CallContext): void {
    this.#g.memory.at = `forward of ${node.target}`;
    const call = new Call(node, around);
    const known = ruleOf(node.target);
    if (!known) this.#unknown.set(node.target, (this.#unknown.get(node.target) ?? 0) + 1);
    const made = (known ?? opaque)(call);
    outputNames(node.outputs).forEach((name, i) => {
      const value = made[i];
      if (name !== null && value) values.set(name, value);
    });
    const self = tensorName(node.inputs[0]?.arg);
    const [first] = made;
    if (!changesOperand(call) || self === null || !first) return;
    const changed = values.get(self);
    if (changed) changed.edge = first.edge;
  }

  /** The mean of squares of all float results, `y.pow(2).mean()`, or the loss that the program has. */
  #loss(around: CallContext): EagerTensor {
    const g = this.#g;
    const results = this.#of.program.outputs
      .filter(({ kind }) => kind === "user_output" || kind === "loss_output")
      .flatMap(({ argument }) => around.tensor(tensorName(argument) ?? "") ?? [])
      .filter(({ isFloat }) => isFloat);
    const [first] = results;
    if (this.#of.loss === "result" && first) return { ...g.view(first), edge: first.edge };
    g.memory.at = "the loss";
    if (this.#of.loss === "cross-entropy" && first) return crossEntropy(g, first, this.#labelsFor(first));
    const parts = results.map((y) => meanOfSquares(g, y));
    const [only, ...more] = parts;
    if (only && more.length === 0) return only;
    const loss = g.fresh([], { item: first?.item ?? 4, isFloat: true });
    g.record({
      ...{ name: "add", inputs: parts, outputs: [loss] },
      backward: ([dy]) => parts.map(() => (dy ? g.view(dy) : null)),
    });
    for (const part of parts) g.release(part);
    return loss;
  }

  /** One whole number for each row of logits, made once. */
  #labelsFor({ shape }: EagerTensor): EagerTensor {
    const g = this.#g;
    g.purpose = "inputs";
    this.#labels ??= g.fresh(shape.slice(0, -1), { item: 8, isFloat: false });
    g.purpose = "activations";
    return this.#labels;
  }

  /** The loss of a step lives until that of the next is there. */
  endStep(loss: EagerTensor): void {
    if (this.#lastLoss) this.#g.release(this.#lastLoss);
    this.#lastLoss = loss;
  }
}

/** log_softmax in f32, then the mean of what it has at the labels. */
function crossEntropy(g: Autograd, y: EagerTensor, labels: EagerTensor): EagerTensor {
  const wide = { item: Math.max(y.item, 4), isFloat: true };
  const isHalf = wide.item > y.item;
  const logits = isHalf ? g.fresh(y.shape, wide) : g.view(y);
  if (isHalf) {
    g.record({ name: "to", inputs: [y], outputs: [logits], backward: ([dy]) => [dy ? g.fresh(y.shape, y) : null] });
  } else logits.edge = y.edge;
  const logs = g.fresh(y.shape, wide);
  g.record({
    ...{ name: "log_softmax", inputs: [logits], outputs: [logs], saved: [logs] },
    backward: ([dy]) => [dy ? g.fresh(y.shape, wide) : null],
  });
  g.release(logits);
  const loss = g.fresh([], wide);
  g.record({
    ...{ name: "nll_loss", inputs: [logs], outputs: [loss], saved: [logs, labels] },
    backward: ([dy]) => [dy ? g.fresh(y.shape, wide) : null],
  });
  g.release(logs);
  return loss;
}

function meanOfSquares(g: Autograd, y: EagerTensor): EagerTensor {
  const squares = g.fresh(y.shape, y);
  g.record({
    ...{ name: "pow", inputs: [y], outputs: [squares], saved: [y] },
    backward: ([dy]) => {
      if (!dy) return [];
      // grad * (2 * y.pow(1))
      const [power, twice] = [g.fresh(y.shape, y), g.fresh(y.shape, y)];
      const made = g.fresh(y.shape, y);
      g.release(power);
      g.release(twice);
      return [made];
    },
  });
  const mean = g.fresh([], y, contiguousStrides([]));
  g.record({ name: "mean", inputs: [squares], outputs: [mean], backward: ([dy]) => [dy ? g.fresh(y.shape, y) : null] });
  g.release(squares);
  return mean;
}
