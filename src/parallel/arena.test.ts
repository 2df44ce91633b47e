/** @file What the arena of one device holds: parts of the state, and gathered parameters for as long as they are read. */
import { describe, expect, it } from "vitest";
import { random, type Tensor, zeros } from "../api/index.ts";
import { placedFigures } from "../api/placed-figures.ts";
import { plansOf } from "../api/plan.ts";
import { wasmDescription } from "../codegen/wasm/description.ts";
import { adam } from "../optim/index.ts";
import { validate } from "../plan/validate.ts";
import { traceFunction } from "../trace/function.ts";
import { unflatten } from "../trace/tree.ts";
import { type DataParallelOptions, dataParallel } from "./data-parallel.ts";
import { mesh } from "./mesh.ts";
import { pipeline } from "./pipeline/pipeline.ts";
import type { PipelineScheduleName } from "./pipeline/schedule.ts";

const BLOCKS = 8;
const WIDTH = 64;
/** Of one weight. */
const BYTES = 4 * WIDTH * WIDTH;
type Params = readonly Tensor[];
const weights = (blocks: number): Params =>
  Array.from({ length: blocks }, (_, i) => random.normal(random.key(i), [WIDTH, WIDTH]));
const lossOf = (ws: Params, x: Tensor): Tensor =>
  ws
    .reduce((h, w) => h.matmul(w).tanh(), x)
    .square()
    .mean();

/** A target that connects devices; nothing is run. */
const description = { ...wasmDescription(false), collectives: true as const };

/** The numbers of the plan of one device's step on its part of 64 rows. */
function planned(devices: number, options: Partial<DataParallelOptions> = {}, blocks = BLOCKS) {
  const train = dataParallel(lossOf, adam({ lr: 0.1 }), { mesh: mesh({ data: devices }), over: "data", ...options });
  const { graph, resultTree } = traceFunction(train.init as never, [weights(blocks)]);
  const state = unflatten(
    resultTree,
    graph.results.map(({ type }) => zeros(type.shape, type.dtype)),
  );
  const args = [state, zeros([64 / devices, WIDTH])];
  const { plans } = plansOf(train.step as never, args, { donate: [0], effort: "quick" }, { description });
  const placed = plans.placed(plans.choose(), 0);
  return { ...placedFigures(placed), plan: placed.plan };
}

describe("the arena of a device", () => {
  const one = planned(1);

  it.each([1, 2, 3] as const)("with zero %i holds parts of the state, to the byte", (zero) => {
    const { persistentBytes, plan } = planned(4, { zero });
    const cut = zero === 3 ? 3 : 2;
    expect(one.persistentBytes - persistentBytes).toBe((cut * BLOCKS * BYTES * 3) / 4);
    expect(validate(plan.program, plan)).toEqual([]);
  });

  it("with zero 3 is at most 0.3 of that of one process, of a chain", () => {
    const { arenaBytes } = planned(4, { zero: 3 }, 12);
    const whole = planned(1, {}, 12).arenaBytes;
    console.log("arena of one process and of one of four devices:", whole, arenaBytes);
    expect(arenaBytes).toBeLessThanOrEqual(0.3 * whole);
  });
});

describe("the arena of a stage", () => {
  const ROWS = 16;
  /** Of what goes from stage to stage. */
  const X = 4 * ROWS * WIDTH;

  function planned(schedule: PipelineScheduleName, microbatches: number) {
    const model = {
      first: (_: Tensor, x: Tensor) => x,
      // its derivative reads x and the result of tanh
      stage: (w: Tensor, x: Tensor) => x.matmul(w).tanh(),
      last: (out: Tensor, y: Tensor) => y.matmul(out).square().mean(),
    };
    const loss = pipeline(model, { over: "pipeline", microbatches, schedule });
    const options = { mesh: mesh({ data: 1, pipeline: 4 }), over: "data", params: { shared: [], stages: "pipeline" } };
    const train = dataParallel(loss, adam({ lr: 0.1 }), options);
    const params = { shared: zeros([WIDTH, 8]), stages: [zeros([WIDTH, WIDTH])] };
    const { graph, resultTree } = traceFunction(train.init as never, [params]);
    const state = unflatten(
      resultTree,
      graph.results.map(({ type }) => zeros(type.shape, type.dtype)),
    );
    const args = [state, zeros([ROWS * microbatches, WIDTH])];
    const { plans } = plansOf(train.step as never, args, { donate: [0], effort: "quick" }, { description });
    const { plan } = plans.placed(plans.choose(), 0);
    expect(validate(plan.program, plan)).toEqual([]);
    return plan.height;
  }

  it("grows with the microbatches by what each is and, where all are in flight, by what each keeps", () => {
    // the rows of the batch, and those of the table: four devices, ten numbers of four bytes for each slot, two slots
    const own = 8 * (X + 2 * 4 * 10 * 4);
    expect(planned("1f1b", 16) - planned("1f1b", 8)).toBe(own);
    // x and tanh are kept, and cotangents wait for the stage behind
    expect(planned("gpipe", 16) - planned("gpipe", 8)).toBe(own + 8 * 3 * X);
  });
});
