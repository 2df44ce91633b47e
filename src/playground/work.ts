/**
 * @file The work of a worker, independent of messaging. Training runs in slices between which messages are received, so
 * a budget can change between any two steps.
 */
import { at, invariant } from "../base/invariant.ts";
import type { PlaygroundModel } from "./model.ts";
import { MODELS } from "./models.ts";
import { Planner } from "./planner.ts";
import type { Calls } from "./protocol.ts";
import { type Surroundings, studying, tellCurves } from "./studying.ts";
import { Trainer } from "./trainer.ts";

/** How long a slice of training is, and how often states are hashed. */
const [SLICE_MS, HASH_EVERY] = [60, 25] as const;

function modelNamed(name: string): PlaygroundModel {
  return at(
    MODELS.filter((model) => model.name === name),
    0,
  );
}

/** Trains in slices until stopped. */
function training({ tell, later }: Surroundings) {
  let trainer: Trainer | null = null;
  let until = 0;
  let waiting = false;
  const hash = (of: Trainer): void => tell({ told: "hashes", hashes: of.hashes() });
  const slice = (): void => {
    waiting = false;
    if (!trainer) return;
    const reports = [];
    const started = performance.now();
    while (trainer.steps < until && performance.now() - started < SLICE_MS) {
      reports.push(trainer.step());
      if (trainer.steps % HASH_EVERY === 0 || trainer.steps === until) hash(trainer);
    }
    const running = trainer.steps < until;
    tell({ told: "steps", reports, running });
    if (running) goOn();
  };
  const goOn = (): void => {
    if (!waiting) later(slice);
    waiting = true;
  };
  return {
    train(model: string, stored: ConstructorParameters<typeof Trainer>[1]) {
      trainer = new Trainer(modelNamed(model), stored);
      until = 0;
      return null;
    },
    change(program: ConstructorParameters<typeof Trainer>[1]) {
      invariant(trainer, () => "change before train");
      trainer.change(program);
      return trainer.hashes();
    },
    run(last: number) {
      until = last;
      goOn();
      return null;
    },
    pause() {
      until = 0;
      if (trainer) hash(trainer);
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
