/** @file Operations that create, move, read and reduce elements, products and convolutions, as operators of ONNX. */
import { at } from "../../base/invariant.ts";
import type { Node } from "../../ir/graph.ts";
import type { AnyOp } from "../../ir/op.ts";
import { elementsOf, type Shape } from "../../ir/type.ts";
import { isBool } from "../../kernel/dtype.ts";
import * as broadcasts from "../../ops/broadcast.ts";
import { type ConcatAttrs, concat } from "../../ops/concat.ts";
import { conv, convInput } from "../../ops/conv.ts";
import type { ConvAttrs, ConvInputAttrs } from "../../ops/conv-geometry.ts";
import { type FullAttrs, full, type IotaAttrs, iota } from "../../ops/create.ts";
import { type AxisAttrs, gather, scatterAdd, scatterAddAlong, take } from "../../ops/indexing.ts";
import { type MatmulAttrs, matmul } from "../../ops/matmul.ts";
import * as movement from "../../ops/movement.ts";
import * as reduce from "../../ops/reduce.ts";
import { cumsum, type ScanAxisAttrs } from "../../ops/scan.ts";
import {
  type PadAttrs,
  pad,
  type SliceAttrs,
  slice,
  sliceAdd,
  sliceUpdate,
  type WindowAttrs,
} from "../../ops/slice.ts";
import { argsort, type SortAttrs } from "../../ops/sort.ts";
import { type UnfoldAttrs, unfold } from "../../ops/window.ts";
import type { ExportRule } from "./export-elementwise.ts";
import { BOOL, type GraphWriter, INT32, INT64, type OutAttributes } from "./export-graph.ts";

/** A node whose operands are needed whole; it gives the name of the result. */
const plain =
  (write: (w: GraphWriter, x: readonly string[], node: Node) => string): ExportRule =>
  (w, node) => {
    const name = write(
      w,
      node.inputs.map((input) => w.whole(input)),
      node,
    );
    const output = at(node.outputs, 0);
    w.set(output, { name, shape: output.type.shape });
    return undefined;
  };

/** Positions of a strided window along every axis, as rows of indices. */
function windowRows(shape: Shape, { start, stride }: WindowAttrs): readonly number[] {
  const rows: number[] = [];
  const place = shape.map(() => 0);
  for (let n = elementsOf(shape); n > 0; n--) {
    shape.forEach((_, axis) => void rows.push(at(start, axis) + at(place, axis) * at(stride, axis)));
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      place[axis] = (at(place, axis) + 1) % at(shape, axis);
      if (place[axis] !== 0) break;
    }
  }
  return rows;
}

const intoWindow =
  (reduction: OutAttributes): ExportRule =>
  (writer, written) => {
    if (isBool(at(written.inputs, 0).type.dtype)) return "has a form for numbers only";
    return plain((w, [x = "", update = ""], node) => {
      const { shape } = at(node.inputs, 1).type;
      if (shape.length === 0)
        return "reduction" in reduction ? w.emit("Add", [x, update]) : w.emit("Identity", [update]);
      const rows = w.parts.int64(windowRows(shape, node.attrs as WindowAttrs), [...shape, shape.length]);
      return w.emit("ScatterND", [x, rows, update], reduction);
    })(writer, written);
  };

/** Axes are an input of sums, and an attribute of the others in this version of the operators. */
const reduction = (kind: string): ExportRule =>
  plain((w, [x = ""], node) => {
    const { axes } = node.attrs as broadcasts.ReduceAttrs;
    if (axes.length === 0) return w.emit("Identity", [x]);
    const keep = { keepdims: { int: 0 } };
    if (kind === "ReduceSum") return w.emit(kind, [x, w.parts.int64(axes)], keep);
    return w.emit(kind, [x], { ...keep, axes: { ints: axes } });
  });

/** Of bools, as the least or greatest of numbers. */
const truth = (kind: string): ExportRule =>
  plain((w, [x = ""], node) => {
    const { axes } = node.attrs as broadcasts.ReduceAttrs;
    const [output, { shape }] = [at(node.outputs, 0).type, at(node.inputs, 0).type];
    if (axes.some((axis) => shape[axis] === 0)) {
      return w.emit("Expand", [w.scalar(output, kind === "ReduceMin" ? 1 : 0), w.parts.int64(output.shape)]);
    }
    const numbers = w.emit("Cast", [x], { to: { int: INT32 } });
    const reduced =
      axes.length === 0 ? numbers : w.emit(kind, [numbers], { keepdims: { int: 0 }, axes: { ints: axes } });
    return w.emit("Cast", [reduced], { to: { int: BOOL } });
  });

/** A list of attributes may not be empty. */
const permuted = (w: GraphWriter, name: string, perm: readonly number[]): string =>
  perm.length === 0 ? w.emit("Identity", [name]) : w.emit("Transpose", [name], { perm: { ints: perm } });

const swap = (w: GraphWriter, name: string, rank: number): string => {
  const perm = Array.from({ length: rank }, (_, axis) => axis);
  return w.emit("Transpose", [name], { perm: { ints: [...perm.slice(0, -2), rank - 1, rank - 2] } });
};

const pads = ({ lo, hi }: { readonly lo: readonly number[]; readonly hi: readonly number[] }) => ({
  ints: [...lo, ...hi],
});

const convAttributes = ({ stride, dilation, groups }: ConvAttrs): OutAttributes => ({
  strides: { ints: stride },
  dilations: { ints: dilation },
  group: { int: groups },
});

/** What the result has at its end beyond the last window. */
function outputPadding(node: Node): readonly number[] {
  const { stride, dilation, lo, hi, size } = node.attrs as ConvInputAttrs;
  const [y, kernel] = [at(node.inputs, 0).type.shape.slice(2), at(node.inputs, 1).type.shape.slice(2)];
  return size.map((extent, k) => {
    const covered = at(stride, k) * (at(y, k) - 1) + at(dilation, k) * (at(kernel, k) - 1) + 1;
    return extent - (covered - at(lo, k) - at(hi, k));
  });
}

const transposedConv: ExportRule = (w, node) => {
  const attrs = node.attrs as ConvInputAttrs;
  const extra = outputPadding(node);
  if (extra.some((n, k) => n < 0 || n >= Math.max(at(attrs.stride, k), at(attrs.dilation, k), 1))) {
    return "the result's size cannot be said";
  }
  return plain((writer, x) =>
    writer.emit("ConvTranspose", x, { ...convAttributes(attrs), pads: pads(attrs), output_padding: { ints: extra } }),
  )(w, node);
};

/** Windows by look-ups along one axis after the other: […, s₁, s₂] → […, o₁, w₁, o₂, w₂] → […, o₁, o₂, w₁, w₂]. */
const windows: ExportRule = plain((w, [x = ""], node) => {
  const { window, stride, lo, hi, dilation, value } = node.attrs as UnfoldAttrs;
  const { dtype, shape } = at(node.inputs, 0).type;
  const lead = shape.length - window.length;
  const none = shape.slice(0, lead).map(() => 0);
  const isPadded = [...lo, ...hi].some((n) => n > 0);
  const fill = w.parts.numbers(dtype, [value], []);
  let name = isPadded ? w.emit("Pad", [x, w.parts.int64([...none, ...lo, ...none, ...hi]), fill]) : x;
  window.forEach((extent, k) => {
    const count = at(at(node.outputs, 0).type.shape, lead + k);
    const places = Array.from({ length: count * extent }, (_, i) => {
      return Math.floor(i / extent) * at(stride, k) + (i % extent) * at(dilation, k);
    });
    name = w.emit("Gather", [name, w.parts.int64(places, [count, extent])], { axis: { int: lead + 2 * k } });
  });
  const axes = Array.from({ length: lead }, (_, axis) => axis);
  const perm = [...axes, ...window.map((_, k) => lead + 2 * k), ...window.map((_, k) => lead + 2 * k + 1)];
  return permuted(w, name, perm);
});

const rowsAdded: ExportRule = (w, node) => {
  if ((node.attrs as AxisAttrs).axis !== 0) return "has a form for the first axis only";
  return plain((writer, [x = "", indices = "", update = ""]) => {
    const { shape } = at(node.inputs, 1).type;
    const long = writer.emit("Cast", [indices], { to: { int: INT64 } });
    const rows = writer.reshape(long, [...shape, 1]);
    return writer.emit("ScatterND", [x, rows, update], { reduction: { text: "add" } });
  })(w, node);
};

const ADDING = { reduction: { text: "add" } };

export const ARRANGED: ReadonlyMap<AnyOp, ExportRule> = new Map<AnyOp, ExportRule>([
  [
    full,
    (w, node) => {
      const { dtype, value } = node.attrs as FullAttrs;
      w.set(at(node.outputs, 0), { name: w.parts.numbers(dtype, [value], []), shape: [] });
      return undefined;
    },
  ],
  [
    iota,
    (w, node) => {
      const { shape, axis } = node.attrs as IotaAttrs;
      const extents = shape.map((extent, a) => (a === axis ? extent : 1));
      const places = Array.from({ length: at(shape, axis) }, (_, i) => i);
      w.set(at(node.outputs, 0), { name: w.parts.numbers("i32", places, extents), shape: extents });
      return undefined;
    },
  ],
  [
    broadcasts.broadcast,
    (w, node) => {
      const { axes, shape } = node.attrs as broadcasts.BroadcastAttrs;
      const input = at(node.inputs, 0);
      const name = w.whole(input);
      const extents = shape.map((_, axis) => input.type.shape[axes.indexOf(axis)] ?? 1);
      const isOrdered = axes.every((axis, i) => i === 0 || axis > at(axes, i - 1));
      const ordered = isOrdered
        ? name
        : w.emit("Transpose", [name], { perm: { ints: [...axes.keys()].sort((a, b) => at(axes, a) - at(axes, b)) } });
      w.set(at(node.outputs, 0), { name: w.reshape(ordered, extents), shape: extents });
      return undefined;
    },
  ],
  [broadcasts.sum, reduction("ReduceSum")],
  [reduce.reduceMax, reduction("ReduceMax")],
  [reduce.reduceMin, reduction("ReduceMin")],
  [reduce.reduceProd, reduction("ReduceProd")],
  [reduce.any, truth("ReduceMax")],
  [reduce.all, truth("ReduceMin")],
  [
    cumsum,
    plain((w, [x = ""], { attrs }) => {
      const { axis, reverse } = attrs as ScanAxisAttrs;
      return w.emit("CumSum", [x, w.parts.int64([axis], [])], { reverse: { int: reverse ? 1 : 0 } });
    }),
  ],
  [
    argsort,
    plain((w, [given = ""], { attrs, inputs }) => {
      const { axis, descending, count } = attrs as SortAttrs;
      const x = isBool(at(inputs, 0).type.dtype) ? w.emit("Cast", [given], { to: { int: INT32 } }) : given;
      const settings = { axis: { int: axis }, largest: { int: descending ? 1 : 0 }, sorted: { int: 1 } };
      const [, places = ""] = w.emitAll("TopK", [x, w.parts.int64([count])], 2, settings);
      return w.emit("Cast", [places], { to: { int: INT32 } });
    }),
  ],
  [movement.reshape, plain((w, [x = ""], { outputs }) => w.reshape(x, at(outputs, 0).type.shape))],
  [movement.transpose, plain((w, [x = ""], { attrs }) => permuted(w, x, (attrs as movement.TransposeAttrs).perm))],
  [
    movement.flip,
    plain((w, [x = ""], { attrs, inputs }) => {
      const { axes } = attrs as movement.FlipAttrs;
      const extents = axes.map((axis) => at(at(inputs, 0).type.shape, axis));
      if (axes.length === 0 || extents.includes(0)) return w.emit("Identity", [x]);
      const places = [extents.map((n) => n - 1), extents.map((n) => -n - 1), axes, axes.map(() => -1)];
      return w.emit("Slice", [x, ...places.map((list) => w.parts.int64(list))]);
    }),
  ],
  [
    slice,
    plain((w, [x = ""], { attrs, inputs }) => {
      const { start, limit, stride } = attrs as SliceAttrs;
      if (at(inputs, 0).type.shape.length === 0) return w.emit("Identity", [x]);
      return w.emit("Slice", [x, ...[start, limit, start.map((_, i) => i), stride].map((l) => w.parts.int64(l))]);
    }),
  ],
  [sliceUpdate, intoWindow({})],
  [sliceAdd, intoWindow(ADDING)],
  [
    pad,
    (w, node) => {
      const { lo, hi, interior, value } = node.attrs as PadAttrs;
      const { dtype } = at(node.inputs, 0).type;
      if (interior.some((gap) => gap > 0)) return "elements between neighbours have no form";
      if (isBool(dtype)) return "has a form for numbers only";
      return plain((writer, [x = ""]) =>
        writer.emit("Pad", [x, writer.parts.int64([...lo, ...hi]), writer.parts.numbers(dtype, [value], [])]),
      )(w, node);
    },
  ],
  [concat, plain((w, x, { attrs }) => w.emit("Concat", x, { axis: { int: (attrs as ConcatAttrs).axis } }))],
  [take, plain((w, x, { attrs }) => w.emit("Gather", x, { axis: { int: (attrs as AxisAttrs).axis } }))],
  [gather, plain((w, x, { attrs }) => w.emit("GatherElements", x, { axis: { int: (attrs as AxisAttrs).axis } }))],
  [scatterAdd, rowsAdded],
  [
    scatterAddAlong,
    plain((w, x, { attrs }) => w.emit("ScatterElements", x, { ...ADDING, axis: { int: (attrs as AxisAttrs).axis } })),
  ],
  [
    matmul,
    plain((w, [x = "", y = ""], { attrs, inputs }) => {
      const { ta, tb } = attrs as MatmulAttrs;
      const { length: rank } = at(inputs, 0).type.shape;
      return w.emit("MatMul", [ta ? swap(w, x, rank) : x, tb ? swap(w, y, rank) : y]);
    }),
  ],
  [
    conv,
    plain((w, x, { attrs }) =>
      w.emit("Conv", x, { ...convAttributes(attrs as ConvAttrs), pads: pads(attrs as ConvAttrs) }),
    ),
  ],
  [convInput, transposedConv],
  [unfold, windows],
]);
