/** @file `setAt` with several row numbers that are data: which values end up where, and what flows back to them. */
import { describe, expect, test } from "vitest";
import { compile, grad, type Tensor, tensor } from "../src/api/index.ts";

describe("several rows at once", () => {
  const inf = Number.POSITIVE_INFINITY;
  const x = tensor(
    [
      [1, 2],
      [3, 4],
      [5, 6],
      [7, 8],
    ],
    { dtype: "f64" },
  );
  const i32s = (...rows: number[]): Tensor => tensor(rows, { dtype: "i32" });
  const values = tensor(
    [
      [10, 11],
      [-0, 21],
      [30, inf],
    ],
    { dtype: "f64" },
  );
  const set = compile((v: Tensor, rows: Tensor, to: Tensor) => v.setAt(rows, to), { validate: true });

  test("are replaced bit by bit; of equal numbers the last counts, and those out of range change nothing", () => {
    expect(set(x, i32s(2, 0, 3), values).toArray()).toEqual([
      [-0, 21],
      [3, 4],
      [10, 11],
      [30, inf],
    ]);
    expect(set(x, i32s(2, 0, 2), values).toArray()).toEqual([
      [-0, 21],
      [3, 4],
      [30, inf],
      [7, 8],
    ]);
    expect(set(x, i32s(1, 1, 1), values).toArray()).toEqual([
      [1, 2],
      [30, inf],
      [5, 6],
      [7, 8],
    ]);
    expect(set(x, i32s(-1, 4, 1), values).toArray()).toEqual([
      [1, 2],
      [30, inf],
      [5, 6],
      [7, 8],
    ]);
    expect(set(x, i32s(), values.slice([[0, 0]])).toArray()).toEqual(x.toArray());
  });

  test("take values that broadcast, numbers of any shape, and views", () => {
    const spread = compile((v: Tensor, rows: Tensor) => {
      v.T.setAt(rows.reshape([1, 2]), 9);
      return v;
    });
    expect(spread(x, i32s(1, 1)).toArray()).toEqual([
      [1, 9],
      [3, 9],
      [5, 9],
      [7, 9],
    ]);
  });

  test("pass derivatives to the values that were kept, and to rows that stayed", () => {
    const rows = i32s(2, 0, 2);
    const loss = (v: Tensor, to: Tensor): Tensor =>
      v
        .mul(1)
        .setAt(rows, to)
        .mul(tensor([[1], [2], [3], [4]], { dtype: "f64" }))
        .sum();
    const [dx, dto] = grad(loss, { argnums: [0, 1] })(x, values.slice([[0, 3]]));
    expect(dx.toArray()).toEqual([
      [0, 0],
      [2, 2],
      [0, 0],
      [4, 4],
    ]);
    expect(dto.toArray()).toEqual([
      [0, 0],
      [1, 1],
      [3, 3],
    ]);
  });
});
