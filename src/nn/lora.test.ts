/** @file Adapters: what they compute, what they train, how they are merged, saved and read, and what is refused. */
import { describe, expect, it } from "vitest";
import {
  checkpoint,
  compile,
  fileInfo,
  grad,
  load,
  matmul,
  plan,
  random,
  save,
  specsOf,
  type Tensor,
  tensor,
  transpose,
  tree,
  valueAndGrad,
} from "../api/index.ts";
import { adam } from "../optim/index.ts";
import * as nn from "./index.ts";

const x = random.normal(random.key(3), [5, 8]);

/** Factors whose product is not zero. */
const filled = (adapter: nn.LoraParams, seed = 7): nn.LoraParams => {
  let n = seed;
  return tree.map((leaf) => random.normal(random.key(n++), leaf.shape).mul(0.3), adapter);
};

const furthest = (a: Tensor, b: Tensor): number => a.sub(b).abs().max().item();

/** Adapted and merged agree, and differ from the model alone. */
function expectMerged<P extends object>(
  model: nn.AdaptableModel<P, [Tensor], Tensor>,
  params: P,
  input: Tensor,
  options: nn.LoraOptions,
): nn.LoraModel<P, [Tensor], Tensor> {
  const tuned = nn.lora(model, options);
  const start = tuned.init(1);
  expect(furthest(tuned.apply(params, start, input), model.apply(params, input))).toBeLessThan(1e-6);
  const adapter = filled(start);
  const adapted = tuned.apply(params, adapter, input);
  expect(furthest(adapted, model.apply(params, input))).toBeGreaterThan(1e-2);
  expect(furthest(adapted, model.apply(tuned.merge(params, adapter), input))).toBeLessThan(2e-5);
  const again = tuned.load(tuned.save(adapter));
  expect(save(again)).toEqual(save(adapter));
  return tuned;
}

const mlp = nn.sequential(nn.linear(8, 16), nn.tanh(), nn.linear(16, 4));
const plainMlp = {
  init: mlp.init,
  apply: (params: nn.ParamsOf<typeof mlp>, input: Tensor) => mlp.apply(params, input),
};

describe("adapters", () => {
  it("agree with merged weights in linear layers of either orientation", () => {
    const tuned = expectMerged(plainMlp, mlp.init(0), x, { rank: 2, targets: ["*"], alpha: 3 });
    expect(tuned.targets.map(({ path, use }) => [path, use])).toEqual([
      ["0.w", "in-out"],
      ["2.w", "in-out"],
    ]);
    expect(tuned.scale).toBe(1.5);
    // as PyTorch keeps it, [out, in], and on the left of a product
    const theirs = {
      params: { "fc.weight": random.normal(random.key(1), [8, 8]), left: random.normal(random.key(2), [3, 5]) },
      apply: (p: { "fc.weight": Tensor; left: Tensor }, input: Tensor) =>
        matmul(p.left, matmul(input, transpose(p["fc.weight"]))),
    };
    const both = expectMerged(theirs, theirs.params, x, { rank: 2, targets: ["fc", "left"], input: [x] });
    expect(both.targets.map(({ use }) => use)).toEqual(["out-in", "out-in"]);
  });

  it("agree in convolutions, tables, tied tables, and weights that are read in other ways", () => {
    const image = random.normal(random.key(5), [2, 3, 6, 6]);
    const conv = nn.conv2d(3, 4, 3, { stride: 2, padding: 1 });
    expectMerged({ init: conv.init, apply: conv.apply }, conv.init(0), image, { rank: 2, targets: ["w"] });
    const grouped = nn.conv2d(4, 4, 3, { groups: 2 });
    const wide = random.normal(random.key(5), [2, 4, 6, 6]);
    expectMerged({ init: grouped.init, apply: grouped.apply }, grouped.init(0), wide, { rank: 2, targets: ["w"] });
    const tied = nn.module({ table: nn.embedding(6, 8), body: nn.linear(8, 8) }, ({ table, body }, ids, own) =>
      matmul(body(table(ids)), transpose(own.table.table)),
    );
    const ids = tensor([[1, 4, 2]], { dtype: "i32" });
    const tuned = expectMerged({ init: tied.init, apply: tied.apply }, tied.init(0), ids, {
      rank: 2,
      targets: ["table", "body"],
    });
    expect(fileInfo(tuned.save(tuned.init(0))).tensors.map(({ name, shape }) => [name, shape.join()])).toEqual([
      ["base_model.model.body.lora_A.weight", "2,8"],
      ["base_model.model.body.lora_B.weight", "8,2"],
      ["base_model.model.table.lora_embedding_A", "2,6"],
      ["base_model.model.table.lora_embedding_B", "8,2"],
    ]);
    const odd = { params: { w: x }, apply: (p: { w: Tensor }, input: Tensor) => p.w.square().mul(input).sum() };
    expectMerged(odd, odd.params, x, { rank: 2, targets: ["w"] });
  });

  it("reach into checkpointed parts, and into attention", () => {
    const inner = checkpoint((w: Tensor, input: Tensor) => matmul(input, w).tanh());
    const model = {
      params: { w: random.normal(random.key(1), [8, 8]) },
      apply: (p: { w: Tensor }, v: Tensor) => inner(p.w, v),
    };
    const tuned = expectMerged(model, model.params, x, { rank: 2, targets: ["w"], input: [x] });
    expect(tuned.targets[0]?.use).toBe("in-out");
    const block = nn.transformerBlock(8, { heads: 2, causal: true });
    const own = { init: block.init, apply: (p: nn.ParamsOf<typeof block>, v: Tensor) => block.apply(p, v) };
    expectMerged(own, block.init(0), x, { rank: 2, targets: ["attention.*", "up"] });
  });

  it("are all that is trained: nothing is kept or computed for frozen weights", () => {
    const params = mlp.init(0);
    const tuned = nn.lora(plainMlp, { rank: 2, targets: ["*"] });
    const both = { params, adapter: filled(tuned.init(0)) };
    const slopes = grad((p: typeof both) => tuned.apply(p.params, p.adapter, x).square().sum())(both);
    expect(tree.flatten(slopes.params).leaves.every((leaf) => leaf.data().every((v) => v === 0))).toBe(true);
    const exact = grad((own: nn.LoraParams) => plainMlp.apply(tuned.merge(params, own), x).square().sum())(
      both.adapter,
    );
    for (const name of ["0.w", "2.w"]) {
      expect(furthest(slopes.adapter[name]?.a as Tensor, exact[name]?.a as Tensor)).toBeLessThan(1e-4);
      expect(furthest(slopes.adapter[name]?.b as Tensor, exact[name]?.b as Tensor)).toBeLessThan(1e-4);
    }
    const wide = nn.sequential(nn.linear(64, 256), nn.tanh(), nn.linear(256, 64));
    const optimizer = adam({ lr: 1e-3 });
    const arena = (train: (state: never, input: Tensor) => unknown, start: object): number => {
      const state = specsOf(() => optimizer.init(start))();
      return plan(train as (...args: readonly object[]) => unknown, { donate: [0] })(
        state,
        random.normal(random.key(0), [16, 64]),
      ).arenaBytes;
    };
    const all = arena((state: { params: never }, input: Tensor) => {
      const [loss, g] = valueAndGrad((p: never) => wide.apply(p, input).square().mean())(state.params);
      return [optimizer.update(state as never, g), loss];
    }, wide.init(0));
    const few = nn.lora(wide, { rank: 2, targets: ["*"] });
    const frozen = wide.init(0);
    const adapted = arena((state: { params: never }, input: Tensor) => {
      const [loss, g] = valueAndGrad((p: never) => few.apply(frozen, p, input).square().mean())(state.params);
      return [optimizer.update(state as never, g), loss];
    }, few.init(0));
    expect(adapted).toBeLessThan(0.5 * all);
  });

  it("learn in a compiled step with the frozen weights as an argument", () => {
    const params = mlp.init(0);
    const tuned = nn.lora(plainMlp, { rank: 4, targets: ["*"], alpha: 8 });
    const optimizer = adam({ lr: 1e-2 });
    const y = random.normal(random.key(9), [5, 4]);
    const step = compile(
      (state: ReturnType<typeof optimizer.init<nn.LoraParams>>, base: typeof params, input: Tensor) => {
        const loss = (own: nn.LoraParams): Tensor => tuned.apply(base, own, input).sub(y).square().mean();
        const [value, slopes] = valueAndGrad(loss)(state.params);
        return [optimizer.update(state, slopes), value] as const;
      },
      { donate: [0] },
    );
    let state = optimizer.init(tuned.init(0));
    const losses: number[] = [];
    for (let i = 0; i < 40; i++) {
      const [next, loss] = step(state, params, x);
      state = next;
      losses.push(loss.item());
    }
    expect(losses.at(-1)).toBeLessThan(0.2 * (losses[0] as number));
  });
});

describe("files and mistakes", () => {
  const tuned = nn.lora(plainMlp, { rank: 2, targets: ["0"], alpha: 4 });

  it("reads names with and without prefixes, and options from a configuration", () => {
    const adapter = filled(tuned.init(0));
    const { a, b } = adapter["0.w"] as nn.LowRank;
    for (const before of ["", "base_model.model.", "base_model.model.model."]) {
      const file = save({ [`${before}0.lora_A.default.weight`]: a, [`${before}0.lora_B.default.weight`]: b });
      expect(save(tuned.load(file))).toEqual(save(adapter));
    }
    const again = nn.lora(plainMlp, nn.loraOptions(JSON.parse(JSON.stringify(tuned.config()))));
    expect(again.targets).toEqual(tuned.targets);
    expect(again.scale).toBe(2);
    expect(tuned.config().fan_in_fan_out).toBe(true);
    expect(Object.keys(load(tuned.save(adapter)))).toHaveLength(2);
  });

  it("refuses what it cannot use", () => {
    expect(() => nn.lora(plainMlp, { rank: 0, targets: ["0"] })).toThrow("rank 0");
    expect(() => nn.lora(plainMlp, { rank: 2, targets: ["c_attn"] })).toThrow('no weight is named by "c_attn"');
    expect(() => nn.lora(plainMlp, { rank: 2, targets: [] })).toThrow("an empty list");
    expect(() => nn.lora(plainMlp, { rank: 2, targets: () => false })).toThrow("true of no weight");
    expect(() => nn.lora({} as never, { rank: 2, targets: ["0"] })).toThrow("model.apply");
    expect(() => tuned.apply(mlp.init(0), {}, x)).toThrow("the adapter has no 0.w.a");
    const wide = nn.lora(plainMlp, { rank: 3, targets: ["0"] });
    expect(() => tuned.apply(mlp.init(0), wide.init(0), x)).toThrow("0.w.a is f32[3,8], not f32[2,8]");
    expect(() => tuned.load(save({ other: x }))).toThrow("the file lacks base_model.model.0.lora_A.weight");
    expect(() => nn.loraOptions({ peft_type: "IA3" })).toThrow("no configuration of LoRA");
    const dora = { peft_type: "LORA", r: 1, lora_alpha: 1, target_modules: ["a"], use_dora: true };
    expect(() => nn.loraOptions(dora)).toThrow("use_dora is not supported");
  });
});
