/** @file A language model of the size of the command's `gpt`: 4 blocks of 128 with 4 heads, 128 positions, vocabulary 512, batch 8, AdamW. */
import { crossEntropy } from "tidemark";
import { embedding, initializers, layerNorm, linear, sequential, transformerBlock } from "tidemark/nn";
import { adamw } from "tidemark/optim";
import { classes, size, training, withoutState } from "./training.mjs";

const [BATCH, POSITIONS, WIDTH, DEPTH, HEADS, VOCABULARY] = [8, 128, 128, size(4, 1), 4, 512];
const small = initializers.normal(0.02);

/** A learned offset for every position. */
const positions = {
  init: (key) => ({ offset: small(key, [POSITIONS, WIDTH]) }),
  apply: ({ offset }, x) => x.add(offset),
};

const model = sequential(
  embedding(VOCABULARY, WIDTH, { table: small }),
  positions,
  ...Array.from({ length: DEPTH }, () => transformerBlock(WIDTH, { heads: HEADS, causal: true })),
  layerNorm(WIDTH),
  linear(WIDTH, VOCABULARY, { weight: small }),
);

export const shape = { batch: BATCH, positions: POSITIONS, vocabulary: VOCABULARY };

export const program = training("gpt", {
  model: withoutState(model),
  optimizer: adamw({ lr: 3e-4, weightDecay: 0.01 }),
  loss: (logits, y) => crossEntropy(logits.reshape([-1, VOCABULARY]), y.reshape([-1])),
  batch: () => [0, 1].map(() => classes(BATCH * POSITIONS, VOCABULARY).reshape([BATCH, POSITIONS])),
});
