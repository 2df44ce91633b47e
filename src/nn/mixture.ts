/**
 * @file Mixture of experts: a feed-forward layer of which every token uses a few of many parts. A router chooses `active` of
 * `experts` for each token, and their outputs are added, weighted by its probabilities.
 *
 *   x [T, d] ── router ── k of E ──┐
 *      └── rows, sorted by expert ─┴── up ── activation ── down ── rows back to tokens ── Σ gate · row ── y [T, d]
 *          [T·k + padding, d]          [E, d, h]            [E, h, d]
 *
 * N. Shazeer and others, ICLR 2017; Switch: W. Fedus and others, 2022; without dropped tokens: T. Gale and others, MLSys 2023.
 */
import { applyOp } from "../api/apply.ts";
import { mul } from "../api/elementwise.ts";
import { TILE } from "../api/grouped.ts";
import { matmul } from "../api/linear.ts";
import { gelu, relu, silu } from "../api/math.ts";
import { sum } from "../api/reduce.ts";
import { expandDims, reshape } from "../api/shape.ts";
import { at } from "../base/invariant.ts";
import { type Shape, sameShape, shapeText, typeText } from "../ir/type.ts";
import { groupedMatmul, permuteRows } from "../ops/grouped.ts";
import { fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asPart } from "../trace/trace.ts";
import { fanInUniform, type Initializer, type ParamDType } from "./distributions.ts";
import { type Key, partKey } from "./key.ts";
import { requireCounts, requireExtent } from "./layer.ts";
import { exactPlaces, exactRows, limitedPlaces, type Places, type Routing, route } from "./routing.ts";

/** The function between the two products of an expert. */
export type Activation = "gelu" | "silu" | "relu";

const ACTIVATIONS: Readonly<Record<Activation, (x: Tensor) => Tensor>> = { gelu, silu, relu };

/** Options of {@link mixtureOfExperts}. */
export interface MixtureOptions {
  readonly experts: number;
  /** Experts that a token uses; 2 by default. */
  readonly active?: number;
  /** Width of an expert's inner layer; four times the features by default. */
  readonly hidden?: number;
  /** Of the inner layer; gelu by default. */
  readonly activation?: Activation;
  /** Experts multiply the activation by a second product, as Mixtral's do; false by default. */
  readonly gated?: boolean;
  /** The weights of a token's experts add up to 1; by default where several are active. */
  readonly normalize?: boolean;
  /**
   * Without it every choice is computed. With it an expert has room for capacity · tokens · active / experts choices; those beyond
   * are dropped: they add nothing, and `dropped` counts them.
   */
  readonly capacity?: number;
  /** Rows of an expert are padded to multiples of so many; 16 by default. Devices that multiply tiles want 64 or 128. */
  readonly tile?: number;
  /** Of all products; uniform in ±√(1 / in) by default. */
  readonly weight?: Initializer;
  readonly dtype?: ParamDType;
}

const OPTIONS: OptionKinds<MixtureOptions> = {
  experts: "a number",
  active: "a number",
  hidden: "a number",
  activation: "a text",
  gated: "a boolean",
  normalize: "a boolean",
  capacity: "a number",
  tile: "a number",
  weight: "a function",
  dtype: "a float type",
};

/** Parameters of {@link mixtureOfExperts}. */
export interface MixtureParams {
  /** [features, experts]. */
  readonly router: Tensor;
  /** [experts, features, hidden]. */
  readonly up: Tensor;
  /** The second product of a gated expert: [experts, features, hidden]. */
  readonly gate?: Tensor;
  /** [experts, hidden, features]. */
  readonly down: Tensor;
}

/** What a mixture returns. */
export interface Mixture {
  /** Of the shape of x. */
  readonly y: Tensor;
  /** Add it to the loss, times 0.01 or so: experts · Σ (share of choices) · (mean probability); 1 where experts are used evenly. */
  readonly balance: Tensor;
  /** Mean squared log-sum-exp of the router's outputs: add it, times 0.001 or so, to keep them small. */
  readonly zLoss: Tensor;
  /** Choices that found no room; 0 without `capacity`. i32. */
  readonly dropped: Tensor;
  /** Tokens that chose each expert: i32 [experts]. */
  readonly load: Tensor;
}

/** What {@link mixtureOfExperts} returns. */
export interface MixtureLayer {
  init(key: Key): MixtureParams;
  /** x is [..., features]; all leading axes are tokens. */
  apply(params: MixtureParams, x: Tensor): Mixture;
  /** Rows that are computed for so many tokens, whatever the router does: what memory is planned for. */
  rows(tokens: number): number;
}

export interface Sizes {
  readonly experts: number;
  readonly active: number;
  readonly tile: number;
  readonly capacity: number | undefined;
}

function requireSizes(name: string, { experts, active, tile, capacity }: Sizes): void {
  requireCounts(name, { experts, active, tile });
  if (active > experts) {
    const message = `${name}: ${active} active of ${experts} experts`;
    fail("InvalidArgument", message, "a token uses at most all experts: lower active, or make more experts");
  }
  if (capacity === undefined || (Number.isFinite(capacity) && capacity > 0)) return;
  fail("InvalidArgument", `${name}: capacity ${capacity}`, "a capacity is above 0: 1 has room for an even load");
}

/** Checks parameters by name: a product with other experts would read some of them, or none. */
function requireParams(name: string, params: MixtureParams, shapes: Readonly<Record<string, Shape | null>>): void {
  for (const [key, shape] of Object.entries(shapes)) {
    const given = params?.[key as keyof MixtureParams];
    if (shape === null ? given === undefined : given && sameShape(given.shape, shape)) continue;
    const summary = `${name}: the parameter ${key} is ${given ? typeText(given) : "missing"}`;
    fail("ShapeMismatch", summary, shape ? `give ${shapeText(shape)}, as init does` : "only a gated layer has it");
  }
}

export function requireTokens(name: string, tokens: number): void {
  if (Number.isInteger(tokens) && tokens >= 0) return;
  fail("InvalidArgument", `${name}: rows of ${String(tokens)} tokens`, "tokens are a whole number ≥ 0");
}

/** Rows of one expert under a capacity: no more than there are tokens. */
export function roomOf(tokens: number, { experts, active, capacity = 0 }: Sizes): number {
  return Math.min(tokens, Math.ceil((capacity * tokens * active) / experts));
}

function placesOf(routing: Routing, tokens: number, sizes: Sizes): Places {
  const { experts, active, tile, capacity } = sizes;
  if (capacity === undefined) return exactPlaces(routing, exactRows(tokens, active, experts, tile), tile);
  return limitedPlaces(routing.choices, experts, roomOf(tokens, sizes));
}

/** What a layer of experts is made of, wherever its experts are. */
export interface Experts {
  readonly sizes: Sizes;
  readonly normalize: boolean;
  init(key: Key): MixtureParams;
  /** Checks x, and parameters with so many experts. */
  require(params: MixtureParams, x: Tensor, experts: number): void;
  /** Experts on rows that are sorted by expert; without `groups` all have equally many. */
  compute(params: MixtureParams, rows: Tensor, groups: Tensor | null): Tensor;
}

/** The parts of the layer `name`. */
export function expertsOf(name: string, features: number, options: MixtureOptions): Experts {
  requireOptions(name, options, OPTIONS);
  const { experts, active = 2, hidden = 4 * features, activation = "gelu", gated = false, dtype = "f32" } = options;
  const sizes: Sizes = { experts, active, tile: options.tile ?? TILE, capacity: options.capacity };
  requireCounts(name, { features, hidden });
  requireSizes(name, sizes);
  const act = ACTIVATIONS[activation];
  if (!act) {
    const known = Object.keys(ACTIVATIONS).join(", ");
    fail("InvalidArgument", `${name}: activation ${JSON.stringify(activation)}`, `choose one of: ${known}`);
  }
  const weight = (fanIn: number, fanOut: number): Initializer => options.weight ?? fanInUniform({ fanIn, fanOut });
  const [inward, outward] = [weight(features, hidden), weight(hidden, features)];
  return {
    sizes,
    normalize: options.normalize ?? active > 1,
    init: (key) => ({
      router: weight(features, experts)(partKey(key, 0), [features, experts], dtype),
      up: inward(partKey(key, 1), [experts, features, hidden], dtype),
      ...(gated ? { gate: inward(partKey(key, 2), [experts, features, hidden], dtype) } : {}),
      down: outward(partKey(key, 3), [experts, hidden, features], dtype),
    }),
    require(params, x, own) {
      requireExtent(name, x, -1, ["features", features]);
      const up = [own, features, hidden];
      const shapes = { router: [features, experts], up, gate: gated ? up : null, down: [own, hidden, features] };
      requireParams(name, params, shapes);
    },
    compute({ up, gate, down }, rows, groups) {
      const product = (x: Tensor, w: Tensor): Tensor =>
        groups ? applyOp(groupedMatmul, [x, w, groups], { tb: false }) : matmul(x, w);
      const own = at(up.shape, 0);
      const all = groups ? rows : reshape(rows, [own, at(rows.shape, 0) / own, features]);
      const inner = act(product(all, up));
      return reshape(product(gate ? mul(inner, product(all, gate)) : inner, down), rows.shape);
    },
  };
}

/** Results of a token's experts, weighted: from [tokens · active, features], choices of a token one after the other. */
export function weighted(choices: Tensor, gates: Tensor): Tensor {
  const parts = reshape(choices, [...gates.shape, at(choices.shape, 1)]);
  return sum(mul(parts, expandDims(gates, 2)), 1);
}

/**
 * A feed-forward layer of several experts, of which each token uses a few. Without `capacity` no token is dropped, and memory is
 * planned for any routing: tokens · active rows, and up to tile - 1 of padding for each expert.
 *
 * A router output that is NaN makes its token's result NaN, and the two losses; other tokens are not touched.
 *
 * @example
 * import { ones } from "tidemark";
 * import { mixtureOfExperts } from "tidemark/nn";
 *
 * const layer = mixtureOfExperts(8, { experts: 4, active: 2, hidden: 16 });
 * const { y, load } = layer.apply(layer.init(0), ones([3, 5, 8]));
 * console.log(y.shape, load.sum().item(), layer.rows(15)); // [3, 5, 8] 30 80
 */
export function mixtureOfExperts(features: number, options: MixtureOptions): MixtureLayer {
  const name = "mixtureOfExperts";
  const { sizes, normalize, init, require, compute } = expertsOf(name, features, options);
  const { experts, active, tile, capacity } = sizes;
  return {
    rows(tokens) {
      requireTokens(name, tokens);
      return capacity === undefined ? exactRows(tokens, active, experts, tile) : experts * roomOf(tokens, sizes);
    },
    init,
    apply: (params, x) => {
      require(params, x, experts);
      return asPart(name, () => {
        const tokens = reshape(x, [x.elements / features, features]);
        const routing = route(matmul(tokens, params.router), active, normalize);
        const { slots, pairs, groups, dropped } = placesOf(routing, at(tokens.shape, 0), sizes);
        const rows = applyOp(permuteRows, [tokens, pairs, slots], { copies: active });
        const made = compute(params, rows, groups);
        const back = applyOp(permuteRows, [made, slots, pairs], { copies: 1 });
        const { gates, balance, zLoss, load } = routing;
        return { y: reshape(weighted(back, gates), x.shape), balance, zLoss, dropped, load };
      });
    },
  };
}
