/**
 * @file The work of a worker, independent of messaging. Training runs in slices between which messages are received, so
 * a budget can change between any two steps.
 */
import { at, invariant } from "../base/invariant.ts";
import type { Gpu } from "../runtime/webgpu/gpu.ts";
import { GpuTrainer } from "./gpu-trainer.ts";
import type { PlaygroundModel } from "./model.ts";
import { MODELS } from "./models.ts";
import { Planner } from "./planner.ts";
import type { SentProgram } from "./program.ts";
import type { Calls, Engine } from "./protocol.ts";
import { type Surroundings, studying, tellCurves } from "./studying.ts";
import { type StateHashes, type StepReport, Trainer } from "./trainer.ts";

/** How long a slice of training is, and how often states are hashed. */
const [SLICE_MS, HASH_EVERY] = [60, 25] as const;

function modelNamed(name: string): PlaygroundModel {
  return at(
    MODELS.filter((model) => model.name === name),
    0,
  );
}

/** A trainer on the GPU, or why there is none. */
async function onGpu(model: PlaygroundModel, gpu: Gpu | undefined): Promise<GpuTrainer | string> {
  try {
    const adapter = await gpu?.requestAdapter({ powerPreference: "high-performance" });
    return adapter ? await GpuTrainer.on(adapter, model) : "there is no GPU that WebGPU can use";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** What is asked happens in turn: on a GPU a step is waited for. */
function inTurns() {
  let last: Promise<unknown> = Promise.resolve();
  return <T>(work: () => Promise<T> | T): Promise<T> => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };
}

/** Trains in slices until stopped. */
function training({ tell, later, gpu }: Surroundings) {
  let trainer: Trainer | GpuTrainer | null = null;
  let stored: SentProgram | null = null;
  let until = 0;
  let waiting = false;
  const inTurn = inTurns();
  const hash = async (of: Trainer | GpuTrainer): Promise<void> => tell({ told: "hashes", hashes: await of.hashes() });
  const slice = async (): Promise<void> => {
    waiting = false;
    const mine = trainer;
    if (!mine) return;
    const reports: StepReport[] = [];
    const started = performance.now();
    while (mine.steps < until && performance.now() - started < SLICE_MS) {
      reports.push(await mine.step());
      if (mine.steps % HASH_EVERY === 0 || mine.steps === until) await hash(mine);
    }
    const running = mine.steps < until;
    tell({ told: "steps", reports, running });
    if (running) goOn();
  };
  const goOn = (): void => {
    if (!waiting) later(() => void inTurn(slice));
    waiting = true;
  };
  const begin = async (name: string, program: SentProgram, on: Engine): Promise<string | null> => {
    const model = modelNamed(name);
    const made = on === "webgpu" ? await onGpu(model, gpu) : new Trainer(model, program);
    if (typeof made === "string") return made;
    if (trainer instanceof GpuTrainer) trainer.dispose();
    [trainer, stored, until] = [made, program, 0];
    return null;
  };
  const change = async (program: SentProgram): Promise<StateHashes> => {
    invariant(trainer && stored, () => "change before train");
    if (trainer instanceof GpuTrainer) await trainer.change(program.arenaBytes / stored.arenaBytes);
    else trainer.change(program);
    return trainer.hashes();
  };
  return {
    train: (model: string, program: SentProgram, on: Engine) => inTurn(() => begin(model, program, on)),
    change: (program: SentProgram) => inTurn(() => change(program)),
    run(last: number) {
      until = last;
      goOn();
      return null;
    },
    pause() {
      until = 0;
      const mine = trainer;
      if (mine) void inTurn(() => hash(mine));
      return null;
    },
  };
}

function planning(surroundings: Surroundings) {
  let planner: Planner | null = null;
  const currentPlanner = (): Planner => {
    invariant(planner, () => "asked for a plan before a model");
    return planner;
  };
  return {
    planModel(model: string, withCurve: boolean) {
      const mine = new Planner(modelNamed(model));
      planner = mine;
      if (withCurve) tellCurves(surroundings, model, mine.curves(), () => planner === mine);
      return mine.stored();
    },
    planWithin: (budgetBytes: number) => currentPlanner().within(budgetBytes),
    planStory: (asks: string, value: number) => currentPlanner().story(asks, value),
  };
}

/** Answers to every call. */
export function createWork(surroundings: Surroundings): Calls {
  return { ...planning(surroundings), ...training(surroundings), ...studying(surroundings) };
}
