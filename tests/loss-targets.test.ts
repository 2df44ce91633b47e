/** @file Losses that are loops, linearCrossEntropy and ctc, with their gradients on every target: the same bits. */
import { describe, expect, test } from "vitest";
import * as tm from "../src/api/index.ts";
import { type Tensor, tensor } from "../src/api/index.ts";
import { nativeTarget } from "../src/node/native/target.ts";
import type { Target, TargetAnswer } from "../src/runtime/device.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";
import { LARGE_DEVICE } from "./support/blocks.ts";
import { blocksTarget } from "./support/blocks-target.ts";

function found(answer: TargetAnswer): Target {
  if (typeof answer === "string") throw new Error(answer);
  return answer;
}

const missing = typeof nativeTarget() === "string" && !process.env.CI;

const drawn = (shape: readonly number[], seed: number): Tensor => {
  const elements = shape.reduce((n, extent) => n * extent, 1);
  return tensor(
    Float32Array.from({ length: elements }, (_, i) => Math.sin(i * 12.9898 + seed)),
    { shape },
  );
};

/** Both losses and their gradients; strips of two whole runs and a shorter one. */
function losses(h: Tensor, w: Tensor, bias: Tensor, frames: Tensor): readonly Tensor[] {
  const count = h.shape[0] as number;
  const targets = tm.remainder(tm.arange(count), 9);
  const linear = (a: Tensor, b: Tensor, c: Tensor): Tensor =>
    tm.linearCrossEntropy(a, b, targets, {
      bias: c,
      transposed: true,
      strip: 1024,
      ignoreIndex: 3,
      labelSmoothing: 0.1,
      zLoss: 0.01,
    });
  const letters = tensor([1, 1, 2, 3], { shape: [2, 2], dtype: "i32" });
  const spelled = (x: Tensor): Tensor => tm.ctc(tm.logSoftmax(x), letters);
  const [loss, gradients] = tm.valueAndGrad(linear, { argnums: [0, 1, 2] })(h, w, bias);
  const [other, slope] = tm.valueAndGrad(spelled)(frames);
  return [loss, ...gradients, other, slope];
}

const args = [drawn([2100, 6], 1), drawn([9, 6], 2), drawn([9], 3), drawn([7, 2, 5], 4)] as const;

const bitsOn = (target: Target): readonly (readonly number[])[] =>
  tm
    .compile(losses, { target })(...args)
    .map((x) => [...new Uint32Array(Float32Array.from(x.data()).buffer)]);

describe.skipIf(missing)("losses that are loops", () => {
  test("have the bits of wasm on native without fused multiply-add", () => {
    expect(bitsOn(found(nativeTarget({ fma: false })))).toEqual(bitsOn(found(wasmTarget())));
  });

  test("have the bits of native as block programs", () => {
    const blocks = found(blocksTarget({ ...LARGE_DEVICE, fma: true }, { quick: true }));
    expect(bitsOn(blocks)).toEqual(bitsOn(found(nativeTarget({ fma: true }))));
  });
});
