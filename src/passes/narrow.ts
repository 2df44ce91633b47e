/**
 * @file Removes unused operands and results of loops and branches: results without readers, carries that only such results
 * depend on, inputs that no region reads. Used by `dce`, which knows which values are needed.
 *
 *   a, b, ys = scan(a₀, b₀, xs, k)        only a is read, and a's next value depends on a and k:
 *   a        = scan(a₀, k)
 *
 * A carry is needed if its last value is, or if the next value of a carry that is needed depends on it: computed as
 * a fixed point.
 */

import { at } from "../base/invariant.ts";
import { byGroup, type Group, type Wiring, wiringOf, withSizes } from "../ir/control.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { nodeLike } from "../ir/graph.ts";
import { nodesFor } from "../ir/walk.ts";

type Wanted = (value: Value) => boolean;

/** Removes what no result depends on; of regions too. */
export type Live = (graph: Graph) => Graph;

/** The parameters that some results depend on. */
export function readsFor(graph: Graph, results: readonly Value[]): ReadonlySet<Value> {
  const read = new Set(results);
  for (const node of nodesFor(graph, results)) for (const value of node.inputs) read.add(value);
  return read;
}

const pick = <T>(items: readonly T[], some: readonly boolean[]): readonly T[] => items.filter((_, i) => some[i]);
const count = (some: readonly boolean[]): number => some.filter((one) => one).length;

/**
 * Which carries are needed: `states` are parameters of the body, its results begin with their next values. `others` are
 * results that are needed in any case.
 */
export function neededCarries(
  body: Graph,
  states: readonly Value[],
  first: readonly boolean[],
  others: readonly Value[],
): readonly boolean[] {
  const needed = [...first];
  for (let grown = true; grown; ) {
    const results = [...pick(body.results.slice(0, states.length), needed), ...others];
    const read = readsFor(body, results);
    grown = false;
    states.forEach((state, k) => {
      if (needed[k] || !read.has(state)) return;
      needed[k] = true;
      grown = true;
    });
  }
  return needed;
}

/** A region with some of its parameters and results, and what these depend on. */
function part(region: Graph, params: readonly Value[], results: readonly Value[], live: Live): Graph {
  const same = params.length === region.params.length && results.length === region.results.length;
  return live(same ? region : { ...region, params, results });
}

/** By group, which of its members are needed. */
class Needed {
  readonly #of = new Map<Group, boolean[]>();

  constructor({ outputs }: Node, wiring: Wiring, wanted: Wanted) {
    for (const [group, values] of byGroup(outputs, wiring.outputs)) this.#of.set(group, values.map(wanted));
  }

  of(group: Group): boolean[] {
    const known = this.#of.get(group);
    if (known && group.kind !== "fixed") return known;
    const own = new Array<boolean>(group.size).fill(group.kind === "fixed");
    this.#of.set(group, own);
    return own;
  }

  /** Members of several groups, in order. */
  pick<T>(items: readonly T[], groups: readonly Group[]): readonly T[] {
    return byGroup(items, groups).flatMap(([group, own]) => pick(own, this.of(group)));
  }

  /** Marks the inputs that a region reads for its needed results; returns whether any were new. */
  grow(region: Graph, wired: Wiring["regions"][number]): boolean {
    const read = readsFor(region, this.pick(region.results, wired.results));
    let grown = false;
    for (const [group, own] of byGroup(region.params, wired.params)) {
      const needed = this.of(group);
      own.forEach((param, i) => {
        if (needed[i] || !read.has(param)) return;
        needed[i] = true;
        grown = true;
      });
    }
    return grown;
  }
}

/** A loop or branch with only the members that the wanted results need. */
function narrowed(node: Node, wiring: Wiring, wanted: Wanted, live: Live): Node {
  const needed = new Needed(node, wiring, wanted);
  const wired = node.regions.map((region, n) => [region, at(wiring.regions, n)] as const);
  for (let grown = true; grown; ) grown = wired.map(([region, how]) => needed.grow(region, how)).includes(true);
  return nodeLike(node, {
    inputs: needed.pick(node.inputs, wiring.inputs),
    outputs: needed.pick(node.outputs, wiring.outputs),
    attrs: withSizes(node.attrs, wiring, (group) => count(needed.of(group))),
    regions: wired.map(([region, { params, results }]) =>
      part(region, needed.pick(region.params, params), needed.pick(region.results, results), live),
    ),
  });
}

const sameItems = <T>(a: readonly T[], b: readonly T[]): boolean =>
  a.length === b.length && a.every((item, i) => item === b[i]);

/** The node with only the members that the wanted results need; other nodes with their regions live. */
export function narrow(node: Node, wanted: Wanted, live: Live): Node {
  // Inner nodes first: they may read less afterwards.
  const inner = withLive(node, live);
  const wiring = wiringOf(inner);
  const made = wiring ? narrowed(inner, wiring, wanted, live) : inner;
  const same = sameItems(made.inputs, node.inputs) && sameItems(made.outputs, node.outputs);
  return same && sameItems(made.regions, node.regions) ? node : made;
}

function withLive(node: Node, live: Live): Node {
  return node.regions.length === 0 ? node : nodeLike(node, { regions: node.regions.map(live) });
}
