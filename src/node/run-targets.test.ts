/**
 * @file Long runs, simulations and training on every target: the bits that `compile` has there, with any number of threads,
 * and a folder that is refused where arithmetic would be another.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { testHost } from "../../tests/support/host.ts";
import { plainTargets } from "../../tests/support/targets.ts";
import { compile, forLoop, matmul, scan, type Tensor, tensor, valueAndGrad } from "../api/index.ts";
import { at } from "../base/invariant.ts";
import { longRun } from "./long-run.ts";
import { nativeTarget } from "./native/target.ts";
import { simulate } from "./simulate.ts";
import { train } from "./train.ts";

const root = mkdtempSync(join(tmpdir(), "tidemark-run-targets-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const folder = (): string => mkdtempSync(join(root, "run-"));

const values = (n: number, scale: number): readonly number[] =>
  Array.from({ length: n }, (_, i) => Math.sin(i) * scale);
const start = tensor(values(64, 1)).reshape([8, 8]);
const weights = tensor(values(64, 0.3)).reshape([8, 8]);
const step = (x: Tensor, _i: Tensor, w: Tensor): Tensor => matmul(x, w).tanh();
const loss = (x: Tensor): Tensor => x.square().sum();
const STEPS = 20;
const bits = (...all: readonly Tensor[]): readonly string[] => all.map((t) => [...t.data()].map(String).join());

const targets = [
  { target: "wasm", threads: 1 },
  { target: "native", threads: 1 },
  { target: "native", threads: 3 },
] as const;
const missing = at(plainTargets, 1).missing;

describe.each(targets.filter(({ target }) => target === "wasm" || missing === null))("$target, $threads", (on) => {
  it("runs a simulation and its gradient with the bits of a compiled loop", async () => {
    const forward = compile((x: Tensor, w: Tensor) => forLoop(STEPS, x, (i, now) => step(now, i, w)), on);
    const { state } = await simulate({ step, state: start, constants: [weights], steps: STEPS, ...on });
    expect(bits(state)).toEqual(bits(forward(start, weights)));
    const whole = (x: Tensor, w: Tensor): Tensor => {
      const [last] = scan<Tensor, null, []>((now, _, i) => [step(now, i, w), []], x, null, { length: STEPS });
      return loss(last);
    };
    const [value, [dx, dw]] = compile(valueAndGrad(whole, { argnums: [0, 1] }), on)(start, weights) as never as [
      Tensor,
      [Tensor, Tensor],
    ];
    const options = { step, state: start, constants: [weights] as const, loss, steps: STEPS, memory: "1MB", ...on };
    const run = await longRun(options);
    expect(bits(run.value, run.gradients.state, run.gradients.constants[0])).toEqual(bits(value, dx, dw));
  });

  it("trains with the bits of a compiled step, within a number of bytes", async () => {
    const descend = (w: Tensor, x: Tensor): readonly [Tensor, Tensor] => {
      const [value, dw] = valueAndGrad((v: Tensor) => matmul(matmul(x, v).tanh(), v).square().mean())(w);
      return [w.sub(dw.mul(0.1)), value];
    };
    const compiled = compile(descend, { donate: [0], ...on });
    let [w, last] = [tensor(values(64, 0.3)).reshape([8, 8]), tensor(0)];
    for (let i = 0; i < 5; i++) [w, last] = compiled(w, start);
    const directory = folder();
    const options = { step: descend, state: weights, batch: () => [start] as const, directory, ...on };
    await train({ ...options, steps: 3 });
    const run = await train({ ...options, steps: 5, memory: "min" });
    expect(run).toMatchObject({ resumed: true, ran: 2 });
    expect(bits(run.state, run.loss as Tensor)).toEqual(bits(w, last));
  });
});

describe("a folder", () => {
  it.skipIf(missing !== null)("goes on with other threads, and not with other arithmetic", async () => {
    const directory = folder();
    const options = { step, state: start, constants: [weights] as const, directory };
    const whole = await simulate({ ...options, directory: folder(), steps: STEPS, target: "native" });
    await simulate({ ...options, steps: 9, target: "native" });
    const more = await simulate({ ...options, steps: STEPS, target: "native", threads: 2 });
    expect(more.resumed).toBe(true);
    expect(bits(more.state)).toEqual(bits(whole.state));
    await expect(simulate({ ...options, steps: STEPS })).rejects.toThrow("another run: different arithmetic");
  });

  it("is not asked about targets that there are not", async () => {
    const options = { step, state: start, constants: [weights] as const, steps: 1 };
    await expect(simulate({ ...options, target: "gpu" as never })).rejects.toThrow("simulate: target is");
    await expect(longRun({ ...options, loss, memory: "1MB", threads: 0 })).rejects.toThrow("longRun: threads is 0");
    const training = { step: (w: Tensor) => [w, w.sum()] as const, state: start, steps: 1, batch: () => [] as const };
    await expect(train({ ...training, directory: folder(), memory: "lots" })).rejects.toThrow("memory: ");
  });
});

describe("auto", () => {
  it("says in every result what steps ran on, and why", async () => {
    testHost.targets = { native: () => "there is no compiler here" };
    try {
      const on = { target: "auto" } as const;
      const why = { target: "wasm", targetNote: "wasm, not native: there is no compiler here" };
      const common = { step, state: start, constants: [weights] as const, steps: 2, ...on };
      expect(await simulate(common)).toMatchObject(why);
      expect(await longRun({ ...common, loss, memory: "1MB" })).toMatchObject(why);
      const descend = (w: Tensor): readonly [Tensor, Tensor] => [w.mul(0.5), w.sum()];
      const training = {
        step: descend,
        state: weights,
        steps: 1,
        batch: () => [] as const,
        directory: folder(),
        ...on,
      };
      expect(await train(training)).toMatchObject(why);
    } finally {
      testHost.targets = { native: nativeTarget };
    }
  });
});
