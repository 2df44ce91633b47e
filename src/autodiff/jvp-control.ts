/**
 * @file Forward mode through loops and branches: the same loop over values and tangents side by side. Every group of
 * inputs is followed by the tangents of those of its members that have one:
 *
 *   scan(c…,       xs…,        k…)             body(i, c…,       x…,       k…)       → c…,       y…
 *   scan(c…, t_c…, xs…, t_xs…, k…, t_k…)       body(i, c…, t_c…, x…, t_x…, k…, t_k…) → c…, t_c…, y…, t_y…
 *
 * A carry has a tangent as soon as any iteration gives it one, so these carries are found by iterating to a fixed
 * point. The operation declares its groups (ir/control.ts).
 */
import { at, invariant } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import { byGroup, type Group, wiringOf, withSizes } from "../ir/control.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { newValue } from "../ir/graph.ts";
import { isFloat } from "../kernel/dtype.ts";
import { full, fullLike } from "../ops/create.ts";
import { reached } from "./activity.ts";

export interface Transformed {
  readonly graph: Graph;
  /** For each result, which of the tangents at the end is its own; null when it is zero or not a float. */
  readonly tangentOf: readonly (number | null)[];
}

type Transform = (graph: Graph, active: readonly boolean[], allResults: boolean) => Transformed;

export interface Pushed {
  readonly outputs: readonly Value[];
  readonly tangents: readonly (Value | undefined)[];
}

type Tangents = readonly (Value | null)[];

/** Results and their tangents from a node's outputs, in groups: each group of results, then the tangents it has. */
class Groups {
  readonly sizes: readonly number[];
  /** Per result, whether it has a tangent. */
  readonly has: readonly boolean[];

  constructor(sizes: readonly number[], has: readonly boolean[]) {
    this.sizes = sizes;
    this.has = has;
  }

  /** Items and those of their companions that there are, group by group. */
  join<T>(items: readonly T[], companion: (i: number) => T | null): readonly T[] {
    const joined: T[] = [];
    let from = 0;
    for (const count of this.sizes) {
      const numbers = Array.from({ length: count }, (_, n) => from + n);
      joined.push(...numbers.map((i) => at(items, i)));
      for (const i of numbers) {
        const other = this.has[i] ? companion(i) : null;
        if (other !== null) joined.push(other);
      }
      from += count;
    }
    return joined;
  }

  /** The reverse. */
  split(made: readonly Value[]): Pushed {
    const outputs: Value[] = [];
    const tangents: (Value | undefined)[] = [];
    let [next, from] = [0, 0];
    for (const count of this.sizes) {
      outputs.push(...made.slice(next, next + count));
      next += count;
      for (let i = from; i < from + count; i++) tangents.push(this.has[i] ? made[next++] : undefined);
      from += count;
    }
    return { outputs, tangents };
  }
}

/** A region with tangents beside its parameters and results; `pushed` is the region over values and tangents. */
function widened(region: Graph, { graph, tangentOf }: Transformed, params: Groups, results: Groups): Graph {
  const count = region.params.length;
  const given = graph.params.slice(count);
  const owner = params.has.flatMap((has, i) => (has && isFloat(at(region.params, i).type.dtype) ? [i] : []));
  const b = new Build(region.name);
  b.params.push(...params.join(graph.params.slice(0, count), (i) => given[owner.indexOf(i)] ?? null));
  b.nodes.push(...graph.nodes);
  const own = graph.results.slice(0, region.results.length);
  const tangents = graph.results.slice(own.length);
  const tangent = (i: number): Value => {
    const n = tangentOf[i] ?? null;
    return n === null ? b.call(full, [], { ...at(own, i).type, value: 0 }) : at(tangents, n);
  };
  return b.finish(results.join(own, tangent));
}

/** Parameters added to a region, which it does not read. */
function withUnused(region: Graph, params: Groups): Graph {
  return { ...region, params: params.join(region.params, (i) => newValue(at(region.params, i).type, "unused")) };
}

/** By group, which of its members have a tangent. */
class WithTangents {
  readonly #of = new Map<Group, boolean[]>();

  of(group: Group): boolean[] {
    const own = this.#of.get(group) ?? new Array<boolean>(group.size).fill(false);
    this.#of.set(group, own);
    return own;
  }

  list(groups: readonly Group[]): Groups {
    return new Groups(
      groups.map(({ size }) => size),
      groups.flatMap((group) => this.of(group)),
    );
  }

  /** Adds members to groups; returns whether any were new. */
  add(groups: readonly Group[], has: readonly boolean[]): boolean {
    let grown = false;
    for (const [group, more] of byGroup(has, groups)) {
      const own = this.of(group);
      more.forEach((one, i) => {
        if (!one || own[i]) return;
        own[i] = true;
        grown = true;
      });
    }
    return grown;
  }
}

const count = (has: readonly boolean[]): number => has.filter((one) => one).length;

/** The node over values and tangents; `given` is beside its inputs. */
export function pushControl(b: Build, node: Node, given: Tangents, transform: Transform): Pushed {
  const wiring = wiringOf(node);
  invariant(wiring, () => `${node.op.name}: what the planner decided is not differentiated`);
  const tangents = new WithTangents();
  tangents.add(
    wiring.inputs,
    given.map((tangent) => tangent !== null),
  );
  const wired = node.regions.map((region, n) => ({ region, ...at(wiring.regions, n) }));
  const isCarry = ({ kind }: Group): boolean => kind === "carry";
  // Carries that some iteration gives a tangent.
  for (let grown = true; grown; ) {
    grown = false;
    for (const { region, params, results } of wired) {
      const next = byGroup(reached(region, tangents.list(params).has), results).filter(([group]) => isCarry(group));
      for (const [group, has] of next) grown = tangents.add([group], has) || grown;
    }
  }
  const isDifferentiated = (results: readonly Group[]): boolean => results.some(({ kind }) => kind !== "fixed");
  const pushed = wired.map(({ region, params, results }) =>
    isDifferentiated(results) ? transform(region, tangents.list(params).has, false) : null,
  );
  // A result has a tangent if it has one in any region that gives it.
  wired.forEach(({ results }, n) => {
    const tangentOf = pushed[n]?.tangentOf ?? [];
    const has = byGroup(
      tangentOf.map((tangent) => tangent !== null),
      results,
    );
    for (const [group, own] of has) if (group.kind === "result") tangents.add([group], own);
  });
  const regions = wired.map(({ region, params, results }, n) => {
    const own = pushed[n];
    return own
      ? widened(region, own, tangents.list(params), tangents.list(results))
      : withUnused(region, tangents.list(params));
  });
  // Zeros for carries that get a tangent later.
  const groups = tangents.list(wiring.inputs);
  const inputs = groups.join(node.inputs, (i) => given[i] ?? fullLike(b, at(node.inputs, i), 0));
  const attrs = withSizes(node.attrs, wiring, (group) => group.size + count(tangents.of(group)));
  return tangents.list(wiring.outputs).split(b.callAll(node.op, inputs, attrs, { regions }));
}
