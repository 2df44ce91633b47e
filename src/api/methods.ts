/**
 * @file Operations as methods: `x.sum(0)` is `sum(x, 0)`. Every function of the modules below takes a tensor first; the
 * method is that function with the tensor in front of the dot, and its type and its documentation are the function's.
 */
import { Tensor } from "../trace/tensor.ts";
import * as activations from "./activations.ts";
import * as aliases from "./aliases.ts";
import * as arithmetic from "./arithmetic.ts";
import * as attention from "./attention.ts";
import * as conv from "./conv.ts";
import { onesLike, tril, triu, zerosLike } from "./create.ts";
import { dropout } from "./dropout.ts";
import * as elementwise from "./elementwise.ts";
import {
  diagonal,
  dynamicSlice,
  dynamicUpdate,
  gather,
  oneHot,
  scatterAdd,
  scatterAddAlong,
  take,
} from "./indexing.ts";
import { repeat, split, tile } from "./join.ts";
import * as linear from "./linear.ts";
import { logsumexp } from "./log-sum.ts";
import { crossEntropy, mse } from "./loss.ts";
import * as math from "./math.ts";
import { missingMethods } from "./method-hints.ts";
import * as mutation from "./mutation.ts";
import * as normalize from "./normalize.ts";
import * as pool from "./pool.ts";
import * as reduce from "./reduce.ts";
import * as shape from "./shape.ts";
import { argsort, sort, topK } from "./sort.ts";
import * as special from "./special.ts";

const single = {
  ...{ onesLike, tril, triu, zerosLike, repeat, split, tile, dropout, logsumexp, var: reduce.variance },
  // other losses are functions alone, so that a bundle has those that it calls
  ...{ crossEntropy, mse },
  ...{ diagonal, dynamicSlice, dynamicUpdate, gather, oneHot, scatterAdd, scatterAddAlong, take },
  ...{ argsort, sort, topK },
} as const;

const families = [
  elementwise,
  math,
  activations,
  aliases,
  arithmetic,
  special,
  shape,
  reduce,
  linear,
  normalize,
  conv,
  pool,
  attention,
  mutation,
  single,
] as const;

/** A function without its first parameter. */
type Method<F> = F extends (x: Tensor, ...rest: infer Rest) => infer R ? (...rest: Rest) => R : never;
type MethodsOf<M> = { readonly [K in keyof M]: Method<M[K]> };

type AllMethods = MethodsOf<typeof elementwise> &
  MethodsOf<typeof math> &
  MethodsOf<typeof activations> &
  MethodsOf<typeof aliases> &
  MethodsOf<typeof arithmetic> &
  MethodsOf<typeof special> &
  MethodsOf<typeof shape> &
  MethodsOf<typeof reduce> &
  MethodsOf<typeof linear> &
  MethodsOf<typeof normalize> &
  MethodsOf<typeof conv> &
  MethodsOf<typeof pool> &
  MethodsOf<typeof attention> &
  MethodsOf<typeof mutation> &
  MethodsOf<typeof single>;

declare module "../trace/tensor.ts" {
  interface TensorMethods extends AllMethods {
    /** The axes in reverse order. */
    readonly T: Tensor;
  }
}

for (const family of families) {
  for (const [name, fn] of Object.entries(family)) {
    const method = function (this: Tensor, ...rest: readonly never[]): unknown {
      return (fn as (x: Tensor, ...rest: readonly never[]) => unknown)(this, ...rest);
    };
    Object.defineProperty(Tensor.prototype, name, { value: method, writable: true, configurable: true });
  }
}

Object.defineProperty(Tensor.prototype, "T", {
  get(this: Tensor): Tensor {
    return shape.transpose(this);
  },
  configurable: true,
});

Object.setPrototypeOf(Tensor.prototype, missingMethods);

export { Tensor };
