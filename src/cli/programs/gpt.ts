/**
 * @file `gpt`: a small language model, 4 blocks of width 128 with 4 heads, 128 positions, vocabulary 512, normalisation
 * before each half of a block, tanh GELU, on a batch of 8, cross entropy of every next token, AdamW.
 */
import { attention } from "../../api/attention.ts";
import { add, gelu } from "../../api/elementwise.ts";
import { take } from "../../api/indexing.ts";
import { split } from "../../api/join.ts";
import { matmul } from "../../api/linear.ts";
import { crossEntropy } from "../../api/loss.ts";
import { layerNorm } from "../../api/normalize.ts";
import { reshape, transpose } from "../../api/shape.ts";
import { adamw } from "../../optim/adam.ts";
import type { OptimizerState } from "../../optim/optimizer.ts";
import { tensor } from "../../trace/literal.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { classIds, INPUT_STREAM, type Parameters, parameters } from "./data.ts";
import type { TrainingProgram } from "./program.ts";
import { training } from "./training.ts";

const [BATCH, TIME, WIDTH, HEADS, BLOCKS, VOCABULARY] = [8, 128, 128, 4, 4, 512];
/** Uniform with standard deviation 0.02. */
const SCALE = 0.02 * Math.sqrt(3);

type BlockName = "ln1g" | "ln1b" | "qkv" | "qkvb" | "proj" | "projb" | "ln2g" | "ln2b" | "fc" | "fcb" | "fo" | "fob";
type Block = Readonly<Record<BlockName, Tensor>>;

interface GptParams {
  readonly tok: Tensor;
  readonly pos: Tensor;
  readonly blocks: readonly Block[];
  readonly lnfg: Tensor;
  readonly lnfb: Tensor;
  readonly head: Tensor;
}

function blockParams(p: Parameters): Block {
  return {
    ln1g: p.fill([WIDTH], 1),
    ln1b: p.fill([WIDTH], 0),
    qkv: p.draw([WIDTH, 3 * WIDTH], SCALE),
    qkvb: p.fill([3 * WIDTH], 0),
    proj: p.draw([WIDTH, WIDTH], SCALE),
    projb: p.fill([WIDTH], 0),
    ln2g: p.fill([WIDTH], 1),
    ln2b: p.fill([WIDTH], 0),
    fc: p.draw([WIDTH, 4 * WIDTH], SCALE),
    fcb: p.fill([4 * WIDTH], 0),
    fo: p.draw([4 * WIDTH, WIDTH], SCALE),
    fob: p.fill([WIDTH], 0),
  };
}

const norm = (x: Tensor, scale: Tensor, offset: Tensor): Tensor => layerNorm(x, { scale, offset, eps: 1e-5 });

/** [tokens, width] → [batch, heads, positions, width of a head]. */
const headsOf = (x: Tensor): Tensor => transpose(reshape(x, [BATCH, TIME, HEADS, WIDTH / HEADS]), [0, 2, 1, 3]);

/** Tokens are rows throughout, [batch · positions, width], so that every layer is one product of matrices. */
function block(x: Tensor, p: Block): Tensor {
  const qkv = add(matmul(norm(x, p.ln1g, p.ln1b), p.qkv), p.qkvb);
  const [q, k, v] = split(qkv, 3, 1).map(headsOf) as [Tensor, Tensor, Tensor];
  const seen = reshape(transpose(attention(q, k, v, { causal: true }), [0, 2, 1, 3]), [BATCH * TIME, WIDTH]);
  const attended = add(x, add(matmul(seen, p.proj), p.projb));
  const wide = gelu(add(matmul(norm(attended, p.ln2g, p.ln2b), p.fc), p.fcb));
  return add(attended, add(matmul(wide, p.fo), p.fob));
}

/** A text of random tokens: each position is to predict the one after it. */
function batch(): readonly [Tensor, Tensor] {
  const ids = classIds(BATCH * (TIME + 1), INPUT_STREAM, VOCABULARY);
  const from = (shift: number): Tensor => {
    const rows = Int32Array.from({ length: BATCH * TIME }, (_, i) => ids[i + Math.floor(i / TIME) + shift] as number);
    return tensor(rows, { shape: [BATCH, TIME] });
  };
  return [from(0), from(1)];
}

export const gpt: TrainingProgram<OptimizerState<GptParams>> = training<GptParams>({
  name: "gpt",
  title: "GPT, 4 blocks of 128 with 4 heads, 128 positions, vocabulary 512, batch 8, AdamW",
  optimizer: adamw({ lr: 3e-4, weightDecay: 0.01 }),
  params() {
    const p = parameters();
    return {
      tok: p.draw([VOCABULARY, WIDTH], SCALE),
      pos: p.draw([TIME, WIDTH], SCALE),
      blocks: Array.from({ length: BLOCKS }, () => blockParams(p)),
      lnfg: p.fill([WIDTH], 1),
      lnfb: p.fill([WIDTH], 0),
      head: p.draw([WIDTH, VOCABULARY], SCALE),
    };
  },
  batch,
  loss(p, x, y) {
    const embedded = reshape(add(take(p.tok, x), p.pos), [BATCH * TIME, WIDTH]);
    const last = norm(p.blocks.reduce(block, embedded), p.lnfg, p.lnfb);
    return crossEntropy(matmul(last, p.head), reshape(y, [BATCH * TIME]));
  },
});
