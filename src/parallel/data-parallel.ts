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
import { at } from "../base/invariant.ts";
import type { Optimizer } from "../optim/optimizer.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten, type Tree, unflatten } from "../trace/tree.ts";
import { isEmpty, rowsTogether, sameTogether, shapeOf } from "./buckets.ts";
import { allGather, allReduce, reduceScatter, vary } from "./collectives.ts";
import { axesOf, type Mesh, type Over, type Spec, withAxes } from "./mesh.ts";
import { shard } from "./shard.ts";
import { devicesAlong, fromParts, ownPart, partsOf } from "./shards.ts";

/** What each device keeps of the training state; `params` are parts where `zero` is 3. */
export interface ParallelState<P extends Tree = Tree> {
  readonly params: P;
  readonly slots: { readonly [name: string]: P };
  readonly step: Tensor;
  /** Where `params` are parts: for each a tensor without elements, [0, …] in front of the parameter's shape. */
  readonly shapes: P | readonly [];
}

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

export interface DataParallel<P extends Tree, B extends readonly Tree[]> {
  /** The state of a device before the first step, from parameters that all devices have. */
  init(params: P): ParallelState<P>;
  /** One step on the device's part of the batch, and the mean of all devices' losses. */
  step(state: ParallelState<P>, ...batch: B): { state: ParallelState<P>; loss: Tensor };
  /** The parameters, all of them on every device. */
  params(state: ParallelState<P>): P;
}

interface Settings {
  readonly over: Over;
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
  axesOf("dataParallel", over, mesh);
  return { over, zero, microbatches, bucketBytes: options.bucketBytes ?? (zero === 3 ? 2 ** 12 : 2 ** 22) };
}

/** A tree of what a function makes of all leaves of another. */
function rebuilt<P extends Tree>(tree: P, make: (leaves: readonly Tensor[]) => readonly Tensor[]): P {
  const { def, leaves } = flatten(tree, "params");
  return unflatten(def, make(leaves)) as P;
}

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
 * @example
 * import { compile, random, tensor } from "tidemark";
 * import { adam } from "tidemark/optim";
 * import { dataParallel, mesh } from "tidemark/parallel";
 *
 * const lossOf = (w, x, y) => x.matmul(w).sub(y).square().mean();
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
  lossOf: (params: P, ...batch: B) => Tensor,
  optimizer: Optimizer,
  options: DataParallelOptions,
): DataParallel<P, B> {
  requireFunction("dataParallel", "the loss", lossOf, "dataParallel((params, x) => loss, adam(), { mesh, over })");
  const settings = settingsOf(optimizer, options);
  const { over, zero, microbatches } = settings;
  const { mesh, params: own = [], batch = [], deterministic = false } = options;
  const exchange = new Exchange(settings);
  const cut = withAxes(own, over);
  const specOf = (slots: readonly string[]): Spec => ({
    params: zero === 3 ? cut : own,
    slots: Object.fromEntries(slots.map((name) => [name, zero === 0 ? own : cut])),
    step: [],
    shapes: [],
  });
  const slotsOf = (params: P): readonly string[] => Object.keys(optimizer.init(params).slots);

  function init(params: P): ParallelState<P> {
    const body = (all: P): ParallelState<P> => {
      const kept = zero === 0 ? all : rebuilt(all, exchange.own);
      const { slots, step } = optimizer.init(kept);
      if (zero < 3) return { params: all, slots: slots as ParallelState<P>["slots"], step, shapes: [] };
      const shapes = rebuilt(all, (leaves) => leaves.map((x) => fullOf(x.dtype, [0, ...x.shape], 0)));
      return { params: kept, slots: slots as ParallelState<P>["slots"], step, shapes };
    };
    return shard(body as never, { mesh, in: [own], out: specOf(slotsOf(params)), deterministic })(
      params as never,
    ) as never;
  }

  /** Parameters as the loss reads them, from what the device differentiates. */
  const whole = (kept: P, shapes: P | readonly []): P =>
    zero === 3 ? rebuilt(kept, (leaves) => exchange.used(leaves, flatten(shapes, "shapes").leaves)) : kept;

  function update(state: ParallelState<P>, grads: P): ParallelState<P> {
    const { params, slots, step, shapes } = state;
    const kept = zero === 1 || zero === 2 ? rebuilt(params, exchange.own) : params;
    const next = optimizer.update({ params: kept, slots, step }, grads);
    if (zero === 0 || zero === 3) return { ...next, shapes };
    const { leaves } = flatten(params, "params");
    return { ...next, params: rebuilt(next.params, (parts) => exchange.gathered(parts, leaves)), shapes };
  }

  function oneStep(state: ParallelState<P>, ...own: B): { state: ParallelState<P>; loss: Tensor } {
    const { params, shapes } = state;
    // gradients of each device's own loss: they are added up below, together
    const local = zero === 3 ? params : rebuilt(params, (leaves) => leaves.map((x) => vary(x, { over })));
    const loss = (p: P, ...rest: Tree[]): Tensor => lossOf(whole(p, shapes), ...(rest as unknown as B));
    const [sum, grads] = sums(loss, local, own, microbatches);
    const share = 1 / (devicesAlong(over) * microbatches);
    const send = { 0: exchange.summed, 1: exchange.summed, 2: exchange.scattered, 3: (x: readonly Tensor[]) => x }[
      zero as 0
    ];
    const mean = rebuilt(grads, (leaves) => send(leaves).map((x) => mul(x, share)));
    const cutGrads = zero === 1 ? rebuilt(mean, exchange.own) : mean;
    return { state: update(state, cutGrads), loss: mul(allReduce(vary(sum, { over }), { over }), share) };
  }

  function step(state: ParallelState<P>, ...own: B): { state: ParallelState<P>; loss: Tensor } {
    const spec = specOf(Object.keys(state.slots));
    const given: Spec[] = own.map((_, i) => batch[i] ?? over);
    const out = { state: spec, loss: [] };
    return shard(oneStep, { mesh, in: [spec, ...given], out, deterministic })(state, ...own);
  }

  function params(state: ParallelState<P>): P {
    const body = ({ params: kept, shapes }: ParallelState<P>): P => {
      if (zero < 3) return kept;
      const like = flatten(shapes, "shapes").leaves;
      return rebuilt(kept, (parts) =>
        exchange.gathered(
          parts,
          like.map((x) => fullOf(x.dtype, shapeOf(x), 0)),
        ),
      );
    };
    return shard(body as never, { mesh, in: [specOf(Object.keys(state.slots))], out: own })(state as never) as never;
  }

  return { init, step, params };
}
