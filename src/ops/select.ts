/** @file Choosing between values, converting between element types, and stopping gradients. */
import { TidemarkError } from "../base/errors.ts";
import type { Value } from "../ir/graph.ts";
import type { NoAttrs, OpDef } from "../ir/op.ts";
import { elementsOf, sameShape, tensorType, typeText } from "../ir/type.ts";
import type { DType } from "../kernel/dtype.ts";
import { call, type Expr } from "../kernel/expr.ts";
import { fullLike, splatOf } from "./create.ts";
import { apply, defineOp, requireDomain, requireSame } from "./define.ts";

/** where(c, a, b): a where c holds, else b. Linear in a and b together, so NaN on the unused side never spreads. */
export const where: OpDef<NoAttrs> = defineOp<NoAttrs>({
  name: "where",
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
    transpose: (b, ct, x, i) => {
      const c = x[0] as Value;
      const nothing = fullLike(b, ct, 0);
      return i === 1 ? apply(b, where, c, ct, nothing) : apply(b, where, c, nothing, ct);
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
    if (x === y) return x;
    const always = splatOf(b, c);
    if (always === null) return null;
    return always ? x : y;
  },
  evaluate: ({ inputs: [c, a, b] }) => [Float64Array.from(c ?? [], (x, i) => (x ? (a?.[i] ?? 0) : (b?.[i] ?? 0)))],
  samples: () =>
    (["f32", "f64", "i32", "bool"] as const).flatMap((dtype) =>
      [[3, 5], [], [0], [9]].map((shape) => ({
        inputs: [tensorType("bool", shape), tensorType(dtype, shape), tensorType(dtype, shape)],
        attrs: {},
        range: [[0, 2], dtype === "bool" ? [0, 2] : [-2, 2], dtype === "bool" ? [0, 2] : [-2, 2]] as const,
      })),
    ),
});

export type CastAttrs = { readonly dtype: DType };

function castReference(x: number, dtype: DType): number {
  if (dtype === "bool") return Number(x !== 0);
  if (dtype !== "i32") return x;
  if (Number.isNaN(x)) return 0;
  // Integers have one zero: -0 + 0 = 0.
  return Math.max(-0x80000000, Math.min(0x7fffffff, Math.trunc(x))) + 0;
}

/** The element types whose every number is a number of the key. */
const HOLDS: Record<DType, readonly DType[]> = {
  f32: ["bool"],
  f64: ["bool", "i32", "f32"],
  i32: ["bool"],
  bool: [],
};

/** Converts the element type: to i32 truncating and saturating, to bool by ≠ 0. */
export const cast: OpDef<CastAttrs> = defineOp<CastAttrs>({
  name: "cast",
  infer: ([x], { dtype }) => [tensorType(dtype, x?.shape ?? [])],
  derivative: {
    kind: "multilinear",
    transpose: (b, ct, x) => b.call(cast, [ct], { dtype: (x[0] as Value).type.dtype }),
  },
  cost: (_, [out]) => ({ flops: out ? elementsOf(out.shape) : 0 }),
  lower: {
    kind: "map",
    fusion: "once",
    pointwise: true,
    value: (c, at) => {
      const x = c.inputs[0]?.(at) as Expr;
      return x.dtype === c.attrs.dtype ? x : call("convert", [x], c.attrs.dtype);
    },
  },
  exactInDouble: true,
  simplify(b, node, { dtype }) {
    const x = node.inputs[0] as Value;
    if (x.type.dtype === dtype) return x;
    const inner = b.producer(x);
    const from = inner?.op === cast ? inner.inputs[0] : undefined;
    // The way round led through a type that holds every number of the first one.
    return from && HOLDS[x.type.dtype].includes(from.type.dtype) ? b.call(cast, [from], { dtype }) : null;
  },
  evaluate: ({ inputs: [x], attrs }) => [Float64Array.from(x ?? [], (v) => castReference(v, attrs.dtype))],
  samples: () =>
    (["f32", "f64", "i32", "bool"] as const).flatMap((from) =>
      (["f32", "f64", "i32", "bool"] as const).map((dtype) => ({
        inputs: [tensorType(from, [2, 5])],
        attrs: { dtype },
        range: from === "bool" ? ([0, 2] as const) : ([-3, 3] as const),
      })),
    ),
});

/** The value itself, with no derivative through it. */
export const stopGradient: OpDef<NoAttrs> = defineOp<NoAttrs>({
  name: "stop_gradient",
  infer: ([x]) => (x ? [x] : []),
  derivative: { kind: "none" },
  cost: () => ({ flops: 0 }),
  lower: { kind: "map", fusion: "always", value: (c, at) => c.inputs[0]?.(at) as Expr },
  alias: 0,
  evaluate: ({ inputs: [x] }) => [Float64Array.from(x ?? [])],
  samples: () => [{ inputs: [tensorType("f32", [4])], attrs: {} }],
});
