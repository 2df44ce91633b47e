/** @file U-Net (Ronneberger et al. 2015) with normalisation, a quarter as wide: 128 × 128, batch 2, two classes a pixel, Adam. */
import { concat, crossEntropy } from "tidemark";
import { conv2d, convTranspose2d, maxPool2d, relu, sequential } from "tidemark/nn";
import { adam } from "tidemark/optim";
import { classes, convNorm, images, size, training } from "./training.mjs";

const [BATCH, PIXELS, CLASSES] = [2, 128, 2];
const WIDTHS = size([16, 32, 64, 128, 256], [16, 32]);

const pair = (from, to) => sequential(convNorm(from, to, 3), relu(), convNorm(to, to, 3), relu());

/** A level and those below it: its own layers, the lower levels, and the way back up. */
function level(from, [width, ...deeper]) {
  const first = pair(from, width);
  if (deeper.length === 0) return first;
  const below = sequential(maxPool2d(2), level(width, deeper), convTranspose2d(deeper[0], width, 2, { stride: 2 }));
  const second = pair(2 * width, width);
  const parts = { first, below, second };
  const each = (make) => Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, make(part)]));
  return {
    init: (key) => each((part) => part.init(key)),
    initState: () => each((part) => part.initState()),
    apply(params, state, x, options) {
      const [down, a] = first.apply(params.first, state.first, x, options);
      const [up, b] = below.apply(params.below, state.below, down, options);
      const [y, c] = second.apply(params.second, state.second, concat([down, up], 1), options);
      return [y, { first: a, below: b, second: c }];
    },
  };
}

export const program = training("unet-small", {
  model: sequential(level(3, WIDTHS), conv2d(WIDTHS[0], CLASSES, 1)),
  optimizer: adam({ lr: 1e-3 }),
  batch: () => [images([BATCH, 3, PIXELS, PIXELS]), classes(BATCH * PIXELS ** 2, CLASSES)],
  loss: (logits, y) => crossEntropy(logits.transpose([0, 2, 3, 1]).reshape([-1, CLASSES]), y),
});
