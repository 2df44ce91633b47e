/**
 * @file GPT-2 from the safetensors file of another program, fine-tuned by low-rank adapters: parameters are the tensors of the file under
 * their names, and only the adapter is trained and saved.
 *
 *   PREFIXwte.weight [vocabulary, width]     PREFIXh.0.attn.c_attn.weight [width, 3 width]     PREFIXln_f.weight [width]
 */
import {
  add,
  attention,
  crossEntropy,
  gelu,
  layerNorm,
  matmul,
  scope,
  split,
  take,
  tensor,
  valueAndGrad,
} from "tidemark";
import { lora } from "tidemark/nn";
import { adamw } from "tidemark/optim";

/** Sizes of a model by the shapes of its weights; how many heads it has is not among them. */
export function sizesOf(params, heads) {
  const table = Object.keys(params).find((name) => name.endsWith("wte.weight"));
  if (table === undefined) throw new Error("the file has no wte.weight: it is no GPT-2");
  const prefix = table.slice(0, -"wte.weight".length);
  const [vocabulary, width] = params[table].shape;
  const [positions] = params[`${prefix}wpe.weight`].shape;
  const blocks = Object.keys(params).filter((name) => name.endsWith(".attn.c_attn.weight")).length;
  if (width % heads !== 0) throw new Error(`${heads} heads do not divide a width of ${width}`);
  return { prefix, vocabulary, width, positions, blocks, heads };
}

/** Logits [batch, time, vocabulary] of token numbers [batch, time]; the embedding is also the head. */
export function gpt2({ prefix, width, blocks, heads }) {
  const apply = (params, ids) => {
    const [batch, time] = ids.shape;
    const of = (name) => params[`${prefix}${name}`];
    const dense = (x, name) => add(matmul(x, of(`${name}.weight`)), of(`${name}.bias`));
    const norm = (x, name) => layerNorm(x, { scale: of(`${name}.weight`), offset: of(`${name}.bias`), eps: 1e-5 });
    const headsOf = (x) => x.reshape([batch, time, heads, width / heads]).transpose([0, 2, 1, 3]);
    const block = (x, h) => {
      const [q, k, v] = split(dense(norm(x, `${h}.ln_1`), `${h}.attn.c_attn`), 3, -1).map(headsOf);
      const seen = attention(q, k, v, { causal: true }).transpose([0, 2, 1, 3]).reshape([batch, time, width]);
      const middle = add(x, dense(seen, `${h}.attn.c_proj`));
      return add(middle, dense(gelu(dense(norm(middle, `${h}.ln_2`), `${h}.mlp.c_fc`)), `${h}.mlp.c_proj`));
    };
    let x = add(take(of("wte.weight"), ids), of("wpe.weight").slice([[0, time]]));
    for (let i = 0; i < blocks; i++) x = scope(`block${i}`, () => block(x, `h.${i}`));
    return matmul(norm(x, "ln_f"), of("wte.weight"), { tb: true });
  };
  return { apply };
}

/** GPT-2's numbers of single bytes: printable ones first. */
const BYTES = (() => {
  const between = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
  const first = [...between(33, 126), ...between(161, 172), ...between(174, 255)];
  const order = [...first, ...between(0, 255).filter((byte) => !first.includes(byte))];
  const numbers = new Array(256);
  order.forEach((byte, i) => {
    numbers[byte] = i;
  });
  return numbers;
})();

/** A text as token numbers, one for each byte: every vocabulary of GPT-2 begins with those. */
export const tokensOf = (text) => Int32Array.from(new TextEncoder().encode(text), (byte) => BYTES[byte]);

/** Tokens and the ones that follow them, [batch, time] each; a step begins where the one before ended. */
export function batches(tokens, { batch, time }) {
  if (tokens.length <= time) throw new Error(`the text has ${tokens.length} bytes; give more than ${time}`);
  const places = tokens.length - time;
  return (step) => {
    const part = (shift) => {
      const ids = new Int32Array(batch * time);
      for (let row = 0; row < batch; row++) {
        const from = ((step * batch + row) * time) % places;
        ids.set(tokens.subarray(from + shift, from + shift + time), row * time);
      }
      return tensor(ids, { shape: [batch, time] });
    };
    return [part(0), part(1)];
  };
}

const lossOf = (logits, y) => crossEntropy(logits.reshape([-1, logits.shape[2]]), y.reshape([-1]));

/** Fine-tuning by adapters of rank `rank`. The model's own parameters are the second argument of a step, and stay what they are. */
export function adapting(params, { heads, rank = 8, alpha = 16, targets = ["c_attn"], rate = 1e-2 }) {
  const model = gpt2(sizesOf(params, heads));
  const tuned = lora({ ...model, params }, { rank, alpha, targets });
  const optimizer = adamw({ lr: rate, weightDecay: 0 });
  return {
    tuned,
    init: () => optimizer.init(tuned.init(0)),
    step(state, own, x, y) {
      const loss = (adapter) => lossOf(tuned.apply(own, adapter, x), y);
      const [value, grads] = valueAndGrad(loss)(state.params);
      return [optimizer.update(state, grads), value];
    },
  };
}

/** The same with all parameters, to compare with. */
export function wholeTraining(params, { heads, rate = 3e-4 }) {
  const model = gpt2(sizesOf(params, heads));
  const optimizer = adamw({ lr: rate, weightDecay: 0 });
  return {
    init: () => optimizer.init(params),
    step(state, x, y) {
      const [value, grads] = valueAndGrad((own) => lossOf(model.apply(own, x), y))(state.params);
      return [optimizer.update(state, grads), value];
    },
  };
}
