/**
 * @file Numbers kept in few bits, in groups of 256 neighbours: the least and the largest of a group, and for each element one of 2ᵇ
 * evenly spaced numbers between them. Which of the two nearest is drawn, so that the expected value is the number itself:
 *
 *   code = floor((x - least)·(2ᵇ - 1)/(largest - least) + u)          u in [0, 1), a function of the key and the element's number
 *   x̂    = least + code·(largest - least)/(2ᵇ - 1)
 *
 * Nothing is drawn in sequence, so a value that is recomputed and rounded a second time has the same codes. The key is of the residual
 * that is rounded (passes/rounded-residuals.ts). NaN or an infinity in a group makes the whole group NaN: it is not hidden.
 */
import { TidemarkError } from "../base/errors.ts";
import { at as item } from "../base/invariant.ts";
import type { LowerContext, NoAttrs, OpDef, Sample } from "../ir/op.ts";
import { byteLength, elementsOf, type Shape, sameShape, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { computeFloat, FLOAT_TYPES, type FloatType, storedNumber } from "../kernel/dtype.ts";
import { constant, type Expr, type Index } from "../kernel/expr.ts";
import { addIndex, divIndex, scaleIndex } from "../kernel/index-math.ts";
import { Position } from "../kernel/position.ts";
import { add, convert, div, floor, lt, max, min, mul, pick, shl, shrU, sub, xor } from "../kernel/scalar-ops.ts";
import { requireInputs, requireOne } from "./checks.ts";
import { codeAt, codeOf, elementAt, requireBits, WORD_BITS, wordsIn, wordsOf, wordsType } from "./codes.ts";
import { defineOp, requireDomain } from "./define.ts";
import { guarded } from "./guard.ts";

/** Elements that are rounded together. */
export const GROUP = 256;

/** Bits that residuals are rounded to. */
export const ROUNDED_BITS: readonly number[] = [1, 2, 4, 8];

const groupsOf = (elements: number): number => Math.ceil(elements / GROUP);

/** Bytes of a value of a type when it is kept in so many bits. */
export const roundedBytes = ({ shape }: TensorType, bits: number, wordBytes: number): number =>
  4 * elementsOf(wordsType(elementsOf(shape), bits).shape) + 2 * wordBytes * groupsOf(elementsOf(shape));

/** Expected range of 256 normally distributed numbers, in standard deviations. */
const RANGE = 5.63;

/**
 * Root mean square of the error over that of the values, of normally distributed ones. Rounding to one of two neighbours at random has a
 * variance of f·(1-f) steps², where f is the distance to the lower one: a sixth on average.
 */
export const expectedError = (bits: number): number => (RANGE * Math.sqrt(1 / 6)) / (2 ** bits - 1);

const SHAPES: readonly Shape[] = [[3, 5], [], [0, 4], [300], [2, 400]];

/** The least or the largest element of every group. */
function groupExtreme(name: string, combine: "min" | "max", start: number): OpDef<NoAttrs> {
  return defineOp<NoAttrs>({
    name,
    infer(inputs) {
      const x = requireOne(name, inputs);
      requireDomain(name, "float", [x]);
      return [tensorType(x.dtype, [groupsOf(elementsOf(x.shape))])];
    },
    derivative: { kind: "none" },
    cost: ([x]) => ({ flops: x ? elementsOf(x.shape) : 0 }),
    lower: {
      kind: "reduce",
      combine,
      counters: () => ({ extents: [GROUP], order: "interleaved" }),
      body(c, at, r) {
        const { shape, dtype } = item(c.inTypes, 0);
        const element = addIndex(scaleIndex(item(at.idx, 0), GROUP), item(r, 0));
        const bounds = [{ index: element, lo: 0, hi: elementsOf(shape) }];
        const read = (): Expr => item(c.inputs, 0)(Position.linear(shape, element));
        return guarded(bounds, read, constant(computeFloat(dtype as FloatType), start));
      },
    },
    evaluate({ inputs, outTypes }) {
      const x = item(inputs, 0);
      const out = new Float64Array(elementsOf(item(outTypes, 0).shape)).fill(start);
      x.forEach((value, e) => {
        const g = Math.floor(e / GROUP);
        out[g] = Math[combine](item(out, g), value);
      });
      return [out];
    },
    samples: () =>
      FLOAT_TYPES.flatMap((dtype) => SHAPES.map((shape) => ({ inputs: [tensorType(dtype, shape)], attrs: {} }))),
  });
}

export const groupMin: OpDef<NoAttrs> = groupExtreme("group_min", "min", Number.POSITIVE_INFINITY);
export const groupMax: OpDef<NoAttrs> = groupExtreme("group_max", "max", Number.NEGATIVE_INFINITY);

/** Odd constants of the generator: the golden ratio, and those of MurmurHash3's last step (A. Appleby). */
const [STRIDE, FIRST, SECOND] = [0x9e3779b9 | 0, 0x85ebca6b | 0, 0xc2b2ae35 | 0];

/** 32 bits for a key and a counter: the counter in strides of the golden ratio, mixed. */
function mixed(key: number, counter: Expr): Expr {
  const a = xor(mul(counter, STRIDE), key);
  const b = mul(xor(a, shrU(a, 16)), FIRST);
  const c = mul(xor(b, shrU(b, 13)), SECOND);
  return xor(c, shrU(c, 16));
}

function mixedNumber(key: number, counter: number): number {
  const a = Math.imul(counter, STRIDE) ^ key;
  const b = Math.imul(a ^ (a >>> 16), FIRST);
  const c = Math.imul(b ^ (b >>> 13), SECOND);
  return c ^ (c >>> 16);
}

function requireGroups(name: string, x: TensorType, least: TensorType, largest: TensorType): void {
  const expected = tensorType(x.dtype, [groupsOf(elementsOf(x.shape))]);
  for (const type of [least, largest]) {
    if (type.dtype === expected.dtype && sameShape(type.shape, expected.shape)) continue;
    const summary = `${name}: ${typeText(type)} is not an end of each group of ${typeText(x)}`;
    throw new TidemarkError("ShapeMismatch", summary, { help: `ends are ${typeText(expected)}` });
  }
}

/** `value`: the residual's name, for reports; `linear`: whether gradients are linear in it. */
export type PackGroupsAttrs = {
  readonly bits: number;
  readonly key: number;
  readonly value: string;
  readonly linear: boolean;
};

const levelsOf = (bits: number): number => 2 ** bits - 1;

/** Reads an end of the group of an element. */
function endOf<A>(c: LowerContext<A>, input: number, element: Index): Expr {
  const { shape } = item(c.inTypes, input);
  return item(c.inputs, input)(Position.at(shape, [divIndex(element, GROUP)]));
}

/** x, its least and largest of each group → words of codes. */
export const packGroups: OpDef<PackGroupsAttrs> = defineOp<PackGroupsAttrs>({
  name: "pack_groups",
  defaults: { value: "", linear: false },
  facts: {
    rounds: ({ bits, value, linear, key }, [x, ...ends], outputs) => ({
      ...{ value, form: `${bits} bits`, linear, error: expectedError(bits), key },
      bytes: [...outputs, ...ends].reduce((sum, type) => sum + byteLength(type), 0),
      wholeBytes: x ? byteLength(x) : 0,
    }),
  },
  infer(inputs, { bits, key }) {
    requireInputs("pack_groups", ["x", "least", "largest"], inputs);
    const [x, least, largest] = inputs as [TensorType, TensorType, TensorType];
    requireDomain("pack_groups", "float", [x]);
    requireBits("pack_groups", bits);
    requireGroups("pack_groups", x, least, largest);
    if ((key | 0) !== key) {
      throw new TidemarkError("InvalidArgument", `pack_groups: key ${key} is not a whole number of 32 bits`);
    }
    return [wordsType(elementsOf(x.shape), bits)];
  },
  derivative: { kind: "none" },
  cost: ([x]) => ({ flops: x ? 18 * elementsOf(x.shape) : 0 }),
  // Every code is added once, so the sum is the word.
  lower: {
    kind: "reduce",
    combine: "add",
    counters: (_, { bits }) => ({ extents: [WORD_BITS / bits], order: "sequential" }),
    body(c, at, r) {
      const { shape, dtype } = item(c.inTypes, 0);
      const { bits, key } = c.attrs;
      const slot = item(r, 0);
      const element = elementAt(item(at.idx, 0), item(at.idx, 1), slot, bits);
      const code = (): Expr => {
        const x = item(c.inputs, 0)(Position.linear(shape, element));
        const [least, largest] = [endOf(c, 1, element), endOf(c, 2, element)];
        const levels = levelsOf(bits);
        const factor = pick(lt(least, largest), div(constant(least.dtype, levels), sub(largest, least)), 0);
        const counter: Expr = { kind: "index", dtype: "i32", index: element };
        const u = mul(convert(shrU(mixed(key, counter), 8), computeFloat(dtype as FloatType)), 2 ** -24);
        const drawn = floor(add(mul(sub(x, least), factor), u));
        return convert(max(min(drawn, levels), 0), "i32");
      };
      const bounds = [{ index: element, lo: 0, hi: elementsOf(shape) }];
      return shl(guarded(bounds, code, constant("i32", 0)), scaleIndex(slot, bits));
    },
  },
  evaluate({ inputs, inTypes, attrs: { bits, key } }) {
    const [x, least, largest] = inputs as [Float64Array, Float64Array, Float64Array];
    // as registers compute, whatever the type in memory
    const computed = computeFloat(item(inTypes, 0).dtype as FloatType);
    const r = (value: number): number => storedNumber(computed, value);
    const levels = levelsOf(bits);
    const code = (e: number): number => {
      const [lo, hi] = [item(least, Math.floor(e / GROUP)), item(largest, Math.floor(e / GROUP))];
      const factor = lo < hi ? r(levels / r(hi - lo)) : 0;
      const u = (mixedNumber(key, e) >>> 8) * 2 ** -24;
      const drawn = Math.floor(r(r(r(item(x, e) - lo) * factor) + u));
      return Number.isNaN(drawn) ? 0 : Math.max(Math.min(drawn, levels), 0);
    };
    return [wordsOf(x.length, bits, code)];
  },
  samples: () =>
    ROUNDED_BITS.flatMap((bits) =>
      FLOAT_TYPES.flatMap((dtype) =>
        SHAPES.map((shape): Sample<PackGroupsAttrs> => {
          const ends = tensorType(dtype, [groupsOf(elementsOf(shape))]);
          return {
            inputs: [tensorType(dtype, shape), ends, ends],
            attrs: { bits, key: 1234567 * bits, value: "", linear: false },
            range: [
              [-2, 2],
              [-2.5, -1.5],
              [1.5, 2.5],
            ],
          };
        }),
      ),
    ),
});

export type UnpackGroupsAttrs = { readonly bits: number; readonly shape: Shape };

/** Words of codes, the least and the largest of each group → x̂. */
export const unpackGroups: OpDef<UnpackGroupsAttrs> = defineOp<UnpackGroupsAttrs>({
  name: "unpack_groups",
  infer(inputs, { bits, shape }) {
    requireInputs("unpack_groups", ["words", "least", "largest"], inputs);
    const [words, least, largest] = inputs as [TensorType, TensorType, TensorType];
    requireBits("unpack_groups", bits);
    requireDomain("unpack_groups", "float", [least]);
    const x = tensorType(least.dtype, shape);
    requireGroups("unpack_groups", x, least, largest);
    const expected = wordsType(elementsOf(shape), bits);
    if (!sameShape(words.shape, expected.shape) || words.dtype !== expected.dtype) {
      const summary = `unpack_groups: ${typeText(words)} does not hold codes of ${bits} bits of ${typeText(x)}`;
      throw new TidemarkError("ShapeMismatch", summary, { help: `they are ${typeText(expected)}` });
    }
    return [x];
  },
  derivative: { kind: "none" },
  cost: (_, [out]) => ({ flops: out ? 6 * elementsOf(out.shape) : 0 }),
  lower: {
    kind: "map",
    fusion: "always",
    value(c, at) {
      const { bits } = c.attrs;
      const code = codeAt(wordsIn(c), at.linear, bits);
      const [least, largest] = [endOf(c, 1, at.linear), endOf(c, 2, at.linear)];
      const step = mul(sub(largest, least), 1 / levelsOf(bits));
      return add(mul(convert(code, computeFloat(c.outType.dtype as FloatType)), step), least);
    },
  },
  evaluate({ inputs, outTypes, attrs: { bits } }) {
    const [words, least, largest] = inputs as [Float64Array, Float64Array, Float64Array];
    const out = new Float64Array(elementsOf(item(outTypes, 0).shape));
    return [
      out.map((_, e) => {
        const [lo, hi] = [item(least, Math.floor(e / GROUP)), item(largest, Math.floor(e / GROUP))];
        return codeOf(words, e, bits) * ((hi - lo) / levelsOf(bits)) + lo;
      }),
    ];
  },
  samples: () =>
    ROUNDED_BITS.flatMap((bits) =>
      FLOAT_TYPES.flatMap((dtype) =>
        SHAPES.map((shape): Sample<UnpackGroupsAttrs> => {
          const ends = tensorType(dtype, [groupsOf(elementsOf(shape))]);
          return {
            inputs: [wordsType(elementsOf(shape), bits), ends, ends],
            attrs: { bits, shape },
            range: [
              [-(2 ** 31), 2 ** 31],
              [-2, -1],
              [1, 2],
            ],
          };
        }),
      ),
    ),
});
