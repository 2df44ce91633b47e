/** @file Samples as graphs, and as scalar functions to differentiate. */
import type { Tensor } from "../../src/api/index.ts";
import type { Graph } from "../../src/ir/graph.ts";
import { type TensorType, tensorType } from "../../src/ir/type.ts";
import { isFloat } from "../../src/kernel/dtype.ts";
import { traceFunction } from "../../src/trace/function.ts";
import { storageOf } from "../../src/trace/tensor.ts";
import { dataFor, draw, type Float, type FunctionSample, listOf, tensorOf, tensorsFor } from "./sample.ts";
import { samplesByName } from "./samples.ts";

export type Data = readonly Float64Array[];

export const floatType = (type: TensorType): boolean => isFloat(type.dtype);

export interface TracedSample {
  readonly graph: Graph;
  /** One for each parameter: the sample's inputs, then what it captured. */
  readonly inputs: Data;
}

export function traceSample(sample: FunctionSample, seed = 5): TracedSample {
  const data = dataFor(sample, seed);
  const call = (...inputs: Tensor[]): readonly Tensor[] => listOf(sample.call(...inputs));
  const { graph, captures } = traceFunction(call, [...tensorsFor(sample, data)]);
  return { graph, inputs: [...data, ...captures.map(({ tensor }) => Float64Array.from(storageOf(tensor).read()))] };
}

/** Names of functions, with their smooth samples that have floats on both ends. */
export function differentiable(t: Float): readonly (readonly [string, readonly FunctionSample[]])[] {
  return [...samplesByName(t)].flatMap(([name, all]) => {
    const samples = all.filter((sample) => {
      if (sample.smooth === false || sample.valuesOnly || !sample.inputs.some(floatType)) return false;
      return traceSample(sample).graph.results.some(({ type }) => floatType(type));
    });
    return samples.length > 0 ? [[name, samples] as const] : [];
  });
}

/** At most so many of a list, evenly spread. */
export function some<T>(list: readonly T[], most: number): readonly T[] {
  const step = Math.max(1, list.length / most);
  return list.filter((_, i) => Math.floor(i / step) !== Math.floor((i - 1) / step));
}

/** Σ weights · (y²/2 + y) over all float results y, as a function of the float inputs: curved even where y is linear. */
export function scalarOf(
  sample: FunctionSample,
  fixed: readonly Tensor[],
  call: (...inputs: Tensor[]) => readonly Tensor[] = (...inputs) => listOf(sample.call(...inputs)),
): (floats: readonly Tensor[]) => Tensor {
  return (floats) => {
    let next = 0;
    const inputs = sample.inputs.map((type, i) => (floatType(type) ? floats[next++]! : fixed[i]!));
    const results = call(...inputs).filter((result) => isFloat(result.dtype));
    const parts = results.map((y, i) => {
      const type = tensorType(y.dtype, y.shape);
      return y
        .square()
        .mul(0.5)
        .add(y)
        .mul(tensorOf(type, draw(type, 50 + i, [-1, 1])))
        .sum();
    });
    return parts.reduce((a, b) => a.add(b));
  };
}
