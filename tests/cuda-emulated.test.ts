/**
 * @file The target `cuda` from calls of the driver to bits, on a device that the C compiler stands in for (support/emulated-cuda.ts):
 * programs have the bits of `native`, values that wait in the host's memory come back as they were, whenever copies run, and what
 * cannot be had is said.
 */
import { describe, expect, it } from "vitest";
import {
  autocast,
  type CompileOptions,
  compile,
  grad,
  plan,
  type Tensor,
  tensor,
  whileLoop,
} from "../src/api/index.ts";
import { mixtureOfExperts } from "../src/nn/index.ts";
import { cudaNamed } from "../src/node/cuda/public.ts";
import { nativeTarget } from "../src/node/native/target.ts";
import type { Target, TargetAnswer } from "../src/runtime/device.ts";
import { flatten } from "../src/trace/tree.ts";
import { type Emulated, emulatedCuda } from "./support/emulated-cuda.ts";
import "./support/host.ts";
import { residualChain, type TrainingStep, tinyConvNet, tinyTransformer } from "./support/training-steps.ts";

function found(answer: TargetAnswer): Target {
  if (typeof answer === "string") throw new Error(answer);
  return answer;
}

const missing = typeof nativeTarget() === "string" && !process.env.CI;
const device = (how?: Emulated): Target => found(emulatedCuda(how));
const likeNative = (): Target => found(nativeTarget({ winograd: "never" }));

/** Elements of the loss and of the state after each of a few steps, and bytes of the second memory. */
function trained({ init, step }: TrainingStep, options: CompileOptions) {
  const run = compile(step as (state: object, count: Tensor) => readonly [object, Tensor], { donate: [0], ...options });
  let state = init();
  const all = [1, 2].map((count) => {
    const [next, loss] = run(state, tensor(count, { dtype: "i32" }));
    state = next;
    return loss.item();
  });
  const leaves = flatten(state, "state").leaves.map((leaf) => [...leaf.data()].map(Number));
  const { spillBytes } = run.stats();
  run.dispose();
  return { results: [all, ...leaves], spillBytes };
}

/** The bytes of a training step with everything stored, and those that persist. */
function bytesOf({ init, step }: TrainingStep, target: Target) {
  const whole = step as (state: object, count: Tensor) => readonly [object, Tensor];
  const info = plan(whole, { donate: [0], target })(init(), tensor(1, { dtype: "i32" }));
  return { all: info.arenaBytes, persistent: info.persistentBytes };
}

describe.skipIf(missing)("training on a device", () => {
  for (const step of [tinyTransformer(), tinyConvNet(), residualChain(4)]) {
    it(`has the bits of native: ${step.name}`, () => {
      expect(trained(step, { target: device() }).results).toEqual(trained(step, { target: likeNative() }).results);
    });
  }

  it("has them with products of bf16, and with experts", () => {
    const layer = mixtureOfExperts(16, { experts: 4, active: 2, hidden: 16 });
    const x = tensor(Array.from({ length: 24 * 16 }, (_, i) => Math.sin(i))).reshape([24, 16]);
    const loss = (params: ReturnType<typeof layer.init>): Tensor => {
      const { y, balance } = layer.apply(params, x);
      return y.square().mean().add(balance.mul(0.01));
    };
    const slopes = (target: Target): readonly (readonly number[])[] =>
      flatten(compile(grad(autocast(loss, { products: "bf16" })), { target })(layer.init(1)), "gradient").leaves.map(
        (leaf) => [...leaf.data()].map(Number),
      );
    expect(slopes(device())).toEqual(slopes(likeNative()));
  });

  it("has them with residuals in few bits too", () => {
    const lossy = { residuals: { linear: 8, rest: "bf16" } } as const;
    const on = (target: Target) => trained(residualChain(4), { target, lossy }).results;
    expect(on(device())).toEqual(on(likeNative()));
  });
});

const onHost = { to: "host", bandwidth: "20GB/s" } as const;

describe.skipIf(missing).each(["early", "late"] as const)("values in the host's memory, with copies %s", (copies) => {
  it("have the bits of a program without it, within the budget", () => {
    const step = tinyTransformer();
    const target = device({ copies });
    const { all, persistent } = bytesOf(step, target);
    const memory = Math.ceil(persistent + 0.5 * (all - persistent));
    const moved = trained(step, { target, memory, spill: onHost, validate: true });
    expect(moved.spillBytes).toBeGreaterThan(0);
    expect(moved.results).toEqual(trained(step, { target }).results);
  });

  it("are there after a loop whose end depends on data", () => {
    const wide = (x: Tensor, w: Tensor): readonly Tensor[] => {
      const kept = x.matmul(w).tanh();
      const [turned] = whileLoop<readonly [Tensor, Tensor]>(
        ([, left]) => left.greater(0),
        ([h, left]) => [h.matmul(w).tanh(), left.sub(1)],
        [x.add(1), tensor(3)],
      );
      return [kept.matmul(turned).sum(), kept.mul(turned).sum()];
    };
    const numbers = (seed: number): Tensor =>
      tensor(Array.from({ length: 64 * 64 }, (_, i) => Math.sin(i + seed))).reshape([64, 64]);
    const target = device({ copies });
    const plain = compile(wide, { target });
    const memory = plain.program(numbers(0), numbers(1)).arenaBytes - 4 * 64 * 64;
    const moved = compile(wide, { target, memory, spill: onHost, validate: true });
    expect(moved.program(numbers(0), numbers(1)).spillBytes).toBeGreaterThan(0);
    for (const seed of [0, 5]) {
      const [got, want] = [moved, plain].map((run) => run(numbers(seed), numbers(seed + 1)).map((x) => x.item()));
      expect(got).toEqual(want);
    }
  });
});

describe.skipIf(missing)("what a device refuses", () => {
  const step = residualChain(4);
  const asking = (options: CompileOptions) => () => trained(step, options);

  it("is a folder as second memory; the host's memory is for devices", () => {
    const target = device();
    expect(asking({ target, memory: "64KiB", spill: { to: "/tmp", bandwidth: "1GB/s" } })).toThrow(
      /TargetUnsupported: cuda moves no values to files, spill: { to: "host" } for the host's memory/,
    );
    for (const name of ["wasm", "native"] as const) {
      expect(asking({ target: name, memory: "64KiB", spill: onHost })).toThrow(
        new RegExp(`${name} moves no values to memory of the host`),
      );
    }
    expect(() => cudaNamed({ isPlanned: true })).not.toThrow();
    expect(asking({ target, memory: "64KiB", spill: { ...onHost, limit: "1GB/s" } })).toThrow(/have no limit/);
    expect(asking({ target, spill: onHost })).toThrow(/spill without a budget in bytes/);
  });

  it("is pinned memory that the host has not got", () => {
    const target = device({
      changes: {
        cuMemHostAlloc: "(void **p, size_t n, unsigned f) { if (n % 65536) return 2; *p = malloc(n); return 0; }",
      },
    });
    const { all, persistent } = bytesOf(step, target);
    const memory = Math.ceil(persistent + 0.5 * (all - persistent));
    expect(asking({ target, memory, spill: onHost })).toThrow(
      /[\d,]+ bytes of pinned memory cannot be had of the host/,
    );
  });
});
