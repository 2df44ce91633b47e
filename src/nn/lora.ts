/**
 * @file Low-rank adapters (E. Hu and others, ICLR 2022): a weight W of a model that stays as it is becomes W + (alpha / rank)·B·A, and only the
 * small factors A and B are trained. Frozen weights have no gradients and no state of an optimizer, and inputs of their products
 * are not kept for the backward pass. The sum is never made while training (low-rank.ts); `merge` makes it once, for later.
 */
import { applyGraph } from "../api/apply.ts";
import { add, mul, stopGradient } from "../api/elementwise.ts";
import { matmul } from "../api/linear.ts";
import { reshape, transpose } from "../api/shape.ts";
import { paths } from "../api/tree.ts";
import { at } from "../base/invariant.ts";
import { newValue, type Value } from "../ir/graph.ts";
import { elementsOf, tensorType, typeText } from "../ir/type.ts";
import { isFloat } from "../kernel/dtype.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import { type AnyFunction, flattenArguments, traceFlat } from "../trace/function.ts";
import { Tensor } from "../trace/tensor.ts";
import { flatten, type Tree, unflatten } from "../trace/tree.ts";
import { fanInUniform, normal, type ParamDType, zeros } from "./distributions.ts";
import { type Key, partKey } from "./key.ts";
import { requireCounts } from "./layer.ts";
import { adapterConfig, adapterFile, type LoraConfig, readAdapter, type Target } from "./lora-files.ts";
import { matchingNames } from "./lora-targets.ts";
import { type Factors, type Use, usesOf, withFactors } from "./low-rank.ts";

/** Options of {@link lora}. */
export interface LoraOptions {
  /** The inner extent of A and B. */
  readonly rank: number;
  /**
   * Names of weights or of the layers that they belong to, whole or their last parts: `"c_attn"` is every `….c_attn.weight`; `*` stands for
   * anything. Or a function of the weight's path.
   */
  readonly targets: readonly string[] | ((path: string) => boolean);
  /** B·A counts alpha / rank times; default: rank, so that it counts once. */
  readonly alpha?: number;
  /** B·A counts alpha / √rank times (rsLoRA). */
  readonly rankStabilized?: boolean;
  /**
   * An input of the model or its spec (all that `apply` takes after parameters, as a list): shows which axis of a weight belongs to inputs. Imported
   * models have it unless sizes are open; without one, weights are taken as those of this library's layers.
   */
  readonly input?: readonly Tree[];
}

const OPTIONS: OptionKinds<LoraOptions> = {
  rank: "a number",
  targets: "anything",
  alpha: "a number",
  rankStabilized: "a boolean",
  input: "anything",
};

/** A [rank, in] and B [out, rank], of convolutions [rank, in, …window] and [out, rank, 1, …]. */
export interface LowRank {
  readonly a: Tensor;
  readonly b: Tensor;
}

/** Factors by the path of their weight. */
export type LoraParams = Readonly<Record<string, LowRank>>;

/** A layer, an imported model, or anything else with parameters as a tree. */
export interface AdaptableModel<P extends Tree, Args extends readonly unknown[], R> {
  apply(params: P, ...args: Args): R;
  /** Parameters, or a way to make them: for names and shapes. */
  readonly params?: P;
  init?(key: Key): P;
  specs?(): Tree;
}

/** A model with adapters. */
export interface LoraModel<P extends Tree, Args extends readonly unknown[], R> {
  /** Weights that are adapted, and the use of their axes. */
  readonly targets: readonly Target[];
  /** B·A counts so many times. */
  readonly scale: number;
  /** Factors whose product is zero: the model starts as it was. */
  init(key: Key): LoraParams;
  /** The model with adapted weights. Its own parameters get no gradient. */
  apply(params: P, adapter: LoraParams, ...args: Args): R;
  /** Parameters with the products added: the model gives with them what `apply` gives, up to rounding. */
  merge(params: P, adapter: LoraParams): P;
  /** `adapter_model.safetensors` in the names of PEFT. */
  save(adapter: LoraParams): Uint8Array;
  /** What goes into `adapter_config.json` beside it. */
  config(): LoraConfig;
  /** Factors from such a file. */
  load(file: Uint8Array | ArrayBuffer): LoraParams;
}

/** Parameters of a model, for their names and shapes. */
function paramsOf<P extends Tree>(model: AdaptableModel<P, never, unknown>): P {
  if (model.params !== undefined) return model.params;
  if (typeof model.init === "function") return model.init(0);
  return fail("InvalidArgument", `lora: the model ${describe(model)} has neither params nor init`, "pass a layer");
}

/** How axes are used where no input shows it: as this library's layers do. */
function conventional(name: string, rank: number): Use {
  if (rank > 2) return "windows";
  return /(^|\.)table$/.test(name) ? "table" : "in-out";
}

function inputsOf(model: AdaptableModel<never, never, unknown>, given: readonly Tree[] | undefined): unknown[] | null {
  if (given !== undefined) {
    if (!Array.isArray(given)) fail("InvalidArgument", `lora: input ${describe(given)}`, "give a list: [x]");
    return [...given];
  }
  return typeof model.specs === "function" ? [model.specs()] : null;
}

interface Named {
  readonly name: string;
  readonly leaf: Tensor;
}

function tracedUses(
  model: AdaptableModel<never, never, unknown>,
  params: Tree,
  args: readonly unknown[],
): readonly (Use | undefined)[] {
  const fn = (own: never, ...rest: never[]): unknown => model.apply(own, ...(rest as never));
  const flat = flattenArguments(fn as AnyFunction, [params, ...args]);
  const { graph } = traceFlat(fn as AnyFunction, flat);
  const count = flatten(params, "params").leaves.length;
  const own = graph.params.slice(0, count);
  const uses = usesOf(graph, own);
  return own.map((param) => uses.get(param));
}

/** Shapes of A and B. */
function shapesOf({ use, shape }: Target, rank: number): readonly [readonly number[], readonly number[]] {
  const [first, second] = [at(shape, 0), at(shape, 1)];
  if (use === "windows")
    return [
      [rank, ...shape.slice(1)],
      [first, rank, ...shape.slice(2).map(() => 1)],
    ];
  const [inward, outward] = use === "out-in" ? [second, first] : [first, second];
  return [
    [rank, inward],
    [outward, rank],
  ];
}

function initial({ use, dtype }: Target, [a, b]: ReturnType<typeof shapesOf>, key: Key): LowRank {
  const type = dtype as ParamDType;
  // a table that starts at zero in A needs no gradient of all its rows in the first step
  if (use === "table") return { a: zeros()(key, a, type), b: normal(1)(key, b, type) };
  const fans = { fanIn: elementsOf(a.slice(1)), fanOut: elementsOf(b) };
  return { a: fanInUniform(fans)(key, a, type), b: zeros()(key, b, type) };
}

/** L and R with W + s·L·R, in the order of the weight's axes. */
const sidesOf = (use: Use, { a, b }: LowRank): readonly [Tensor, Tensor] =>
  use === "in-out" || use === "table" ? [transpose(a), transpose(b)] : [b, a];

function requireAdapter(targets: readonly Target[], rank: number, adapter: unknown): asserts adapter is LoraParams {
  const given = (typeof adapter === "object" && adapter !== null ? adapter : {}) as Record<string, Partial<LowRank>>;
  for (const target of targets) {
    const pair = given[target.path];
    shapesOf(target, rank).forEach((shape, i) => {
      const tensor = i === 0 ? pair?.a : pair?.b;
      const what = `${target.path}.${i === 0 ? "a" : "b"}`;
      if (!(tensor instanceof Tensor)) {
        fail("InvalidTree", `lora: the adapter has no ${what}`, "pass what init or load returned, and nothing else");
      }
      const wanted = typeText(tensorType(target.dtype, shape));
      if (typeText(tensor) === wanted) return;
      fail("ShapeMismatch", `lora: ${what} is ${typeText(tensor)}, not ${wanted}`, "adapters have one rank");
    });
  }
}

/**
 * A model with low-rank adapters on some of its weights. The model's own parameters are frozen; the adapter is what is trained,
 * saved and merged.
 *
 * @example
 * import { grad, ones } from "tidemark";
 * import { type LoraParams, linear, lora, sequential, tanh } from "tidemark/nn";
 *
 * const model = sequential(linear(8, 16), tanh(), linear(16, 4));
 * const params = model.init(0);
 * const tuned = lora(model, { rank: 2, targets: ["*"] });
 * const adapter = tuned.init(1);
 * console.log(Object.keys(adapter)); // ["0.w", "2.w"]
 * const slopes = grad((own: LoraParams) => tuned.apply(params, own, ones([3, 8])).square().sum())(adapter);
 * console.log(slopes["0.w"]?.a.shape, slopes["0.w"]?.b.shape); // [2, 8] [16, 2]
 */
export function lora<P extends Tree, Args extends readonly unknown[], R>(
  model: AdaptableModel<P, Args, R>,
  options: LoraOptions,
): LoraModel<P, Args, R> {
  requireOptions("lora", options, OPTIONS);
  requireFunction("lora", "model.apply", (model as { apply?: unknown } | undefined)?.apply, "lora(linear(4, 4), …)");
  const { rank, alpha = rank, rankStabilized = false } = options;
  requireCounts("lora", { rank });
  if (!Number.isFinite(alpha)) fail("InvalidArgument", `lora: alpha ${describe(alpha)}`, "give a number");
  const scale = alpha / (rankStabilized ? Math.sqrt(rank) : rank);
  const targets = targetsOf(model as never, options);
  return {
    targets,
    scale,
    init: (key) =>
      Object.fromEntries(
        targets.map((target, i) => [target.path, initial(target, shapesOf(target, rank), partKey(key, i))]),
      ),
    apply: (params, adapter, ...args) => {
      requireAdapter(targets, rank, adapter);
      return applied(model as never, { params, adapter, args, targets, scale }) as R;
    },
    merge: (params, adapter) => {
      requireAdapter(targets, rank, adapter);
      const { leaves, def } = flatten(params, "params");
      const names = paths(params);
      const byPath = new Map(targets.map((target) => [target.path, target]));
      const merged = leaves.map((leaf, i) => {
        const target = byPath.get(at(names, i));
        return target ? mergedWeight(leaf, target.use, at2(adapter, target.path), scale) : leaf;
      });
      return unflatten(def, merged) as P;
    },
    save: (adapter) => {
      requireAdapter(targets, rank, adapter);
      return adapterFile(targets, adapter);
    },
    config: () => adapterConfig(targets, { rank, alpha, rankStabilized }),
    load: (file) => {
      const adapter = readAdapter(targets, file);
      requireAdapter(targets, rank, adapter);
      return adapter;
    },
  };
}

const at2 = (adapter: LoraParams, path: string): LowRank => adapter[path] as LowRank;

function targetsOf(model: AdaptableModel<Tree, never, unknown>, options: LoraOptions): readonly Target[] {
  const params = paramsOf(model as never) as Tree;
  const { leaves } = flatten(params, "params");
  const names = paths(params);
  const weights: readonly Named[] = leaves
    .map((leaf, i) => ({ name: at(names, i), leaf }))
    .filter(({ leaf }) => leaf.rank >= 2 && isFloat(leaf.dtype));
  const chosen = matchingNames(
    options.targets,
    weights.map(({ name }) => name),
  );
  const args = inputsOf(model as never, options.input);
  const uses = args && tracedUses(model as never, params, args);
  const targets = weights
    .filter(({ name }) => chosen.has(name))
    .flatMap(({ name, leaf }): readonly Target[] => {
      const traced = uses?.[names.indexOf(name)];
      // positions and masks have axes too, and no product with anything
      if (uses && traced === undefined && leaf.rank > 2) return [];
      const use = traced ?? conventional(name, leaf.rank);
      return [{ path: name, use, dtype: leaf.dtype, shape: leaf.shape }];
    });
  if (targets.length > 0) return targets;
  const summary = `lora: ${[...chosen].join(", ")} are no weights of products, convolutions or look-ups`;
  return fail("InvalidArgument", summary, "name others");
}

function mergedWeight(weight: Tensor, use: Use, pair: LowRank, scale: number): Tensor {
  const [left, right] = sidesOf(use, pair);
  const [rows, inner] = left.shape as readonly [number, number];
  const matrix = matmul(reshape(left, [rows, inner]), reshape(right, [inner, -1]));
  return add(weight, mul(reshape(matrix, weight.shape), scale));
}

interface Application {
  readonly params: Tree;
  readonly adapter: LoraParams;
  readonly args: readonly unknown[];
  readonly targets: readonly Target[];
  readonly scale: number;
}

function applied(model: AdaptableModel<never, never, unknown>, from: Application): unknown {
  const { params, adapter, args, targets, scale } = from;
  const fn = (own: never, ...rest: never[]): unknown => model.apply(own, ...(rest as never));
  const flat = flattenArguments(fn as AnyFunction, [params, ...args]);
  const traced = traceFlat(fn as AnyFunction, flat);
  const names = paths(params);
  const factors = new Map<Value, Factors>();
  const sides = targets.flatMap(({ path, use }) => {
    const param = traced.graph.params[names.indexOf(path)];
    if (!param || !names.includes(path)) {
      fail("InvalidTree", `lora: the parameters have no ${path}`, "pass the parameters that the model was made with");
    }
    const pair = sidesOf(use, at2(adapter, path));
    const [left, right] = pair.map(({ dtype, shape }) => newValue(tensorType(dtype, shape))) as [Value, Value];
    factors.set(param, { left, right, scale });
    return pair;
  });
  const graph = withFactors(traced.graph, factors);
  const own = flat.tensors.map((tensor, i) =>
    i < names.length && isFloat(tensor.dtype) ? stopGradient(tensor) : tensor,
  );
  const inputs = [...own, ...traced.captures.map(({ tensor }) => tensor), ...sides];
  return unflatten(traced.resultTree, applyGraph(graph, inputs, "once"));
}
