/** @file Choosing between values, converting between element types, and stopping gradients. */
import { TidemarkError } from "../base/errors.ts";
import { LEADING } from "../ir/batch.ts";
import type { Build } from "../ir/build.ts";
import type { Node, Value } from "../ir/graph.ts";
import type { NoAttrs, OpDef } from "../ir/op.ts";
import { alongAll } from "../ir/strips.ts";
import { elementsOf, sameShape, tensorType, typeText } from "../ir/type.ts";
import { DTYPES, type DType, isBool, isComputed, isFloat, typeOf } from "../kernel/dtype.ts";
import { call, type Expr } from "../kernel/expr.ts";
import { clamp, inType } from "../kernel/scalar-ops.ts";
import { fullLike, splatOf } from "./create.ts";
import { apply, defineOp, inputsIfMadeBy, requireDomain, requireSame } from "./define.ts";

/** where(c, a, b): a where c holds, else b. Linear in a and b together, so NaN on the unused side never spreads. */
export const where: OpDef<NoAttrs> = defineOp<NoAttrs>({
  name: "where",
  facts: { isSelection: true },
  infer(inputs) {
    const [c, a, b] = inputs;
    if (!c || !a || !b || inputs.length !== 3) {
      throw new TidemarkError(
        "InvalidArgument",
        `where: takes a condition and two values, got ${inputs.length} inputs`,
      );
    }
    requireDomain("where (condition)", "bool", [c]);
    const type = requireSame("where", [a, b]);
    if (!sameShape(c.shape, type.shape)) {
      throw new TidemarkError(
        "ShapeMismatch",
        `where: condition ${typeText(c)} and values ${typeText(type)} differ in shape`,
      );
    }
    return [type];
  },
  derivative: {
    kind: "multilinear",
    linear: [1, 2],
    jointly: true,
    transpose: (b, { x, ct, input }) => {
      const c = x[0] as Value;
      const nothing = fullLike(b, ct, 0);
      return input === 1 ? apply(b, where, c, ct, nothing) : apply(b, where, c, nothing, ct);
    },
  },
  cost: (_, [out]) => ({ flops: out ? elementsOf(out.shape) : 0 }),
  lower: {
    kind: "map",
    fusion: "once",
    pointwise: true,
    value: (c, at) =>
      call(
        "pick",
        c.inputs.map((read) => read(at)),
      ),
  },
  exactInDouble: true,
  simplify(b, node) {
    const [c, x, y] = node.inputs as [Value, Value, Value];
    // The value of a gradient that is stopped on one side is that of the other.
    const [shownX, shownY] = [
      inputsIfMadeBy(b, x, stopGradient)?.[0] ?? x,
      inputsIfMadeBy(b, y, stopGradient)?.[0] ?? y,
    ];
    if (shownX === shownY) return x;
    const always = splatOf(b, c);
    if (always === null) return null;
    return always ? x : y;
  },
  evaluate: ({ inputs: [c, a, b] }) => [Float64Array.from(c ?? [], (x, i) => (x ? (a?.[i] ?? 0) : (b?.[i] ?? 0)))],
  samples: () =>
    DTYPES.flatMap((dtype) =>
      (isComputed(dtype) ? [[3, 5], [], [0], [9]] : [[3, 5]]).map((shape) => ({
        inputs: [tensorType("bool", shape), tensorType(dtype, shape), tensorType(dtype, shape)],
        attrs: {},
        range: [typeOf("bool").samples, typeOf(dtype).samples, typeOf(dtype).samples],
      })),
    ),
});

export type CastAttrs = { readonly dtype: DType };

/** The element types whose every number is a number of the key. */
const HOLDS: Record<DType, readonly DType[]> = {
  f32: ["bool", "bf16", "f16", "i8", "u8"],
  f64: ["bool", "i32", "f32", "bf16", "f16", "i8", "u8"],
  bf16: ["bool", "i8", "u8"],
  f16: ["bool", "i8", "u8"],
  i32: ["bool", "i8", "u8"],
  i64: ["bool", "i32", "i8", "u8"],
  i8: ["bool"],
  u8: ["bool"],
  bool: [],
};

/** A value in an element type, converted where it has another. */
export const inDtype = (b: Build, value: Value, dtype: DType): Value =>
  value.type.dtype === dtype ? value : b.call(castTo(value.type.dtype, dtype), [value], { dtype });

/** The operation that converts one type to another. */
export const castTo = (from: DType, to: DType): OpDef<CastAttrs> =>
  isFloat(from) && !isComputed(from) && HOLDS[to].includes(from) ? widen : cast;

/**
 * A cotangent on its way back through a cast. One that a product of bf16 or f16 gives is taken from the product before it is
 * rounded: gradients of f32 weights lose nothing to the type that products are computed in.
 */
function widened(b: Build, ct: Value, dtype: DType): Value {
  const node = b.producer(ct);
  return (node && wideProduct(b, node, ct.type.dtype, dtype)) ?? inDtype(b, ct, dtype);
}

/** What a node that gives `from` computes, in `to` before it is rounded; null where it is no product of such types. */
export function wideProduct(
  b: Build,
  { op, attrs, inputs }: Pick<Node, "op" | "attrs" | "inputs">,
  from: DType,
  to: DType,
): Value | null {
  const wide = op.facts?.wideResult?.(attrs as never, from, to);
  return wide ? b.call(op, inputs, wide as never) : null;
}

/** In the compute type of a type; whole numbers of few bits saturate. */
function converted(x: Expr, dtype: DType): Expr {
  const { kind, compute, lowest, highest } = typeOf(dtype);
  const y = inType(x, compute);
  return kind === "integer" && !isComputed(dtype) ? clamp(y, lowest, highest) : y;
}

/** Converts the element type: to i32 truncating and saturating, to bool by ≠ 0. */
export const cast: OpDef<CastAttrs> = defineOp<CastAttrs>({
  name: "cast",
  infer: ([x], { dtype }) => [tensorType(dtype, x?.shape ?? [])],
  derivative: {
    kind: "multilinear",
    transpose: (b, { x, ct }) => widened(b, ct, (x[0] as Value).type.dtype),
  },
  cost: (_, [out]) => ({ flops: out ? elementsOf(out.shape) : 0 }),
  lower: {
    kind: "map",
    fusion: "once",
    pointwise: true,
    value: (c, at) => converted(c.inputs[0]?.(at) as Expr, c.attrs.dtype),
  },
  facts: { takesWide: true },
  exactInDouble: true,
  simplify(b, node, { dtype }) {
    const x = node.inputs[0] as Value;
    if (x.type.dtype === dtype) return x;
    const inner = b.producer(x);
    const from = inner?.op === cast || inner?.op === widen ? inner.inputs[0] : undefined;
    // The conversion went through a type that holds every number of the first one.
    return from && HOLDS[x.type.dtype].includes(from.type.dtype) ? inDtype(b, from, dtype) : null;
  },
  // floats are rounded by those who ask for it
  evaluate({ inputs: [x], attrs: { dtype } }) {
    return [isFloat(dtype) ? Float64Array.from(x ?? []) : Float64Array.from(x ?? [], typeOf(dtype).round)];
  },
  samples: () =>
    DTYPES.flatMap((from) =>
      DTYPES.map((dtype) => ({
        inputs: [tensorType(from, [2, 5])],
        attrs: { dtype },
        range: isBool(from) ? typeOf(from).samples : ([-3, 3] as const),
      })),
    ),
});

/**
 * Converts bf16 or f16 to a type that holds all of its numbers. That is done where it is read, at the price of a load: what is
 * kept is the narrower value.
 */
export const widen: OpDef<CastAttrs> = defineOp<CastAttrs>({
  name: "widen",
  infer([x], { dtype }) {
    if (x && HOLDS[dtype].includes(x.dtype)) return [tensorType(dtype, x.shape)];
    throw new TidemarkError(
      "DtypeMismatch",
      `widen: ${dtype} does not hold every number of ${x ? typeText(x) : "nothing"}`,
      {
        help: `convert it with cast: numbers are rounded`,
      },
    );
  },
  derivative: {
    kind: "multilinear",
    transpose: (b, { x, ct }) => b.call(cast, [ct], { dtype: (x[0] as Value).type.dtype }),
  },
  cost: (_, [out]) => ({ flops: out ? elementsOf(out.shape) : 0 }),
  lower: {
    kind: "map",
    fusion: "always",
    pointwise: true,
    value: (c, at) => inType(c.inputs[0]?.(at) as Expr, typeOf(c.attrs.dtype).compute),
  },
  exactInDouble: true,
  evaluate: ({ inputs: [x] }) => [Float64Array.from(x ?? [])],
  samples: () =>
    (["bf16", "f16"] as const).flatMap((from) =>
      (["f32", "f64"] as const).map((dtype) => ({ inputs: [tensorType(from, [2, 5])], attrs: { dtype } })),
    ),
});

/** The value itself, with no derivative through it. */
export const stopGradient: OpDef<NoAttrs> = defineOp<NoAttrs>({
  name: "stop_gradient",
  batch: LEADING,
  facts: { viewAxes: (_, from) => from.map((__, axis) => axis), strips: alongAll },
  infer: ([x]) => (x ? [x] : []),
  derivative: { kind: "none" },
  cost: () => ({ flops: 0 }),
  lower: { kind: "map", fusion: "always", value: (c, at) => c.inputs[0]?.(at) as Expr },
  alias: 0,
  evaluate: ({ inputs: [x] }) => [Float64Array.from(x ?? [])],
  samples: () => [{ inputs: [tensorType("f32", [4])], attrs: {} }],
});
