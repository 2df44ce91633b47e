/**
 * @file Samples of an operation in types that are computed in themselves. Types of which only the memory differs (bf16) have the
 * same derivatives and references; their kernels are compared in tests/kernels.test.ts.
 */
import type { AnyOp, Sample } from "../../src/ir/op.ts";
import { isComputed } from "../../src/kernel/dtype.ts";

export const ownSamples = (op: AnyOp): readonly Sample<unknown>[] =>
  (op.samples() as readonly Sample<unknown>[]).filter(
    ({ inputs, attrs }) =>
      inputs.every(({ dtype }) => isComputed(dtype)) &&
      op.infer(inputs, attrs, []).every(({ dtype }) => isComputed(dtype)),
  );
