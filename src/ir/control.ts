/**
 * @file Descriptions of loops and branches, so that no layer has to know which operation one is: the regions that run
 * (`Control`), and how inputs and results are wired to regions (`Wiring`).
 *
 *   while(c…, k…)   inputs   [carries, consts]
 *                   outputs  [carries, rows, count]
 *                   test     [carries, consts] → [truth]
 *                   body     [index, carries, consts] → [carries, rows]
 */
import type { Graph, Node, Value } from "./graph.ts";
import type { Attrs } from "./op.ts";

/** A region that runs repeatedly, and the values bound to it. */
export interface Loop {
  /** An input that says how many iterations there are, where that is not `length`. */
  readonly count: Value | null;
  readonly carries: readonly Value[];
  /** One row an iteration. */
  readonly xs: readonly Value[];
  readonly consts: readonly Value[];
  readonly body: Graph;
  /** The number of the region that is the body. */
  readonly region: number;
  /** The loop ends when this is false; null where the number of iterations is known beforehand. */
  readonly test: Graph | null;
  /** Results: the last carries, the stacks, and of a loop with a test the number of iterations. */
  readonly last: readonly Value[];
  readonly ys: readonly Value[];
  readonly iterations: Value | null;
  /** The most iterations; 0 where there is no bound. */
  readonly length: number;
  readonly isBounded: boolean;
  /** From the last row to the first. */
  readonly reverse: boolean;
  /** The states that it keeps for its reverse. */
  readonly recording: Recording | null;
  /** Rows of a strip, of a loop that the planner made of a part of the program; 0 for others. */
  readonly strip: number;
}

/** States that a loop keeps for its reverse, and where. */
export interface Recording {
  /** The carries that are stored. */
  readonly states: readonly number[];
  readonly checkpoints: number;
  readonly store: readonly Value[];
  readonly positions: Value;
  /** The body of the last `taped` iterations, which are taped; null where none is. */
  readonly full: Graph | null;
  readonly taped: number;
  readonly tapes: readonly Value[];
}

/** The reverse of a loop from states. */
export interface Reversal {
  readonly count: Value;
  /** Whether the loop was recorded: states are its store, and `positions` says where they are. Else first states. */
  readonly isRecorded: boolean;
  readonly states: readonly Value[];
  readonly positions: Value | null;
  readonly adjoints: readonly Value[];
  readonly xs: readonly Value[];
  readonly consts: readonly Value[];
  readonly tapes: readonly Value[];
  readonly step: Graph;
  readonly back: Graph;
  readonly tail: Graph | null;
  readonly last: readonly Value[];
  readonly ws: readonly Value[];
  /** The storage of the recorded states and of their positions. */
  readonly storeAfter: readonly Value[];
  readonly positionsAfter: Value | null;
  readonly length: number;
  /** States stored at once; 0 leaves it to the planner. */
  readonly checkpoints: number;
}

/** A loop, the reverse of one, or a branch: the region that the first input chooses. */
export type Control =
  | { readonly kind: "loop"; readonly loop: Loop }
  | { readonly kind: "reversal"; readonly reversal: Reversal }
  | { readonly kind: "branch" };

/**
 * Values with one role. *fixed* ones are always present; a *carry* is passed to the next run under the same number; of a stack
 * one *row* is read in each run, a *const* is the same in all; a *result* is only returned.
 */
export interface Group {
  readonly kind: "fixed" | "carry" | "row" | "const" | "result";
  readonly size: number;
  /** The attribute that is their number. */
  readonly attr?: string;
}

/** Groups in the order of inputs, results, and parameters and results of regions. Constants come last. */
export interface Wiring {
  readonly inputs: readonly Group[];
  readonly outputs: readonly Group[];
  readonly regions: readonly { readonly params: readonly Group[]; readonly results: readonly Group[] }[];
  /** Regions run many times: values that they compute only from constants are worth hoisting. */
  readonly repeats: boolean;
  /** Attributes that speak of inputs by number, as they are once these have other numbers. */
  readonly forgets: Attrs;
}

/** One value that is always present: the number of a row, a count, the result of a test. */
export const ONE: Group = { kind: "fixed", size: 1 };

const controlOf = (node: Node): Control | null => {
  const { lower } = node.op;
  return lower.kind === "control" ? lower.control(node) : null;
};

/** The loop that a node is; null for any other node. */
export function loopOf(node: Node): Loop | null {
  const control = controlOf(node);
  return control?.kind === "loop" ? control.loop : null;
}

/** The reverse of a loop that a node is; null for any other node. */
export function reversalOf(node: Node): Reversal | null {
  const control = controlOf(node);
  return control?.kind === "reversal" ? control.reversal : null;
}

/** How a node is wired, if passes may change that; null for other nodes, and where the planner decided about it. */
export function wiringOf(node: Node): Wiring | null {
  const { lower } = node.op;
  return lower.kind === "control" ? lower.wiring(node) : null;
}

/** Items by their groups. */
export function byGroup<T>(items: readonly T[], groups: readonly Group[]): readonly (readonly [Group, readonly T[]])[] {
  let from = 0;
  return groups.map((group) => {
    from += group.size;
    return [group, items.slice(from - group.size, from)] as const;
  });
}

/** Attributes with new numbers of members. */
export function withSizes(attrs: Attrs, wiring: Wiring, sizeOf: (group: Group) => number): Attrs {
  const sizes = wiring.inputs.flatMap((group) => (group.attr ? [[group.attr, sizeOf(group)] as const] : []));
  return { ...attrs, ...Object.fromEntries(sizes), ...wiring.forgets };
}
