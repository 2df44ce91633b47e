/**
 * @file Updates of the rows of a table that a step has looked up, and of no others. The gradient of a table of V rows is not
 * made: cotangents are added up for the distinct rows, of which there are at most as many as look-ups, k:
 *
 *   look-ups    7 2 7        sorted  2 7 7   →   rows 2 7 V       cotangents of both 7 are added to the second sum;
 *                                                                 V is no row: what is read there is 0, what is added is dropped
 *
 * Sums are those of the dense gradient: the updates of a look-up in their order from 0, then look-ups as they are added there. Rows
 * are changed by additions and multiplications in place, one for each row, so an update has the bits of the dense one.
 */
import { applyOp } from "../api/apply.ts";
import { add, cast, notEqual } from "../api/elementwise.ts";
import { concat } from "../api/join.ts";
import { fullOf } from "../api/operands.ts";
import { cumsum } from "../api/reduce.ts";
import { reshape, slice } from "../api/shape.ts";
import { argsort } from "../api/sort.ts";
import { at } from "../base/invariant.ts";
import { scatterAdd, take } from "../ops/indexing.ts";
import { scatterMin, scatterMul } from "../ops/scatter.ts";
import { type RowSum, rowSumOf, rowsIn } from "../trace/row-sums.ts";
import type { Tensor } from "../trace/tensor.ts";

/** A table of which some rows change. */
export class Table {
  readonly tensor: Tensor;
  readonly #rows: Tensor;

  constructor(tensor: Tensor, rows: Tensor) {
    this.tensor = tensor;
    this.#rows = rows;
  }

  /** The rows as they are now; zeros where there is none. */
  rows(): Tensor {
    return applyOp(take, [this.tensor, this.#rows], { axis: 0, outside: "zero" });
  }

  add(updates: Tensor): Table {
    return new Table(applyOp(scatterAdd, [this.tensor, this.#rows, updates], { axis: 0 }), this.#rows);
  }

  /** Every element of the rows times a number. */
  scale(factor: Tensor | number): Table {
    const { dtype, shape } = this.tensor;
    const wanted = [at(this.#rows.shape, 0), ...shape.slice(1)];
    const factors = typeof factor === "number" ? fullOf(dtype, wanted, factor) : add(fullOf(dtype, wanted, 0), factor);
    return new Table(applyOp(scatterMul, [this.tensor, this.#rows, factors], { axis: 0 }), this.#rows);
  }
}

/** The distinct rows of a table that look-ups name, and the gradient of each. */
export interface RowGradient {
  /** [k]; numbers beyond the table where there are fewer. */
  readonly rows: Tensor;
  /** [k, …]. */
  readonly grad: Tensor;
  /** Look-ups of the table. */
  readonly lookups: number;
}

const flat = (x: Tensor): Tensor => reshape(x, [x.elements]);

/** Distinct numbers in ascending order, filled up with `extent`; and of each number its place among them. */
function distinct(ids: Tensor, extent: number): { readonly rows: Tensor; readonly places: Tensor } {
  const count = ids.elements;
  const order = argsort(ids, 0);
  const sorted = applyOp(take, [ids, order], { axis: 0, outside: "zero" });
  const changes = notEqual(slice(sorted, [[1, count]]), slice(sorted, [[0, count - 1]]));
  const group = concat([fullOf("i32", [1], 0), cumsum(cast(changes, "i32"))]);
  const rows = applyOp(scatterMin, [fullOf("i32", [count], extent), group, sorted], { axis: 0 });
  return { rows, places: applyOp(scatterAdd, [fullOf("i32", [count], 0), order, group], { axis: 0 }) };
}

/** The gradient of rows of a table, where it is the sum of look-ups' cotangents; null where it is not, or nothing is looked up. */
export function rowGradientOf(table: Tensor, grad: Tensor): RowGradient | null {
  const sum = table.rank === 0 ? null : rowSumOf(grad);
  if (!sum) return null;
  const parts = rowsIn(sum);
  const ids = concat(parts.map(({ indices }) => flat(indices)));
  const count = ids.elements;
  if (count === 0 || at(table.shape, 0) === 0) return null;
  const { rows, places } = distinct(ids, at(table.shape, 0));
  const rest = table.shape.slice(1);
  const zeros = fullOf(grad.dtype, [count, ...rest], 0);
  let next = 0;
  const summed = (of: RowSum): Tensor => {
    if (of.kind === "sum") return add(summed(of.first), summed(of.second));
    const own = of.indices.elements;
    const at = slice(places, [[next, next + own]]);
    next += own;
    return applyOp(scatterAdd, [zeros, at, reshape(of.updates, [own, ...rest])], { axis: 0 });
  };
  return { rows, grad: summed(sum), lookups: parts.length };
}
