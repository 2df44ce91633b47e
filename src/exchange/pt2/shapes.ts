/** @file ATen operations that make, move, cut and reduce. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import { elementsOf, type Shape } from "../../ir/type.ts";
import { type DType, isBool, isFloat } from "../../kernel/dtype.ts";
import type { Tensor } from "../../trace/tensor.ts";
import type { Args, Operator, Value } from "./args.ts";
import { as, floats, numbers } from "./promote.ts";

/** A shape with -1 for what is left. */
function filled(args: Args, x: Tensor, wanted: readonly number[]): Shape {
  const open = wanted.indexOf(-1);
  if (open < 0) return wanted;
  const rest = elementsOf(wanted.filter((extent) => extent !== -1));
  const extent = rest === 0 ? 0 : x.elements / rest;
  return Number.isInteger(extent)
    ? wanted.with(open, extent)
    : args.fail(`[${x.shape.join(",")}] cannot become [${wanted.join(",")}]`);
}

const reshape =
  (name: string): Operator =>
  (args) =>
    t.reshape(args.t("self"), filled(args, args.t("self"), args.ns(name)));

function expand(args: Args): Tensor {
  const x = args.t("self");
  const size = args.ns("size");
  const lead = size.length - x.rank;
  return t.broadcastTo(
    x,
    size.map((extent, axis) => (extent === -1 ? at(x.shape, axis - lead) : extent)),
  );
}

/** Python's bounds of a slice. */
const bound = (value: number | null, extent: number, open: number): number => {
  if (value === null) return open;
  return Math.min(Math.max(value < 0 ? value + extent : value, 0), extent);
};

/** Along one axis, everything else whole. */
const along = (x: Tensor, axis: number, range: readonly [number, number, number?]) =>
  x.shape.map((_, a) => (a === axis ? range : null));

function slice(args: Args): Tensor {
  const x = args.t("self");
  const axis = args.axis(args.n("dim", 0), x.rank);
  const extent = at(x.shape, axis);
  const from = bound(args.maybeN("start"), extent, 0);
  const to = bound(args.maybeN("end"), extent, extent);
  return t.slice(x, along(x, axis, [from, Math.max(from, to), args.n("step", 1)]));
}

function select(args: Args): Tensor {
  const x = args.t("self");
  const axis = args.axis(args.n("dim"), x.rank);
  const index = args.n("index");
  return t.slice(
    x,
    x.shape.map((_, a) => (a === axis ? index : null)),
  );
}

function squeeze(args: Args): Tensor {
  const x = args.t("self");
  const axes = args.has("dim") ? args.ns("dim").map((axis) => args.axis(axis, x.rank)) : x.shape.map((_, axis) => axis);
  return t.reshape(
    x,
    x.shape.filter((extent, axis) => extent !== 1 || !axes.includes(axis)),
  );
}

function unsqueeze(args: Args): Tensor {
  const x = args.t("self");
  const axis = args.axis(args.n("dim"), x.rank + 1);
  return t.reshape(x, [...x.shape.slice(0, axis), 1, ...x.shape.slice(axis)]);
}

function flatten(args: Args): Tensor {
  const x = args.t("self");
  if (x.rank === 0) return t.reshape(x, [1]);
  const [from, to] = [args.axis(args.n("start_dim", 0), x.rank), args.axis(args.n("end_dim", -1), x.rank)];
  return t.reshape(x, [...x.shape.slice(0, from), elementsOf(x.shape.slice(from, to + 1)), ...x.shape.slice(to + 1)]);
}

function unflatten(args: Args): Tensor {
  const x = args.t("self");
  const axis = args.axis(args.n("dim"), x.rank);
  const sizes = args.ns("sizes");
  const rest = elementsOf(sizes.filter((extent) => extent !== -1));
  const whole = sizes.map((extent) => (extent === -1 ? at(x.shape, axis) / rest : extent));
  return t.reshape(x, [...x.shape.slice(0, axis), ...whole, ...x.shape.slice(axis + 1)]);
}

function split(args: Args): Value {
  const x = args.t("self");
  const axis = args.axis(args.n("dim", 0), x.rank);
  const extent = at(x.shape, axis);
  const given = args.has("split_sizes") ? args.ns("split_sizes") : null;
  const size = args.has("split_size") ? args.n("split_size") : Math.ceil(extent / args.n("chunks", 1));
  const parts = given ?? Array.from({ length: Math.ceil(extent / size) }, (_, i) => Math.min(size, extent - i * size));
  return t.split(x, parts, axis);
}

function transpose(args: Args): Tensor {
  const x = args.t("self");
  if (x.rank < 2) return x;
  return t.swapAxes(x, args.axis(args.n("dim0"), x.rank), args.axis(args.n("dim1"), x.rank));
}

const permuted = (args: Args, x: Tensor, dims: readonly number[]): Tensor =>
  t.transpose(
    x,
    dims.map((axis) => args.axis(axis, x.rank)),
  );

function cat(args: Args): Tensor {
  const all = args.tensors("tensors").filter((x) => !(x.rank === 1 && x.elements === 0));
  const [first] = all;
  if (!first) return at(args.tensors("tensors"), 0);
  const dtype = all.reduce((found: DType, x) => (isFloat(x.dtype) ? x.dtype : found), first.dtype);
  return t.concat(
    all.map((x) => as(x, dtype)),
    args.axis(args.n("dim", 0), first.rank),
  );
}

function repeat(args: Args): Tensor {
  const x = args.t("self");
  const counts = args.ns("repeats");
  const wide = t.reshape(x, [...new Array<number>(counts.length - x.rank).fill(1), ...x.shape]);
  return t.tile(wide, counts);
}

function padConstant(args: Args): Tensor {
  const x = args.t("self");
  const pads = args.ns("pad");
  const widths = x.shape.map((_, axis) => {
    const k = 2 * (x.rank - 1 - axis);
    return [pads[k] ?? 0, pads[k + 1] ?? 0] as const;
  });
  const cut = t.slice(
    x,
    widths.map(([lo, hi], axis) => [Math.max(0, -lo), at(x.shape, axis) + Math.min(0, hi)] as const),
  );
  const mode = args.text("mode", "constant");
  const modes = { reflect: "reflect", replicate: "replicate", circular: "circular" } as const;
  const value = mode === "constant" ? args.n("value", 0) : (modes[mode as "reflect"] ?? args.fail(`mode ${mode}`));
  return t.pad(
    cut,
    widths.map(([lo, hi]) => [Math.max(0, lo), Math.max(0, hi)] as const),
    value,
  );
}

const edges =
  (mode: "reflect" | "replicate"): Operator =>
  (args) => {
    const [x, pads] = [args.t("self"), args.ns("padding")];
    const widths = x.shape.map((_, axis) => {
      const k = 2 * (x.rank - 1 - axis);
      return [pads[k] ?? 0, pads[k + 1] ?? 0] as const;
    });
    return t.pad(x, widths, mode);
  };

/** Elements in the order of their storage in PyTorch, which is that of their strides. */
function inStorageOrder(args: Args, x: Tensor): Tensor {
  const strides = args.strides("self") ?? [];
  const axes = x.shape.map((_, axis) => axis);
  const order = [...axes].sort((a, b) => (strides[b] ?? 0) - (strides[a] ?? 0) || a - b);
  const isDense = order.every((axis, k) => {
    const behind = elementsOf(order.slice(k + 1).map((a) => at(x.shape, a)));
    return at(x.shape, axis) === 1 || strides[axis] === behind;
  });
  if (!isDense) args.fail("a view of a tensor with gaps in its storage", "export the model with contiguous tensors");
  return t.reshape(order.every((axis, k) => axis === k) ? x : t.transpose(x, order), [x.elements]);
}

/** Elements of a storage by strides; where they are all of it in some order of axes, nothing is read twice. */
function asStrided(args: Args): Tensor {
  const flat = inStorageOrder(args, args.t("self"));
  const [size, stride, offset] = [args.ns("size"), args.ns("stride"), args.maybeN("storage_offset") ?? 0];
  const order = size.map((_, axis) => axis).sort((a, b) => at(stride, b) - at(stride, a) || a - b);
  const extents = order.map((axis) => at(size, axis));
  const isWhole = order.every(
    (axis, k) => at(size, axis) === 1 || at(stride, axis) === elementsOf(extents.slice(k + 1)),
  );
  if (isWhole && offset === 0 && elementsOf(size) === flat.elements) {
    const back = size.map((_, axis) => order.indexOf(axis));
    return t.transpose(t.reshape(flat, extents), back);
  }
  const places = Int32Array.from({ length: elementsOf(size) }, (_, i) => {
    return size.reduce((sum, extent, axis) => {
      const position = Math.floor(i / elementsOf(size.slice(axis + 1))) % extent;
      return sum + position * at(stride, axis);
    }, offset);
  });
  return t.reshape(t.take(flat, t.tensor(places)), size);
}

// ---- made from nothing --------------------------------------------------------------------------------------------

const filledWith =
  (value: (args: Args) => number, shape: (args: Args) => Shape, usual: (args: Args) => DType): Operator =>
  (args) => {
    const dtype = args.dtype() ?? usual(args);
    const number = value(args);
    return t.cast(t.full(shape(args), number, isBool(dtype) ? "i32" : dtype), dtype);
  };
const sized = (args: Args): Shape => args.ns("size");
const like = (args: Args): Shape => args.t("self").shape;
const f32 = (): DType => "f32";
const own = (args: Args): DType => args.t("self").dtype;
const value = (args: Args): number => args.n("fill_value");
/** Of a number alone the type is that of the number. */
const ofNumber = (args: Args): DType => (args.isFloat("fill_value") ? "f32" : "i32");

function arange(args: Args): Tensor {
  const [from, to, step] = [args.n("start", 0), args.n("end"), args.n("step", 1)];
  const isWhole = [from, to, step].every(Number.isInteger) && !args.isFloat("end") && !args.isFloat("start");
  const dtype = args.dtype() ?? (isWhole ? "i32" : "f32");
  const count = Math.max(0, Math.ceil((to - from) / step));
  const counted = t.arange(count, isFloat(dtype) ? dtype : "i32");
  const scaled = step === 1 ? counted : t.mul(counted, step);
  return as(from === 0 ? scaled : t.add(scaled, from), dtype);
}

function diff(args: Args): Tensor {
  const x = args.t("self");
  const axis = args.axis(args.n("dim", -1), x.rank);
  const parts = [args.maybe("prepend"), x, args.maybe("append")].filter((part) => part !== null);
  let y = parts.length > 1 ? t.concat(parts, axis) : x;
  for (let i = 0; i < args.n("n", 1); i++) {
    const extent = at(y.shape, axis);
    const [after, before] = [t.slice(y, along(y, axis, [1, extent])), t.slice(y, along(y, axis, [0, extent - 1]))];
    y = isBool(y.dtype) ? t.notEqual(after, before) : t.sub(after, before);
  }
  return y;
}

const triangle =
  (of: typeof t.tril): Operator =>
  (args) => {
    const x = args.t("self");
    return as(of(numbers(x), args.n("diagonal", 0)), x.dtype);
  };

function toType(args: Args): Tensor {
  const dtype = args.dtype();
  const other = args.has("other") ? args.t("other").dtype : null;
  const wanted = dtype ?? other;
  return wanted ? as(args.t("self"), wanted) : args.t("self");
}

// ---- reductions ---------------------------------------------------------------------------------------------------

type Reduce = (x: Tensor, axes: readonly number[], options: { readonly keepDims: boolean }) => Tensor;

const reduction =
  (of: Reduce, prepared: (x: Tensor) => Tensor): Operator =>
  (args) => {
    const dtype = args.dtype();
    const x = dtype ? as(args.t("self"), dtype) : prepared(args.t("self"));
    const listed = args.has("dim") ? args.ns("dim") : [];
    const axes = listed.length > 0 ? listed.map((axis) => args.axis(axis, x.rank)) : x.shape.map((_, axis) => axis);
    return x.rank === 0 ? x : of(x, axes, { keepDims: args.flag("keepdim") });
  };

const same = (x: Tensor): Tensor => x;
const truth = (x: Tensor): Tensor => (isBool(x.dtype) ? x : t.notEqual(x, 0));

/** Of the whole tensor, or along an axis with positions. */
const extremum =
  (of: typeof t.max, position: typeof t.argmax): Operator =>
  (args) => {
    const x = args.t("self");
    if (!args.has("dim")) return of(x);
    const axis = args.axis(args.n("dim"), x.rank);
    const options = { keepDims: args.flag("keepdim") };
    return [of(x, axis, options), position(x, axis, options)];
  };

const positionOf =
  (of: typeof t.argmax): Operator =>
  (args) => {
    const x = args.t("self");
    return args.has("dim") ? of(x, args.axis(args.n("dim"), x.rank), { keepDims: args.flag("keepdim") }) : of(x);
  };

/** `correction`, or the older `unbiased`. */
function variance(args: Args, x: Tensor): Tensor {
  const listed = args.has("dim") ? args.ns("dim") : [];
  const axes = listed.length > 0 ? listed.map((axis) => args.axis(axis, x.rank)) : x.shape.map((_, axis) => axis);
  const count = elementsOf(axes.map((axis) => at(x.shape, axis)));
  const less = args.has("correction") ? args.n("correction") : Number(args.flag("unbiased", true));
  const moved = t.sub(x, t.mean(x, axes, { keepDims: true }));
  return t.mul(t.mean(t.square(moved), axes, { keepDims: args.flag("keepdim") }), count / Math.max(0, count - less));
}

/** A diagonal above the main one begins at a later column, one below it at a later row. */
function diagonal(args: Args): Tensor {
  const x = args.t("self");
  const [rows, columns] = [args.axis(args.n("dim1", 0), x.rank), args.axis(args.n("dim2", 1), x.rank)];
  const offset = args.n("offset", 0);
  const cut = offset >= 0 ? columns : rows;
  const start = Math.min(Math.abs(offset), at(x.shape, cut));
  const from = t.slice(
    x,
    x.shape.map((extent, axis) => (axis === cut ? ([start, extent] as const) : null)),
  );
  return t.diagonal(from, rows, columns);
}

function vectorNorm(args: Args): Tensor {
  const x = args.t("self");
  const order = args.has("ord") ? args.n("ord") : args.n("p", 2);
  const axes = args.has("dim") ? args.ns("dim").map((axis) => args.axis(axis, x.rank)) : x.shape.map((_, axis) => axis);
  const options = { keepDims: args.flag("keepdim") };
  if (order === 2) return t.norm(x, axes, options);
  if (order === 1) return t.sum(t.abs(x), axes, options);
  if (order === Number.POSITIVE_INFINITY) return t.max(t.abs(x), axes, options);
  if (order === Number.NEGATIVE_INFINITY) return t.min(t.abs(x), axes, options);
  if (order === 0) return t.sum(t.cast(t.notEqual(x, 0), x.dtype), axes, options);
  return t.pow(t.sum(t.pow(t.abs(x), order), axes, options), 1 / order);
}

export const SHAPES: Readonly<Record<string, Operator>> = {
  view: (args) => (args.has("size") ? reshape("size")(args) : toType(args)),
  _unsafe_view: reshape("size"),
  reshape: reshape("shape"),
  view_as: (args) => t.reshape(args.t("self"), args.t("other").shape),
  expand,
  expand_as: (args) => t.broadcastTo(args.t("self"), args.t("other").shape),
  broadcast_to: expand,
  permute: (args) => permuted(args, args.t("self"), args.ns("dims")),
  transpose,
  t: (args) => t.transpose(args.t("self")),
  numpy_T: (args) => t.transpose(args.t("self")),
  movedim: (args) => {
    const x = args.t("self");
    const [from, to] = [args.ns("source"), args.ns("destination")].map((list) =>
      list.map((axis) => args.axis(axis, x.rank)),
    ) as [number[], number[]];
    const rest = x.shape.map((_, axis) => axis).filter((axis) => !from.includes(axis));
    const order = x.shape.map((_, axis) => (to.includes(axis) ? at(from, to.indexOf(axis)) : (rest.shift() as number)));
    return t.transpose(x, order);
  },
  slice,
  narrow: (args) => {
    const x = args.t("self");
    const axis = args.axis(args.n("dim"), x.rank);
    return t.slice(x, along(x, axis, [args.n("start"), args.n("start") + args.n("length")]));
  },
  select,
  squeeze,
  unsqueeze,
  flatten,
  unflatten,
  split,
  split_with_sizes: split,
  chunk: split,
  unbind: (args) => t.unstack(args.t("self"), args.axis(args.n("dim", 0), args.t("self").rank)),
  cat,
  concat: cat,
  stack: (args) =>
    t.stack(args.tensors("tensors"), args.axis(args.n("dim", 0), at(args.tensors("tensors"), 0).rank + 1)),
  repeat,
  tile: (args) => t.tile(args.t("self"), args.ns("dims")),
  repeat_interleave: (args) =>
    t.repeat(args.t("self"), args.n("repeats"), args.axis(args.n("dim", 0), args.t("self").rank)),
  flip: (args) =>
    t.flip(
      args.t("self"),
      args.ns("dims").map((axis) => args.axis(axis, args.t("self").rank)),
    ),
  roll: (args) => t.roll(args.t("self"), args.ns("shifts"), args.ns("dims")),
  as_strided: asStrided,
  constant_pad_nd: padConstant,
  pad: padConstant,
  reflection_pad1d: edges("reflect"),
  reflection_pad2d: edges("reflect"),
  reflection_pad3d: edges("reflect"),
  replication_pad1d: edges("replicate"),
  replication_pad2d: edges("replicate"),
  replication_pad3d: edges("replicate"),
  pixel_shuffle: (args) => t.pixelShuffle(args.t("self"), args.n("upscale_factor")),
  pixel_unshuffle: (args) => t.pixelUnshuffle(args.t("self"), args.n("downscale_factor")),
  clone: (args) => args.t("self"),
  contiguous: (args) => args.t("self"),
  alias: (args) => args.t("self"),
  lift_fresh_copy: (args) => args.t("self"),
  lift_fresh: (args) => args.t("self"),
  detach: (args) => t.stopGradient(args.t("self")),
  detach_copy: (args) => t.stopGradient(args.t("self")),
  to: toType,
  _to_copy: toType,
  type_as: (args) => as(args.t("self"), args.t("other").dtype),
  copy: (args) => t.broadcastTo(as(args.t("src"), args.t("self").dtype), args.t("self").shape),
  fill: (args) => t.broadcastTo(as(t.tensor(args.n("value")), args.t("self").dtype), args.t("self").shape),
  zeros: filledWith(() => 0, sized, f32),
  ones: filledWith(() => 1, sized, f32),
  full: filledWith(value, sized, ofNumber),
  empty: filledWith(() => 0, sized, f32),
  zeros_like: filledWith(() => 0, like, own),
  ones_like: filledWith(() => 1, like, own),
  full_like: filledWith(value, like, own),
  empty_permuted: filledWith(() => 0, sized, f32),
  empty_strided: filledWith(() => 0, sized, f32),
  empty_like: filledWith(() => 0, like, own),
  new_zeros: filledWith(() => 0, sized, own),
  new_ones: filledWith(() => 1, sized, own),
  new_full: filledWith(value, sized, own),
  scalar_tensor: filledWith(
    (args) => args.n("s"),
    () => [],
    f32,
  ),
  arange,
  eye: (args) => t.eye(args.n("n"), args.n("m", args.n("n")), args.dtype() ?? "f32"),
  tril: triangle(t.tril),
  triu: triangle(t.triu),
  diff,
  diagonal,
  sum: reduction(t.sum, numbers),
  mean: reduction(t.mean, same),
  prod: reduction(t.prod, numbers),
  amax: reduction(t.max, same),
  amin: reduction(t.min, same),
  any: reduction(t.any, truth),
  all: reduction(t.all, truth),
  logsumexp: reduction(t.logsumexp, floats),
  max: extremum(t.max, t.argmax),
  min: extremum(t.min, t.argmin),
  argmax: positionOf(t.argmax),
  argmin: positionOf(t.argmin),
  var: (args) => variance(args, args.t("self")),
  std: (args) => t.sqrt(variance(args, args.t("self"))),
  var_mean: (args) => {
    const x = args.t("self");
    const axes = args.has("dim")
      ? args.ns("dim").map((axis) => args.axis(axis, x.rank))
      : x.shape.map((_, axis) => axis);
    return [variance(args, x), t.mean(x, axes, { keepDims: args.flag("keepdim") })];
  },
  linalg_vector_norm: vectorNorm,
  norm: vectorNorm,
  cumsum: (args) => t.cumsum(numbers(args.t("self")), args.axis(args.n("dim"), args.t("self").rank)),
  cumprod: (args) => t.cumprod(numbers(args.t("self")), args.axis(args.n("dim"), args.t("self").rank)),
};
