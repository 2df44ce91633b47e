/** @file Kernels, loops and copies bound to the addresses of a plan: what a target loads. */
import { at, invariant } from "../base/invariant.ts";
import {
  callStatement,
  type PlacedCopy,
  type PlacedKernel,
  type PlacedProgram,
  type PlacedStep,
  type PlacedTransfer,
} from "../codegen/placed.ts";
import { exchangeStatements, int } from "../codegen/script.ts";
import type { Value } from "../ir/graph.ts";
import type { Lowered } from "../lower/lower.ts";
import type { Plan } from "../plan/problem.ts";
import type { CopyStep } from "../plan/program.ts";
import { spaceOf } from "../plan/space.ts";
import type { PlannedProgram } from "./assembler.ts";

/** The program in an arena that starts at `base` of its memory. */
export function placedProgram(planned: PlannedProgram, planMs: number, base: number): PlacedProgram {
  const { graph, plan, lowered, controls } = planned;
  const places = new Places(plan, base);
  const bound = plan.program.steps.flatMap(
    (step, i): { readonly step: PlacedStep; readonly node: typeof step.node }[] => {
      const { node, copy, exchange, queue = 0 } = step;
      const scratch = (plan.scratch[i] ?? []).map((id) => places.buffer(id));
      const unit = controls.get(node);
      const kernel = lowered.get(node);
      if (copy) return [{ node, step: places.transfer(copy, queue) }];
      if (unit) {
        const script = unit.statements((value) => int(places.value(value)), scratch.map(int));
        return [{ node, step: { kernel: null, script } }];
      }
      const bare = kernel && placedKernel(kernel, (value) => places.value(value), scratch);
      if (exchange) {
        const script = exchangeStatements(exchange, bare ? [callStatement(bare)] : []);
        return [{ node, step: { kernel: null, script } }];
      }
      return bare ? [{ node, step: bare }] : [];
    },
  );
  const copies = plan.copies.map(
    ({ from, to }): PlacedCopy => ({
      from: places.buffer(from),
      to: places.buffer(to),
      bytes: at(plan.problem.buffers, from).bytes,
    }),
  );
  return {
    ...{ graph, plan, base, planMs, copies },
    kernels: bound.map(({ step }) => step),
    kernelNodes: bound.map(({ node }) => node),
    params: plan.program.params.map((param) => places.value(param)),
    results: plan.resultBuffers.map((id) => places.buffer(id)),
  };
}

/** Operands in their order; workspaces are the others. */
function placedKernel(
  { kernel, values }: Lowered,
  place: (value: Value) => number,
  scratch: readonly number[],
): PlacedKernel {
  let next = 0;
  return { kernel, addresses: values.map((value) => (value ? place(value) : at(scratch, next++))) };
}

class Places {
  readonly #plan: Plan;
  readonly #base: number;
  /** Copies between spaces by what they write, numbered in the order of their starts. */
  readonly #copies = new Map<Value, { readonly copy: number; readonly queue: number }>();

  constructor(plan: Plan, base: number) {
    this.#plan = plan;
    this.#base = base;
  }

  /** Only the first space shares its memory with others. */
  buffer(id: number): number {
    const offset = this.#plan.offsets[id] ?? 0;
    return this.#plan.problem.buffers[id]?.space ? offset : this.#base + offset;
  }

  value(value: Value): number {
    const id = this.#plan.bufferOf.get(value);
    invariant(id !== undefined, () => `${value.name ?? value.id} has no place`);
    return this.buffer(id);
  }

  transfer({ kind, from, to }: CopyStep, queue: number): PlacedTransfer {
    const { program, problem, bufferOf } = this.#plan;
    const started = this.#copies.get(to) ?? { copy: this.#copies.size, queue };
    this.#copies.set(to, started);
    const end = (value: Value) => ({ space: spaceOf(program, value), address: this.value(value) });
    const { bytes } = at(problem.buffers, bufferOf.get(to) ?? -1);
    return { kernel: null, transfer: kind, ...started, from: end(from), to: end(to), bytes };
  }
}
