/** @file Names from parts and origins. */
import { describe, expect, it } from "vitest";
import { relu } from "../ops/elementwise.ts";
import { matmul } from "../ops/matmul.ts";
import { Build } from "./build.ts";
import { cotangentOrigin, cotangentWithin, labelOf, originOf, repeatedParts } from "./label.ts";
import { messageNames } from "./node-names.ts";
import { tensorType } from "./type.ts";

const NONE: ReadonlySet<string> = new Set();

describe("a label", () => {
  it.each([
    ["", { weight: "state_params_blocks_0_qkv" }, "blocks0.qkv"],
    ["block", { weight: "state_params_blocks_0_qkv" }, "block.qkv"],
    ["block/attention()", { weight: "params_blocks_0_qkv" }, "block.attention.qkv"],
    ["attention()", { weight: "params_blocks_0_qkv" }, "blocks0.attention.qkv"],
    ["", { weight: "params_layers_2_w", op: "relu" }, "layers2.relu"],
    ["layer2", { weight: "params_2_w" }, "layer2.w"],
    ["attention", { weight: "params_attention_qkv_w" }, "attention.qkv"],
    ["stage/block", { weight: "params_stages_0_1_units_2_w" }, "stage.block.units2"],
    ["pair", { weight: "params_down_0_1_w", op: "relu" }, "pair.down0_1.relu"],
    ["", { weight: "w1", op: "tanh" }, "w1.tanh"],
    ["gelu()", { op: "gelu" }, "gelu"],
    ["@stage/attention/attention()", { op: "exp" }, "stage.attention.exp"],
    ["", {}, undefined],
  ])("of %s and %o is %s", (within, origin, label) => {
    expect(labelOf(within, origin, NONE)).toBe(label);
  });

  it("numbers scopes of one name side by side from 0, and leaves others alone", () => {
    const withins = ["block/a", "block#2/a", "block#2/b:w:", "head", "part0()/norm", "part1()/norm#2"];
    const repeated = repeatedParts(withins);
    const labels = withins.map((within) => labelOf(within.split(":")[0] ?? "", { op: "exp" }, repeated));
    expect(labels).toEqual(
      ["block0.a", "block1.a", "block1.b", "head", "part0.norm", "part1.norm"].map((label) => `${label}.exp`),
    );
  });

  it("leaves parts in the middle out rather than be long", () => {
    const label = labelOf(
      Array.from({ length: 9 }, (_, i) => `${"part".repeat(3)}${i}`).join("/"),
      { op: "exp" },
      NONE,
    );
    expect(label).toMatch(/^partpartpart0\..*partpartpart8\.exp$/);
    expect(label?.length).toBeLessThanOrEqual(60);
  });
});

it("origins lead through what is done to a product, and cotangents keep them", () => {
  const b = new Build("f");
  const f32 = (...shape: readonly number[]) => tensorType("f32", shape);
  const [x, w] = [b.param(f32(2, 3), "x"), b.param(f32(3, 4), "w")];
  b.within = "block";
  const product = b.call(matmul, [x, w], { ta: false, tb: false } as never);
  const result = b.call(relu, [product], {});
  const around = { producer: b.producer.bind(b), weight: ({ name }: { name: string | undefined }) => name };
  expect(originOf(product, around)).toEqual({ weight: "w" });
  expect(originOf(result, around)).toEqual({ weight: "w", op: "relu" });
  const within = cotangentWithin(result, around);
  expect(cotangentOrigin(within)).toEqual({ within: "block", weight: "w", op: "relu" });
  expect(cotangentOrigin("block")).toBeNull();
  const nameOf = messageNames(b.finish([result]));
  expect([x, product, result].map(nameOf)).toEqual(["x", "block.w", "block.w.relu"]);
});
