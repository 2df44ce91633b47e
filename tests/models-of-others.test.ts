/**
 * @file Models that PyTorch exported, beside what it recorded of them: outputs and gradients. Here those that take little time; all of them,
 * in all forms and under budgets, in models-of-others-all.test.ts (`npm run test:slow`).
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { load, plan, random, type Tensor, tensor, tree } from "../src/api/index.ts";
import { main } from "../src/cli/main.ts";
import { readOnnx } from "../src/exchange/onnx/index.ts";
import { readPt2 } from "../src/exchange/pt2/index.ts";
import { lora } from "../src/nn/index.ts";
import { readModel } from "../src/node/index.ts";
import { expectRecorded, expectSameBits, hasModels, MODELS } from "./support/recorded-models.ts";

describe.skipIf(!hasModels)("a model of PyTorch", () => {
  it.each([
    ["mlp", "model.core.pt2"],
    ["mlp", "model.onnx"],
    ["cnn", "model.pt2"],
    ["cnn", "model.onnx"],
    ["lstm", "model.pt2"],
    ["gpt2", "model.onnx"],
  ])("computes and trains as recorded: %s from %s", expectRecorded);

  it("has the same bits under the smallest budget", () => expectSameBits("mlp", "model.pt2"));
});

describe.skipIf(!hasModels)("adapters on models of PyTorch", () => {
  it.each([
    ["gpt2", "model.pt2", ["c_attn", "wte"], { "in-out": 2, table: 1 }],
    ["vit", "model.pt2", ["q_proj", "projection"], { "out-in": 2, windows: 1 }],
    ["lstm", "model.pt2", ["*"], { table: 1, "out-in": 3, "in-out": 2 }],
  ] as const)("give what merged weights give: %s from %s", async (name, file, targets, uses) => {
    const model = await readModel(join(MODELS, name, file));
    const tuned = lora(model, { rank: 4, alpha: 8, targets });
    const found: Record<string, number> = {};
    for (const { use } of tuned.targets) found[use] = (found[use] ?? 0) + 1;
    expect(found).toEqual(uses);
    let seed = 1;
    const adapter = tree.map((leaf) => random.normal(random.key(seed++), leaf.shape).mul(0.05), tuned.init(0));
    const { input } = load(readFileSync(join(MODELS, name, "io.safetensors"))) as { input: Tensor };
    const [output = ""] = model.outputs;
    const adapted = tuned.apply(model.params, adapter, [input])[output] as Tensor;
    const merged = model.apply(tuned.merge(model.params, adapter), [input])[output] as Tensor;
    const plain = model.apply(model.params, [input])[output] as Tensor;
    const largest = merged.abs().max().item();
    expect(adapted.sub(merged).abs().max().item()).toBeLessThan(2e-6 * largest);
    expect(adapted.sub(plain).abs().max().item()).toBeGreaterThan(1e-2 * largest);
  });
});

describe.skipIf(!hasModels)("other exports", () => {
  const bytes = (path: string): Uint8Array => readFileSync(join(MODELS, path));

  it("with an open batch plan at any batch within the range", () => {
    const model = readPt2(bytes("extra/dyn.pt2"));
    expect(model.inputs.map(({ shape }) => shape)).toEqual([["s17", 16], ["s17"]]);
    const specs = model.specs({ s17: 12 });
    const planned = plan((params: typeof model.params, x: Tensor, y: Tensor) => model.apply(params, [x, y]));
    expect(planned(model.params, specs.x as Tensor, specs.y as Tensor).arenaBytes).toBeGreaterThan(0);
  });

  it("of forward and backward have the gradients among their results", () => {
    const model = readPt2(bytes("extra/joint.pt2"));
    expect(model.outputs).toContain("gradient_to_parameter.a.weight");
    expect(model.outputs.length).toBe(7);
  });

  it("without weights plan", () => {
    const model = readPt2(bytes("large/unet-64.b1.graph.pt2"));
    expect(model.unknown).toEqual({});
    const planned = plan((params: typeof model.params, x: Tensor) => model.apply(params, [x]));
    expect(planned(model.params, model.specs().x as Tensor).arenaBytes).toBeGreaterThan(2 ** 20);
  });
});

describe.skipIf(!hasModels)("the command line", () => {
  const folder = join(MODELS, "mlp");

  it("lists a model, and compares it with what was recorded", async () => {
    const listed = await tidemark("import", join(folder, "model.onnx"));
    expect(listed.out).toContain("parameters: 4 with 2,762 elements");
    const files = ["--io", join(folder, "io.safetensors"), "--grads", join(folder, "grads.safetensors")];
    const { code, out } = await tidemark("import", join(folder, "model.pt2"), ...files, "--json");
    expect(code).toBe(0);
    const { outputs, loss, grads } = JSON.parse(out);
    expect(outputs.maxRel).toBeLessThan(1e-5);
    expect(loss).toBeCloseTo(-0.0426987, 6);
    expect(grads).toMatchObject({ missing: [], rounding: [], compared: 4 });
    expect(grads.maxRel).toBeLessThan(1e-5);
  });

  it("exports a model as ONNX, which computes and trains as recorded, and its weights", async () => {
    const out = mkdtempSync(join(tmpdir(), "export-"));
    const files = ["--io", join(folder, "io.safetensors"), "--grads", join(folder, "grads.safetensors"), "--json"];
    const path = join(out, "mlp.onnx");
    const written = await tidemark("export", join(folder, "model.pt2"), "--out", path, "--json");
    expect(JSON.parse(written.out)).toMatchObject({ file: path, format: "onnx" });
    const { outputs, grads } = JSON.parse((await tidemark("import", path, ...files)).out);
    expect([outputs.maxRel < 1e-5, grads.maxRel < 1e-5, grads.missing, grads.compared]).toEqual([true, true, [], 4]);
    const weights = join(out, "mlp.safetensors");
    await tidemark("export", join(folder, "model.pt2"), "--to", "safetensors", "--out", weights);
    expect(readFileSync(weights).length).toBe(readFileSync(join(folder, "model.safetensors")).length);
    expect((await tidemark("export", path, "--out", path)).err).toContain("would be overwritten");
    expect((await tidemark("export", path, "--size", "batch")).err).toContain("--size batch");
    rmSync(out, { recursive: true });
  });

  it("exports the loss of a training program, and a function of a module", async () => {
    const out = mkdtempSync(join(tmpdir(), "export-"));
    const own = join(out, "own.mjs");
    const api = new URL("../src/api/index.ts", import.meta.url).href;
    writeFileSync(
      own,
      `import { spec, tensor } from ${JSON.stringify(api)};
       export const program = { params: () => ({ w: tensor([2, 3]) }), batch: () => [spec([2])], run: (p, x) => x.mul(p.w) };`,
    );
    expect((await tidemark("export", own, "--out", join(out, "own.onnx"))).code).toBe(0);
    const model = readOnnx(readFileSync(join(out, "own.onnx")));
    expect(model.apply(model.params, { x: tensor([1, 1]) }).result?.toArray()).toEqual([2, 3]);
    expect((await tidemark("export", "mlp", "--out", join(out, "loss.onnx"))).code).toBe(0);
    expect(Object.keys(readOnnx(readFileSync(join(out, "loss.onnx"))).params)).toHaveLength(6);
    rmSync(out, { recursive: true });
  });

  it("plans a model, and refuses what is none", async () => {
    const planned = await tidemark("plan", join(folder, "model.onnx"), "--json");
    expect(JSON.parse(planned.out).arenaBytes).toBeGreaterThan(3 * 4 * 2762);
    expect((await tidemark("import", join(folder, "io.safetensors"))).err).toContain("is no model that can be read");
    expect((await tidemark("import", join(folder, "model.pt2"), "--grads", "x")).err).toContain("--grads without --io");
  });

  it("says what to do next, without a line of its own file", async () => {
    const bare = join(MODELS, "large/bert-base.b1.graph.pt2");
    const problem = "lacks the bytes of";
    expect((await tidemark("import", bare, "--io", join(folder, "io.safetensors"))).err).toContain(problem);
    expect((await tidemark("export", bare)).err).toContain(problem);
    expect((await tidemark("import", join(folder, "model.safetensors"))).err).toContain(
      "it has weights and no program",
    );
    const open = await tidemark("fit", join(MODELS, "extra/dyn.pt2"));
    expect(open.err).toMatch(/^InvalidArgument: open sizes of the model: (\w+)\n {2}help: .* --size \1=8\n$/);
  });
});

async function tidemark(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const io = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
  };
  return { code: await main(argv, io), out, err };
}
