/**
 * @file Rewrites a loop and its reverse for another choice of stacked rows (row-cut.ts): the forward loop stacks the
 * rows that are kept, and the reverse body first recomputes the others from them. The result is again a pair.
 *
 * ```
 *   forward body ─ r₁ r₂ r₃ ─> reverse body      →      forward body ─ r₁ r₄ ─> (recompute r₂ r₃) reverse body
 * ```
 */
import { at } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import { type Graph, type Node, newValue, type Value } from "../ir/graph.ts";
import { INDEX, stackType } from "../ops/region-checks.ts";
import { cse } from "../passes/cse.ts";
import { dce } from "../passes/dce.ts";
import { type LoopPair, pairOf, rowsOf } from "./pairs.ts";
import type { RowCut } from "./row-cut.ts";

/** The stack of each value of the forward body that the reverse gets row by row. */
type Stacks = ReadonlyMap<Value, Value>;

/** Stacks of the rows that are kept; existing stacks are reused. */
function stacksFor({ forwardParts, stacks, length }: LoopPair, rows: readonly Value[]): Stacks {
  const existing = rowsOf(forwardParts, stacks);
  return new Map(
    rows.map((row) => [row, stacks[existing.indexOf(row)] ?? newValue(stackType(row.type, length), row.name)]),
  );
}

function forwardWith({ forward, forwardParts, stacks }: LoopPair, keptStacks: Stacks): Node {
  const { body, carries, ys, last } = forwardParts;
  const otherRows = ys.filter((y) => !stacks.includes(y));
  const rows = rowsOf(forwardParts, otherRows);
  const results = [...body.results.slice(0, carries.length), ...rows, ...keptStacks.keys()];
  const [n, region] = [forward.regions.length - 1, dce.run({ ...body, results })];
  const after = forward.outputs.slice(last.length + ys.length);
  return {
    ...forward,
    outputs: [...last, ...otherRows, ...keptStacks.values(), ...after],
    regions: forward.regions.map((other, i) => (i === n ? region : other)),
  };
}

/** Parameters of the new reverse body for outer values, created on demand. */
class Inputs {
  readonly #like = new Map<Value, Value>();

  /** The parameter for an outer value; its name hint comes from `like`. */
  of(outer: Value, like: Value): Value {
    const param = this.#like.get(outer) ?? newValue(like.type, like.name);
    this.#like.set(outer, param);
    return param;
  }

  get outer(): readonly Value[] {
    return [...this.#like.keys()];
  }

  get params(): readonly Value[] {
    return [...this.#like.values()];
  }
}

/** Values of the forward body inside the reverse: read from rows, bound to constants, or recomputed. */
function bindForward(
  b: Build,
  { forwardParts, backwardParts, stacks }: LoopPair,
  { again, kept }: { readonly again: readonly Node[]; readonly kept: Stacks },
  { rows, consts, index }: { readonly rows: Inputs; readonly consts: Inputs; readonly index: Value },
): (value: Value) => Value {
  const { body, carries, xs, consts: given, ys } = forwardParts;
  const firstX = 1 + carries.length;
  const now = new Map<Value, Value>([[at(body.params, 0), index]]);
  const read = new Set([...again.flatMap(({ inputs }) => inputs), ...rowsOf(forwardParts, stacks)]);
  xs.forEach((x, i) => {
    const param = at(body.params, firstX + i);
    if (read.has(param)) now.set(param, rows.of(x, param));
  });
  given.forEach((k, i) => {
    const param = at(body.params, firstX + xs.length + i);
    if (read.has(param)) now.set(param, consts.of(k, param));
  });
  ys.forEach((y, n) => {
    const row = at(body.results, carries.length + n);
    if (backwardParts.xs.includes(y) && !stacks.includes(y)) now.set(row, rows.of(y, row));
  });
  for (const [row, stack] of kept) now.set(row, rows.of(stack, row));
  const resolve = (value: Value): Value => now.get(value) ?? value;
  for (const node of again) {
    const outputs = node.outputs.map(({ type, name }) => newValue(type, name));
    b.append({ ...node, inputs: node.inputs.map(resolve), outputs, phase: "backward" });
    node.outputs.forEach((value, i) => {
      if (!now.has(value)) now.set(value, at(outputs, i));
    });
  }
  return resolve;
}

function backwardWith(pair: LoopPair, { again }: RowCut, keptStacks: Stacks): Node {
  const { backward, backwardParts, forwardParts, stacks } = pair;
  const { body, carries, xs, consts, count } = backwardParts;
  const b = new Build(body.name);
  b.phase = "backward";
  const [rows, constants] = [new Inputs(), new Inputs()];
  const index = newValue(INDEX, "i");
  const adjoints = body.params.slice(1, 1 + carries.length).map(({ type, name }) => newValue(type, name));
  const firstX = 1 + carries.length;
  const given = consts.map((k, i) => constants.of(k, at(body.params, firstX + xs.length + i)));
  const others = xs.map((x, i) => (stacks.includes(x) ? null : rows.of(x, at(body.params, firstX + i))));
  const values = bindForward(b, pair, { again, kept: keptStacks }, { rows, consts: constants, index });
  const rowOf = new Map(rowsOf(forwardParts, stacks).map((row, n) => [at(stacks, n), values(row)]));
  const results = b.inline(body, [index, ...adjoints, ...xs.map((x, i) => others[i] ?? rowOf.get(x) ?? x), ...given]);
  const params = [index, ...adjoints, ...rows.params, ...constants.params];
  const region: Graph = dce.run(cse.run({ name: body.name, params, nodes: [...b.nodes], results }));
  return {
    ...backward,
    inputs: [...(count ? [count] : []), ...carries, ...rows.outer, ...constants.outer],
    attrs: { ...backward.attrs, xs: rows.outer.length },
    regions: [region],
  };
}

/** The pair with the rows of a cut. */
export function cutPair(pair: LoopPair, cut: RowCut): LoopPair {
  const kept = stacksFor(pair, cut.rows);
  return pairOf(forwardWith(pair, kept), backwardWith(pair, cut, kept), [...kept.values()]);
}
