/**
 * @file Programs for tests of the planner: a builder with made-up operations, a training step of a small network, and
 * random programs with everything that a real one can have (renamings, several results of a step, workspace, donated and
 * persistent parameters, results that are parameters, values of no bytes).
 */
import fc from "fast-check";
import type { CollectiveFact } from "../../src/ir/facts.ts";
import { type Node, newValue, type Phase, type Value } from "../../src/ir/graph.ts";
import type { AnyOp, Attrs, OpDef } from "../../src/ir/op.ts";
import { byteLength, type Shape, tensorType } from "../../src/ir/type.ts";
import type { PlanStep, Program } from "../../src/plan/program.ts";
import { memorySpace } from "../../src/plan/space.ts";

/** An operation that has a name and nothing else that a planner could ask for; `all_reduce` exchanges with other devices. */
export function fakeOp(name: string): AnyOp {
  const op: OpDef = {
    name,
    defaults: {},
    infer: () => [],
    derivative: { kind: "none" },
    cost: () => ({ flops: 0 }),
    lower: { kind: "shuffle" },
    alias: null,
    simplify: () => null,
    evaluate: () => [],
    samples: () => [],
  };
  if (name !== "all_reduce") return op;
  return { ...op, facts: { collective: { what: "all_reduce" } as unknown as CollectiveFact<Attrs> } };
}

const ops = new Map<string, AnyOp>();

export interface StepOptions {
  readonly name?: string;
  readonly shape?: Shape;
  /** Reads that the result may be written over. */
  readonly over?: readonly Value[];
  readonly scratch?: readonly number[];
  readonly phase?: Phase;
  readonly where?: string;
}

export interface FinishOptions {
  readonly donated?: readonly (readonly [Value, number])[];
  readonly persistent?: readonly Value[];
  readonly alignment?: number;
}

export class ProgramBuilder {
  readonly #params: Value[] = [];
  readonly #steps: PlanStep[] = [];

  param(name: string, shape: Shape): Value {
    const value = newValue(tensorType("f32", shape), name);
    this.#params.push(value);
    return value;
  }

  /** A kernel with one result of the first operand's shape, unless told otherwise. */
  call(op: string, reads: readonly Value[], options: StepOptions = {}): Value {
    const shape = options.shape ?? reads[0]?.type.shape ?? [];
    const value = newValue(tensorType("f32", shape), options.name);
    const inPlace = (options.over ?? []).map((read) => [read, value] as const);
    this.step(op, { reads, writes: [value], inPlace }, options);
    return value;
  }

  /** The same bytes under another name. */
  rename(read: Value, options: StepOptions = {}): Value {
    const value = newValue(tensorType("f32", options.shape ?? [byteLength(read.type) / 4]), options.name);
    this.step("reshape", { reads: [read], writes: [value], alias: [read, value] }, options);
    return value;
  }

  step(op: string, parts: Partial<PlanStep> & Pick<PlanStep, "reads" | "writes">, options: StepOptions = {}): void {
    const definition = ops.get(op) ?? fakeOp(op);
    ops.set(op, definition);
    const node: Node = {
      op: definition,
      inputs: parts.reads,
      attrs: {},
      outputs: parts.writes,
      regions: [],
      phase: options.phase ?? "forward",
      where: options.where,
      replay: 0,
    };
    const reads = [...new Set(parts.reads)];
    this.#steps.push({ node, scratch: options.scratch ?? [], inPlace: [], alias: null, ...parts, reads });
  }

  finish(name: string, results: readonly Value[], options: FinishOptions = {}): Program {
    return {
      name,
      params: this.#params,
      donated: new Map(options.donated ?? []),
      results,
      steps: this.#steps,
      persistent: new Set(options.persistent ?? []),
      spaces: [memorySpace(options.alignment ?? 64)],
    };
  }
}

/** A multilayer perceptron's training step: forward, backward, and the updates of all weights at the end. */
export function trainingStep(layers = 2, width = 32, batch = 16): Program {
  const b = new ProgramBuilder();
  const x = b.param("x", [batch, width]);
  const weights = Array.from({ length: layers }, (_, i) => b.param(`w${i}`, [width, width]));
  const inputs: Value[] = [];
  let h = x;
  for (const [i, w] of weights.entries()) {
    inputs.push(h);
    const z = b.call("matmul", [h, w], {
      name: `z${i}`,
      shape: [batch, width],
      scratch: [1024],
      where: `model.ts:${10 + i}:3`,
    });
    h = b.call("relu", [z], { name: `h${i}`, over: [z] });
  }
  const loss = b.call("loss", [h], { name: "loss", shape: [] });
  let ct = b.call("loss_grad", [h], { name: "d_h", phase: "backward" });
  const gradients: Value[] = [];
  for (let i = layers - 1; i >= 0; i--) {
    const w = weights[i]!;
    gradients.unshift(
      b.call("matmul_t", [inputs[i]!, ct], {
        name: `d_w${i}`,
        shape: [width, width],
        phase: "backward",
        scratch: [1024],
      }),
    );
    if (i > 0)
      ct = b.call("back", [ct, w, inputs[i]!], {
        name: `d_h${i}`,
        shape: [batch, width],
        phase: "backward",
        over: [inputs[i]!],
      });
  }
  const updated = weights.map((w, i) =>
    b.call("sgd", [w, gradients[i]!], { name: `w${i}`, phase: "update", over: [w, gradients[i]!] }),
  );
  return b.finish("train", [loss, ...updated], {
    donated: weights.map((w, i) => [w, i + 1] as const),
    persistent: weights,
  });
}

/** Shapes of random values; few sizes, so that values can share storage, and one of no bytes. */
const SHAPES: readonly Shape[] = [[16], [16], [48], [], [0], [5], [100]];

interface StepChoice {
  readonly kind: number;
  readonly reads: readonly number[];
  readonly writes: readonly number[];
  readonly scratch: readonly number[];
  readonly allow: number;
  readonly phase: number;
}

const stepChoice: fc.Arbitrary<StepChoice> = fc.record({
  kind: fc.nat(9),
  reads: fc.array(fc.nat(1000), { maxLength: 4 }),
  writes: fc.array(fc.nat(SHAPES.length - 1), { minLength: 1, maxLength: 3 }),
  scratch: fc.array(fc.constantFrom(0, 7, 64, 300), { maxLength: 2 }),
  allow: fc.nat(255),
  phase: fc.nat(2),
});

const paramChoice = fc.record({
  shape: fc.nat(SHAPES.length - 1),
  persistent: fc.boolean(),
  donated: fc.nat(3),
  replacement: fc.nat(1000),
});

/** Any program that `checkProgram` accepts. */
export const randomProgram: fc.Arbitrary<Program> = fc
  .record({
    params: fc.array(paramChoice, { maxLength: 5 }),
    steps: fc.array(stepChoice, { maxLength: 14, size: "max" }),
    results: fc.array(fc.nat(1000), { maxLength: 5 }),
    alignment: fc.constantFrom(1, 4, 64),
  })
  .map(({ params, steps, results, alignment }) => {
    const b = new ProgramBuilder();
    const values: Value[] = params.map((p, i) => b.param(`p${i}`, SHAPES[p.shape]!));
    const inputs = [...values];
    for (const choice of steps) values.push(...addStep(b, choice, values));
    const returned = values.length > 0 ? results.map((r) => values[r % values.length]!) : [];
    const donated: (readonly [Value, number])[] = [];
    params.forEach((p, i) => {
      const param = inputs[i]!;
      if (p.donated === 0) return;
      const fitting = returned.flatMap((r, k) => (byteLength(r.type) === byteLength(param.type) ? [k] : []));
      donated.push([param, p.donated === 1 || fitting.length === 0 ? -1 : fitting[p.replacement % fitting.length]!]);
    });
    const persistent = inputs.filter((_, i) => params[i]?.persistent);
    return b.finish("random", returned, { donated, persistent, alignment });
  });

function addStep(b: ProgramBuilder, choice: StepChoice, values: readonly Value[]): Value[] {
  const phase = (["forward", "backward", "update"] as const)[choice.phase]!;
  // Recent values are read more often, so that lifespans have different lengths.
  const pick = (r: number): Value =>
    r % 2 === 0 ? values[r % values.length]! : values[values.length - 1 - (r % Math.min(3, values.length))]!;
  const reads = values.length > 0 ? [...new Set(choice.reads.map(pick))] : [];
  if (choice.kind < 2 && reads[0]) return [b.rename(reads[0], { phase })];
  const writes = choice.writes.map((s) => newValue(tensorType("f32", SHAPES[s]!)));
  const pairs = reads.flatMap((r) => writes.map((w) => [r, w] as const));
  const inPlace = pairs.filter(
    ([r, w], i) => byteLength(r.type) === byteLength(w.type) && ((choice.allow >> (i % 8)) & 1) === 1,
  );
  b.step("op", { reads, writes, inPlace, scratch: choice.scratch }, { phase });
  return writes;
}
