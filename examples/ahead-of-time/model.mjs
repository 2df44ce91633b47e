/**
 * @file A network that a page trains without the compiler:
 *
 *   tidemark build examples/ahead-of-time/model.mjs --out examples/ahead-of-time/built
 *
 * Then serve the folder and open page.html. `program` is the training step; `--name classify` builds the network alone.
 */
import { crossEntropy, spec, valueAndGrad } from "tidemark";
import { linear, sequential, tanh } from "tidemark/nn";
import { adam } from "tidemark/optim";

/** Points of a batch. */
const POINTS = 128;
/** Arms of the spiral, which are the classes. */
const ARMS = 3;

const network = sequential(linear(2, 32), tanh(), linear(32, 32), tanh(), linear(32, ARMS));
const optimizer = adam({ lr: 0.01 });

function lossOf(params, points, arms) {
  return crossEntropy(network.apply(params, points), arms);
}

export const program = {
  name: "spiral",
  init: () => optimizer.init(network.init(1)),
  batch: () => [spec([POINTS, 2]), spec([POINTS], "i32")],
  step(state, points, arms) {
    const [loss, gradients] = valueAndGrad(lossOf)(state.params, points, arms);
    return [optimizer.update(state, gradients), loss];
  },
};

export const classify = {
  name: "classify",
  params: () => network.init(1),
  batch: () => [spec([POINTS, 2])],
  run: (params, points) => network.apply(params, points).softmax(1),
};
