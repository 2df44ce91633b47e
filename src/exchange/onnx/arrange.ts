/** @file Operators that make, move and cut: shapes, constants, concatenation, slices, padding, blocks of pixels. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import { elementsOf, type Shape } from "../../ir/type.ts";
import { isFloat } from "../../kernel/dtype.ts";
import type { Tensor } from "../../trace/tensor.ts";
import type { Call, Operator, Result } from "./call.ts";
import { converted } from "./elementwise.ts";
import { cutsOf, MOST_FOLDED, partsOf, rangeOf, reshapeTo, squeezed, unsqueezed } from "./fold.ts";
import { broadcastKnown } from "./known-math.ts";
import { castType } from "./types.ts";
import { type Known, Value } from "./value.ts";

const shapeText = (shape: Shape): string => `[${shape.join(",")}]`;

function constant(call: Call): Value {
  const { attributes } = call.node;
  const tensor = attributes.get("value");
  if (tensor?.tensor) return Value.known(call.node.outputs[0] ?? "", call.around.decode(tensor), call.around.floats);
  if (attributes.has("value_float")) return call.make("float", [], Float32Array.of(call.float("value_float", 0)));
  if (attributes.has("value_int"))
    return call.make("int64", [], BigInt64Array.of(attributes.get("value_int")?.int ?? 0n));
  const floats = call.floats("value_floats");
  if (floats && attributes.has("value_floats")) return call.make("float", [floats.length], Float32Array.from(floats));
  const ints = attributes.get("value_ints")?.ints;
  if (ints) return call.make("int64", [ints.length], BigInt64Array.from(ints));
  return call.fail(
    "a constant of texts or a sparse one",
    "tensors hold numbers; export the model with dense constants",
  );
}

function constantOfShape(call: Call): Result {
  const shape = call.numbers(0, "shape");
  const attribute = call.attribute("value");
  const value: Known = attribute?.tensor
    ? call.around.decode(attribute)
    : { type: "float", shape: [1], values: Float32Array.of(0) };
  const item = value.values[0] ?? 0;
  if (elementsOf(shape) <= MOST_FOLDED) {
    return call.make(value.type, shape, new Array(elementsOf(shape)).fill(item));
  }
  const one = Value.known("", { ...value, shape: [] }, call.around.floats);
  return Value.tensor("", value.type, t.broadcastTo(one.tensor, shape));
}

function shapeOf(call: Call): Value {
  const { shape, rank } = call.value(0);
  const clamp = (n: number): number => Math.min(Math.max(n < 0 ? n + rank : n, 0), rank);
  return call.wholes(shape.slice(clamp(call.int("start", 0)), clamp(call.int("end", rank))));
}

/** Data known before the program runs stays known. */
function reshape(call: Call): Tensor {
  const x = call.x(0);
  const wanted = call.opset < 5 ? (call.ints("shape") ?? []) : call.numbers(1, "shape");
  return t.reshape(x, reshapeTo(call, x.shape, wanted, call.flag("allowzero")));
}

function flatten(call: Call): Tensor {
  const x = call.x(0);
  const axis = call.int("axis", 1);
  const front = axis < 0 ? axis + x.rank : axis;
  return t.reshape(x, [elementsOf(x.shape.slice(0, front)), elementsOf(x.shape.slice(front))]);
}

function slice(call: Call): Tensor {
  const x = call.x(0);
  const ranges = cutsOf(call, x.shape).map(({ start, step, count }) => {
    if (count === 0) return [0, 0] as const;
    const end = start + (count - 1) * step;
    return step > 0 ? ([start, end + 1, step] as const) : ([start, end === 0 ? null : end - 1, step] as const);
  });
  return t.slice(x, ranges);
}

function split(call: Call): readonly Tensor[] {
  const x = call.x(0);
  const axis = call.axis(call.int("axis", 0), x.rank);
  return t.split(x, partsOf(call, at(x.shape, axis), call.node.outputs.length), axis);
}

function expand(call: Call): Tensor {
  const x = call.x(0);
  return t.broadcastTo(x, broadcastKnown(call, [x.shape, call.numbers(1, "shape")]));
}

const PAD_MODES = { reflect: "reflect", edge: "replicate", wrap: "circular" } as const;

/** Widths before and after every axis. */
function widthsOf(call: Call, rank: number): readonly (readonly [number, number])[] {
  const name = call.opset < 2 ? "paddings" : "pads";
  const pads = call.opset < 11 ? (call.ints(name) ?? []) : call.numbers(1, "pads");
  const axes = call.axes(call.maybeNumbers(3, "axes") ?? Array.from({ length: rank }, (_, axis) => axis), rank);
  return Array.from({ length: rank }, (_, axis) => {
    const k = axes.indexOf(axis);
    return k < 0 ? ([0, 0] as const) : ([pads[k] ?? 0, pads[k + axes.length] ?? 0] as const);
  });
}

/** Negative widths cut off. */
function pad(call: Call): Tensor {
  const x = call.x(0);
  const widths = widthsOf(call, x.rank);
  const cut = t.slice(
    x,
    widths.map(([lo, hi], axis) => [Math.max(0, -lo), at(x.shape, axis) + Math.min(0, hi)] as const),
  );
  const added = widths.map(([lo, hi]) => [Math.max(0, lo), Math.max(0, hi)] as const);
  const mode = call.text("mode", "constant");
  if (mode !== "constant") {
    const known = (PAD_MODES as Readonly<Record<string, (typeof PAD_MODES)["edge" | "reflect" | "wrap"]>>)[mode];
    return t.pad(cut, added, known ?? call.fail(`mode ${mode}`, "modes are constant, reflect, edge, wrap"));
  }
  const given = call.opset < 11 ? null : call.maybe(2);
  if (!given) return t.pad(cut, added, call.opset < 11 ? call.float("value", 0) : 0);
  if (given.known) return t.pad(cut, added, Number(given.known.values[0] ?? 0));
  const inside = t.pad(t.full(cut.shape, true), added);
  return t.where(inside, t.pad(cut, added), t.reshape(given.tensor, []));
}

function tile(call: Call): Tensor {
  const x = call.x(0);
  return t.tile(x, call.numbers(1, "repeats").slice(0, x.rank));
}

/** [batch, channels, height, width] with blocks of channels as pixels. */
function depthToSpace(call: Call): Tensor {
  const x = call.x(0);
  const block = call.int("blocksize", 1);
  const [n, c, h, w] = x.shape as [number, number, number, number];
  const depth = c / (block * block);
  const isRows = call.text("mode", "DCR") === "DCR";
  const apart = t.reshape(x, isRows ? [n, block, block, depth, h, w] : [n, depth, block, block, h, w]);
  const turned = t.transpose(apart, isRows ? [0, 3, 4, 1, 5, 2] : [0, 1, 4, 2, 5, 3]);
  return t.reshape(turned, [n, depth, h * block, w * block]);
}

function spaceToDepth(call: Call): Tensor {
  const x = call.x(0);
  const block = call.int("blocksize", 1);
  const [n, c, h, w] = x.shape as [number, number, number, number];
  const apart = t.reshape(x, [n, c, h / block, block, w / block, block]);
  return t.reshape(t.transpose(apart, [0, 3, 5, 1, 2, 4]), [n, c * block * block, h / block, w / block]);
}

function eyeLike(call: Call): Result {
  const { shape, type } = call.value(0);
  const [rows, columns] = [at(shape, 0), at(shape, 1)];
  const k = call.int("k", 0);
  const at1 = t.reshape(t.add(t.arange(rows), k), [rows, 1]);
  const ones = t.equal(at1, t.reshape(t.arange(columns), [1, columns]));
  return converted(ones, call.attribute("dtype") ? castType(call, "dtype") : type, call.around.floats);
}

function trilu(call: Call): Tensor {
  const x = call.x(0);
  const k = call.has(1) ? at(call.numbers(1, "k"), 0) : 0;
  const numbers = isFloat(x.dtype) ? x : t.cast(x, "i32");
  const made = call.flag("upper", true) ? t.triu(numbers, k) : t.tril(numbers, k);
  return made.dtype === x.dtype ? made : t.cast(made, x.dtype);
}

function range(call: Call): Result {
  const known = call.inputs.flatMap((value) => value?.known ?? []);
  const made = known.length === 3 ? rangeOf(call, known) : null;
  if (made) return Value.known("", made, call.around.floats);
  const [start, limit, step] = [0, 1, 2].map((i) => at(call.numbers(i, "start, limit and delta"), 0));
  const count = Math.max(0, Math.ceil(((limit as number) - (start as number)) / (step as number)));
  const whole = t.arange(count);
  const counted = t.cast(whole, call.x(0).dtype);
  return t.add(t.mul(counted, step as number), start as number);
}

export const ARRANGEMENTS: Readonly<Record<string, Operator>> = {
  Constant: constant,
  ConstantOfShape: constantOfShape,
  Shape: shapeOf,
  Size: (call) => call.wholes([elementsOf(call.value(0).shape)], []),
  Reshape: reshape,
  Flatten: flatten,
  Squeeze: (call) => t.reshape(call.x(0), squeezed(call, call.x(0).shape, call.axesFrom(1))),
  Unsqueeze: (call) => t.reshape(call.x(0), unsqueezed(call, call.x(0).shape, call.axesFrom(1) ?? [])),
  Transpose: (call) => t.transpose(call.x(0), call.ints("perm") ?? undefined),
  Concat: (call) => t.concat(call.all(), call.axis(call.int("axis", 1), call.x(0).rank)),
  Slice: slice,
  Split: split,
  Expand: expand,
  Pad: pad,
  Tile: tile,
  DepthToSpace: depthToSpace,
  SpaceToDepth: spaceToDepth,
  EyeLike: eyeLike,
  Trilu: trilu,
  Range: range,
  CenterCropPad: (call) => centred(call),
};

/** Cut or padded to a size, on both sides alike. */
function centred(call: Call): Tensor {
  const x = call.x(0);
  const size = call.numbers(1, "shape");
  const axes = call.axes(call.ints("axes") ?? x.shape.map((_, axis) => axis), x.rank);
  const change = x.shape.map((extent, axis) => (axes.includes(axis) ? at(size, axes.indexOf(axis)) - extent : 0));
  const low = change.map((n) => (n < 0 ? -Math.floor(-n / 2) : Math.floor(n / 2)));
  const cut = t.slice(
    x,
    x.shape.map((extent, axis) => {
      const [n, lo] = [at(change, axis), at(low, axis)];
      return n < 0 ? ([-lo, extent + n - lo] as const) : null;
    }),
  );
  if (cut.rank !== x.rank) call.fail(`${shapeText(x.shape)} cannot be cut to ${shapeText(size)}`);
  return t.pad(
    cut,
    change.map((n, axis) => (n > 0 ? ([at(low, axis), n - at(low, axis)] as const) : ([0, 0] as const))),
  );
}
