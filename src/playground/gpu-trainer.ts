/**
 * @file Two trainings of one model side by side as in trainer.ts, on a GPU: each is a function of the library, compiled for WebGPU, with
 * a plan of its own. Results are read by waiting. A budget is a share of what everything stored takes there, since plans of a GPU
 * are not those of WebAssembly.
 */
import { type Compiled, compile } from "../api/compile.ts";
import { TidemarkError } from "../base/errors.ts";
import type { Target } from "../runtime/device.ts";
import type { GpuAdapter } from "../runtime/webgpu/gpu.ts";
import { webgpuTarget } from "../runtime/webgpu/target.ts";
import { ArrayStorage } from "../trace/storage.ts";
import { Tensor } from "../trace/tensor.ts";
import { flatten, unflatten } from "../trace/tree.ts";
import { batchTensors, type PlaygroundModel } from "./model.ts";
import { sha256 } from "./sha256.ts";
import type { StateHashes, StepReport } from "./trainer.ts";

type Step = Compiled<[object, Tensor, Tensor], readonly [object, Tensor]>;

/** A state that is trained, and what trains it. */
interface Side {
  run: Step;
  state: object;
}

/** A loss, and the milliseconds until it was there. */
type Timed = readonly [number, number];

/** The state in memory of the host, from which any program goes on. */
async function taken(state: object): Promise<object> {
  const { leaves, def, numbers } = flatten(state, "state");
  const copies = leaves.map(async (leaf) => {
    return new Tensor(new ArrayStorage(leaf.dtype, leaf.shape, (await leaf.dataAsync()).slice()));
  });
  return unflatten(def, await Promise.all(copies), numbers) as object;
}

export class GpuTrainer {
  readonly model: PlaygroundModel;
  steps = 0;
  readonly #target: Target;
  readonly #stored: Side;
  readonly #current: Side;

  private constructor(model: PlaygroundModel, target: Target) {
    this.model = model;
    this.#target = target;
    this.#stored = { run: this.#compiled(), state: model.init() };
    this.#current = { run: this.#compiled(), state: model.init() };
  }

  static async on(adapter: GpuAdapter, model: PlaygroundModel): Promise<GpuTrainer> {
    return new GpuTrainer(model, (await webgpuTarget(adapter)).target);
  }

  /** Continues within a share of the bytes of everything stored; where no plan is so small, in the smallest. */
  async change(share: number): Promise<void> {
    const batch = batchTensors(this.model, this.model.batch(0));
    const { arenaBytes } = this.#stored.run.program(this.#stored.state, ...batch);
    const memory = share < 1 ? Math.round(share * arenaBytes) : undefined;
    const state = await taken(this.#current.state);
    const run = this.#within(memory, state, batch);
    this.#current.run.dispose();
    Object.assign(this.#current, { run, state });
  }

  async step(): Promise<StepReport> {
    const batch = this.model.batch(this.steps);
    this.steps += 1;
    const both = [this.#stored, this.#current] as const;
    const order = this.steps % 2 === 0 ? both : both.toReversed();
    const done = new Map<Side, Timed>();
    for (const side of order) {
      const started = performance.now();
      const [next, loss] = side.run(side.state, ...batchTensors(this.model, batch));
      side.state = next;
      const [value = Number.NaN] = await loss.dataAsync();
      done.set(side, [Number(value), performance.now() - started]);
    }
    const [[storedLoss, storedMs], [loss, ms]] = both.map((side) => done.get(side)) as [Timed, Timed];
    return { step: this.steps, loss, storedLoss, ms, storedMs };
  }

  async hashes(): Promise<StateHashes> {
    const hash = async ({ state }: Side): Promise<string> => {
      const { leaves, paths } = flatten(state, "state");
      const parameters = leaves.filter((_, i) => paths[i]?.startsWith("state.params"));
      const read = await Promise.all(parameters.map((leaf) => leaf.dataAsync()));
      return sha256(read.map(({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength)));
    };
    return { step: this.steps, hash: await hash(this.#current), storedHash: await hash(this.#stored) };
  }

  dispose(): void {
    this.#stored.run.dispose();
    this.#current.run.dispose();
  }

  #compiled(memory?: number | "min"): Step {
    const { model } = this;
    const step = (state: object, x: Tensor, y: Tensor): readonly [object, Tensor] => model.step(state, x, y);
    const options = { donate: [0], target: this.#target, name: model.name, ...(memory ? { memory } : {}) };
    return compile(step as never, options) as unknown as Step;
  }

  #within(memory: number | undefined, state: object, batch: readonly [Tensor, Tensor]): Step {
    const run = this.#compiled(memory);
    try {
      run.program(state, ...batch);
      return run;
    } catch (error) {
      if (error instanceof TidemarkError && error.code === "PlanInfeasible") return this.#compiled("min");
      throw error;
    }
  }
}
