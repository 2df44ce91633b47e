/** @file The operators of the suite in three tiers: what current exports use, what most networks use, and the rest that is supported. */

/** Of 23 current exports and of older ones. */
const T1 =
  "Reshape Add ReduceMean Conv Mul Gemm Transpose MatMul Relu Concat Gather Softmax Unsqueeze Pow MaxPool Slice LayerNormalization Sigmoid Gelu Sqrt Reciprocal Expand Neg AveragePool Split BatchNormalization ScatterND Clip HardSwish Pad Squeeze HardSigmoid Where Resize ConstantOfShape Sub Equal Not Tanh GatherElements Constant Shape Cast Identity Div Flatten Dropout GlobalAveragePool Exp Log Erf";

/** Control flow, recurrent networks, random numbers, optimizers, windows and Fourier transforms, sampling. */
const T3 =
  "If Loop Scan LSTM GRU RNN Bernoulli RandomUniformLike RandomNormalLike RandomUniform RandomNormal ai.onnx.preview.training.Adam ai.onnx.preview.training.Adagrad ai.onnx.preview.training.Momentum HannWindow HammingWindow BlackmanWindow DFT STFT MelWeightMatrix GridSample RoiAlign";

/** Sequences, texts, optional values, quantised numbers, and operators whose results have a length that depends on data. */
const OUTSIDE =
  "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence ConcatFromSequence Optional OptionalGetElement OptionalHasElement StringNormalizer TfIdfVectorizer QuantizeLinear DequantizeLinear DynamicQuantizeLinear QLinearConv QLinearMatMul ConvInteger MatMulInteger NonMaxSuppression Unique ai.onnx.preview.training.Gradient";

export type Tier = "T1" | "T2" | "T3" | "outside";

const setOf = (names: string): ReadonlySet<string> => new Set(names.split(" "));
const [first, third, outside] = [setOf(T1), setOf(T3), setOf(OUTSIDE)];

/** The tier of a test: that of its furthest operator. */
export function tierOf(operators: readonly string[]): Tier {
  if (operators.some((name) => outside.has(name))) return "outside";
  if (operators.some((name) => third.has(name))) return "T3";
  return operators.every((name) => first.has(name)) ? "T1" : "T2";
}

/** The types of elements that tensors hold. */
const FIVE: readonly string[] = ["float", "double", "int32", "int64", "bool"];
export const hasTypes = (types: readonly string[]): boolean => types.every((type) => FIVE.includes(type));
