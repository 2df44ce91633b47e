/**
 * @file Training steps on parts of a batch, with as much of the state on each device as is asked for (S. Rajbhandari et al., ZeRO, SC 2020):
 *
 *   zero   parameters   gradients   moments       what devices send
 *   0      all          all         all           gradients are added up
 *   1      all          all         own part      gradients are added up, new parameters gathered
 *   2      all          own part    own part      gradients are added up and cut, new parameters gathered
 *   3      own part     own part    own part      parameters are gathered where they are read, gradients added up and cut
 *
 * All four compute the same: each element's gradient is one sum over devices, and its update is its own.
 */
import { scan } from "../api/control.ts";
import { add, mul } from "../api/elementwise.ts";
import { valueAndGrad } from "../api/grad.ts";
import { fullOf } from "../api/operands.ts";
import { reshape } from "../api/shape.ts";
import { specsOf } from "../api/specs-of.ts";
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import type { Optimizer, OptimizerState } from "../optim/optimizer.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import { type Tensor, tensorTypeOf } from "../trace/tensor.ts";
import { flatten, type Tree, unflatten } from "../trace/tree.ts";
import { isEmpty, rowsTogether, sameTogether, shapeOf } from "./buckets.ts";
import { allGather, allReduce, reduceScatter, vary } from "./collectives.ts";
import { requireSummable } from "./loss-type.ts";
import { axesOf, type Mesh, type Over, type Spec, withAxes } from "./mesh.ts";
import { shard } from "./shard.ts";
import { devicesAlong, fromParts, ownPart, partsOf } from "./shards.ts";
import { layoutOfState, type StateLayout } from "./state-layout.ts";

/** What each device keeps of the training state; `params` are parts where `zero` is 3. */
export interface ParallelState<P extends Tree = Tree> {
  readonly params: P;
  readonly slots: { readonly [name: string]: P };
  readonly step: Tensor;
  /** Where `params` are parts: for each a tensor without elements, [0, …] in front of the parameter's shape. */
  readonly shapes: P | readonly [];
}

/** A loss that has a way of its own to its gradients, as that of `pipeline`. */
export interface LossWithGradients<P extends Tree, B extends readonly Tree[]> {
  /** The loss of a device's batch, and its gradients. */
  valueAndGrad(params: P, ...batch: B): [Tensor, P];
}

/** How training is spread over devices. */
export interface DataParallelOptions {
  readonly mesh: Mesh;
  /** The axes along which devices have parts of the batch. */
  readonly over: Over;
  /** How much of the state is cut into parts. Default: 0, none. */
  readonly zero?: 0 | 1 | 2 | 3;
  /** Axes over which parameters vary for reasons of their own, as `in` of `shard`. Default: none. */
  readonly params?: Spec;
  /** The axes of each argument of the loss behind the parameters. Default: `over` for each. */
  readonly batch?: readonly Spec[];
  /** Parts of a device's batch, along the first axis, whose gradients are added up one after the other. Default: 1. */
  readonly microbatches?: number;
  /** As in `shard`. */
  readonly deterministic?: boolean;
  /** Tensors are sent together up to this many bytes. Default: 4 MiB; with zero 3, where it is memory, 4 KiB. */
  readonly bucketBytes?: number;
}

const OPTIONS: OptionKinds<DataParallelOptions> = {
  mesh: "anything",
  over: "anything",
  zero: "a number",
  params: "anything",
  batch: "anything",
  microbatches: "a number",
  deterministic: "a boolean",
  bucketBytes: "a number",
};

/** Training on several devices: what `dataParallel` gives. */
export interface DataParallel<P extends Tree, B extends readonly Tree[]> {
  readonly mesh: Mesh;
  /** The state of a device before the first step, from parameters that all devices have. */
  init(params: P): ParallelState<P>;
  /** One step on the device's part of the batch, and the mean of all devices' losses. */
  step(state: ParallelState<P>, ...batch: B): { state: ParallelState<P>; loss: Tensor };
  /** The parameters, all of them on every device. */
  params(state: ParallelState<P>): P;
  /** The whole state on every device, to be saved: it does not depend on the number of devices and on `zero`. */
  whole(state: ParallelState<P>): OptimizerState<P>;
  /** The state of a device from a whole one, of these devices or of others. */
  resume(state: OptimizerState<P>): ParallelState<P>;
  /** Where the state lies, by the types of the parameters: for what writes and reads it, as `train` of `tidemark/node` does. */
  layout(params: P): StateLayout;
}

interface Settings {
  readonly over: Over;
  readonly axes: readonly string[];
  readonly zero: number;
  readonly microbatches: number;
  readonly bucketBytes: number;
}

function settingsOf(optimizer: Optimizer, options: DataParallelOptions): Settings {
  requireOptions("dataParallel", options, OPTIONS);
  const { over, zero = 0, microbatches = 1, mesh } = options;
  if (![0, 1, 2, 3].includes(zero))
    fail("InvalidArgument", `dataParallel: zero is ${describe(zero)}`, "give 0, 1, 2 or 3");
  if (!Number.isInteger(microbatches) || microbatches < 1) {
    fail("InvalidArgument", `dataParallel: microbatches is ${microbatches}`, "give a whole number of at least 1");
  }
  if (zero > 0 && optimizer.perElement !== true) {
    fail(
      "InvalidArgument",
      `dataParallel: zero is ${zero}, and the optimizer does not update each element on its own`,
      "take sgd, adam, adamw, rmsprop, adagrad or lion without clip, or zero: 0",
    );
  }
  const axes = axesOf("dataParallel", over, mesh);
  if (axes.length === 0) {
    const help = 'give the mesh an axis of one device: mesh({ data: 1, … }), over: "data"';
    fail("InvalidArgument", "dataParallel: over names no axis along which devices have parts of the batch", help);
  }
  return { over, axes, zero, microbatches, bucketBytes: options.bucketBytes ?? (zero === 3 ? 2 ** 12 : 2 ** 22) };
}

/** A tree of what a function makes of all leaves of another. */
function rebuilt<P extends Tree>(tree: P, make: (leaves: readonly Tensor[]) => readonly Tensor[]): P {
  const { def, leaves } = flatten(tree, "params");
  return unflatten(def, make(leaves)) as P;
}

type Slots<P> = { readonly [name: string]: P };

/** What becomes of each slot. */
const mapped = <P, R>(slots: Slots<P>, to: (slot: P) => R): Slots<R> =>
  Object.fromEntries(Object.entries(slots).map(([name, slot]) => [name, to(slot)]));

/** Tensors without elements, which say the shapes of others. */
const emptyLike = <P extends Tree>(tree: P): P =>
  rebuilt(tree, (leaves) => leaves.map((x) => fullOf(x.dtype, [0, ...x.shape], 0)));

/** What devices send each other for tensors of a tree. */
class Exchange {
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** Own parts of tensors that all have. */
  own = (leaves: readonly Tensor[]): readonly Tensor[] => leaves.map((x) => ownPart(x, this.#settings.over));

  /** Gradients added up. */
  summed = (leaves: readonly Tensor[]): readonly Tensor[] => {
    const { over, bucketBytes } = this.#settings;
    return sameTogether(leaves, bucketBytes, (x) => (isEmpty(x.shape) ? x : allReduce(x, { over })));
  };

  /** Own parts of gradients added up. */
  scattered = (leaves: readonly Tensor[]): readonly Tensor[] => {
    const { over, bucketBytes } = this.#settings;
    const p = devicesAlong(over);
    const rows = leaves.map((x) => partsOf(x, p));
    // [p, width] is one row for each device
    const exchange = (x: Tensor): Tensor => reshape(reduceScatter(x, { over }), [at(x.shape, 1)]);
    return rowsTogether(rows, bucketBytes, exchange);
  };

  /** All of tensors of which each device has a part, for parameters that are equal on all. */
  gathered = (parts: readonly Tensor[], like: readonly Tensor[]): readonly Tensor[] =>
    this.#gathered(
      parts,
      like.map((x) => x.shape),
      true,
    );

  /** The same, for each device to use in its own way: gathered again for the backward pass. */
  used = (parts: readonly Tensor[], shapes: readonly Tensor[]): readonly Tensor[] =>
    this.#gathered(parts, shapes.map(shapeOf), false);

  #gathered(parts: readonly Tensor[], shapes: readonly (readonly number[])[], invariant: boolean): readonly Tensor[] {
    const { over, bucketBytes } = this.#settings;
    const p = devicesAlong(over);
    const exchange = (x: Tensor): Tensor =>
      reshape(allGather(x, { over, invariant, again: !invariant }), [p, x.elements]);
    return rowsTogether(parts, bucketBytes, exchange).map((rows, i) => fromParts(rows, at(shapes, i)));
  }
}

/** The loss of a device's batch and its derivative, each a sum over microbatches. */
function sums<P extends Tree>(
  lossOf: (params: P, ...batch: Tree[]) => Tensor,
  params: P,
  batch: readonly Tree[],
  parts: number,
): readonly [Tensor, P] {
  if (parts === 1) return valueAndGrad((p: P) => lossOf(p, ...batch))(params) as [Tensor, P];
  const rows = batch.map((arg) =>
    rebuilt(arg, (leaves) =>
      leaves.map((x) => {
        const [n = 0, ...shape] = x.shape;
        if (x.rank > 0 && n % parts === 0) return reshape(x, [parts, n / parts, ...shape]);
        return fail(
          "ShapeMismatch",
          `dataParallel: a batch of ${n} in ${parts} microbatches`,
          `make it a multiple of ${parts}`,
        );
      }),
    ),
  );
  // from -0, to which adding changes no bit
  const first = rebuilt(params, (leaves) => leaves.map((x) => fullOf(x.dtype, x.shape, -0)));
  const start = [fullOf("f32", [], -0), first] as [Tensor, P];
  const [total] = scan(
    ([sum, grads]: [Tensor, P], own: Tree[]) => {
      const [loss, more] = valueAndGrad((p: P) => lossOf(p, ...own))(params) as [Tensor, P];
      const { leaves } = flatten(more, "grads");
      return [[add(sum, loss), rebuilt(grads, (all) => all.map((x, i) => add(x, at(leaves, i))))] as [Tensor, P], []];
    },
    start,
    rows,
  );
  return total as [Tensor, P];
}

/**
 * Training on parts of a batch: every device computes the loss of its part and sends its gradients to the others. `init`, `step` and
 * `params` are functions of one device, to be compiled and run on all of them. The loss of a step is the mean of all devices'.
 *
 * @memory `zero` says what each device has a part of alone: from 1 on the state of the optimizer, from 2 on the
 * gradients, with 3 the parameters.
 *
 * @example
 * import { compile, random, type Tensor, tensor } from "tidemark";
 * import { adam } from "tidemark/optim";
 * import { dataParallel, mesh } from "tidemark/parallel";
 *
 * const lossOf = (w: Tensor, x: Tensor, y: Tensor) => x.matmul(w).sub(y).square().mean();
 * const train = dataParallel(lossOf, adam({ lr: 0.1 }), { mesh: mesh({ data: 1 }), over: "data", zero: 1 });
 * const step = compile(train.step, { donate: [0] });
 * let state = compile(train.init)(tensor([1, 2]));
 * for (let i = 0; i < 3; i++) {
 *   const done = step(state, random.normal(random.key(i), [4, 2]), tensor([0, 0, 0, 0]));
 *   state = done.state;
 * }
 * console.log(compile(train.params)(state).shape); // [2]
 */
export function dataParallel<P extends Tree, B extends readonly Tree[]>(
  lossOf: ((params: P, ...batch: B) => Tensor) | LossWithGradients<P, B>,
  optimizer: Optimizer,
  options: DataParallelOptions,
): DataParallel<P, B> {
  if (hasGradients(lossOf)) requireWhole(options);
  else requireFunction("dataParallel", "the loss", lossOf, "dataParallel((params, x) => loss, adam(), { mesh, over })");
  const training = new Training<P, B>(lossOf, optimizer, options);
  return {
    mesh: options.mesh,
    init: (params) => training.init(params),
    step: (state, ...batch) => training.step(state, batch),
    params: (state) => training.params(state),
    whole: (state) => training.whole(state),
    resume: (state) => training.resume(state),
    layout: (params) => training.layout(params),
  };
}

const hasGradients = <P extends Tree, B extends readonly Tree[]>(
  lossOf: ((params: P, ...batch: B) => Tensor) | LossWithGradients<P, B>,
): lossOf is LossWithGradients<P, B> => typeof lossOf === "object" && typeof lossOf?.valueAndGrad === "function";

/** Gradients that are found in a way of their own are those of whole parameters, for a whole batch. */
function requireWhole({ zero = 0, microbatches = 1 }: DataParallelOptions): void {
  if (zero === 3) {
    const summary = "dataParallel: zero is 3, and a pipeline reads its parameters from the first slot to the last";
    fail("InvalidArgument", summary, "take zero: 2");
  }
  if (microbatches !== 1)
    fail("InvalidArgument", `dataParallel: ${microbatches} microbatches of a pipeline`, "give them to pipeline alone");
}

/** Fails where parameters differ along the axes of the batch: those are cut along them by `zero`, in parts of their own. */
function requireEqual<P extends Tree>(params: P, over: readonly string[]): P {
  for (const type of flatten(params, "params").leaves.map(tensorTypeOf)) {
    const axis = type.varies?.over.find((name) => over.includes(name));
    if (axis === undefined) continue;
    const summary = `dataParallel: params differ along ${axis}: ${typeText(type)}, and over is ${over.join(", ")}`;
    fail(
      "VarianceMismatch",
      summary,
      "name another axis in params; zero: 3 cuts parameters along the axis of the batch",
    );
  }
  return params;
}

/** The names of a state's slots; fails where it is none. */
function slotsIn(name: string, state: object, members: readonly string[]): readonly string[] {
  const given = state as { readonly slots?: unknown } | null | undefined;
  const isState = typeof given === "object" && given !== null && members.every((member) => member in given);
  if (isState && typeof given.slots === "object" && given.slots !== null) return Object.keys(given.slots);
  const help = name === "resume" ? "give what whole made, or load() of it" : "give what init, resume or step made";
  return fail("InvalidTree", `dataParallel: ${name} is given no state`, `a state has ${members.join(", ")}: ${help}`);
}

const OF_WHOLE = ["params", "slots", "step"] as const;
const OF_DEVICE = [...OF_WHOLE, "shapes"] as const;

class Training<P extends Tree, B extends readonly Tree[]> {
  readonly #lossOf: ((params: P, ...batch: B) => Tensor) | LossWithGradients<P, B>;
  readonly #optimizer: Optimizer;
  readonly #options: DataParallelOptions;
  readonly #settings: Settings;
  readonly #exchange: Exchange;

  constructor(
    lossOf: ((params: P, ...batch: B) => Tensor) | LossWithGradients<P, B>,
    optimizer: Optimizer,
    options: DataParallelOptions,
  ) {
    this.#lossOf = lossOf;
    this.#optimizer = optimizer;
    this.#options = options;
    this.#settings = settingsOf(optimizer, options);
    this.#exchange = new Exchange(this.#settings);
  }

  /** The axes of a state with slots of these names. */
  #spec(slots: readonly string[]): Spec {
    const { params = [] } = this.#options;
    const { zero, over } = this.#settings;
    const cut = withAxes(params, over);
    return {
      params: zero === 3 ? cut : params,
      slots: Object.fromEntries(slots.map((name) => [name, zero === 0 ? params : cut])),
      step: [],
      shapes: [],
    };
  }

  #sharded<Args extends readonly Tree[], R extends Tree>(
    body: (...args: Args) => R,
    given: readonly Spec[],
    out: Spec,
  ): (...args: Args) => R {
    const { mesh, deterministic = false } = this.#options;
    return shard(body, { mesh, in: given, out, deterministic });
  }

  init(params: P): ParallelState<P> {
    const { zero } = this.#settings;
    const init = (all: P): ParallelState<P> => {
      requireEqual(all, this.#settings.axes);
      const kept = zero === 0 ? all : rebuilt(all, this.#exchange.own);
      const { slots, step } = this.#optimizer.init(kept);
      if (zero < 3) return { params: all, slots, step, shapes: [] };
      return { params: kept, slots, step, shapes: emptyLike(all) };
    };
    const slots = Object.keys(this.#optimizer.init(params).slots);
    return this.#sharded(init, [this.#options.params ?? []], this.#spec(slots))(params);
  }

  /** Parameters as the loss reads them, from what the device differentiates. */
  #whole(kept: P, shapes: P | readonly []): P {
    if (this.#settings.zero < 3) return kept;
    return rebuilt(kept, (parts) => this.#exchange.used(parts, flatten(shapes, "shapes").leaves));
  }

  #updated(state: ParallelState<P>, grads: P): ParallelState<P> {
    const { params, slots, step, shapes } = state;
    const isCut = this.#settings.zero === 1 || this.#settings.zero === 2;
    const kept = isCut ? rebuilt(params, this.#exchange.own) : params;
    const next = this.#optimizer.update({ params: kept, slots, step }, grads);
    if (!isCut) return { ...next, shapes };
    const { leaves } = flatten(params, "params");
    return { ...next, params: rebuilt(next.params, (parts) => this.#exchange.gathered(parts, leaves)), shapes };
  }

  /** From gradients of the device's own loss to means of all devices' for what it keeps. */
  #mean(grads: P, share: number): P {
    const { summed, scattered, own } = this.#exchange;
    const { zero } = this.#settings;
    const same = (leaves: readonly Tensor[]): readonly Tensor[] => leaves;
    const send = at([summed, summed, scattered, same], zero);
    const mean = rebuilt(grads, (leaves) => send(leaves).map((x) => mul(x, share)));
    return zero === 1 ? rebuilt(mean, own) : mean;
  }

  /** The loss of the device's rows and its gradients, sums over microbatches. */
  #sums(params: P, shapes: P | readonly [], rows: B): readonly [Tensor, P] {
    const lossOf = this.#lossOf;
    if (hasGradients(lossOf)) return lossOf.valueAndGrad(params, ...rows);
    const loss = (p: P, ...rest: Tree[]): Tensor => lossOf(this.#whole(p, shapes), ...(rest as unknown as B));
    return sums(loss, params, rows, this.#settings.microbatches);
  }

  step(state: ParallelState<P>, batch: B): { state: ParallelState<P>; loss: Tensor } {
    const { over, zero, microbatches } = this.#settings;
    const step = (own: ParallelState<P>, ...rows: B): { state: ParallelState<P>; loss: Tensor } => {
      const { params, shapes } = own;
      // gradients are the device's own: they are added up below, together
      const local = zero === 3 ? params : rebuilt(params, (leaves) => leaves.map((x) => vary(x, { over })));
      const [sum, grads] = this.#sums(local, shapes, rows);
      requireSummable("dataParallel", sum);
      const share = 1 / (devicesAlong(over) * microbatches);
      const next = this.#updated(own, this.#mean(grads, share));
      return { state: next, loss: mul(allReduce(vary(sum, { over }), { over }), share) };
    };
    const spec = this.#spec(slotsIn("step", state, OF_DEVICE));
    const given = batch.map((_, i): Spec => this.#options.batch?.[i] ?? over);
    return this.#sharded(step, [spec, ...given], { state: spec, loss: [] })(state, ...batch);
  }

  params(state: ParallelState<P>): P {
    const params = ({ params: kept, shapes }: ParallelState<P>): P => {
      if (this.#settings.zero < 3) return kept;
      const like = flatten(shapes, "shapes").leaves.map((x) => fullOf(x.dtype, shapeOf(x), 0));
      return rebuilt(kept, (parts) => this.#exchange.gathered(parts, like));
    };
    const spec = this.#spec(slotsIn("params", state, OF_DEVICE));
    return this.#sharded(params, [spec], this.#options.params ?? [])(state);
  }

  layout(params: P): StateLayout {
    const { mesh, params: own = [] } = this.#options;
    const [optimizer, { over, zero }] = [this.#optimizer, this.#settings];
    const whole = specsOf((all: P) => optimizer.init(all))(params);
    return layoutOfState({ mesh, over, zero, params: own, optimizer }, whole);
  }

  /** The axes of a whole state. */
  #wholeSpec(slots: object): Spec {
    const { params = [] } = this.#options;
    return { params, slots: mapped(slots as Slots<P>, () => params), step: [] };
  }

  whole(state: ParallelState<P>): OptimizerState<P> {
    const { zero } = this.#settings;
    const whole = ({ params: kept, slots, step, shapes }: ParallelState<P>): OptimizerState<P> => {
      if (zero === 0) return { params: kept, slots, step };
      const cut = flatten(shapes, "shapes").leaves.map((x) => fullOf(x.dtype, shapeOf(x), 0));
      const like = zero === 3 ? cut : flatten(kept, "params").leaves;
      const gathered = (tree: P): P => rebuilt(tree, (parts) => this.#exchange.gathered(parts, like));
      return { params: zero === 3 ? gathered(kept) : kept, slots: mapped(slots, gathered), step };
    };
    const spec = this.#spec(slotsIn("whole", state, OF_DEVICE));
    return this.#sharded(whole as never, [spec], this.#wholeSpec(state.slots))(state as never) as never;
  }

  resume(state: OptimizerState<P>): ParallelState<P> {
    const { zero } = this.#settings;
    const resume = ({ params, slots, step }: OptimizerState<P>): ParallelState<P> => {
      requireEqual(params, this.#settings.axes);
      const own = (tree: P): P => rebuilt(tree, this.#exchange.own);
      const kept = zero === 3 ? own(params) : params;
      const shapes = zero === 3 ? emptyLike(params) : ([] as const);
      return { params: kept, slots: zero === 0 ? slots : mapped(slots, own), step, shapes };
    };
    const spec = this.#spec(slotsIn("resume", state, OF_WHOLE));
    return this.#sharded(resume as never, [this.#wholeSpec(state.slots)], spec)(state as never) as never;
  }
}
