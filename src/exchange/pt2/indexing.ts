/** @file ATen operations at positions that are data. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import { elementsOf } from "../../ir/type.ts";
import { isBool } from "../../kernel/dtype.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { fromEnd, gatherAlong, type Reduction, scatterAlong, scatterRows } from "../shared/positions.ts";
import type { Args, Operator } from "./args.ts";
import { as } from "./promote.ts";

/** Tensors of positions on some axes, broadcast against each other. */
interface Positions {
  /** Axes that are indexed, in order. */
  readonly axes: readonly number[];
  readonly indices: readonly Tensor[];
  readonly shape: readonly number[];
}

function positionsOf(args: Args, x: Tensor): Positions {
  const given = args.optionals("indices");
  const axes = given.flatMap((index, axis) => (index ? [axis] : []));
  const indices = axes.map((axis) => {
    const index = given[axis] as Tensor;
    if (isBool(index.dtype))
      args.fail("a mask as an index, whose number of results depends on data", "use where(mask, a, b)");
    return fromEnd(index, at(x.shape, axis));
  });
  const sum = indices.reduce((a, b) => t.add(a, b));
  return { axes, indices: indices.map((index) => t.broadcastTo(index, sum.shape)), shape: sum.shape };
}

/** Axes that are indexed come first. */
const order = (x: Tensor, axes: readonly number[]): readonly number[] => [
  ...axes,
  ...x.shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis)),
];

function index(args: Args): Tensor {
  const x = args.t("self");
  const { axes, indices, shape } = positionsOf(args, x);
  if (axes.length === 1) return t.take(x, at(indices, 0), at(axes, 0));
  const turned = t.transpose(x, order(x, axes));
  const extents = turned.shape.slice(0, axes.length);
  const rows = indices.reduce((sum, one, k) => t.add(t.mul(sum, at(extents, k)), one), t.zerosLike(at(indices, 0)));
  const rest = turned.shape.slice(axes.length);
  const y = t.take(t.reshape(turned, [elementsOf(extents), ...rest]), rows);
  const isTogether = axes.every((axis, k) => axis === at(axes, 0) + k);
  const front = at(axes, 0);
  if (!isTogether || front === 0) return y;
  // neighbouring indexed axes stay where they were
  const lead = shape.map((_, k) => k);
  const others = rest.map((_, k) => shape.length + k);
  return t.transpose(y, [...others.slice(0, front), ...lead, ...others.slice(front)]);
}

function indexPut(args: Args): Tensor {
  const x = args.t("self");
  const given = args.optionals("indices");
  const [mask] = given;
  const values = as(args.t("values"), x.dtype);
  if (mask && isBool(mask.dtype) && given.length === 1 && values.elements === 1) {
    const wide = t.reshape(mask, [...mask.shape, ...new Array<number>(x.rank - mask.rank).fill(1)]);
    return t.where(wide, t.reshape(values, []), x);
  }
  const { axes, indices, shape } = positionsOf(args, x);
  const to = order(x, axes);
  const turned = t.transpose(x, to);
  const rest = turned.shape.slice(axes.length);
  if (axes.some((axis, k) => axis !== k))
    args.fail("positions on axes that are not the first", "permute the tensor before");
  const made = scatterRows(
    turned,
    t.stack(indices, -1),
    t.broadcastTo(values, [...shape, ...rest]),
    args.flag("accumulate") ? "add" : "none",
  );
  return made;
}

function scatter(args: Args): Tensor {
  const x = args.t("self");
  const indices = args.t("index");
  const axis = args.axis(args.n("dim"), x.rank);
  const source = args.has("src") ? args.t("src") : t.full(indices.shape, args.n("value"), x.dtype);
  const cut = t.slice(
    source,
    indices.shape.map((extent) => [0, extent] as const),
  );
  const known: Readonly<Record<string, Reduction>> = {
    add: "add",
    multiply: "mul",
    sum: "add",
    prod: "mul",
    amax: "max",
    amin: "min",
    mean: "add",
  };
  const kind = args.text("reduce", "");
  const reduction = known[kind] ?? "none";
  const updates = as(cut, x.dtype);
  const isWhole = args.flag("include_self", true);
  if (kind !== "mean" && isWhole) return scatterAlong(x, indices, updates, { axis, reduction });
  const count = scatterAlong(t.zeros(x.shape, x.dtype), indices, t.onesLike(updates), { axis, reduction: "add" });
  const isPut = t.greater(count, 0);
  const start = isWhole ? x : t.where(isPut, IDENTITIES[reduction] ?? 0, x);
  const made = scatterAlong(start, indices, updates, { axis, reduction });
  if (kind !== "mean") return made;
  return t.where(isPut, t.div(made, isWhole ? t.add(count, 1) : t.maximum(count, 1)), x);
}

/** What a reduction starts from. */
const IDENTITIES: Readonly<Partial<Record<Reduction, number>>> = {
  ...{ add: 0, mul: 1, max: Number.NEGATIVE_INFINITY, min: Number.POSITIVE_INFINITY },
};

/** Part of a tensor replaced along one axis. */
function sliceScatter(args: Args): Tensor {
  const x = args.t("self");
  const axis = args.axis(args.n("dim", 0), x.rank);
  const extent = at(x.shape, axis);
  const within = (value: number): number => Math.min(Math.max(value < 0 ? value + extent : value, 0), extent);
  const [from, to, step] = [within(args.maybeN("start") ?? 0), within(args.maybeN("end") ?? extent), args.n("step", 1)];
  const count = Math.max(0, Math.ceil((to - from) / step));
  const rows = t.tensor(Int32Array.from({ length: count }, (_, i) => from + i * step));
  return t.scatterSet(x, rows, as(args.t("src"), x.dtype), axis);
}

function selectScatter(args: Args): Tensor {
  const x = args.t("self");
  const axis = args.axis(args.n("dim"), x.rank);
  const given = args.n("index");
  const row = t.tensor(Int32Array.of(given < 0 ? given + at(x.shape, axis) : given));
  return t.scatterSet(x, row, t.expandDims(as(args.t("src"), x.dtype), axis), axis);
}

function topK(args: Args): readonly Tensor[] {
  const x = args.t("self");
  const { values, indices } = t.topK(x, args.n("k"), {
    axis: args.axis(args.n("dim", -1), x.rank),
    largest: args.flag("largest", true),
  });
  return [values, indices];
}

function sort(args: Args): readonly Tensor[] {
  const x = args.t("self");
  const axis = args.axis(args.n("dim", -1), x.rank);
  const indices = t.argsort(x, axis, { descending: args.flag("descending") });
  return [t.gather(x, indices, axis), indices];
}

export const INDEXING: Readonly<Record<string, Operator>> = {
  index,
  index_put: indexPut,
  _unsafe_index: index,
  _unsafe_index_put: indexPut,
  index_select: (args) => {
    const x = args.t("self");
    return t.take(x, t.reshape(args.t("index"), [-1]), args.axis(args.n("dim"), x.rank));
  },
  gather: (args) => gatherAlong(args.t("self"), args.t("index"), args.axis(args.n("dim"), args.t("self").rank)),
  scatter,
  scatter_add: (args) =>
    scatterAlong(args.t("self"), args.t("index"), args.t("src"), {
      axis: args.axis(args.n("dim"), args.t("self").rank),
      reduction: "add",
    }),
  scatter_reduce: scatter,
  slice_scatter: sliceScatter,
  select_scatter: selectScatter,
  index_add: (args) =>
    t.scatterAdd(
      args.t("self"),
      args.t("index"),
      t.mul(args.t("source"), args.n("alpha", 1)),
      args.axis(args.n("dim"), args.t("self").rank),
    ),
  embedding: (args) => t.take(args.t("weight"), args.t("indices")),
  one_hot: (args) => t.oneHot(args.t("self"), args.n("num_classes"), "i32"),
  topk: topK,
  sort,
  argsort: (args) =>
    t.argsort(args.t("self"), args.axis(args.n("dim", -1), args.t("self").rank), {
      descending: args.flag("descending"),
    }),
};
