/**
 * @file A training loop that lets the page live: steps are blocking calls, and between them the loop yields to the event loop
 * often enough for a page to answer and draw. `train` of `tidemark/node` also survives being killed.
 */
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import { type AbortSignalLike, nextTask, requireSignal } from "./event-loop.ts";

/** Milliseconds: less than a frame of a page that is drawn 60 times a second. */
const YIELD_EVERY = 12;

/** Options of {@link trainLoop}. */
export interface TrainLoopOptions<S extends Tree> {
  readonly state: S;
  readonly steps: number;
  /** Step `i`: the next state and the loss, for instance from a compiled function that the batch of this step is given to. */
  readonly step: (state: S, i: number) => readonly [S, Tensor] | Promise<readonly [S, Tensor]>;
  /** Called after each step; the loop waits for what it returns. */
  readonly onStep?: (i: number, loss: Tensor) => unknown;
  /** Ends the loop after the current step. */
  readonly signal?: AbortSignalLike;
  /** Milliseconds of steps between two yields, 0 for one after every step; default: 12. */
  readonly yieldEvery?: number;
}

/** What {@link trainLoop} returns. */
export interface TrainLoopResult<S> {
  readonly state: S;
  /** Of the last step; null if none ran. */
  readonly loss: Tensor | null;
  /** Steps that ran: fewer than were asked for where the signal ended the loop. */
  readonly steps: number;
}

const OPTIONS: OptionKinds<TrainLoopOptions<Tree>> = {
  state: "anything",
  steps: "a number",
  step: "a function",
  onStep: "a function",
  signal: "anything",
  yieldEvery: "a number",
};

const USAGE = "trainLoop({ state, steps, step: (state, i) => [state, loss] })";

function requireLoop(options: TrainLoopOptions<Tree>): void {
  if (typeof options !== "object" || options === null) {
    fail("InvalidArgument", `trainLoop: its argument is ${describe(options)}`, USAGE);
  }
  const { steps, step, yieldEvery = 0, signal } = options;
  requireOptions("trainLoop", options, OPTIONS);
  requireSignal("trainLoop", signal);
  requireFunction("trainLoop", "step", step, "trainLoop({ step: (state, i) => [state, loss], … })");
  if (!(Number.isInteger(steps) && steps >= 0)) {
    fail("InvalidArgument", `trainLoop: steps is ${describe(steps)}`, "give a whole number, 0 or more");
  }
  if (!(yieldEvery >= 0)) {
    fail("InvalidArgument", `trainLoop: yieldEvery is ${describe(yieldEvery)}`, "give milliseconds, 0 or more");
  }
}

/** What a step returns; anything else would be an error of the engine's, without a word on steps. */
function requirePair<S>(returned: readonly [S, Tensor]): readonly [S, Tensor] {
  if (Array.isArray(returned) && returned.length === 2) return returned;
  return fail("InvalidArgument", `trainLoop: step returned ${describe(returned)}`, "return [next state, loss]");
}

/**
 * Runs training steps and yields to the event loop between them, so that a page stays alive.
 *
 * @throws InvalidArgument for options that are none; what a step throws
 *
 * @memory That of the steps. The state and the loss of one step are held at a time.
 *
 * @example
 * ```ts
 * import { compile, type Tensor, tensor, trainLoop, valueAndGrad } from "tidemark";
 *
 * const descend = compile((w: Tensor, x: Tensor) => {
 *   const [loss, dw] = valueAndGrad((v: Tensor) => x.mul(v).sub(1).square().sum())(w);
 *   return [w.sub(dw.mul(0.1)), loss] as const;
 * });
 * const { loss, steps } = await trainLoop({
 *   state: tensor(0),
 *   steps: 50,
 *   step: (w: Tensor) => descend(w, tensor([1, 1])),
 * });
 * console.log(steps, (loss?.item() ?? 1) < 1e-6); // 50 true
 * ```
 */
export async function trainLoop<S extends Tree>(options: TrainLoopOptions<S>): Promise<TrainLoopResult<S>> {
  requireLoop(options as unknown as TrainLoopOptions<Tree>);
  const { steps, step, onStep, signal, yieldEvery = YIELD_EVERY } = options;
  let [state, loss, i]: [S, Tensor | null, number] = [options.state, null, 0];
  let yielded = performance.now();
  while (i < steps && !signal?.aborted) {
    const next = step(state, i);
    // a step that is there is not waited for: a promise would let only other promises run
    [state, loss] = requirePair(next instanceof Promise ? await next : (next as readonly [S, Tensor]));
    const told = onStep?.(i, loss);
    if (told instanceof Promise) await told;
    i++;
    if (performance.now() - yielded < yieldEvery) continue;
    await nextTask();
    yielded = performance.now();
  }
  return { state, loss, steps: i };
}
