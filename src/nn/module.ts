/**
 * @file Modules: layers by name, and the function that connects them. Parameters are a record with the same names, so they are saved,
 * frozen and decayed by name, and a layer that is called twice, or whose parameters are read directly, shares its weights.
 */
import { stopGradient } from "../api/elementwise.ts";
import { scope } from "../api/scope.ts";
import { describe, fail, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten, type Tree, unflatten } from "../trace/tree.ts";
import { partKey } from "./key.ts";
import { type AnyPlainLayer, APPLY_OPTIONS, type ApplyOptions, type Layer, type ParamsOf } from "./layer.ts";
import { partOptions } from "./sequential.ts";

type NamedLayers = Readonly<Record<string, AnyPlainLayer>>;
type NamedParams<L> = { readonly [K in keyof L]: ParamsOf<L[K]> };
/** Layers with their parameters, as functions; what is left to give are other options. */
type Applied<L> = { readonly [K in keyof L]: (x: Tensor, options?: ApplyOptions) => Tensor };

function requireLayers(layers: unknown): asserts layers is NamedLayers {
  const entries = typeof layers === "object" && layers !== null ? Object.entries(layers) : [];
  if (entries.length === 0) {
    fail(
      "InvalidArgument",
      `module: layers ${describe(layers)}`,
      "give layers by name: module({ a: linear(2, 3) }, fn)",
    );
  }
  for (const [name, layer] of entries) {
    const { init, apply, initState } = (layer ?? {}) as { init?: unknown; apply?: unknown; initState?: unknown };
    if (typeof init !== "function" || typeof apply !== "function") {
      fail("InvalidArgument", `module: ${name} is ${describe(layer)}, not a layer`, "make layers as linear(2, 3) does");
    }
    if (initState === undefined) continue;
    const help = "put layers with state into sequential, or pass their state yourself";
    fail("InvalidArgument", `module: ${name} has a state, which this function would lose`, help);
  }
}

/**
 * A layer of named layers and a function that applies them. The function gets the layers, the input and all parameters; parts of
 * the program are named after the layers.
 *
 * @example
 * import { matmul, tensor, transpose } from "tidemark";
 * import { embedding, linear, module } from "tidemark/nn";
 *
 * // the table of the embedding gives the scores as well
 * const model = module({ table: embedding(10, 4), body: linear(4, 4) }, ({ table, body }, ids, params) =>
 *   matmul(body(table(ids)), transpose(params.table.table)),
 * );
 * const params = model.init(0);
 * console.log(Object.keys(params), model.apply(params, tensor([1, 2], { dtype: "i32" })).shape); // ["table", "body"] [2, 10]
 */
export function module<const L extends NamedLayers>(
  layers: L,
  apply: (layers: Applied<L>, x: Tensor, params: NamedParams<L>) => Tensor,
): Layer<NamedParams<L>> {
  requireLayers(layers);
  requireFunction("module", "its second argument", apply, "module({ a, b }, ({ a, b }, x) => b(a(x)))");
  const entries = Object.entries(layers);
  return {
    random: entries.some(([, layer]) => layer.random ?? false),
    init: (key) =>
      Object.fromEntries(entries.map(([name, layer], i) => [name, layer.init(partKey(key, i))])) as NamedParams<L>,
    apply: (params, x, options) => {
      requireOptions("module", options ?? {}, APPLY_OPTIONS);
      const bound = entries.map(([name, layer], i) => {
        let calls = 0;
        const call = (input: Tensor, given?: ApplyOptions): Tensor => {
          // a layer that is called again draws other numbers
          const own = partOptions(options, i + entries.length * calls++, layer.random ?? false);
          return scope(name, () => layer.apply(params[name as keyof L] as never, input, { ...own, ...given }));
        };
        return [name, call] as const;
      });
      return apply(Object.fromEntries(bound) as Applied<L>, x, params);
    },
  };
}

/**
 * A layer whose parameters get no gradient: nothing is kept or computed for it. An optimizer with weight decay needs
 * `trains` to leave them alone.
 *
 * @example
 * import { grad, ones } from "tidemark";
 * import { frozen, linear, sequential } from "tidemark/nn";
 *
 * const model = sequential(frozen(linear(4, 8)), linear(8, 2));
 * const loss = (p: ReturnType<typeof model.init>) => model.apply(p, ones([1, 4])).sum();
 * const slope = grad(loss)(model.init(0));
 * console.log(slope[0].w.abs().sum().item(), slope[1].w.abs().sum().item() > 0); // → 0 true
 */
export function frozen<P extends Tree>(layer: Layer<P>): Layer<P> {
  return {
    ...layer,
    apply: (params, x, options) => {
      const { leaves, def } = flatten(params, "params");
      return layer.apply(
        unflatten(
          def,
          leaves.map((leaf) => stopGradient(leaf)),
        ) as P,
        x,
        options,
      );
    },
  };
}
