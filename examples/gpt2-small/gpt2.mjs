/**
 * @file GPT-2 small (Radford and others, 2019) at batch 1 with an ordinary loss: nothing in it speaks of memory. A program of the
 * command line too: `tidemark plan examples/gpt2-small/gpt2.mjs --budget min` cuts the logits into strips of rows.
 */
import {
  add,
  attention,
  crossEntropy,
  gelu,
  layerNorm,
  matmul,
  scope,
  specsOf,
  split,
  take,
  tensor,
  valueAndGrad,
} from "tidemark";
import { adamw } from "tidemark/optim";

/** Numbers that follow from a seed, uniform with standard deviation 0.02. */
function drawn(seed) {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let h = Math.imul(state ^ (state >>> 15), state | 1);
    h ^= h + Math.imul(h ^ (h >>> 7), h | 61);
    return ((h ^ (h >>> 14)) >>> 0) / 2 ** 32;
  };
  const width = 0.02 * Math.sqrt(12);
  return {
    weights: (...shape) =>
      tensor(
        Float32Array.from({ length: shape.reduce((n, e) => n * e, 1) }, () => (next() - 0.5) * width),
        { shape },
      ),
    constant: (value, n) => tensor(new Float32Array(n).fill(value)),
    ids: (below, ...shape) =>
      tensor(
        Int32Array.from({ length: shape.reduce((n, e) => n * e, 1) }, () => Math.floor(next() * below)),
        { shape },
      ),
  };
}

function blockParams({ weights, constant }, width) {
  return {
    ln1: { scale: constant(1, width), offset: constant(0, width) },
    qkv: { w: weights(width, 3 * width), b: constant(0, 3 * width) },
    proj: { w: weights(width, width), b: constant(0, width) },
    ln2: { scale: constant(1, width), offset: constant(0, width) },
    fc: { w: weights(width, 4 * width), b: constant(0, 4 * width) },
    out: { w: weights(4 * width, width), b: constant(0, width) },
  };
}

const dense = (x, { w, b }) => add(matmul(x, w), b);
const norm = (x, p) => layerNorm(x, { ...p, eps: 1e-5 });

/** Rows are tokens throughout: [batch · time, width]. */
function block({ batch, time, width, heads }, x, p) {
  const headsOf = (v) => v.reshape([batch, time, heads, width / heads]).transpose([0, 2, 1, 3]);
  const [q, k, v] = split(dense(norm(x, p.ln1), p.qkv), 3, 1).map(headsOf);
  const seen = attention(q, k, v, { causal: true })
    .transpose([0, 2, 1, 3])
    .reshape([batch * time, width]);
  const attended = add(x, dense(seen, p.proj));
  return add(attended, dense(gelu(dense(norm(attended, p.ln2), p.fc)), p.out));
}

/** A training step with AdamW, and what it starts from; the embedding is also the head. */
export function gpt2(size) {
  const { batch, time, width, blocks, vocabulary } = size;
  const rows = batch * time;
  const optimizer = adamw({ lr: 3e-4, weightDecay: 0.01 });
  const loss = (p, x, y) => {
    const embedded = add(take(p.tok, x), p.pos).reshape([rows, width]);
    const last = p.blocks.reduce((h, own) => scope("block", () => block(size, h, own)), embedded);
    return crossEntropy(matmul(norm(last, p.ln), p.tok, { tb: true }), y.reshape([rows]));
  };
  const init = () => {
    const numbers = drawn(1);
    return optimizer.init({
      tok: numbers.weights(vocabulary, width),
      pos: numbers.weights(time, width),
      blocks: Array.from({ length: blocks }, () => blockParams(numbers, width)),
      ln: { scale: numbers.constant(1, width), offset: numbers.constant(0, width) },
    });
  };
  const tokens = () => {
    const numbers = drawn(2);
    return [numbers.ids(vocabulary, batch, time), numbers.ids(vocabulary, batch, time)];
  };
  return {
    name: "gpt2",
    init,
    batch: tokens,
    specs: () => [specsOf(init)(), ...tokens()],
    step(state, x, y) {
      const [value, grads] = valueAndGrad(loss)(state.params, x, y);
      return [optimizer.update(state, grads), value];
    },
  };
}

export const program = gpt2({ batch: 1, time: 1024, width: 768, heads: 12, blocks: 12, vocabulary: 50257 });
