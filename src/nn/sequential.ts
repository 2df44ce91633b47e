/**
 * @file Layers one after the other. Parameters are a tuple, one entry for each layer, and so are their types; as soon as
 * one of the layers has state, so has the sequence.
 */
import { foldIn } from "../api/keys.ts";
import { scope } from "../api/scope.ts";
import { at } from "../base/invariant.ts";
import { describe, fail, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import { type Key, partKey } from "./key.ts";
import {
  type AnyLayer,
  type AnyPlainLayer,
  type AnyStatefulLayer,
  APPLY_OPTIONS,
  type ApplyOptions,
  type Layer,
  type NoParams,
  type ParamsOf,
  type StatefulLayer,
  type StateOf,
} from "./layer.ts";

type Params<L> = { readonly [K in keyof L]: ParamsOf<L[K]> };
type State<L> = { readonly [K in keyof L]: StateOf<L[K]> };

/** Options for part `index`: its random numbers are its own. @internal */
export function partOptions(options: ApplyOptions | undefined, index: number, draws = true): ApplyOptions | undefined {
  if (!options?.key || !draws) return options;
  return { ...options, key: foldIn(options.key, index) };
}

const isStateful = (layer: AnyLayer): layer is AnyStatefulLayer => "initState" in layer;

/**
 * Layers one after the other.
 *
 * @example
 * import { grad, ones } from "tidemark";
 * import { linear, relu, sequential } from "tidemark/nn";
 *
 * const model = sequential(linear(4, 8), relu(), linear(8, 2));
 * const params = model.init(0);
 * console.log(model.apply(params, ones([3, 4])).shape); // [3, 2]
 * const slopes = grad((p: typeof params) => model.apply(p, ones([3, 4])).square().mean())(params);
 * console.log(slopes[2].w.shape); // [8, 2]
 */
export function sequential<const L extends readonly AnyPlainLayer[]>(...layers: L): Layer<Params<L>>;
/** With a layer that has state among them. */
export function sequential<const L extends readonly AnyLayer[]>(...layers: L): StatefulLayer<Params<L>, State<L>>;
export function sequential(...layers: readonly AnyLayer[]): object {
  layers.forEach(requireLayer);
  return layers.some(isStateful) ? statefulSequence(layers) : plainSequence(layers as readonly AnyPlainLayer[]);
}

function requireLayer(layer: unknown, i: number): void {
  const { init, apply } = (typeof layer === "object" && layer !== null ? layer : {}) as Partial<AnyLayer>;
  if (typeof init === "function" && typeof apply === "function") return;
  const help =
    typeof layer === "function" && layer.name
      ? `call it: ${layer.name}(…) makes a layer; lambda(fn) makes one of a function of a tensor`
      : "a layer is an object with init and apply, as linear(2, 3) or relu() make them";
  fail("InvalidArgument", `sequential: item ${i} is ${describe(layer)}, not a layer`, help);
}

/** Shared by both kinds. */
function sequenceOf(layers: readonly AnyLayer[]) {
  const draws = layers.map((layer) => layer.random ?? false);
  return {
    random: draws.includes(true),
    init: (key: Key): readonly Tree[] => layers.map((layer, i) => layer.init(partKey(key, i))),
    requireApply: (options: ApplyOptions | undefined) => requireOptions("sequential", options ?? {}, APPLY_OPTIONS),
    optionsFor: (options: ApplyOptions | undefined, i: number) => partOptions(options, i, at(draws, i)),
  };
}

function plainSequence(layers: readonly AnyPlainLayer[]): Layer<readonly Tree[]> {
  const { optionsFor, requireApply, ...shared } = sequenceOf(layers);
  return {
    ...shared,
    apply: (params, x, options) => {
      requireApply(options);
      const apply = (y: Tensor, layer: AnyPlainLayer, i: number): Tensor =>
        scope(`layer${i}`, () => layer.apply(at(params, i) as never, y, optionsFor(options, i)));
      return layers.reduce(apply, x);
    },
  };
}

function statefulSequence(layers: readonly AnyLayer[]): StatefulLayer<readonly Tree[], readonly Tree[]> {
  const { optionsFor, requireApply, ...shared } = sequenceOf(layers);
  const none: NoParams = {};
  return {
    ...shared,
    initState: () => layers.map((layer): Tree => (isStateful(layer) ? layer.initState() : none)),
    apply: (params, state, x, options) => {
      requireApply(options);
      let y = x;
      const next = layers.map((layer, i): Tree => {
        const [layerParams, layerState] = [at(params, i) as never, at(state, i) as never];
        if (!isStateful(layer)) {
          y = scope(`layer${i}`, () => layer.apply(layerParams, y, optionsFor(options, i)));
          return layerState;
        }
        const [output, after] = scope(`layer${i}`, () =>
          layer.apply(layerParams, layerState, y, optionsFor(options, i)),
        );
        y = output;
        return after;
      });
      return [y, next];
    },
  };
}
