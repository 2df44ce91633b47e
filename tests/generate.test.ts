/**
 * @file Generation with a cache: a step computes what the whole text would, nothing is compiled after the first token, memory does
 * not grow, tokens come one by one, and draws follow from probabilities and a seed.
 */
import { afterAll, describe, expect, test } from "vitest";
import { compile, oneHot, type Tensor, tensor } from "../src/api/index.ts";
import * as nn from "../src/nn/index.ts";
import { drawn, drawnAt, highest } from "../src/nn/sampling.ts";
import { plainTargets } from "./support/targets.ts";
import { tinyGpt } from "./support/tiny-gpt.ts";

const SIZES = { vocabulary: 11, capacity: 96, width: 16, heads: 2, blocks: 2 };
const gpt = tinyGpt(SIZES);
const params = gpt.init(3);
const i32 = (data: number | readonly number[]): Tensor => tensor(data as number[], { dtype: "i32" });
const text = Array.from({ length: 96 }, (_, i) => (i * i + 3 * i) % 11);

/** The model, counting how often it is traced. */
function counted() {
  let traces = 0;
  const extend: typeof gpt.extend = (...args) => {
    traces++;
    return gpt.extend(...args);
  };
  return { model: { initCache: gpt.initCache, extend }, traces: () => traces };
}

async function collected(tokens: AsyncIterable<number>): Promise<number[]> {
  const all: number[] = [];
  for await (const token of tokens) all.push(token);
  return all;
}

const { model, traces } = counted();
const texts = nn.generator(model, { capacity: 96, chunk: 16 });
afterAll(() => texts.dispose());

for (const tested of plainTargets.filter(({ name }) => name === "wasm" || name === "native")) {
  test.skipIf(tested.missing)(`a cache gives the scores of the whole text on ${tested.name}`, () => {
    const target = tested.target();
    const whole = compile(gpt.scores, { target })(params, i32(text)).data();
    const step = compile(gpt.extend, { target, donate: [2] });
    let cache: readonly nn.KeyValueCache[] = gpt.initCache(96);
    // chunks of 32, then token by token
    const sizes = [32, 32, ...Array.from({ length: 32 }, () => 1)];
    let [start, worst] = [0, 0];
    for (const size of sizes) {
      const [scores, next] = step(params, i32(text.slice(start, start + size)), cache, i32(start));
      cache = next;
      scores.data().forEach((score, i) => {
        worst = Math.max(worst, Math.abs(score - Number(whole[start * SIZES.vocabulary + i])));
      });
      start += size;
    }
    const scale = Math.max(...Array.from(whole, Math.abs));
    expect(worst / scale).toBeLessThan(1e-6);
  });
}

/** Greedy continuation by the whole forward pass. */
function greedy(prompt: readonly number[], count: number): number[] {
  const whole = compile(gpt.scores);
  const tokens = [...prompt];
  for (let i = 0; i < count; i++) {
    const padded = Array.from({ length: 48 }, (_, j) => tokens[j] ?? 0);
    const rows = whole(params, i32(padded)).data();
    const row = rows.slice((tokens.length - 1) * SIZES.vocabulary, tokens.length * SIZES.vocabulary);
    tokens.push(highest(row) ?? -1);
  }
  return tokens.slice(prompt.length);
}

describe("generate", () => {
  test("takes the highest score at temperature 0, and compiles two programs for prompts of all lengths", async () => {
    for (const length of [1, 2, 15, 16, 17, 33]) {
      const prompt = text.slice(0, length);
      const got = await texts.generateAll(params, prompt, { maxTokens: 6, temperature: 0 });
      expect(got).toEqual(greedy(prompt, 6));
    }
    expect(traces()).toBe(2);
    expect(texts.usage().programs).toBe(2);
  });

  test("reads a prompt that fills the cache, the last chunk of which begins earlier", async () => {
    const short = nn.generator(gpt, { capacity: 20, chunk: 16 });
    const prompt = text.slice(0, 20);
    expect(await short.generateAll(params, prompt, { temperature: 0 })).toEqual(greedy(prompt, 1));
    short.dispose();
  });

  test("gives tokens one by one, to an iterator and to a callback, until it is told to stop", async () => {
    const all = await texts.generateAll(params, [1], { maxTokens: 12, seed: 5 });
    expect(all.length).toBe(12);
    const seen: number[] = [];
    const onToken = async (token: number, index: number) => {
      await null;
      expect(index).toBe(seen.length);
      seen.push(token);
    };
    for await (const token of texts.generate(params, [1], { seed: 5, onToken })) {
      expect(token).toBe(seen.at(-1));
      if (seen.length === 7) break;
    }
    expect(seen).toEqual(all.slice(0, 7));
    const stop = all[4] as number;
    const before = all.slice(0, all.indexOf(stop) + 1);
    expect(await texts.generateAll(params, [1], { seed: 5, stop })).toEqual(before);
    expect(await texts.generateAll(params, [1], { seed: 5, stop: [stop, 99] })).toEqual(before);
    const aborter = new AbortController();
    const few = texts.generate(params, [1], {
      ...{ seed: 5, signal: aborter.signal },
      onToken: (_, index) => index === 2 && aborter.abort(),
    });
    expect(await collected(few)).toEqual(all.slice(0, 3));
    expect(await texts.generateAll(params, [1], { maxTokens: 0 })).toEqual([]);
  });

  test("draws the same tokens for a seed, also where a text is continued, and while others are generated", async () => {
    const options = { maxTokens: 20, temperature: 1.3, topK: 6, topP: 0.9 };
    const all = await texts.generateAll(params, [4, 2], { ...options, seed: 1 });
    expect(await texts.generateAll(params, [4, 2, ...all.slice(0, 8)], { ...options, maxTokens: 12, seed: 1 })).toEqual(
      all.slice(8),
    );
    const [one, other] = [1, 2].map((seed) => texts.generate(params, [4, 2], { ...options, seed }));
    const got: number[] = [];
    for await (const token of one as AsyncIterable<number>) {
      got.push(token);
      await other?.next();
    }
    expect(got).toEqual(all);
    expect(await texts.generateAll(params, [4, 2], { ...options, seed: 2 })).not.toEqual(all);
  });

  test("takes the highest score at temperatures that are too low for f32", async () => {
    const of = (temperature: number) => texts.generateAll(params, [4, 2], { maxTokens: 8, temperature });
    expect(await of(1e-40)).toEqual(await of(0));
    expect(await of(Number.MIN_VALUE)).toEqual(await of(0));
  });

  test("leaves parameters as they are, and takes others", async () => {
    const others = gpt.init(77);
    const before = await texts.generateAll(params, [3], { maxTokens: 20, temperature: 0 });
    const between = await texts.generateAll(others, [3], { maxTokens: 20, temperature: 0 });
    expect(await texts.generateAll(params, [3], { maxTokens: 20, temperature: 0 })).toEqual(before);
    expect(between).not.toEqual(before);
  });

  test("does not grow over 2,000 tokens that a cache of 32 is read again for", async () => {
    const layer = nn.multiHeadAttention(4, { heads: 1, causal: true });
    const small: nn.LanguageModel<nn.AttentionParams, nn.KeyValueCache> = {
      initCache: layer.initCache,
      extend: (own, tokens, cache, position) => layer.extend(own, oneHot(tokens, 4), cache, position),
    };
    const long = nn.generator(small, { capacity: 32, chunk: 16 });
    let [count, bytes] = [0, 0];
    for await (const token of long.generate(layer.init(1), [1], { whenFull: "restart", maxTokens: 2000 })) {
      count += token < 4 ? 1 : 0;
      if (count === 100) bytes = long.usage().arenaBytes;
    }
    expect(count).toBe(2000);
    expect(long.usage().arenaBytes).toBe(bytes);
    expect(long.usage().programs).toBe(2);
    long.dispose();
  });

  test("is prepared without tracing later", async () => {
    const prepared = counted();
    const own = nn.generator(prepared.model, { capacity: 32, chunk: 8 });
    const shares: number[] = [];
    await own.prepare(params, { onProgress: ({ share }) => shares.push(share) });
    expect(prepared.traces()).toBe(2);
    expect(shares.at(-1)).toBe(1);
    expect(shares).toEqual([...shares].sort((a, b) => a - b));
    const got = await own.generateAll(params, text.slice(0, 9), { maxTokens: 4, temperature: 0 });
    expect(got).toEqual(await texts.generateAll(params, text.slice(0, 9), { maxTokens: 4, temperature: 0 }));
    expect(prepared.traces()).toBe(2);
    // also while a text is generated
    const going = own.generate(params, text.slice(0, 9), { maxTokens: 4, temperature: 0 });
    const first = (await going.next()).value;
    await own.prepare(params);
    expect([first, ...(await collected(going))]).toEqual(got);
    own.dispose();
  });

  test("refuses what it cannot do, and says what to do instead", async () => {
    const of =
      (prompt: Iterable<number>, options: nn.GenerateOptions = {}) =>
      () =>
        texts.generate(params, prompt, options);
    expect(of([])).toThrow(/generate: the prompt is empty/);
    expect(of([1.5])).toThrow(/token 0 of the prompt is 1.5/);
    expect(of([1, -1])).toThrow(/token 1 of the prompt is -1/);
    expect(of("abc" as never)).toThrow(/the prompt is the string "abc"/);
    expect(of(Array.from({ length: 97 }, () => 1))).toThrow(/room for 96 tokens; the prompt has 97/);
    expect(of([1], { maxTokens: 97 })).toThrow(/room for 96 tokens; the prompt has 1, and 97 to be generated/);
    expect(of([1], { maxTokens: -1 })).toThrow(/maxTokens is -1/);
    expect(of([1], { temperature: -0.5 })).toThrow(/temperature is -0.5/);
    expect(of([1], { temperature: Number.NaN })).toThrow(/temperature is NaN/);
    expect(of([1], { topK: 0 })).toThrow(/topK is 0/);
    expect(of([1], { topK: 1.5 })).toThrow(/topK is 1.5/);
    expect(of([1], { topP: 0 })).toThrow(/topP is 0/);
    expect(of([1], { topP: 1.01 })).toThrow(/topP is 1.01/);
    expect(of([1], { seed: 0.5 })).toThrow(/seed is 0.5/);
    for (const stop of [{}, "3", [1.5], null]) {
      expect(of([1], { stop: stop as never })).toThrow(/generate: stop is/);
    }
    expect(of([1], { whenFull: "slide" as never })).toThrow(/whenFull is/);
    expect(of([1], { maxToken: 3 } as never)).toThrow(/maxToken/);
    await expect(texts.generateAll(params, [11])).rejects.toThrow(/token 11, the vocabulary has 11/);
    const broken = { ...params, head: { w: params.head.w.mul(Number.NaN), b: params.head.b } };
    await expect(texts.generateAll(broken, [1])).rejects.toThrow(/the scores of token 1 are not numbers/);
    await expect(texts.generateAll(broken, [1], { temperature: 0 })).rejects.toThrow(/are not numbers/);
    expect(() => nn.generator(gpt, { capacity: 0 })).toThrow(/capacity/);
    expect(() => nn.generator(gpt, { capacity: 8, chunk: 9 })).toThrow(/chunks of 9 tokens, room for 8/);
    expect(() => nn.generator({} as never, { capacity: 8 })).toThrow(/initCache must be a function/);
    const flat = { initCache: () => ({}), extend: (_: object, tokens: Tensor) => [tokens.cast("f32"), {}] as const };
    await expect(nn.generator(flat, { capacity: 8 }).generateAll({}, [1])).rejects.toThrow(
      /scores f32\[1\] for 1 tokens/,
    );
  });
});

describe("a draw", () => {
  const probabilities = Float32Array.from([0.1, 0.4, 0.2, 0.2, 0.1]);
  const tokens = (options: nn.SamplingOptions): number[] => {
    const places = Array.from({ length: 1000 }, (_, i) => drawn(probabilities, options, i / 1000));
    return [0, 1, 2, 3, 4].map((token) => places.filter((got) => got === token).length);
  };

  test("falls into tokens by their probabilities", () => {
    expect(tokens({})).toEqual([100, 400, 200, 200, 100]);
    expect(tokens({ topK: 99, topP: 1 })).toEqual([100, 400, 200, 200, 100]);
  });

  test("falls into the most probable ones that are asked for, of equal ones into the first", () => {
    expect(tokens({ topK: 1 })).toEqual([0, 1000, 0, 0, 0]);
    expect(tokens({ topK: 2 })).toEqual([0, 667, 333, 0, 0]);
    expect(tokens({ topP: 1e-9 })).toEqual([0, 1000, 0, 0, 0]);
    expect(tokens({ topP: 0.59 })).toEqual([0, 667, 333, 0, 0]);
    expect(tokens({ topP: 0.75 })).toEqual([0, 500, 250, 250, 0]);
    // of the three that topK leaves, two are half of it
    expect(tokens({ topK: 3, topP: 0.7 })).toEqual([0, 667, 333, 0, 0]);
  });

  test("is uniform, and a function of the seed and the token's number", () => {
    const places = Array.from({ length: 1000 }, (_, i) => drawnAt(7, i));
    expect(places.reduce((sum, x) => sum + x, 0) / 1000).toBeCloseTo(0.5, 1);
    expect(drawnAt(7, 3)).toBe(places[3]);
    expect(drawnAt(8, 3)).not.toBe(places[3]);
  });
});

test("a layer says for what it has no cache", () => {
  const layer = nn.multiHeadAttention(8, { heads: 2 });
  const causal = nn.multiHeadAttention(8, { heads: 2, causal: true });
  const x = tensor(new Float32Array(24), { shape: [3, 8] });
  const own = layer.init(0);
  expect(() => layer.extend(own, x, layer.initCache(4), i32(0))).toThrow(/causal: true/);
  expect(() => causal.extend(own, x, causal.initCache(2), i32(0))).toThrow(
    /a cache of keys f32\[2,2,4\] for f32\[3,8\]/,
  );
  expect(() => causal.extend(own, x, causal.initCache(4, [1]), i32(0))).toThrow(/a cache of keys f32\[1,2,4,4\]/);
  expect(() => causal.initCache(0)).toThrow(/capacity/);
});
