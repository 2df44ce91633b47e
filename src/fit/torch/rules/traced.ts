/** @file Operations of graphs of this library, which say themselves what their derivatives keep (sources/graph.ts). */
import type { EagerTensor } from "../autograd.ts";
import type { Rule } from "../call.ts";
import { contiguousStrides, elementsOf, likeStrides } from "../layout.ts";

const operation: Rule = (call) => {
  const { g } = call;
  const inputs = call.list("inputs");
  const outputs = Array.from({ length: call.outputs }, (_, i) => call.out(i));
  const saved = call.ns("saved", []).map((i) => (i >= 0 ? inputs[i] : outputs[-1 - i]) ?? null);
  g.record({
    ...{ name: "operation", inputs, outputs, saved },
    backward: () =>
      inputs.map((x) => (g.needsGradient(x) ? g.fresh(x.shape, x, likeStrides(x.shape, x.strides)) : null)),
  });
  return outputs;
};

/** The same storage in another shape; the gradient is one too where both have all elements. */
const view: Rule = (call) => {
  const { g } = call;
  const [x, ...others] = call.list("inputs");
  if (!x || others.length > 0) return operation(call);
  const { shape } = call.type();
  const y = g.view(x, shape, contiguousStrides(shape));
  const isWhole = elementsOf(shape) === elementsOf(x.shape);
  const back = (dy: EagerTensor): EagerTensor =>
    isWhole ? g.view(dy, x.shape, contiguousStrides(x.shape)) : g.fresh(x.shape, x);
  g.record({ name: "view", inputs: [x], outputs: [y], backward: ([dy]) => [dy ? back(dy) : null] });
  return [y];
};

export const TRACED: Readonly<Record<string, Rule>> = { "tidemark.operation": operation, "tidemark.view": view };
