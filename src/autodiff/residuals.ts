/**
 * @file The residuals that an iteration of a loop stores for its reverse. The reverse of the body reads values of the forward
 * body. Rows of inputs, constants and the iteration's number are available anyway; values that are cheap to compute from
 * available ones are recomputed; the others are stacked, one row an iteration:
 *
 *   kept        a product, a reduction, a transcendental function; the carry before the iteration
 *   recomputed  constants and views, values that depend only on constants of the loop, a few additions of available values
 *   shifted     the carry after the iteration, if the carry before it is kept: it is that of the next iteration, which the
 *               reverse has just visited. One stack in place of two
 */
import { at } from "../base/invariant.ts";
import type { Node, Value } from "../ir/graph.ts";
import { byteLength, elementsOf } from "../ir/type.ts";
import type { Joint } from "./joint.ts";

/** The groups of a body's parameters. */
export interface BodyLayout {
  readonly carries: readonly Value[];
  readonly xs: readonly Value[];
  readonly consts: readonly Value[];
  readonly index: Value;
}

/** Values of the forward body that its reverse gets, and nodes that it recomputes, in order. */
export interface Residuals {
  readonly kept: readonly Value[];
  readonly again: readonly Node[];
  /** [carry before, the same carry after]. */
  readonly shifted: readonly (readonly [Value, Value])[];
  /** Parameters other than carries that the reverse reads. */
  readonly read: ReadonlySet<Value>;
}

/** Work an element up to which a value is recomputed from available ones. */
const CHEAP_FLOPS = 4;

/** The values of the forward part that the reverse reads. */
function readsOf({ b, forwardNodes, cotangents }: Joint): Set<Value> {
  const own = new Set(b.nodes.slice(forwardNodes).flatMap((node) => node.outputs));
  const read = new Set<Value>();
  const use = (value: Value): void => {
    if (!own.has(value)) read.add(value);
  };
  // Only nodes that the cotangents depend on.
  const wanted = new Set<Value>(cotangents.filter((value) => value !== null));
  for (const value of wanted) use(value);
  for (const node of b.nodes.slice(forwardNodes).reverse()) {
    if (!node.outputs.some((value) => wanted.has(value))) continue;
    for (const value of node.inputs) {
      wanted.add(value);
      use(value);
    }
  }
  return read;
}

function flopsAnElement(node: Node): number {
  const outputs = node.outputs.map((value) => value.type);
  const inputs = node.inputs.map((value) => value.type);
  const elements = outputs.reduce((sum, type) => sum + elementsOf(type.shape), 0);
  return node.op.cost(inputs, outputs, node.attrs, node.regions).flops / Math.max(1, elements);
}

/** Values that are the same in every iteration. */
function invariants(nodes: readonly Node[], consts: readonly Value[]): ReadonlySet<Value> {
  const found = new Set(consts);
  for (const node of nodes) {
    if (node.inputs.every((value) => found.has(value))) for (const value of node.outputs) found.add(value);
  }
  return found;
}

export function chooseResiduals(joint: Joint, layout: BodyLayout): Residuals {
  const nodes = joint.b.nodes.slice(0, joint.forwardNodes);
  const needed = readsOf(joint);
  const same = invariants(nodes, layout.consts);
  const free = new Set([...layout.xs, ...layout.consts, layout.index]);
  const available = (value: Value): boolean => free.has(value) || needed.has(value) || same.has(value);
  const isAgain = (node: Node): boolean => {
    if (node.outputs.every((value) => same.has(value))) return true;
    const { lower } = node.op;
    if (lower.kind !== "map") return false;
    if (node.inputs.every(available)) return lower.fusion === "always" || flopsAnElement(node) <= CHEAP_FLOPS;
    // A view of a value that is not kept: the smaller of the two.
    const missing = node.inputs.filter((value) => !available(value));
    const bytes = missing.reduce((sum, { type }) => sum + byteLength(type), 0);
    return lower.fusion === "always" && bytes <= byteLength(at(node.outputs, 0).type);
  };
  const after = new Map(layout.carries.map((carry, k) => [at(joint.results, k), carry]));
  const kept: Value[] = [];
  const again: Node[] = [];
  const shifted: (readonly [Value, Value])[] = [];
  for (const node of [...nodes].reverse()) {
    const wanted = node.outputs.filter((value) => needed.has(value));
    if (wanted.length === 0) continue;
    if (isAgain(node)) {
      again.push(node);
      for (const value of node.inputs) needed.add(value);
      continue;
    }
    kept.push(...wanted);
  }
  const isKept = (value: Value): boolean => needed.has(value);
  for (const value of kept) {
    const before = after.get(value);
    if (before && isKept(before)) shifted.push([before, value]);
  }
  const moved = new Set(shifted.map(([, value]) => value));
  const carries = layout.carries.filter(isKept);
  const stacked = [...carries, ...kept.reverse().filter((value) => !moved.has(value))];
  const read = new Set([...free].filter((value) => needed.has(value)));
  return { kept: stacked, again: again.reverse(), shifted, read };
}
