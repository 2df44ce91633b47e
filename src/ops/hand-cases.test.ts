/** @file Small cases computed by hand for operations that move, reduce and index, their corners, and their messages. */
import { describe, expect, test } from "vitest";
import { TidemarkError } from "../base/errors.ts";
import { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { AnyOp, OpDef, Reference } from "../ir/op.ts";
import { type TensorType, tensorType } from "../ir/type.ts";
import type { DType } from "../kernel/dtype.ts";
import { broadcast, sum } from "./broadcast.ts";
import { concat } from "./concat.ts";
import { dynamicSlice, dynamicUpdate } from "./dynamic.ts";
import { add } from "./elementwise.ts";
import { gather, scatterAdd, scatterAddAlong, take } from "./indexing.ts";
import { pow } from "./math.ts";
import { flip, reshape, transpose } from "./movement.ts";
import { all, any, reduceMax, reduceMin, reduceProd } from "./reduce.ts";
import { pad, slice } from "./slice.ts";
import { fold, unfold } from "./window.ts";

interface Tensor {
  readonly type: TensorType;
  readonly data: Reference;
}

const tensor = (dtype: DType, shape: readonly number[], data: readonly number[]): Tensor => {
  return { type: tensorType(dtype, shape), data: Float64Array.from(data) };
};
const f64 = (shape: readonly number[], data: readonly number[]): Tensor => tensor("f64", shape, data);
const i32 = (shape: readonly number[], data: readonly number[]): Tensor => tensor("i32", shape, data);

function evaluateOp(
  op: AnyOp,
  inTypes: readonly TensorType[],
  attrs: unknown,
  inputs: readonly Reference[],
): Reference {
  const outTypes = op.infer(inTypes, attrs, []);
  const run = () => expect.fail("no regions here");
  return op.evaluate({ inputs, inTypes, outTypes, attrs, regions: [], run })[0]!;
}

function result<A>(op: OpDef<A>, inputs: readonly Tensor[], attrs: A): number[] {
  return Array.from(
    evaluateOp(
      op as AnyOp,
      inputs.map((x) => x.type),
      attrs,
      inputs.map((x) => x.data),
    ),
  );
}

/** The cotangents of all float inputs for a cotangent of ones. */
function gradients<A>(op: OpDef<A>, inputs: readonly Tensor[], attrs: A): number[][] {
  const b = new Build("gradient");
  const x = inputs.map(({ type }) => b.param(type));
  const ct = b.param(
    op.infer(
      inputs.map(({ type }) => type),
      attrs,
      [],
    )[0]!,
  );
  const y = b.call(op, x, attrs);
  const { derivative: rule } = op;
  const results = x.map((_, i) => {
    if (rule.kind === "general") return rule.vjp(b, { x, y, ct, input: i, attrs })!;
    if (rule.kind !== "elementwise") return expect.fail("general and elementwise rules only");
    const partial = rule.partials[i]!;
    return typeof partial === "string" ? expect.fail("a constant partial") : partial(b, x, y, attrs);
  });
  const known = new Map<Value, Reference>(x.map((v, i) => [v, inputs[i]!.data]));
  known.set(ct, new Float64Array(1 + ct.type.shape.reduce((n, extent) => n * extent, 1)).fill(1).subarray(1));
  for (const node of b.nodes) {
    const types = node.inputs.map((v) => v.type);
    known.set(
      node.outputs[0]!,
      evaluateOp(
        node.op,
        types,
        node.attrs,
        node.inputs.map((v) => known.get(v)!),
      ),
    );
  }
  return results.map((v) => Array.from(known.get(v)!));
}

describe("meanings", () => {
  const x = f64([2, 3], [1, 2, 3, 4, 5, 6]);

  test("movement puts every element where it belongs", () => {
    expect(result(transpose, [x], { perm: [1, 0] })).toEqual([1, 4, 2, 5, 3, 6]);
    expect(result(flip, [x], { axes: [1] })).toEqual([3, 2, 1, 6, 5, 4]);
    expect(result(reshape, [x], { shape: [3, 2] })).toEqual([1, 2, 3, 4, 5, 6]);
    expect(result(slice, [x], { start: [0, 0], limit: [2, 3], stride: [1, 2] })).toEqual([1, 3, 4, 6]);
    expect(result(broadcast, [f64([2], [7, 8])], { shape: [2, 3], axes: [0] })).toEqual([7, 7, 7, 8, 8, 8]);
    expect(result(concat, [x, f64([2, 1], [9, 8])], { axis: 1 })).toEqual([1, 2, 3, 9, 4, 5, 6, 8]);
  });

  test("pad puts its value before, after and between", () => {
    const attrs = { lo: [1], hi: [2], interior: [1], value: 9 };
    expect(result(pad, [f64([3], [1, 2, 3])], attrs)).toEqual([9, 1, 9, 2, 9, 3, 9, 9]);
    expect(result(pad, [f64([0], [])], attrs)).toEqual([9, 9, 9]);
  });

  test("unfold reads windows and fold adds them back", () => {
    const windows = { window: [3], stride: [2], lo: [1], hi: [1], dilation: [1] };
    const line = f64([5], [1, 2, 3, 4, 5]);
    expect(result(unfold, [line], { ...windows, value: -Infinity })).toEqual([
      -Infinity,
      1,
      2,
      2,
      3,
      4,
      4,
      5,
      -Infinity,
    ]);
    const ones = f64([3, 3], new Array(9).fill(1));
    expect(result(fold, [ones], { ...windows, size: [5] })).toEqual([1, 2, 1, 2, 1]);
  });

  test("reductions fold axes away", () => {
    expect(result(sum, [x], { axes: [0] })).toEqual([5, 7, 9]);
    expect(result(sum, [x], { axes: [0, 1] })).toEqual([21]);
    expect(result(reduceProd, [x], { axes: [1] })).toEqual([6, 120]);
    expect(result(reduceMax, [f64([3], [1, Number.NaN, 2])], { axes: [0] })).toEqual([Number.NaN]);
    expect(result(reduceMin, [i32([3], [4, -2, 7])], { axes: [0] })).toEqual([-2]);
    expect(result(sum, [i32([2], [0x7fffffff, 1])], { axes: [0] })).toEqual([-0x80000000]);
    expect(result(reduceProd, [i32([2], [0x10000, 0x10001])], { axes: [0] })).toEqual([0x10000]);
  });

  test("reductions over nothing give the neutral value", () => {
    const nothing = { axes: [0] };
    expect(result(sum, [f64([0, 2], [])], nothing)).toEqual([0, 0]);
    expect(result(reduceProd, [f64([0], [])], nothing)).toEqual([1]);
    expect(result(any, [tensor("bool", [0], [])], nothing)).toEqual([0]);
    expect(result(all, [tensor("bool", [0], [])], nothing)).toEqual([1]);
  });

  test("indices out of range read NaN or 0 and drop updates", () => {
    const table = f64([3, 2], [1, 2, 3, 4, 5, 6]);
    const strays = i32([3], [2, -1, 3]);
    const nan = "nan" as const;
    const N = Number.NaN;
    expect(result(take, [table, strays], { axis: 0, outside: nan })).toEqual([5, 6, N, N, N, N]);
    expect(result(take, [table, strays], { axis: 0, outside: "zero" as const })).toEqual([5, 6, 0, 0, 0, 0]);
    expect(result(take, [i32([2], [8, 9]), strays], { axis: 0, outside: nan })).toEqual([0, 0, 0]);
    expect(result(gather, [table, i32([1, 2], [2, 0])], { axis: 0, outside: nan })).toEqual([5, 2]);
    const ones = f64([3, 2], [1, 1, 1, 1, 1, 1]);
    expect(result(scatterAdd, [table, i32([3], [0, 0, 7]), ones], { axis: 0 })).toEqual([3, 4, 3, 4, 5, 6]);
    const along = [table, i32([1, 2], [2, 0]), f64([1, 2], [10, 20])];
    expect(result(scatterAddAlong, along, { axis: 0 })).toEqual([1, 22, 3, 4, 15, 6]);
  });

  test("dynamic windows are moved so that they fit", () => {
    const line = f64([5], [1, 2, 3, 4, 5]);
    expect(result(dynamicSlice, [line, i32([1], [9])], { sizes: [2] })).toEqual([4, 5]);
    expect(result(dynamicSlice, [line, i32([1], [-9])], { sizes: [2] })).toEqual([1, 2]);
    expect(result(dynamicUpdate, [line, f64([2], [8, 9]), i32([1], [4])], {})).toEqual([1, 2, 3, 8, 9]);
  });
});

describe("derivatives at corners", () => {
  const whole = { axes: [0] };

  test("a product has the product of the others, also at zeros", () => {
    expect(gradients(reduceProd, [f64([3], [2, 3, 4])], whole)).toEqual([[12, 8, 6]]);
    expect(gradients(reduceProd, [f64([3], [2, 0, 4])], whole)).toEqual([[0, 8, 0]]);
    expect(gradients(reduceProd, [f64([3], [0, 0, 4])], whole)).toEqual([[0, 0, 0]]);
  });

  test("ties share the cotangent of an extremum equally", () => {
    expect(gradients(reduceMax, [f64([4], [3, 1, 3, 2])], whole)).toEqual([[0.5, 0, 0.5, 0]]);
    expect(gradients(reduceMin, [f64([3], [5, 5, 5])], whole)).toEqual([[1 / 3, 1 / 3, 1 / 3]]);
  });

  test("a power at base zero has the slope of its limit", () => {
    const base = f64([5], [0, 0, 0, 0, 2]);
    const exponent = f64([5], [0, 1, 2, 0.5, 3]);
    const [byBase, byExponent] = gradients(pow, [base, exponent], {});
    expect(byBase).toEqual([0, 1, 0, Infinity, 12]);
    expect(byExponent).toEqual([0, 0, 0, 0, 8 * Math.log(2)]);
  });
});

describe("messages", () => {
  const f32 = (...shape: number[]): TensorType => tensorType("f32", shape);
  const idx = (...shape: number[]): TensorType => tensorType("i32", shape);
  const cases: readonly (readonly [string, AnyOp, readonly TensorType[], unknown])[] = [
    ["ShapeMismatch: reshape: f32[2,3] has 6 elements, [4,2] has 8", reshape, [f32(2, 3)], { shape: [4, 2] }],
    ["InvalidAxis: transpose: perm [0,0] is not a permutation", transpose, [f32(2, 3)], { perm: [0, 0] }],
    ["InvalidAxis: flip: axis 2 of a tensor of rank 2", flip, [f32(2, 3)], { axes: [2] }],
    ["InvalidAxis: sum: axes [1,0] of f32[2,3] are not increasing", sum, [f32(2, 3)], { axes: [1, 0] }],
    [
      "InvalidArgument: slice: [2, 7) on axis 1 is not within the extent 5 of f32[3,5]",
      slice,
      [f32(3, 5)],
      { start: [0, 2], limit: [3, 7], stride: [1, 1] },
    ],
    [
      "InvalidArgument: pad: lo [-1] must be whole numbers ≥ 0\n  help: to cut elements off, use slice",
      pad,
      [f32(3)],
      { lo: [-1], hi: [0], interior: [0], value: 0 },
    ],
    [
      "InvalidArgument: pad: value -Infinity cannot be stored as i32",
      pad,
      [idx(3)],
      { lo: [1], hi: [0], interior: [0], value: -Infinity },
    ],
    [
      "ShapeMismatch: concat: extents of axis 1 differ: 3 in f32[2,3], 4 in f32[5,4]",
      concat,
      [f32(2, 3), f32(5, 4)],
      { axis: 0 },
    ],
    ["ShapeMismatch: concat: ranks differ: f32[2], f32[2,1]", concat, [f32(2), f32(2, 1)], { axis: 0 }],
    ["DtypeMismatch: concat: element types differ", concat, [f32(2), idx(2)], { axis: 0 }],
    [
      "ShapeMismatch: broadcast: axis 0 of f32[3] has extent 3, axis 1 of the result [2,4] has 4",
      broadcast,
      [f32(3)],
      { shape: [2, 4], axes: [1] },
    ],
    ["InvalidArgument: reduce_max: axis 1 of f32[3,0] has no elements", reduceMax, [f32(3, 0)], { axes: [1] }],
    ["DtypeMismatch: any: takes bool, got f32[3]", any, [f32(3)], { axes: [0] }],
    [
      "InvalidArgument: unfold: a window of reach 5 does not fit the extent 3 + 1 + 0 of f32[2,3]",
      unfold,
      [f32(2, 3)],
      { window: [3], stride: [1], lo: [1], hi: [0], dilation: [2], value: 0 },
    ],
    [
      "ShapeMismatch: fold: f32[4,2] does not end in the windows [3,2] over [4]",
      fold,
      [f32(4, 2)],
      { window: [2], stride: [1], lo: [0], hi: [0], dilation: [1], size: [4] },
    ],
    ["DtypeMismatch: take: indices must be i32, got f32[2]", take, [f32(3), f32(2)], { axis: 0, outside: "nan" }],
    [
      "ShapeMismatch: gather: extents of axis 0 differ: x f32[3,4], indices i32[2,4]",
      gather,
      [f32(3, 4), idx(2, 4)],
      { axis: 1, outside: "nan" },
    ],
    [
      "ShapeMismatch: scatter_add: updates are f32[3], but x f32[4,2] with indices i32[3] on axis 0 takes f32[3,2]",
      scatterAdd,
      [f32(4, 2), idx(3), f32(3)],
      { axis: 0 },
    ],
    [
      "ShapeMismatch: dynamic_slice: starts are i32[1], but x f32[4,2] needs i32[2]",
      dynamicSlice,
      [f32(4, 2), idx(1)],
      { sizes: [1, 1] },
    ],
    [
      "InvalidArgument: dynamic_update: a window of 5 does not fit axis 0 of f32[4]",
      dynamicUpdate,
      [f32(4), f32(5), idx(1)],
      {},
    ],
    ["InvalidArgument: concat: needs at least one input, got none", concat, [], { axis: 0 }],
    ["InvalidArgument: add: takes 2 inputs, got 1\n  help: call add(x, y)", add, [f32(3)], {}],
    ["InvalidArgument: take: takes 2 inputs, got 1: f32[3]", take, [f32(3)], { axis: 0, outside: "nan" }],
  ];

  test.each(cases)("%s", (message, op, inputs, attrs) => {
    try {
      op.infer(inputs, attrs, []);
    } catch (error) {
      expect(error).toBeInstanceOf(TidemarkError);
      expect((error as TidemarkError).message).toContain(message);
      expect((error as TidemarkError).help).toBeTruthy();
      return;
    }
    expect.fail("was accepted");
  });
});
