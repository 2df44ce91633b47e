/** @file Exported PyTorch programs: parameters, open sizes, changes in place, planning without weights, unknown operations, damage. */
import { describe, expect, it } from "vitest";
import { compile, grad, ones, plan, type Tensor, TidemarkError, tensor } from "../../src/api/index.ts";
import { readPt2 } from "../../src/exchange/pt2/index.ts";
import { evaluateSize, parseSize } from "../../src/formats/size-expression.ts";
import { writeZip } from "../../src/formats/zip.ts";
import { archive, named, type ProgramJson, partsOf } from "./archive.ts";

const linear: ProgramJson = {
  params: {
    "fc.weight": { meta: { sizes: [2, 3] }, data: [1, 0, 0, 0, 1, 1] },
    "fc.bias": { meta: { sizes: [2] }, data: [0.5, -10] },
  },
  inputs: { x: { sizes: ["s0", 3] } },
  nodes: [
    {
      target: "linear.default",
      inputs: { input: named("x"), weight: named("p_fc.weight"), bias: named("p_fc.bias") },
      outputs: ["h"],
    },
    { target: "relu_.default", inputs: { self: named("h") }, outputs: ["r"] },
    { target: "add.Tensor", inputs: { self: named("h"), other: { as_int: 1 } }, outputs: ["y"] },
  ],
  output: "y",
  ranges: { s0: [2, 8] },
};
const input = tensor([
  [1, 2, 3],
  [4, 5, 6],
]);

describe("an exported program", () => {
  it("is an ordinary function, and a change in place is seen under the old name", () => {
    const model = readPt2(archive(linear));
    expect(Object.keys(model.params)).toEqual(["fc.weight", "fc.bias"]);
    expect(model.inputs).toEqual([{ name: "x", dtype: "f32", shape: ["s0", 3] }]);
    const run = compile((params: typeof model.params, x: Tensor) => model.apply(params, [x]).y as Tensor);
    expect(run(model.params, input).toArray()).toEqual([
      [2.5, 1],
      [5.5, 2],
    ]);
    const g = grad((params: typeof model.params) => (model.apply(params, { x: input }).y as Tensor).sum())(
      model.params,
    );
    expect(g["fc.bias"]?.toArray()).toEqual([2, 1]);
  });

  it("takes any size within its ranges", () => {
    const model = readPt2(archive(linear));
    expect(model.apply(model.params, [ones([5, 3])]).y?.shape).toEqual([5, 2]);
    expect(() => model.apply(model.params, [ones([9, 3])])).toThrow("s0 is 9, the program was exported for 2 to 8");
    expect(() => model.specs()).toThrow("open sizes of the model: s0");
    expect(model.specs({ s0: 4 }).x?.shape).toEqual([4, 3]);
  });

  it("without the bytes of its weights can be planned", () => {
    const params = Object.fromEntries(
      Object.entries(linear.params).map(([name, { meta }]) => [name, { meta, data: null }]),
    );
    const model = readPt2(archive({ ...linear, params }));
    const loss = (p: typeof model.params, x: Tensor): Tensor => (model.apply(p, [x]).y as Tensor).sum();
    const planned = plan((p: typeof model.params, x: Tensor) => grad(loss)(p, x));
    expect(planned(model.params, model.specs({ s0: 8 }).x as Tensor).arenaBytes).toBeGreaterThan(0);
    expect(() => model.params["fc.bias"]?.data()).toThrow(TidemarkError);
  });

  it("with unknown operations lists all of them, or plans with stand-ins", () => {
    const nodes = [
      { target: "mystery.default", inputs: { self: named("x") }, outputs: ["h"] },
      { target: "mystery.default", inputs: { self: named("h") }, outputs: ["g"] },
      { target: "other.out", inputs: { self: named("g") }, outputs: ["y"] },
    ];
    const types = Object.fromEntries(["h", "g", "y"].map((name) => [name, { sizes: ["s0", 7] }]));
    const file = archive({ ...linear, nodes, types });
    expect(() => readPt2(file)).toThrow("torch.ops.aten.mystery.default (2 times), torch.ops.aten.other.out");
    const model = readPt2(file, { unknown: "plan" });
    expect(model.unknown).toEqual({ "torch.ops.aten.mystery.default": 2, "torch.ops.aten.other.out": 1 });
    const planned = plan((x: Tensor) => model.apply(model.params, [x]).y as Tensor);
    expect(planned(model.specs({ s0: 4 }).x as Tensor).arenaBytes).toBeGreaterThan(0);
  });

  it("that changes a part of another tensor is refused", () => {
    const nodes = [
      { target: "select.int", inputs: { self: named("x"), dim: { as_int: 0 }, index: { as_int: 0 } }, outputs: ["h"] },
      { target: "relu_.default", inputs: { self: named("h") }, outputs: ["r"] },
      { target: "add.Tensor", inputs: { self: named("x"), other: { as_int: 1 } }, outputs: ["y"] },
    ];
    const model = readPt2(archive({ ...linear, nodes }));
    expect(() => model.apply(model.params, [input])).toThrow("it changes h, a part of another tensor");
  });
});

describe("an archive that cannot be read", () => {
  const replaced = (name: string, text: string): Uint8Array =>
    writeZip(
      partsOf(linear).map((part) => (part.name === name ? { name, bytes: new TextEncoder().encode(text) } : part)),
    );

  it("says what it is", () => {
    const cases: readonly (readonly [Uint8Array, string])[] = [
      [writeZip([{ name: "m/serialized_exported_program.json", bytes: new Uint8Array(0) }]), "before 2.9"],
      [writeZip([{ name: "other", bytes: new Uint8Array(0) }]), "no .pt2 file"],
      [writeZip(partsOf(linear).filter(({ name }) => !name.includes("models/"))), "0 programs"],
      [replaced("m/byteorder", "big"), "byte order big"],
      [replaced("m/models/model.json", "{"), "not JSON"],
      [replaced("m/models/model.json", "[]"), "the root of the program"],
      [archive({ ...linear, major: 9 }), "schema version 9"],
      [replaced("m/data/weights/weight_0", "short"), "reaches beyond its 5 bytes"],
      [new Uint8Array(100), "the end of the archive is not there"],
    ];
    for (const [file, words] of cases) expect(() => readPt2(file)).toThrow(words);
    const pickled = new TextDecoder()
      .decode(partsOf(linear)[3]?.bytes)
      .replaceAll('"use_pickle":false', '"use_pickle":true');
    expect(() => readPt2(replaced("m/data/weights/model_weights_config.json", pickled))).toThrow(
      "is a pickle, which is not read",
    );
    const half = new TextDecoder().decode(partsOf(linear)[3]?.bytes).replaceAll('"dtype":7', '"dtype":6');
    expect(() => readPt2(replaced("m/data/weights/model_weights_config.json", half))).toThrow(
      "fc.weight (F16), fc.bias (F16)",
    );
  });

  it("with changed bits, or cut off, ends in an error or in a model", () => {
    const file = archive(linear);
    const outcome = (bytes: Uint8Array): void => {
      try {
        const model = readPt2(bytes);
        model.apply(model.params, [input]);
      } catch (error) {
        expect(error).toBeInstanceOf(TidemarkError);
      }
    };
    for (let i = 0; i < file.length * 8; i += 41) {
      const changed = file.slice();
      changed[i >> 3] = (changed[i >> 3] as number) ^ (1 << (i & 7));
      outcome(changed);
    }
    for (let length = 0; length < file.length; length += 37) outcome(file.subarray(0, length));
  });

  it("with a program whose fields are something else ends in an error", () => {
    const text = new TextDecoder().decode(partsOf(linear)[2]?.bytes);
    for (const [from, to] of [
      ['"nodes":[', '"nodes":7,"x":['],
      ['"as_tensor":{"name":"x"}', '"as_tensor":{"name":"gone"}'],
      ['"as_tensor":{"name":"x"}', '"as_tensor":null'],
      ['"sizes":[', '"sizes":7,"x":['],
      ["Symbol('s0'", "system('rm'"],
      ['"target":"torch.ops.aten.linear.default"', '"target":7'],
      ['"as_int":1}', '"as_ints":[]}'],
    ] as const) {
      const file = replaced("m/models/model.json", text.replace(from, to));
      expect(() => {
        const model = readPt2(file);
        model.apply(model.params, [input]);
      }, `${from} → ${to}`).toThrow(TidemarkError);
    }
  });
});

describe("sizes", () => {
  it("are expressions of names, and nothing else is evaluated", () => {
    const of = (text: string): number | undefined => evaluateSize(parseSize(text), new Map([["s0", 7]]));
    expect(of("Symbol('s0', positive=True, integer=True)")).toBe(7);
    expect(of("Add(Mul(Integer(2), Symbol('s0')), Integer(-1))")).toBe(13);
    expect(of("FloorDiv(Symbol('s0'), Integer(2))")).toBe(3);
    expect(of("Symbol('u1')")).toBeUndefined();
    for (const bad of [
      "__import__('os')",
      "Add(",
      "Symbol(s0)",
      "process.exit(1)",
      "",
      "Integer(1) Integer(2)",
      "f".repeat(9),
    ]) {
      expect(() => parseSize(bad)).toThrow("is not understood");
    }
  });
});
