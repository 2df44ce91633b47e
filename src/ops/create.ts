/** @file Operations that make tensors from nothing: constants and counters. They cost nothing once fused. */
import { TidemarkError } from "../base/errors.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { OpDef } from "../ir/op.ts";
import type { StripForm } from "../ir/strips.ts";
import { elementsOf, type TensorType, tensorType } from "../ir/type.ts";
import { alike } from "../ir/variance.ts";
import { type DType, storedNumber, typeOf } from "../kernel/dtype.ts";
import { constant as constantExpr } from "../kernel/expr.ts";
import { defineOp, requireAxis } from "./define.ts";

export type FullAttrs = { readonly dtype: DType; readonly shape: readonly number[]; readonly value: number };

export function requireShape(name: string, shape: readonly number[]): void {
  if (shape.every((extent) => Number.isInteger(extent) && extent >= 0)) return;
  throw new TidemarkError(
    "InvalidArgument",
    `${name}: shape [${shape.join(",")}] has an extent that is not a whole number ≥ 0`,
  );
}

/** Independent along every axis but `not`. */
const madeStrips = (attrs: Pick<FullAttrs, "shape">, not?: number): readonly StripForm[] =>
  attrs.shape.flatMap((extent, axis) =>
    axis === not
      ? []
      : [
          {
            inputs: [],
            outputs: [axis],
            attrs: (strips) => ({ ...attrs, shape: attrs.shape.with(axis, extent / strips) }),
          },
        ],
  );

/** The attributes of a constant of a type, which is equal on all devices. */
export const fullAttrs = ({ dtype, shape }: TensorType, value: number): FullAttrs => ({ dtype, shape, value });

/** A tensor of one value throughout. */
export const full: OpDef<FullAttrs> = defineOp<FullAttrs>({
  name: "full",
  defaults: { dtype: "f32", shape: [] },
  infer(_, { dtype, shape }) {
    requireShape("full", shape);
    return [tensorType(dtype, shape)];
  },
  derivative: { kind: "none" },
  cost: () => ({ flops: 0 }),
  lower: { kind: "map", fusion: "always", value: (c) => constantExpr(typeOf(c.attrs.dtype).compute, c.attrs.value) },
  facts: {
    constant: ({ value }) => value,
    strips: (_, __, attrs) => madeStrips(attrs),
  },
  evaluate: ({ attrs }) => [new Float64Array(elementsOf(attrs.shape)).fill(storedNumber(attrs.dtype, attrs.value))],
  samples: () => [
    { inputs: [], attrs: { dtype: "f32", shape: [2, 3], value: 0.5 } },
    { inputs: [], attrs: { dtype: "f64", shape: [], value: -1.25 } },
    { inputs: [], attrs: { dtype: "i32", shape: [0, 2], value: 7 } },
    { inputs: [], attrs: { dtype: "bool", shape: [5], value: 1 } },
  ],
});

export type IotaAttrs = { readonly shape: readonly number[]; readonly axis: number };

/** The position along an axis, as i32. */
export const iota: OpDef<IotaAttrs> = defineOp<IotaAttrs>({
  name: "iota",
  defaults: { axis: 0 },
  infer(_, { shape, axis }) {
    requireShape("iota", shape);
    requireAxis("iota", axis, shape.length);
    return [tensorType("i32", shape)];
  },
  facts: { counter: ({ axis }) => axis, strips: (_, __, attrs) => madeStrips(attrs, attrs.axis) },
  derivative: { kind: "none" },
  cost: () => ({ flops: 0 }),
  lower: {
    kind: "map",
    fusion: "always",
    value(c, at) {
      const index = at.idx[c.attrs.axis];
      return index ? { kind: "index", dtype: "i32", index } : constantExpr("i32", 0);
    },
  },
  evaluate({ attrs: { shape, axis } }) {
    const inner = elementsOf(shape.slice(axis + 1));
    const extent = shape[axis] ?? 1;
    return [Float64Array.from({ length: elementsOf(shape) }, (_, e) => Math.floor(e / inner) % extent)];
  },
  samples: () => [
    { inputs: [], attrs: { shape: [4, 3], axis: 0 } },
    { inputs: [], attrs: { shape: [4, 7], axis: 1 } },
    { inputs: [], attrs: { shape: [2, 0, 3], axis: 2 } },
  ],
});

/** A constant with the type of another value. */
export function fullLike(b: Build, like: Value, value: number): Value {
  return alike(b, b.call(full, [], fullAttrs(like.type, value)), like.type);
}

/** The number that every element of a value is, as its type holds it, when `full` made it. For simplifications. */
export function splatOf(b: Build, value: Value | undefined): number | null {
  const node = value && b.producer(value);
  if (!node || node.op !== full) return null;
  const attrs = node.attrs as FullAttrs;
  return storedNumber(attrs.dtype, attrs.value);
}
