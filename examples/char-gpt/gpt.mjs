/**
 * @file A language model of characters: text to numbers, a small GPT, its training step, sampling, and checkpoints that training
 * goes on from as if it had never stopped. Runs in Node (main.mjs) and in a page (page.mjs) alike.
 */
import { arange, crossEntropy, fileInfo, scope, tensor, valueAndGrad } from "tidemark";
import { embedding, generator, layerNorm, linear, transformerBlock } from "tidemark/nn";
import { adamw, clipByGlobalNorm, warmupCosine } from "tidemark/optim";

/** A number between 0 and 1 that follows from two others (the last steps of MurmurHash3, A. Appleby). */
function drawn(seed, i) {
  let h = Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(i + 1, 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return ((h ^ (h >>> 16)) >>> 0) / 2 ** 32;
}

/** Characters and their numbers. */
export function alphabet(characters) {
  const numbers = new Map([...characters].map((character, number) => [character, number]));
  return {
    characters,
    encode: (text) => Int32Array.from([...text].filter((c) => numbers.has(c)).map((c) => numbers.get(c))),
    decode: (ids) => Array.from(ids, (id) => characters[id]).join(""),
  };
}

/** The characters of a text, sorted. */
export const charactersOf = (text) => [...new Set(text)].sort();

/** Parameters, and scores for the character after each position. */
export function model({ characters, context, width, heads, blocks }) {
  const layers = {
    token: embedding(characters.length, width),
    position: embedding(context, width),
    blocks: Array.from({ length: blocks }, () => transformerBlock(width, { heads, causal: true })),
    norm: layerNorm(width),
    head: linear(width, characters.length),
  };
  /** Characters, and where they are. */
  const embedded = (params, ids, positions) =>
    layers.token.apply(params.token, ids).add(layers.position.apply(params.position, positions));
  const scored = (params, seen) => layers.head.apply(params.head, layers.norm.apply(params.norm, seen));
  return {
    init(seed) {
      const seeds = Array.from({ length: blocks + 3 }, (_, i) => seed * 1000 + i);
      return {
        token: layers.token.init(seeds[0]),
        position: layers.position.init(seeds[1]),
        blocks: layers.blocks.map((block, i) => block.init(seeds[i + 3])),
        norm: layers.norm.init(0),
        head: layers.head.init(seeds[2]),
      };
    },
    /** [batch, context] → [batch, context, characters]. */
    scores(params, ids) {
      const seen = params.blocks.reduce(
        (h, block, i) => scope("block", () => layers.blocks[i].apply(block, h)),
        embedded(params, ids, arange(context)),
      );
      return scored(params, seen);
    },
    /** What blocks keep of the characters before. */
    initCache: (capacity) => layers.blocks.map((block) => block.initCache(capacity)),
    /** [n] → [n, characters], for characters from number `position` on. */
    extend(params, ids, cache, position) {
      let seen = embedded(params, ids, arange(ids.shape[0]).add(position));
      const kept = layers.blocks.map((block, i) => {
        const [next, own] = scope("block", () => block.extend(params.blocks[i], seen, cache[i], position));
        seen = next;
        return own;
      });
      return [scored(params, seen), kept];
    },
  };
}

/** What training needs: the first state, a step to be compiled, and the batch of each step, which depends on its number alone. */
export function training(sizes, { ids, batch, total, seed = 1, rate = 3e-3 }) {
  const net = model(sizes);
  const { context, characters } = sizes;
  const warmup = Math.min(20, total - 1);
  const optimizer = adamw({ lr: warmupCosine(rate, { warmup, total }), clip: clipByGlobalNorm(1) });
  const loss = (params, x, y) => crossEntropy(net.scores(params, x).reshape([-1, characters.length]), y.reshape([-1]));
  return {
    init: () => optimizer.init(net.init(seed)),
    step(state, x, y) {
      const [value, grads] = valueAndGrad(loss)(state.params, x, y);
      return [optimizer.update(state, grads), value];
    },
    batch(i) {
      const starts = Array.from({ length: batch }, (_, row) => {
        return Math.floor(drawn(seed, i * batch + row) * (ids.length - context));
      });
      const rows = (shift) => {
        const all = new Int32Array(batch * context);
        starts.forEach((start, row) => {
          all.set(ids.subarray(start + shift, start + shift + context), row * context);
        });
        return tensor(all, { shape: [batch, context] });
      };
      return [rows(0), rows(1)];
    },
  };
}

/** Writes texts; its programs are compiled with the first of them, or before by `prepare`, and serve all parameters. */
export function writer(sizes) {
  const { encode, decode } = alphabet(sizes.characters);
  const { context } = sizes;
  const texts = generator(model(sizes), { capacity: context, chunk: Math.min(16, context) });
  const write = async (params, { prompt, count, temperature = 0.8, seed = 1, onText = () => {} }) => {
    const ids = encode(prompt);
    let text = ids.length === 0 ? sizes.characters[0] : decode(ids);
    const options = { maxTokens: count, temperature, seed, whenFull: "restart" };
    for await (const id of texts.generate(params, encode(text), options)) {
      text += sizes.characters[id];
      onText(text);
    }
    return text;
  };
  return { write, prepare: texts.prepare };
}

/** What a checkpoint says of its model, beside the tensors. */
export const description = (sizes) => ({ format: "char-gpt", sizes: JSON.stringify(sizes) });

/** The sizes of the model in a checkpoint. */
export function sizesOf(bytes) {
  const { format, sizes } = fileInfo(bytes).metadata;
  if (format !== "char-gpt" || sizes === undefined) throw new Error("this is no checkpoint of this example");
  return JSON.parse(sizes);
}
