/** @file ONNX models: shape arithmetic, control flow, functions, weights elsewhere, open sizes, training, and what is refused. */
import { mkdirSync, mkdtempSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { compile, grad, plan, type Tensor, TidemarkError, tensor } from "../../src/api/index.ts";
import { readOnnx } from "../../src/exchange/onnx/index.ts";
import { readModel } from "../../src/node/index.ts";
import {
  BOOL,
  bytes,
  FLOAT,
  type GraphParts,
  graph,
  INT64,
  int,
  joined,
  model,
  type NodeParts,
  text,
} from "./write.ts";

const x = { name: "x", type: FLOAT, shape: ["batch", 4] };
const y = { name: "y", type: FLOAT, shape: [] };
const whole = (name: string, ...data: number[]) => ({ name, type: INT64, shape: [data.length], data });
const node = (
  kind: string,
  inputs: string[],
  outputs: string[],
  attributes: NodeParts["attributes"] = {},
): NodeParts => ({
  ...{ kind, inputs, outputs, attributes },
});
const input = tensor([
  [1, 2, 3, 4],
  [-1, -2, -3, -4],
]);
const only = (file: Uint8Array, given: Tensor | Record<string, Tensor> = input): unknown => {
  const read = readOnnx(file);
  return read.apply(read.params, "dtype" in given ? [given as Tensor] : given).y?.toArray();
};

/** A linear layer and relu over an open batch. */
const linear: GraphParts = {
  inputs: [x],
  outputs: [y],
  weights: [
    { name: "w", type: FLOAT, shape: [3, 4], data: [1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1] },
    { name: "b", type: FLOAT, shape: [3], data: [0.5, 0, 0] },
  ],
  nodes: [node("Gemm", ["x", "w", "b"], ["h"], { transB: 1 }), node("Relu", ["h"], ["y"])],
};

describe("an ONNX model", () => {
  it("is an ordinary function of its parameters: run, compiled, differentiated, planned, part of it frozen", () => {
    const read = readOnnx(model(linear));
    expect(Object.keys(read.params)).toEqual(["w", "b"]);
    expect(read.inputs).toEqual([{ name: "x", dtype: "f32", shape: ["batch", 4] }]);
    const loss = (params: typeof read.params, v: Tensor): Tensor => (read.apply(params, { x: v }).y as Tensor).sum();
    const both = compile((params: typeof read.params, v: Tensor) => grad(loss)(params, v));
    expect(both(read.params, input).b?.toArray()).toEqual([1, 1, 1]);
    const { w, b } = read.params as { w: Tensor; b: Tensor };
    const frozen = grad((own: { b: Tensor }, v: Tensor) => loss({ w, ...own }, v))({ b }, input);
    expect(Object.keys(frozen)).toEqual(["b"]);
    const planned = plan((params: typeof read.params, v: Tensor) => grad(loss)(params, v));
    expect(planned(read.params, read.specs({ batch: 64 }).x as Tensor).arenaBytes).toBeGreaterThan(64 * 4 * 4);
  });

  it("refuses inputs, parameters and sizes that do not fit", () => {
    const read = readOnnx(model(linear));
    expect(() => read.apply(read.params, [])).toThrow("takes 1 inputs, got 0");
    expect(() => read.apply(read.params, { z: input })).toThrow("the input x is undefined");
    expect(() => read.apply(read.params, { x: tensor([[1, 2]]) })).toThrow("the model takes f32[batch,4]");
    expect(() => read.apply({}, [input])).toThrow("parameters are missing: w, b");
    expect(() => read.specs()).toThrow("open sizes of the model: batch");
  });

  it("computes shapes when it is followed, with 64-bit numbers", () => {
    const nodes = [
      node("Shape", ["x"], ["s"]),
      node("Gather", ["s", "first"], ["rows"]),
      node("Concat", ["rows", "rest"], ["to"], { axis: 0 }),
      node("Reshape", ["x", "to"], ["r"]),
      node("Slice", ["r", "zero", "end", "last"], ["y"]),
    ];
    const weights = [whole("first", 0), whole("rest", 2, -1), whole("zero", 1), whole("last", 2), whole("end", 0)];
    weights[4] = { ...whole("end", 0), data: [Number.MAX_SAFE_INTEGER] };
    expect(only(model({ nodes, weights, inputs: [x], outputs: [y] }))).toEqual([
      [[2], [4]],
      [[-2], [-4]],
    ]);
  });

  it("takes factors of sizes as constants, not as weights", () => {
    const nodes = [
      node("Shape", ["x"], ["s"]),
      node("Cast", ["s"], ["f"], { to: 1 }),
      node("Mul", ["f", "factors"], ["g"]),
      node("Floor", ["g"], ["h"]),
      node("Cast", ["h"], ["sizes"], { to: 7 }),
      node("Tile", ["x", "repeats"], ["wide"]),
      node("Reshape", ["wide", "sizes"], ["z"]),
      node("Mul", ["z", "w"], ["y"]),
    ];
    const weights = [
      { name: "factors", type: FLOAT, shape: [2], data: [1, 2] },
      { name: "w", type: FLOAT, shape: [1], data: [2] },
      whole("repeats", 1, 2),
    ];
    const read = readOnnx(model({ inputs: [x], outputs: [y], nodes, weights }));
    expect(Object.keys(read.params)).toEqual(["w"]);
    expect(read.apply(read.params, [input]).y?.shape).toEqual([2, 8]);
  });

  it("needs constants where shapes are data, and says which", () => {
    const shape = { name: "shape", type: INT64, shape: [2] };
    const file = model({ nodes: [node("Reshape", ["x", "shape"], ["y"])], inputs: [x, shape], outputs: [y] });
    const to = tensor([4, 2], { dtype: "i32" });
    expect(() => only(file, { x: input, shape: to })).toThrow("its shape (input 1, shape) must be known");
    const read = readOnnx(file, { constants: { shape: to } });
    expect(read.apply(read.params, [input]).y?.shape).toEqual([4, 2]);
    expect(() => readOnnx(file, { constants: { z: to } })).toThrow("no input z to bind");
  });

  it("calls its functions, with attributes of the call in theirs", () => {
    const inner = node("LeakyRelu", ["v"], ["l"], { alpha: { ref: "slope" } });
    const functions = [{ name: "Leak", domain: "mine", inputs: ["v"], outputs: ["l"], nodes: [inner] }];
    const call = { ...node("Leak", ["x"], ["y"], { slope: { float: 0.5 } }), domain: "mine" };
    expect(only(model({ nodes: [call], functions, inputs: [x], outputs: [y] }))).toEqual([
      [1, 2, 3, 4],
      [-0.5, -1, -1.5, -2],
    ]);
    const endless = {
      name: "Leak",
      domain: "mine",
      inputs: ["v"],
      outputs: ["l"],
      nodes: [{ ...call, inputs: ["v"], outputs: ["l"] }],
    };
    expect(() => only(model({ nodes: [call], functions: [endless], inputs: [x], outputs: [y] }))).toThrow("deep");
  });

  it("tells functions of one name apart by their overload", () => {
    const of = (overload: string, kind: string) => ({
      ...{ name: "Act", domain: "mine", overload, inputs: ["v"], outputs: ["o"], nodes: [node(kind, ["v"], ["o"])] },
    });
    const call = (overload: string) => ({ ...node("Act", ["x"], ["y"]), domain: "mine", overload });
    const functions = [of("", "Relu"), of("2", "Neg")];
    const [first, second] = ["", "2"].map((overload) =>
      only(model({ nodes: [call(overload)], functions, inputs: [x], outputs: [y] })),
    );
    expect(first).toEqual(input.relu().toArray());
    expect(second).toEqual(input.mul(-1).toArray());
    const missing = model({ nodes: [call("3")], functions, inputs: [x], outputs: [y] });
    expect(() => only(missing)).toThrow("operators that are not known: mine.Act");
  });

  it("chooses branches that are known, and runs the others", () => {
    const branch = (kind: string): Uint8Array =>
      graph({ nodes: [node(kind, ["x"], ["o"])], outputs: [{ ...y, name: "o" }] });
    const test = { name: "p", type: BOOL, shape: [] };
    const nodes = [
      node("If", ["p"], ["y"], { then_branch: { graph: branch("Neg") }, else_branch: { graph: branch("Abs") } }),
    ];
    const known = model({ nodes, weights: [{ ...test, shape: [], data: [1] }], inputs: [x], outputs: [y] });
    expect(only(known)).toEqual([
      [-1, -2, -3, -4],
      [1, 2, 3, 4],
    ]);
    const read = readOnnx(model({ nodes, inputs: [x, test], outputs: [y] }));
    const run = compile((v: Tensor, p: Tensor) => read.apply({}, { x: v, p }).y as Tensor);
    expect(run(input, tensor(false)).toArray()).toEqual([
      [1, 2, 3, 4],
      [1, 2, 3, 4],
    ]);
    expect(run(input, tensor(true)).slice([0]).toArray()).toEqual([-1, -2, -3, -4]);
  });

  it("runs loops: counted short and long, and while a condition of data holds", () => {
    const body = (test: NodeParts): Uint8Array =>
      graph({
        nodes: [node("Add", ["v", "v"], ["next"]), node("Identity", ["v"], ["seen"]), test],
        inputs: [
          { name: "i", type: INT64, shape: [] },
          { name: "on", type: BOOL, shape: [] },
          { name: "v", type: FLOAT, shape: [] },
        ],
        outputs: [
          { name: "go", type: BOOL, shape: [] },
          { ...y, name: "next" },
          { ...y, name: "seen" },
        ],
      });
    const always = body(node("Identity", ["on"], ["go"]));
    const loop = (count: number, from: number): unknown => {
      const weights = [whole("m", count), { name: "t", type: BOOL, shape: [1], data: [1] }];
      const nodes = [node("Loop", ["m", "t", "v0"], ["last", "y"], { body: { graph: always } })];
      const start = { name: "v0", type: FLOAT, shape: [] };
      const read = readOnnx(model({ nodes, weights, inputs: [start], outputs: [y] }));
      return read.apply({}, [tensor(from, { dtype: "f32" })]).y?.toArray();
    };
    expect(loop(3, 1)).toEqual([1, 2, 4]);
    expect((loop(100, 1) as number[]).at(-1)).toBe(2 ** 99);
    expect(loop(0, 1)).toEqual([]);
    const until = graph({
      nodes: [node("Add", ["v", "v"], ["next"]), node("Less", ["next", "limit"], ["go"])],
      inputs: [
        { name: "i", type: INT64, shape: [] },
        { name: "on", type: BOOL, shape: [] },
        { name: "v", type: FLOAT, shape: [] },
      ],
      outputs: [
        { name: "go", type: BOOL, shape: [] },
        { ...y, name: "next" },
      ],
    });
    const weights = [
      { name: "t", type: BOOL, shape: [], data: [1] },
      { name: "limit", type: FLOAT, shape: [], data: [50] },
    ];
    const nodes = [node("Loop", ["", "t", "v0"], ["y"], { body: { graph: until } })];
    const read = readOnnx(model({ nodes, weights, inputs: [{ name: "v0", type: FLOAT, shape: [] }], outputs: [y] }));
    const run = compile((v: Tensor) => read.apply({}, [v]).y as Tensor);
    expect(run(tensor(3, { dtype: "f32" })).item()).toBe(96);
  });

  it("can be untied: every use of a weight that an exporter merged is a parameter", () => {
    const nodes = [node("Mul", ["x", "s"], ["h"]), node("Mul", ["h", "s"], ["y"])];
    const weights = [{ name: "s", type: FLOAT, shape: [4], data: [1, 1, 1, 1] }];
    const read = readOnnx(model({ nodes, weights, inputs: [x], outputs: [y] }), { untie: true });
    expect(Object.keys(read.params)).toEqual(["s", "s#2"]);
  });
});

describe("operators of newer sets", () => {
  const value = (name: string, shape: number[]) => ({ name, type: FLOAT, shape });
  const one = (
    kind: string,
    given: Record<string, Tensor>,
    attributes: NodeParts["attributes"] = {},
    weights: GraphParts["weights"] = [],
  ): unknown => {
    const names = [...Object.keys(given), ...(weights ?? []).map(({ name }) => name as string)];
    const inputs = Object.entries(given).map(([name, v]) => value(name, [...v.shape]));
    const file = model({ opset: 23, nodes: [node(kind, names, ["y"], attributes)], inputs, outputs: [y], weights });
    const read = readOnnx(file, { parameters: () => false });
    return read.apply({}, given).y?.toArray();
  };

  it("compute what their definitions say", () => {
    const v = tensor([[[[1, 2, 3, 4]]]]);
    const [cos, sin] = [tensor([[[0, 1]]]), tensor([[[1, 0]]])];
    expect(one("RotaryEmbedding", { v, cos, sin })).toEqual([[[[-3, 2, 1, 4]]]]);
    expect(one("RotaryEmbedding", { v, cos, sin }, { interleaved: 1 })).toEqual([[[[-2, 1, 3, 4]]]]);
    expect(one("LpPool", { v: tensor([[[3, 4, 0, 5]]]) }, { kernel_shape: [2], strides: [2] })).toEqual([[[5, 5]]]);
    const sizes = [whole("size", 1, 1, 1, 2)];
    const theta = tensor([
      [
        [1, 0, 0.5],
        [0, 1, 0],
      ],
    ]);
    expect(one("AffineGrid", { theta }, { align_corners: 1 }, sizes)).toEqual([
      [
        [
          [-0.5, 0],
          [1.5, 0],
        ],
      ],
    ]);
    const columns = tensor([
      [
        [1, 2],
        [3, 4],
      ],
    ]);
    expect(one("Col2Im", { columns }, {}, [whole("image", 1, 3), whole("block", 1, 2)])).toEqual([[[[1, 5, 4]]]]);
    expect(one("RMSNormalization", { v: tensor([[3, 4]]), scale: tensor([1, 2]) }, { epsilon: { float: 0 } })).toEqual([
      [Math.fround(3 / Math.sqrt(12.5)), Math.fround(8 / Math.sqrt(12.5))],
    ]);
    expect(one("Swish", { v: tensor([0, 1]) })).toEqual([0, Math.fround(1 / (1 + Math.exp(-1)))]);
    const q = tensor([
      [
        [
          [1, 0],
          [0, 1],
        ],
      ],
    ]);
    const attended = one("Attention", { q, k: q, v: tensor([[[[1], [3]]]]) }, { is_causal: 1 }) as number[][][][];
    expect(attended[0]?.[0]?.[0]).toEqual([1]);
  });
});

describe("weights in another file", () => {
  const weight = (external: Record<string, string>) => ({ name: "w", type: FLOAT, shape: [4], data: [], external });
  const file = (external: Record<string, string>): Uint8Array =>
    model({ nodes: [node("Mul", ["x", "w"], ["y"])], weights: [weight(external)], inputs: [x], outputs: [y] });

  it("are read from the model's folder and from nowhere else", async () => {
    const folder = mkdtempSync(join(tmpdir(), "onnx-"));
    const data = new Uint8Array(Float32Array.of(9, 1, 2, 3, 4).buffer);
    writeFileSync(join(folder, "w.data"), data);
    const path = join(folder, "model.onnx");
    const read = async (external: Record<string, string>): Promise<unknown> => {
      writeFileSync(path, file(external));
      return (await readModel(path)).params.w?.toArray();
    };
    expect(await read({ location: "w.data", offset: "4", length: "16" })).toEqual([1, 2, 3, 4]);
    for (const location of ["../w.data", "/etc/hostname", "a/../../w.data", "", "C:\\w"]) {
      await expect(read({ location })).rejects.toThrow("outside of the model's folder");
    }
    symlinkSync("/etc/hostname", join(folder, "link.data"));
    await expect(read({ location: "link.data" })).rejects.toThrow("leads out of the folder");
    await expect(read({ location: "w.data", offset: "8" })).rejects.toThrow("12 bytes");
    await expect(read({ location: "w.data", offset: "-1" })).rejects.toThrow("offset");
    await expect(read({ location: "w.data", offset: "0", length: "999" })).rejects.toThrow("which has 20");
    await expect(read({ location: "gone.data" })).rejects.toThrow("cannot be read");
    mkdirSync(join(folder, "inner"));
    await expect(read({ location: "inner" })).rejects.toThrow("inner is no file");
    // 8 GiB, of which 16 bytes are read
    truncateSync(join(folder, "w.data"), 2 ** 33);
    expect(await read({ location: "w.data", offset: "4", length: "16" })).toEqual([1, 2, 3, 4]);
    expect(() => readOnnx(file({ location: "w.data" }))).toThrow("give { external");
  });
});

describe("a file that cannot be a model", () => {
  it("is refused with everything that is not known at once", () => {
    const nodes = [
      node("Nope", ["x"], ["h"]),
      { ...node("Other", ["h"], ["g"]), domain: "com.x" },
      node("Nope", ["g"], ["y"]),
    ];
    expect(() => only(model({ nodes, inputs: [x], outputs: [y] }))).toThrow(
      "operators that are not known: Nope (2 times), com.x.Other",
    );
    expect(() => only(model({ ...linear, opset: 26 }))).toThrow("opset 26");
    const half = [{ name: "w", type: 10, shape: [1, 4], data: [0x3c00, 0, 0, 0] }];
    const typed = model({ nodes: [node("Mul", ["x", "w"], ["y"])], weights: half, inputs: [x], outputs: [y] });
    expect(readOnnx(typed).params.w?.dtype).toBe("f16");
    expect(readOnnx(typed, { floats: "f32" }).params.w?.toArray()).toEqual([[1, 0, 0, 0]]);
  });

  it("or has a circle, or names that nothing computes, names the node", () => {
    const circle = [node("Relu", ["b"], ["a"]), node("Relu", ["a"], ["b"]), node("Add", ["x", "b"], ["y"])];
    expect(() => only(model({ nodes: circle, inputs: [x], outputs: [y] }))).toThrow(
      "needs b, which nothing before it computes",
    );
    expect(() => only(model({ ...linear, outputs: [{ ...y, name: "gone" }] }))).toThrow("needs gone");
    const lying = [{ name: "w", type: FLOAT, shape: [3, 4000], data: [1, 2] }];
    expect(() => only(model({ ...linear, weights: lying }))).toThrow("has 8 bytes, float[3,4000] has 48,000");
    const endless = joined([
      int(1, 8),
      bytes(7, joined([bytes(5, joined([int(1, 2 ** 50), int(2, 1), text(8, "w")]))])),
    ]);
    expect(() => only(endless)).toThrow("has 0 elements");
    let deep = graph({ nodes: [], outputs: [] });
    for (let i = 0; i < 60; i++)
      deep = graph({ nodes: [node("If", [], [], { then_branch: { graph: deep } })], outputs: [] });
    expect(() => only(joined([bytes(7, deep)]))).toThrow("nested more than 50 deep");
  });

  it("with changed bits, or cut off, ends in an error or in a model", () => {
    const file = model(linear);
    for (let i = 0; i < file.length * 8; i += 3) {
      const changed = file.slice();
      changed[i >> 3] = (changed[i >> 3] as number) ^ (1 << (i & 7));
      expectOutcome(changed);
    }
    for (let length = 0; length < file.length; length += 2) expectOutcome(file.subarray(0, length));
  });
});

function expectOutcome(file: Uint8Array): void {
  try {
    const read = readOnnx(file);
    read.apply(read.params, read.inputs.length === 1 ? [input] : []);
  } catch (error) {
    expect(error).toBeInstanceOf(TidemarkError);
  }
}
