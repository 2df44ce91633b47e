/**
 * @file checkpoint changes no bit of a gradient: what is computed again in the backward pass, and whatever is fused or
 * planned differently around it, has the bits that it had the first time.
 */
import { describe, expect, test } from "vitest";
import { checkpoint, compile, type Tensor, valueAndGrad } from "../../src/api/index.ts";
import { allNodes } from "../../src/ir/walk.ts";
import { expectSameBits } from "./compare.ts";
import { differentiable, floatType, scalarOf, some } from "./differentiable.ts";
import { dataFor, type FunctionSample, labelOf, listOf, tensorsFor } from "./sample.ts";

/** Recomputation does not depend on geometry: a few samples of each function will do. */
const SAMPLES = 6;

function check(sample: FunctionSample, label: string): number {
  const tensors = tensorsFor(sample, dataFor(sample, 5));
  const floats = tensors.filter((_, i) => floatType(sample.inputs[i]!));
  const again = checkpoint((...inputs: Tensor[]) => listOf<Tensor>(sample.call(...inputs)));
  const kept = compile(valueAndGrad(scalarOf(sample, tensors)));
  const replayed = compile(valueAndGrad(scalarOf(sample, tensors, again)));
  const [[loss, gradients], [loss2, gradients2]] = [kept(floats), replayed(floats)];
  expectSameBits(loss2, loss, `${label}, value`);
  gradients.forEach((gradient, i) => {
    expectSameBits(gradients2[i]!, gradient, `${label}, gradient ${i}`);
  });
  const { graph } = replayed.program(floats);
  return [...allNodes(graph)].filter((node) => node.replay > 0).length;
}

describe("checkpointed gradients have the same bits", () => {
  let replays = 0;
  for (const [name, samples] of differentiable("f32")) {
    test(`through ${name}`, () => {
      some(samples, SAMPLES).forEach((sample, i) => {
        replays += check(sample, labelOf(sample, i));
      });
    });
  }

  test("and something was computed again", () => {
    expect(replays).toBeGreaterThan(100);
  });
});
