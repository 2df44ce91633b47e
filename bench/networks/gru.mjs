/** @file A gated recurrent unit that reads 64 frames and names their class: 256 wide, batch 32, Adam. */
import { crossEntropy, random, valueAndGrad } from "tidemark";
import { gruCell, linear, scanCell } from "tidemark/nn";
import { adam } from "tidemark/optim";
import { classes, size } from "./training.mjs";

const [BATCH, FRAMES, FEATURES, HIDDEN, CLASSES] = [32, size(64, 8), 64, 256, 10];
const cell = gruCell(FEATURES, HIDDEN);
const head = linear(HIDDEN, CLASSES);
const optimizer = adam({ lr: 1e-3 });

const gradients = valueAndGrad((params, x, y) => {
  const { state } = scanCell(cell, params.cell, x);
  return crossEntropy(head.apply(params.head, state.h), y);
});

export const program = {
  name: "gru",
  init: () => optimizer.init({ cell: cell.init(0), head: head.init(1) }),
  batch: () => [random.normal(random.key(1), [BATCH, FRAMES, FEATURES]), classes(BATCH, CLASSES)],
  step(state, x, y) {
    const [loss, grads] = gradients(state.params, x, y);
    return [optimizer.update(state, grads), loss];
  },
};
