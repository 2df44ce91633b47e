/**
 * @file Smaller residuals of the backward pass. For values that it only compares, the bits of the comparisons are kept
 * (predicates.ts); a comparison, or another elementwise function, of values that are kept anyway is recomputed:
 *
 *   c = gt(h, 0);  y = where(c, h, …);  z = matmul(h, w)      h is kept for the weights: backward recomputes c
 *   y = gelu(x)                                               backward reads x and y: it recomputes y from x
 *
 * Whole numbers with a known limit are kept in few bits (few-bit-numbers.ts). Before that, rows between loops and their reverses (loop-residuals.ts), and versions of tensors that change
 * (restore-versions.ts). No bit of a result changes: recomputed nodes are the same operations on the same operands.
 *
 * Replays of checkpointed calls are separate forward parts: their backward reads values of the replay.
 */

import { at } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { nodeLike, resultOf } from "../ir/graph.ts";
import { byteLength, elementsOf } from "../ir/type.ts";
import { producersOf, type Use, usersOf, withLiveNodes } from "../ir/walk.ts";
import { graphCost } from "../ops/control.ts";
import { isControl } from "./control-nodes.ts";
import { withFewBits } from "./few-bit-numbers.ts";
import { LateReads } from "./late-reads.ts";
import { withSmallerRows } from "./loop-residuals.ts";
import { packing, placeOf, unpacking } from "./packing.ts";
import type { Pass } from "./pass.ts";
import { chooseBits, isView, LEAST_SAVED, type MakerAndReader, PartReads } from "./predicates.ts";
import { withRestoredVersions } from "./restore-versions.ts";

/** Work an element up to which a truth value, or a number, is recomputed from kept values. */
const MOST_FLOPS = { bool: 4, number: 32 };
/** Share of a program's work that recomputed numbers may add; more needs a budget. */
const MOST_SHARE = 1 / 16;

const isForward = (node: Node): boolean => node.phase === "forward" || node.replay > 0;

function flopsOf(node: Node): number {
  const inputs = node.inputs.map((value) => value.type);
  return node.op.cost(inputs, [resultOf(node).type], node.attrs, node.regions).flops;
}

const flopsAnElement = (node: Node): number => flopsOf(node) / Math.max(1, elementsOf(resultOf(node).type.shape));

const isPointwise = ({ op: { lower } }: Node): boolean => lower.kind === "map" && lower.pointwise === true;

class Residuals {
  readonly #graph: Graph;
  readonly #producer: ReadonlyMap<Value, Node>;
  readonly #users: ReadonlyMap<Value, readonly Use[]>;
  readonly #position: ReadonlyMap<Node, number>;
  readonly #reads: PartReads;
  /** The value that backward nodes read in place of another. */
  readonly #instead = new Map<Value, Node>();
  /** Replacements of backward nodes, and nodes to insert after forward nodes. */
  readonly #become = new Map<Node, Node>();
  readonly #behind = new Map<Node, Node[]>();

  constructor(graph: Graph) {
    this.#graph = graph;
    this.#producer = producersOf(graph);
    this.#users = usersOf(graph);
    this.#position = new Map(graph.nodes.map((node, i) => [node, i]));
    const params = new Set(graph.params);
    const parts: MakerAndReader = {
      isMade: (value) => this.#makerOf(value) !== null,
      isFree: (value) => params.has(value),
      isReader: (node) => !isForward(node),
      areTogether: (made) => new Set([...made].map((value) => this.#makerOf(value)?.replay)).size === 1,
      kept: this.#readByReplays(),
    };
    this.#reads = new PartReads(graph, this.#producer, parts);
    const again = this.#computedAgain();
    for (const [value, node] of again) this.#instead.set(value, node);
    const predicates = new Map([...this.#reads.predicates].filter(([value]) => !again.has(value)));
    for (const predicate of chooseBits({ whole: this.#reads.whole, predicates })) this.#keepBits(predicate);
  }

  /** The forward node that makes a value, null for views and for values of backward nodes. */
  #makerOf(value: Value): Node | null {
    const node = this.#producer.get(value);
    return node && isForward(node) && !isView(node) ? node : null;
  }

  /** The value that a value is a view of; not constants. */
  #viewed(value: Value): readonly Value[] {
    const node = this.#producer.get(value);
    return node && isView(node) ? node.inputs.flatMap((input) => this.#viewed(input)) : [value];
  }

  /** Forward values that the replay of a call reads, and those of other replays. */
  #readByReplays(): ReadonlySet<Value> {
    const kept = new Set<Value>();
    for (const node of this.#graph.nodes) {
      if (node.replay === 0 || isView(node)) continue;
      for (const value of node.inputs.flatMap((input) => this.#viewed(input))) {
        const maker = this.#makerOf(value);
        if (maker && maker.replay !== node.replay) kept.add(value);
      }
    }
    return kept;
  }

  /** Values that backward nodes recompute cheaply from values that are kept anyway, with their nodes. */
  #computedAgain(): ReadonlyMap<Value, Node> {
    const found = this.#cheaplyMade(true);
    const numbers = [...found].filter(([value]) => !this.#reads.predicates.has(value));
    const flops = numbers.reduce((sum, [, node]) => sum + flopsOf(node), 0);
    return flops <= MOST_SHARE * graphCost(this.#graph).flops ? found : this.#cheaplyMade(false);
  }

  /** Truth values, and numbers where they count too. */
  #cheaplyMade(withNumbers: boolean): ReadonlyMap<Value, Node> {
    const { whole, predicates } = this.#reads;
    const found = new Map<Value, Node>();
    const results = new Set(this.#graph.results);
    const isThere = (value: Value): boolean => {
      if (found.has(value)) return false;
      return whole.has(value) || this.#producer.get(value) === undefined;
    };
    for (const node of this.#graph.nodes) {
      if (!isForward(node) || isView(node) || !isPointwise(node)) continue;
      const value = resultOf(node);
      const isBool = predicates.has(value);
      if (results.has(value) || !(isBool || (withNumbers && whole.has(value) && this.#isWorthAgain(value)))) continue;
      if (flopsAnElement(node) > MOST_FLOPS[isBool ? "bool" : "number"]) continue;
      if (node.inputs.every((input) => this.#viewed(input).every(isThere))) found.set(value, node);
    }
    return found;
  }

  /** Whether no product or reduction of the backward pass reads a value, nor a replay: it would have to be stored again. */
  #isWorthAgain(value: Value): boolean {
    if (byteLength(value.type) < LEAST_SAVED) return false;
    const isFine = (read: Value): boolean =>
      (this.#users.get(read) ?? []).every(({ node }) => {
        if (isView(node)) return isFine(resultOf(node));
        const maker = this.#makerOf(value);
        return isForward(node) ? node.replay === maker?.replay : isPointwise(node);
      });
    return isFine(value);
  }

  #keepBits(predicate: Value): void {
    const sources = [...(this.#reads.predicates.get(predicate) ?? [])].flatMap((value) => this.#makerOf(value) ?? []);
    const place = (node: Node): number => this.#position.get(node) ?? 0;
    const last = sources.reduce((a, b) => (place(a) > place(b) ? a : b));
    const nodes = packing(this.#reads.nodesOf(predicate), predicate, placeOf(last));
    this.#behind.set(last, [...(this.#behind.get(last) ?? []), ...nodes]);
    const words = resultOf(at(nodes, nodes.length - 1));
    const maker = this.#producer.get(predicate);
    const view = (like: Node): Node => unpacking(words, predicate.type.shape, placeOf(like));
    if (maker && !isForward(maker)) this.#become.set(maker, nodeLike(view(maker), { outputs: [predicate] }));
    else this.#instead.set(predicate, view(last));
  }

  /** The graph with these decisions applied. */
  finish(): Graph {
    if (this.#instead.size === 0 && this.#become.size === 0) return this.#graph;
    const late = new LateReads(this.#producer, {
      instead: (value) => this.#instead.get(value),
      isShared: (node) => isForward(node) && isView(node),
    });
    const nodes: Node[] = [];
    for (const node of this.#graph.nodes) {
      nodes.push(this.#become.get(node) ?? (isForward(node) ? node : late.reading(node, nodes)));
      nodes.push(...(this.#behind.get(node) ?? []));
    }
    return withLiveNodes({ ...this.#graph, nodes });
  }
}

/** The regions of loops and branches are programs of their own. */
function withSmallerRegions(graph: Graph): Graph {
  if (!graph.nodes.some(isControl)) return graph;
  const nodes = graph.nodes.map((node): Node => {
    if (!isControl(node)) return node;
    const regions = node.regions.map(smaller);
    return regions.every((region, i) => region === node.regions[i]) ? node : nodeLike(node, { regions });
  });
  return nodes.every((node, i) => node === graph.nodes[i]) ? graph : { ...graph, nodes };
}

function smaller(graph: Graph): Graph {
  const kept = new Residuals(withRestoredVersions(withSmallerRows(withSmallerRegions(graph)))).finish();
  return withFewBits(kept);
}

/** Keeps bits of comparisons for the backward pass, and recomputes values from those that are kept. */
export const smallerResiduals: Pass = {
  name: "smaller-residuals",
  after: ["inline", "canonicalize", "fold", "cse", "dce", "infer-zero-regions"],
  run: smaller,
};
