/** @file Which reshapes are views, as in PyTorch. */
import { describe, expect, it } from "vitest";
import { contiguousStrides, isDense, viewStrides } from "./layout.ts";

describe("views", () => {
  it("are found where strides allow", () => {
    expect(viewStrides([2, 3, 4], contiguousStrides([2, 3, 4]), [6, 4])).toEqual([4, 1]);
    expect(viewStrides([2, 3, 4], contiguousStrides([2, 3, 4]), [2, 1, 12])).toEqual([12, 12, 1]);
    // transposed axes cannot become one
    expect(viewStrides([3, 2], [1, 3], [6])).toBeNull();
    // an axis of one element does not matter
    expect(viewStrides([1, 4, 2], [99, 2, 1], [8])).toEqual([1]);
    // heads that are split off, then merged after a transpose
    expect(viewStrides([2, 5, 3, 4], [60, 4, 20, 1], [2, 5, 12])).toBeNull();
  });

  it("tell dense tensors from others", () => {
    expect(isDense([3, 2], [1, 3])).toBe(true);
    expect(isDense([3, 2], [4, 1])).toBe(false);
    expect(isDense([3, 2], [0, 1])).toBe(false);
  });
});
