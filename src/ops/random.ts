/**
 * @file Random tensors. Element e of a random tensor is a function of the key (two words), of e and of the number
 * `stream`, through the counter-based generator Threefry (base/random.ts):
 *
 *     two words = threefry(key, counter = [e, stream])
 *
 * Keys may have leading axes, which are those of the result: each draws for the rest of the axes, from element 0 on, as it would
 * alone.
 *
 * Nothing is drawn in sequence: any part can be computed anywhere, again, or not at all, and gives the same bits. Two
 * uses of one key are independent when their streams differ.
 *
 * A mask of independent coin tosses is never worth storing, since the key determines it: `random_bernoulli` is computed
 * wherever it is read, and recomputed in the backward pass. The others cost enough to be stored when they are used twice.
 *
 * Invariant: integers and bools have the same bits on every target; floats follow from the words by the fixed formulas
 * of kernel/math.ts.
 */
import { TidemarkError } from "../base/errors.ts";
import { at as item } from "../base/invariant.ts";
import { belowFromBits, normalFromBits, threefry, uniformFromBits, type Words } from "../base/random.ts";
import { leading } from "../ir/batch.ts";
import type { EvaluateContext, LowerContext, NoAttrs, OpDef, Sample } from "../ir/op.ts";
import { elementsOf, sameShape, type TensorType, tensorType, typeText } from "../ir/type.ts";
import {
  computeFloat,
  type DType,
  FLOAT_TYPES,
  type FloatType,
  isBool,
  isFloat,
  isIndexType,
  significandBits,
} from "../kernel/dtype.ts";
import { call, compare, constant, type Expr } from "../kernel/expr.ts";
import { constIndex } from "../kernel/index-math.ts";
import * as math from "../kernel/math.ts";
import { Position } from "../kernel/position.ts";
import { requireIndices, requireInputs, requireOne } from "./checks.ts";
import { requireShape } from "./create.ts";
import { defineOp } from "./define.ts";

/** `stream` distinguishes draws with one key. */
export type RandomBitsAttrs = { readonly shape: readonly number[]; readonly stream: number };
export type RandomFloatAttrs = RandomBitsAttrs & { readonly dtype: FloatType };
/** `p`: the probability of true. */
export type RandomBernoulliAttrs = RandomBitsAttrs & { readonly p: number };

/** Integers in [lo, hi). */
export type RandomIntegerAttrs = RandomBitsAttrs & { readonly lo: number; readonly hi: number };

/** One element, as a kernel computes it from its two words and in doubles. */
interface RandomSpec<A extends RandomBitsAttrs> {
  readonly name: string;
  readonly defaults: OpDef<A>["defaults"];
  readonly fusion: "always" | "once";
  /** Arithmetic on top of the generator's. */
  readonly flops: number;
  dtype(attrs: A): DType;
  check?(attrs: A): void;
  scalar(words: readonly [Expr, Expr], attrs: A): Expr;
  reference(words: Words, attrs: A): number;
  readonly samples: readonly A[];
}

/** 20 rounds of five operations, six key additions of two words each, and two for the third word of the key. */
export const THREEFRY_FLOPS = 114;

const KEY: TensorType = tensorType("i32", [2]);

/** Axes of the result along which keys differ: those of the keys but for their last. */
const batchAxes = ({ shape }: TensorType): number => shape.length - 1;

function requireRandom(name: string, inputs: readonly TensorType[], { shape, stream }: RandomBitsAttrs): void {
  requireInputs(name, ["key"], inputs);
  const key = item(inputs, 0);
  const lead = batchAxes(key);
  const fits = lead >= 0 && sameShape(key.shape, [...shape.slice(0, lead), 2]);
  if (!isIndexType(key.dtype) || !fits) {
    throw new TidemarkError("ShapeMismatch", `${name}: a key is i32[2], got ${typeText(key)}`, {
      help: "pass a key of two 32-bit words; the shape attribute sets the number of draws",
    });
  }
  requireShape(name, shape);
  if ((stream | 0) !== stream) {
    throw new TidemarkError("InvalidArgument", `${name}: stream ${stream} is not a whole number of 32 bits`, {
      help: "number the uses of a key 0, 1, 2, …",
    });
  }
}

function words(c: LowerContext<RandomBitsAttrs>, at: Position): readonly [Expr, Expr] {
  const { shape } = item(c.inTypes, 0);
  const lead = batchAxes(item(c.inTypes, 0));
  const key = (i: number): Expr => item(c.inputs, 0)(Position.at(shape, [...at.idx.slice(0, lead), constIndex(i)]));
  const own = lead === 0 ? at : Position.at(c.attrs.shape.slice(lead), at.idx.slice(lead));
  const element: Expr = { kind: "index", dtype: "i32", index: own.linear };
  return math.threefry(key(0), key(1), element, constant("i32", c.attrs.stream));
}

function evaluateRandom<A extends RandomBitsAttrs>(
  spec: RandomSpec<A>,
  c: EvaluateContext<A>,
): readonly [Float64Array] {
  const key = item(c.inputs, 0);
  const own = elementsOf(c.attrs.shape.slice(batchAxes(item(c.inTypes, 0))));
  const value = (_: unknown, e: number): number => {
    const n = Math.floor(e / own);
    const words: Words = [item(key, 2 * n), item(key, 2 * n + 1)];
    return spec.reference(threefry(words, [e % own, c.attrs.stream]), c.attrs);
  };
  return [Float64Array.from({ length: elementsOf(c.attrs.shape) }, value)];
}

function defineRandom<A extends RandomBitsAttrs>(spec: RandomSpec<A>): OpDef<A> {
  return defineOp<A>({
    name: spec.name,
    batch: leading((attrs, size) => ({ ...attrs, shape: [size, ...attrs.shape] })),
    defaults: spec.defaults,
    infer(inputs, attrs) {
      requireRandom(spec.name, inputs, attrs);
      spec.check?.(attrs);
      return [tensorType(spec.dtype(attrs), attrs.shape)];
    },
    derivative: { kind: "none" },
    cost: (_, [out]) => ({ flops: (THREEFRY_FLOPS + spec.flops) * (out ? elementsOf(out.shape) : 0) }),
    lower: { kind: "map", fusion: spec.fusion, value: (c, at) => spec.scalar(words(c, at), c.attrs) },
    evaluate: (c) => evaluateRandom(spec, c),
    samples: () =>
      spec.samples.map((attrs): Sample<A> => {
        // of three axes, the first has a key for each element
        const keys = attrs.shape.length === 3 ? tensorType("i32", [...attrs.shape.slice(0, 1), 2]) : KEY;
        return { inputs: [keys], attrs, range: [-0x80000000, 0x80000000] };
      }),
  });
}

const SHAPES: readonly RandomBitsAttrs[] = [
  { shape: [4, 5], stream: 0 },
  { shape: [], stream: 3 },
  { shape: [0, 3], stream: 1 },
  { shape: [37], stream: -7 },
  { shape: [3, 2, 5], stream: 0 },
];

/** 32 random bits an element. */
export const randomBits: OpDef<RandomBitsAttrs> = defineRandom<RandomBitsAttrs>({
  name: "random_bits",
  defaults: { stream: 0 },
  fusion: "once",
  flops: 0,
  dtype: () => "i32",
  scalar: ([bits]) => bits,
  reference: ([bits]) => bits,
  samples: SHAPES,
});

function requireFloat(name: string, dtype: DType): void {
  if (isFloat(dtype)) return;
  throw new TidemarkError("DtypeMismatch", `${name}: draws ${FLOAT_TYPES.join(" or ")}, asked for ${dtype}`, {
    help: isBool(dtype) ? "random_bernoulli gives bool" : "random_bits gives i32",
  });
}

function floatSamples(): readonly RandomFloatAttrs[] {
  return SHAPES.flatMap((attrs) => FLOAT_TYPES.map((dtype) => ({ ...attrs, dtype })));
}

/** Uniform in [0, 1). */
export const randomUniform: OpDef<RandomFloatAttrs> = defineRandom<RandomFloatAttrs>({
  name: "random_uniform",
  defaults: { dtype: "f32", stream: 0 },
  fusion: "once",
  flops: 4,
  dtype: (attrs) => attrs.dtype,
  check: (attrs) => requireFloat("random_uniform", attrs.dtype),
  scalar: ([a, b], { dtype }) => math.uniformFromBits(a, b, computeFloat(dtype)),
  reference: (bits, { dtype }) => uniformFromBits(bits, significandBits(dtype)),
  samples: floatSamples(),
});

/** Standard normal. */
export const randomNormal: OpDef<RandomFloatAttrs> = defineRandom<RandomFloatAttrs>({
  name: "random_normal",
  defaults: { dtype: "f32", stream: 0 },
  fusion: "once",
  flops: 60,
  dtype: (attrs) => attrs.dtype,
  check: (attrs) => requireFloat("random_normal", attrs.dtype),
  scalar: ([a, b], { dtype }) => math.normalFromBits(a, b, computeFloat(dtype)),
  reference: (bits, { dtype }) => normalFromBits(bits, significandBits(dtype)),
  samples: floatSamples(),
});

const SIGN_BIT = -0x80000000;

/** The upper word of the product of two unsigned words; `n` is a constant. From halves, whose products fit a word. */
function upperWord(u: Expr, n: number): Expr {
  const [high, low] = [math.halfWord(u, "high"), math.halfWord(u, "low")];
  const part = (half: Expr, of: number): Expr => call("mul", [half, constant("i32", of)]);
  const [c, d] = [n >>> 16, n & 0xffff];
  const first = call("add", [part(high, d), math.halfWord(part(low, d), "high")]);
  const second = call("add", [part(low, c), math.halfWord(first, "low")]);
  const carried = call("add", [math.halfWord(first, "high"), math.halfWord(second, "high")]);
  return call("add", [part(high, c), carried]);
}

const unsignedLess = (a: Expr, b: Expr): Expr => {
  const signed = (x: Expr): Expr => call("xor", [x, constant("i32", SIGN_BIT)]);
  return compare("lt", signed(a), signed(b));
};

/**
 * Integers from `lo` up to but not including `hi`, all alike to 2⁻³²: lo + ⌊u · (hi - lo) / 2⁶⁴⌋ with the 64 bits of both words,
 * the first one upper.
 */
export const randomInteger: OpDef<RandomIntegerAttrs> = defineRandom<RandomIntegerAttrs>({
  name: "random_integer",
  defaults: { stream: 0 },
  fusion: "once",
  flops: 30,
  dtype: () => "i32",
  check({ lo, hi }) {
    const whole = Number.isInteger(lo) && Number.isInteger(hi) && lo >= SIGN_BIT && hi <= 0x80000000;
    if (whole && lo < hi) return;
    throw new TidemarkError("InvalidArgument", `random_integer: nothing is in [${lo}, ${hi})`, {
      help: "lo and hi are whole numbers of 32 bits, lo below hi",
    });
  },
  scalar([a, b], { lo, hi }) {
    const n = hi - lo;
    const from = constant("i32", lo);
    if (n > 0xffffffff) return call("add", [a, from]);
    // a · n · 2³² + b · n: the lower word of the one meets the upper word of the other
    const middle = upperWord(b, n);
    const met = call("add", [call("mul", [a, constant("i32", n | 0)]), middle]);
    const carry = call("pick", [unsignedLess(met, middle), constant("i32", 1), constant("i32", 0)], "i32");
    return call("add", [call("add", [upperWord(a, n), carry]), from]);
  },
  reference([a, b], { lo, hi }) {
    const u = (BigInt(a >>> 0) << 32n) | BigInt(b >>> 0);
    return lo + Number((u * BigInt(hi - lo)) >> 64n);
  },
  samples: SHAPES.flatMap((attrs) => [
    { ...attrs, lo: -3, hi: 4 },
    { ...attrs, lo: 0, hi: 1 },
    { ...attrs, lo: -0x80000000, hi: 0x80000000 },
    { ...attrs, lo: -1_500_000_000, hi: 2_000_000_000 },
    { ...attrs, lo: 0, hi: 0x7fffffff },
  ]),
});

/** Of the 2³² values of a word, how many count as true. */
function trueWords(p: number): number {
  return Math.round(p * 0x100000000);
}

function isTrue(bits: Expr, p: number): Expr {
  const limit = trueWords(p);
  if (limit > 0xffffffff) return constant("bool", 1);
  return compare("lt", call("xor", [bits, constant("i32", SIGN_BIT)]), constant("i32", limit + SIGN_BIT));
}

/** Element number `element` of what `random_bernoulli` draws, for operations that draw themselves. */
export function coin(key: readonly [Expr, Expr], element: Expr, p: number): Expr {
  const [bits] = math.threefry(key[0], key[1], element, constant("i32", 0));
  return isTrue(bits, p);
}

export const coinReference = (key: Words, element: number, p: number): boolean =>
  threefry(key, [element, 0])[0] >>> 0 < trueWords(p);

/**
 * True with probability p, to the nearest 2⁻³²: the first word, unsigned, is below p · 2³². Whole words are compared, so
 * no rounding of floats is involved; exchanging the sign bit on both sides makes the comparison a signed one.
 */
export const randomBernoulli: OpDef<RandomBernoulliAttrs> = defineRandom<RandomBernoulliAttrs>({
  name: "random_bernoulli",
  defaults: { stream: 0 },
  fusion: "always",
  flops: 2,
  dtype: () => "bool",
  check({ p }) {
    if (p >= 0 && p <= 1) return;
    throw new TidemarkError("InvalidArgument", `random_bernoulli: p is ${p}`, {
      help: "a probability is between 0 and 1",
    });
  },
  scalar: ([bits], { p }) => isTrue(bits, p),
  reference: ([bits], { p }) => Number(bits >>> 0 < trueWords(p)),
  samples: SHAPES.flatMap((attrs) => [0.25, 0.9].map((p) => ({ ...attrs, p }))).concat([
    { shape: [9], stream: 0, p: 0 },
    { shape: [9], stream: 0, p: 1 },
  ]),
});

/**
 * The permutation of 0 … n-1 that random bits encode, all n! alike up to 2⁻³²: Fisher and Yates from the back. For i
 * from n-1 down to 1, elements i and j = ⌊u_i · (i + 1) / 2³²⌋ change places, u_i being bits[i] as unsigned.
 */
export const shuffle: OpDef<NoAttrs> = defineOp<NoAttrs>({
  name: "shuffle",
  infer(inputs) {
    const bits = requireOne("shuffle", inputs);
    requireIndices("shuffle", "bits", bits);
    if (bits.shape.length !== 1) {
      throw new TidemarkError("ShapeMismatch", `shuffle: bits must have one axis, got ${typeText(bits)}`, {
        help: "draw one word for each element: random_bits(key) {shape=[n]}",
      });
    }
    return [bits];
  },
  derivative: { kind: "none" },
  // a product, a shift, two loads and two stores an element
  cost: (_, [out]) => ({ flops: out ? 6 * elementsOf(out.shape) : 0 }),
  lower: { kind: "shuffle" },
  evaluate({ inputs }) {
    const bits = item(inputs, 0);
    const out = Float64Array.from(bits, (_, i) => i);
    for (let i = bits.length - 1; i >= 1; i--) {
      const j = belowFromBits(item(bits, i), i + 1);
      const moved = item(out, i);
      out[i] = item(out, j);
      out[j] = moved;
    }
    return [out];
  },
  samples: () =>
    [[12], [1], [0], [33]].map((shape) => ({
      inputs: [tensorType("i32", shape)],
      attrs: {},
      range: [-0x80000000, 0x80000000] as const,
    })),
});
