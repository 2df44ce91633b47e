/**
 * @file Forward mode through loops and branches: the same loop over values and tangents side by side. Every group of
 * inputs is followed by the tangents of those of its members that have one:
 *
 *   scan(c…,       xs…,        k…)             body(i, c…,       x…,       k…)       → c…,       y…
 *   scan(c…, t_c…, xs…, t_xs…, k…, t_k…)       body(i, c…, t_c…, x…, t_x…, k…, t_k…) → c…, t_c…, y…, t_y…
 *
 * A carry has a tangent as soon as any turn gives it one, so the carries that do are found by going round until no more
 * come up.
 */
import { at, invariant } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { newValue } from "../ir/graph.ts";
import { isFloat } from "../kernel/dtype.ts";
import { switchOp } from "../ops/branch.ts";
import { full } from "../ops/create.ts";
import { type ScanAttrs, scan, scanParts, type WhileAttrs, whileLoop, whileParts } from "../ops/loops.ts";
import { type RewindAttrs, rewind, rewindParts } from "../ops/rewind.ts";
import { activeInLoop } from "./activity.ts";

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

/** A region with tangents beside its parameters and results. */
function widened(region: Graph, params: Groups, results: (made: Transformed) => Groups, transform: Transform): Graph {
  const made = transform(region, params.has, false);
  const count = region.params.length;
  const given = made.graph.params.slice(count);
  const owner = params.has.flatMap((has, i) => (has && isFloat(at(region.params, i).type.dtype) ? [i] : []));
  const b = new Build(region.name);
  b.params.push(...params.join(made.graph.params.slice(0, count), (i) => given[owner.indexOf(i)] ?? null));
  b.nodes.push(...made.graph.nodes);
  const own = made.graph.results.slice(0, region.results.length);
  const tangents = made.graph.results.slice(own.length);
  const tangent = (i: number): Value => {
    const n = made.tangentOf[i] ?? null;
    return n === null ? b.call(full, [], { ...at(own, i).type, value: 0 }) : at(tangents, n);
  };
  return b.finish(results(made).join(own, tangent));
}

/** Parameters beside a region's own, which it does not look at. */
function withUnused(region: Graph, params: Groups): Graph {
  return { ...region, params: params.join(region.params, (i) => newValue(at(region.params, i).type, "unused")) };
}

const present = (tangents: Tangents): readonly boolean[] => tangents.map((t) => t !== null);
const count = (has: readonly boolean[]): number => has.filter((one) => one).length;

/** Tangents of inputs, zeros for carries that get one later. */
function tangentsFor(b: Build, inputs: readonly Value[], given: Tangents, has: readonly boolean[]): Tangents {
  return inputs.map((value, i) => (has[i] ? (given[i] ?? b.call(full, [], { ...value.type, value: 0 })) : null));
}

/** Which results of a loop have tangents: carries that are active, and ys whose row has one. */
const loopResults =
  (carries: readonly boolean[], ys: number) =>
  ({ tangentOf }: Transformed): Groups =>
    new Groups(
      [carries.length, ys],
      [...carries, ...tangentOf.slice(carries.length, carries.length + ys).map((n) => n !== null)],
    );

function pushScan(b: Build, node: Node, given: Tangents, transform: Transform): Pushed {
  const { count: turns, carries, xs, consts, body, ys } = scanParts(node);
  const attrs = node.attrs as ScanAttrs;
  const own = turns ? given.slice(1) : given;
  const active = activeInLoop(body, [false, ...present(own)], 1, carries.length).slice(1);
  const inputs = turns ? node.inputs.slice(1) : node.inputs;
  const all = tangentsFor(b, inputs, own, active);
  const groups = new Groups([carries.length, xs.length, consts.length], active);
  let results = new Groups([], []);
  const params = new Groups([1, ...groups.sizes], [false, ...active]);
  const pick = (made: Transformed): Groups => {
    results = loopResults(active.slice(0, carries.length), ys.length)(made);
    return results;
  };
  const region = widened(body, params, pick, transform);
  const [c, x] = [active.slice(0, carries.length), active.slice(carries.length, carries.length + xs.length)];
  const wide = { ...attrs, carries: carries.length + count(c), xs: xs.length + count(x) };
  const joined = groups.join(inputs, (i) => all[i] ?? null);
  return results.split(b.callAll(scan, turns ? [turns, ...joined] : joined, wide, { regions: [region] }));
}

function pushWhile(b: Build, node: Node, given: Tangents, transform: Transform): Pushed {
  const { carries, consts, body, test, ys } = whileParts(node);
  const attrs = node.attrs as WhileAttrs;
  const active = activeInLoop(body, [false, ...present(given)], 1, carries.length).slice(1);
  const all = tangentsFor(b, node.inputs, given, active);
  const groups = new Groups([carries.length, consts.length], active);
  let results = new Groups([], []);
  const pick = (made: Transformed): Groups => {
    results = loopResults(active.slice(0, carries.length), ys.length)(made);
    return results;
  };
  const region = widened(body, new Groups([1, ...groups.sizes], [false, ...active]), pick, transform);
  const wide = { ...attrs, carries: carries.length + count(active.slice(0, carries.length)) };
  const regions = [withUnused(test, groups), region];
  const made = b.callAll(
    whileLoop,
    groups.join(node.inputs, (i) => all[i] ?? null),
    wide,
    { regions },
  );
  const pushed = results.split(made.slice(0, -1));
  return { outputs: [...pushed.outputs, at(made, made.length - 1)], tangents: [...pushed.tangents, undefined] };
}

function pushRewind(b: Build, node: Node, given: Tangents, transform: Transform): Pushed {
  const { count: turns, states: first, adjoints, xs, consts, step, back, ws } = rewindParts(node);
  const attrs = node.attrs as RewindAttrs;
  invariant(!attrs.recorded, () => "a loop with a schedule is not differentiated again");
  const [nc, na, nx] = [first.length, adjoints.length, xs.length];
  const own = given.slice(1);
  const [c, a, rest] = [own.slice(0, nc), own.slice(nc, nc + na), own.slice(nc + na)].map(present);
  if (!c || !a || !rest) return { outputs: [], tangents: [] };
  const states = activeInLoop(step, [false, ...c, ...rest], 1, nc).slice(1, 1 + nc);
  const cts = activeInLoop(back, [false, ...states, ...a, ...rest], 1 + nc, na).slice(1 + nc, 1 + nc + na);
  const active = [...states, ...cts, ...rest];
  const inputs = node.inputs.slice(1);
  const all = tangentsFor(b, inputs, own, active);
  const groups = new Groups([nc, na, nx, consts.length], active);
  const forward = new Groups([1, nc, nx, consts.length], [false, ...states, ...rest]);
  let results = new Groups([], []);
  const pick = (made: Transformed): Groups => {
    results = loopResults(cts, ws.length)(made);
    return results;
  };
  const regions = [
    widened(step, forward, () => new Groups([nc], states), transform),
    widened(back, new Groups([1, ...groups.sizes], [false, ...active]), pick, transform),
  ];
  const wide = {
    ...attrs,
    states: nc + count(states),
    adjoints: na + count(cts),
    xs: nx + count(rest.slice(0, nx)),
    // Values and tangents together are reversed by something else than a transpose.
    wrt: [],
  };
  const joined = groups.join(inputs, (i) => all[i] ?? null);
  return results.split(b.callAll(rewind, [turns, ...joined], wide, { regions }));
}

function pushSwitch(b: Build, node: Node, given: Tangents, transform: Transform): Pushed {
  const active = present(given.slice(1));
  const operands = new Groups([active.length], active);
  const made = node.regions.map((region) => transform(region, active, false));
  // A result has a tangent if it has one in any branch.
  const has = node.outputs.map((_, r) => made.some(({ tangentOf }) => (tangentOf[r] ?? null) !== null));
  const results = new Groups([has.length], has);
  const regions = node.regions.map((region) => widened(region, operands, () => results, transform));
  const inputs = operands.join(node.inputs.slice(1), (i) => given[i + 1] ?? null);
  return results.split(b.callAll(switchOp, [at(node.inputs, 0), ...inputs], {}, { regions }));
}

/** For each form, the node over values and tangents; the tangents given are beside its inputs. */
export const PUSH_CONTROL = { scan: pushScan, while: pushWhile, rewind: pushRewind, switch: pushSwitch } as const;
