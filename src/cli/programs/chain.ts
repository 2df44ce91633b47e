/**
 * @file `chain64`, `chain256`: x ← x + relu(x w1) w2, 64 or 256 times, width 256, batch 256, mean squared error, SGD.
 * All blocks are equal, so it is easy to see what a plan keeps of them.
 */
import { add } from "../../api/elementwise.ts";
import { matmul } from "../../api/linear.ts";
import { mse } from "../../api/loss.ts";
import { relu } from "../../api/math.ts";
import { scope } from "../../api/scope.ts";
import type { OptimizerState } from "../../optim/optimizer.ts";
import { sgd } from "../../optim/sgd.ts";
import { parallelMlp } from "../../parallel/tensor.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { he, INPUT_STREAM, TARGET_STREAM } from "./data.ts";
import type { TensorAxis, TrainingProgram } from "./program.ts";
import { training } from "./training.ts";

/** Width and rows of the batch. */
const SIZE = 256;

interface Block {
  readonly w1: Tensor;
  readonly w2: Tensor;
}

interface ChainParams {
  readonly blocks: readonly Block[];
}

/** A block whole, or with the columns of w1 and the rows of w2 that a device has. */
function blockOf(axis: TensorAxis | null): (x: Tensor, own: Block) => Tensor {
  const products = ({ w1, w2 }: Block, x: Tensor): Tensor => {
    if (!axis) return matmul(relu(matmul(x, w1)), w2);
    return parallelMlp(x, { up: { w: w1 }, down: { w: w2 } }, { over: axis.over }, relu);
  };
  return (x, own) => scope("block", () => add(x, products(own, x)));
}

export function chain(depth: number, size: number = SIZE): TrainingProgram<OptimizerState<ChainParams>> {
  return training<ChainParams>({
    name: `chain${depth}`,
    title: `residual MLP, ${depth} blocks of ${size}, batch ${size}, SGD`,
    optimizer: sgd({ lr: 1e-3 }),
    params(p) {
      const shape = [size, size];
      // variance 1 / (width · depth) into the sum, so that its variance stays of the order of the input's
      const small = Math.sqrt(3 / size) / Math.sqrt(depth);
      return {
        blocks: Array.from({ length: depth }, () => ({ w1: p.draw(shape, he(size)), w2: p.draw(shape, small) })),
      };
    },
    batch: (n) => [n.data([size, size], INPUT_STREAM), n.data([size, size], TARGET_STREAM)],
    loss: ({ blocks }, x, y) => mse(blocks.reduce(blockOf(null), x), y),
    tensor: {
      cuts: { w1: { axis: 1 }, w2: { axis: 0 } },
      most: size,
      loss:
        (axis) =>
        ({ blocks }, x, y) =>
          mse(blocks.reduce(blockOf(axis), x), y),
    },
    blocks: {
      count: depth,
      split: ({ blocks }) => ({ shared: {}, blocks }),
      join: (_, blocks) => ({ blocks: blocks as ChainParams["blocks"] }),
      functions: (axis) => ({
        first: (_, ...[x]) => x as Tensor,
        block: (own, x) => blockOf(axis)(x, own as Block),
        last: (_, y, ...[, target]) => mse(y, target as Tensor),
      }),
    },
  });
}
