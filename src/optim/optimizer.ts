/**
 * @file An optimizer is a pure function from a state and gradients to the next state. The state is one tree that
 * includes the parameters, and the next state has the same structure and types:
 *
 *   state = { params, slots: { name: like params, … }, step: i32[] }
 *
 * so a compiled training step with a donated state updates every leaf in place. Each rule, in its own file, updates one
 * parameter; tree traversal, the learning rate and clipping are here.
 */
import { FULL, isHalf } from "../api/autocast-mode.ts";
import { add, cast, mul, sub } from "../api/elementwise.ts";
import { fullOf } from "../api/operands.ts";
import { at } from "../base/invariant.ts";
import { sameType, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { type DType, isFloat } from "../kernel/dtype.ts";
import { fail, type OptionKinds } from "../trace/arguments.ts";
import { tensor } from "../trace/literal.ts";
import { numberOf, type Tensor } from "../trace/tensor.ts";
import { asFunction, atOneLine, inPhase } from "../trace/trace.ts";
import { type Flat, flatten, flattenLike, type Tree, unflatten } from "../trace/tree.ts";
import type { GradientTransform } from "./clip.ts";
import { rowGradientOf, Table } from "./rows.ts";
import type { LearningRate } from "./schedules.ts";

/** Parameters, the number of updates so far, and what the optimizer keeps of each parameter. */
export interface OptimizerState<P extends Tree = Tree> {
  readonly params: P;
  /** The optimizer's moments, by name, each a tree like the parameters. */
  readonly slots: { readonly [name: string]: P };
  /** Updates so far, i32[]. */
  readonly step: Tensor;
}

/** A pair of pure functions over one state. */
export interface Optimizer {
  /** Each element of a parameter is updated from its own gradient and slots alone: so may parts of it be, on several devices. */
  readonly perElement?: boolean;
  /** The state before the first update, with these parameters. */
  init<P extends Tree>(params: P): OptimizerState<P>;
  /** The state after one update. */
  update<P extends Tree>(state: OptimizerState<P>, grads: NoInfer<P>): OptimizerState<P>;
}

/** Options of every optimizer. */
export interface OptimizerOptions {
  /** A number, or a function of the step. */
  readonly lr?: LearningRate;
  /** Applied to the gradients before anything else: `clipByGlobalNorm(1)`. */
  readonly clip?: GradientTransform;
  /** Which parameters are trained, by path (`params[0].w`); all by default. Others stay as they are and have no slots. */
  readonly trains?: (path: string) => boolean;
}

/** Weight decay. */
export interface DecayOptions {
  /** The weight-decay coefficient; 0 by default. */
  readonly weightDecay?: number;
  /** Which parameters decay, by path (`params[0].w`); all by default. */
  readonly decays?: (path: string) => boolean;
}

/** Tables of which few rows are updated. */
export interface LazyOptions {
  /**
   * Tables of which only the rows that a step looks up are updated, by path (`params.table`); none by default. Moments and weight
   * decay of the other rows wait until they are looked up. The whole step has to be one compiled function.
   */
  readonly lazy?: (path: string) => boolean;
}

/** @internal */
export const COMMON_OPTIONS: OptionKinds<OptimizerOptions & DecayOptions> = {
  lr: "a number or a function",
  clip: "a function",
  trains: "a function",
  weightDecay: "a number",
  decays: "a function",
};

/** One parameter in one update. */
export interface Leaf {
  readonly path: string;
  readonly param: Tensor;
  readonly grad: Tensor;
  readonly slots: Readonly<Record<string, Tensor>>;
}

/** A parameter of which some rows are updated. */
export interface RowsLeaf {
  readonly path: string;
  readonly param: Table;
  /** Of the rows. */
  readonly grad: Tensor;
  readonly slots: Readonly<Record<string, Table>>;
}

/** The same after the update. */
export interface UpdatedRows {
  readonly param: Table;
  readonly slots: Readonly<Record<string, Table>>;
}

/** Updates of rows. */
export interface RowsRule<C> {
  /** The update of a row whose gradient is 0 changes nothing: updating rows alone has the bits of updating all. */
  readonly isExact: boolean;
  /** Which parameters are to be updated so in any case. */
  readonly lazy: ((path: string) => boolean) | undefined;
  update(leaf: RowsLeaf, scalars: C): UpdatedRows;
}

/** The parameter and its slots after the update. */
export interface UpdatedLeaf {
  readonly param: Tensor;
  readonly slots: Readonly<Record<string, Tensor>>;
}

/** How one kind of optimizer updates one parameter. `C`: scalars that are the same for all parameters of a type. */
export interface Rule<C> {
  readonly name: string;
  /** See `Optimizer`. */
  readonly perElement?: true;
  /** Names of the slots, with their initial values. */
  readonly slots: Readonly<Record<string, number>>;
  /** The type of a parameter's slot; by default that of the parameter. */
  slotType?(slot: string, param: TensorType, path: string): TensorType;
  /** @param t the number of this update, from 1, in the element type of the parameters */
  scalars(rate: Tensor | number, t: Tensor): C;
  update(leaf: Leaf, scalars: C): UpdatedLeaf;
  /** Where it can update some rows of a table alone. */
  readonly rows?: RowsRule<C>;
}

/** Throws unless numbers are within bounds: `[name, value, lo, hi]`, the upper bound not included. @internal */
export function requireRanges(name: string, ranges: readonly (readonly [string, number, number, number])[]): void {
  for (const [what, value, lo, hi] of ranges) {
    if (value >= lo && value < hi) continue;
    const upper = hi === Number.POSITIVE_INFINITY ? "" : ` and below ${hi}`;
    fail("InvalidArgument", `${name}: ${what} ${value}`, `give a number of at least ${lo}${upper}`);
  }
}

/** The gradient with weight decay as a penalty: g + λ·p. @internal */
export function penalized(leaf: Leaf, options: DecayOptions): Tensor {
  return penalty(leaf, leaf.grad, options);
}

/** The same of rows. @internal */
export function penalizedRows({ path, param, grad }: RowsLeaf, options: DecayOptions): Tensor {
  const { weightDecay = 0, decays } = options;
  return weightDecay === 0 || decays?.(path) === false ? grad : add(grad, mul(param.rows(), weightDecay));
}

/** Anything + λ·p. @internal */
export function penalty({ path, param }: Leaf, to: Tensor, { weightDecay = 0, decays }: DecayOptions): Tensor {
  return weightDecay === 0 || decays?.(path) === false ? to : add(to, mul(param, weightDecay));
}

/** The parameter with weight decay apart from the gradient: p·(1 - lr·λ). @internal */
export function shrunk(
  { path, param }: Leaf,
  rate: Tensor | number,
  { weightDecay = 0, decays }: DecayOptions,
): Tensor {
  if (weightDecay === 0 || decays?.(path) === false) return param;
  return mul(param, typeof rate === "number" ? 1 - rate * weightDecay : sub(1, mul(rate, weightDecay)));
}

function requireFloats(name: string, { leaves, paths }: Flat): void {
  leaves.forEach((leaf, i) => {
    if (isFloat(leaf.dtype)) return;
    fail(
      "DtypeMismatch",
      `${name}: ${paths[i]} is ${typeText(leaf)}, and only floats can be trained`,
      "keep what is not trained outside of the parameters",
    );
  });
}

function requireMatch(name: string, path: string, param: Tensor, grad: Tensor): void {
  if (sameType(tensorType(param.dtype, param.shape), tensorType(grad.dtype, grad.shape))) return;
  fail(
    "ShapeMismatch",
    `${name}: the gradient of ${path} is ${typeText(grad)}, the parameter is ${typeText(param)}`,
    "pass what grad or valueAndGrad returned for these parameters",
  );
}

/** Look-ups of a table, and rows of it for each, up to which and from which on updating rows alone is less work than updating all. */
const MOST_LOOKUPS = 4;
const ROWS_FOR_EACH = 2;

/** The update of the rows that were looked up; null where all of the parameter is updated. */
function updatedRows<C>({ name, rows: rule }: Rule<C>, leaf: Leaf, scalars: () => C): UpdatedLeaf | null {
  if (!rule) return null;
  const { path, param, grad } = leaf;
  const wanted = rule.lazy?.(path) === true;
  if (!wanted && !rule.isExact) return null;
  const found = rowGradientOf(param, grad);
  if (!found) {
    if (!wanted) return null;
    fail(
      "InvalidArgument",
      `${name}: ${path} is lazy, and its gradient is not made by look-ups of its rows`,
      "compile the whole step, look the table up by take or an embedding along axis 0 alone, and clip no gradients",
    );
  }
  const { rows, lookups } = found;
  const pays = lookups <= MOST_LOOKUPS && rows.elements * ROWS_FOR_EACH <= at(param.shape, 0);
  if (!wanted && !pays) return null;
  const tables = Object.entries(leaf.slots).map(([slot, tensor]) => [slot, new Table(tensor, rows)] as const);
  const given = { path, param: new Table(param, rows), grad: found.grad, slots: Object.fromEntries(tables) };
  const next = rule.update(given, scalars());
  const slots = Object.entries(next.slots).map(([slot, table]) => [slot, table.tensor] as const);
  return { param: next.param.tensor, slots: Object.fromEntries(slots) };
}

/** Parameters of bf16 and f16 are updated in f32, in which their slots are, and then rounded. */
function updatedHalf<C>(rule: Rule<C>, { path, param, grad, slots }: Leaf, scalars: C): UpdatedLeaf {
  if (rule.rows?.lazy?.(path) === true) {
    fail("DtypeMismatch", `${rule.name}: ${path} is lazy and of ${param.dtype}`, "keep the table in f32");
  }
  const updated = rule.update({ path, param: cast(param, FULL), grad: cast(grad, FULL), slots }, scalars);
  return { ...updated, param: cast(updated.param, param.dtype) };
}

/** A rate for parameters of an element type; a number takes the type of its operand. */
function rateIn(rate: Tensor | number, dtype: DType): Tensor | number {
  return typeof rate === "number" ? rate : (numberOf(rate)?.as(dtype) ?? cast(rate, dtype));
}

/** Calls `make` once for each argument. */
function once<K, V>(make: (key: K) => V): (key: K) => V {
  const cache = new Map<K, V>();
  return (key) => {
    if (!cache.has(key)) cache.set(key, make(key));
    return cache.get(key) as V;
  };
}

/** An optimizer from a rule for one parameter. @internal */
export function optimizer<C>(rule: Rule<C>, lr: LearningRate, { clip, trains }: OptimizerOptions): Optimizer {
  if (typeof lr === "number") requireRanges(rule.name, [["lr", lr, 0, Number.POSITIVE_INFINITY]]);
  const slotNames = Object.keys(rule.slots);

  function updated<P extends Tree>(state: OptimizerState<P>, grads: P): OptimizerState<P> {
    const flat = flatten(state.params, "params");
    requireFloats(rule.name, flat);
    const clipped = flattenLike(flat.def, clip ? clip(grads) : grads, "grads");
    const slots = slotNames.map((slot) => flattenLike(flat.def, state.slots[slot], `slots.${slot}`));
    const step = add(state.step, 1);
    const rate = typeof lr === "function" ? lr(state.step) : lr;
    const scalars = once((dtype: DType): C => rule.scalars(rateIn(rate, dtype), cast(step, dtype)));
    const leaves = flat.leaves.map((param, i) => {
      const grad = at(clipped, i);
      const path = at(flat.paths, i);
      requireMatch(rule.name, path, param, grad);
      const leafSlots = Object.fromEntries(slotNames.map((slot, s) => [slot, at(at(slots, s), i)]));
      if (trains?.(path) === false) return { param, slots: leafSlots };
      if (isHalf(param.dtype)) return updatedHalf(rule, { path, param, grad, slots: leafSlots }, scalars(FULL));
      const leaf: Leaf = { path, param, grad, slots: leafSlots };
      return updatedRows(rule, leaf, () => scalars(param.dtype)) ?? rule.update(leaf, scalars(param.dtype));
    });
    const rebuild = (of: (leaf: UpdatedLeaf) => Tensor): P => unflatten(flat.def, leaves.map(of)) as P;
    return {
      params: rebuild((leaf) => leaf.param),
      slots: Object.fromEntries(slotNames.map((slot) => [slot, rebuild((leaf) => leaf.slots[slot] as Tensor)])),
      step,
    };
  }

  return {
    perElement: rule.perElement === true && !clip,
    init: (params) => {
      const flat = flatten(params, "params");
      requireFloats(rule.name, flat);
      const slotOf = (slot: string, leaf: Tensor, i: number, value: number): Tensor => {
        const own = tensorType(isHalf(leaf.dtype) ? FULL : leaf.dtype, leaf.shape);
        const path = at(flat.paths, i);
        const { dtype, shape } = rule.slotType?.(slot, own, path) ?? own;
        return fullOf(dtype, trains?.(path) === false ? [0] : shape, value);
      };
      const filled = (slot: string, value: number) =>
        unflatten(
          flat.def,
          flat.leaves.map((leaf, i) => slotOf(slot, leaf, i, value)),
        ) as typeof params;
      const entries = Object.entries(rule.slots);
      const slots = atOneLine(() => entries.map(([slot, value]) => [slot, filled(slot, value)] as const));
      return { params, slots: Object.fromEntries(slots), step: tensor(0, { dtype: "i32" }) };
    },
    update: (state, grads) => asFunction(rule.name, () => inPhase("update", () => updated(state, grads))),
  };
}
