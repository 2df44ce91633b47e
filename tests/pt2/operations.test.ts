/** @file Single ATen operations in programs: what PyTorch gives, and backward operations beside derivatives of their forward ones. */
import { describe, expect, it } from "vitest";
import { arange, concat, conv2d, grad, layerNorm, matmul, random, type Tensor, tensor } from "../../src/api/index.ts";
import { readPt2 } from "../../src/exchange/pt2/index.ts";
import { archive, LONG, type Meta, named } from "./archive.ts";

const FLOAT = 7;

/** One operation applied to tensors by name and to other arguments; its results. */
function applied(
  target: string,
  given: Readonly<Record<string, Tensor>>,
  rest: Readonly<Record<string, object>>,
  results = 1,
): readonly Tensor[] {
  const inputs = Object.fromEntries(
    Object.entries(given).map(([name, x]): [string, Meta] => [
      name,
      { dtype: x.dtype === "i32" ? LONG : FLOAT, sizes: x.shape },
    ]),
  );
  const args = { ...Object.fromEntries(Object.keys(given).map((name) => [name, named(name)])), ...rest };
  const outputs = Array.from({ length: results }, (_, i) => `out${i}`);
  return outputs.map((output) => {
    const model = readPt2(archive({ params: {}, inputs, nodes: [{ target, inputs: args, outputs }], output }));
    return model.apply({}, given)[output] as Tensor;
  });
}

const one = (...args: Parameters<typeof applied>): unknown => applied(...args)[0]?.toArray();
const close = (a: Tensor | undefined, b: Tensor | undefined): void => {
  const [x, y] = [a?.data() ?? [], b?.data() ?? []];
  expect(x.length).toBe(y.length);
  x.forEach((value, i) => {
    expect(value).toBeCloseTo(y[i] as number, 4);
  });
};
const x = random.normal(random.key(1), [2, 3, 5, 5]);
const w = random.normal(random.key(2), [4, 3, 3, 3]);

describe("operations of PyTorch", () => {
  it("promote types as PyTorch does", () => {
    const whole = arange(3);
    expect(applied("add.Tensor", { self: whole }, { other: { as_float: 0.5 } })[0]?.dtype).toBe("f32");
    expect(applied("add.Tensor", { self: whole }, { other: { as_int: 2 } })[0]?.dtype).toBe("i32");
    expect(one("div.Tensor", { self: whole }, { other: { as_int: 2 } })).toEqual([0, 0.5, 1]);
    expect(one("add.Tensor", { self: tensor([1]), other: tensor([2]) }, { alpha: { as_int: 3 } })).toEqual([7]);
    expect(one("mean.default", { self: tensor([1, 3]) }, {})).toBe(2);
  });

  it("read and write at positions", () => {
    const m = arange(6).cast("f32").reshape([2, 3]);
    expect(
      one("slice.Tensor", { self: m }, { dim: { as_int: 1 }, start: { as_int: -2 }, end: { as_int: 2 ** 63 } }),
    ).toEqual([
      [1, 2],
      [4, 5],
    ]);
    const strided = { size: { as_ints: [2, 2] }, stride: { as_ints: [1, 2] }, storage_offset: { as_int: 1 } };
    expect(one("as_strided.default", { self: m }, strided)).toEqual([
      [1, 3],
      [2, 4],
    ]);
    expect(one("as_strided.default", { self: m }, { size: { as_ints: [3, 2] }, stride: { as_ints: [1, 3] } })).toEqual([
      [0, 3],
      [1, 4],
      [2, 5],
    ]);
    const rows = tensor([-1, 0], { dtype: "i32" });
    const at = { indices: { as_optional_tensors: [{ as_none: true }, { as_tensor: { name: "rows" } }] } };
    expect(one("index.Tensor", { self: m, rows }, at)).toEqual([
      [2, 0],
      [5, 3],
    ]);
  });

  it("of backward passes are derivatives of the forward ones", () => {
    const g = random.normal(random.key(3), [2, 4, 3, 3]);
    const settings = {
      stride: { as_ints: [2, 2] },
      padding: { as_ints: [1, 1] },
      dilation: { as_ints: [1, 1] },
      groups: { as_int: 1 },
    };
    const [dx, dw, db] = applied(
      "convolution_backward.default",
      { grad_output: g, input: x, weight: w },
      { ...settings, transposed: { as_bool: false } },
      3,
    );
    const loss = (v: Tensor, k: Tensor): Tensor => conv2d(v, k, { stride: 2, padding: 1 }).mul(g).sum();
    close(dx, grad(loss)(x, w));
    close(dw, grad(loss, { argnums: 1 })(x, w));
    expect(db?.shape).toEqual([4]);
    const [ga, scale] = [random.normal(random.key(4), [4, 6]), random.normal(random.key(5), [6])];
    const rows = random.normal(random.key(6), [4, 6]);
    const [da] = applied(
      "native_layer_norm_backward.default",
      { grad_out: ga, input: rows, weight: scale },
      { normalized_shape: { as_ints: [6] } },
      3,
    );
    close(da, grad((v: Tensor) => layerNorm(v).mul(scale).mul(ga).sum())(rows));
  });

  it("multiply rows by the matrix of their group, with gradients", () => {
    const [rows, w] = [random.normal(random.key(1), [6, 3]), random.normal(random.key(2), [3, 3, 2])];
    const given = { input: rows, weight: w, offs: tensor([2, 2, 6], { dtype: "i32" }) };
    const target = "torch.ops.transformers.grouped_mm_fallback.default";
    const wanted = concat([matmul(rows.slice([[0, 2]]), w.slice([0])), matmul(rows.slice([[2, 6]]), w.slice([2]))], 0);
    close(applied(target, given, {})[0], wanted);
    const { input, ...others } = given;
    const y = (v: Tensor): Tensor => applied(target, { input: v, ...others }, {})[0] as Tensor;
    const own = (v: Tensor): Tensor =>
      concat([matmul(v.slice([[0, 2]]), w.slice([0])), matmul(v.slice([[2, 6]]), w.slice([2]))], 0);
    close(grad((v: Tensor) => y(v).square().sum())(input), grad((v: Tensor) => own(v).square().sum())(input));
  });

  it("inside of a part without gradients compute, and give none", () => {
    const graph = {
      inputs: [named("a")],
      outputs: [named("b")],
      nodes: [
        {
          target: "torch.ops.aten.exp.default",
          inputs: [{ name: "self", arg: named("a"), kind: 1 }],
          outputs: [named("b")],
          metadata: {},
        },
      ],
    };
    const rest = { mode: { as_bool: false }, body: { as_graph: { name: "body", graph } }, x: named("x") };
    const nodes = [{ target: "torch.ops.higher_order.wrap_with_set_grad_enabled", inputs: rest, outputs: ["y"] }];
    const file = archive({ params: {}, inputs: { x: { sizes: [2] } }, nodes, output: "y" });
    const model = readPt2(file);
    expect(model.apply({}, [tensor([0, 1])]).y?.toArray()).toEqual([1, Math.fround(Math.E)]);
    const g = grad((v: Tensor) => (model.apply({}, [v]).y as Tensor).sum())(tensor([0, 1]));
    expect(g.toArray()).toEqual([0, 0]);
  });
});
