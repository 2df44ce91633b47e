/** @file Convolutions by cuDNN, and pooling. */
import type { EagerTensor } from "../autograd.ts";
import type { Call, Rule } from "../call.ts";
import { elementsOf, likeStrides } from "../layout.ts";
import { type Convolution, convolutionWorkspace } from "../workspaces.ts";
import { copied } from "./views.ts";

const bytesOf = (x: EagerTensor): number => elementsOf(x.shape) * x.item;

/** What its workspaces depend on. */
function formOf(call: Call, x: EagerTensor, w: EagerTensor, y: EagerTensor): Convolution {
  const groups = call.n("groups", 1);
  const isTransposed = call.node.target.includes("transpose") || call.flag("transposed");
  const kernel = w.shape.slice(2);
  return {
    ...{ input: bytesOf(x), weight: bytesOf(w), output: bytesOf(y) },
    isDepthwise: groups > 1 && groups === x.shape[1],
    isProduct:
      !isTransposed && groups === 1 && elementsOf(kernel) === 1 && call.ns("stride", [1]).every((step) => step === 1),
    pixels: elementsOf(x.shape.slice(2)),
  };
}

const convolution: Rule = (call) => {
  const { g } = call;
  const [x, w, bias] = [call.t("input"), call.t("weight"), call.maybe("bias")];
  const y = call.out();
  const form = formOf(call, x, w, y);
  g.memory.workspace(convolutionWorkspace(form, "result"));
  g.record({
    ...{ name: call.node.target, inputs: [x, w, bias], outputs: [y], saved: [x, w] },
    backward: ([dy]) => {
      if (!dy) return [];
      const gradient = (operand: EagerTensor, what: "input" | "weight"): EagerTensor | null => {
        if (!g.needsGradient(operand)) return null;
        const made = g.fresh(operand.shape, operand, likeStrides(operand.shape, operand.strides));
        g.memory.workspace(convolutionWorkspace(form, what));
        return made;
      };
      const [dx, dw] = [gradient(x, "input"), gradient(w, "weight")];
      return [dx, dw, bias && g.needsGradient(bias) ? g.fresh(bias.shape, bias) : null];
    },
  });
  return [y];
};

/** Keeps its input, and the positions of the largest as 64-bit numbers. */
const maxPool: Rule = (call) => {
  const { g } = call;
  const x = call.maybe("self") ?? call.t("input");
  const y = call.out();
  const positions = g.fresh(y.shape, { item: 8, isFloat: false });
  g.record({
    ...{ name: call.node.target, inputs: [x], outputs: [y], saved: [x, positions] },
    backward: ([dy]) => [dy ? g.fresh(x.shape, x) : null],
  });
  if (call.outputs > 1) return [y, positions];
  g.release(positions);
  return [y];
};

const averagePool: Rule = (call) => {
  const { g } = call;
  const x = call.maybe("self") ?? call.t("input");
  const y = call.out();
  const isMean = call.node.target.includes("adaptive") && y.shape.slice(2).every((extent) => extent === 1);
  g.record({
    ...{ name: call.node.target, inputs: [x], outputs: [y], saved: isMean ? [] : [x] },
    backward: ([dy]) => [dy ? g.fresh(x.shape, x) : null],
  });
  return [y];
};

const each = (text: string, rule: Rule): readonly (readonly [string, Rule])[] =>
  text.split(" ").map((name) => [name, rule] as const);

export const CONVOLUTIONS: Readonly<Record<string, Rule>> = Object.fromEntries([
  ...each("conv1d conv2d conv3d convolution conv_transpose1d conv_transpose2d conv_transpose3d", convolution),
  ...each(
    "max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d",
    maxPool,
  ),
  ...each("adaptive_max_pool1d adaptive_max_pool3d", maxPool),
  ...each("avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d _adaptive_avg_pool2d", averagePool),
  ...each("adaptive_avg_pool3d _adaptive_avg_pool3d", averagePool),
  ...each("grid_sampler grid_sampler_2d", copied),
]);
