/**
 * @file The built-in programs against PyTorch: the same initial values, ten steps of forward, backward and update, and the
 * losses must agree to f32 accuracy (tests/fixtures/torch/losses.py made the figures).
 *
 * Tolerance. Both sides compute in f32 and differ in the order of sums and in the last bits of exp and tanh, about 1e-7
 * relative for one loss. That difference enters the gradients and from there the parameters of the next step, and grows;
 * a loss that has fallen to a hundredth of its first value also has a hundredth of it to hide the same absolute error
 * in. A wrong derivative, a wrong learning rate or a missed update shows at 1e-3 and above from the second step on.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { compile } from "../src/api/compile.ts";
import { type AnyProgram, BUILT_IN } from "../src/cli/programs/built-in.ts";

const fixture = JSON.parse(readFileSync(new URL("fixtures/torch/losses.json", import.meta.url), "utf8")) as {
  readonly losses: Readonly<Record<string, readonly number[]>>;
};

/** Relative, for the first half of the steps and for the rest. */
const [EARLY, LATE] = [1e-5, 1e-4];

/** Programs that take seconds a step are followed for fewer of them. */
const STEPS: Readonly<Record<string, number>> = { chain256: 2 };

function train(program: AnyProgram, steps: number): number[] {
  const step = compile(program.step, { donate: [0], name: program.name });
  const batch = program.batch();
  let state = program.init();
  return Array.from({ length: steps }, () => {
    const [next, loss] = step(state, ...batch);
    state = next;
    return loss.item();
  });
}

describe("training agrees with PyTorch", () => {
  it.each(BUILT_IN.map((program) => [program.name, program] as const))("on %s", (name, program) => {
    const all = fixture.losses[name] ?? [];
    const expected = all.slice(0, STEPS[name] ?? all.length);
    expect(expected.length).toBeGreaterThan(1);
    const losses = train(program, expected.length);
    const deviations = losses.map((loss, i) => Math.abs(loss / expected[i]! - 1));
    console.log(`${name}: deviation of losses from PyTorch at most ${Math.max(...deviations).toExponential(1)}`);
    deviations.forEach((deviation, i) => {
      expect(deviation, `step ${i + 1}`).toBeLessThan(i < all.length / 2 ? EARLY : LATE);
    });
  });
});
