/** @file Types that the parts of reverse mode share: cotangents under summation, and a graph with its reverse. */
import type { Build } from "../ir/build.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { add } from "../ops/elementwise.ts";

/** Appends `d_…` sums as contributions arrive. */
export class Cotangents {
  readonly #b: Build;
  readonly #sums = new Map<Value, Value>();

  constructor(b: Build) {
    this.#b = b;
  }

  of(value: Value): Value | null {
    return this.#sums.get(value) ?? null;
  }

  add(value: Value, contribution: Value): void {
    const sum = this.#sums.get(value);
    const hint = value.name ? `d_${value.name}` : undefined;
    this.#sums.set(value, sum ? this.#b.call(add, [sum, contribution], {}, { name: hint }) : contribution);
  }

  /** Replaces the sum so far by `sum`, which includes it. */
  replace(value: Value, sum: Value): void {
    this.#sums.set(value, sum);
  }
}

/**
 * From the cotangents of outputs to those of inputs; null is zero. A pullback that is itself a sweep adds to `all`
 * directly: the order of additions is then that of the nodes inside.
 */
export type Pullback = (cts: readonly (Value | null)[], all: Cotangents) => readonly (Value | null)[];

/** Where the cotangent of a float result comes from: a new parameter, ones, or there is none. */
export type Seed = "param" | "one" | "zero";

export interface JointRequest {
  /** Parameters that derivatives are taken with respect to. */
  readonly active: readonly boolean[];
  /** Per result; default: a parameter. */
  readonly seeds: readonly Seed[];
  /** Parameters whose cotangents are added to a sum that is a further parameter. */
  readonly sums?: readonly boolean[];
}

/** A graph and its reverse under construction. */
export interface Joint {
  readonly b: Build;
  /** Beside the graph's own. */
  readonly params: readonly Value[];
  readonly results: readonly Value[];
  /** The nodes before this one are the graph's, those from it on its reverse. */
  readonly forwardNodes: number;
  /** Parameters for the cotangents of results and for sums, null where there is none. */
  readonly seedParams: readonly (Value | null)[];
  readonly sumParams: readonly (Value | null)[];
  /** Per parameter; null is zero. */
  readonly cotangents: readonly (Value | null)[];
}

export type JointOf = (graph: Graph, request: JointRequest) => Joint;

/** Where reverse mode appends. */
export interface ReverseContext {
  readonly b: Build;
  readonly joint: JointOf;
  /** Appends a copy of a node with new outputs, with the marks of the sweep. */
  append(node: Node): Node;
}

/** A node in the forward part, and its reverse. */
export interface Reversed {
  readonly outputs: readonly Value[];
  readonly activeOutputs: readonly boolean[];
  readonly pullback: Pullback;
}
