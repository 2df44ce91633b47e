/**
 * @file Operators on known numbers. Exporters compute shapes by nodes (Shape → Gather → Mul → Concat → Reshape); with the extents of the
 * inputs given, all of it is computed here and no part of it reaches the program. A fold that gives null leaves the node to its operator.
 */

import { invariant } from "../../base/invariant.ts";
import type { OnnxElement } from "../../formats/onnx-tensor.ts";
import { elementsOf, type Shape } from "../../ir/type.ts";
import type { Call } from "./call.ts";
import {
  type Arithmetic,
  broadcastKnown,
  eachKnown,
  expanded,
  itemsOf,
  knownOf,
  MOST_RESULTS,
  positions,
  reduceKnown,
  stridesOf,
} from "./known-math.ts";
import { castType } from "./types.ts";
import { isFloatElement, isWide, type Known } from "./value.ts";

export type Fold = (call: Call, inputs: readonly Known[]) => Known | readonly Known[] | null;

/** Larger results are data, not shapes. */
export const MOST_FOLDED = 65_536;

type Item = number | bigint;

const same =
  (by: Arithmetic): Fold =>
  (call, inputs) =>
    eachKnown(call, inputs, by);
const compared = (whole: (a: Item, b: Item) => boolean): Fold => {
  const float = (a: number, b: number): number => (whole(a, b) ? 1 : 0);
  return (call, inputs) =>
    eachKnown(
      call,
      inputs,
      { whole: (a, b) => (whole(a as bigint, b as bigint) ? 1n : 0n), float: float as Arithmetic["float"] },
      "bool",
    );
};
const logic =
  (of: (a: number, b: number) => number): Fold =>
  (call, inputs) =>
    eachKnown(call, inputs, { float: of as Arithmetic["float"] }, "bool");

const least = (a: Item, b: Item): Item => (a < b ? a : b);
const most = (a: Item, b: Item): Item => (a > b ? a : b);

const reduced =
  (combine: (a: Item, b: Item) => Item): Fold =>
  (call, [x]) => {
    if (!x) return null;
    const axes = call.axesFrom(1);
    if ((!axes || axes.length === 0) && call.flag("noop_with_empty_axes")) return x;
    const all = axes && axes.length > 0 ? call.axes(axes, x.shape.length) : x.shape.map((_, axis) => axis);
    return reduceKnown(x, all, call.flag("keepdims", true), combine);
  };

/** Elements of x at positions of its own, one for each position of a shape. */
function selected(x: Known, shape: Shape, at: (position: readonly number[]) => readonly number[]): Known {
  invariant(elementsOf(shape) <= MOST_RESULTS, () => "a large result was not left to its operator");
  const strides = stridesOf(x.shape);
  const items = itemsOf(x.values);
  const chosen = [...positions(shape)].map((position) => {
    return items[at(position).reduce((sum, p, axis) => sum + p * (strides[axis] as number), 0)] as Item;
  });
  return knownOf(x.type, shape, chosen);
}

const wholes = ({ values }: Known): readonly number[] => Array.from(values as ArrayLike<number>, Number);

/** The shape of a reshape: 0 takes an extent over, -1 is what is left. */
export function reshapeTo(call: Call, from: Shape, wanted: readonly number[], allowZero: boolean): Shape {
  const taken = wanted.map((extent, axis) => (extent === 0 && !allowZero ? (from[axis] ?? 0) : extent));
  const open = taken.indexOf(-1);
  const rest = elementsOf(taken.filter((extent) => extent !== -1));
  const shape = open < 0 ? taken : taken.with(open, rest === 0 ? 0 : elementsOf(from) / rest);
  if (shape.every((extent) => Number.isInteger(extent) && extent >= 0) && elementsOf(shape) === elementsOf(from))
    return shape;
  return call.fail(`[${from.join(",")}] cannot become [${wanted.join(",")}]`);
}

/** The shape after axes of extent 1 went, or came. */
export function squeezed(call: Call, shape: Shape, axes: readonly number[] | null): Shape {
  if (!axes) return shape.filter((extent) => extent !== 1);
  const gone = call.axes(axes, shape.length);
  const wrong = gone.find((axis) => shape[axis] !== 1);
  if (wrong !== undefined) call.fail(`axis ${wrong} of [${shape.join(",")}] is not 1`);
  return shape.filter((_, axis) => !gone.includes(axis));
}

export function unsqueezed(call: Call, shape: Shape, axes: readonly number[]): Shape {
  const rank = shape.length + axes.length;
  const added = new Set(call.axes(axes, rank));
  let next = 0;
  return Array.from({ length: rank }, (_, axis) => (added.has(axis) ? 1 : (shape[next++] as number)));
}

/** One axis of a slice: first element, step, number of elements. */
export interface Cut {
  readonly start: number;
  readonly step: number;
  readonly count: number;
}

/** Every axis of a slice; bounds are clamped, and one below zero counts from the end. */
export function cutsOf(call: Call, shape: Shape): readonly Cut[] {
  const isOld = call.opset < 10;
  const given = (i: number, name: string): readonly number[] | null =>
    isOld ? call.ints(name) : call.maybeNumbers(i, name);
  const starts = given(1, "starts") ?? [];
  const ends = given(2, "ends") ?? [];
  const axes = call.axes(given(3, "axes") ?? starts.map((_, i) => i), shape.length);
  const steps = isOld ? starts.map(() => 1) : (call.maybeNumbers(4, "steps") ?? starts.map(() => 1));
  return shape.map((extent, axis) => {
    const k = axes.indexOf(axis);
    if (k < 0) return { start: 0, step: 1, count: extent };
    const step = steps[k] ?? 1;
    if (step === 0) call.fail("a step of 0");
    const [lowest, highest] = step > 0 ? [0, extent] : [-1, extent - 1];
    const clamped = (n: number): number => Math.min(Math.max(n < 0 ? n + extent : n, lowest), highest);
    const [from, to] = [clamped(starts[k] ?? 0), clamped(ends[k] ?? extent)];
    return { start: from, step, count: Math.max(0, Math.ceil((to - from) / step)) };
  });
}

/** Lengths of the parts of a split. */
export function partsOf(call: Call, extent: number, outputs: number): readonly number[] {
  const given = call.opset < 13 ? call.ints("split") : call.maybeNumbers(1, "split");
  if (given) return given;
  const size = Math.ceil(extent / outputs);
  return Array.from({ length: outputs }, (_, i) => Math.max(0, Math.min(size, extent - i * size)));
}

function gathered(call: Call, x: Known, indices: Known): Known | null {
  const axis = call.axis(call.int("axis", 0), x.shape.length);
  const extent = x.shape[axis] as number;
  const rows = wholes(indices).map((i) => (i < 0 ? i + extent : i));
  const wrong = rows.find((i) => i < 0 || i >= extent);
  if (wrong !== undefined) call.fail(`index ${wrong} of an axis of ${extent}`);
  const inner = indices.shape.length;
  const shape = [...x.shape.slice(0, axis), ...indices.shape, ...x.shape.slice(axis + 1)];
  if (elementsOf(shape) > MOST_RESULTS) return null;
  const strides = stridesOf(indices.shape);
  return selected(x, shape, (position) => {
    const number = strides.reduce((sum, stride, k) => sum + (position[axis + k] as number) * stride, 0);
    return [...position.slice(0, axis), rows[number] as number, ...position.slice(axis + inner)];
  });
}

function concatenated(call: Call, inputs: readonly Known[]): Known | null {
  const [first] = inputs;
  if (!first) return null;
  const axis = call.axis(call.int("axis", 0), first.shape.length);
  const shape = first.shape.with(
    axis,
    inputs.reduce((sum, x) => sum + (x.shape[axis] as number), 0),
  );
  const lead = elementsOf(first.shape.slice(0, axis));
  const columns = inputs.map((x) => ({ items: itemsOf(x.values), width: elementsOf(x.shape.slice(axis)) }));
  const items = Array.from({ length: lead }, (_, i) =>
    columns.flatMap(({ items: own, width }) => own.slice(i * width, (i + 1) * width)),
  ).flat();
  return knownOf(first.type, shape, items);
}

function scattered(x: Known, indices: Known, updates: Known): Known {
  const depth = indices.shape.at(-1) ?? 0;
  const strides = stridesOf(x.shape);
  const width = elementsOf(x.shape.slice(depth));
  const items = itemsOf(x.values);
  const rows = wholes(indices);
  const news = itemsOf(updates.values);
  for (let r = 0; r * depth < rows.length; r++) {
    const at = rows.slice(r * depth, (r + 1) * depth).reduce((sum, i, axis) => {
      return sum + (i < 0 ? i + (x.shape[axis] as number) : i) * (strides[axis] as number);
    }, 0);
    items.splice(at, width, ...news.slice(r * width, (r + 1) * width));
  }
  return knownOf(x.type, x.shape, items);
}

/** Numbers from a start below a limit. */
export function rangeOf(call: Call, [start, limit, step]: readonly Known[]): Known | null {
  if (!start || !limit || !step) return null;
  const [from, to, by] = [start, limit, step].map((known) => itemsOf(known.values)[0] as Item) as [Item, Item, Item];
  if (Number(by) === 0) call.fail("a step of 0");
  const count = Math.max(0, Math.ceil((Number(to) - Number(from)) / Number(by)));
  if (count > MOST_FOLDED) return null;
  const items = Array.from({ length: count }, (_, i) =>
    typeof from === "bigint" ? from + BigInt(i) * (by as bigint) : from + i * Number(by),
  );
  return knownOf(start.type, [count], items);
}

/** Positions of elements that are not zero, one column for each. */
export function nonZero(x: Known): Known {
  const items = itemsOf(x.values);
  const found = [...positions(x.shape)].filter((_, i) => Number(items[i]) !== 0);
  const rank = x.shape.length;
  return knownOf(
    "int64",
    [rank, found.length],
    Array.from({ length: rank }, (_, axis) => found.map((position) => BigInt(position[axis] as number))).flat(),
  );
}

/** Parts along an axis where a list of bools is true. */
export function compressed(call: Call, x: Known | { readonly shape: Shape }, flags: Known): readonly number[] {
  const axis = call.attribute("axis");
  const extent = axis ? (x.shape[call.axis(Number(axis.int), x.shape.length)] as number) : elementsOf(x.shape);
  return wholes(flags).flatMap((flag, i) => (flag !== 0 && i < extent ? [i] : []));
}

const cast = (x: Known, type: OnnxElement): Known => {
  return knownOf(type, x.shape, itemsOf(x.values));
};

const floorDivision = (a: bigint, b: bigint): bigint => (b === 0n ? 0n : a / b);
const modulo = (a: bigint, b: bigint): bigint => (b === 0n ? 0n : ((a % b) + b) % b);

export const FOLDS: Readonly<Record<string, Fold>> = {
  Add: same({ whole: (a, b) => (a as bigint) + (b as bigint), float: (a, b) => (a as number) + (b as number) }),
  Sub: same({ whole: (a, b) => (a as bigint) - (b as bigint), float: (a, b) => (a as number) - (b as number) }),
  Mul: same({ whole: (a, b) => (a as bigint) * (b as bigint), float: (a, b) => (a as number) * (b as number) }),
  Div: same({
    whole: (a, b) => floorDivision(a as bigint, b as bigint),
    float: (a, b) => (a as number) / (b as number),
  }),
  Mod: (call, inputs) =>
    call.flag("fmod") || isFloatElement(inputs[0]?.type ?? "float")
      ? null
      : eachKnown(call, inputs, { whole: (a, b) => modulo(a as bigint, b as bigint), float: () => Number.NaN }),
  Neg: same({ whole: (a) => -(a as bigint), float: (a) => -(a as number) }),
  Abs: same({
    whole: (a) => ((a as bigint) < 0n ? -(a as bigint) : (a as bigint)),
    float: (a) => Math.abs(a as number),
  }),
  Relu: same({ whole: (a) => ((a as bigint) < 0n ? 0n : (a as bigint)), float: (a) => Math.max(a as number, 0) }),
  Floor: same({ float: (a) => Math.floor(a as number) }),
  Ceil: same({ float: (a) => Math.ceil(a as number) }),
  Sqrt: same({ float: (a) => Math.sqrt(a as number) }),
  Reciprocal: same({ float: (a) => 1 / (a as number) }),
  Min: same({ whole: (...x) => x.reduce((a, b) => least(a, b) as bigint), float: (...x) => Math.min(...x) }),
  Max: same({ whole: (...x) => x.reduce((a, b) => most(a, b) as bigint), float: (...x) => Math.max(...x) }),
  // biome-ignore lint/suspicious/noDoubleEquals: a bigint equals the number with its value
  Equal: compared((a, b) => a == b),
  Less: compared((a, b) => a < b),
  Greater: compared((a, b) => a > b),
  LessOrEqual: compared((a, b) => a <= b),
  GreaterOrEqual: compared((a, b) => a >= b),
  And: logic((a, b) => a * b),
  Or: logic((a, b) => Math.max(a, b)),
  Xor: logic((a, b) => Math.abs(a - b)),
  Not: logic((a) => 1 - a),
  Where: (call, [p, a, b]) => {
    if (!p || !a || !b) return null;
    const shape = broadcastKnown(call, [p.shape, a.shape, b.shape]);
    if (elementsOf(shape) > MOST_RESULTS) return null;
    const [flags, yes, no] = [expanded(p, shape), expanded(a, shape), expanded(b, shape)];
    return knownOf(
      a.type,
      shape,
      flags.map((flag, i) => (Number(flag) !== 0 ? yes[i] : no[i]) as Item),
    );
  },
  Identity: (_, [x]) => x ?? null,
  Cast: (call, [x]) => (x ? cast(x, castType(call)) : null),
  CastLike: (_, [x, like]) => (x && like ? cast(x, like.type) : null),
  ReduceSum: reduced((a, b) => (typeof a === "bigint" ? a + BigInt(b) : a + Number(b))),
  ReduceProd: reduced((a, b) => (typeof a === "bigint" ? a * BigInt(b) : a * Number(b))),
  ReduceMin: reduced(least),
  ReduceMax: reduced(most),
  Gather: (call, [x, indices]) => (x && indices ? gathered(call, x, indices) : null),
  Concat: concatenated,
  Slice: (call, [x]) => {
    if (!x) return null;
    const cuts = cutsOf(call, x.shape);
    return selected(
      x,
      cuts.map(({ count }) => count),
      (position) => position.map((p, axis) => (cuts[axis]?.start ?? 0) + p * (cuts[axis]?.step ?? 1)),
    );
  },
  Split: (call, [x]) => {
    if (!x) return null;
    const axis = call.axis(call.int("axis", 0), x.shape.length);
    let start = 0;
    return partsOf(call, x.shape[axis] as number, call.node.outputs.length).map((count) => {
      const from = start;
      start += count;
      return selected(x, x.shape.with(axis, count), (position) => position.map((p, a) => (a === axis ? p + from : p)));
    });
  },
  Reshape: (call, [x, shape]) =>
    x
      ? {
          ...x,
          shape: reshapeTo(call, x.shape, shape ? wholes(shape) : (call.ints("shape") ?? []), call.flag("allowzero")),
        }
      : null,
  Squeeze: (call, [x]) => (x ? { ...x, shape: squeezed(call, x.shape, call.axesFrom(1)) } : null),
  Unsqueeze: (call, [x]) => (x ? { ...x, shape: unsqueezed(call, x.shape, call.axesFrom(1) ?? []) } : null),
  Transpose: (call, [x]) => {
    if (!x) return null;
    const perm = call.ints("perm") ?? x.shape.map((_, axis) => x.shape.length - 1 - axis);
    const shape = perm.map((axis) => x.shape[axis] as number);
    return selected(x, shape, (position) => x.shape.map((_, axis) => position[perm.indexOf(axis)] as number));
  },
  Expand: (call, [x, shape]) => {
    if (!x || !shape) return null;
    const to = broadcastKnown(call, [x.shape, wholes(shape)]);
    return elementsOf(to) > MOST_FOLDED ? null : knownOf(x.type, to, expanded(x, to));
  },
  Tile: (_, [x, counts]) => {
    if (!x || !counts) return null;
    const shape = x.shape.map((extent, axis) => extent * (wholes(counts)[axis] ?? 1));
    if (elementsOf(shape) > MOST_FOLDED) return null;
    return selected(x, shape, (position) => position.map((p, axis) => p % (x.shape[axis] as number)));
  },
  Range: (call, inputs) => rangeOf(call, inputs),
  NonZero: (_, [x]) => (x ? nonZero(x) : null),
  ScatterND: (call, [x, indices, updates]) =>
    x && indices && updates && call.text("reduction", "none") === "none" ? scattered(x, indices, updates) : null,
};

/** Whether folding is exact for numbers of these types: floats in double precision are, once rounded. */
export const canFold = (inputs: readonly Known[]): boolean =>
  inputs.every(({ type, shape }) => elementsOf(shape) <= MOST_FOLDED && (isWide(type) || type !== "uint64"));
