/**
 * @file Old versions of a tensor that changes. The backward pass, or the replay of a checkpointed call, reads the version
 * that the forward pass read, and all of them would be kept in full. But a change overwrites a window, and the version
 * before it is the version after it with the old window in its place:
 *
 *   forward    y₀ = f(x₀);  o = slice(x₀);  x₁ = slice_update(x₀, u);  y₁ = f(x₁)
 *   backward   … x₁ …;  x₀' = slice_update(x₁, o);  … x₀' …                         kept: x₁ and a window, not x₁ and x₀
 *
 * The backward pass reads the versions in reverse order, so each is written over the one after it, which is dead by then.
 * Where it does not, the older version is kept. Elements are moved and never computed: no bit changes.
 */
import { at } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { newValue, resultOf } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { producersOf } from "../ir/walk.ts";
import { LateReads } from "./late-reads.ts";
import { isView } from "./predicates.ts";

/** Bytes from which saving a window and restoring it is worth two kernels. */
const LEAST_SAVED = 4096;

const isLate = (node: Node): boolean => node.phase !== "forward" || node.replay > 0;

/** A change: the nodes that save the window it overwrites, and that restore it in the version after it. */
interface Change {
  readonly node: Node;
  readonly window: Node;
  readonly restore: Node;
}

function changeOf(node: Node): Change | null {
  const [before, update] = node.inputs;
  const rule = node.op.facts?.change;
  if (!rule || !before || !update || isLate(node)) return null;
  const window = newValue(update.type);
  return {
    node,
    window: { ...node, ...rule.read(node, node.attrs), outputs: [window] },
    restore: { ...node, ...rule.restore(node, resultOf(node), window), outputs: [before] },
  };
}

/** First and last position of late nodes that read a version as a whole. */
interface Span {
  readonly first: number;
  readonly last: number;
}

class Versions {
  readonly #graph: Graph;
  readonly #producer: ReadonlyMap<Value, Node>;
  /** Version → the only change that is made to it. */
  readonly #changes = new Map<Value, Change>();
  readonly #spans = new Map<Value, Span>();
  readonly #restored = new Map<Value, Change>();

  constructor(graph: Graph) {
    this.#graph = graph;
    this.#producer = producersOf(graph);
    const twice = new Set<Value>();
    for (const change of graph.nodes.flatMap((node) => changeOf(node) ?? [])) {
      const before = at(change.node.inputs, 0);
      if (this.#changes.has(before)) twice.add(before);
      this.#changes.set(before, change);
    }
    for (const value of twice) this.#changes.delete(value);
    if (this.#changes.size === 0) return;
    this.#findSpans();
    const newest = new Set([...this.#changes.values()].map(({ node }) => resultOf(node)));
    for (const first of this.#changes.keys()) if (!newest.has(first)) this.#decide(this.#chainFrom(first));
  }

  #findSpans(): void {
    for (const [position, node] of this.#graph.nodes.entries()) {
      if (!isLate(node) || isView(node)) continue;
      for (const value of node.inputs.map((input) => this.#wholeOf(input))) {
        this.#spans.set(value, { first: this.#spans.get(value)?.first ?? position, last: position });
      }
    }
  }

  /** The value that a view has all elements of. */
  #wholeOf(value: Value): Value {
    const node = this.#producer.get(value);
    const [input] = node?.inputs ?? [];
    return node && input && isWholeView(node) ? this.#wholeOf(input) : value;
  }

  /** A version and those after it. */
  #chainFrom(first: Value): readonly Value[] {
    const chain = [first];
    for (let change = this.#changes.get(first); change; change = this.#changes.get(at(chain, chain.length - 1))) {
      chain.push(resultOf(change.node));
    }
    return chain;
  }

  /** From the newest version that is read late to the oldest: versions that can be restored are not kept. */
  #decide(chain: readonly Value[]): void {
    let newer: Span | undefined;
    let between: Change[] = [];
    for (const value of [...chain].reverse()) {
      const change = this.#changes.get(value);
      if (newer && change) between.push(change);
      const span = this.#spans.get(value);
      if (!span) continue;
      const windows = between.reduce((sum, { node }) => sum + byteLength(at(node.inputs, 1).type), 0);
      const isWorth = byteLength(value.type) - windows >= LEAST_SAVED;
      if (newer && isWorth && newer.last < span.first) {
        for (const one of between) this.#restored.set(at(one.node.inputs, 0), one);
      }
      newer = span;
      between = [];
    }
  }

  finish(): Graph {
    if (this.#restored.size === 0) return this.#graph;
    const late = new LateReads(this.#producer, {
      instead: (value) => this.#restored.get(value)?.restore,
      isShared: (node) => !isLate(node) && isWholeView(node),
    });
    const windows = new Map([...this.#restored.values()].map(({ node, window }) => [node, window]));
    const nodes: Node[] = [];
    for (const node of this.#graph.nodes) {
      const window = windows.get(node);
      if (window) nodes.push(window);
      nodes.push(isLate(node) ? late.reading(node, nodes) : node);
    }
    return { ...this.#graph, nodes };
  }
}

/** A view with all elements of its only input. */
function isWholeView(node: Node): boolean {
  const [input] = node.inputs;
  return input !== undefined && isView(node) && byteLength(resultOf(node).type) >= byteLength(input.type);
}

/** The graph with old versions restored from newer ones where late nodes read several. */
export function withRestoredVersions(graph: Graph): Graph {
  return new Versions(graph).finish();
}
