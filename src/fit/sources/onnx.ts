/**
 * @file An ONNX model as a program that PyTorch runs: each node as the operation of PyTorch that computes the same, so that it keeps what
 * that keeps. What is known when the graph is followed (shapes, constants) is no tensor there either.
 */
import type { FollowedModel } from "../../exchange/onnx/at-batch.ts";
import type { Followed } from "../../exchange/onnx/call.ts";
import { isFloatElement, type Value } from "../../exchange/onnx/value.ts";
import type { OnnxNode } from "../../formats/onnx-file.ts";
import type { InputKind, Pt2Argument, Pt2Input, Pt2Node, Pt2Program } from "../../formats/pt2-program.ts";
import { byteLength } from "../../ir/type.ts";
import { isFloat } from "../../kernel/dtype.ts";
import { traceFunction } from "../../trace/function.ts";
import type { Tensor } from "../../trace/tensor.ts";
import type { EagerType } from "../torch/call.ts";
import { elementsOf } from "../torch/layout.ts";
import type { EagerProgram } from "../torch/step.ts";

/** The operation of PyTorch for one of ONNX, and what its operands are called there. */
interface Translation {
  readonly name: string;
  readonly operands: readonly string[];
  readonly more?: (followed: Followed) => Readonly<Record<string, Pt2Argument>>;
}

const numbers = (node: OnnxNode, name: string): readonly number[] =>
  (node.attributes.get(name)?.ints ?? []).map(Number);
const whole = (node: OnnxNode, name: string, usual: number): number => {
  const found = node.attributes.get(name);
  return found ? Number(found.int) : usual;
};

const unary = (name: string): Translation => ({ name, operands: ["self"] });
const binary = (name: string): Translation => ({ name, operands: ["self", "other"] });
const normed = (name: string, more: Translation["more"] = () => ({})): Translation => ({
  ...{ name, operands: ["input", "weight", "bias"], more },
});

const convolved = (name: string): Translation =>
  normed(name, ({ node }) => ({
    stride: { as_ints: numbers(node, "strides").length > 0 ? numbers(node, "strides") : [1] },
    groups: { as_int: whole(node, "group", 1) },
  }));

/** Axes from `axis` on are one norm's. */
const layerAxes = ({ node, inputs }: Followed): Readonly<Record<string, Pt2Argument>> => {
  const shape = inputs[0]?.shape ?? [];
  const axis = whole(node, "axis", -1);
  return { normalized_shape: { as_ints: shape.slice(axis < 0 ? shape.length + axis : axis) } };
};

const permuted = ({ node, inputs }: Followed): Readonly<Record<string, Pt2Argument>> => {
  const rank = inputs[0]?.shape.length ?? 0;
  const given = numbers(node, "perm");
  return { dims: { as_ints: given.length > 0 ? given : Array.from({ length: rank }, (_, i) => rank - 1 - i) } };
};

const SAME: readonly string[] = [
  "Relu",
  "Sigmoid",
  "Tanh",
  "Exp",
  "Log",
  "Sqrt",
  "Erf",
  "Neg",
  "Abs",
  "Reciprocal",
  "Softplus",
  "Tan",
  "Asin",
  "Acos",
  "Atan",
  "Sinh",
  "Cosh",
  "Asinh",
  "Acosh",
  "Atanh",
  "Celu",
];
const ALSO_SAME: readonly string[] = [
  "Elu",
  "Selu",
  "Mish",
  "Gelu",
  "Sin",
  "Cos",
  "Floor",
  "Ceil",
  "Round",
  "Sign",
  "Softmax",
];

const TRANSLATIONS: Readonly<Record<string, Translation>> = {
  ...Object.fromEntries([...SAME, ...ALSO_SAME].map((kind) => [kind, unary(kind.toLowerCase())])),
  ...Object.fromEntries(["Add", "Sub", "Mul", "Div"].map((kind) => [kind, binary(kind.toLowerCase())])),
  ...Object.fromEntries(["Reshape", "Flatten", "Squeeze", "Unsqueeze"].map((kind) => [kind, unary("reshape")])),
  ...{ HardSwish: unary("hardswish"), HardSigmoid: unary("hardsigmoid"), LeakyRelu: unary("leaky_relu") },
  ...{ Clip: unary("clamp"), LogSoftmax: unary("log_softmax"), Identity: unary("alias"), Dropout: unary("alias") },
  ...{ Cast: unary("to"), Slice: unary("slice"), Split: unary("split"), Expand: unary("expand"), Pad: unary("pad") },
  ...{
    ReduceMean: unary("mean"),
    ReduceSum: unary("sum"),
    ReduceMax: unary("amax"),
    Resize: unary("upsample_bilinear2d"),
  },
  ...{
    MaxPool: unary("max_pool2d"),
    AveragePool: unary("avg_pool2d"),
    GlobalAveragePool: unary("adaptive_avg_pool2d"),
  },
  ...{
    Equal: unary("eq"),
    Less: unary("lt"),
    Greater: unary("gt"),
    Not: unary("logical_not"),
    IsNaN: unary("isnan"),
    ConstantOfShape: unary("full"),
    CumSum: unary("cumsum"),
  },
  ...{
    And: unary("logical_and"),
    Or: unary("logical_or"),
    Xor: unary("logical_xor"),
    LessOrEqual: unary("le"),
    GreaterOrEqual: unary("ge"),
    IsInf: unary("isinf"),
    ArgMax: unary("argmax"),
    ArgMin: unary("argmin"),
    OneHot: unary("one_hot"),
    EyeLike: unary("eye"),
    Range: unary("arange"),
    RandomNormal: unary("randn"),
    RandomNormalLike: unary("randn_like"),
    RandomUniform: unary("rand"),
    RandomUniformLike: unary("rand_like"),
    Bernoulli: unary("bernoulli"),
  },
  ...{
    ReduceMin: unary("amin"),
    ReduceProd: unary("prod"),
    ReduceL1: unary("norm"),
    ReduceL2: unary("norm"),
    ReduceLogSumExp: unary("logsumexp"),
    TopK: unary("topk"),
    GlobalMaxPool: unary("adaptive_max_pool2d"),
  },
  ...{
    Tile: unary("repeat"),
    DepthToSpace: unary("pixel_shuffle"),
    SpaceToDepth: unary("pixel_unshuffle"),
    Trilu: unary("tril"),
    Upsample: unary("upsample_nearest2d"),
    ReverseSequence: unary("flip"),
    ThresholdedRelu: unary("threshold"),
    Swish: unary("silu"),
    PRelu: { name: "prelu", operands: ["self", "weight"] },
    Mod: binary("remainder"),
    GatherElements: { name: "gather", operands: ["self", "index"] },
    GatherND: { name: "gather", operands: ["self", "index"] },
    ScatterElements: { name: "scatter", operands: ["self", "index", "src"] },
    Scatter: { name: "scatter", operands: ["self", "index", "src"] },
    ScatterND: { name: "index_put", operands: ["self", "index", "values"] },
    GridSample: { name: "grid_sampler_2d", operands: ["input", "grid"] },
    RMSNormalization: normed("rms_norm", layerAxes),
    GroupNormalization: normed("group_norm", ({ node }) => ({ num_groups: { as_int: whole(node, "num_groups", 1) } })),
  },
  ...{ MatMul: binary("matmul"), Max: binary("maximum"), Min: binary("minimum") },
  Pow: { name: "pow", operands: ["self", "exponent"] },
  Where: { name: "where", operands: ["condition", "self", "other"] },
  Transpose: { name: "permute", operands: ["self"], more: permuted },
  Conv: convolved("conv2d"),
  ConvTranspose: convolved("conv_transpose2d"),
  BatchNormalization: normed("batch_norm"),
  InstanceNormalization: normed("instance_norm"),
  LayerNormalization: normed("layer_norm", layerAxes),
};

/** Nodes that are other operations by their operands. */
function translationOf({ node, inputs }: Followed): Translation | undefined {
  if (node.kind === "Gather") {
    const isTable = whole(node, "axis", 0) === 0 && inputs[0]?.shape.length === 2;
    return isTable
      ? { name: "embedding", operands: ["weight", "indices"] }
      : { name: "index_select", operands: ["self", "index"] };
  }
  if (node.kind === "Gemm") {
    const hasBias = inputs[2] != null && !inputs[2].known;
    if (whole(node, "transB", 0) === 1) return normed("linear");
    return hasBias ? { name: "addmm", operands: ["mat1", "mat2", "self"] } : { name: "mm", operands: ["self", "mat2"] };
  }
  return TRANSLATIONS[node.kind];
}

/** Operations of any number of tensors. */
const LISTS: Readonly<Record<string, string>> = { Concat: "cat", Einsum: "einsum" };

const RECURRENT: Readonly<Record<string, string>> = { LSTM: "lstm", GRU: "gru", RNN: "rnn_tanh" };

/** Weights, then initial states, of a layer: X, W, R, B, lengths, h, c. */
function recurrentOf(
  { node, inputs }: Followed,
  tensor: (value: Value) => Pt2Argument,
): Pick<Pt2Node, "target" | "inputs"> {
  const given = (places: readonly number[]): Pt2Argument => ({
    as_tensors: places.flatMap((i) => {
      const value = inputs[i];
      return isTensor(value) ? [tensor(value).as_tensor] : [];
    }),
  });
  return {
    target: `torch.ops.aten.${RECURRENT[node.kind]}.input`,
    inputs: [
      { name: "input", arg: tensor(inputs[0] as Value) },
      { name: "hx", arg: given([5, 6]) },
      { name: "params", arg: given([1, 2, 3]) },
    ],
  };
}

/** Whether a value is on the device: what is computed, and constants that are more than a number. */
const isTensor = (value: Value | null | undefined): value is Value =>
  value != null && (!value.known || (isFloatElement(value.type) && elementsOf(value.shape) > 1));

/** Names of values in the modelled program: those of one value are equal. */
class Names {
  readonly #names = new Map<Value, string>();
  readonly types = new Map<string, EagerType>();
  readonly #floatBytes: number | undefined;

  constructor(floatBytes: number | undefined) {
    this.#floatBytes = floatBytes;
  }

  of(value: Value): string {
    const known = this.#names.get(value);
    if (known !== undefined) return known;
    const name = `v${this.#names.size}`;
    this.#names.set(value, name);
    const { dtype, shape } = value.tensor;
    const own = byteLength({ dtype, shape }) / Math.max(elementsOf(shape), 1);
    const float = isFloat(dtype);
    // whole numbers have 64 bits there
    const wide = own === 1 ? own : 8;
    const item = float ? (this.#floatBytes ?? own) : wide;
    this.types.set(name, { shape, isFloat: float, item });
    return name;
  }
}

function nodeOf(followed: Followed, names: Names): Pt2Node {
  const { node, inputs, results } = followed;
  const outputs = results.flatMap((value) => (value && !value.known ? [{ name: names.of(value) }] : []));
  const tensor = (value: Value): Pt2Argument => ({ as_tensor: { name: names.of(value) } });
  const made: readonly Pt2Argument[] = outputs.length === 1 ? [{ as_tensor: outputs[0] }] : [{ as_tensors: outputs }];
  const tensors = inputs.filter(isTensor);
  const list = { as_tensors: tensors.map((value) => ({ name: names.of(value) })) };
  const joined = LISTS[node.kind];
  if (joined !== undefined) {
    return { target: `torch.ops.aten.${joined}.default`, inputs: [{ name: "tensors", arg: list }], outputs: made };
  }
  if (Object.hasOwn(RECURRENT, node.kind)) return { ...recurrentOf(followed, tensor), outputs: made };
  const translation = translationOf(followed);
  if (!translation) return { target: `onnx.${node.kind}`, inputs: [{ name: "inputs", arg: list }], outputs: made };
  const operands = translation.operands.flatMap((name, i) => {
    const value = inputs[i];
    return isTensor(value) ? [{ name, arg: tensor(value) }] : [];
  });
  // of two operands the first is a tensor: the other may be a number
  const first = translation.operands[0] as string;
  const renamed =
    operands.some(({ name }) => name === first) || operands.length !== 1
      ? operands
      : operands.map((one) => ({ ...one, name: first }));
  const more = Object.entries(translation.more?.(followed) ?? {}).map(([name, arg]) => ({ name, arg }));
  return { target: `torch.ops.aten.${translation.name}.default`, inputs: [...renamed, ...more], outputs: made };
}

export function onnxProgram(
  model: FollowedModel,
  { sizes, floatBytes }: { readonly sizes: Readonly<Record<string, number>>; readonly floatBytes: number | undefined },
): EagerProgram {
  const names = new Names(floatBytes);
  const followed: Followed[] = [];
  const specs = model.specs(sizes);
  const operands = model.inputs.map(({ name }) => specs[name] as Tensor);
  const results: Value[] = [];
  traceFunction(
    (params: Record<string, Tensor>, ...inputs: Tensor[]) => {
      results.push(...model.follow(params, inputs, { observe: (one) => followed.push(one) }));
      return inputs[0] as Tensor;
    },
    [model.params, ...operands],
  );
  const made = new Set(followed.flatMap((one) => one.results.filter((value) => value && !value.known)));
  const nodes = followed
    .filter((one) => one.results.some((value) => value && !value.known))
    .map((one) => nodeOf(one, names));
  const leaves = new Map<string, Value>();
  for (const { inputs } of followed) {
    for (const value of inputs) if (isTensor(value) && !made.has(value)) leaves.set(names.of(value), value);
  }
  const given = new Set(model.inputs.map(({ name }) => name));
  const kindOf = ({ name, known }: Value): InputKind => {
    if (!known && Object.hasOwn(model.params, name)) return "parameter";
    return given.has(name) ? "user_input" : "buffer";
  };
  const inputs: readonly Pt2Input[] = [...leaves].map(([value, of]) => ({ kind: kindOf(of), value, name: of.name }));
  const outputs = results
    .filter(({ known }) => !known)
    .map((value) => ({
      ...{ kind: "user_output", name: value.name },
      argument: { as_tensor: { name: names.of(value) } },
    }));
  const program: Pt2Program = { torch: "none", ranges: new Map(), types: new Map(), nodes, inputs, outputs };
  return {
    program,
    type: (name) => names.types.get(name),
    number: () => undefined,
    storageOf: (value) => value,
    loss: "squares",
  };
}
