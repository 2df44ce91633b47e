/**
 * @file A layer is a pair of functions. `init` makes parameters, a plain tree of tensors; `apply` is a function of
 * parameters and input. Nothing is stored in the layer and nothing is written to, so layers nest, differentiate and
 * compile like any other function. What changes while training besides parameters (running statistics) is state: it
 * goes in and comes out.
 */
import { grouped } from "../base/errors.ts";
import { type Shape, typeText } from "../ir/type.ts";
import { describe, fail, type OptionKinds, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import type { Initializer, ParamDType } from "./distributions.ts";
import type { Key } from "./key.ts";

/** Options of a layer's `apply`. */
export interface ApplyOptions {
  /** Training: dropout drops, batch normalisation uses the batch's statistics. False by default. */
  readonly train?: boolean | undefined;
  /** For layers that draw random numbers while training; use a new one for every step. */
  readonly key?: Tensor | undefined;
  /** For attention: bool, true where a position may see another, or floats added to the scores (`attention`). */
  readonly mask?: Tensor | undefined;
  /** For attention: how many positions there are, i32[], or one number for each batch; those behind are padding (`attention`). */
  readonly length?: Tensor | undefined;
}

/** @internal */
export const APPLY_OPTIONS: OptionKinds<ApplyOptions> = {
  train: "a boolean",
  key: "a tensor",
  mask: "a tensor",
  length: "a tensor",
};

/** A function of parameters and an input, and a way to make the parameters. */
export interface Layer<P extends Tree = Tree> {
  init(key: Key): P;
  apply(params: P, x: Tensor, options?: ApplyOptions): Tensor;
  /** Whether `apply` draws random numbers while training, and so needs a key. */
  readonly random?: boolean;
}

/** A layer with something besides parameters that changes while training. */
export interface StatefulLayer<P extends Tree = Tree, S extends Tree = Tree> {
  init(key: Key): P;
  initState(): S;
  /** The output and the next state, which is the given one unless `train` is set. */
  apply(params: P, state: S, x: Tensor, options?: ApplyOptions): readonly [Tensor, S];
  readonly random?: boolean;
}

/** Keys and values of the positions so far, [..., heads, capacity, width of a head]; what is behind them has no meaning. */
export interface KeyValueCache {
  readonly k: Tensor;
  readonly v: Tensor;
}

/** A layer that computes the outputs of new positions from what it keeps of those before. */
export interface CachedLayer<P extends Tree = Tree, C extends Tree = Tree> extends Layer<P> {
  /** An empty cache for so many positions, of inputs with these axes before positions and features. */
  initCache(capacity: number, batch?: Shape): C;
  /**
   * The outputs of positions [..., n, features], the first of which is number `position` (i32[]), and the cache with them.
   * Donated to a compiled function, the cache is changed in place. `position` + n may not exceed the capacity: the program
   * cannot check it.
   */
  extend(params: P, x: Tensor, cache: C, position: Tensor): readonly [Tensor, C];
}

/** A layer without state whose parameters only it knows: they go from its `init` to its `apply`. */
export interface AnyPlainLayer {
  init(key: Key): Tree;
  apply(params: never, x: Tensor, options?: ApplyOptions): Tensor;
  readonly random?: boolean;
}

/**
 * The same with state.
 *
 * @example
 * import { type AnyStatefulLayer, batchNorm } from "tidemark/nn";
 *
 * const layer: AnyStatefulLayer = batchNorm(3);
 * console.log(Object.keys(layer.initState())); // → [mean, variance]
 */
export interface AnyStatefulLayer {
  init(key: Key): Tree;
  initState(): Tree;
  apply(params: never, state: never, x: Tensor, options?: ApplyOptions): readonly [Tensor, Tree];
  readonly random?: boolean;
}

/**
 * A layer of any kind.
 *
 * @example
 * import { type AnyLayer, batchNorm, linear } from "tidemark/nn";
 *
 * const layers: AnyLayer[] = [linear(2, 3), batchNorm(3)];
 * console.log(layers.map((layer) => "initState" in layer)); // → [false, true]
 */
export type AnyLayer = AnyPlainLayer | AnyStatefulLayer;

/**
 * The parameters of a layer.
 *
 * @example
 * import { linear, type ParamsOf } from "tidemark/nn";
 *
 * const layer = linear(2, 3);
 * const shapes = (params: ParamsOf<typeof layer>) => [params.w.shape, params.b.shape];
 * console.log(shapes(layer.init(0))); // → [[2, 3], [3]]
 */
export type ParamsOf<L> = L extends { init(key: Key): infer P } ? P : never;

/**
 * The state of a layer; that of a layer without state is an empty object.
 *
 * @example
 * import { batchNorm, type StateOf } from "tidemark/nn";
 *
 * const layer = batchNorm(3);
 * const mean = (state: StateOf<typeof layer>) => state.mean.toArray();
 * console.log(mean(layer.initState())); // → [0, 0, 0]
 */
export type StateOf<L> = L extends { initState(): infer S } ? S : NoParams;

/** Parameters of a layer that has none. */
export type NoParams = Readonly<Record<never, Tensor>>;

/** A weight, and an offset unless the layer was made without. */
export type Weights<B extends boolean> = { readonly w: Tensor } & (B extends false ? unknown : { readonly b: Tensor });

/** Options of layers with a weight. */
export interface WeightOptions<B extends boolean = true> {
  /** Whether an offset is added; true by default. */
  readonly bias?: B;
  readonly weight?: Initializer;
  readonly offset?: Initializer;
  readonly dtype?: ParamDType;
}

/** @internal */
export const WEIGHT_OPTIONS: OptionKinds<WeightOptions> = {
  bias: "a boolean",
  weight: "a function",
  offset: "a function",
  dtype: "a float type",
};

/** Throws unless all are integers of at least 1. @internal */
export function requireCounts(layer: string, counts: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(counts)) {
    if (Number.isInteger(count) && count >= 1) continue;
    fail("InvalidArgument", `${layer}: ${name} ${describe(count)}`, "give a whole number from 1 up");
  }
}

/** Throws unless a rate of dropout is one. @internal */
export function requireRate(layer: string, rate: number): void {
  if (typeof rate === "number" && rate >= 0 && rate < 1) return;
  fail("InvalidArgument", `${layer}: rate ${String(rate)}`, "a rate is at least 0 and below 1");
}

/** The key of a layer that draws while it trains. @internal */
export function requireDrawKey(layer: string, key: Tensor | undefined): Tensor {
  if (key) return key;
  return fail(
    "InvalidArgument",
    `${layer}: training draws random numbers, and there is no key to draw them from`,
    "pass { train: true, key: random.foldIn(key, step) } to apply",
  );
}

/** The meaning of an axis, and its expected extent: `["features", 64]`. @internal */
export type Extent = readonly [what: string, expected: number];

/** Throws unless an axis of x has the extent that the layer was made for; negative axes count from the end. @internal */
export function requireExtent(layer: string, x: Tensor, axis: number, [what, expected]: Extent): void {
  requireTensor(layer, "the input", x);
  const extent = x.shape.at(axis);
  if (x.shape.length > (axis < 0 ? -axis - 1 : axis) && extent === expected) return;
  const got = extent === undefined ? typeText(x) : `${grouped(extent)} in ${typeText(x)}`;
  const place = axis === -1 ? "the last axis" : `axis ${axis}`;
  fail(
    "ShapeMismatch",
    `${layer}: made for ${grouped(expected)} ${what}, got ${got}`,
    `${place} holds the ${what}: reshape the input, or make the layer with ${extent ?? "that many"}`,
  );
}
