/**
 * @file Reversible residual networks: the features are cut into halves, each block adds a function of one half to the
 * other, and the backward pass rebuilds what went into a block from what came out (api/coupling.ts). The arena holds one
 * state whatever the depth.
 *
 *   x ─ split ─┬ x₁ ── + ──┬─── … ─┬ y₁ ┐
 *              │       f   g       │    concat ─ y
 *              └ x₂ ───┴── + ───── … ─ y₂ ┘
 *
 * A. Gomez, M. Ren, R. Urtasun, R. Grosse, "The reversible residual network", NeurIPS 2017.
 */
import { additiveCoupling, type Halves, onGrid } from "../api/coupling.ts";
import { concat, split } from "../api/join.ts";
import { reversibleChain } from "../api/reversible.ts";
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import { describe, fail, type OptionKinds, requireArray, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import { partKey } from "./key.ts";
import type { AnyPlainLayer, Layer, ParamsOf } from "./layer.ts";
import { partOptions } from "./sequential.ts";

/** Options of {@link reversibleSequence}. */
export interface ReversibleSequenceOptions {
  /** The axis whose halves are coupled; the last by default. */
  readonly axis?: number;
  /** A power of two: the input and all increments are rounded to its multiples, and inputs are rebuilt bit by bit. */
  readonly grid?: number;
}

const OPTIONS: OptionKinds<ReversibleSequenceOptions> = { axis: "a number", grid: "a number" };

/** The two functions of a block, each from half of the features to half of the features. */
export interface ReversibleParts {
  readonly f: AnyPlainLayer;
  readonly g: AnyPlainLayer;
}

type Params<L extends readonly ReversibleParts[]> = {
  readonly [K in keyof L]: { readonly f: ParamsOf<L[K]["f"]>; readonly g: ParamsOf<L[K]["g"]> };
};

type BlockParams = { readonly f: Tree; readonly g: Tree };

function requireParts(parts: unknown, i: number): void {
  const { f, g } = (typeof parts === "object" && parts !== null ? parts : {}) as Partial<ReversibleParts>;
  if ([f, g].every((layer) => typeof layer?.init === "function" && typeof layer.apply === "function")) return;
  const summary = `reversibleSequence: block ${i} is ${describe(parts)}, without two layers f and g`;
  fail("InvalidArgument", summary, "give { f: linear(8, 8), g: linear(8, 8) } for 16 features");
}

function halvesOf(x: Tensor, axis: number): Halves<Tensor> {
  requireTensor("reversibleSequence", "the input", x);
  const extent = x.shape.at(axis);
  if (extent === undefined || extent % 2 !== 0) {
    const summary = `reversibleSequence: axis ${axis} of ${typeText(x)} has no halves`;
    fail("ShapeMismatch", summary, "blocks couple two halves of the features: give an even number of them");
  }
  const [first, second] = split(x, 2, axis);
  return [first as Tensor, second as Tensor];
}

/**
 * Blocks y₁ = x₁ + f(x₂), y₂ = x₂ + g(y₁) one after the other over the two halves of the features. The layers keep the
 * shape of what they are given; dropout in them draws the same numbers again in the backward pass.
 *
 * @example
 * import { grad, ones } from "tidemark";
 * import { linear, reversibleSequence, sequential, tanh } from "tidemark/nn";
 *
 * const part = () => sequential(linear(4, 4), tanh());
 * const model = reversibleSequence([{ f: part(), g: part() }, { f: part(), g: part() }]);
 * const params = model.init(0);
 * const slopes = grad((p: typeof params) => model.apply(p, ones([3, 8])).square().sum())(params);
 * console.log(slopes[1].g[0].w.shape); // [4, 4]
 */
export function reversibleSequence<const L extends readonly ReversibleParts[]>(
  blocks: L,
  options: ReversibleSequenceOptions = {},
): Layer<Params<L>> {
  requireArray("reversibleSequence", "the blocks", blocks, "reversibleSequence([{ f, g }, { f, g }])");
  blocks.forEach(requireParts);
  requireOptions("reversibleSequence", options, OPTIONS);
  const { axis = -1, grid } = options;
  const draws = (layer: AnyPlainLayer): boolean => layer.random ?? false;
  return {
    random: blocks.some(({ f, g }) => draws(f) || draws(g)),
    init: (key) =>
      blocks.map(({ f, g }, k) => ({
        f: f.init(partKey(key, 2 * k)),
        g: g.init(partKey(key, 2 * k + 1)),
      })) as unknown as Params<L>,
    apply: (params, x, applied) => {
      const couplings = blocks.map((block, k) => {
        const run = (layer: AnyPlainLayer, part: number) => (half: Tensor, own: Tree) =>
          layer.apply(own as never, half, partOptions(applied, part, draws(layer)));
        return additiveCoupling(run(block.f, 2 * k), run(block.g, 2 * k + 1), grid === undefined ? {} : { grid });
      });
      const own = params as readonly BlockParams[];
      const pairs = couplings.map((_, k) => [at(own, k).f, at(own, k).g] as const);
      const halves = halvesOf(x, axis);
      const begin = grid === undefined ? halves : onGrid(halves, grid);
      return concat([...reversibleChain(...couplings)(begin, pairs)], axis);
    },
  };
}
