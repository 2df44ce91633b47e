/**
 * @file Loops, branches and calls with known and other values, as a node for the known ones and one for the rest (split.ts). The known
 * results are those of the same node without its other members. The rest of a loop over rows reads residuals of each iteration,
 * which the known loop stacks; what is the same in all iterations is computed once, outside:
 *
 *   scan(c, t_c, xs)       →     known: scan(c, xs) → c, ys, rs          rest: scan(t_c, xs, rs) → t_c, t_ys
 *
 * The rest of other loops and of branches is the node as it was, which computes the known values once more.
 */

import { at } from "../base/invariant.ts";
import { type Loop, loopOf, wiringOf, withSizes } from "../ir/control.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { newValue, nodeLike } from "../ir/graph.ts";
import { withLiveNodes } from "../ir/walk.ts";
import { stackType } from "../ops/region-checks.ts";
import type { Split } from "./split.ts";

type SplitGraph = (graph: Graph, known: readonly boolean[], results?: readonly Value[]) => Split;

/** A node in two. */
interface Parts {
  readonly known: readonly Node[];
  readonly rest: Node;
}

/** A region of a node: which inputs its parameters are, and which outputs its results; null for others. */
interface Bound {
  readonly region: Graph;
  readonly params: readonly (number | null)[];
  readonly results: readonly (number | null)[];
}

const range = (from: number, count: number): readonly number[] => Array.from({ length: count }, (_, i) => from + i);

/** Regions with what they are bound to; null where inputs and results are not simply handed on. */
function boundRegions(node: Node): readonly Bound[] | null {
  const { regions, inputs, outputs } = node;
  const wiring = wiringOf(node);
  if (!wiring) {
    const [region] = regions;
    if (!region || regions.length > 1 || node.op.inlines !== 0) return null;
    return [{ region, params: range(0, inputs.length), results: range(0, outputs.length) }];
  }
  const places = (groups: typeof wiring.inputs) => {
    let next = 0;
    return groups.map((group) => {
      next += group.size;
      return [group, next - group.size] as const;
    });
  };
  const [ofInputs, ofOutputs] = [places(wiring.inputs), places(wiring.outputs)];
  const numbers = (groups: typeof wiring.inputs, among: typeof ofInputs) =>
    groups.flatMap((group) => {
      const place = group.kind === "fixed" ? undefined : among.find(([one]) => one === group);
      return range(place?.[1] ?? 0, group.size).map((n) => (place ? n : null));
    });
  return regions.map((region, n) => ({
    region,
    params: numbers(at(wiring.regions, n).params, ofInputs),
    results: numbers(at(wiring.regions, n).results, ofOutputs),
  }));
}

/** A parameter that is not an input is the number of an iteration. */
const flagsOf = ({ params }: Bound, inputs: readonly boolean[]): readonly boolean[] =>
  params.map((n) => n === null || at(inputs, n));

/** Which inputs stay known in all iterations, and which outputs are known; null if what decides about the node is not. */
function knownMembers(node: Node, regions: readonly Bound[], given: readonly boolean[], split: SplitGraph) {
  const inputs = [...given];
  const wiring = wiringOf(node);
  const isFixed = wiring?.inputs.flatMap(({ kind, size }) => new Array<boolean>(size).fill(kind === "fixed")) ?? [];
  if (isFixed.some((fixed, i) => fixed && !inputs[i])) return null;
  // a carry is an input and an output under one number of its group
  const carried = new Map<number, number>();
  let [input, output] = [0, 0];
  for (const group of wiring?.inputs ?? []) {
    output = 0;
    for (const other of wiring?.outputs ?? []) {
      if (other === group) for (const k of range(0, group.size)) carried.set(output + k, input + k);
      output += other.size;
    }
    input += group.size;
  }
  for (;;) {
    const outputs = node.outputs.map(() => true);
    let isDecided = true;
    for (const bound of regions) {
      const { isKnown } = split(bound.region, flagsOf(bound, inputs));
      bound.results.forEach((n, r) => {
        const known = isKnown.has(at(bound.region.results, r));
        if (n === null) isDecided &&= known;
        else if (!known) outputs[n] = false;
      });
    }
    if (!isDecided) return null;
    let shrunk = false;
    for (const [out, into] of carried) {
      if (inputs[into] && !outputs[out]) {
        inputs[into] = false;
        shrunk = true;
      }
      if (!inputs[into]) outputs[out] = false;
    }
    if (!shrunk) return { inputs, outputs };
  }
}

type Members = NonNullable<ReturnType<typeof knownMembers>>;

/** The node with the known members alone. */
function knownNode(node: Node, regions: readonly Bound[], { inputs, outputs }: Members): Node {
  const wiring = wiringOf(node);
  let from = 0;
  const sizes = new Map(
    (wiring?.inputs ?? []).map((group) => {
      from += group.size;
      return [group, inputs.slice(from - group.size, from).filter((one) => one).length] as const;
    }),
  );
  return nodeLike(node, {
    inputs: node.inputs.filter((_, i) => inputs[i]),
    outputs: node.outputs.filter((_, i) => outputs[i]),
    attrs: wiring ? withSizes(node.attrs, wiring, (group) => sizes.get(group) ?? 0) : node.attrs,
    regions: regions.map((bound) => {
      const flags = flagsOf(bound, inputs);
      const results = bound.region.results.filter((_, r) => {
        const n = at(bound.results, r);
        return n === null || outputs[n];
      });
      const live = withLiveNodes({ ...bound.region, results });
      return { ...live, params: bound.region.params.filter((_, i) => flags[i]) };
    }),
  });
}

/** Of values, those marked and the others. */
function parted<T>(values: readonly T[], marks: readonly boolean[]): readonly [readonly T[], readonly T[]] {
  return [values.filter((_, i) => marks[i]), values.filter((_, i) => !marks[i])];
}

/** Values that are the same in all iterations. */
function invariants(nodes: readonly Node[], consts: readonly Value[]): ReadonlySet<Value> {
  const found = new Set(consts);
  for (const { inputs, outputs } of nodes) {
    if (inputs.every((value) => found.has(value))) for (const value of outputs) found.add(value);
  }
  return found;
}

/** Nodes that compute values of a body from what is outside of the loop, for those that are the same in all iterations. */
interface Hoisted {
  readonly nodes: readonly Node[];
  /** By value of the body. */
  readonly outside: ReadonlyMap<Value, Value>;
}

function hoisted(known: readonly Node[], wanted: ReadonlySet<Value>, consts: ReadonlyMap<Value, Value>): Hoisted {
  const same = invariants(known, [...consts.keys()]);
  const read = new Set([...wanted].filter((value) => same.has(value) && !consts.has(value)));
  const outside = new Map(consts);
  const nodes: Node[] = [];
  const needed = new Set(read);
  const chosen = new Set<Node>();
  for (const node of [...known].reverse()) {
    if (!node.outputs.some((value) => needed.has(value))) continue;
    chosen.add(node);
    for (const value of node.inputs) needed.add(value);
  }
  for (const node of known.filter((one) => chosen.has(one))) {
    const outputs = node.outputs.map(({ type, name }) => newValue(type, name));
    nodes.push(nodeLike(node, { inputs: node.inputs.map((value) => outside.get(value) ?? value), outputs }));
    node.outputs.forEach((value, o) => {
      outside.set(value, at(outputs, o));
    });
  }
  return { nodes, outside: new Map([...read].map((value) => [value, outside.get(value) ?? value])) };
}

/** A loop over rows: residuals of iterations are stacked. */
function splitScan(node: Node, loop: Loop, { inputs, outputs }: Members, split: SplitGraph): Parts {
  const { body, carries, xs, consts, length } = loop;
  const count = loop.count ? [loop.count] : [];
  const [marks, given] = [inputs.slice(count.length), node.inputs.slice(count.length)];
  const [i, ...params] = body.params as readonly [Value, ...Value[]];
  const pick = (values: readonly Value[], numbers: readonly number[]): readonly Value[] =>
    numbers.map((n) => at(values, n));
  const byKnown = (from: number, { length: size }: readonly Value[]) =>
    parted(range(from, size), marks.slice(from, from + size));
  // known and unknown carries, stacks and constants, by their numbers
  const [kc, uc] = byKnown(0, carries);
  const [kx, ux] = byKnown(carries.length, xs);
  const [kk, uk] = byKnown(carries.length + xs.length, consts);
  const made = split(body, [true, ...marks]);
  const read = new Set(made.residuals);
  const { nodes, outside } = hoisted(made.known, read, new Map(kk.map((n) => [at(params, n), at(given, n)])));
  const isRead = (n: number): boolean => read.has(at(params, n));
  const [readXs, readConsts] = [kx.filter(isRead), kk.filter(isRead)];
  const direct = new Set([i, ...pick(params, [...readXs, ...readConsts]), ...outside.keys()]);
  const stacked = made.residuals.filter((value) => !direct.has(value));
  const stacks = stacked.map(({ type, name }) => newValue(stackType(type, length), name));
  const [knownOut, otherOut] = parted(node.outputs, outputs);
  const [knownResults, otherResults] = parted(body.results, outputs);
  const knownBody = withLiveNodes({ ...body, nodes: made.known, results: [...knownResults, ...stacked] });
  const known: Node = nodeLike(node, {
    inputs: [...count, ...pick(given, [...kc, ...kx, ...kk])],
    outputs: [...knownOut, ...stacks],
    attrs: { ...node.attrs, carries: kc.length, xs: kx.length },
    regions: [{ ...knownBody, params: [i, ...pick(params, [...kc, ...kx, ...kk])] }],
  });
  const taken = [...uc, ...ux, ...readXs];
  const constants = [...uk, ...readConsts];
  const rest: Node = nodeLike(node, {
    inputs: [...count, ...pick(given, taken), ...stacks, ...pick(given, constants), ...outside.values()],
    outputs: otherOut,
    attrs: { ...node.attrs, carries: uc.length, xs: ux.length + readXs.length + stacks.length },
    regions: [
      {
        ...body,
        params: [i, ...pick(params, taken), ...stacked, ...pick(params, constants), ...outside.keys()],
        nodes: made.rest,
        results: otherResults,
      },
    ],
  });
  return { known: [...nodes, known], rest };
}

/** A node with regions, some of whose inputs are known; null if it has none that can be split. */
export function splitControl(node: Node, isKnown: ReadonlySet<Value>, split: SplitGraph): Parts | null {
  const given = node.inputs.map((value) => isKnown.has(value));
  const regions = node.regions.length > 0 && given.includes(true) ? boundRegions(node) : null;
  if (!regions) return null;
  const members = knownMembers(node, regions, given, split);
  if (!members?.outputs.includes(true)) return null;
  const loop = loopOf(node);
  if (loop && !loop.test) return splitScan(node, loop, members, split);
  const outputs = node.outputs.map((value, o) => (members.outputs[o] ? newValue(value.type, value.name) : value));
  return { known: [knownNode(node, regions, members)], rest: nodeLike(node, { outputs }) };
}
