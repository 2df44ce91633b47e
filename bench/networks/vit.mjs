/** @file A vision transformer (Dosovitskiy et al. 2021), its smallest size: 96 × 96 in patches of 16, batch 8, AdamW. */
import { conv2d, initializers, lambda, layerNorm, linear, sequential, transformerBlock } from "tidemark/nn";
import { adamw } from "tidemark/optim";
import { classes, images, size, training, withoutState } from "./training.mjs";

const [BATCH, PIXELS, PATCH, WIDTH, DEPTH, HEADS, CLASSES] = [8, 96, 16, 192, size(12, 3), 3, 100];
const POSITIONS = (PIXELS / PATCH) ** 2;

/** A learned offset for every position. */
const positions = {
  init: (key) => ({ offset: initializers.normal(0.02)(key, [POSITIONS, WIDTH]) }),
  apply: ({ offset }, x) => x.add(offset),
};

const model = sequential(
  conv2d(3, WIDTH, PATCH, { stride: PATCH }),
  lambda((x) => x.reshape([-1, WIDTH, POSITIONS]).swapAxes(1, 2)),
  positions,
  ...Array.from({ length: DEPTH }, () => transformerBlock(WIDTH, { heads: HEADS })),
  layerNorm(WIDTH),
  lambda((x) => x.mean(1)),
  linear(WIDTH, CLASSES),
);

export const program = training("vit", {
  model: withoutState(model),
  optimizer: adamw({ lr: 3e-4, weightDecay: 0.05 }),
  batch: () => [images([BATCH, 3, PIXELS, PIXELS]), classes(BATCH, CLASSES)],
});
