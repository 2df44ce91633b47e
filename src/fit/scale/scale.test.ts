/**
 * @file Published tables and measurements: ZeRO's states (S. Rajbhandari and others, SC 2020), activations of a layer (V. Korthikanti and
 * others, 2022), ZeRO-Infinity's table (SC 2021), peaks that torchtitan's documents report for Llama 3.1 on H100 (December 2024).
 */
import { describe, expect, it, test } from "vitest";
import { type DeviceMemory, memoryOf } from "./device.ts";
import { bytesOfKept, keptTensors, type Recompute } from "./kept.ts";
import { LAYOUT, type Layout, layersOfStages } from "./layout.ts";
import { plannedBlock } from "./planned.ts";
import { search } from "./search.ts";
import { RECIPES, stateBytes, totalOf, type ZeroStage } from "./states.ts";
import { RATES } from "./time.ts";
import { type Transformer, transformerOf } from "./transformer.ts";

const GIB = 2 ** 30;

const llama = (hidden: number, layers: number, heads: number, inner: number): Transformer =>
  transformerOf({
    ...{ model_type: "llama", hidden_size: hidden, num_hidden_layers: layers, num_attention_heads: heads },
    ...{ num_key_value_heads: 8, intermediate_size: inner, vocab_size: 128256, max_position_embeddings: 131072 },
  });
const LLAMA_8B = llama(4096, 32, 32, 14336);
const LLAMA_70B = llama(8192, 80, 64, 28672);
const LLAMA_405B = llama(16384, 126, 128, 53248);

describe("parameters", () => {
  it("are those of the published models, to the unit", () => {
    expect(LLAMA_8B.parameters.total).toBe(8_030_261_248);
    expect(LLAMA_70B.parameters.total).toBe(70_553_706_496);
    expect(LLAMA_405B.parameters).toMatchObject({ total: 405_853_388_800, block: 3_187_703_808 });
    const gpt2 = transformerOf({ model_type: "gpt2", n_embd: 768, n_layer: 12, n_head: 12, vocab_size: 50257 });
    expect(gpt2.parameters.total).toBe(124_439_808);
  });

  it("of other kinds are refused", () => {
    expect(() => transformerOf({ model_type: "t5" })).toThrow('of the kind "t5"');
    expect(() => transformerOf({ model_type: "llama", hidden_size: 8 })).toThrow("has no num_attention_heads");
  });
});

describe("ZeRO's table of states, in GB for each device", () => {
  const shown = (gb: number): string => String(Number(gb.toPrecision(3)));
  // devices, then for each size: the optimizer's state shared out, gradients too, parameters too
  const TABLE: readonly (readonly [devices: number, columns: readonly (readonly number[])[]])[] = [
    [
      1,
      [
        [120, 120, 120],
        [2048, 2048, 2048],
        [16000, 16000, 16000],
      ],
    ],
    [
      4,
      [
        [52.5, 41.3, 30],
        [896, 704, 512],
        [7000, 5500, 4000],
      ],
    ],
    [
      16,
      [
        [35.6, 21.6, 7.5],
        [608, 368, 128],
        [4750, 2875, 1000],
      ],
    ],
    [
      64,
      [
        [31.4, 16.6, 1.88],
        [536, 284, 32],
        [4187, 2218, 250],
      ],
    ],
    [
      256,
      [
        [30.4, 15.4, 0.47],
        [518, 263, 8],
        [4046, 2054, 62.5],
      ],
    ],
    [
      1024,
      [
        [30.1, 15.1, 0.12],
        [513, 257, 2],
        [4011, 2013, 15.6],
      ],
    ],
  ];
  test.each(TABLE)("on %i", (devices, columns) => {
    [7.5e9, 128e9, 1e12].forEach((count, c) => {
      columns[c]?.forEach((published, i) => {
        const bytes = totalOf(stateBytes(count, RECIPES.mixed, (i + 1) as ZeroStage, devices));
        const digits = String(published).split(".")[1]?.length ?? 0;
        // the paper cuts some cells off and rounds others
        expect(Math.abs(bytes / 1e9 - published), shown(bytes / 1e9)).toBeLessThan(10 ** -digits);
      });
    });
  });
});

describe("activations of a layer, in MiB", () => {
  const model = (hidden: number, heads: number): Transformer => ({
    ...{ kind: "gpt2", layers: 1, hidden, heads, sharedHeads: heads, width: hidden / heads, inner: 4 * hidden },
    ...{ isGated: false, vocabulary: 51200, parameters: { total: 0, block: 0, embedding: 0, head: 0 } },
  });
  const kept = (of: Transformer, batch: number, [tensor, isSequence]: readonly [number, boolean], how: Recompute) => {
    const split = { batch, tokens: 2048, tensor, isSequence, hasScores: true, hasDropout: true };
    return bytesOfKept(keptTensors(of, split, how)) / 2 ** 20;
  };
  // none, tensor, with sequence, tensor with selective recomputation, all three, full recomputation
  test.each([
    [64, 6144, 4, [6752, 1264, 844, 624, 204, 96]],
    [96, 12288, 1, [2736, 552, 342, 312, 102, 48]],
    [128, 20480, 1, [3920, 840, 490, 520, 170, 80]],
    [160, 25600, 1, [4900, 1050, 612.5, 650, 212.5, 100]],
  ] as const)("with %i heads of %i", (heads, hidden, batch, published) => {
    const of = model(hidden, heads);
    const [one, tensor, sequence] = [[1, false] as const, [8, false] as const, [8, true] as const];
    expect([
      ...[kept(of, batch, one, "none"), kept(of, batch, tensor, "none"), kept(of, batch, sequence, "none")],
      ...[kept(of, batch, tensor, "attention"), kept(of, batch, sequence, "attention"), kept(of, batch, one, "full")],
    ]).toEqual(published);
  });
});

describe("ZeRO-Infinity's table", () => {
  test.each([
    [80, 10240, 0.1, 1.83, 0.05],
    [100, 20480, 0.5, 9.16, 0.12],
    [128, 25600, 1.01, 18.31, 0.2],
    [195, 65536, 10.05, 182.81, 0.76],
    [315, 163840, 101.47, 1845.7, 3.08],
  ])("%i layers of %i", (layers, hidden, trillions, statesTiB, checkpointsTiB) => {
    const count = 12 * layers * hidden ** 2;
    expect(count / 1e12).toBeCloseTo(trillions, 2);
    // 16 bytes of states and a gradient in f32
    const bytes = totalOf(stateBytes(count, RECIPES.mixed, 0, 1)) + 4 * count;
    expect(Math.abs(bytes / 2 ** 40 - statesTiB)).toBeLessThan(0.011);
    // inputs of all layers for 16 devices with batches of 2 × 1,024 in the paper's table: 32 sequences
    expect(Math.abs((2 * 32 * 1024 * hidden * layers) / 2 ** 40 - checkpointsTiB)).toBeLessThan(0.0101);
  });
});

describe("peaks that torchtitan reports, in GiB", () => {
  const base: Layout = { ...LAYOUT, zero: 3, recipe: "f32", tokens: 8192 };
  const largest = (all: readonly DeviceMemory[]): number => Math.max(...all.map(({ bytes }) => bytes)) / GIB;
  const long = (data: number, context: number, tokens: number) =>
    ({ data, context, tokens, recompute: "full" }) as const;
  const wide = { data: 8, tensor: 8, pipeline: 8, isSequence: true, recompute: "full", microbatches: 8 } as const;

  test.each([
    ["8B on 8", LLAMA_8B, { data: 8, microbatch: 2, recompute: "products" }, 82.4],
    ["8B on 128", LLAMA_8B, { data: 128, microbatch: 2, recompute: "products" }, 67.0],
    ["8B on 8, compiled", LLAMA_8B, { data: 8, microbatch: 2, recompute: "products" }, 77.0],
    ["8B on 128, compiled", LLAMA_8B, { data: 128, microbatch: 2, recompute: "products" }, 62.0],
    ["8B, 32,768 tokens", LLAMA_8B, long(8, 1, 32_768), 83.9],
    ["8B, 65,536 tokens", LLAMA_8B, long(4, 2, 65_536), 84.2],
    ["8B, 131,072 tokens", LLAMA_8B, long(2, 4, 131_072), 84.0],
    ["8B, 262,144 tokens", LLAMA_8B, long(1, 8, 262_144), 84.5],
    ["70B", LLAMA_70B, { data: 32, tensor: 8, isSequence: true, microbatch: 16, recompute: "full" }, 71.9],
    ["405B, interleaved", LLAMA_405B, { ...wide, microbatch: 4, chunks: 2 }, 72.7],
  ] as readonly (readonly [string, Transformer, Partial<Layout>, number])[])("%s", (_, model, layout, measured) => {
    expect(Math.abs(largest(memoryOf(model, { ...base, ...layout })) / measured - 1)).toBeLessThan(0.1);
  });

  // the batch is published; without an option there are as many microbatches as devices in the pipeline
  const simple = { ...wide, microbatch: 4 };
  const longer = (data: number, context: number, tokens: number) => ({ ...wide, microbatch: 1, data, context, tokens });

  test.each([
    ["8,192 tokens", simple, 82.5, 15.9],
    ["32,768 tokens", longer(8, 1, 32_768), 75.3, 8.7],
    ["65,536 tokens", longer(4, 2, 65_536), 75.9, 9.3],
    ["131,072 tokens", longer(2, 4, 131_072), 77.1, 10.5],
    ["262,144 tokens", longer(1, 8, 262_144), 84.9, 18.3],
  ] as readonly (readonly [string, Partial<Layout>, number, number])[])(
    "of 405B without interleaving, %s, are further off, by what is reserved beyond the terms",
    (_, layout, measured, beyond) => {
      expect(measured - largest(memoryOf(LLAMA_405B, { ...base, ...layout }))).toBeCloseTo(beyond, 1);
    },
  );

  it("of 405B without interleaving have no microbatch that explains them", () => {
    const of = (microbatch: number): number =>
      largest(memoryOf(LLAMA_405B, { ...base, ...wide, microbatch, microbatches: 32 / microbatch }));
    expect([2, 4, 8].map((n) => Number(of(n).toFixed(1)))).toEqual([57.1, 66.6, 73.7]);
    // results of all microbatches: logits of 16 bits on the last stage
    const logits = (32 * 8192 * LLAMA_405B.vocabulary * 2) / 8 / GIB;
    const last = memoryOf(LLAMA_405B, { ...base, ...simple }).find(({ role }) => role.name === "last");
    expect(logits).toBeCloseTo(7.8, 1);
    expect((last?.bytes ?? 0) / GIB + (7 / 8) * logits).toBeCloseTo(66, 1);
  });
});

describe("a pipeline", () => {
  it("has fewer layers at its ends", () => {
    expect(layersOfStages(126, 16)).toEqual([7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7]);
    expect(layersOfStages(5, 2)).toEqual([3, 2]);
  });

  it("holds fewer microbatches the later a stage is", () => {
    const layout = { ...LAYOUT, pipeline: 4, microbatches: 8 };
    expect(memoryOf(LLAMA_8B, layout).map(({ role }) => [role.name, role.inFlight])).toEqual([
      ["first", 4],
      ["middle", 3],
      ["last", 1],
    ]);
  });

  it("is refused where it cannot be divided, with the numbers", () => {
    expect(() => memoryOf(LLAMA_8B, { ...LAYOUT, tensor: 5 })).toThrow("32 heads are not divisible by tensor=5");
    expect(() => memoryOf(LLAMA_8B, { ...LAYOUT, pipeline: 64 })).toThrow("32 layers for 64 pieces");
  });
});

describe("a choice", () => {
  const options = { devices: 64, batch: 64, rates: RATES, fixed: { tokens: 8192 }, mostTensor: 8 };

  it("fits, is faster than all others that fit, and takes more time with less memory", () => {
    const times = [80e9, 60e9, 40e9].map((memoryBytes) => {
      const all = search(LLAMA_70B, { ...options, memoryBytes });
      expect(all.length).toBeGreaterThan(0);
      for (const one of all) expect(one.bytes).toBeLessThanOrEqual(memoryBytes);
      return all[0]?.time.totalMs ?? 0;
    });
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });

  it("of 16,384 devices is made at once, and there is none where nothing fits", () => {
    expect(search(LLAMA_405B, { ...options, devices: 16_384, batch: 2048, memoryBytes: 80e9 })[0]?.bytes).toBeLessThan(
      80e9,
    );
    expect(search(LLAMA_405B, { ...options, devices: 8, batch: 8, memoryBytes: 80e9 })).toEqual([]);
  });
});

describe("a block as it is planned here", () => {
  it("keeps less than published systems keep, and a part of it where heads and inner elements are shared out", () => {
    const small = llama(512, 2, 8, 1536);
    const layout = { ...LAYOUT, tokens: 1024 };
    const [whole, part] = [layout, { ...layout, tensor: 4 }].map((each) => plannedBlock(small, each)?.keptBytes ?? 0);
    const published = bytesOfKept(keptTensors(small, { ...layout, batch: 1 }, "none"));
    expect(whole).toBeGreaterThan(0);
    expect(whole).toBeLessThan(0.6 * published);
    expect(part).toBeLessThan(whole as number);
    expect(plannedBlock(small, { ...layout, tensor: 4, isSequence: true })).toBeNull();
  });
});
