/** @file MobileNetV2 (Sandler et al. 2018): 96 × 96, batch 8, SGD with momentum. */
import { lambda, linear, sequential } from "tidemark/nn";
import { sgd } from "tidemark/optim";
import { classes, convNorm, images, residual, size, training } from "./training.mjs";

const [BATCH, PIXELS, CLASSES] = [8, 96, 100];
/** Expansion, channels, blocks, stride of the first. */
const STAGES = [
  [1, 16, 1, 1],
  [6, 24, 2, 2],
  [6, 32, 3, 2],
  [6, 64, 4, 2],
  [6, 96, 3, 1],
  [6, 160, 3, 2],
  [6, 320, 1, 1],
].slice(0, size(7, 3));
const LAST = STAGES.at(-1)[1];

const relu6 = () => lambda((x) => x.relu().minimum(6));

function block(from, to, expansion, stride) {
  const inner = from * expansion;
  const widen = expansion === 1 ? [] : [convNorm(from, inner, 1), relu6()];
  const body = sequential(
    ...widen,
    convNorm(inner, inner, 3, { stride, groups: inner }),
    relu6(),
    convNorm(inner, to, 1),
  );
  return from === to && stride === 1 ? residual(body) : body;
}

function blocks() {
  let from = 32;
  return STAGES.flatMap(([expansion, to, count, stride]) =>
    Array.from({ length: count }, (_, i) => {
      const made = block(from, to, expansion, i === 0 ? stride : 1);
      from = to;
      return made;
    }),
  );
}

const model = sequential(
  convNorm(3, 32, 3, { stride: 2 }),
  relu6(),
  ...blocks(),
  convNorm(LAST, 1280, 1),
  relu6(),
  lambda((x) => x.mean([2, 3])),
  linear(1280, CLASSES),
);

export const program = training("mobilenet", {
  model,
  optimizer: sgd({ lr: 0.01, momentum: 0.9 }),
  batch: () => [images([BATCH, 3, PIXELS, PIXELS]), classes(BATCH, CLASSES)],
});
