/**
 * @file `tidemark fit`: peaks of PyTorch's allocator beside those that were measured, batches changed in programs with fixed sizes, models from
 * configs, policies. Recorded files are beside the checkout, not in it.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { largestBatch } from "../src/fit/largest-batch.ts";
import { blocksOf } from "../src/fit/policy/blocks.ts";
import { choosePolicy } from "../src/fit/policy/choose.ts";
import { policyText } from "../src/fit/policy/print.ts";
import { modelOfConfig } from "../src/fit/sources/configs.ts";
import { eagerProgram } from "../src/fit/sources/exported.ts";
import { eagerStep } from "../src/fit/torch/step.ts";
import { tidemark } from "./support/command.ts";
import { expectMeasured, graphOf, hasLarge, peaks } from "./support/measured-peaks.ts";
import { lastLine } from "./support/outcome.ts";
import { MODELS } from "./support/recorded-models.ts";

const GPT2 = { model_type: "gpt2", n_embd: 768, n_head: 12, n_layer: 12, vocab_size: 50257, n_positions: 1024 };
const TINY = { ...GPT2, n_embd: 64, n_head: 4, n_layer: 4, vocab_size: 1000, n_positions: 128 };
const LLAMA = {
  ...{ model_type: "llama", hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2, num_attention_heads: 4 },
  ...{ num_key_value_heads: 2, vocab_size: 500, max_position_embeddings: 64 },
};

describe.runIf(hasLarge)("peaks of PyTorch's allocator", () => {
  const QUICK = ["gpt2-small:4:sgd", "resnet50:16:adamw", "bert-base:8:sgd", "unet-64:8:sgd"];
  const quick = peaks.filter((one) => QUICK.includes(`${one.case}:${one.batch}:${one.optimizer}`));

  it("are those that were measured", () => {
    expect(quick).toHaveLength(QUICK.length);
    for (const one of quick) expectMeasured(one);
  });

  it("are the same for a config as for the exported program", () => {
    const exported = eagerStep(eagerProgram(graphOf("gpt2-small", 4)), "sgd").peak.bytes;
    const config = eagerStep(eagerProgram(modelOfConfig(GPT2, { batch: 4 })), "sgd").peak.bytes;
    expect(Math.abs(config / exported - 1)).toBeLessThan(0.001);
  });
});

describe("models from configs", () => {
  it("have the published numbers of parameters", () => {
    const count = (json: object): number =>
      Object.values(modelOfConfig(json, { batch: 1, tokens: 8 }).params).reduce(
        (sum, { elements }) => sum + elements,
        0,
      );
    expect(count(GPT2)).toBe(124_439_808);
    const bert = {
      ...{ model_type: "bert", hidden_size: 768, num_attention_heads: 12, num_hidden_layers: 12 },
      ...{ intermediate_size: 3072, vocab_size: 30522 },
    };
    expect(count(bert)).toBe(109_514_298);
    const llama8 = {
      ...{
        model_type: "llama",
        hidden_size: 4096,
        intermediate_size: 14336,
        num_hidden_layers: 32,
        num_attention_heads: 32,
      },
      ...{ num_key_value_heads: 8, vocab_size: 128256, max_position_embeddings: 131072 },
    };
    expect(count(llama8)).toBe(8_030_261_248);
    expect(
      count({
        ...{ model_type: "vit", hidden_size: 768, num_attention_heads: 12 },
        ...{ num_hidden_layers: 12, intermediate_size: 3072, num_labels: 1000 },
      }),
    ).toBe(86_567_656);
  });

  it("have heads, activations and results of their kind", () => {
    const count = (json: object): number =>
      Object.values(modelOfConfig(json, { batch: 1, tokens: 8 }).params).reduce(
        (sum, { elements }) => sum + elements,
        0,
      );
    const gemma = {
      ...{ model_type: "gemma", hidden_size: 2048, intermediate_size: 16384, num_hidden_layers: 18, head_dim: 256 },
      ...{ num_attention_heads: 8, num_key_value_heads: 1, vocab_size: 256000, max_position_embeddings: 8192 },
    };
    expect(count(gemma)).toBe(2_506_172_416);
    const encoder = {
      ...{ model_type: "bert", hidden_size: 768, num_attention_heads: 12, num_hidden_layers: 12 },
      ...{ intermediate_size: 3072, vocab_size: 30522 },
    };
    const roberta = {
      ...encoder,
      model_type: "roberta",
      vocab_size: 50265,
      max_position_embeddings: 514,
      type_vocab_size: 1,
    };
    expect(count(roberta)).toBe(124_697_433);
    expect(count({ ...encoder, architectures: ["BertForSequenceClassification"] })).toBe(109_483_778);
    const tied = { ...LLAMA, tie_word_embeddings: true };
    expect(count(LLAMA) - count(tied)).toBe(500 * 64);
    expect(count({ ...LLAMA, mlp_bias: true }) - count(LLAMA)).toBe(2 * (128 + 128 + 64));
    expect(count({ ...LLAMA, architectures: ["LlamaForSequenceClassification"] })).toBe(count(tied) + 2 * 64);
  });

  it("keep what norms read in f32, also in bf16", () => {
    const kept = (json: object): number =>
      eagerStep(eagerProgram(modelOfConfig(json, { batch: 8 }), { floatBytes: 2, loss: "cross-entropy" }), "sgd").peak
        .byPurpose.activations;
    const deeper = { ...LLAMA, num_hidden_layers: 3 };
    // two norms in each layer of [8, 64, 64]: 4 bytes an element of what they read, beside 2 of what they write
    const [elements, inner] = [8 * 64 * 64, 8 * 64 * 128];
    const halves = 2 * (2 * elements + elements + 3 * elements + elements + 4 * inner);
    expect(kept(deeper) - kept(LLAMA)).toBeGreaterThan(2 * 4 * elements + halves);
  });

  it("are refused where they cannot be followed", () => {
    const refused = (json: object): string => {
      try {
        modelOfConfig(json, { batch: 1 });
      } catch (error) {
        return String(error);
      }
      return "";
    };
    expect(refused([])).toContain("the config has no model_type");
    expect(refused({ ...LLAMA, num_attention_heads: 3 })).toContain("3 heads in 64 hidden elements");
    expect(refused({ ...LLAMA, num_hidden_layers: 1e9 })).toContain("1,000,000,000 layers");
    expect(refused({ ...LLAMA, hidden_act: "sine" })).toContain('the activation "sine"');
  });

  it("are refused where they are not known", () => {
    expect(() => modelOfConfig({ model_type: "mamba" }, { batch: 1 })).toThrow(/known are llama/);
    expect(() => modelOfConfig({ model_type: "gpt2" }, { batch: 1 })).toThrow(/has no n_embd/);
    expect(() => modelOfConfig(TINY, { batch: 1, tokens: 4096 })).toThrow(/positions for 128/);
  });

  it("take half of the activations in bf16, and more with dropout", () => {
    const peak = (floatBytes: number | undefined, dropout: boolean): number => {
      const model = modelOfConfig(LLAMA, { batch: 8, dropout });
      return eagerStep(eagerProgram(model, { floatBytes, loss: "cross-entropy" }), "adamw").peak.byPurpose.parameters;
    };
    expect(peak(2, false)).toBeLessThan(0.7 * peak(undefined, false));
    const kept = (dropout: boolean): number =>
      eagerStep(eagerProgram(modelOfConfig(TINY, { batch: 8, dropout })), "sgd").peak.bytes;
    expect(kept(true)).toBeGreaterThan(kept(false));
  });
});

describe("policies", () => {
  const eager = eagerProgram(modelOfConfig(TINY, { batch: 64 }));

  it("find the blocks of a model", () => {
    const blocks = blocksOf(eager.program, { isHalf: false, type: eager.type });
    expect(blocks.map(({ module }) => module)).toEqual([0, 1, 2, 3].map((i) => `transformer.h.${i}`));
    expect(blocks[0]?.kept.map(({ operation, occurrence }) => `${operation} ${occurrence}`)).toEqual([
      "aten.addmm.default 0",
      "aten._scaled_dot_product_efficient_attention.default 0",
      "aten.addmm.default 1",
      "aten.addmm.default 2",
      "aten.addmm.default 3",
    ]);
  });

  it("know which operations heads that share keys are", () => {
    const { program, type } = eagerProgram(modelOfConfig(LLAMA, { batch: 2 }));
    const kept = (isHalf: boolean): readonly string[] =>
      (blocksOf(program, { isHalf, type })[0]?.kept ?? []).map(({ operation }) => operation);
    expect(kept(false)).toEqual(new Array(7).fill("aten.mm.default"));
    expect(kept(true)).toContain("aten._scaled_dot_product_flash_attention.default");
  });

  it("lower the peak, whole blocks most, and are chosen for the budget", () => {
    const request = { optimizer: "sgd", isHalf: false, isSelective: true } as const;
    const { bytes } = eagerStep(eager, "sgd").peak;
    const none = choosePolicy(eager, { ...request, budget: bytes });
    expect([none.whole.length, none.selective.length]).toEqual([0, 0]);
    const some = choosePolicy(eager, { ...request, budget: 0.9 * bytes });
    expect(some.after.peak.bytes).toBeLessThanOrEqual(0.9 * bytes);
    expect(some.selective.length + some.whole.length).toBeGreaterThan(0);
    const least = choosePolicy(eager, { ...request, budget: 1 });
    expect(least.after.peak.bytes).toBeLessThan(some.after.peak.bytes);
    expect(least.after.heldBytes).toBe(least.before.heldBytes);
    // as a share of what derivatives keep, for torch.compile, wherever the peak is
    expect(least.after.savedBytes).toBeGreaterThan(0);
    expect(least.after.savedBytes).toBeLessThan(0.2 * least.before.savedBytes);
    const text = policyText(some, "torch");
    expect(text).toContain("use_reentrant=False");
    expect(text).toContain("transformer.h.0");
    expect(policyText(some, "jax")).toContain("save_only_these_names");
    const layers = choosePolicy(eager, { ...request, isSelective: false, budget: 0.9 * bytes });
    expect(policyText(layers, "megatron")).toContain(`--recompute-num-layers ${layers.whole.length}`);
  });
});

describe("the largest batch", () => {
  it("is the last that fits", () => {
    const line = (batch: number): number => 100 + 7 * batch + (batch % 3);
    for (const budget of [100, 107, 108, 500, 12345]) {
      const best = largestBatch(line, budget);
      if (best > 0) expect(line(best)).toBeLessThanOrEqual(budget);
      expect(line(best + 1)).toBeGreaterThan(budget);
    }
  });
});

describe("tidemark fit", () => {
  const folder = mkdtempSync(join(tmpdir(), "fit-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const config = join(folder, "config.json");
  writeFileSync(config, JSON.stringify(TINY));

  it("reports both sides of a config as JSON", async () => {
    const { code, out } = await tidemark(
      "fit",
      config,
      ...["--batch", "4", "--points", "2", "--budget", "100MB", "--json"],
    );
    expect(code).toBe(0);
    const report = lastLine(out) as Readonly<Record<string, number>> & {
      readonly points: object[];
      readonly unknown: string[];
    };
    expect(report.planPeakBytes).toBeLessThan(report.torchPeakBytes!);
    expect(report.minimumBytes).toBeLessThan(report.planPeakBytes!);
    expect(report.persistentBytes).toBeGreaterThan(0);
    expect(report.points.length).toBeGreaterThan(0);
    expect(report.largestBatch).toBeGreaterThan(4);
    expect(report.unknown).toEqual([]);
  });

  it("says what is wrong with what it is given", async () => {
    const wrong = async (...words: string[]): Promise<string> => {
      const { code, err } = await tidemark("fit", ...words);
      expect(code).toBe(1);
      return err;
    };
    expect(await wrong(config, "--policy", "torch")).toContain("--policy without --budget");
    expect(await wrong(config, "--size", "T=0")).toContain("give sizes by name");
    expect(await wrong(config, "--size", "H=3")).toContain("batch and T");
    expect(await wrong("mlp", "--batch", "3")).toContain("has the batch that it is written with");
    expect(await wrong(config, "--batch", "3", "--size", "batch=5")).toContain("--batch with --size batch=…");
    writeFileSync(join(folder, "bad.json"), "{");
    expect(await wrong(join(folder, "bad.json"))).toContain("is not JSON");
  });

  it("says that no plan fits", async () => {
    const { code, err, out } = await tidemark("fit", "mlp", "--points", "2", "--budget", "1KiB");
    expect(err).toBe("");
    expect(code).toBe(0);
    expect(out).toContain("planned, over the budget");
    expect(out).toContain("no plan fits 1 KiB");
    const fitting = await tidemark("fit", "mlp", "--points", "2", "--budget", "100MiB");
    expect(fitting.out).toContain("planned, for the budget");
    expect(fitting.out).not.toContain("no plan fits");
  });

  it("counts programs of this library too", async () => {
    const { code, out } = await tidemark("fit", "mlp", "--points", "2", "--optimizer", "sgd");
    expect(code).toBe(0);
    expect(out).toContain("PyTorch as it is");
  });

  it.runIf(hasLarge)("takes nodes of ONNX as operations of PyTorch", async () => {
    const peakOf = async (file: string): Promise<number> => {
      const { code, out } = await tidemark("fit", join(MODELS, "unet", file), "--points", "2", "--json");
      expect(code).toBe(0);
      const report = lastLine(out) as { readonly torchPeakBytes: number; readonly unknown: string[] };
      expect(report.unknown).toEqual([]);
      return report.torchPeakBytes;
    };
    const difference = (await peakOf("model.onnx")) - (await peakOf("model.pt2"));
    // of 1.4 MiB beside the workspaces
    expect(Math.abs(difference)).toBeLessThan(64 * 1024);
  });

  it.runIf(hasLarge)("changes the batch of small exported models", async () => {
    for (const name of ["cnn", "gpt2", "lstm"]) {
      const { code, out } = await tidemark(
        "fit",
        join(MODELS, name, "model.pt2"),
        "--batch",
        "6",
        "--points",
        "2",
        "--json",
      );
      expect(code).toBe(0);
      const report = lastLine(out) as { readonly batch: number; readonly planPeakBytes: number | null };
      expect(report.batch).toBe(6);
      expect(report.planPeakBytes).toBeGreaterThan(0);
    }
  });
});

describe.runIf(hasLarge)("an ONNX model with a fixed batch", () => {
  const fitted = async (name: string, file: string, ...more: string[]) => {
    const { code, out, err } = await tidemark("fit", join(MODELS, name, file), "--points", "2", "--json", ...more);
    expect(`${code} ${err}`).toMatch(/^0 /);
    return lastLine(out) as {
      readonly batch: number;
      readonly torchPeakBytes: number;
      readonly planPeakBytes: number;
      readonly largestBatch: number | null;
      readonly unknown: readonly string[];
    };
  };

  it.each(["mlp", "gpt2"])("%s has other batches, and what they take as .pt2", async (name) => {
    const [onnx, exported] = [
      await fitted(name, "model.onnx", "--batch", "64"),
      await fitted(name, "model.pt2", "--batch", "64"),
    ];
    expect(onnx.unknown).toEqual([]);
    expect(onnx.batch).toBe(64);
    expect(Math.abs(onnx.planPeakBytes / exported.planPeakBytes - 1)).toBeLessThan(0.02);
    expect(Math.abs(onnx.torchPeakBytes / exported.torchPeakBytes - 1)).toBeLessThan(0.02);
  });

  it("takes the batch once, by --batch or by the name of its open size", async () => {
    const open = join(MODELS, "extra/dyn.pt2");
    const { code, err } = await tidemark("fit", open, "--batch", "3", "--size", "s17=5");
    expect(code).toBe(1);
    expect(err).toContain("--batch with --size s17=…");
    const scaled = await tidemark("scale", open, "--devices", "2", "--batch", "4", "--size", "s17=5");
    expect(scaled.err).toContain("--batch with --size s17=…");
  });

  it("has a largest batch", async () => {
    const { largestBatch } = await fitted("mlp", "model.onnx", "--budget", "70MB");
    expect(largestBatch).toBeGreaterThan(4);
  });

  it("has no size that it does not have", async () => {
    for (const size of ["T=3", "batch=8"]) {
      const { code, err } = await tidemark("fit", join(MODELS, "gpt2/model.onnx"), "--size", size);
      expect(code).toBe(1);
      expect(err).toContain("all sizes of the model are fixed; --batch N changes its batch");
    }
  });
});
