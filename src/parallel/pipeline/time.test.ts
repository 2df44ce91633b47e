/** @file Predicted time of pipelines against arithmetic: slots in which devices do different things take as long as the one with most to do. */
import { describe, expect, it } from "vitest";
import { type Tensor, zeros } from "../../api/index.ts";
import { plansOf } from "../../api/plan.ts";
import { specsOf } from "../../api/specs-of.ts";
import { wasmDescription } from "../../codegen/wasm/description.ts";
import { sgd } from "../../optim/index.ts";
import { dataParallel } from "../data-parallel.ts";
import { mesh } from "../mesh.ts";
import { pipeline } from "./pipeline.ts";
import { type PipelineScheduleName, pipelineSchedule, SCHEDULES } from "./schedule.ts";

const [WIDTH, OUT, ROWS, STAGES] = [32, 16, 64, 4];

const chunksOf = (name: PipelineScheduleName): number => (name === "interleaved" ? 2 : 1);

/** Every product takes a millisecond of a core, and nothing else takes time. */
function predicted(schedule: PipelineScheduleName, microbatches: number, coresPerDevice: number): number {
  const own = wasmDescription(false);
  const nothing = { arithmeticRate: 1e30, byteRate: 1e30, cachedByteRate: 1e30, callSeconds: 0 };
  const network = { networkRate: 1e30, messageSeconds: 1e-30 };
  const rates = { ...own.rates, ...nothing, ...network, productRate: 1e3, coresPerDevice };
  const work: typeof own.work = (kernel, inPlace) => {
    const productFlops = kernel.nests.filter(({ kind }) => kind === "contract").length;
    return { ...own.work(kernel, inPlace), productFlops };
  };
  const model = {
    first: (_: Tensor, x: Tensor) => x,
    stage: (w: Tensor, x: Tensor) => x.matmul(w).tanh(),
    last: (out: Tensor, y: Tensor) => y.matmul(out).square().mean(),
  };
  const chunks = chunksOf(schedule);
  const loss = pipeline(model, { over: "pipeline", microbatches, schedule, chunks });
  const options = {
    mesh: mesh({ data: 1, pipeline: STAGES }),
    over: "data",
    params: { shared: [], stages: "pipeline" },
  };
  const train = dataParallel(loss, sgd({ lr: 0.1 }), options);
  const params = { shared: zeros([WIDTH, OUT]), stages: Array.from({ length: chunks }, () => zeros([WIDTH, WIDTH])) };
  const args = [specsOf(train.init)(params), zeros([ROWS * microbatches, WIDTH])];
  const description = { ...own, collectives: true as const, work, rates };
  const { plans } = plansOf(train.step as never, args, { donate: [0], effort: "quick" }, { description });
  return plans.choose().predictedMs;
}

/** Of a stage forward and back, and of the loss with its gradients, in products. */
const [FORWARD, BACKWARD, WEIGHTS, LOSS] = [1, 2, 1, 3];

/** What a device does in a slot: of the forward pass with the loss, of the backward pass, of weights. */
function takes(name: PipelineScheduleName, microbatches: number): readonly (readonly (readonly number[])[])[] {
  const { slots, chunks } = pipelineSchedule(name, { stages: STAGES, microbatches, chunks: chunksOf(name) });
  const backward = name === "zero-bubble" ? BACKWARD - WEIGHTS : BACKWARD;
  const length = Math.max(...slots.map((all) => all.length));
  return Array.from({ length }, (_, t) =>
    slots.map((own, device) => {
      const one = own[t];
      const isEnd = device === STAGES - 1 && one?.chunk === chunks - 1;
      if (one?.what === "forward") return [FORWARD + (isEnd ? LOSS : 0), 0, 0];
      return one ? [0, one.what === "backward" ? backward : 0, one.what === "weights" ? WEIGHTS : 0] : [0, 0, 0];
    }),
  );
}

const sum = (all: readonly number[]): number => all.reduce((total, each) => total + each, 0);

/** As long as the device with most to do; with few cores as long as all of them together on these cores. */
const longest = (devices: readonly number[], cores: number): number =>
  Math.max(...devices, sum(devices) / (STAGES * cores));

describe("the predicted time of a pipeline", () => {
  const shapes = SCHEDULES.flatMap((name) =>
    [4, 8].flatMap((m) => [1, 0.5, 0.25].map((cores) => ({ name, m, cores }))),
  );

  it.each(shapes)("is that of its slots, in which devices meet once or after each part: %o", ({ name, m, cores }) => {
    const slots = takes(name, m);
    const once = sum(slots.map((devices) => longest(devices.map(sum), cores)));
    const often = sum(
      slots.flatMap((devices) =>
        [0, 1, 2].map((part) =>
          longest(
            devices.map((own) => own[part] ?? 0),
            cores,
          ),
        ),
      ),
    );
    const ms = predicted(name, m, cores);
    expect(ms).toBeGreaterThan(once - 1e-6);
    expect(ms).toBeLessThan(often + 1e-6);
    // all do the same in these slots
    if (name === "gpipe") expect(often).toBe(once);
  });

  it("is the formula where stages are equal and each has a core: m + p - 1 times forward and back, and the losses", () => {
    for (const m of [4, 8]) {
      const ms = (m + STAGES - 1) * (FORWARD + BACKWARD) + m * LOSS;
      expect(predicted("gpipe", m, 1)).toBeCloseTo(ms, 6);
    }
  });

  it("on one core is that of all steps, however long devices wait for each other", () => {
    const ms = 8 * (STAGES * (FORWARD + BACKWARD) + LOSS);
    for (const name of ["gpipe", "1f1b", "zero-bubble"] as const)
      expect(predicted(name, 8, 1 / STAGES)).toBeCloseTo(ms, 6);
  });
});
