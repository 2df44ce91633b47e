/** @file Samples of writing and combining at positions that are data, and of rows by number. */
import * as tm from "../../../src/api/index.ts";
import { type Shape, tensorType } from "../../../src/ir/type.ts";
import { build, get, indices, type Plain } from "../plain.ts";
import { bool, type Family, i32 } from "../sample.ts";

type Both = (before: number, update: number) => number;

const set: Both = (_, update) => update;
const product: Both = (before, update) => before * update;

/** Updates one after the other, along an axis: by rows, or element by element. */
function scattered(x: Plain, at: Plain, updates: Plain, [axis, along, both]: readonly [number, boolean, Both]): Plain {
  const data = Float64Array.from(x.data);
  for (const index of indices(updates.shape)) {
    const row = along ? get(at, index) : get(at, index.slice(axis, axis + at.shape.length));
    const place = along
      ? index.with(axis, row)
      : [...index.slice(0, axis), row, ...index.slice(axis + at.shape.length)];
    if (row < 0 || row >= x.shape[axis]!) continue;
    const e = place.reduce((n, i, a) => n * x.shape[a]! + i, 0);
    data[e] = both(data[e]!, get(updates, index));
  }
  return { ...x, data };
}

const BY_ROWS = [
  ["scatterSet", tm.scatterSet, set],
  ["scatterMax", tm.scatterMax, Math.max],
  ["scatterMin", tm.scatterMin, Math.min],
  ["scatterMul", tm.scatterMul, product],
] as const;

const ALONG = [
  ["scatterSetAlong", tm.scatterSetAlong, set],
  ["scatterMaxAlong", tm.scatterMaxAlong, Math.max],
  ["scatterMinAlong", tm.scatterMinAlong, Math.min],
  ["scatterMulAlong", tm.scatterMulAlong, product],
] as const;

/** Rows with each number, combined from a start. */
const segmented = (x: Plain, ids: Plain, count: number, of: (values: number[]) => number): Plain =>
  build([count, ...x.shape.slice(1)], ([s, ...rest]) => {
    const members = Array.from({ length: ids.shape[0]! }, (_, i) => i).filter((i) => ids.data[i] === s);
    return of(members.map((i) => get(x, [i, ...rest])));
  });

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

const SEGMENTS = [
  ["segmentSum", tm.segmentSum, sum],
  ["segmentMean", tm.segmentMean, (values: number[]) => sum(values) / Math.max(1, values.length)],
  ["segmentMax", tm.segmentMax, (values: number[]) => Math.max(...values)],
  ["segmentMin", tm.segmentMin, (values: number[]) => Math.min(...values)],
] as const;

export const scatters: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  const values = [-2, 2] as const;
  return [
    ...BY_ROWS.map(([name, call, meaning]) => ({
      name,
      inputs: [x(2, 4), i32(5), x(2, 5)],
      range: [values, [-1, 5], values] as const,
      call: (a?: tm.Tensor, i?: tm.Tensor, u?: tm.Tensor) => call(a!, i!, u!, 1),
      reference: (a?: Plain, i?: Plain, u?: Plain) => scattered(a!, i!, u!, [1, false, meaning]),
    })),
    ...ALONG.map(([name, call, meaning]) => ({
      name,
      inputs: [x(3, 2), i32(4, 2), x(4, 2)],
      range: [values, [0, 4], values] as const,
      call: (a?: tm.Tensor, i?: tm.Tensor, u?: tm.Tensor) => call(a!, i!, u!),
      reference: (a?: Plain, i?: Plain, u?: Plain) => scattered(a!, i!, u!, [0, true, meaning]),
    })),
    ...SEGMENTS.map(([name, call, meaning]) => ({
      name,
      inputs: [x(5, 2), i32(5)],
      range: [values, [0, 2]] as const,
      call: (a?: tm.Tensor, i?: tm.Tensor) => call(a!, i!, 2),
      reference: (a?: Plain, i?: Plain) => segmented(a!, i!, 2, meaning),
    })),
    {
      name: "maskedFill",
      inputs: [x(2, 3), bool(3)],
      call: (a, m) => tm.maskedFill(a!, m!, 7),
      reference: (a, m) => build([2, 3], (index) => (get(m!, index) ? 7 : get(a!, index))),
    },
  ];
};
