/**
 * @file L-BFGS (J. Nocedal, 1980): steps along the gradient times an estimate of the inverse Hessian, made of the last changes s of
 * the parameters and y of the gradients. For losses without noise: whole batches, fitting, physics.
 *
 *   q = g;   newest to oldest: a = s·q / s·y,  q ← q - a·y;   q ← q · (s·y / y·y);   oldest to newest: q ← q + s·(a - y·q / s·y)
 *   p ← p - lr·q                                              first: p ← p - lr·min(1, 1/‖g‖₁)·g
 *
 * A pair with s·y ≤ 10⁻¹⁰ is not kept. There is no line search: updates are those of PyTorch with one iteration for each.
 */
import { abs, add, cast, div, equal, greater, minimum, mul, neg, sub, where } from "../api/elementwise.ts";
import { fullOf } from "../api/operands.ts";
import { sum } from "../api/reduce.ts";
import { at } from "../base/invariant.ts";
import { widestFloat } from "../kernel/dtype.ts";
import { type OptionKinds, requireOptions } from "../trace/arguments.ts";
import { tensor } from "../trace/literal.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction, inPhase } from "../trace/trace.ts";
import { flatten, flattenLike, type Tree, unflatten } from "../trace/tree.ts";
import { type Optimizer, type OptimizerOptions, type OptimizerState, requireRanges } from "./optimizer.ts";

/** Options of {@link lbfgs}. */
export interface LbfgsOptions extends Pick<OptimizerOptions, "lr" | "clip"> {
  /** Pairs of changes that are kept, each as large as the parameters twice; 10 by default. */
  readonly history?: number;
}

const OPTIONS: OptionKinds<LbfgsOptions> = { lr: "a number or a function", clip: "a function", history: "a number" };

type Leaves = readonly Tensor[];

/** Σ a·b over all leaves, in the widest type among them. */
function dot(a: Leaves, b: Leaves): Tensor {
  const dtype = widestFloat(a.map((x) => x.dtype));
  return a.map((x, i) => cast(sum(mul(x, at(b, i))), dtype)).reduce((total, part) => add(total, part));
}

/** x + c·y, leaf by leaf; c is a scalar. */
const combined = (x: Leaves, c: Tensor, y: Leaves): Leaves =>
  x.map((leaf, i) => add(leaf, mul(at(y, i), cast(c, leaf.dtype))));

const difference = (x: Leaves, y: Leaves): Leaves => x.map((leaf, i) => sub(leaf, at(y, i)));

interface Pair {
  readonly s: Leaves;
  readonly y: Leaves;
}

/** a / b, and 0 where a pair is empty. */
function ratio(a: Tensor, b: Tensor): Tensor {
  const isEmpty = equal(b, 0);
  return where(isEmpty, 0, div(a, where(isEmpty, 1, b)));
}

/** The estimate of the inverse Hessian times a gradient; pairs from the newest, empty ones last. */
function direction(grad: Leaves, pairs: readonly Pair[]): Leaves {
  let q = grad;
  const products = pairs.map(({ s, y }) => dot(s, y));
  const weights = pairs.map(({ s, y }, i) => {
    const a = ratio(dot(s, q), at(products, i));
    q = combined(q, neg(a), y);
    return a;
  });
  const newest = at(pairs, 0);
  const curvature = dot(newest.y, newest.y);
  const scale = where(equal(curvature, 0), 1, ratio(at(products, 0), curvature));
  q = q.map((leaf) => mul(leaf, cast(scale, leaf.dtype)));
  for (let i = pairs.length - 1; i >= 0; i--) {
    const { s, y } = at(pairs, i);
    q = combined(q, sub(at(weights, i), ratio(dot(y, q), at(products, i))), s);
  }
  return q;
}

/** The pairs with a new one in front where it is one, the oldest dropped. */
function renewed(pairs: readonly Pair[], pair: Pair): readonly Pair[] {
  const isKept = greater(dot(pair.s, pair.y), 1e-10);
  const choose = (a: Leaves, b: Leaves): Leaves => a.map((leaf, i) => where(isKept, leaf, at(b, i)));
  return pairs.map((old, i) => {
    const before = i === 0 ? pair : at(pairs, i - 1);
    return { s: choose(before.s, old.s), y: choose(before.y, old.y) };
  });
}

/**
 * Steps of the rate 1 by default.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { lbfgs } from "tidemark/optim";
 *
 * const optimizer = lbfgs({ lr: 0.1 });
 * const params = { w: tensor([1, -2]) };
 * const state = optimizer.update(optimizer.init(params), params);
 * console.log(state.params.w.toArray()); // → [0.966667, -1.93333]
 */
export function lbfgs(options: LbfgsOptions = {}): Optimizer {
  requireOptions("lbfgs", options, OPTIONS);
  const { lr = 1, clip, history = 10 } = options;
  requireRanges("lbfgs", [["history", history, 1, 1000]]);
  if (typeof lr === "number") requireRanges("lbfgs", [["lr", lr, 0, Number.POSITIVE_INFINITY]]);
  const names = Array.from({ length: Math.floor(history) }, (_, i) => ({ s: `s${i}`, y: `y${i}` }));

  function updated<P extends Tree>(state: OptimizerState<P>, grads: P): OptimizerState<P> {
    const { leaves, def } = flatten(state.params, "params");
    const slot = (name: string): Leaves => flattenLike(def, state.slots[name], `slots.${name}`);
    const grad = flattenLike(def, clip ? clip(grads) : grads, "grads");
    const isFirst = equal(state.step, 0);
    // before the first update the past is zeros, which make no pair
    const pair = { s: slot("change"), y: difference(grad, slot("grad")) };
    const pairs = renewed(
      names.map(({ s, y }) => ({ s: slot(s), y: slot(y) })),
      pair,
    );
    const dtype = widestFloat(leaves.map((leaf) => leaf.dtype));
    const size = grad.map((g) => cast(sum(abs(g)), dtype)).reduce((total, part) => add(total, part));
    const rate = typeof lr === "function" ? cast(lr(state.step), dtype) : lr;
    const length = neg(mul(where(isFirst, minimum(div(1, size), 1), 1), rate));
    const change = direction(grad, pairs).map((leaf) => mul(leaf, cast(length, leaf.dtype)));
    const rebuilt = (list: Leaves): P => unflatten(def, list) as P;
    const entries = pairs.flatMap(({ s, y }, i) => [
      [at(names, i).s, rebuilt(s)] as const,
      [at(names, i).y, rebuilt(y)] as const,
    ]);
    return {
      params: rebuilt(leaves.map((leaf, i) => add(leaf, at(change, i)))),
      slots: { ...Object.fromEntries(entries), change: rebuilt(change), grad: rebuilt(grad) },
      step: add(state.step, 1),
    };
  }

  return {
    init: (params) => {
      const { leaves, def } = flatten(params, "params");
      const zeros = () =>
        unflatten(
          def,
          leaves.map((leaf) => fullOf(leaf.dtype, leaf.shape, 0)),
        ) as typeof params;
      const slots = [...names.flatMap(({ s, y }) => [s, y]), "change", "grad"].map((name) => [name, zeros()] as const);
      return { params, slots: Object.fromEntries(slots), step: tensor(0, { dtype: "i32" }) };
    },
    update: (state, grads) => asFunction("lbfgs", () => inPhase("update", () => updated(state, grads))),
  };
}
