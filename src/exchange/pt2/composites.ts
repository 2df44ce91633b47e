/**
 * @file ATen operations that are others put together: programs in training form keep them whole. Here, too, they are made of others; names of one
 * operation are in names.ts.
 */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import { elementsOf } from "../../ir/type.ts";
import { bytesOf, type DType, isFloat } from "../../kernel/dtype.ts";
import { Tensor } from "../../trace/tensor.ts";
import type { Args, Operator, Value } from "./args.ts";
import { MARGIN_LOSSES } from "./margin-losses.ts";
import { as, floats, numbers, pair } from "./promote.ts";

const axisOf = (args: Args, x: Tensor, usual = -1, name = "dim"): number => args.axis(args.n(name, usual), x.rank);

const one =
  (of: (x: Tensor) => Tensor): Operator =>
  (args) =>
    of(args.t("self"));
const float = (of: (x: Tensor) => Tensor): Operator => one((x) => of(floats(x)));
const two =
  (of: (a: Tensor, b: Tensor | number) => Tensor): Operator =>
  (args) =>
    of(...pair(args));
const joined =
  (of: (list: readonly Tensor[]) => Tensor): Operator =>
  (args) =>
    of(args.tensors("tensors"));

/** Axes of extent 1 in front, as many as are missing. */
const atLeast = (x: Tensor, rank: number): Tensor =>
  x.rank >= rank ? x : t.reshape(x, [...new Array<number>(rank - x.rank).fill(1), ...x.shape]);
/** Of three axes the batch is in the middle: [n] becomes [1, n, 1]. */
const threeAxes = (x: Tensor): Tensor =>
  x.rank === 2 ? t.expandDims(x, 2) : atLeast(x.rank === 1 ? t.expandDims(x, 1) : x, 3);

const scaledSum = (args: Args, product: Tensor): Tensor => {
  const [alpha, beta] = [args.n("alpha", 1), args.n("beta", 1)];
  const own = beta === 1 ? args.t("self") : t.mul(args.t("self"), beta);
  return t.add(own, alpha === 1 ? product : t.mul(product, alpha));
};

// ---- recurrent cells ----------------------------------------------------------------------------------------------

/** x · Wᵀ + b. */
function affine(args: Args, x: Tensor, [weight, bias]: readonly [string, string]): Tensor {
  const y = t.matmul(x, args.t(weight), { tb: true });
  const b = args.maybe(bias);
  return b ? t.add(y, b) : y;
}

const fromInput = (args: Args): Tensor => affine(args, args.t("input"), ["w_ih", "b_ih"]);
const gatesOf = (x: Tensor, count: number): readonly Tensor[] => t.split(x, count, -1);

function lstmCell(args: Args): Value {
  const [h, c] = args.tensors("hx") as [Tensor, Tensor];
  const sum = t.add(fromInput(args), affine(args, h, ["w_hh", "b_hh"]));
  const [i, f, g, o] = gatesOf(sum, 4) as [Tensor, Tensor, Tensor, Tensor];
  const next = t.add(t.mul(t.sigmoid(f), c), t.mul(t.sigmoid(i), t.tanh(g)));
  return [t.mul(t.sigmoid(o), t.tanh(next)), next];
}

function gruCell(args: Args): Tensor {
  const h = args.t("hx");
  const [xr, xz, xn] = gatesOf(fromInput(args), 3) as [Tensor, Tensor, Tensor];
  const [hr, hz, hn] = gatesOf(affine(args, h, ["w_hh", "b_hh"]), 3) as [Tensor, Tensor, Tensor];
  const [r, z] = [t.sigmoid(t.add(xr, hr)), t.sigmoid(t.add(xz, hz))];
  const n = t.tanh(t.add(xn, t.mul(r, hn)));
  return t.add(n, t.mul(z, t.sub(h, n)));
}

const rnnCell =
  (of: (x: Tensor) => Tensor): Operator =>
  (args) =>
    of(t.add(fromInput(args), affine(args, args.t("hx"), ["w_hh", "b_hh"])));

// ---- positions ----------------------------------------------------------------------------------------------------

/** Windows along an axis, as a new last axis. */
function windows(args: Args): Tensor {
  const x = args.t("self");
  const axis = axisOf(args, x, -1, "dimension");
  const [size, step] = [args.n("size"), args.n("step")];
  const count = Math.floor((at(x.shape, axis) - size) / step) + 1;
  const places = Int32Array.from({ length: count * size }, (_, k) => Math.floor(k / size) * step + (k % size));
  const cut = t.take(x, t.tensor(places, { shape: [count, size] }), axis);
  const others = cut.shape.map((_, a) => a).filter((a) => a !== axis + 1);
  return t.transpose(cut, [...others, axis + 1]);
}

/** Elements of `source`, in order, where the mask holds. */
function maskedScatter(args: Args): Tensor {
  const x = args.t("self");
  const mask = t.broadcastTo(args.t("mask"), x.shape);
  const source = t.reshape(args.t("source"), [-1]);
  const order = t.sub(t.cumsum(t.cast(t.reshape(mask, [-1]), "i32"), 0), 1);
  const chosen = t.take(source, t.clamp(order, 0, Math.max(0, source.elements - 1)));
  return t.where(mask, as(t.reshape(chosen, x.shape), x.dtype), x);
}

/** Row and column numbers of one triangle of a matrix. */
const triangleIndices =
  (isIn: (row: number, column: number, offset: number) => boolean): Operator =>
  (args) => {
    const [rows, columns, offset] = [args.n("row"), args.n("col"), args.n("offset", 0)];
    const places = Array.from({ length: rows * columns }, (_, k) => [Math.floor(k / columns), k % columns] as const);
    const inside = places.filter(([row, column]) => isIn(row, column, offset));
    const flat = Int32Array.from([...inside.map(([row]) => row), ...inside.map(([, column]) => column)]);
    return t.tensor(flat, { shape: [2, inside.length] });
  };

/** The lower one of two in the middle, or the k-th smallest, and where it is. */
function median(args: Args): Value {
  const isWhole = !args.has("dim") && !args.has("k");
  const x = isWhole ? t.reshape(args.t("self"), [-1]) : args.t("self");
  const axis = isWhole ? 0 : axisOf(args, x);
  const middle = args.has("k") ? args.n("k") - 1 : Math.floor((at(x.shape, axis) - 1) / 2);
  const order = t.argsort(x, axis);
  const place = t.slice(
    order,
    x.shape.map((_, a) => (a === axis ? ([middle, middle + 1] as const) : null)),
  );
  const value = t.gather(x, place, axis);
  if (isWhole) return t.reshape(value, []);
  return args.flag("keepdim") ? [value, place] : [t.squeeze(value, axis), t.squeeze(place, axis)];
}

/** Running extremes, and where each was seen last. */
const running =
  (of: (x: Tensor, axis: number) => Tensor): Operator =>
  (args) => {
    const x = args.t("self");
    const axis = axisOf(args, x);
    const values = of(x, axis);
    const count = t.reshape(t.arange(at(x.shape, axis)), [-1, ...x.shape.slice(axis + 1).map(() => 1)]);
    return [values, t.cummax(t.where(t.equal(x, values), count, 0), axis)];
  };

/** Rows of a table added up, or averaged, by bags that begin at offsets. */
function embeddingBag(args: Args): Value {
  const [weight, indices, offsets] = [args.t("weight"), args.t("indices"), args.t("offsets")];
  const mode = args.n("mode", 0);
  if (mode > 1) args.fail("largest elements of bags", "use the modes sum and mean");
  if (args.n("padding_idx", -1) >= 0) args.fail("bags with a padding index", "leave padding out of the bags");
  const bags = args.flag("include_last_offset") ? at(offsets.shape, 0) - 1 : at(offsets.shape, 0);
  const starts = t.slice(offsets, [[0, bags]]);
  const ids = t.sub(t.searchsorted(starts, t.arange(at(indices.shape, 0)), { side: "right" }), 1);
  const rows = t.take(weight, indices);
  const scale = args.maybe("per_sample_weights");
  const scaled = scale ? t.mul(rows, t.expandDims(scale, 1)) : rows;
  const y = mode === 0 ? t.segmentSum(scaled, ids, bags) : t.segmentMean(scaled, ids, bags);
  const nothing = t.zeros([0], "i32");
  return args.node.outputs.map((_, i) => (i === 0 ? y : nothing));
}

function diagonalEmbedded(args: Args): Tensor {
  const x = args.t("self");
  const offset = args.n("offset", 0);
  const n = at(x.shape, x.rank - 1) + Math.abs(offset);
  const [p, q] = [args.axis(args.n("dim1", -2), x.rank + 1), args.axis(args.n("dim2", -1), x.rank + 1)];
  const moved = Math.max(offset, 0);
  const wide = t.pad(x, [...x.shape.slice(1).map(() => [0, 0] as const), [moved, Math.max(-offset, 0)] as const]);
  const columns = t.reshape(t.arange(n), [1, n]);
  const isOn = t.equal(columns, t.add(t.reshape(t.arange(n), [n, 1]), offset));
  // element (r, c) of the last two axes is the one of column c
  const square = t.where(isOn, t.expandDims(wide, -2), 0);
  const rest = square.shape.map((_, a) => a).slice(0, -2);
  const order = square.shape.map((_, a) => {
    if (a === p) return x.rank - 1;
    return a === q ? x.rank : (rest.shift() as number);
  });
  return t.transpose(square, order);
}

function rotated(args: Args): Tensor {
  const x = args.t("self");
  const [a, b] = args.ns("dims", [0, 1]).map((axis) => args.axis(axis, x.rank)) as [number, number];
  const turns = ((args.n("k", 1) % 4) + 4) % 4;
  if (turns === 0) return x;
  if (turns === 2) return t.flip(x, [a, b]);
  return turns === 1 ? t.flip(t.swapAxes(x, a, b), [a]) : t.flip(t.swapAxes(x, a, b), [b]);
}

/** Pieces by their number, the first ones one longer, or by where they are cut. */
function pieces(args: Args): Value {
  const x = args.t("self");
  const axis = axisOf(args, x, 0);
  const extent = at(x.shape, axis);
  const cuts = args.has("indices") ? args.ns("indices").map((cut) => (cut < 0 ? cut + extent : cut)) : [];
  const count = args.has("sections") ? args.n("sections") : 0;
  const even = Array.from({ length: Math.max(0, count - 1) }, (_, i) => {
    return (i + 1) * Math.floor(extent / count) + Math.min(i + 1, extent % count);
  });
  const ends = [...(count > 0 ? even : cuts), extent];
  return ends.map((end, i) => {
    const range = [i === 0 ? 0 : at(ends, i - 1), end] as const;
    return t.slice(
      x,
      x.shape.map((_, a) => (a === axis ? range : null)),
    );
  });
}

// ---- numbers ------------------------------------------------------------------------------------------------------

const LARGEST: Readonly<Partial<Record<DType, number>>> = {
  f16: 65504,
  bf16: 3.3895313892515355e38,
  f32: 3.4028234663852886e38,
};

function noNan(args: Args): Tensor {
  const x = args.t("self");
  if (!isFloat(x.dtype)) return x;
  const most = LARGEST[x.dtype] ?? Number.MAX_VALUE;
  const infinite = (lo: boolean): Tensor => t.equal(x, lo ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY);
  const high = t.where(infinite(false), args.maybeN("posinf") ?? most, x);
  const low = t.where(infinite(true), args.maybeN("neginf") ?? -most, high);
  return t.where(t.isnan(x), args.maybeN("nan") ?? 0, low);
}

/** x · log y, 0 where x is. */
const xlogy = two((x, y) => {
  const safe = t.where(t.equal(x, 0), 1, y instanceof Tensor ? floats(y) : t.full(x.shape, y, "f32"));
  return t.mul(floats(x), t.log(safe));
});

const logAdd = (exp: (x: Tensor) => Tensor, log: (x: Tensor) => Tensor): Operator =>
  two((a, b) => {
    const [most, least] = [t.maximum(a, b), t.minimum(a, b)];
    return t.add(most, log(t.add(exp(t.sub(least, most)), 1)));
  });

const isClose: Operator = (args) => {
  const [a, b] = pair(args);
  const [close, far] = [args.n("atol", 1e-8), args.n("rtol", 1e-5)];
  const size = typeof b === "number" ? Math.abs(b) * far + close : t.add(t.mul(t.abs(b), far), close);
  const near = t.lessEqual(t.abs(t.sub(a, b)), size);
  return t.logicalOr(near, t.equal(a, b));
};

/** Numbers of the boundaries below a value; with `right`, of those up to it. */
const bucket = (args: Args, sorted: string, values: string): Tensor => {
  const side = args.flag("right") || args.text("side", "left") === "right" ? "right" : "left";
  const bounds = args.t(sorted);
  return t.searchsorted(bounds, as(args.t(values), bounds.dtype), { side });
};

const overAxes = (args: Args, x: Tensor): readonly number[] => {
  if (!args.has("dim")) return x.shape.map((_, axis) => axis);
  const given = args.ns("dim");
  return given.length === 0 ? x.shape.map((_, axis) => axis) : given.map((axis) => args.axis(axis, x.rank));
};

function standardDeviations(args: Args): Value {
  const x = args.t("self");
  const axes = overAxes(args, x);
  const keepDims = args.flag("keepdim");
  const count = elementsOf(axes.map((axis) => at(x.shape, axis)));
  const correction = args.has("correction") ? args.n("correction") : Number(args.flag("unbiased", true));
  const mean = t.mean(x, axes, { keepDims: true });
  const sum = t.sum(t.square(t.sub(x, mean)), axes, { keepDims });
  return [t.sqrt(t.div(sum, Math.max(0, count - correction))), t.mean(x, axes, { keepDims })];
}

function linalgNorm(args: Args): Tensor {
  const x = args.t("self");
  const order = args.get("ord") ?? 2;
  const isMatrix = args.has("dim") ? args.ns("dim").length > 1 : x.rank > 1 && args.has("ord");
  if (order !== 2 || (isMatrix && args.has("ord"))) args.fail("norms of matrices, and of another order than 2");
  return t.norm(x, overAxes(args, x), { keepDims: args.flag("keepdim") });
}

/** In evaluation, what these leave as it is. */
const inEvaluation: Operator = (args) => {
  const x = args.has("input") ? args.t("input") : args.t("self");
  return args.flag("train") && args.n("p", 0.5) > 0 ? args.fail("dropout that keeps mean and variance") : x;
};

function fusedRmsNorm(args: Args): Value {
  const x = args.t("input");
  const axes = x.shape.map((_, axis) => axis).slice(x.rank - args.ns("normalized_shape").length);
  const eps = args.has("eps") ? args.n("eps") : 2 ** (bytesOf(x.dtype) > 4 ? -52 : -23);
  const scale = t.rsqrt(t.add(t.mean(t.square(x), axes, { keepDims: true }), eps));
  const weight = args.maybe("weight");
  const y = t.mul(x, scale);
  return [weight ? t.mul(y, weight) : y, scale];
}

const isNanOf = (b: Tensor | number): Tensor => (b instanceof Tensor ? t.isnan(b) : t.full([], Number.isNaN(b)));

/** All tensors in the shape that they have together. */
const broadcastTogether: Operator = (args) => {
  const list = args.tensors("tensors");
  const rank = Math.max(...list.map((x) => x.rank));
  const shape = Array.from({ length: rank }, (_, a) => {
    const extents = list.map((x) => x.shape[a - rank + x.rank] ?? 1);
    return extents.find((extent) => extent !== 1) ?? 1;
  });
  return list.map((x) => t.broadcastTo(x, shape));
};

/** Rows times the matrix of their group; `offs` are the ends of groups. */
export const groupedProduct: Operator = (args) => {
  const [x, w] = args.has("input") ? [args.t("input"), args.t("weight")] : [args.t("self"), args.t("mat2")];
  if (x.rank !== 2 || w.rank !== 3 || !args.has("offs")) {
    args.fail("groups of other than rows, one matrix each", "give rows, a stack of matrices, and the ends of groups");
  }
  const offsets = t.concat([t.zeros([1], "i32"), args.t("offs")], 0);
  const y = t.groupedMatmul(x, w, offsets, { tile: 1 });
  const bias = args.maybe("bias");
  return bias ? t.add(y, bias) : y;
};

export const COMPOSITES: Readonly<Record<string, Operator>> = {
  ...MARGIN_LOSSES,
  lstm_cell: lstmCell,
  gru_cell: gruCell,
  rnn_tanh_cell: rnnCell(t.tanh),
  rnn_relu_cell: rnnCell(t.relu),
  embedding_bag: embeddingBag,
  _embedding_bag: embeddingBag,
  _embedding_bag_forward_only: embeddingBag,
  _fused_rms_norm: fusedRmsNorm,
  _grouped_mm: groupedProduct,
  alpha_dropout: inEvaluation,
  feature_alpha_dropout: inEvaluation,
  unfold: windows,
  masked_scatter: maskedScatter,
  triu_indices: triangleIndices((row, column, offset) => column - row >= offset),
  tril_indices: triangleIndices((row, column, offset) => column - row <= offset),
  median,
  kthvalue: median,
  cummax: running(t.cummax),
  cummin: running(t.cummin),
  diag: (args) => t.diag(args.t("self"), args.n("diagonal", 0)),
  diag_embed: diagonalEmbedded,
  rot90: rotated,
  fliplr: one((x) => t.flip(x, [1])),
  flipud: one((x) => t.flip(x, [0])),
  take: (args) => t.take(t.reshape(args.t("self"), [-1]), args.t("index")),
  index_fill: (args) => {
    const [x, index] = [args.t("self"), args.t("index")];
    const axis = axisOf(args, x);
    const value = args.either("value");
    const filled = value instanceof Tensor ? as(value, x.dtype) : t.full([], value, x.dtype);
    return t.scatterSet(x, index, t.broadcastTo(filled, x.shape.with(axis, index.elements)), axis);
  },
  tensor_split: pieces,
  hstack: joined((list) =>
    t.concat(
      list.map((x) => atLeast(x, 1)),
      at(list, 0).rank > 1 ? 1 : 0,
    ),
  ),
  vstack: joined((list) =>
    t.concat(
      list.map((x) => atLeast(x, 2)),
      0,
    ),
  ),
  dstack: joined((list) =>
    t.concat(
      list.map((x) => threeAxes(atLeast(x, 2))),
      2,
    ),
  ),
  column_stack: joined((list) =>
    t.concat(
      list.map((x) => (x.rank < 2 ? t.reshape(x, [-1, 1]) : x)),
      1,
    ),
  ),
  atleast_1d: one((x) => atLeast(x, 1)),
  atleast_2d: one((x) => atLeast(x, 2)),
  atleast_3d: one((x) => threeAxes(atLeast(x, 2))),
  ravel: one((x) => t.reshape(x, [-1])),
  mT: one((x) => t.swapAxes(x, -2, -1)),
  adjoint: one((x) => t.swapAxes(x, -2, -1)),
  tensordot: (args) => t.tensordot(args.t("self"), args.t("other"), [args.ns("dims_self"), args.ns("dims_other")]),
  kron: two((a, b) => t.kron(a, b as Tensor)),
  inner: (args) => {
    const [a, b] = [args.t("self"), args.t("other")];
    if (a.rank === 0 || b.rank === 0) return t.mul(a, b);
    return t.tensordot(a, b, [[a.rank - 1], [b.rank - 1]]);
  },
  trace: one((x) => t.trace(numbers(x))),
  linalg_cross: (args) => t.cross(args.t("self"), args.t("other"), axisOf(args, args.t("self"))),
  cross: (args) => {
    const x = args.t("self");
    const axis = args.has("dim") ? axisOf(args, x) : x.shape.indexOf(3);
    return t.cross(x, args.t("other"), axis);
  },
  addr: (args) => scaledSum(args, t.outer(args.t("vec1"), args.t("vec2"))),
  addmv: (args) => scaledSum(args, t.matmul(args.t("mat"), args.t("vec"))),
  addbmm: (args) => scaledSum(args, t.sum(t.matmul(args.t("batch1"), args.t("batch2")), 0)),
  nan_to_num: noNan,
  hypot: two((a, b) => t.sqrt(t.add(t.square(a), typeof b === "number" ? b * b : t.square(b)))),
  frac: one((x) => t.sub(x, t.trunc(x))),
  positive: one((x) => x),
  rad2deg: float((x) => t.mul(x, 180 / Math.PI)),
  deg2rad: float((x) => t.mul(x, Math.PI / 180)),
  sinc: float((x) => {
    const z = t.mul(x, Math.PI);
    return t.where(t.equal(x, 0), 1, t.div(t.sin(z), t.where(t.equal(x, 0), 1, z)));
  }),
  heaviside: (args) => {
    const [x, values] = pair(args, "self", "values");
    return t.where(t.equal(x, 0), values, t.where(t.greater(x, 0), t.onesLike(x), 0));
  },
  erfinv: float(t.erfinv),
  logcumsumexp: (args) => t.logcumsumexp(args.t("self"), axisOf(args, args.t("self"))),
  logaddexp: logAdd(t.exp, t.log),
  logaddexp2: logAdd(t.exp2, t.log2),
  xlogy,
  fmax: two((a, b) => t.where(t.isnan(a), b, t.where(isNanOf(b), a, t.maximum(a, b)))),
  fmin: two((a, b) => t.where(t.isnan(a), b, t.where(isNanOf(b), a, t.minimum(a, b)))),
  isclose: isClose,
  isin: (args) => {
    const [x, wanted] = [args.t("elements"), args.t("test_elements")];
    const found = t.any(t.equal(t.expandDims(x, -1), t.reshape(wanted, [-1])), -1);
    return args.flag("invert") ? t.logicalNot(found) : found;
  },
  bucketize: (args) => bucket(args, "boundaries", "self"),
  searchsorted: (args) => bucket(args, "sorted_sequence", "self"),
  aminmax: (args) => {
    const x = args.t("self");
    const axes = overAxes(args, x);
    const options = { keepDims: args.flag("keepdim") };
    return [t.min(x, axes, options), t.max(x, axes, options)];
  },
  std_mean: standardDeviations,
  count_nonzero: (args) => {
    const x = args.t("self");
    return t.sum(t.cast(t.notEqual(numbers(x), 0), "i32"), overAxes(args, x));
  },
  nansum: (args) => {
    const x = args.t("self");
    return t.sum(t.where(t.isnan(x), 0, x), overAxes(args, x), { keepDims: args.flag("keepdim") });
  },
  nanmean: (args) => {
    const x = args.t("self");
    const [axes, options] = [overAxes(args, x), { keepDims: args.flag("keepdim") }];
    const count = t.sum(t.where(t.isnan(x), 0, t.onesLike(x)), axes, options);
    return t.div(t.sum(t.where(t.isnan(x), 0, x), axes, options), count);
  },
  dist: (args) => {
    const p = args.n("p", 2);
    const d = t.sub(args.t("self"), args.t("other"));
    return p === 2 ? t.norm(d) : t.pow(t.sum(t.pow(t.abs(d), p)), 1 / p);
  },
  linalg_norm: linalgNorm,
  linspace: (args) => t.linspace(args.n("start"), args.n("end"), args.n("steps")),
  broadcast_tensors: broadcastTogether,
  sum_to_size: (args) => {
    const x = args.t("self");
    const size = args.ns("size");
    const lead = x.rank - size.length;
    const axes = x.shape.map((_, a) => a).filter((a) => a < lead || (at(size, a - lead) === 1 && at(x.shape, a) !== 1));
    return axes.length === 0 ? x : t.reshape(t.sum(x, axes), size);
  },
};
