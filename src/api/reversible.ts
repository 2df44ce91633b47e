/**
 * @file Functions that can be run backwards, so that their inputs need not be kept for the derivative:
 *
 *   x ─ forward ─ y                        only y is kept
 *   x ─ inverse ─ y      then the pullback of forward at x: d_y → d_x, d_params
 *
 * One block alone keeps its output in place of its insides. What makes the memory independent of the depth is that a
 * sequence of blocks is one block: its backward pass walks down, and the input that one block rebuilds is the output that
 * the one before it needs. So sequences are made here, by `reversibleChain` and `reversibleLoop`; blocks that are applied
 * one by one each keep their own output.
 *
 *   x₀ ─ b₀ ─ x₁ ─ b₁ ─ x₂ ─ b₂ ─ x₃       kept: x₃
 *   x₀ ────── x₁ ────── x₂ ────── x₃       rebuilt from the right, each dropped when its cotangent has passed
 *
 * Floating-point addition loses bits, so a rebuilt input is near the input, not equal to it, unless all values lie on a
 * grid (coupling.ts). `drift` measures by how much they differ; docs/simulations.md states the bound.
 *
 * A. Gomez, M. Ren, R. Urtasun, R. Grosse, "The reversible residual network", NeurIPS 2017.
 */
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import { currentTrace, outsideOfTraces } from "../trace/trace.ts";
import { flatten, type Tree, treeKey, unflatten } from "../trace/tree.ts";
import { applyGraph } from "./apply.ts";
import { concreteOf } from "./concrete.ts";
import { forLoop, scan } from "./control.ts";
import { zerosLike } from "./create.ts";
import { withVjp } from "./custom.ts";
import { add } from "./elementwise.ts";
import { floatLeaves, withFloats } from "./float-leaves.ts";
import { bind } from "./grad.ts";
import { vjp } from "./modes.ts";
import { distance, isDevelopment, requireWayBack, runOn } from "./rebuilt.ts";

/** Rebuilds the input and takes the cotangent of the output to those of the input and of the parameters. */
export type ReversibleBackward<X extends Tree, Y extends Tree, P extends Tree> = (
  y: Y,
  params: P,
  cotangent: Y,
) => readonly [x: X, dx: X, dparams: P];

/** A function of a tree and of parameters that keeps only its result for the backward pass. */
export interface Reversible<X extends Tree = Tensor, Y extends Tree = X, P extends Tree = Tree> {
  (x: X, params?: P): Y;
  inverse(y: Y, params?: P): X;
  /** What a sequence needs of its parts. @internal */
  readonly rule: ReversibleRule<X, Y, P>;
}

/** The halves of a rule of {@link reversible}. @internal */
export interface ReversibleRule<X extends Tree, Y extends Tree, P extends Tree> {
  readonly forward: (x: X, params: P) => Y;
  readonly inverse: (y: Y, params: P) => X;
  readonly backward: ReversibleBackward<X, Y, P>;
  /** Throws where the inverse of a part does not lead back from concrete values; null where nothing is checked. */
  readonly check: ((x: X, params: P) => void) | null;
}

/** Options of {@link reversible}. */
export interface ReversibleOptions<X extends Tree, Y extends Tree, P extends Tree> {
  /** Rebuilding and pulling back at once, where they share work; by default one after the other. */
  readonly backward?: ReversibleBackward<X, Y, P>;
  /**
   * Whether the inverse is tried when a program with the block is traced for the first time, on the values of that call: a
   * wrong one gives wrong gradients and no other sign. On by default, but where NODE_ENV is "production".
   */
  readonly check?: boolean;
}

const OPTIONS: OptionKinds<ReversibleOptions<Tree, Tree, Tree>> = { backward: "a function", check: "a boolean" };

const EXAMPLE = "reversible((x, p) => x.mul(p.exp()), (y, p) => y.div(p.exp()))";

/**
 * A function whose input is rebuilt from its output in the backward pass instead of being kept. Both functions take the
 * parameters as their second argument: what they close over has no derivative. Derivatives of higher order are taken
 * through the inverse; forward mode is not defined.
 *
 * @memory The output is kept in place of the input.
 *
 * @example
 * import { grad, reversible, type Tensor, tensor } from "tidemark";
 *
 * const scale = reversible(
 *   (x: Tensor, p: Tensor) => x.mul(p.exp()),
 *   (y: Tensor, p: Tensor) => y.div(p.exp()),
 * );
 * const slope = grad((p: Tensor) => scale(tensor([3]), p).sum());
 * console.log(slope(tensor([0])).toArray()); // [3]
 */
export function reversible<X extends Tree = Tensor, P extends Tree = Tree, Y extends Tree = X>(
  forward: (x: X, params: P) => Y,
  inverse: (y: Y, params: P) => X,
  options: ReversibleOptions<X, Y, P> = {},
): Reversible<X, Y, P> {
  requireFunction("reversible", "forward", forward, EXAMPLE);
  requireFunction("reversible", "inverse", inverse, EXAMPLE);
  requireOptions("reversible", options, OPTIONS as OptionKinds<ReversibleOptions<X, Y, P>>);
  const pulled: ReversibleBackward<X, Y, P> = (y, params, cotangent) => {
    const x = inverse(y, params);
    const [, pullback] = vjp<[X, P], Y>(forward, x, params);
    return [x, ...pullback(cotangent)];
  };
  const backward = options.backward ?? pulled;
  const ways = {
    inverse,
    ...(options.backward ? { backward: (y: Y, params: P) => backward(y, params, zerosOf(y))[0] } : {}),
  };
  const check = (x: X, params: P): void => requireWayBack(forward, ways, x, params);
  return blockOf({ forward, inverse, backward, check: (options.check ?? isDevelopment()) ? check : null });
}

const zerosOf = <T extends Tree>(tree: T): T => withFloats(tree, floatLeaves(tree).map(zerosLike));

/**
 * A function traced as a replay: its results at kept values equal those of the forward pass, and without the mark the two
 * would be merged and kept.
 */
function again<Args extends readonly Tree[], R extends Tree>(fn: (...args: Args) => R, args: Args): R {
  const { traced, inputs } = bind(fn as AnyFunction, args);
  const nodes = traced.graph.nodes.map((node) => ({ ...node, replay: node.replay + 1 }));
  return unflatten(traced.resultTree, applyGraph({ ...traced.graph, nodes }, inputs)) as R;
}

function blockOf<X extends Tree, Y extends Tree, P extends Tree>(rule: ReversibleRule<X, Y, P>): Reversible<X, Y, P> {
  const checked = new Set<string>();
  const apply = withVjp<[X, P], Y, readonly [Y, P]>("reversible", rule.forward, {
    forward: (x, params) => {
      const y = rule.forward(x, params);
      return [y, [y, params]];
    },
    backward: ([y, params], cotangent) => again(rule.backward, [y, params, cotangent]).slice(1) as unknown as [X, P],
  });
  const none = [] as unknown as P;
  const applied = (x: X, params: P = none): Y => {
    checkOnce(rule, checked, x, params);
    return apply(x, params);
  };
  return Object.assign(applied, {
    inverse: (y: Y, params: P = none): X => rule.inverse(y, params),
    rule,
  });
}

/** Tries the inverse once for each structure and types of the arguments, where their values can be known. */
function checkOnce<X extends Tree, Y extends Tree, P extends Tree>(
  rule: ReversibleRule<X, Y, P>,
  checked: Set<string>,
  x: X,
  params: P,
): void {
  const { check } = rule;
  if (!currentTrace() || check === null) return;
  const flat = flatten([x, params], "x");
  const key = `${treeKey(flat.def)}:${flat.leaves.map(typeText).join(",")}`;
  if (checked.has(key)) return;
  const known = concreteOf(flat.leaves);
  if (!known) return;
  const [ownX, ownParams] = unflatten(flat.def, known) as [X, P];
  outsideOfTraces(() => check(ownX, ownParams));
  checked.add(key);
}

function requireBlock(name: string, block: unknown): void {
  if (typeof block === "function" && "rule" in block && "inverse" in block) return;
  fail("InvalidArgument", `${name}: ${describe(block)} is no reversible block`, `make one: ${EXAMPLE}`);
}

/**
 * Blocks one after the other as one block, which keeps one state however many there are. Its parameters are a list with
 * those of each block.
 *
 * @memory One state besides the parameters, the last, however many blocks there are.
 *
 * @example
 * import { reversible, reversibleChain, type Tensor, tensor } from "tidemark";
 *
 * const shift = reversible((x: Tensor, p: Tensor) => x.add(p), (y: Tensor, p: Tensor) => y.sub(p));
 * const both = reversibleChain(shift, shift);
 * const y = both(tensor([1]), [tensor([2]), tensor([3])]);
 * console.log(y.toArray(), both.inverse(y, [tensor([2]), tensor([3])]).toArray()); // [6] [1]
 */
export function reversibleChain<X extends Tree = Tensor, P extends Tree = Tree>(
  ...blocks: readonly Reversible<X, X, P>[]
): Reversible<X, X, readonly P[]> {
  for (const block of blocks) requireBlock("reversibleChain", block);
  const paramsOf = (params: readonly P[], k: number): P => params[k] ?? ([] as unknown as P);
  const requireParams = (params: readonly P[]): void => {
    if (Array.isArray(params) && (params.length === blocks.length || params.length === 0)) return;
    const summary = `reversibleChain: ${describe(params)} as parameters of ${blocks.length} blocks`;
    fail("InvalidTree", summary, "give a list with the parameters of each block, [] for a block without");
  };
  const checkAll = (x: X, params: readonly P[]): void => {
    let state: X | null = x;
    for (const [k, { rule }] of blocks.entries()) {
      if (state === null) return;
      rule.check?.(state, paramsOf(params, k));
      if (k + 1 < blocks.length) state = runOn<X>(rule.forward as AnyFunction, [state, paramsOf(params, k)]);
    }
  };
  return blockOf<X, X, readonly P[]>({
    forward: (x, params) => {
      requireParams(params);
      return blocks.reduce((state, { rule }, k) => rule.forward(state, paramsOf(params, k)), x);
    },
    inverse: (y, params) => {
      requireParams(params);
      return blocks.reduceRight((state, { rule }, k) => rule.inverse(state, paramsOf(params, k)), y);
    },
    check: blocks.every(({ rule }) => rule.check === null) ? null : checkAll,
    backward: (y, params, cotangent) => {
      let state: X = y;
      let ct: X = cotangent;
      const slopes: P[] = [];
      for (let k = blocks.length - 1; k >= 0; k--) {
        const [x, dx, dparams] = at(blocks, k).rule.backward(state, paramsOf(params, k), ct);
        state = x;
        ct = dx;
        slopes.unshift(dparams);
      }
      return [state, ct, params.length === 0 ? params : slopes];
    },
  });
}

/**
 * One block `iterations` times with the same parameters, as one block: the program and its memory are those of one iteration.
 *
 * @memory One state, the last, however many iterations there are.
 *
 * @example
 * import { grad, reversible, reversibleLoop, type Tensor, tensor } from "tidemark";
 *
 * const shift = reversible((x: Tensor, p: Tensor) => x.add(p), (y: Tensor, p: Tensor) => y.sub(p));
 * const far = reversibleLoop(shift, 1000);
 * const slope = grad((p: Tensor) => far(tensor([0]), p).sum());
 * console.log(slope(tensor([1])).toArray()); // [1000]
 */
export function reversibleLoop<X extends Tree = Tensor, P extends Tree = Tree>(
  block: Reversible<X, X, P>,
  iterations: number,
): Reversible<X, X, P> {
  requireBlock("reversibleLoop", block);
  if (!Number.isInteger(iterations) || iterations < 0) {
    fail("InvalidArgument", `reversibleLoop: iterations is ${describe(iterations)}`, "give a whole number from 0 up");
  }
  const { rule } = block;
  return blockOf<X, X, P>({
    forward: (x, params) => forLoop(iterations, x, (_, state) => rule.forward(state, params)),
    inverse: (y, params) => forLoop(iterations, y, (_, state) => rule.inverse(state, params)),
    // Of one iteration: it is the same block in all.
    check: iterations === 0 ? null : rule.check,
    backward: (y, params, cotangent) => {
      type State = readonly [X, X, readonly Tensor[]];
      const iteration = ([state, ct, sums]: State): readonly [State, Tree] => {
        const [x, dx, dparams] = rule.backward(state, params, ct);
        const slopes = floatLeaves(dparams).map((slope, i) => add(at(sums, i), slope));
        return [[x, dx, slopes], []];
      };
      const begin: State = [y, cotangent, floatLeaves(params).map(zerosLike)];
      const [[x, dx, sums]] = scan<State, null, Tree>(iteration, begin, null, { length: iterations });
      return [x, dx, withFloats(params, sums)];
    },
  });
}

/**
 * How far the rebuilt input is from the input: the greatest |inverse(forward(x)) - x| over all elements, f64[]. Zero for
 * blocks whose arithmetic is exact.
 *
 * @example
 * import { additiveCoupling, drift, onGrid, tensor } from "tidemark";
 *
 * const block = additiveCoupling((x) => x.sin(), (x) => x.cos(), { grid: 2 ** -16 });
 * const x = onGrid([tensor([0.1, 2]), tensor([-3, 0.7])] as const, 2 ** -16);
 * console.log(drift(block, x).item()); // 0
 */
export function drift<X extends Tree, Y extends Tree, P extends Tree>(
  block: Reversible<X, Y, P>,
  x: X,
  params: P = [] as unknown as P,
): Tensor {
  requireBlock("drift", block);
  const rebuilt = block.rule.inverse(block.rule.forward(x, params), params);
  return distance(x, rebuilt);
}
