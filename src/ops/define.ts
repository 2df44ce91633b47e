/** @file Functions that declare operations: they fill in the fields that a family shares, and keep every field mandatory. */
import { TidemarkError } from "../base/errors.ts";
import type { Build } from "../ir/build.ts";
import type { OpFacts } from "../ir/facts.ts";
import type { Value } from "../ir/graph.ts";
import type { NoAttrs, OpDef, Partial, Sample } from "../ir/op.ts";
import { elementsOf, type Shape, sameShape, type TensorType, tensorType, typeText } from "../ir/type.ts";
import {
  DTYPES,
  type DType,
  FLOAT_TYPES,
  isBool,
  isComputed,
  isFloat,
  isIndexType,
  NUMBER_TYPES,
  typeOf,
} from "../kernel/dtype.ts";
import type { Expr } from "../kernel/expr.ts";

/** Fields with a harmless default; all others must be given. */
type Defaulted = "defaults" | "alias" | "simplify";

export function defineOp<A>(op: Omit<OpDef<A>, Defaulted> & { [K in Defaulted]?: OpDef<A>[K] }): OpDef<A> {
  return { defaults: {}, alias: null, simplify: () => null, ...op };
}

/** Element types an operation takes: floats; floats and integers; integers; numbers of elements; bool; those made of bits; anything. */
export type Domain = "float" | "number" | "integer" | "index" | "bool" | "bits" | "any";

/** By domain, the types that it consists of. */
export const DOMAIN: Record<Domain, readonly DType[]> = {
  float: FLOAT_TYPES,
  number: NUMBER_TYPES,
  integer: DTYPES.filter((dtype) => typeOf(dtype).kind === "integer"),
  index: DTYPES.filter(isIndexType),
  bool: ["bool"],
  bits: DTYPES.filter((dtype) => !isFloat(dtype)),
  any: DTYPES,
};

/**
 * Types that samples of an operation are drawn in. Of types that are computed in others only loads and stores are new: the first of
 * a kind stands for the rest, which operations on all types and conversions have.
 */
export const sampledTypes = (dtypes: readonly DType[]): readonly DType[] =>
  dtypes.filter((dtype, i) => {
    const isLike = (other: DType): boolean => !isComputed(other) && typeOf(other).kind === typeOf(dtype).kind;
    return isComputed(dtype) || dtypes === DTYPES || dtypes.findIndex(isLike) === i;
  });

export function requireDomain(name: string, domain: Domain, types: readonly TensorType[]): void {
  for (const type of types) {
    if (DOMAIN[domain].includes(type.dtype)) continue;
    const wanted = DOMAIN[domain].join(", ");
    throw new TidemarkError("DtypeMismatch", `${name}: takes ${wanted}, got ${typeText(type)}`, {
      help:
        domain === "float"
          ? 'convert it first: cast(x, "f32")'
          : `convert it first with cast(x, "${DOMAIN[domain][0]}")`,
    });
  }
}

/** All inputs have one shape and, unless they are exempt, one dtype. */
export function requireSame(name: string, types: readonly TensorType[]): TensorType {
  const [first] = types;
  if (!first) {
    throw new TidemarkError("InvalidArgument", `${name}: needs at least one input, got none`, {
      help: "give one tensor or more",
    });
  }
  for (const type of types) {
    if (!sameShape(first.shape, type.shape)) {
      throw new TidemarkError("ShapeMismatch", `${name}: shapes differ: ${types.map(typeText).join(", ")}`, {
        help: "broadcast one side to the other's shape, or reshape it",
      });
    }
    if (first.dtype !== type.dtype) {
      throw new TidemarkError("DtypeMismatch", `${name}: element types differ: ${types.map(typeText).join(", ")}`, {
        help: `convert one side: cast(x, "${first.dtype}")`,
      });
    }
  }
  return first;
}

export function requireAxis(name: string, axis: number, rank: number): void {
  if (Number.isInteger(axis) && axis >= 0 && axis < rank) return;
  throw new TidemarkError("InvalidAxis", `${name}: axis ${axis} of a tensor of rank ${rank}`, {
    help: rank === 0 ? "a scalar has no axes" : `axes run from 0 to ${rank - 1} (or -${rank} to -1)`,
  });
}

export interface ElementwiseSpec<A> {
  readonly inputs: number;
  readonly domain: Domain;
  /** Element type of the result; default that of the inputs. */
  readonly out?: DType;
  readonly defaults?: OpDef<A>["defaults"];
  /** One per input; absent for results that are not floats. */
  readonly partials?: readonly Partial<A>[];
  scalar(x: readonly Expr[], attrs: A): Expr;
  reference(x: readonly number[], attrs: A): number;
  /** The same for integers where doubles lose low bits; the result is wrapped in any case. */
  integer?(x: readonly number[], dtype: DType): number;
  /** See OpDef. */
  readonly exactInDouble?: true;
  readonly facts?: OpFacts<A>;
  /** Floating-point operations an element, for the cost model. */
  readonly flops?: number;
  readonly range?: Sample<A>["range"];
  /** Points to keep clear of: not smooth anywhere near, so differences are not taken. */
  readonly smooth?: boolean;
  readonly attrSamples?: readonly A[];
  /** Shapes of samples; by default several vectors, a scalar and one without elements. */
  readonly shapes?: readonly Shape[];
  readonly simplify?: OpDef<A>["simplify"];
}

/** For functions whose scalar expression is all that is new. */
export const FEW_SHAPES: readonly Shape[] = [
  [3, 5],
  [0, 4],
];

function elementwiseSamples<A>(spec: ElementwiseSpec<A>): readonly Sample<A>[] {
  const shapes: readonly Shape[] = spec.shapes ?? [[3, 5], [], [0, 4], [17]];
  const attrsList = spec.attrSamples ?? [{} as A];
  const samples: Sample<A>[] = [];
  for (const dtype of sampledTypes(DOMAIN[spec.domain])) {
    // one sample of types of which only loads and stores are new
    const isOwn = isComputed(dtype);
    for (const shape of isOwn ? shapes : shapes.slice(0, 1)) {
      for (const attrs of isOwn ? attrsList : attrsList.slice(0, 1)) {
        const types = Array.from({ length: spec.inputs }, () => tensorType(dtype, shape));
        const range = spec.range ?? ([-2, 2] as const);
        samples.push({
          inputs: types,
          attrs,
          range: isBool(dtype) ? typeOf(dtype).samples : range,
          smooth: spec.smooth ?? true,
        });
      }
    }
  }
  return samples;
}

/** y[i] = f(x₀[i], x₁[i], …): everything follows from the scalar function, its partials and its meaning in doubles. */
export function elementwise<A = NoAttrs>(name: string, spec: ElementwiseSpec<A>): OpDef<A> {
  return defineOp<A>({
    name,
    defaults: spec.defaults ?? {},
    infer(inputs) {
      if (inputs.length !== spec.inputs) {
        throw new TidemarkError("InvalidArgument", `${name}: takes ${spec.inputs} inputs, got ${inputs.length}`, {
          help: `call ${name}(${["x", "y", "z"].slice(0, spec.inputs).join(", ")})`,
        });
      }
      requireDomain(name, spec.domain, inputs);
      const first = requireSame(name, inputs);
      const dtype = spec.out ?? first.dtype;
      return [dtype === first.dtype && first.pitch === undefined ? first : tensorType(dtype, first.shape)];
    },
    derivative: spec.partials ? { kind: "elementwise", partials: spec.partials } : { kind: "none" },
    cost: (_, [out]) => ({ flops: (spec.flops ?? 1) * (out ? elementsOf(out.shape) : 0) }),
    lower: {
      kind: "map",
      fusion: "once",
      pointwise: true,
      value: (c, at) =>
        spec.scalar(
          c.inputs.map((read) => read(at)),
          c.attrs,
        ),
    },
    ...(spec.simplify ? { simplify: spec.simplify } : {}),
    ...(spec.exactInDouble ? { exactInDouble: true } : {}),
    ...(spec.facts ? { facts: spec.facts } : {}),
    evaluate({ inputs, attrs, outTypes }) {
      const [type] = outTypes;
      const out = new Float64Array(type ? elementsOf(type.shape) : 0);
      const x: number[] = new Array(inputs.length).fill(0);
      const dtype = type?.dtype ?? "f64";
      const { kind, wrap } = typeOf(dtype);
      const { integer } = spec;
      const isOwn = kind === "integer" && integer;
      const meaning = isOwn ? () => integer(x, dtype) : () => spec.reference(x, attrs);
      for (let e = 0; e < out.length; e++) {
        for (let i = 0; i < inputs.length; i++) x[i] = inputs[i]?.[e] ?? 0;
        out[e] = wrap(meaning());
      }
      return [out];
    },
    samples: () => elementwiseSamples(spec),
  });
}

/** The inputs of the node that made a value, if that node applies `op`. For simplifications. */
export function inputsIfMadeBy(b: Build, value: Value | undefined, op: OpDef<NoAttrs>): readonly Value[] | null {
  const node = value && b.producer(value);
  return node?.op === op ? node.inputs : null;
}

/** Shorthand for derivative rules: applies an operation without attributes. */
export function apply(b: Build, op: OpDef<NoAttrs>, ...inputs: readonly Value[]): Value {
  return b.call(op, inputs, {});
}
