/** @file A value as the backward pass keeps it in fewer bits (passes/residual-forms.ts). */
import type { OpDef } from "../ir/op.ts";
import { byteLength, elementsOf, tensorType } from "../ir/type.ts";
import { FLOAT_TYPES, storedNumber } from "../kernel/dtype.ts";
import type { Expr } from "../kernel/expr.ts";
import { inType } from "../kernel/scalar-ops.ts";
import { requireOne } from "./checks.ts";
import { defineOp, requireDomain } from "./define.ts";

/** `value`: the residual's name, for reports; `linear`: whether gradients are linear in it; `key`: another for every value. */
export type KeepAttrs = { readonly value: string; readonly linear: boolean; readonly key: number };

/**
 * Root mean square of the error over that of the values where bf16 is the nearest: half a unit in the last of eight places, evenly
 * distributed, of numbers whose logarithms are.
 */
const SHORT_ERROR = 2 ** -7 / Math.sqrt(12 * (1.5 / Math.LN2));

/** The nearest bf16. */
export const keepShort: OpDef<KeepAttrs> = defineOp<KeepAttrs>({
  name: "keep_short",
  defaults: { value: "", linear: false, key: 0 },
  facts: {
    rounds: ({ value, linear, key }, [x], [kept]) => ({
      ...{ form: "bf16", value, linear, key, error: SHORT_ERROR },
      bytes: kept ? byteLength(kept) : 0,
      wholeBytes: x ? byteLength(x) : 0,
    }),
  },
  infer(inputs) {
    const x = requireOne("keep_short", inputs);
    requireDomain("keep_short", "float", [x]);
    return [tensorType("bf16", x.shape)];
  },
  derivative: { kind: "none" },
  cost: ([x]) => ({ flops: x ? elementsOf(x.shape) : 0 }),
  lower: { kind: "map", fusion: "once", pointwise: true, value: (c, at) => inType(c.inputs[0]?.(at) as Expr, "f32") },
  evaluate: ({ inputs: [x] }) => [Float64Array.from(x ?? [], (value) => storedNumber("bf16", value))],
  samples: () =>
    FLOAT_TYPES.map((dtype) => ({
      inputs: [tensorType(dtype, [3, 5])],
      attrs: { value: "", linear: false, key: 0 },
    })),
});

export type KeptAttrs = KeepAttrs & { readonly form: string; readonly bytes: number; readonly error: number };

/** The value itself, as it was computed from what was kept of it: it says so to reports. */
export const keptIn: OpDef<KeptAttrs> = defineOp<KeptAttrs>({
  name: "kept_in",
  facts: {
    rounds: ({ value, linear, key, form, bytes, error }, [x]) => ({
      ...{ form, value, linear, key, error, bytes },
      wholeBytes: x ? byteLength(x) : 0,
    }),
  },
  infer: (inputs) => [requireOne("kept_in", inputs)],
  derivative: { kind: "none" },
  cost: () => ({ flops: 0 }),
  lower: { kind: "map", fusion: "always", pointwise: true, value: (c, at) => c.inputs[0]?.(at) as Expr },
  evaluate: ({ inputs: [x] }) => [Float64Array.from(x ?? [])],
  samples: () => [
    {
      inputs: [tensorType("f32", [3, 5])],
      attrs: { value: "", linear: true, key: 0, form: "rank 2", bytes: 64, error: 0.5 },
    },
  ],
});
