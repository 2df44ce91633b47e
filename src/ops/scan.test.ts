/** @file Running sums by hand, from both ends and along any axis. */
import { describe, expect, it } from "vitest";
import { runReference } from "../../tests/support/lowering.ts";
import { at } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import { tensorType } from "../ir/type.ts";
import { cumsum } from "./scan.ts";

describe("cumsum", () => {
  it("adds up along an axis, from the front or from the back", () => {
    const x = [1, 2, 3, 4, 5, 6];
    const run = (axis: number, reverse: boolean): number[] => [
      ...runReference(cumsum, [tensorType("f64", [2, 3])], { axis, reverse }, [x]),
    ];
    expect(run(0, false)).toEqual([1, 2, 3, 5, 7, 9]);
    expect(run(0, true)).toEqual([5, 7, 9, 4, 5, 6]);
    expect(run(1, false)).toEqual([1, 3, 6, 4, 9, 15]);
    expect(run(1, true)).toEqual([6, 5, 3, 15, 11, 6]);
  });

  it("wraps integers around", () => {
    const big = [0x7fffffff, 1, 1];
    const out = runReference(cumsum, [tensorType("i32", [3])], { axis: 0, reverse: false }, [big]);
    expect([...out]).toEqual([0x7fffffff, -0x80000000, -0x7fffffff]);
  });

  it("has itself from the other end as its transpose", () => {
    const b = new Build("test");
    const x = b.param(tensorType("f32", [2, 3]));
    if (cumsum.derivative.kind !== "multilinear") return expect.fail("not multilinear");
    cumsum.derivative.transpose(b, { x: [x], ct: x, input: 0, attrs: { axis: 1, reverse: false } });
    const node = at(b.nodes, 0);
    expect(node.op).toBe(cumsum);
    expect(node.attrs).toEqual({ axis: 1, reverse: true });
  });

  it("refuses axes that are not there and bools", () => {
    expect(() => cumsum.infer([tensorType("f32", [2])], { axis: 1, reverse: false }, [])).toThrow(
      "InvalidAxis: cumsum: axis 1",
    );
    expect(() => cumsum.infer([tensorType("bool", [2])], { axis: 0, reverse: false }, [])).toThrow(
      "DtypeMismatch: cumsum",
    );
  });
});
