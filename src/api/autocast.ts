/** @file Products in bf16 or f16, everything else in f32: casts that are inserted while a function is recorded. */
import { at } from "../base/invariant.ts";
import { isFloat } from "../kernel/dtype.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import { numberOf, Tensor } from "../trace/tensor.ts";
import { unflatten } from "../trace/tree.ts";
import { applyGraph } from "./apply.ts";
import { type AutocastMode, FULL, type HalfType, inMode } from "./autocast-mode.ts";
import { customJvp } from "./custom.ts";
import { cast, div, mul } from "./elementwise.ts";
import { bind } from "./grad.ts";

/** Options of {@link autocast}. */
export interface AutocastOptions {
  /** The type of the operands and results of products: `"bf16"` or `"f16"`. */
  readonly products: HalfType;
  /**
   * The type of sums of an f32 tensor and a half one of the same size, which is what the residual stream of a network consists of.
   * Default: `"f32"`.
   */
  readonly stream?: "f32" | HalfType;
  /**
   * Derivatives are computed of the result times this and divided by it where they leave the function, so that small ones do not
   * become zero in f16. A power of two changes no bit of those in range. Default: 1.
   */
  readonly lossScale?: number | Tensor;
}

const HALVES: readonly string[] = ["bf16", "f16"] satisfies readonly HalfType[];
const STREAMS: readonly string[] = [FULL, ...HALVES];

const OPTIONS: OptionKinds<AutocastOptions> = { products: "a text", stream: "a text", lossScale: "anything" };

function modeOf(options: AutocastOptions): AutocastMode {
  requireOptions("autocast", options, OPTIONS);
  const { products, stream = FULL } = options;
  if (!HALVES.includes(products)) {
    const help = 'autocast(fn, { products: "bf16" }), or "f16"';
    fail("InvalidArgument", `autocast: products is ${describe(products)}`, help);
  }
  if (STREAMS.includes(stream) && (stream === FULL || stream === products)) return { products, stream };
  return fail("InvalidArgument", `autocast: stream is ${describe(stream)}`, `it is "${FULL}" or "${products}"`);
}

/** The same value; its derivative is multiplied or divided. A scale that is traced is an argument, since rules close over none. */
function scaledTangent(by: typeof mul, scale: number | Tensor): (x: Tensor) => Tensor {
  if (typeof scale === "number") {
    return customJvp(
      (x: Tensor) => x,
      (_, [t]) => by(t, scale),
    );
  }
  const scaled = customJvp(
    (x: Tensor, _: Tensor) => x,
    ([, s], [t]) => by(t, cast(s, t.dtype)),
  );
  return (x) => scaled(x, scale);
}

function requireScale(scale: unknown): void {
  if (scale instanceof Tensor) {
    if (numberOf(scale) || (scale.rank === 0 && scale.dtype === FULL)) return;
    fail("InvalidArgument", `autocast: lossScale is ${describe(scale)}`, `give a number, or a scalar of ${FULL}`);
  }
  if (typeof scale === "number" && Number.isFinite(scale) && scale > 0) return;
  fail("InvalidArgument", `autocast: lossScale is ${describe(scale)}`, "give a positive number, 1024 for instance");
}

/** Derivatives enter scaled and leave as they were: those of all that the function reads, captured tensors too. */
function scaled(fn: AnyFunction, args: readonly unknown[], scale: number | Tensor): unknown {
  const { traced, inputs } = bind(fn, args);
  const [enter, leave] = [scaledTangent(div, scale), scaledTangent(mul, scale)];
  const results = applyGraph(
    traced.graph,
    inputs.map((x) => (isFloat(x.dtype) ? enter(x) : x)),
  );
  return unflatten(
    traced.resultTree,
    results.map((y, i) => (isFloat(at(results, i).dtype) ? leave(y) : y)),
  );
}

/**
 * The function with its matrix products and convolutions in bf16 or f16. Parameters, norms, softmax, losses, sums and optimizers
 * stay f32. Products add up in f32; gradients of f32 weights are not rounded to the narrow type. What follows a product (a bias, an
 * activation) has its type, the sum with an f32 tensor of the same size is f32. Give it the loss or the whole training step.
 *
 * @memory What matrix products and convolutions read is kept in the narrow type, with two bytes for an element.
 *
 * @example
 * import { autocast, compile, ones, type Tensor, valueAndGrad } from "tidemark";
 *
 * const loss = autocast((w: Tensor, x: Tensor) => x.matmul(w).relu().mean(), { products: "bf16" });
 * const [value, dw] = compile(valueAndGrad(loss))(ones([4, 2]), ones([3, 4]));
 * console.log(value.item(), dw.dtype); // 4 f32
 */
export function autocast<Args extends readonly unknown[] = [Tensor], R = Tensor>(
  fn: (...args: Args) => R,
  options: AutocastOptions,
): (...args: Args) => R {
  requireFunction("autocast", "its first argument", fn);
  const mode = modeOf(options);
  const { lossScale } = options;
  if (lossScale !== undefined) requireScale(lossScale);
  const plain = (...args: readonly unknown[]): unknown =>
    inMode(mode, () => (fn as unknown as (...given: readonly unknown[]) => unknown)(...args));
  const wrapped =
    lossScale === undefined || lossScale === 1
      ? plain
      : (...args: readonly unknown[]): unknown => scaled(plain as AnyFunction, args, lossScale);
  // traces and errors name the function that was given
  Object.defineProperty(wrapped, "name", { value: fn.name });
  return wrapped as unknown as (...args: Args) => R;
}
