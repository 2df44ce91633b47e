/**
 * @file Language models of the shape of GPT-2 (Radford et al. 2019): normalisation before each half of a block, tanh GELU,
 * cross entropy of every next token, AdamW. `gpt` is small enough to train anywhere; `gpt2-small` is the published size,
 * with the embedding as its head.
 */
import { attention } from "../../api/attention.ts";
import { arange } from "../../api/create.ts";
import { add, less, where } from "../../api/elementwise.ts";
import { take } from "../../api/indexing.ts";
import { split } from "../../api/join.ts";
import { matmul } from "../../api/linear.ts";
import { crossEntropy } from "../../api/loss.ts";
import { gelu } from "../../api/math.ts";
import { layerNorm } from "../../api/normalize.ts";
import { scope } from "../../api/scope.ts";
import { reshape, slice, transpose } from "../../api/shape.ts";
import { adamw } from "../../optim/adam.ts";
import type { OptimizerState } from "../../optim/optimizer.ts";
import { columnLinear, parallelCrossEntropy, parallelEmbedding, rowLinear } from "../../parallel/tensor.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { asPart } from "../../trace/trace.ts";
import { classIds, INPUT_STREAM, type Numbers } from "./data.ts";
import type { BlockForm, TensorAxis, TensorCut, TrainingProgram } from "./program.ts";
import { training } from "./training.ts";

/** Uniform with standard deviation 0.02. */
const SCALE = 0.02 * Math.sqrt(3);

/** Batches of texts of T tokens. */
const TEXTS = [null, [null, "T"], [null, "T"]] as const;

/** The target of a position behind the end of its text. */
const PADDING = -1;

interface Size {
  readonly batch: number;
  /** Positions that there are; a text may have fewer. */
  readonly time: number;
  readonly width: number;
  readonly heads: number;
  readonly blocks: number;
  readonly vocabulary: number;
  /** The embedding is also the head. */
  readonly tied: boolean;
}

type BlockName = "ln1g" | "ln1b" | "qkv" | "qkvb" | "proj" | "projb" | "ln2g" | "ln2b" | "fc" | "fcb" | "fo" | "fob";
type Block = Readonly<Record<BlockName, Tensor>>;

interface GptShared {
  readonly tok: Tensor;
  readonly pos: Tensor;
  readonly lnfg: Tensor;
  readonly lnfb: Tensor;
  readonly head?: Tensor;
}

interface GptParams extends GptShared {
  readonly blocks: readonly Block[];
}

function blockParams(p: Numbers, width: number): Block {
  return {
    ln1g: p.fill([width], 1),
    ln1b: p.fill([width], 0),
    qkv: p.draw([width, 3 * width], SCALE),
    qkvb: p.fill([3 * width], 0),
    proj: p.draw([width, width], SCALE),
    projb: p.fill([width], 0),
    ln2g: p.fill([width], 1),
    ln2b: p.fill([width], 0),
    fc: p.draw([width, 4 * width], SCALE),
    fcb: p.fill([4 * width], 0),
    fo: p.draw([4 * width, width], SCALE),
    fob: p.fill([width], 0),
  };
}

const norm = (x: Tensor, scale: Tensor, offset: Tensor): Tensor => layerNorm(x, { scale, offset, eps: 1e-5 });

/** How weights are multiplied: all of them, or a device's part of them. */
interface Layers {
  /** Devices that have parts. */
  readonly parts: number;
  /** By columns: x · w + b. */
  column(x: Tensor, w: Tensor, b: Tensor): Tensor;
  /** By rows: the same of all devices together. */
  row(x: Tensor, w: Tensor, b: Tensor): Tensor;
  /** Rows of a table that is cut by rows. */
  rows(table: Tensor, ids: Tensor): Tensor;
  /** Of logits [tokens, vocabulary], cut by columns. */
  loss(logits: Tensor, targets: Tensor): Tensor;
}

const WHOLE: Layers = {
  parts: 1,
  column: (x, w, b) => add(matmul(x, w), b),
  row: (x, w, b) => add(matmul(x, w), b),
  rows: (table, ids) => take(table, ids),
  loss: (logits, targets) => crossEntropy(logits, targets),
};

const inParts = ({ over, parts }: TensorAxis): Layers => ({
  parts,
  column: (x, w, b) => columnLinear(x, { w, b }, { over }),
  row: (x, w, b) => rowLinear(x, { w, b }, { over }),
  rows: (table, ids) => parallelEmbedding(table, ids, { over }),
  loss: (logits, targets) => parallelCrossEntropy(logits, targets, { over }),
});

/** How parameters are cut: whole heads of queries, keys and values, columns in front of a function and rows behind it. */
const CUTS: Readonly<Record<string, TensorCut>> = {
  ...{ tok: { axis: 0 }, head: { axis: 1 }, qkv: { axis: 1, groups: 3 }, qkvb: { axis: 0, groups: 3 } },
  ...{ proj: { axis: 0 }, fc: { axis: 1 }, fcb: { axis: 0 }, fo: { axis: 0 } },
};

/** Tokens are rows throughout, [batch · positions, width], so that every layer is one product of matrices. */
function block({ batch, width: all, heads: allHeads }: Size, x: Tensor, p: Block, layers: Layers): Tensor {
  const [width, heads] = [all / layers.parts, allHeads / layers.parts];
  const tokenCount = x.shape[0] as number;
  const time = tokenCount / batch;
  /** [tokens, width] → [batch, heads, positions, width of a head]. */
  const headsOf = (v: Tensor): Tensor => transpose(reshape(v, [batch, time, heads, width / heads]), [0, 2, 1, 3]);
  const attended = asPart("attention", () => {
    const qkv = layers.column(norm(x, p.ln1g, p.ln1b), p.qkv, p.qkvb);
    const [q, k, v] = split(qkv, 3, 1).map(headsOf) as [Tensor, Tensor, Tensor];
    const seen = reshape(transpose(attention(q, k, v, { causal: true }), [0, 2, 1, 3]), [tokenCount, width]);
    return add(x, layers.row(seen, p.proj, p.projb));
  });
  return asPart("feed", () => {
    const wide = gelu(layers.column(norm(attended, p.ln2g, p.ln2b), p.fc, p.fcb));
    return add(attended, layers.row(wide, p.fo, p.fob));
  });
}

/** A text of random tokens: each position is to predict the one after it. */
function tokens({ batch, time, vocabulary }: Size, numbers: Numbers): readonly [Tensor, Tensor] {
  const from = (shift: number): Int32Array => {
    const ids = classIds(batch * (time + 1), INPUT_STREAM, vocabulary);
    return Int32Array.from({ length: batch * time }, (_, i) => ids[i + Math.floor(i / time) + shift] as number);
  };
  return [numbers.ids([batch, time], () => from(0)), numbers.ids([batch, time], () => from(1))];
}

/** [texts, positions, width] in front of the blocks. */
const embedded = (p: GptShared, x: Tensor, layers: Layers): Tensor =>
  add(layers.rows(p.tok, x), slice(p.pos, [[0, x.shape[1] as number]]));

function through(size: Size, x: Tensor, own: Block, layers: Layers): Tensor {
  const [batch, here, width] = x.shape as [number, number, number];
  const rows = reshape(x, [batch * here, width]);
  const made = scope("block", () => block({ ...size, batch }, rows, own, layers));
  return reshape(made, x.shape);
}

/** Logits [tokens, vocabulary], or the device's part of them, of what is behind the last block. */
function headOf(p: GptShared, x: Tensor): Tensor {
  const width = x.shape[2] as number;
  const last = norm(reshape(x, [x.elements / width, width]), p.lnfg, p.lnfb);
  return p.head ? matmul(last, p.head) : matmul(last, p.tok, { tb: true });
}

/** The model as blocks that are stages of a pipeline. */
const blocksOf = (size: Size): BlockForm<GptParams, GptShared, Block> => ({
  count: size.blocks,
  split: ({ blocks, ...shared }) => ({ shared, blocks }),
  // members in the order of the parameters
  join: ({ tok, pos, ...rest }, blocks) => ({ tok, pos, blocks, ...rest }),
  functions(axis) {
    const layers = axis ? inParts(axis) : WHOLE;
    return {
      first: (shared, ...[x]) => embedded(shared, x as Tensor, layers),
      block: (own, x) => through(size, x, own, layers),
      last: (shared, y, ...[, targets]) =>
        layers.loss(headOf(shared, y), reshape(targets as Tensor, [(targets as Tensor).elements])),
    };
  },
});

export function languageModel(name: string, title: string, size: Size): TrainingProgram<OptimizerState<GptParams>> {
  const { time, width, blocks, vocabulary, tied, heads } = size;
  const logitsOf = (p: GptParams, x: Tensor, layers: Layers): Tensor =>
    headOf(
      p,
      p.blocks.reduce((h, own) => through(size, h, own, layers), embedded(p, x, layers)),
    );
  return training<GptParams>({
    name,
    title,
    optimizer: adamw({ lr: 3e-4, weightDecay: 0.01 }),
    params(p) {
      return {
        tok: p.draw([vocabulary, width], SCALE),
        pos: p.draw([time, width], SCALE),
        blocks: Array.from({ length: blocks }, () => blockParams(p, width)),
        lnfg: p.fill([width], 1),
        lnfb: p.fill([width], 0),
        ...(tied ? {} : { head: p.draw([width, vocabulary], SCALE) }),
      };
    },
    batch: (numbers) => tokens(size, numbers),
    axes: TEXTS,
    tensor: {
      cuts: CUTS,
      most: heads,
      loss: (axis) => (p, x, y) => {
        const layers = inParts(axis);
        return layers.loss(logitsOf(p, x, layers), reshape(y, [y.elements]));
      },
    },
    blocks: blocksOf(size) as unknown as BlockForm<GptParams>,
    loss(p, x, y, lengths) {
      const [batch, here] = x.shape as [number, number];
      const logits = logitsOf(p, x, WHOLE);
      if (!lengths) return WHOLE.loss(logits, reshape(y, [batch * here]));
      const targets = where(less(arange(here), lengths.T as Tensor), y, PADDING);
      return crossEntropy(logits, reshape(targets, [batch * here]), { ignoreIndex: PADDING });
    },
  });
}

export const gpt: TrainingProgram<OptimizerState<GptParams>> = languageModel(
  "gpt",
  "GPT, 4 blocks of 128 with 4 heads, 128 positions, vocabulary 512, batch 8, AdamW",
  { batch: 8, time: 128, width: 128, heads: 4, blocks: 4, vocabulary: 512, tied: false },
);

export const gpt2Small: TrainingProgram<OptimizerState<GptParams>> = languageModel(
  "gpt2-small",
  "GPT-2 small, 12 blocks of 768 with 12 heads, 1024 positions, vocabulary 50257, batch 8, AdamW",
  { batch: 8, time: 1024, width: 768, heads: 12, blocks: 12, vocabulary: 50257, tied: true },
);
