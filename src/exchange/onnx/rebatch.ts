/**
 * @file Another batch for an ONNX model that was exported with a fixed one. The model is followed at its own sizes first; then, at the new
 * ones, every node is compared with itself: sizes that are written in the file follow what their operand has now, and constants that were
 * written out for all items of the batch (initial states, class tokens, masks) are their first item, repeated.
 *
 *   recorded   Add(f32[2,16,64], constant f32[2,1,64])
 *   now        Add(f32[8,16,64], first item of the constant, 8 times)
 *
 * This is for plans: whether the items of such a constant are equal is not asked.
 */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import type { OnnxNode } from "../../formats/onnx-file.ts";
import type { Shape } from "../../ir/type.ts";
import { fail } from "../../trace/arguments.ts";
import { expandedSizes, type Rebinding, regroupedSizes } from "../shared/rebatch.ts";
import type { Followed } from "./call.ts";
import { knownOf } from "./known-math.ts";
import { Value } from "./value.ts";

type Inputs = readonly (Value | null)[];

/** The batch to follow a model with, and every node as it was followed with its own. */
export interface Rebatch {
  readonly change: Rebinding;
  readonly recorded: readonly Followed[];
}

/** A node then and now. */
interface Pair {
  readonly node: OnnxNode;
  readonly past: Followed;
  readonly now: Inputs;
  readonly change: Rebinding;
}

/** The operands of the `i`-th node that is followed, for the new batch. */
export function rebatched(node: OnnxNode, now: Inputs, i: number, { change, recorded }: Rebatch): Inputs {
  const past = recorded[i];
  if (past?.node.kind !== node.kind || past.node.outputs[0] !== node.outputs[0]) {
    fail(
      "InvalidArgument",
      `the batch ${change.to}: the model takes other branches than with ${change.from}`,
      "export it with an open batch, or as .pt2",
    );
  }
  const pair = { node, past, now, change };
  const written = SIZES[node.kind];
  if (written) return now.map((value, k) => (k === written.input ? sizesOf(pair, k, written.sizes) : value));
  const axis = STATES[node.kind];
  if (axis !== undefined) {
    // initial states: [directions, batch, hidden], with the batch first where the layout says so
    const isFirst = Number(node.attributes.get("layout")?.int ?? 0) === 1;
    return now.map((value, k) => (k === 5 || k === 6 ? repeated(value, isFirst ? 0 : axis, change) : value));
  }
  if (node.kind === "Concat") return concatenated(pair);
  return BROADCASTS.includes(node.kind) ? broadcast(pair) : now;
}

type Sizes = (pair: Pair, recorded: readonly number[]) => readonly number[] | null;

const shapeThen = ({ past }: Pair): Shape => past.inputs[0]?.shape ?? [];
const shapeNow = ({ now }: Pair): Shape => now[0]?.shape ?? [];

const viewSizes: Sizes = (pair) => {
  const before = shapeThen(pair);
  const now = shapeNow(pair);
  const after = pair.past.results[0]?.shape ?? [];
  return before.length === now.length ? regroupedSizes({ before, after, now }, pair.change.from) : null;
};

/** The size of an image's batch is the image's. */
const imageSizes: Sizes = (pair, recorded) =>
  recorded.map((size, axis) => (axis === 0 && size === shapeThen(pair)[0] ? (shapeNow(pair)[0] ?? size) : size));

/** Operands that are sizes. */
const SIZES: Readonly<Record<string, { readonly input: number; readonly sizes: Sizes }>> = {
  Reshape: { input: 1, sizes: viewSizes },
  Expand: { input: 1, sizes: (pair, recorded) => expandedSizes(shapeNow(pair), recorded, pair.change) },
  Resize: { input: 3, sizes: imageSizes },
};

/** Axes of the batch in initial states. */
const STATES: Readonly<Record<string, number>> = { LSTM: 1, GRU: 1, RNN: 1 };

const BROADCASTS: readonly string[] = [
  ...["Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Sum", "Mean", "Where", "MatMul", "PRelu"],
  ...["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor"],
];

/** Sizes that are computed from shapes have the new batch already: only those that are as they were are changed. */
function sizesOf(pair: Pair, k: number, sizes: Sizes): Value | null {
  const [value, before] = [pair.now[k] ?? null, pair.past.inputs[k] ?? null];
  const [own, recorded] = [numbersOf(value), numbersOf(before)];
  if (!value || !own || !recorded || own.length === 0) return value;
  if (own.some((size, axis) => size !== recorded[axis])) return value;
  const changed = sizes(pair, recorded);
  if (!changed) return value;
  return Value.known(value.name, knownOf("int64", [changed.length], changed.map(BigInt)), null);
}

const numbersOf = (value: Value | null): readonly number[] | null =>
  value?.known ? Array.from(value.known.values as ArrayLike<number>, Number) : null;

/** Counted from the last axis: the extent that the batch has now, where it changed. */
function grownAxes({ past, now }: Pair): ReadonlyMap<number, { readonly from: number; readonly to: number }> {
  const grown = new Map<number, { from: number; to: number }>();
  now.forEach((value, k) => {
    const before = past.inputs[k]?.shape;
    if (!value || before?.length !== value.rank) return;
    value.shape.forEach((to, axis) => {
      const from = at(before, axis);
      if (from !== to) grown.set(value.rank - axis, { from, to });
    });
  });
  return grown;
}

/** Operands that did not grow where another did. */
function broadcast(pair: Pair): Inputs {
  const grown = grownAxes(pair);
  return pair.now.map((value) => {
    if (!value) return value;
    return [...grown].reduce((made, [back, { from, to }]) => {
      const axis = made.rank - back;
      return axis >= 0 && from > 1 && at(made.shape, axis) === from ? repeatedTo(made, axis, to) : made;
    }, value);
  });
}

/** Parts that did not grow where another did, along other axes than the one they are joined along. */
function concatenated(pair: Pair): Inputs {
  const rank = shapeNow(pair).length;
  const along = Number(pair.node.attributes.get("axis")?.int ?? 1);
  const joined = rank - (along < 0 ? along + rank : along);
  const grown = grownAxes(pair);
  return pair.now.map((value) => {
    if (!value || value.rank !== rank) return value;
    return [...grown].reduce((made, [back, { from, to }]) => {
      const axis = rank - back;
      return back !== joined && at(made.shape, axis) === from ? repeatedTo(made, axis, to) : made;
    }, value);
  });
}

const repeated = (value: Value | null, axis: number, { from, to }: Rebinding): Value | null =>
  value && value.rank > axis && at(value.shape, axis) === from ? repeatedTo(value, axis, to) : value;

/** The first item along an axis, so many times. */
function repeatedTo(value: Value, axis: number, count: number): Value {
  const x = value.tensor;
  const first = t.slice(
    x,
    x.shape.map((_, a) => (a === axis ? ([0, 1] as const) : null)),
  );
  return Value.tensor(value.name, value.type, t.broadcastTo(first, x.shape.with(axis, count)));
}
