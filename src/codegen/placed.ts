/**
 * @file A placed program as a target gets it: steps in order, every address known. Numbers are bytes from the start of the
 * memory that the arena is in; in other memory spaces, from the start of the space.
 */
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import type { Graph, Node } from "../ir/graph.ts";
import type { Kernel } from "../kernel/loops.ts";
import type { Plan } from "../plan/problem.ts";
import type { SpaceId } from "../plan/space.ts";
import { int, type Statement } from "./script.ts";

/**
 * A kernel with the address of each operand.
 *
 * @example
 * import { emitProgram, type PlacedKernel } from "tidemark/wasm";
 *
 * const steps: PlacedKernel[] = [];
 * console.log(emitProgram(steps, [], 64, { fma: false }).functions); // → 0
 */
export interface PlacedKernel {
  readonly kernel: Kernel;
  readonly addresses: readonly number[];
}

/** Kernels in loops and branches, and parts of collectives in flight. */
export interface PlacedControl {
  readonly kernel: null;
  readonly script: readonly Statement[];
}

/** Where one end of a copy between memory spaces is. */
export interface PlacedEnd {
  readonly space: SpaceId;
  readonly address: number;
}

/**
 * Half of a copy between memory spaces (plan/program.ts): `start` passes it to its queue and continues, `wait` continues when it is
 * done. Both halves have the same number.
 */
export interface PlacedTransfer {
  readonly kernel: null;
  readonly transfer: "start" | "wait";
  /** Which copy of the program it is. */
  readonly copy: number;
  /** The queue that copies; every queue does one copy after the other. */
  readonly queue: number;
  readonly from: PlacedEnd;
  readonly to: PlacedEnd;
  readonly bytes: number;
}

/** One step of a program. */
export type PlacedStep = PlacedKernel | PlacedControl | PlacedTransfer;

export const isKernel = (step: PlacedStep): step is PlacedKernel => step.kernel !== null;
export const isTransfer = (step: PlacedStep): step is PlacedTransfer => "transfer" in step;

export const callStatement = ({ kernel, addresses }: PlacedKernel): Statement => ({
  ...{ kind: "kernel", kernel },
  addresses: addresses.map(int),
});

/** A step as code, for targets with one memory; others cannot be reached by them. */
export function statementsOf(step: PlacedStep, target: string): readonly Statement[] {
  if (isTransfer(step)) {
    const summary = `${target} has one memory and no copies to another: space ${step.from.space} to ${step.to.space}`;
    throw new TidemarkError("TargetUnsupported", summary, {
      help: "load the program for the target it was planned for",
    });
  }
  return isKernel(step) ? [callStatement(step)] : step.script;
}

/** Bytes moved within the arena after the last kernel. */
export interface PlacedCopy {
  readonly from: number;
  readonly to: number;
  readonly bytes: number;
}

/** A program with an address for everything. */
export interface PlacedProgram {
  /** After all passes, in the planned order. */
  readonly graph: Graph;
  readonly plan: Plan;
  /** Where the arena starts in its memory, which may hold others beside it; all addresses count from the memory's start. */
  readonly base: number;
  /** Kernels, loops and branches of them, and copies between memory spaces. */
  readonly kernels: readonly PlacedStep[];
  /** The node of each. */
  readonly kernelNodes: readonly Node[];
  readonly copies: readonly PlacedCopy[];
  /** Addresses of parameters and, after the run, of results. */
  readonly params: readonly number[];
  readonly results: readonly number[];
  /** Time spent on passes, kernels and the plan. */
  readonly planMs: number;
}

/** For messages, where steps are: the number in the plan, and the user's line. */
export function stepPlaces({ kernels, kernelNodes, plan }: PlacedProgram): ReadonlyMap<PlacedStep, string> {
  const numbers = new Map(plan.program.steps.map(({ node }, i) => [node, i]));
  return new Map(
    kernels.map((step, i) => {
      const node = at(kernelNodes, i);
      return [step, `step ${numbers.get(node)}${node.where === undefined ? "" : ` at ${node.where}`}`];
    }),
  );
}
