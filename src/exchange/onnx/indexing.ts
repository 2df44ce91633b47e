/** @file Operators that read and write at positions. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import { elementsOf } from "../../ir/type.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { fromEnd, gatherAlong, type Reduction, rowNumbers, scatterAlong, scatterRows } from "../shared/positions.ts";
import type { Call, Operator, Result } from "./call.ts";
import { compressed } from "./fold.ts";

/** Positions as i32; known ones are checked and counted from the front here. */
function rowsOf(call: Call, i: number, extent: number): Tensor {
  const { known, tensor, shape } = call.value(i);
  if (!known) return fromEnd(tensor, extent);
  const rows = Array.from(known.values as ArrayLike<number>, (value) => Number(value));
  const wrong = rows.find((row) => row < -extent || row >= extent);
  if (wrong !== undefined) call.fail(`index ${wrong} of an axis of ${extent}`, "the model is damaged; export it again");
  return t.tensor(
    Int32Array.from(rows, (row) => (row < 0 ? row + extent : row)),
    { shape },
  );
}

function gather(call: Call): Tensor {
  const x = call.x(0);
  const axis = call.axis(call.int("axis", 0), x.rank);
  return t.take(x, rowsOf(call, 1, at(x.shape, axis)), axis);
}

function gatherTuples(call: Call): Tensor {
  const [x, indices] = [call.x(0), call.x(1)];
  const batch = call.int("batch_dims", 0);
  const depth = at(indices.shape, indices.rank - 1);
  const inner = x.shape.slice(batch);
  const [lead, count] = [elementsOf(x.shape.slice(0, batch)), elementsOf(inner.slice(0, depth))];
  const rest = inner.slice(depth);
  const numbers = rowNumbers(inner, indices);
  const flat = t.reshape(x, [lead * count, ...rest]);
  if (batch === 0) return t.take(flat, numbers);
  const start = t.reshape(t.mul(t.arange(lead), count), [
    ...indices.shape.slice(0, batch),
    ...indices.shape.slice(batch, -1).map(() => 1),
  ]);
  return t.take(flat, t.add(numbers, start));
}

function reductionOf(call: Call): Reduction {
  const how = call.text("reduction", "none");
  const known: readonly Reduction[] = ["none", "add", "mul", "max", "min"];
  return known.find((one) => one === how) ?? call.fail(`reduction ${how}`, `reductions are ${known.join(", ")}`);
}

function scatterElements(call: Call): Tensor {
  const x = call.x(0);
  const axis = call.axis(call.int("axis", 0), x.rank);
  return scatterAlong(x, call.x(1), call.x(2), { axis, reduction: reductionOf(call) });
}

function oneHot(call: Call): Tensor {
  const given = call.x(0);
  const depth = at(call.numbers(1, "depth"), 0);
  const indices = fromEnd(t.cast(given, "i32"), depth);
  const last = t.oneHot(indices, depth, "f64");
  const axis = call.axis(call.int("axis", -1), indices.rank + 1);
  const order = Array.from({ length: indices.rank + 1 }, (_, a) => {
    if (a === axis) return indices.rank;
    return a < axis ? a : a - 1;
  });
  const mask = t.greater(t.transpose(last, order), 0);
  const values = call.x(2);
  return t.where(mask, t.slice(values, [1]), t.slice(values, [0]));
}

function topK(call: Call): readonly Tensor[] {
  const x = call.x(0);
  const k = call.opset < 10 ? call.int("k", 1) : at(call.numbers(1, "k"), 0);
  const axis = call.axis(call.int("axis", -1), x.rank);
  const { values, indices } = t.topK(x, k, { axis, largest: call.flag("largest", true) });
  return [values, indices];
}

function compress(call: Call): Result {
  const x = call.x(0);
  const { known } = call.value(1);
  if (!known) call.numbers(1, "condition");
  const rows = t.tensor(Int32Array.from(known ? compressed(call, x, known) : []));
  const axis = call.attribute("axis");
  return axis ? t.take(x, rows, call.axis(Number(axis.int), x.rank)) : t.take(t.reshape(x, [-1]), rows);
}

export const INDEXING: Readonly<Record<string, Operator>> = {
  Gather: gather,
  GatherElements: (call) => gatherAlong(call.x(0), call.x(1), call.axis(call.int("axis", 0), call.x(0).rank)),
  GatherND: gatherTuples,
  ScatterElements: scatterElements,
  Scatter: scatterElements,
  ScatterND: (call) => scatterRows(call.x(0), call.x(1), call.x(2), reductionOf(call)),
  OneHot: oneHot,
  TopK: topK,
  Compress: compress,
  NonZero: (call) => {
    call.numbers(0, "input, since the number of results depends on it,");
    return null;
  },
};
