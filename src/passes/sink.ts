/**
 * @file Constants and repetitions go inside: a loop or branch that reads a constant makes it where it is used, and a loop
 * over the rows of something that is the same in every row reads one row. Neither is then stored for the loop, which can
 * only read memory.
 *
 *   v = full {shape=[100,4], value=1}                         the rows are full {shape=[4], value=1}
 *   w = broadcast(k) {axes=[1], shape=[100,4]}                the rows are k: a constant of the loop
 *   … = scan(c, v, w)                                         … = scan(c, k)
 */
import { at } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { sameShape } from "../ir/type.ts";
import { rewriteGraph, type Visit } from "../ir/walk.ts";
import { type BroadcastAttrs, broadcast } from "../ops/broadcast.ts";
import { type FullAttrs, full } from "../ops/create.ts";
import { type ScanAttrs, scanParts } from "../ops/loops.ts";
import { type RewindAttrs, rewindParts } from "../ops/rewind.ts";
import { hasControl } from "./control-nodes.ts";
import type { Pass } from "./pass.ts";

/** What a parameter of a region is to be instead: a constant, or a repetition of something that is handed in. */
type Inside = { readonly full: FullAttrs } | { readonly of: Value; readonly broadcast: BroadcastAttrs | null };

/** An input that every region can make itself. */
function constantInput(b: Build, input: Value): Inside | null {
  const made = b.producer(input);
  return made?.op === full ? { full: made.attrs as FullAttrs } : null;
}

/** A stack whose rows are all the same. */
function equalRows(b: Build, stack: Value): Inside | null {
  const made = b.producer(stack);
  const shape = stack.type.shape.slice(1);
  if (made?.op === full) return { full: { ...(made.attrs as FullAttrs), shape } };
  if (made?.op !== broadcast) return null;
  const { axes } = made.attrs as BroadcastAttrs;
  const of = at(made.inputs, 0);
  if (axes.includes(0)) return null;
  const isRow = sameShape(of.type.shape, shape) && axes.every((axis, i) => axis === i + 1);
  return { of, broadcast: isRow ? null : { axes: axes.map((axis) => axis - 1), shape } };
}

/** A region whose parameters in `inside` are made in it; what is handed in for them comes last. */
function rebound(region: Graph, inside: ReadonlyMap<number, Inside>): Graph {
  const b = new Build(region.name);
  const extra: Value[] = [];
  const params = region.params.map((param, i) => (inside.has(i) ? null : b.param(param.type, param.name)));
  for (const how of inside.values()) if ("of" in how) extra.push(b.param(how.of.type, how.of.name));
  let next = 0;
  const bound = region.params.map((_, i) => {
    const how = inside.get(i);
    if (!how) return params[i] as Value;
    if ("full" in how) return b.call(full, [], how.full);
    const of = at(extra, next++);
    return how.broadcast ? b.call(broadcast, [of], how.broadcast) : of;
  });
  return b.finish(b.inline(region, bound));
}

/** The node with inputs made inside; `places` says which parameter of a region an input is, -1 for none. */
function sunk(
  node: Node,
  inside: ReadonlyMap<number, Inside>,
  places: (region: number, input: number) => number,
): Node {
  const extra = [...inside.values()].flatMap((how) => ("of" in how ? [how.of] : []));
  return {
    ...node,
    inputs: [...node.inputs.filter((_, i) => !inside.has(i)), ...extra],
    regions: node.regions.map((region, n) => {
      const own = [...inside].flatMap(([input, how]): (readonly [number, Inside])[] => {
        const place = places(n, input);
        return place < 0 ? [] : [[place, how]];
      });
      return rebound(region, new Map(own));
    }),
  };
}

function sinkScan(b: Build, node: Node): Node | null {
  const { count, carries, xs } = scanParts(node);
  const attrs = node.attrs as ScanAttrs;
  const skipped = count ? 1 : 0;
  const firstX = skipped + carries.length;
  const inside = new Map<number, Inside>();
  node.inputs.forEach((input, i) => {
    if (i < firstX) return;
    const how = i < firstX + xs.length ? equalRows(b, input) : constantInput(b, input);
    if (how) inside.set(i, how);
  });
  if (inside.size === 0) return null;
  const left = xs.filter((_, x) => !inside.has(firstX + x)).length;
  const made = sunk(node, inside, (_, input) => input - skipped + 1);
  return { ...made, attrs: { ...attrs, xs: left } };
}

/** Constants of any other loop or branch, from its input `first` on. */
function sinkConstants(
  b: Build,
  node: Node,
  first: number,
  places: (region: number, input: number) => number,
): Node | null {
  const inside = new Map<number, Inside>();
  node.inputs.forEach((input, i) => {
    const how = i < first ? null : constantInput(b, input);
    if (how) inside.set(i, how);
  });
  return inside.size === 0 ? null : sunk(node, inside, places);
}

function sinkInto(b: Build, node: Node): Node | null {
  const { lower } = node.op;
  if (lower.kind !== "control") return null;
  switch (lower.form) {
    case "scan":
      return sinkScan(b, node);
    case "while":
      return sinkConstants(b, node, Number(node.attrs.carries), (region, input) => input + region);
    case "switch":
      return sinkConstants(b, node, 1, (_, input) => input - 1);
    // Made by the planner, after this pass.
    case "record":
      return null;
    case "rewind": {
      if ((node.attrs as RewindAttrs).recorded) return null;
      const { states, adjoints, xs } = rewindParts(node);
      const skipped = states.length + adjoints.length;
      const places = (region: number, input: number): number => (region === 1 ? input : input - adjoints.length);
      const made = sinkConstants(b, node, 1 + skipped + xs.length, places);
      // Constants have other numbers now.
      return made && { ...made, attrs: { ...made.attrs, wrt: [] } };
    }
  }
}

const visit: Visit = (b, node) => {
  const made = sinkInto(b, node);
  if (!made) return null;
  b.append(made);
  return made.outputs;
};

/** Makes constants inside of loops and branches, and loops read one row of what has equal rows. */
export const sink: Pass = {
  name: "sink",
  after: ["inline"],
  run: (graph) => (hasControl(graph) ? rewriteGraph(graph, () => visit) : graph),
};
