/**
 * @file The updates of the built-in programs, in the arithmetic of PyTorch 1.13 so that losses agree. State is a tree
 * beside the parameters; every update is elementwise, so a donated state is updated in place.
 */
import { add, div, expm1, mul, neg, sqrt, square, sub } from "../../api/elementwise.ts";
import { at } from "../../base/invariant.ts";
import { tensor } from "../../trace/literal.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { flatten, unflatten } from "../../trace/tree.ts";
import type { State } from "./program.ts";

export interface Optimizer {
  init<P extends object>(params: P): State<P>;
  update<P extends object>(state: State<P>, grads: P): State<P>;
}

/** f over the leaves of trees that have the structure of the first. */
function mapTrees<P extends object>(f: (...leaves: readonly Tensor[]) => Tensor, first: P, ...rest: readonly P[]): P {
  const { leaves, def } = flatten(first, "state");
  const others = rest.map((tree) => flatten(tree, "state").leaves);
  const mapped = leaves.map((leaf, i) => f(leaf, ...others.map((list) => at(list, i))));
  return unflatten(def, mapped) as P;
}

const zerosOf = <P extends object>(params: P): P =>
  mapTrees((p) => tensor(new Float32Array(p.elements), { shape: p.shape }), params);

/** w ← w - rate · g */
export function sgd(rate: number): Optimizer {
  return {
    init: (params) => ({ params }),
    update: ({ params }, grads) => ({ params: mapTrees((p, g) => sub(p, mul(g as Tensor, rate)), params, grads) }),
  };
}

interface MomentumState<P extends object> extends State<P> {
  readonly velocity: P;
}

/** v ← momentum · v + g,  w ← w - rate · v */
export function momentum(rate: number, keep: number): Optimizer {
  return {
    init: <P extends object>(params: P): MomentumState<P> => ({ params, velocity: zerosOf(params) }),
    update<P extends object>(state: State<P>, grads: P): MomentumState<P> {
      const velocity = mapTrees((v, g) => add(mul(v, keep), g as Tensor), (state as MomentumState<P>).velocity, grads);
      return { params: mapTrees((p, v) => sub(p, mul(v as Tensor, rate)), state.params, velocity), velocity };
    },
  };
}

interface AdamState<P extends object> extends State<P> {
  readonly m: P;
  readonly v: P;
  /** Steps made, f32. */
  readonly step: Tensor;
}

const [BETA1, BETA2, EPS] = [0.9, 0.999, 1e-8];

/** 1 - βᵗ = -(e^(t ln β) - 1): exact to the last bit or so where βᵗ is close to 1, which 1 - β ** t is not. */
const oneMinusPower = (beta: number, t: Tensor): Tensor => neg(expm1(mul(t, Math.log(beta))));

/**
 * Adam (Kingma and Ba 2014), with decoupled weight decay (Loshchilov and Hutter 2017) where `decay` > 0:
 *
 *   m ← β₁ m + (1-β₁) g,  v ← β₂ v + (1-β₂) g²
 *   w ← (1 - rate · decay) w - rate / (1-β₁ᵗ) · m / (√v / √(1-β₂ᵗ) + ε)
 */
export function adam(rate: number, decay = 0): Optimizer {
  return {
    init: <P extends object>(params: P): AdamState<P> => {
      return { params, m: zerosOf(params), v: zerosOf(params), step: tensor(0) };
    },
    update<P extends object>(state: State<P>, grads: P): AdamState<P> {
      const old = state as AdamState<P>;
      const step = add(old.step, 1);
      const m = mapTrees((a, g) => add(mul(a, BETA1), mul(g as Tensor, 1 - BETA1)), old.m, grads);
      const v = mapTrees((a, g) => add(mul(a, BETA2), mul(square(g as Tensor), 1 - BETA2)), old.v, grads);
      const size = div(rate, oneMinusPower(BETA1, step));
      const correction = sqrt(oneMinusPower(BETA2, step));
      const moved = (p: Tensor, a: Tensor, b: Tensor): Tensor => {
        const kept = decay > 0 ? mul(p, 1 - rate * decay) : p;
        return sub(kept, mul(size, div(a, add(div(sqrt(b), correction), EPS))));
      };
      return { params: mapTrees((p, a, b) => moved(p, a as Tensor, b as Tensor), old.params, m, v), m, v, step };
    },
  };
}
