/** @file ResNet-18 (He et al. 2015) as it is written for small images: 64 × 64, batch 8, SGD with momentum. */
import { lambda, linear, relu, sequential } from "tidemark/nn";
import { sgd } from "tidemark/optim";
import { classes, convNorm, images, residual, size, training } from "./training.mjs";

const [BATCH, PIXELS, CLASSES] = [8, 64, 100];

const block = (from, to, stride) =>
  residual(
    sequential(convNorm(from, to, 3, { stride }), relu(), convNorm(to, to, 3)),
    from === to && stride === 1 ? null : convNorm(from, to, 1, { stride }),
    (x) => x.relu(),
  );

const stage = (from, to, stride) => sequential(block(from, to, stride), block(to, to, 1));

const WIDTHS = size([64, 128, 256, 512], [64, 256]);

const model = sequential(
  convNorm(3, 64, 3, { stride: 2 }),
  relu(),
  ...WIDTHS.map((width, i) => stage(WIDTHS[i - 1] ?? 64, width, i === 0 ? 1 : 2)),
  lambda((x) => x.mean([2, 3])),
  linear(WIDTHS.at(-1), CLASSES),
);

export const program = training("resnet18", {
  model,
  optimizer: sgd({ lr: 0.01, momentum: 0.9 }),
  batch: () => [images([BATCH, 3, PIXELS, PIXELS]), classes(BATCH, CLASSES)],
});
