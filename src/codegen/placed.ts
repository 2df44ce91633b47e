/** @file A placed program as a target gets it: steps in order, every address known. Numbers are bytes from the arena's start. */
import type { Graph, Node } from "../ir/graph.ts";
import type { Kernel } from "../kernel/loops.ts";
import type { Plan } from "../plan/problem.ts";
import type { Statement } from "./script.ts";

/** A kernel with the address of each operand. */
export interface PlacedKernel {
  readonly kernel: Kernel;
  readonly addresses: readonly number[];
}

/** Kernels in loops and branches. */
export interface PlacedControl {
  readonly kernel: null;
  readonly script: readonly Statement[];
}

/** One step of a program. */
export type PlacedStep = PlacedKernel | PlacedControl;

export const isKernel = (step: PlacedStep): step is PlacedKernel => step.kernel !== null;

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
  /** Kernels, and loops and branches of them. */
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
