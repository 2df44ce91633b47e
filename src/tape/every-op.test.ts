/**
 * @file Every operation on a tape: results and gradients have the bits of the graph that is differentiated as a whole, whether operations
 * run one by one or together.
 */
import { describe, expect, test } from "vitest";
import { applyGraph, applyOp } from "../api/apply.ts";
import { vjp } from "../autodiff/vjp.ts";
import { threefry } from "../base/random.ts";
import { Build } from "../ir/build.ts";
import type { AnyOp, Sample } from "../ir/op.ts";
import { elementsOf, type TensorType } from "../ir/type.ts";
import { elementWriter, isFloat, newElements } from "../kernel/dtype.ts";
import { allOps } from "../ops/all.ts";
import { ArrayStorage } from "../trace/storage.ts";
import { Tensor } from "../trace/tensor.ts";
import { tape } from "./tape.ts";

function rangeOf(sample: Sample<unknown>, i: number): readonly [number, number] {
  const range = sample.range ?? [-2, 2];
  return (Array.isArray(range[0]) ? range[i] : range) as readonly [number, number];
}

function draw(type: TensorType, seed: number, [lo, hi]: readonly [number, number]): Tensor {
  const data = newElements(type.dtype, elementsOf(type.shape));
  const write = elementWriter(type.dtype);
  for (let i = 0; i < data.length; i++) {
    const number = lo + (hi - lo) * ((threefry([seed, 1], [i, 0])[0] >>> 0) / 2 ** 32);
    data[i] = write(isFloat(type.dtype) ? number : Math.floor(number));
  }
  return new Tensor(new ArrayStorage(type.dtype, type.shape, data));
}

const bits = (tensors: readonly Tensor[]): readonly number[][] =>
  tensors.map((tensor) => {
    const data = tensor.data();
    return [...new Uint8Array(data.buffer, data.byteOffset, data.byteLength)];
  });

/** The first smooth sample; regions alone have none. */
const sampleOf = (op: AnyOp): Sample<unknown> | undefined =>
  op.samples().find(({ smooth = true, inputs }) => smooth && inputs.length > 0);

/** Results ++ cotangents of float inputs, as one graph and on a tape. */
function both(op: AnyOp, sample: Sample<unknown>): void {
  const inputs = sample.inputs.map((type, i) => draw(type, i, rangeOf(sample, i)));
  const b = new Build(op.name);
  const outputs = b.callAll(
    op,
    sample.inputs.map((type) => b.param(type)),
    sample.attrs as never,
  );
  const active = sample.inputs.map(({ dtype }) => isFloat(dtype));
  const hasOne = outputs.length === 1 && isFloat(outputs[0]!.type.dtype) && active.includes(true);
  const graph = b.finish(outputs);
  const seeds = hasOne ? [draw(outputs[0]!.type, 99, [-1, 1])] : [];
  const whole = hasOne ? applyGraph(vjp(graph, active), [...inputs, ...seeds]) : applyGraph(graph, inputs).slice(0, 1);
  const taped = (compileRuns: boolean) =>
    tape(
      (t) => {
        const y = applyOp(op, inputs, sample.attrs as never);
        if (!hasOne) return [y];
        const sources = inputs.filter((_, i) => active[i]);
        return [y, ...t.gradient(y, sources, { cotangent: seeds[0]! })];
      },
      { compileRuns },
    );
  expect(bits(taped(false)), "one by one").toEqual(bits(whole));
  taped(true);
  expect(bits(taped(true)), "together").toEqual(bits(whole));
}

describe("on a tape", () => {
  const cases = allOps.flatMap((op) => {
    const sample = sampleOf(op);
    return sample ? [[op.name, op, sample] as const] : [];
  });
  test.each(cases)("%s has the bits of the whole graph", (_, op, sample) => both(op, sample));
});
