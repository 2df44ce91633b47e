/**
 * @file What recorded allocations are for, by the part of the step that made them and by how long they live:
 *
 *   setup      until the end: parameters (moved to the device by PyTorch), or inputs that the user made
 *   forward    until the backward pass: activations; freed before: forward only; never freed: workspace of a library
 *   backward   until the update, and as large as a parameter: gradients; else workspace
 *   update     beyond it: state of the optimizer; else workspace
 */
import { at } from "../base/invariant.ts";
import type { ViewKind } from "./picture.ts";
import type { Stack, StackPhase } from "./snapshot-stack.ts";

export interface Recorded {
  readonly stack: Stack;
  readonly size: number;
  /** The events between which it is live. */
  readonly start: number;
  readonly end: number;
  /** Allocated before the trace begins. */
  readonly early: boolean;
}

/** For each moment, when a phase has its next allocation; `columns` where it has none. */
function nextOf(blocks: readonly Recorded[], columns: number, phases: readonly StackPhase[]): Float64Array {
  const next = new Float64Array(columns + 2).fill(columns);
  for (const { stack, start, early } of blocks) if (!early && phases.includes(stack.phase)) next[start] = start;
  for (let t = columns - 1; t >= 0; t--) if (next[t] === columns) next[t] = at(next, t + 1);
  return next;
}

/** The kind of each block. */
export function kindsOfBlocks(blocks: readonly Recorded[], columns: number): readonly ViewKind[] {
  const backward = nextOf(blocks, columns, ["backward", "recompute"]);
  const update = nextOf(blocks, columns, ["update"]);
  const other = nextOf(blocks, columns, ["setup", "forward", "backward"]);
  const isParameter = ({ stack, end, early }: Recorded): boolean =>
    !early && stack.phase === "setup" && end === columns && stack.isLibrary;
  const parameterSizes = new Set(blocks.filter(isParameter).map(({ size }) => size));
  // without a record of parameters nothing is known about their sizes
  const isGradientSize = (size: number): boolean => parameterSizes.size === 0 || parameterSizes.has(size);
  const rules: Readonly<Record<StackPhase, (block: Recorded) => ViewKind>> = {
    setup: (block) => {
      if (isParameter(block)) return "parameter";
      return block.end === columns ? "input" : "allocation";
    },
    forward: ({ start, end }) => {
      if (end === columns) return "scratch";
      return at(backward, start) < end ? "kept" : "forward";
    },
    recompute: () => "recomputed",
    backward: ({ start, end, size }) => {
      const isKept = at(update, start) < end || end === columns;
      return isKept && isGradientSize(size) ? "gradient" : "scratch";
    },
    update: ({ start, end }) => (at(other, start) < end || end === columns ? "state" : "scratch"),
  };
  return blocks.map((block): ViewKind => {
    if (block.early) return block.end === columns ? "persistent" : "allocation";
    return rules[block.stack.phase](block);
  });
}

/** Why a block has its kind. */
export const RECORDED_REASONS: Readonly<Record<ViewKind, string>> = {
  persistent: "It was there before memory was recorded, and is there at the end.",
  parameter:
    "PyTorch put it on the device outside of a step, and it is there at the end: a parameter or buffer of a module.",
  state: "An optimizer allocated it, and it outlives the step.",
  input: "A line outside of PyTorch allocated it before a step, and it is there at the end.",
  result: "It is a result.",
  kept: "The forward pass allocated it, and it is kept for the backward pass.",
  forward: "The forward pass allocated it, and it is freed before the backward pass begins.",
  recomputed: "A checkpoint computed it again in the backward pass.",
  gradient: "The backward pass allocated it, it has the size of a parameter and is there when the optimizer runs.",
  update: "The optimizer allocated it.",
  scratch: "Workspace: freed within its part of the step, or kept by a library of PyTorch.",
  allocation: "Allocated and freed while memory was recorded.",
};
