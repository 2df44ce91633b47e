/**
 * @file Truth values kept as bits, 32 to a word: an eighth of the bytes of `bool`, a thirty-second of those of f32. The
 * pass `smaller-residuals` uses them for values that the backward pass only compares. They are codes of one bit (codes.ts), which are
 * packed eight at a time and tested where they are read.
 */

import { at as item } from "../base/invariant.ts";
import type { NoAttrs, OpDef } from "../ir/op.ts";
import { elementsOf, type Shape, tensorType } from "../ir/type.ts";
import { constant, type Expr } from "../kernel/expr.ts";
import { offsetIndex, scaleIndex } from "../kernel/index-math.ts";
import { Position } from "../kernel/position.ts";
import { lt, or, pick, shl } from "../kernel/scalar-ops.ts";
import { requireOne } from "./checks.ts";
import { codeOf, elementAt, highCodeAt, requireWords, WORD_BITS, wordsIn, wordsOf, wordsType } from "./codes.ts";
import { defineOp, requireDomain } from "./define.ts";
import { guarded } from "./guard.ts";

/** Neighbouring bits of a word that one iteration fills, to be shifted together. */
const BITS_PER_ITERATION = 8;

const SHAPES: readonly Shape[] = [[3, 5], [], [0, 4], [512], [2, 700], [33, 40]];

/** bool[…] → i32[rows, 16]. Bits beyond the last element are 0. */
export const packBits: OpDef<NoAttrs> = defineOp<NoAttrs>({
  name: "pack_bits",
  infer(inputs) {
    const x = requireOne("pack_bits", inputs);
    requireDomain("pack_bits", "bool", [x]);
    return [wordsType(elementsOf(x.shape), 1)];
  },
  derivative: { kind: "none" },
  cost: ([x]) => ({ flops: x ? elementsOf(x.shape) : 0 }),
  // Every bit is added once, so the sum is the word.
  lower: {
    kind: "reduce",
    combine: "add",
    counters: () => ({ extents: [WORD_BITS / BITS_PER_ITERATION], order: "sequential" }),
    body(c, at, r) {
      const { shape } = item(c.inTypes, 0);
      const [row, lane, iteration] = [item(at.idx, 0), item(at.idx, 1), item(r, 0)];
      const first = scaleIndex(iteration, BITS_PER_ITERATION);
      const bits = Array.from({ length: BITS_PER_ITERATION }, (_, k): Expr => {
        const element = elementAt(row, lane, offsetIndex(first, k), 1);
        const bounds = [{ index: element, lo: 0, hi: elementsOf(shape) }];
        const zero = constant("i32", 0);
        const holds = item(c.inputs, 0)(Position.linear(shape, element));
        return guarded(bounds, () => pick(holds, constant("i32", 1 << k), zero), zero);
      });
      return shl(bits.reduce(or), first);
    },
  },
  evaluate({ inputs }) {
    const x = item(inputs, 0);
    return [wordsOf(x.length, 1, (e) => (x[e] === 0 ? 0 : 1))];
  },
  samples: () => SHAPES.map((shape) => ({ inputs: [tensorType("bool", shape)], attrs: {}, range: [0, 2] })),
});

export type UnpackBitsAttrs = { readonly shape: Shape };

/** i32[rows, 16] → bool[shape]: the inverse of `pack_bits`. */
export const unpackBits: OpDef<UnpackBitsAttrs> = defineOp<UnpackBitsAttrs>({
  name: "unpack_bits",
  infer(inputs, { shape }) {
    const x = requireOne("unpack_bits", inputs);
    const out = tensorType("bool", shape);
    requireWords("unpack_bits", x, out, 1);
    return [out];
  },
  derivative: { kind: "none" },
  cost: (_, [out]) => ({ flops: out ? 2 * elementsOf(out.shape) : 0 }),
  lower: {
    kind: "map",
    fusion: "always",
    value: (c, at) => lt(highCodeAt(wordsIn(c), at.linear, 1), 0),
  },
  evaluate({ inputs, outTypes }) {
    const words = item(inputs, 0);
    return [new Float64Array(elementsOf(item(outTypes, 0).shape)).map((_, e) => codeOf(words, e, 1))];
  },
  samples: () =>
    SHAPES.map((shape) => ({
      inputs: [wordsType(elementsOf(shape), 1)],
      attrs: { shape },
      range: [-(2 ** 31), 2 ** 31],
    })),
});
