/** @file Elements for the samples of operations, in doubles that f32 holds exactly. */
import { hostRandom } from "../../src/base/random.ts";
import type { Reference, Sample } from "../../src/ir/op.ts";
import { elementsOf } from "../../src/ir/type.ts";
import { isFloat, typeOf } from "../../src/kernel/dtype.ts";

const rangeOf = ({ range = [-2, 2] }: Sample<unknown>, i: number): readonly [number, number] =>
  (Array.isArray(range[0]) ? range[i] : range) as readonly [number, number];

/** One array for each input, drawn from where the sample says. */
export function elementsFor(sample: Sample<unknown>): readonly Reference[] {
  const source = hostRandom(7);
  return sample.inputs.map(({ dtype, shape }, i) => {
    const axis = (sample.attrs as { readonly axis?: number }).axis;
    const isIndex = i === 1 && dtype === "i32" && axis !== undefined;
    // an index out of range is NaN here, and not defined there
    const whole = isIndex ? [0, sample.inputs[0]?.shape[axis] ?? 1] : rangeOf(sample, i);
    const [from, to] = (dtype === "bool" ? [0, 2] : whole) as readonly [number, number];
    return Float64Array.from({ length: elementsOf(shape) }, () => {
      const x = from + (to - from) * source.next();
      return isFloat(dtype) ? Math.fround(x) : typeOf(dtype).round(Math.floor(x));
    });
  });
}
