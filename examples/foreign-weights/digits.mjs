/**
 * @file A network that was trained in PyTorch (make-digits.py), read from its safetensors file: names and layout of its weights
 * become those of layers here, it recognises digits, its last layer goes on learning, and it is handed back under its own names.
 *
 *   file                     here
 *   0.weight [48, 784]       [0].w [784, 48]
 *   0.bias   [48]            [0].b [48]
 *   2.weight, 2.bias         [2].w, [2].b
 */
import { crossEntropy, load, save, valueAndGrad } from "tidemark";
import { linear, relu, sequential } from "tidemark/nn";
import { adam } from "tidemark/optim";

export const PIXELS = 28 * 28;
export const network = sequential(linear(PIXELS, 48), relu(), linear(48, 10));

/** Tensors by their names in the file, as parameters of the network. */
export function layersOf(theirs) {
  const layer = (n) => ({ w: theirs[`${n}.weight`].transpose(), b: theirs[`${n}.bias`] });
  return [layer(0), {}, layer(2)];
}

/** Parameters of the network from the bytes of a file; bf16 becomes f32. */
export const readWeights = (bytes) => layersOf(load(bytes));

/** The bytes of a file that PyTorch reads with `load_state_dict`. */
export function writeWeights(params) {
  const layer = (n) => ({ [`${n}.weight`]: params[n].w.transpose(), [`${n}.bias`]: params[n].b });
  return save({ ...layer(0), ...layer(2) }, { metadata: { format: "pt" } });
}

/** Scores of the digits, [images, 10]. */
export const scores = (params, images) => network.apply(params, images);

/** Goes on training the last layer; the others stay what they are, and take no gradients. */
export function fineTuning([first, between, last], { rate = 3e-3 } = {}) {
  const optimizer = adam({ lr: rate });
  return {
    init: () => optimizer.init(last),
    step(state, images, labels) {
      const loss = (own) => crossEntropy(scores([first, between, own], images), labels);
      const [value, grads] = valueAndGrad(loss)(state.params);
      return [optimizer.update(state, grads), value];
    },
    /** All parameters with what was learned. */
    merged: (state) => [first, between, state.params],
  };
}
