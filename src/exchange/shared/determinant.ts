/** @file Determinants of small matrices, as sums of products. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import { typeText } from "../../ir/type.ts";
import { fail } from "../../trace/arguments.ts";
import type { Tensor } from "../../trace/tensor.ts";

/** Larger ones have too many products. */
const MOST_ROWS = 5;

/** Over the last two axes, along the first row. */
export function determinant(x: Tensor): Tensor {
  const n = at(x.shape, x.rank - 1);
  if (x.rank < 2 || x.shape[x.rank - 2] !== n || n > MOST_ROWS) {
    fail(
      "ShapeMismatch",
      `Det: takes square matrices of at most ${MOST_ROWS} rows, got ${typeText(x)}`,
      "use smaller ones",
    );
  }
  const element = (row: number, column: number): Tensor =>
    t.slice(x, [...x.shape.slice(0, -2).map(() => null), row, column]);
  const minor = (row: number, columns: readonly number[]): Tensor => {
    const [only] = columns;
    if (columns.length === 1) return element(row, only as number);
    const terms = columns.map((column, k) => {
      const product = t.mul(
        element(row, column),
        minor(
          row + 1,
          columns.filter((c) => c !== column),
        ),
      );
      return k % 2 === 0 ? product : t.neg(product);
    });
    return terms.reduce((sum, term) => t.add(sum, term));
  };
  return minor(
    0,
    Array.from({ length: n }, (_, i) => i),
  );
}
