/**
 * @file A random program, as a function of its seed alone: parameters and inputs of random shapes, a list of steps that each
 * add tensors to those that are there, and a loss over some of them; then what is done with it: its gradient, a training
 * step, forward mode, second derivatives, or nothing.
 *
 *   params, inputs ─ step 0 ─ step 1 ─ … ─ step n ─→ loss, outputs ─ mode ─→ the function that is compiled
 *
 * Every step draws from a seed of its own, and steps can be left out (`without`).
 */
import {
  type AutocastOptions,
  autocast,
  random as draws,
  hvp,
  jvp,
  type Tensor,
  type Tree,
  tensor,
  valueAndGrad,
  vjp,
} from "../../src/api/index.ts";
import { elementsOf } from "../../src/ir/type.ts";
import { adam, type Optimizer, type OptimizerState, rmsprop, sgd } from "../../src/optim/index.ts";
import type { Tape } from "../../src/tape/index.ts";
import { flatten } from "../../src/trace/tree.ts";
import { Random } from "../support/random.ts";
import type { FloatType, Scene, Step } from "./scene.ts";
import { controls } from "./steps/control.ts";
import { elementwise } from "./steps/elementwise.ts";
import { mutations } from "./steps/mutation.ts";
import { products } from "./steps/products.ts";
import { reductions } from "./steps/reduce.ts";
import { shapes } from "./steps/shape.ts";

/** Families are drawn first, by these weights, then one of their steps. */
const FAMILIES: readonly (readonly [weight: number, steps: Readonly<Record<string, Step>>])[] = [
  [24, elementwise],
  [18, products],
  [16, reductions],
  [18, shapes],
  [18, controls],
  [6, mutations],
];

export const SIZES = ["small", "wide", "edge"] as const;
export type Size = (typeof SIZES)[number];

interface SizeRules {
  readonly extents: readonly number[];
  readonly largest: number;
  readonly steps: readonly [least: number, more: number];
}

const RULES: Readonly<Record<Size, SizeRules>> = {
  small: { extents: [1, 2, 3, 4, 5, 7, 8, 12, 16, 24], largest: 20_000, steps: [4, 18] },
  wide: { extents: [1, 8, 24, 48, 64, 96], largest: 120_000, steps: [3, 9] },
  // nothing, one element, and a few
  edge: { extents: [0, 1, 1, 2, 3, 17], largest: 5_000, steps: [3, 12] },
};

export const MODES = ["gradient", "forward", "training", "pullback", "jvp", "hvp"] as const;
export type Mode = (typeof MODES)[number];

export interface DrawnStep {
  readonly name: string;
  readonly step: Step;
  readonly seed: number;
}

/** Types of products, and of what is added to them, under `autocast`. */
export const CASTS = ["none", "bf16", "bf16-stream", "f16", "f16-stream"] as const;
export type Cast = Exclude<(typeof CASTS)[number], "none">;

const CAST_OPTIONS: Readonly<Record<Cast, AutocastOptions>> = {
  bf16: { products: "bf16" },
  "bf16-stream": { products: "bf16", stream: "bf16" },
  f16: { products: "f16", lossScale: 64 },
  "f16-stream": { products: "f16", stream: "f16" },
};

/** Everything about a program that is drawn before it is traced. */
export interface Recipe {
  readonly seed: number;
  readonly dtype: FloatType;
  /** The types of products, where they are cast. */
  readonly cast: Cast | null;
  readonly mode: Mode;
  readonly size: Size;
  readonly params: readonly (readonly number[])[];
  readonly inputs: readonly (readonly number[])[];
  readonly steps: readonly DrawnStep[];
  /** Numbers of steps that are left out. */
  readonly without: ReadonlySet<number>;
}

export interface RecipeOptions {
  readonly size?: Size | undefined;
  readonly mode?: Mode | undefined;
  readonly dtype?: FloatType | undefined;
  readonly cast?: (typeof CASTS)[number] | undefined;
  /** No more steps than this. */
  readonly mostSteps?: number | undefined;
  readonly without?: ReadonlySet<number> | undefined;
}

export type Arguments = readonly [Tree, readonly Tensor[], Tensor, Tensor];

export interface FuzzProgram {
  readonly recipe: Recipe;
  /** The first argument holds the parameters, and is what a training step replaces. */
  readonly fn: (...args: Arguments) => Tree;
  /** The same gradient by a tape's own; null for other modes. It shows what is made on the way. */
  readonly taped: ((t: Tape, visit: Visit, args: Arguments) => Tree) | null;
  /** Arguments by number; `nan`: all floats are. */
  args(number: number, nan?: boolean): Arguments;
}

/** Every family as often as its weight says. */
const WEIGHTED = FAMILIES.flatMap(([weight, steps]) => Array.from({ length: weight }, () => Object.entries(steps)));

const drawStep = (random: Random): readonly [string, Step] => random.pick(random.pick(WEIGHTED));

/** Seeds that are far apart for numbers that are near. */
const seedOf = (seed: number, part: number): number => Math.imul(seed, 7919) + Math.imul(part + 1, 104_729);

export function drawRecipe(seed: number, options: RecipeOptions = {}): Recipe {
  const random = new Random(seedOf(seed, 0));
  // All of them are drawn, so that what is given does not change the others.
  const drawn = {
    dtype: (random.chance(0.3) ? "f64" : "f32") as FloatType,
    mode: random.pick(["gradient", "gradient", "gradient", "training", "training", ...MODES] as const),
    size: random.pick(["small", "small", "small", "small", "wide", "edge"] as const),
  };
  const { dtype = drawnType(seed, drawn.dtype), mode = drawn.mode, size = drawn.size } = options;
  const cast = castOf(seed, dtype, options.cast);
  const { mostSteps = Number.POSITIVE_INFINITY, without = new Set<number>() } = options;
  const { extents, steps } = RULES[size];
  const shape = (): readonly number[] => Array.from({ length: random.int(5) }, () => random.pick(extents));
  const shapesOf = (count: number) => Array.from({ length: count }, shape).map((s) => fitting(s, RULES[size].largest));
  const params = shapesOf(1 + random.int(4));
  const inputs = shapesOf(1 + random.int(3));
  const count = Math.min(mostSteps, steps[0] + random.int(steps[1]));
  const list = Array.from({ length: count }, (_, i) => {
    const [name, step] = drawStep(random);
    return { name, step, seed: seedOf(seed, i + 1) };
  });
  return { seed, dtype, cast, mode, size, params, inputs, steps: list, without };
}

/** One program in six is in half precision. */
function drawnType(seed: number, other: FloatType): FloatType {
  const random = new Random(seedOf(seed, -5));
  return random.chance(1 / 6) ? random.pick(["bf16", "f16"] as const) : other;
}

/** One program of f32 in four has its products cast. */
function castOf(seed: number, dtype: FloatType, wanted: RecipeOptions["cast"]): Cast | null {
  const random = new Random(seedOf(seed, -6));
  const drawn = dtype === "f32" && random.chance(1 / 4) ? random.pick(CASTS) : "none";
  const chosen = wanted ?? drawn;
  return chosen === "none" ? null : chosen;
}

/** A shape with no more elements than allowed: axes are dropped from the front. */
function fitting(shape: readonly number[], largest: number): readonly number[] {
  return elementsOf(shape) <= largest / 4 ? shape : fitting(shape.slice(1), largest);
}

interface Body {
  readonly loss: Tensor;
  readonly outputs: readonly Tensor[];
}

type Visit = (made: Tensor) => void;

function runSteps(
  recipe: Recipe,
  params: readonly Tensor[],
  given: readonly Tensor[],
  about: [Tensor, Tensor],
  visit: Visit,
): Body {
  const { dtype, mode, size } = recipe;
  const { largest, extents } = RULES[size];
  const [key, indices] = about;
  const pool = [...params, ...given];
  for (const [i, { step, seed }] of recipe.steps.entries()) {
    if (recipe.without.has(i)) continue;
    const random = new Random(seed);
    const recent = pool.slice(-3);
    const scene: Scene = {
      x: random.pick(random.chance(0.6) ? recent : pool),
      random,
      dtype,
      largest,
      indices,
      forwardMode: mode === "jvp" || mode === "hvp",
      other: (fits) => {
        const fitted = pool.filter(fits);
        return fitted.length === 0 ? null : random.pick(fitted);
      },
      key: () => draws.foldIn(key, i),
      extent: () => random.pick(extents.filter((extent) => extent > 0)),
    };
    const made = step(scene) ?? [];
    const list = (Array.isArray(made) ? made : [made]) as readonly Tensor[];
    list.forEach(visit);
    pool.push(...list.filter((x) => x.elements <= largest));
  }
  return concluded(recipe, pool, params);
}

/** A loss that everything may reach: over the last tensors, two others and all parameters. */
function concluded({ seed, dtype }: Recipe, pool: readonly Tensor[], params: readonly Tensor[]): Body {
  const random = new Random(seedOf(seed, -2));
  const wanted = new Set([...pool.slice(-2), random.pick(pool), random.pick(pool)]);
  const lossOf = (x: Tensor): Tensor => x.sin().mean().add(x.square().add(1).log().mean());
  const parts = [...wanted].filter((x) => x.elements > 0).map(lossOf);
  const pulls = params.filter((x) => x.elements > 0).map((x) => x.sin().mean().mul(0.1));
  const loss = [...parts, ...pulls].reduce((sum, part) => sum.add(part), tensor(0, { dtype }));
  return { loss, outputs: [...wanted] };
}

const OPTIMIZERS: readonly (() => Optimizer)[] = [
  () => sgd({ lr: 0.1 }),
  () => sgd({ lr: 0.1, momentum: 0.9 }),
  () => adam({ lr: 0.01 }),
  () => rmsprop({ lr: 0.01 }),
];

type Run = (params: readonly Tensor[], inputs: readonly Tensor[], about: [Tensor, Tensor], visit?: Visit) => Body;

/** With the body under `autocast`. */
const castRun =
  (run: Run, options: AutocastOptions): Run =>
  (params, inputs, about) => {
    const body = autocast((p: readonly Tensor[], x: readonly Tensor[], a: Tensor, b: Tensor) => {
      const { loss, outputs } = run(p, x, [a, b]);
      return [loss, ...outputs] as const;
    }, options);
    const [loss, ...outputs] = body(params, inputs, ...about);
    return { loss, outputs };
  };

/** What is done with the body, by mode. */
const FUNCTIONS: Readonly<Record<Exclude<Mode, "training">, (run: Run) => FuzzProgram["fn"]>> = {
  gradient: (run) => (params, inputs, key, indices) => {
    const lossOf = (p: readonly Tensor[], x: readonly Tensor[]): readonly [Tensor, readonly Tensor[]] => {
      const { loss, outputs } = run(p, x, [key, indices]);
      return [loss, outputs.slice(-1)];
    };
    const [value, grads] = valueAndGrad(lossOf, { argnums: [0, 1], hasAux: true })(params as readonly Tensor[], inputs);
    return [value, grads] as unknown as Tree;
  },
  forward: (run) => (params, inputs, key, indices) => {
    const { loss, outputs } = run(params as readonly Tensor[], inputs, [key, indices]);
    return [loss, ...outputs];
  },
  pullback: (run) => (params, inputs, key, indices) => {
    const body = (p: readonly Tensor[]): readonly Tensor[] => {
      const { loss, outputs } = run(p, inputs, [key, indices]);
      return [loss, ...outputs];
    };
    const [values, pull] = vjp<[readonly Tensor[]], readonly Tensor[]>(body, params as readonly Tensor[]);
    return [values, pull(values.map((x) => x.cos()))[0]] as unknown as Tree;
  },
  jvp: (run) => (params, inputs, key, indices) => {
    const list = params as readonly Tensor[];
    const lossOf = (p: readonly Tensor[]): Tensor => run(p, inputs, [key, indices]).loss;
    return jvp<[readonly Tensor[]], Tensor>(lossOf, [list], [list.map((p) => p.cos())]);
  },
  hvp: (run) => (params, inputs, key, indices) => {
    const list = params as readonly Tensor[];
    const lossOf = (p: readonly Tensor[]): Tensor => run(p, inputs, [key, indices]).loss;
    return hvp<readonly Tensor[]>(
      lossOf,
      [list],
      list.map((p) => p.cos()),
    ) as Tree;
  },
};

/** What the mode `gradient` computes, by the gradient of a tape. */
function tapedGradient(run: Run): NonNullable<FuzzProgram["taped"]> {
  return (t, visit, [params, inputs, key, indices]) => {
    const own = [params as readonly Tensor[], inputs].map((list) => list.map((x) => x.copy())) as [Tensor[], Tensor[]];
    const { loss, outputs } = run(...own, [key, indices], visit);
    const grads = t.gradient(loss, own);
    return [[loss, outputs.slice(-1)], grads] as unknown as Tree;
  };
}

function trainingStep(run: Run, optimizer: Optimizer): FuzzProgram["fn"] {
  return (state, inputs, key, indices) => {
    const own = state as unknown as OptimizerState<readonly Tensor[]>;
    const lossOf = (p: readonly Tensor[]): Tensor => run(p, inputs, [key, indices]).loss;
    const [loss, grads] = valueAndGrad(lossOf)(own.params);
    return [optimizer.update(own, grads), loss] as unknown as Tree;
  };
}

function filled(shape: readonly number[], dtype: FloatType, random: Random, nan: boolean): Tensor {
  const data = Array.from({ length: elementsOf(shape) }, () => (nan ? Number.NaN : random.next() * 2.4 - 1.2));
  return tensor(dtype === "f64" ? Float64Array.from(data) : Float32Array.from(data), { shape, dtype });
}

export function fuzzProgram(recipe: Recipe): FuzzProgram {
  const { seed, dtype, mode } = recipe;
  const plain: Run = (params, inputs, about, visit = () => undefined) => runSteps(recipe, params, inputs, about, visit);
  const run = recipe.cast ? castRun(plain, CAST_OPTIONS[recipe.cast]) : plain;
  const optimizer = new Random(seedOf(seed, -3)).pick(OPTIMIZERS)();
  const args = (number: number, nan = false): Arguments => {
    const random = new Random(seedOf(seed, -4 - number));
    const params = recipe.params.map((shape) => filled(shape, dtype, random, nan));
    const inputs = recipe.inputs.map((shape) => filled(shape, dtype, random, nan));
    const first = mode === "training" ? optimizer.init(params) : params;
    const indices = tensor(Int32Array.from([0, 2, 0, 1, number % 2]), { dtype: "i32" });
    return [first as unknown as Tree, inputs, draws.key(seed + number), indices];
  };
  const fn = mode === "training" ? trainingStep(run, optimizer) : FUNCTIONS[mode](run);
  return { recipe, fn, args, taped: mode === "gradient" ? tapedGradient(run) : null };
}

/** The program's steps in words, for reports. */
export const stepNames = ({ steps, without }: Recipe): readonly string[] =>
  steps.flatMap(({ name }, i) => (without.has(i) ? [] : [`${i} ${name}`]));

export const leavesOf = (tree: Tree): readonly Tensor[] => flatten(tree, "tree").leaves;
