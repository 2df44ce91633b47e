/**
 * @file A larger budget is never predicted to be slower and a smaller one never takes a larger arena: strictly, at budgets
 * as dense as plans are, on training steps, on random programs with and without loops, and on programs of the command line.
 * A budget can raise the peak when it is lowered elsewhere (pytorch#197838). Programs of more than 3,000 slices are not
 * promised this (decision 17). Larger programs of the command line: budget-programs.slow.ts.
 */
import { describe, expect, test } from "vitest";
import { checkpoint, forLoop, matmul, spec, type Tensor, tensor, valueAndGrad } from "../src/api/index.ts";
import { plansOf } from "../src/api/plan.ts";
import { at } from "../src/base/invariant.ts";
import { hostRandom } from "../src/base/random.ts";
import { BUILT_IN } from "../src/cli/programs/built-in.ts";
import type { ProgramPlans } from "../src/compiler/assemble.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";
import type { AnyFunction } from "../src/trace/function.ts";
import type { Tree } from "../src/trace/tree.ts";
import { expectOrder } from "./support/expect-order.ts";
import { residualChain, tinyConvNet } from "./support/training-steps.ts";

function plansFor(step: unknown, args: readonly Tree[], donate: readonly number[] = [0]): ProgramPlans {
  return plansOf(step as AnyFunction, args, { donate }).plans;
}

describe("plans are in order by bytes and by time", () => {
  test.each([tinyConvNet(), residualChain(6)])("of a step of $name", ({ step, init, name }) => {
    const answers = expectOrder(plansFor(step, [init() as Tree, tensor(0, { dtype: "i32" })]), 12);
    // Of convolutions and pooling the fastest plan is the smallest too.
    if (name !== tinyConvNet().name) expect(new Set(answers).size).toBeGreaterThan(2);
  });

  test.each(BUILT_IN.filter(({ name }) => ["mlp", "cnn", "lstm"].includes(name)))("of $name", (program) => {
    const args = program.specs?.() ?? [program.init(), ...program.batch()];
    expectOrder(plansFor(program.step, args as readonly Tree[]), 40);
  });

  test.each([1, 2, 3, 4, 5, 6])("of random program %i", (seed) => {
    const { step, args } = randomProgram(seed);
    expectOrder(plansFor(step, args, []), 24);
  });

  test.each([1, 2, 3])("of random program %i with loops", (seed) => {
    const { step, args } = randomLoops(seed);
    expectOrder(plansFor(step, args, []), 40);
  });
});

test.each([false, true])(
  "the smallest plan of convolutions is smaller than all stored, fused multiply-add: %s",
  (fma) => {
    const { step, init } = tinyConvNet();
    const args = [init(), tensor(0, { dtype: "i32" })];
    const { plans } = plansOf(step as AnyFunction, args, { donate: [0] }, wasmTarget(fma));
    expect(plans.least({}).arenaBytes).toBeLessThan(plans.storeAll.arenaBytes);
  },
);

interface RandomProgram {
  readonly step: (w: readonly Tensor[], x: Tensor) => unknown;
  readonly args: readonly Tree[];
}

/** Whole numbers below others, from a seed. */
function draws(seed: number): (n: number) => number {
  const random = hostRandom(seed);
  return (n) => Math.floor(random.next() * n);
}

/** Products, maps and sums over values that may be far back, some behind a checkpoint: the gradient of their end. */
function randomProgram(seed: number): RandomProgram {
  const below = draws(seed);
  const width = 8 << below(4);
  const count = 6 + below(10);
  const kinds = Array.from({ length: count }, () => below(5));
  const back = Array.from({ length: count }, (_, i) => below(i + 1));
  const loss = (w: readonly Tensor[], x: Tensor): Tensor => {
    const values = [x];
    kinds.forEach((kind, i) => {
      const [last, far] = [at(values, values.length - 1), at(values, at(back, i))];
      const product = (v: Tensor): Tensor => matmul(v, at(w, i % w.length)).tanh();
      if (kind === 0) values.push(product(last));
      else if (kind === 1) values.push(last.add(far));
      else if (kind === 2) values.push(last.mul(far).sin());
      else if (kind === 3) values.push(product(product(far)).add(last));
      else values.push(checkpoint(product)(last) as Tensor);
    });
    return at(values, values.length - 1)
      .square()
      .sum();
  };
  const rows = 16 << below(4);
  const weights = Array.from({ length: 1 + below(3) }, () => spec([width, width]));
  return { step: valueAndGrad(loss) as RandomProgram["step"], args: [weights, spec([rows, width])] };
}

/** One or two loops of random lengths after each other. */
function randomLoops(seed: number): RandomProgram {
  const below = draws(seed);
  const lengths = Array.from({ length: 1 + below(2) }, () => 5 + below(60));
  const width = 8 << below(3);
  const loss = (w: readonly Tensor[], x: Tensor): Tensor => {
    const ends = lengths.map((length, i) => {
      const turn = (h: Tensor): Tensor => matmul(h, at(w, i)).tanh().mul(0.9).add(h.sin());
      return forLoop(length, x, (_, h) => turn(h));
    });
    return ends
      .reduce((a, b) => a.add(b))
      .square()
      .sum();
  };
  const weights = lengths.map(() => spec([width, width]));
  return { step: valueAndGrad(loss) as RandomProgram["step"], args: [weights, spec([32, width])] };
}
