/** @file A placed program as a target gets it: steps in order, every address known. Numbers are bytes from the arena's start. */
import type { Kernel } from "../kernel/loops.ts";
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
