/**
 * @file Operations on elements. What a derivative reads and which tensors its formula makes on the way are those of PyTorch's
 * derivatives.yaml: `x.cos()` has the gradient `grad * -x.sin()`, so it keeps x, and has two tensors beside the result.
 */
import type { Autograd, EagerTensor } from "../autograd.ts";
import type { Call, Rule } from "../call.ts";
import { elementsOf, likeStrides, type Shape } from "../layout.ts";
import { sumTo, withTemporaries } from "./shared.ts";

type Keeps = "input" | "result" | "nothing";

const like = (g: Autograd, x: EagerTensor): EagerTensor => g.fresh(x.shape, x, likeStrides(x.shape, x.strides));

/** One operand, a gradient of its shape, and `temporaries` tensors that the formula makes on the way. */
const unary =
  (keeps: Keeps, temporaries = 0): Rule =>
  (call) => {
    const { g } = call;
    const x = call.maybe("self") ?? call.maybe("input") ?? call.t("x");
    const isInPlace = changesOperand(call);
    // what an operation that works in place needs of its operand is copied before
    const copy = isInPlace && keeps === "input" && g.needsGradient(x) ? like(g, x) : null;
    const y = isInPlace ? g.view(x) : call.out(0, likeStrides(x.shape, x.strides));
    const saved = { input: copy ?? x, result: y, nothing: null }[keeps];
    g.record({
      ...{ name: call.node.target, inputs: [x], outputs: [y], saved: [saved] },
      backward: ([dy]) => [dy ? withTemporaries(g, dy, temporaries) : null],
    });
    if (copy) g.release(copy);
    return [y];
  };

/** `add_`, but not `__and__`. */
export const changesOperand = ({ node }: Call): boolean => /[^_]_\.\w+$/.test(node.target);

/** The gradient is passed on. */
const identityGradient: Rule = (call) => {
  const { g } = call;
  const x = call.t("self");
  const y = call.out(0, likeStrides(x.shape, x.strides));
  g.record({ name: call.node.target, inputs: [x], outputs: [y], backward: ([dy]) => [dy ? g.view(dy) : null] });
  return [y];
};

interface Side {
  /** Whether the gradient of this side is that of the result, without a kernel. */
  readonly passes: boolean;
  readonly temporaries: number;
}

interface Binary {
  readonly sides: readonly [Side, Side];
  /** What the gradient of each side reads. */
  readonly reads: readonly [readonly number[], readonly number[]];
}

/** Two operands, broadcast; a number has no gradient and is not on the device. */
const binary =
  ({ sides, reads }: Binary, names: readonly [string, string] = ["self", "other"]): Rule =>
  (call) => {
    const { g } = call;
    const x = call.t(names[0]);
    const other = call.maybe(names[1]);
    const operands = [x, other] as const;
    const type = call.type();
    const isInPlace = changesOperand(call);
    const isLike = x.shape.length === type.shape.length && elementsOf(x.shape) === elementsOf(type.shape);
    const fresh = (): EagerTensor => (isLike ? call.out(0, likeStrides(x.shape, x.strides)) : call.out());
    const y = isInPlace ? g.view(x) : fresh();
    const saved = operands.flatMap((operand, i) =>
      g.needsGradient(operand) ? (reads[i] ?? []).map((j) => operands[j] ?? null) : [],
    );
    const needs = operands.map((operand) => g.needsGradient(operand));
    const shapes = operands.map((operand) => operand?.shape ?? []);
    g.record({
      ...{ name: call.node.target, inputs: operands, outputs: [y], saved },
      backward: ([dy]) => {
        if (!dy) return [null, null];
        const whole = sides.map((side, i) => {
          if (!needs[i]) return null;
          return side.passes ? g.view(dy) : withTemporaries(g, dy, side.temporaries);
        });
        return whole.map((gradient, i) => (gradient ? sumTo(g, gradient, shapes[i] as Shape) : null));
      },
    });
    return [y];
  };

const PASS: Side = { passes: true, temporaries: 0 };
const kernel = (temporaries = 0): Side => ({ passes: false, temporaries });

const add = binary({ sides: [PASS, PASS], reads: [[], []] });
const sub = binary({ sides: [PASS, kernel()], reads: [[], []] });
const mul = binary({ sides: [kernel(), kernel()], reads: [[1], [0]] });
const div = binary({ sides: [kernel(), kernel(3)], reads: [[1], [0, 1]] });
const powTensor = binary({
  sides: [kernel(2), kernel(4)],
  reads: [
    [0, 1],
    [0, 1],
  ],
});
const extremum = binary({
  sides: [kernel(1), kernel(1)],
  reads: [
    [0, 1],
    [0, 1],
  ],
});

/** No gradient: comparisons, rounding of whole numbers, indices. */
export const plain: Rule = (call) =>
  Array.from({ length: call.outputs }, (_, i) => (call.isMade(i) ? call.out(i) : null));

const where: Rule = (call) => {
  const { g } = call;
  const [mask, x, other] = [call.t("condition"), call.maybe("self"), call.maybe("other")];
  const y = call.out();
  const needs = [x, other].map((operand) => g.needsGradient(operand));
  g.record({
    ...{ name: call.node.target, inputs: [x, other], outputs: [y], saved: [mask] },
    backward: ([dy]) => {
      if (!dy) return [null, null];
      const whole = needs.map((need) => (need ? withTemporaries(g, dy, 0) : null));
      return whole.map((gradient, i) => (gradient ? sumTo(g, gradient, [x, other][i]?.shape ?? []) : null));
    },
  });
  return [y];
};

const maskedFill: Rule = (call) => {
  const { g } = call;
  const [x, mask] = [call.t("self"), call.t("mask")];
  const y = changesOperand(call) ? g.view(x) : call.out();
  g.record({
    ...{ name: call.node.target, inputs: [x], outputs: [y], saved: [mask] },
    backward: ([dy]) => [dy ? sumTo(g, withTemporaries(g, dy, 0), x.shape) : null],
  });
  return [y];
};

/** A conversion: the same tensor where the type stays. */
const converted: Rule = (call) => {
  const { g } = call;
  const x = call.maybe("self") ?? call.t("input");
  const type = call.type();
  const stays = type.item === x.item && type.isFloat === x.isFloat && !call.node.target.includes("_to_copy");
  if (stays) return [{ ...g.view(x), edge: x.edge }];
  const y = call.out(0, likeStrides(x.shape, x.strides));
  g.record({
    ...{ name: call.node.target, inputs: [x], outputs: [y] },
    backward: ([dy]) => [dy ? g.fresh(dy.shape, x, dy.strides) : null],
  });
  return [y];
};

const pow: Rule = (call) => (call.maybe("exponent") ? powTensor(call) : unary("input", 2)(call));

/** The gradient of an operand and of the slopes read both. */
const PRELU = [
  [0, 1],
  [0, 1],
] as const;

const names = (text: string): readonly string[] => text.split(" ");
const each = (text: string, rule: Rule): readonly (readonly [string, Rule])[] =>
  names(text).map((name) => [name, rule] as const);

/** In place, the gradient is one of the result. */
const resultInPlace: Rule = (call) => unary(changesOperand(call) ? "result" : "input")(call);

export const POINTWISE: Readonly<Record<string, Rule>> = Object.fromEntries([
  ...each("relu tanh sigmoid threshold", unary("result")),
  ...each("elu selu celu leaky_relu", resultInPlace),
  ...each("softplus hardsigmoid hardswish hardtanh relu6 gelu silu mish log_sigmoid", unary("input")),
  ...each("hardshrink softshrink sinc erfinv nan_to_num logcumsumexp", unary("input")),
  ...each("rad2deg deg2rad frac", unary("nothing")),
  ...each("exp", unary("result")),
  ...each("exp2", unary("result", 1)),
  ...each("sqrt", unary("result", 1)),
  ...each("rsqrt reciprocal", unary("result", 2)),
  ...each("log log2 log10 log1p", unary("input", 1)),
  ...each("sin abs lgamma digamma", unary("input", 1)),
  ...each("cos tan expm1 asin acos atan sinh cosh asinh acosh atanh logit cumprod", unary("input", 2)),
  ...each("erf erfc", unary("input", 4)),
  ...each("square", unary("input", 2)),
  ...each("clamp clamp_min clamp_max clip", unary("input", 1)),
  ...each("neg", unary("nothing")),
  ...each("pow", pow),
  ...each("add", add),
  ...each("sub rsub", sub),
  ...each("mul", mul),
  ...each("div true_divide", div),
  ...each("maximum minimum fmax fmin fmod remainder atan2 hypot xlogy logaddexp logaddexp2", extremum),
  ...each("prelu", binary({ sides: [kernel(), kernel()], reads: PRELU }, ["self", "weight"])),
  ...each("where", where),
  ...each("masked_fill", maskedFill),
  ...each("to _to_copy type_as", converted),
  ...each("clone", identityGradient),
  ...each("floor ceil round trunc sign eq ne lt le gt ge logical_not logical_and logical_or logical_xor", plain),
  ...each("bitwise_not bitwise_and bitwise_or bitwise_xor __and__ __or__ isnan isinf argmax argmin any all", plain),
  ...each("arange full full_like zeros zeros_like ones ones_like empty empty_like new_zeros new_ones new_full", plain),
  ...each(
    "scalar_tensor tensor lift_fresh_copy bernoulli rand randn rand_like randn_like randint diff floor_divide",
    plain,
  ),
  ...each(
    "eye triu_indices tril_indices bucketize searchsorted histc one_hot nonzero linspace isin argsort isclose",
    plain,
  ),
  ...each("empty_permuted empty_strided zero randperm isfinite sgn meshgrid", plain),
  ...each("heaviside count_nonzero", plain),
  ...each("bitwise_left_shift bitwise_right_shift __lshift__ __rshift__", plain),
  // of a program that has its backward pass written out
  ...each("convolution_backward native_layer_norm_backward native_group_norm_backward embedding_dense_backward", plain),
  ...each("max_pool2d_with_indices_backward avg_pool2d_backward _adaptive_avg_pool2d_backward", plain),
  ...each("_softmax_backward_data _log_softmax_backward_data gelu_backward silu_backward sigmoid_backward", plain),
  ...each("tanh_backward threshold_backward hardtanh_backward hardsigmoid_backward hardswish_backward", plain),
  ...each("leaky_relu_backward elu_backward native_batch_norm_backward", plain),
]);
