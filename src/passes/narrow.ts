/**
 * @file What a loop or branch takes and gives, reduced to what somebody needs: results that nobody reads, carries that
 * only such results depend on, inputs that no region looks at. Used by `dce`, which knows who needs what.
 *
 *   a, b, ys = scan(a₀, b₀, xs, k)        only a is read, and a's next value depends on a and k:
 *   a        = scan(a₀, k)
 *
 * A carry is needed if its last value is, or if the next value of a carry that is needed depends on it: found by going
 * round until no more come up.
 */
import { at } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import type { AnyOp, ControlForm } from "../ir/op.ts";
import { nodesFor } from "../ir/walk.ts";
import { type ScanAttrs, scanParts, whileParts } from "../ops/loops.ts";
import { type RewindAttrs, rewindParts } from "../ops/rewind.ts";

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

function narrowScan(node: Node, wanted: Wanted, live: Live): Node {
  const { count: turns, carries, xs, consts, body, last, ys } = scanParts(node);
  const attrs = node.attrs as ScanAttrs;
  const [nc, nx] = [carries.length, xs.length];
  const keptYs = ys.map(wanted);
  const rows = pick(body.results.slice(nc), keptYs);
  const states = body.params.slice(1, 1 + nc);
  const keptCarries = neededCarries(body, states, last.map(wanted), rows);
  const results = [...pick(body.results.slice(0, nc), keptCarries), ...rows];
  const read = readsFor(body, results);
  const isRead = body.params.map((param) => read.has(param));
  const [keptXs, keptConsts] = [isRead.slice(1 + nc, 1 + nc + nx), isRead.slice(1 + nc + nx)];
  const params = pick(body.params, [true, ...keptCarries, ...keptXs, ...keptConsts]);
  return {
    ...node,
    inputs: [
      ...(turns ? [turns] : []),
      ...pick(carries, keptCarries),
      ...pick(xs, keptXs),
      ...pick(consts, keptConsts),
    ],
    outputs: [...pick(last, keptCarries), ...pick(ys, keptYs)],
    attrs: { ...attrs, carries: count(keptCarries), xs: count(keptXs) },
    regions: [part(body, params, results, live)],
  };
}

function narrowWhile(node: Node, wanted: Wanted, live: Live): Node {
  const { carries, consts, body, test, last, ys, iterations } = whileParts(node);
  const nc = carries.length;
  const keptYs = ys.map(wanted);
  const rows = pick(body.results.slice(nc), keptYs);
  const tested = readsFor(test, test.results);
  const first = last.map((value, k) => wanted(value) || tested.has(at(test.params, k)));
  const keptCarries = neededCarries(body, body.params.slice(1, 1 + nc), first, rows);
  const results = [...pick(body.results.slice(0, nc), keptCarries), ...rows];
  const read = readsFor(body, results);
  const keptConsts = consts.map((_, k) => read.has(at(body.params, 1 + nc + k)) || tested.has(at(test.params, nc + k)));
  const kept = [...keptCarries, ...keptConsts];
  return {
    ...node,
    inputs: [...pick(carries, keptCarries), ...pick(consts, keptConsts)],
    outputs: [...pick(last, keptCarries), ...pick(ys, keptYs), iterations],
    attrs: { ...node.attrs, carries: count(keptCarries) },
    regions: [
      part(test, pick(test.params, kept), test.results, live),
      part(body, pick(body.params, [true, ...kept]), results, live),
    ],
  };
}

function narrowRewind(node: Node, wanted: Wanted, live: Live): Node {
  // The planner makes those of recorded loops of what is needed, and the two fit each other.
  if ((node.attrs as RewindAttrs).recorded) return node;
  const { count: turns, states: carries, adjoints, xs, consts, step, back, last, ws } = rewindParts(node);
  const [nc, na, nx] = [carries.length, adjoints.length, xs.length];
  const keptWs = ws.map(wanted);
  const rows = pick(back.results.slice(na), keptWs);
  const keptAdjoints = neededCarries(back, back.params.slice(1 + nc, 1 + nc + na), last.map(wanted), rows);
  const results = [...pick(back.results.slice(0, na), keptAdjoints), ...rows];
  const inBack = readsFor(back, results);
  const first = back.params.slice(1, 1 + nc).map((param) => inBack.has(param));
  const keptCarries = neededCarries(step, step.params.slice(1, 1 + nc), first, []);
  const states = pick(step.results, keptCarries);
  const inStep = readsFor(step, states);
  const rest = [...xs, ...consts].map(
    (_, k) => inBack.has(at(back.params, 1 + nc + na + k)) || inStep.has(at(step.params, 1 + nc + k)),
  );
  return {
    ...node,
    inputs: [turns, ...pick(carries, keptCarries), ...pick(adjoints, keptAdjoints), ...pick([...xs, ...consts], rest)],
    outputs: [...pick(last, keptAdjoints), ...pick(ws, keptWs)],
    attrs: {
      ...node.attrs,
      states: count(keptCarries),
      adjoints: count(keptAdjoints),
      xs: count(rest.slice(0, nx)),
      // Numbers of inputs, which are others now, for derivatives that are taken before.
      wrt: [],
    },
    regions: [
      part(step, pick(step.params, [true, ...keptCarries, ...rest]), states, live),
      part(back, pick(back.params, [true, ...keptCarries, ...keptAdjoints, ...rest]), results, live),
    ],
  };
}

function narrowSwitch(node: Node, wanted: Wanted, live: Live): Node {
  const [index, ...operands] = node.inputs;
  const keptResults = node.outputs.map(wanted);
  const reads = node.regions.map((region) => readsFor(region, pick(region.results, keptResults)));
  const kept = operands.map((_, i) => node.regions.some((region, n) => at(reads, n).has(at(region.params, i))));
  return {
    ...node,
    inputs: [...(index ? [index] : []), ...pick(operands, kept)],
    outputs: pick(node.outputs, keptResults),
    regions: node.regions.map((region) =>
      part(region, pick(region.params, kept), pick(region.results, keptResults), live),
    ),
  };
}

const FORMS: Record<ControlForm, (node: Node, wanted: Wanted, live: Live) => Node> = {
  scan: narrowScan,
  while: narrowWhile,
  rewind: narrowRewind,
  // The planner makes these of what is needed, and they fit their reverses.
  record: (node) => node,
  switch: narrowSwitch,
};

const sameItems = <T>(a: readonly T[], b: readonly T[]): boolean =>
  a.length === b.length && a.every((item, i) => item === b[i]);

/** The node with no more than what is needed for the results that are wanted; other nodes with their regions live. */
export function narrow(node: Node, wanted: Wanted, live: Live): Node {
  const { lower } = node.op as AnyOp;
  // Inner nodes first: they may read less afterwards.
  const inner = withLive(node, live);
  const made = lower.kind === "control" ? FORMS[lower.form](inner, wanted, live) : inner;
  const same = sameItems(made.inputs, node.inputs) && sameItems(made.outputs, node.outputs);
  return same && sameItems(made.regions, node.regions) ? node : made;
}

function withLive(node: Node, live: Live): Node {
  return node.regions.length === 0 ? node : { ...node, regions: node.regions.map(live) };
}
