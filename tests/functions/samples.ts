/** @file Every function of the API that takes or makes tensors, with what to call it on; the generic tests run over this. */
import type { Family, Float, FunctionSample } from "./sample.ts";
import { activations } from "./samples/activations.ts";
import { arrange } from "./samples/arrange.ts";
import { elementwise } from "./samples/elementwise.ts";
import { fourier } from "./samples/fourier.ts";
import { indexing } from "./samples/indexing.ts";
import { losses } from "./samples/losses.ts";
import { networks } from "./samples/networks.ts";
import { order } from "./samples/order.ts";
import { products } from "./samples/products.ts";
import { reduce } from "./samples/reduce.ts";
import { scatters } from "./samples/scatters.ts";
import { shape } from "./samples/shape.ts";
import { special } from "./samples/special.ts";
import { windows } from "./samples/windows.ts";

const families: readonly Family[] = [
  elementwise,
  activations,
  reduce,
  shape,
  arrange,
  indexing,
  scatters,
  order,
  fourier,
  products,
  windows,
  networks,
  losses,
  special,
];

/** Samples of every function for one float type, under the function's name. */
export function samplesByName(t: Float): ReadonlyMap<string, readonly FunctionSample[]> {
  const groups = new Map<string, FunctionSample[]>();
  for (const sample of families.flatMap((family) => family(t))) {
    const group = groups.get(sample.name) ?? [];
    group.push(sample);
    groups.set(sample.name, group);
  }
  return groups;
}
