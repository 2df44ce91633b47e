/** @file Attention over so many positions that all scores together would be more elements than a tensor can have. */
import { expect, it } from "vitest";
import { attention, compile, grad, plan, random, spec, type Tensor, tensor } from "../src/api/index.ts";
import { modelOfConfig } from "../src/fit/sources/configs.ts";

const LENGTH = 8192;
const HEADS = 32;
const loss = (q: Tensor, k: Tensor, v: Tensor): Tensor => attention(q, k, v, { causal: true }).square().sum();

it("has a gradient whose plan has no scores", () => {
  expect(HEADS * LENGTH ** 2).toBeGreaterThan(2 ** 31 - 1);
  const head = spec([1, HEADS, LENGTH, 4]);
  const { arenaBytes } = plan(grad(loss))(head, head, head);
  expect(arenaBytes).toBeLessThan(16 * 4 * HEADS * LENGTH * 4);
});

it("is streamed in exported models too, with the results of stored scores", () => {
  const sizes = { num_hidden_layers: 1, hidden_size: 16, num_attention_heads: 4, num_key_value_heads: 2 };
  const config = {
    model_type: "llama",
    ...sizes,
    intermediate_size: 24,
    vocab_size: 11,
    max_position_embeddings: 2048,
  };
  const logits = (tokens: number): Float32Array => {
    const model = modelOfConfig(config, { batch: 1, tokens });
    const params = Object.fromEntries(
      Object.entries(model.params).map(([name, { shape }], i) => [name, random.normal(random.key(i), shape)]),
    );
    const ids = tensor(
      Int32Array.from({ length: tokens }, (_, i) => (i * 7) % 11),
      { shape: [1, tokens] },
    );
    const step = compile((all: typeof params, given: Tensor) => Object.values(model.apply(all, [given]))[0] as Tensor);
    return Float32Array.from(step(params, ids).data());
  };
  // a query sees none of what comes after it, so that all but the last row are equal
  const [stored, streamed] = [logits(1023), logits(1024)];
  const off = stored.map((x, i) => Math.abs(x - (streamed[i] as number)));
  expect(off.reduce((a, b) => Math.max(a, b))).toBeLessThan(1e-4);
});
