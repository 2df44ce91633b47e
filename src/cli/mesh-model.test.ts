/** @file Programs in every kind of form, on all devices of the reference: losses, and parameters that are joined again, are those of one process. */
import { describe, expect, it } from "vitest";
import { runOnDevices, trainedOnDevices } from "../../tests/support/devices.ts";
import type { OptimizerState } from "../optim/optimizer.ts";
import { type FormSettings, formOf, formSettings, formText } from "../parallel/forms.ts";
import type { AnyFunction } from "../trace/function.ts";
import { flatten } from "../trace/tree.ts";
import { rowsOf } from "./mesh.ts";
import { gatheredAll, meshModel, ownParts, partsOf } from "./mesh-model.ts";
import type { AnyProgram } from "./programs/built-in.ts";
import { chain } from "./programs/chain.ts";
import { languageModel } from "./programs/gpt.ts";

const SIZE = { batch: 4, time: 4, width: 8, heads: 2, blocks: 4, vocabulary: 8, tied: false };
const PROGRAMS = [languageModel("tiny", "a small model", SIZE), chain(4, 8)] as unknown as readonly AnyProgram[];
const STEPS = 2;

function trained(program: AnyProgram, form: FormSettings) {
  const model = meshModel(program, "a test");
  const parts = partsOf(program, "a test");
  const { train } = formOf(model, form);
  const whole = (program.init() as OptimizerState).params as object;
  const { axes, size } = form.mesh;
  const own = (rank: number) => ownParts(parts, whole, form, rank);
  const rows = (rank: number) =>
    program.batch().map((x) => rowsOf(x, Math.floor(rank / (axes.pipeline * axes.tensor)), axes.data, "parts"));
  const functions = train as unknown as Record<"init" | "step" | "params", AnyFunction>;
  const course = { start: own, rows, steps: STEPS, round: false };
  const { losses, params } = trainedOnDevices(functions, size, course);
  const { results } = runOnDevices(gatheredAll(parts, own(0), form), [own(0)], params as never, false);
  return { losses, params: results };
}

describe.each(PROGRAMS)("$name", (program) => {
  const model = meshModel(program, "a test");
  const all = formSettings("a test", model as never, { devices: 4 });
  const [one] = formSettings("a test", model as never, { devices: 1 });
  const alone = trained(program, one as FormSettings);
  const wanted = alone.params[0]?.map((x) => [...x]) ?? [];
  const named = (text: string): FormSettings => {
    const found = all.find((form) => formText(form) === text);
    if (!found) throw new Error(`${text} is none of ${all.map(formText).join("; ")}`);
    return found;
  };

  it.each([
    "data=4, ZeRO 2",
    "data=2,tensor=2, ZeRO 3",
    "pipeline=4, 4 microbatches, 1f1b",
    "data=2,pipeline=2, ZeRO 1, 2 microbatches, interleaved in 2 pieces",
    "pipeline=2,tensor=2, 2 microbatches, zero-bubble",
  ])("in the form %s", (text) => {
    const { losses, params } = trained(program, named(text));
    expect(losses).toHaveLength(STEPS);
    for (const [i, own] of losses.entries()) {
      for (const loss of own) expect(loss).toBeCloseTo(alone.losses[i]?.[0] as number, 10);
    }
    for (const own of params) {
      expect(own.map((x) => x.length)).toEqual(wanted.map((x) => x.length));
      own.forEach((x, i) => {
        const far = Math.max(...[...x].map((value, k) => Math.abs(value - (wanted[i]?.[k] as number))));
        expect(far).toBeLessThan(1e-6);
      });
    }
  });

  it("has leaves of one process in the parts of all devices", () => {
    const form = named("pipeline=2,tensor=2, 2 microbatches, gpipe");
    const whole = (program.init() as OptimizerState).params as object;
    const own = [0, 1, 2, 3].map(
      (rank) => flatten(ownParts(partsOf(program, "a test"), whole, form, rank), "own").leaves,
    );
    const [first, second] = own.map((leaves) => leaves.reduce((sum, x) => sum + x.elements, 0));
    expect(first).toBe(second);
    const blocks = flatten(whole, "whole").leaves.reduce((sum, x) => sum + x.elements, 0);
    expect(first).toBeLessThan(blocks / 2);
  });
});
