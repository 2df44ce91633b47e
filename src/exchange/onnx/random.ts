/**
 * @file Random numbers, windows, Fourier transforms, and the optimizers of ONNX. Draws come from keys of this library: the same model
 * with the same key gives the same numbers, which are not those of other runtimes.
 */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import type { FloatType } from "../../kernel/dtype.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { discreteFourier, melMatrix, shortTimeFourier, windowOf } from "../shared/signal.ts";
import type { Call, Operator, Result } from "./call.ts";
import { converted } from "./elementwise.ts";
import { castType } from "./types.ts";
import { dtypeFor } from "./value.ts";

/** The type of draws: an attribute, or that of the first input. */
function drawType(call: Call): FloatType {
  const type = call.attribute("dtype") ? castType(call, "dtype") : (call.maybe(0)?.type ?? "float");
  return dtypeFor(type, call.around.floats, call.title) as FloatType;
}

const uniform = (call: Call, shape: readonly number[]): Tensor =>
  t.random.uniform(call.around.key(), shape, {
    dtype: drawType(call),
    lo: call.float("low", 0),
    hi: call.float("high", 1),
  });

const normal = (call: Call, shape: readonly number[]): Tensor =>
  t.random.normal(call.around.key(), shape, {
    dtype: drawType(call),
    mean: call.float("mean", 0),
    std: call.float("scale", 1),
  });

function bernoulli(call: Call): Result {
  const p = call.x(0);
  const drawn = t.less(t.random.uniform(call.around.key(), p.shape, { dtype: p.dtype as FloatType }), p);
  return converted(drawn, call.attribute("dtype") ? castType(call, "dtype") : call.value(0).type, call.around.floats);
}

/** Rates and modes are inputs from version 12 on; before that a dropout of a model that is run does nothing. */
function dropout(call: Call): readonly Result[] {
  const x = call.x(0);
  const training = call.opset >= 12 && call.has(2) ? at(call.numbers(2, "training mode"), 0) !== 0 : false;
  const given = call.opset >= 12 ? call.maybeNumbers(1, "ratio") : null;
  const rate = given?.[0] ?? call.float("ratio", 0.5);
  if (!training || rate === 0) return [call.value(0), t.full(x.shape, true)];
  const mask = t.random.bernoulli(call.around.key(), 1 - rate, x.shape);
  return [t.where(mask, t.mul(x, 1 / (1 - rate)), 0), mask];
}

const window =
  (weights: readonly number[]): Operator =>
  (call) => {
    const size = at(call.numbers(0, "size"), 0);
    const values = windowOf(size, call.flag("periodic", true), weights);
    return call.make(castType(call, "output_datatype"), [size], Float64Array.from(values));
  };

function fourier(call: Call): Tensor {
  const x = call.x(0);
  // from version 20 on the axis is an input, and counts before the pair of real and imaginary part
  const axis = call.opset >= 20 ? (call.maybeNumbers(2, "axis")?.[0] ?? -2) : call.int("axis", 1);
  return discreteFourier(x, {
    axis: call.axis(axis, x.rank),
    length: call.maybeNumbers(1, "length")?.[0],
    inverse: call.flag("inverse"),
    oneSided: call.flag("onesided"),
  });
}

function stft(call: Call): Tensor {
  const step = at(call.numbers(1, "frame step"), 0);
  const given = call.has(2) ? call.x(2) : null;
  const length =
    call.maybeNumbers(3, "frame length")?.[0] ?? given?.shape[0] ?? call.fail("it has neither a window nor a length");
  return shortTimeFourier(call.x(0), { step, length, window: given, oneSided: call.flag("onesided", true) });
}

function mel(call: Call): Result {
  const [bins, length, rate, low, high] = [0, 1, 2, 3, 4].map((i) => at(call.numbers(i, "parameters"), 0));
  const rows = Math.floor((length as number) / 2) + 1;
  const matrix = melMatrix([bins, length, rate, low, high] as [number, number, number, number, number]);
  return call.make(castType(call, "output_datatype"), [rows, bins as number], Float64Array.from(matrix));
}

// ---- optimizers ---------------------------------------------------------------------------------------------------

/** Several weights at once: rate, step, then all weights, all gradients, all states of each kind. */
function steps(
  call: Call,
  states: number,
  step: (x: Tensor, g: Tensor, s: readonly Tensor[]) => readonly Tensor[],
): readonly Tensor[] {
  const count = (call.inputs.length - 2) / (2 + states);
  const results = Array.from({ length: count }, (_, k) => {
    const own = Array.from({ length: states }, (__, s) => call.x(2 + (2 + s) * count + k));
    return step(call.x(2 + k), call.x(2 + count + k), own);
  });
  return Array.from({ length: 1 + states }, (_, s) => results.map((one) => at(one, s))).flat();
}

const decayed = (call: Call, x: Tensor, g: Tensor): Tensor => t.add(g, t.mul(x, call.float("norm_coefficient", 0)));

function adagrad(call: Call): readonly Tensor[] {
  const rate = t.div(call.x(0), t.add(t.mul(t.cast(call.x(1), call.x(0).dtype), call.float("decay_factor", 0)), 1));
  return steps(call, 1, (x, g, [h]) => {
    const gradient = decayed(call, x, g);
    const sum = t.add(h as Tensor, t.square(gradient));
    return [t.sub(x, t.div(t.mul(rate, gradient), t.add(t.sqrt(sum), call.float("epsilon", 1e-6)))), sum];
  });
}

function momentum(call: Call): readonly Tensor[] {
  const [rate, time] = [call.x(0), call.x(1)];
  const [alpha, beta] = [call.float("alpha", 0), call.float("beta", 0)];
  return steps(call, 1, (x, g, [v]) => {
    const gradient = decayed(call, x, g);
    const share = t.where(t.greater(time, 0), t.full([], beta, rate.dtype), t.full([], 1, rate.dtype));
    const next = t.add(t.mul(v as Tensor, alpha), t.mul(gradient, share));
    const moved = call.text("mode", "standard") === "nesterov" ? t.add(gradient, t.mul(next, alpha)) : next;
    return [t.sub(x, t.mul(rate, moved)), next];
  });
}

function adam(call: Call): readonly Tensor[] {
  const [rate, time] = [call.x(0), t.cast(call.x(1), call.x(0).dtype)];
  const [alpha, beta] = [call.float("alpha", 0.9), call.float("beta", 0.999)];
  const after = call.float("norm_coefficient_post", 0);
  // where there was no step yet the rate is used as it is, and what is not used must be finite
  const counted = t.maximum(time, 1);
  const power = (base: number): Tensor => t.pow(t.full([], base, rate.dtype), counted);
  const corrected = t.div(t.mul(rate, t.sqrt(t.sub(1, power(beta)))), t.sub(1, power(alpha)));
  const used = t.where(t.greater(time, 0), corrected, rate);
  return steps(call, 2, (x, g, [v, h]) => {
    const gradient = decayed(call, x, g);
    const first = t.add(t.mul(v as Tensor, alpha), t.mul(gradient, 1 - alpha));
    const second = t.add(t.mul(h as Tensor, beta), t.mul(t.square(gradient), 1 - beta));
    const moved = t.sub(x, t.div(t.mul(used, first), t.add(t.sqrt(second), call.float("epsilon", 1e-6))));
    return [t.mul(moved, 1 - after), first, second];
  });
}

export const RANDOM: Readonly<Record<string, Operator>> = {
  RandomUniform: (call) => uniform(call, call.ints("shape") ?? []),
  RandomUniformLike: (call) => uniform(call, call.value(0).shape),
  RandomNormal: (call) => normal(call, call.ints("shape") ?? []),
  RandomNormalLike: (call) => normal(call, call.value(0).shape),
  Bernoulli: bernoulli,
  Dropout: dropout,
  HannWindow: window([0.5, -0.5]),
  HammingWindow: window([25 / 46, -21 / 46]),
  BlackmanWindow: window([0.42, -0.5, 0.08]),
  DFT: fourier,
  STFT: stft,
  MelWeightMatrix: mel,
};

/** Of the domain `ai.onnx.preview.training`. */
export const TRAINING: Readonly<Record<string, Operator>> = { Adagrad: adagrad, Adam: adam, Momentum: momentum };
