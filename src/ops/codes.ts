/**
 * @file Whole numbers of few bits, several to a word: states of optimizers, positions, rounded residuals; of one bit, truth values
 * (bits.ts). Words are i32[rows, 16]. Codes of one word are 16 elements apart, so that neighbours are in the same bits of
 * neighbouring words, and a register of elements is a register of words shifted by one number:
 *
 *   4 bits    element   0 … 15 | 16 … 31 | … | 112 … 127 | 128 … 143 | …
 *             word      0 … 15 |  0 … 15 | … |   0 … 15  |  16 … 31  | …
 *             bits       0 … 3 |  4 … 7  | … |  28 … 31  |   0 … 3   | …
 */
import { TidemarkError } from "../base/errors.ts";
import { at as item } from "../base/invariant.ts";
import type { LowerContext, OpDef } from "../ir/op.ts";
import { elementsOf, type Shape, sameShape, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { isIndexType } from "../kernel/dtype.ts";
import { dynamicCode as codeExpr, dynamicNumber, dynamicValue as valueExpr } from "../kernel/dynamic-code.ts";
import { constant, type Expr, type Index } from "../kernel/expr.ts";
import { addIndex, divIndex, modIndex, offsetIndex, scaleIndex } from "../kernel/index-math.ts";
import { Position } from "../kernel/position.ts";
import { and, shl, shrU } from "../kernel/scalar-ops.ts";
import { requireOne } from "./checks.ts";
import { defineOp, elementwise, requireDomain } from "./define.ts";
import { guarded } from "./guard.ts";

/** Words that are filled side by side: no target has registers of more elements. */
const LANES = 16;
export const WORD_BITS = 32;

/** Bits of a code: those that a word is a multiple of. */
export const CODE_BITS: readonly number[] = [1, 2, 4, 8, 16];

/** Elements of one row of words. */
const rowElements = (bits: number): number => LANES * (WORD_BITS / bits);

/** The words of codes of so many elements. */
export const wordsType = (elements: number, bits: number): TensorType =>
  tensorType("i32", [Math.ceil(elements / rowElements(bits)), LANES]);

export function requireBits(name: string, bits: number): void {
  if (CODE_BITS.includes(bits)) return;
  throw new TidemarkError("InvalidArgument", `${name}: codes of ${bits} bits`, {
    help: `give one of ${CODE_BITS.join(", ")}`,
  });
}

/** Where the code of an element is: its word, and the lowest of its bits. */
function placeOf(e: number, bits: number): readonly [word: number, shift: number] {
  const row = Math.floor(e / rowElements(bits));
  return [row * LANES + (e % LANES), (Math.floor(e / LANES) % (WORD_BITS / bits)) * bits];
}

/** The number of an element, from the row, the lane and the place in the word. */
export const elementAt = (row: Index, lane: Index, slot: Index, bits: number): Index =>
  addIndex(scaleIndex(row, rowElements(bits)), scaleIndex(slot, LANES), lane);

/** Words that are read by their number. */
type Words = (index: Index) => Expr;

/** The code of an element in the highest bits of a word. */
export function highCodeAt(words: Words, element: Index, bits: number): Expr {
  const word = addIndex(scaleIndex(divIndex(element, rowElements(bits)), LANES), modIndex(element, LANES));
  const slot = modIndex(divIndex(element, LANES), WORD_BITS / bits);
  return shl(words(word), offsetIndex(scaleIndex(slot, -bits), WORD_BITS - bits));
}

/** The code of an element. */
export const codeAt = (words: Words, element: Index, bits: number): Expr =>
  shrU(highCodeAt(words, element, bits), WORD_BITS - bits);

/** The words that are a node's first operand. */
export const wordsIn =
  (c: Pick<LowerContext<unknown>, "inputs" | "inTypes">): Words =>
  (word) =>
    item(c.inputs, 0)(Position.linear(item(c.inTypes, 0).shape, word));

/** The code of an element, of words in doubles. */
export function codeOf(words: ArrayLike<number>, e: number, bits: number): number {
  const [word, shift] = placeOf(e, bits);
  return ((words[word] ?? 0) >>> shift) & (2 ** bits - 1);
}

/** Words of codes, which are given by the number of the element. */
export function wordsOf(elements: number, bits: number, code: (e: number) => number): Float64Array {
  const out = new Float64Array(elementsOf(wordsType(elements, bits).shape));
  for (let e = 0; e < elements; e++) {
    const [word, shift] = placeOf(e, bits);
    out[word] = item(out, word) | (code(e) << shift);
  }
  return out;
}

/** That a tensor holds the codes of one of another type. */
export function requireWords(name: string, x: TensorType, out: TensorType, bits: number): void {
  const expected = wordsType(elementsOf(out.shape), bits);
  if (isIndexType(x.dtype) && sameShape(x.shape, expected.shape)) return;
  const codes = `codes of ${bits} bit${bits === 1 ? "" : "s"}`;
  const summary = `${name}: ${typeText(x)} does not hold ${codes} of ${typeText(out)}`;
  throw new TidemarkError("ShapeMismatch", summary, { help: `they are ${typeText(expected)}` });
}

const SHAPES: readonly Shape[] = [[3, 5], [], [0, 4], [2, 300]];

export type PackCodesAttrs = { readonly bits: number };

/** i32[…] → i32[rows, 16]: the lowest bits of each element. Those beyond the last element are 0. */
export const packCodes: OpDef<PackCodesAttrs> = defineOp<PackCodesAttrs>({
  name: "pack_codes",
  infer(inputs, { bits }) {
    const x = requireOne("pack_codes", inputs);
    requireDomain("pack_codes", "integer", [x]);
    requireBits("pack_codes", bits);
    return [wordsType(elementsOf(x.shape), bits)];
  },
  derivative: { kind: "none" },
  cost: ([x]) => ({ flops: x ? 2 * elementsOf(x.shape) : 0 }),
  // Every code is added once, so the sum is the word.
  lower: {
    kind: "reduce",
    combine: "add",
    counters: (_, { bits }) => ({ extents: [WORD_BITS / bits], order: "sequential" }),
    body(c, at, r) {
      const { shape } = item(c.inTypes, 0);
      const { bits } = c.attrs;
      const slot = item(r, 0);
      const element = elementAt(item(at.idx, 0), item(at.idx, 1), slot, bits);
      const bounds = [{ index: element, lo: 0, hi: elementsOf(shape) }];
      const code = (): Expr => and(item(c.inputs, 0)(Position.linear(shape, element)), 2 ** bits - 1);
      return shl(guarded(bounds, code, constant("i32", 0)), scaleIndex(slot, bits));
    },
  },
  evaluate({ inputs, attrs: { bits } }) {
    const x = item(inputs, 0);
    return [wordsOf(x.length, bits, (e) => item(x, e) & (2 ** bits - 1))];
  },
  samples: () =>
    CODE_BITS.flatMap((bits) =>
      SHAPES.map((shape) => ({
        inputs: [tensorType("i32", shape)],
        attrs: { bits },
        range: [-3, 2 ** bits + 3] as const,
      })),
    ),
});

export type UnpackCodesAttrs = PackCodesAttrs & { readonly shape: Shape };

/** i32[rows, 16] → i32[shape]: the codes, from 0 up. */
export const unpackCodes: OpDef<UnpackCodesAttrs> = defineOp<UnpackCodesAttrs>({
  name: "unpack_codes",
  infer(inputs, { bits, shape }) {
    const x = requireOne("unpack_codes", inputs);
    requireBits("unpack_codes", bits);
    const out = tensorType("i32", shape);
    requireWords("unpack_codes", x, out, bits);
    return [out];
  },
  derivative: { kind: "none" },
  cost: (_, [out]) => ({ flops: out ? 2 * elementsOf(out.shape) : 0 }),
  lower: {
    kind: "map",
    fusion: "always",
    value: (c, at) => codeAt(wordsIn(c), at.linear, c.attrs.bits),
  },
  evaluate({ inputs, outTypes, attrs: { bits } }) {
    const words = item(inputs, 0);
    return [new Float64Array(elementsOf(item(outTypes, 0).shape)).map((_, e) => codeOf(words, e, bits))];
  },
  samples: () =>
    CODE_BITS.flatMap((bits) =>
      SHAPES.map((shape) => ({
        inputs: [wordsType(elementsOf(shape), bits)],
        attrs: { bits, shape },
        range: [-(2 ** 31), 2 ** 31] as const,
      })),
    ),
});

export type DynamicAttrs = { readonly signed: boolean };

const SIGNS: readonly DynamicAttrs[] = [{ signed: true }, { signed: false }];

function nearestCode(x: number, signed: boolean): number {
  let best = 0;
  for (let code = 1; code < 256; code++) {
    if (Math.abs(dynamicNumber(code, signed) - x) < Math.abs(dynamicNumber(best, signed) - x)) best = code;
  }
  return best;
}

/** The code of the nearest of 256 numbers in [-1, 1], or in [0, 1] (kernel/dynamic-code.ts). */
export const dynamicCode: OpDef<DynamicAttrs> = elementwise<DynamicAttrs>("dynamic_code", {
  inputs: 1,
  domain: "float",
  out: "i32",
  defaults: { signed: true },
  scalar: (x, { signed }) => codeExpr(item(x, 0), signed),
  reference: ([x = 0], { signed }) => nearestCode(x, signed),
  flops: 24,
  range: [-1.1, 1.1],
  attrSamples: SIGNS,
  shapes: [[3, 5], [], [0, 4], [67]],
});

/** The number of a code, in f32. */
export const dynamicValue: OpDef<DynamicAttrs> = elementwise<DynamicAttrs>("dynamic_value", {
  inputs: 1,
  domain: "index",
  out: "f32",
  defaults: { signed: true },
  scalar: (x, { signed }) => valueExpr(item(x, 0), signed),
  reference: ([code = 0], { signed }) => dynamicNumber(code, signed),
  flops: 24,
  range: [0, 256],
  attrSamples: SIGNS,
  shapes: [[3, 5], [], [0, 4], [300]],
});
