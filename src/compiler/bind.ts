/** @file Kernels, loops and copies bound to the addresses of a plan: what a target loads. */
import { at, invariant } from "../base/invariant.ts";
import type { PlacedCopy, PlacedKernel, PlacedProgram, PlacedStep, PlacedTransfer } from "../codegen/placed.ts";
import { int } from "../codegen/script.ts";
import type { Value } from "../ir/graph.ts";
import type { Plan } from "../plan/problem.ts";
import type { CopyStep, Flight } from "../plan/program.ts";
import { spaceOf } from "../plan/space.ts";
import type { PlannedProgram } from "./assembler.ts";

/** The program in an arena that starts at `base` of its memory. */
export function placedProgram(planned: PlannedProgram, planMs: number, base: number): PlacedProgram {
  const { graph, plan, lowered, controls } = planned;
  const places = new Places(plan, base);
  const slots = new Slots();
  const bound = plan.program.steps.flatMap(
    (step, i): { readonly step: PlacedStep; readonly node: typeof step.node }[] => {
      const { node, copy, exchange, queue = 0 } = step;
      const scratch = (plan.scratch[i] ?? []).map((id) => places.buffer(id));
      const unit = controls.get(node);
      const kernel = lowered.get(node);
      if (copy) return [{ node, step: places.transfer(copy, queue) }];
      if (exchange?.kind === "test") return [{ node, step: { kernel: null, exchange: "test" } }];
      if (exchange?.kind === "wait") return [{ node, step: slots.wait(exchange.flight) }];
      if (unit) {
        const script = unit.statements((value) => int(places.value(value)), scratch.map(int));
        return [{ node, step: { kernel: null, script } }];
      }
      if (!kernel) return [];
      let next = 0;
      const addresses = kernel.values.map((value) => (value ? places.value(value) : at(scratch, next++)));
      const bare = { kernel: kernel.kernel, addresses };
      return [{ node, step: exchange ? slots.start(exchange.flight, bare) : bare }];
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

/** The numbers of collectives in flight: the lowest that no other one has at the time. */
class Slots {
  readonly #flights: (Flight | null)[] = [];

  start(flight: Flight, start: PlacedKernel): PlacedStep {
    const free = this.#flights.indexOf(null);
    const slot = free < 0 ? this.#flights.length : free;
    this.#flights[slot] = flight;
    return { kernel: null, exchange: "start", slot, start };
  }

  wait(flight: Flight): PlacedStep {
    const slot = this.#flights.indexOf(flight);
    invariant(slot >= 0, () => "waits for a collective that was not started");
    this.#flights[slot] = null;
    return { kernel: null, exchange: "wait", slot };
  }
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
