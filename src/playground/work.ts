/**
 * @file The work of a worker, apart from how it is asked for it. Training goes on in slices between which whatever was
 * said is heard, so a budget can change between any two steps.
 */
import { at, invariant } from "../base/invariant.ts";
import type { PlaygroundModel } from "./model.ts";
import { MODELS } from "./models.ts";
import { Planner } from "./planner.ts";
import type { Calls, Told } from "./protocol.ts";
import { Study } from "./study.ts";
import { Trainer } from "./trainer.ts";

/** How long a slice of training is, and how often states are hashed. */
const [SLICE_MS, HASH_EVERY] = [60, 25] as const;

function modelNamed(name: string): PlaygroundModel {
  return at(
    MODELS.filter((model) => model.name === name),
    0,
  );
}

export interface Surroundings {
  tell(said: Told): void;
  /** Runs something after what was said meanwhile has been heard. */
  later(work: () => void): void;
}

/** Trains in slices until told otherwise. */
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

function planning({ tell, later }: Surroundings) {
  let planner: Planner | null = null;
  const known = (): Planner => {
    invariant(planner, () => "asked for a plan before a model");
    return planner;
  };
  return {
    planModel(model: string) {
      const mine = new Planner(modelNamed(model));
      planner = mine;
      const curves = mine.curves();
      // One point at a time: what is asked meanwhile goes first.
      const next = (): void => {
        const { value, done } = planner === mine ? curves.next() : { value: null, done: true };
        if (done || !value) return;
        tell({ told: "curve", model, curve: value });
        later(next);
      };
      later(next);
      return mine.stored();
    },
    planWithin: (budgetBytes: number) => known().within(budgetBytes),
    planStory: (asks: string, value: number) => known().story(asks, value),
  };
}

/** Answers to every call. */
export function createWork(surroundings: Surroundings): Calls {
  const study = new Study();
  return {
    ...planning(surroundings),
    ...training(surroundings),
    study: (text) => study.look(text, () => surroundings.tell({ told: "ran" })),
    studyWithin: (budgetBytes) => study.within(budgetBytes),
    studyCurve: () => study.curve(),
    studyStory: (asks, value) => study.story(asks, value),
  };
}
