/**
 * @file Truth values kept as bits, 32 to a word: an eighth of the bytes of `bool`, a thirty-second of those of f32. The
 * pass `smaller-residuals` uses them for values that the backward pass only compares. The words are [rows, 16]; kernel/bits.ts
 * maps elements to bits.
 */

import { TidemarkError } from "../base/errors.ts";
import { at as item } from "../base/invariant.ts";
import type { NoAttrs, OpDef } from "../ir/op.ts";
import { elementsOf, type Shape, sameShape, tensorType, typeText } from "../ir/type.ts";
import { BLOCK, blocksFor, LANES, testBit, WORD_BITS } from "../kernel/bits.ts";
import { isIndexType } from "../kernel/dtype.ts";
import { constant, type Expr } from "../kernel/expr.ts";
import { addIndex, offsetIndex, scaleIndex } from "../kernel/index-math.ts";
import { Position } from "../kernel/position.ts";
import { or, pick, shl } from "../kernel/scalar-ops.ts";
import { requireOne } from "./checks.ts";
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
    return [tensorType("i32", [blocksFor(elementsOf(x.shape)), LANES])];
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
        const element = addIndex(scaleIndex(row, BLOCK), scaleIndex(offsetIndex(first, k), LANES), lane);
        const bounds = [{ index: element, lo: 0, hi: elementsOf(shape) }];
        const zero = constant("i32", 0);
        const holds = item(c.inputs, 0)(Position.linear(shape, element));
        return guarded(bounds, () => pick(holds, constant("i32", 1 << k), zero), zero);
      });
      return shl(bits.reduce(or), first);
    },
  },
  evaluate({ inputs: [x], outTypes }) {
    const out = new Float64Array(elementsOf(item(outTypes, 0).shape));
    x?.forEach((value, e) => {
      const word = Math.floor(e / BLOCK) * LANES + (e % LANES);
      if (value !== 0) out[word] = item(out, word) | (1 << (Math.floor(e / LANES) % WORD_BITS));
    });
    return [out];
  },
  samples: () => SHAPES.map((shape) => ({ inputs: [tensorType("bool", shape)], attrs: {}, range: [0, 2] })),
});

export type UnpackBitsAttrs = { readonly shape: Shape };

/** i32[rows, 16] → bool[shape]: the inverse of `pack_bits`. */
export const unpackBits: OpDef<UnpackBitsAttrs> = defineOp<UnpackBitsAttrs>({
  name: "unpack_bits",
  infer(inputs, { shape }) {
    const x = requireOne("unpack_bits", inputs);
    const expected = tensorType("i32", [blocksFor(elementsOf(shape)), LANES]);
    if (!isIndexType(x.dtype) || !sameShape(x.shape, expected.shape)) {
      const summary = `unpack_bits: ${typeText(x)} does not hold the bits of ${typeText(tensorType("bool", shape))}`;
      throw new TidemarkError("ShapeMismatch", summary, { help: `they are ${typeText(expected)}` });
    }
    return [tensorType("bool", shape)];
  },
  derivative: { kind: "none" },
  cost: (_, [out]) => ({ flops: out ? 2 * elementsOf(out.shape) : 0 }),
  lower: {
    kind: "map",
    fusion: "always",
    value(c, at) {
      const words = item(c.inputs, 0);
      const { shape } = item(c.inTypes, 0);
      return testBit((word) => words(Position.linear(shape, word)), at.linear);
    },
  },
  evaluate({ inputs: [x], outTypes }) {
    const out = new Float64Array(elementsOf(item(outTypes, 0).shape));
    return [
      out.map((_, e) => {
        const word = item(x ?? [], Math.floor(e / BLOCK) * LANES + (e % LANES));
        return (word >>> (Math.floor(e / LANES) % WORD_BITS)) & 1;
      }),
    ];
  },
  samples: () =>
    SHAPES.map((shape) => ({
      inputs: [tensorType("i32", [blocksFor(elementsOf(shape)), LANES])],
      attrs: { shape },
      range: [-(2 ** 31), 2 ** 31],
    })),
});
