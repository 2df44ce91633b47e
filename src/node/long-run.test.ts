/** @file Long runs against `scan`, against differences, and against the counts of the schedules that they follow. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Wave, waveLoss, waveStart, waveStep } from "../../tests/node/wave.ts";
import { scan, type Tensor, type Tree, tensor, valueAndGrad } from "../api/index.ts";
import { leastAdvances } from "../loops/binomial.ts";
import type { Progress } from "./execution.ts";
import { longRun } from "./long-run.ts";
import type { LongRunOptions } from "./long-run-options.ts";
import { checkActions } from "./reverse/check.ts";
import { scheduleNamed } from "./reverse/schedule.ts";

const root = mkdtempSync(join(tmpdir(), "tidemark-long-run-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const folder = (): string => mkdtempSync(join(root, "run-"));

const f64 = (data: number | readonly number[]): Tensor => tensor(data, { dtype: "f64" });
const { state, speed } = waveStart(24);
const wave = { step: waveStep, state, constants: [speed] as const, loss: waveLoss };
/** What the programs of a run take, and its last state. */
async function leastBytes<S extends Tree, const C extends readonly Tree[]>(
  run: Omit<LongRunOptions<S, C>, "steps" | "memory">,
): Promise<number> {
  const options = { ...run, steps: 0, memory: "1GB" } as LongRunOptions<S, C>;
  return (await longRun(options)).memoryBytes;
}
/** What the small runs here take, with a few slots. */
const SMALL = (await leastBytes(wave)) + 5600;

type Step<S, C extends readonly Tree[]> = (state: S, i: Tensor, ...constants: C) => S;

/** The same by `scan` and reverse mode through it. */
function byScan<S extends Tree, C extends readonly Tree[]>(
  step: Step<S, C>,
  steps: number,
  first: S,
  constants: C,
  loss: (last: S, ...constants: C) => Tensor,
): readonly [Tensor, readonly unknown[]] {
  const total = (start: S, ...rest: C): Tensor => {
    const [last] = scan<S, null, []>((now, _, i) => [step(now, i, ...rest), []], start, null, { length: steps });
    return loss(last, ...rest);
  };
  const all = [first, ...constants].map((_, i) => i);
  return valueAndGrad(total as (...args: readonly Tree[]) => Tensor, { argnums: all })(first, ...constants) as never;
}

/** All numbers of a tree of tensors. */
const numbers = (tree: unknown): unknown =>
  JSON.parse(JSON.stringify(tree, (_, value) => (value?.data ? [...value.data()].map(String) : value)));

describe("a long run", () => {
  it("takes a small state's bytes and not whole pages of WebAssembly for each of its programs", async () => {
    const many = waveStart(256);
    const run = { step: waveStep, state: many.state, constants: [many.speed] as const, loss: waveLoss, steps: 40 };
    const ample = await longRun({ ...run, memory: "1MB" });
    const { memoryBytes, value, gradients } = await longRun({ ...run, memory: "64KiB" });
    expect(memoryBytes).toBeLessThanOrEqual(65536);
    expect(numbers([value, gradients])).toEqual(numbers([ample.value, ample.gradients]));
  });

  it("has the bits of scan, whatever the memory", async () => {
    const [loss, [dState, dSpeed]] = byScan<Wave, readonly [Tensor]>(waveStep, 150, state, [speed], waveLoss);
    for (const memory of [SMALL, SMALL + 5000, 400_000]) {
      const { value, gradients, memoryBytes } = await longRun({ ...wave, steps: 150, memory });
      expect(numbers([value, gradients.state, gradients.constants[0]])).toEqual(numbers([loss, dState, dSpeed]));
      expect(memoryBytes).toBeLessThanOrEqual(memory);
    }
  });

  it("has the bits of scan where the reverse reads the state after a step, and where the loss reads constants", async () => {
    const step = (x: Tensor, i: Tensor, k: Tensor): Tensor => x.mul(k).add(i.cast("f64").mul(1e-3)).tanh();
    const loss = (x: Tensor, k: Tensor, scale: Tensor): Tensor => x.mul(scale).sum().add(k.square().sum());
    const start = f64([0.3, -0.2, 0.9]);
    const constants = [f64([0.9, 1.1, 0.7]), f64([1, 2, 3])] as const;
    const run = await longRun({ step, state: start, constants, loss, steps: 60, memory: SMALL });
    const [value, gradients] = byScan<Tensor, readonly [Tensor, Tensor]>(step, 60, start, constants, loss);
    expect(numbers([run.value, [run.gradients.state, ...run.gradients.constants]])).toEqual(
      numbers([value, gradients]),
    );
  });

  it("agrees with differences", async () => {
    const at = async (shift: number): Promise<number> => {
      const data = [...speed.data()].map((k, x) => (x === 7 ? k + shift : k));
      return (await longRun({ ...wave, constants: [f64(data)], steps: 80, memory: SMALL })).value.item();
    };
    const { gradients } = await longRun({ ...wave, steps: 80, memory: SMALL });
    const slope = ((await at(1e-6)) - (await at(-1e-6))) / 2e-6;
    expect(gradients.constants[0].data()[7]).toBeCloseTo(slope, 5);
  });

  it("sums losses of steps", async () => {
    interface Sum {
      readonly x: Tensor;
      readonly total: Tensor;
    }
    const step = (x: Tensor, _: Tensor, k: Tensor): Tensor => x.mul(k).sin();
    const stepLoss = (x: Tensor, i: Tensor): Tensor => x.square().sum().mul(i.cast("f64"));
    const both = ({ x, total }: Sum, i: Tensor, k: Tensor): Sum => ({
      x: step(x, i, k),
      total: total.add(stepLoss(x, i)),
    });
    const [start, k] = [f64([0.5, 1.5]), f64(1.25)];
    const last = (x: Tensor): Tensor => x.sum();
    const run = await longRun({ step, stepLoss, loss: last, state: start, constants: [k], steps: 30, memory: SMALL });
    const [value, [d, dk]] = byScan<Sum, readonly [Tensor]>(both, 30, { x: start, total: f64(0) }, [k], (s) =>
      s.total.add(last(s.x)),
    );
    const got = [run.value, run.gradients.state, run.gradients.constants[0]];
    expect(numbers(got)).toEqual(numbers([value, (d as Sum).x, dk]));
    const alone = await longRun({ step, stepLoss, state: start, constants: [k], steps: 0, memory: SMALL });
    expect([alone.value.item(), alone.gradients.state.toArray()]).toEqual([0, [0, 0]]);
  });

  it("of no steps is the loss of the first state", async () => {
    const run = await longRun({ ...wave, steps: 0, memory: SMALL, directory: folder() });
    const [loss, dState] = valueAndGrad(waveLoss)(state);
    expect(numbers([run.value, run.state, run.gradients.state])).toEqual(numbers([loss, state, dState]));
    expect(run.gradients.constants[0].data().every((d) => d === 0)).toBe(true);
    expect(run.counts).toMatchObject({ forwardSteps: 0, reversedSteps: 0 });
  });

  it("carries integers along and gives them zeros", async () => {
    interface Counted {
      readonly x: Tensor;
      readonly n: Tensor;
    }
    const run = await longRun({
      step: ({ x, n }: Counted): Counted => ({ x: x.mul(2), n: n.add(1) }),
      state: { x: f64([1, 2]), n: tensor(5, { dtype: "i32" }) },
      loss: ({ x, n }) => x.sum().mul(n.cast("f64")),
      steps: 7,
      memory: SMALL,
    });
    expect([run.state.n.item(), run.gradients.state.n.item()]).toEqual([12, 0]);
    expect(run.gradients.state.x.toArray()).toEqual([12 * 128, 12 * 128]);
  });
});

/** A step whose tape is several states, so that states alone are worth keeping. */
function heavyStep(x: Tensor, _: Tensor, k: Tensor): Tensor {
  const a = x.mul(k).sin();
  const b = a.mul(x).cos().mul(k).sin();
  return b.mul(a).cos().mul(x).sin();
}

describe("its schedule", () => {
  const heavy = {
    step: heavyStep,
    state: f64(Array.from({ length: 16 }, (_, i) => 0.1 * i)),
    constants: [f64(1.1)] as const,
    loss: (x: Tensor) => x.sum(),
  };
  const stateBytes = 128;

  it("runs as many steps again as the optimum for the slots that fit", async () => {
    for (const [steps, slots] of [
      [10, 1],
      [57, 3],
      [200, 3],
    ] as const) {
      const memory = (await leastBytes(heavy)) + slots * stateBytes;
      const { counts, schedule } = await longRun({ ...heavy, steps, memory });
      expect(schedule?.slotBytes).toBe(slots * stateBytes);
      expect(counts.recomputedSteps).toBe(leastAdvances(steps, slots));
      expect(counts.forwardSteps).toBe(steps + counts.recomputedSteps);
    }
  });

  it("keeps tapes and states if tapes are small, and does what was planned", async () => {
    const { counts, schedule } = await longRun({ ...wave, steps: 150, memory: SMALL });
    expect(schedule?.name).toBe("mixed");
    expect(counts.recomputedSteps).toBe(schedule?.recomputedSteps);
    const slots = Math.floor((schedule?.slotBytes ?? 0) / 384);
    expect(counts.recomputedSteps).toBeLessThan(leastAdvances(150, slots));
  });

  it("uses files where they are cheaper than steps, as often as was planned", async () => {
    const costs = { writeCost: 2, readCost: 1 };
    const directory = folder();
    const windows = 2 * (96 + 2 * stateBytes);
    const memory = (await leastBytes(heavy)) + windows + 2 * stateBytes;
    const disk = { bytes: 5 * (96 + stateBytes), costs };
    const run = await longRun({ ...heavy, steps: 120, memory, directory, disk, every: 1e6 });
    const slots = Math.floor((run.schedule?.slotBytes ?? 0) / stateBytes);
    const levels = [
      { name: "memory", units: slots, writeCost: 0, readCost: 0 },
      { name: "disk", units: 5, ...costs },
    ];
    const planned = scheduleNamed("multi-level", { steps: 120, snapshots: slots, levels });
    const checked = checkActions(120, planned.levels, planned.actions());
    expect(run.schedule?.name).toBe("multi-level");
    expect(run.counts.recomputedSteps).toBe(checked.recomputedSteps);
    // beside the schedule's: the last state, and the cotangents at the end
    expect(run.counts.filesWritten).toBe((checked.writes[1] ?? 0) + 2);
    // the first state needs no file: it is given
    const fromStart = [...planned.actions()].filter((a) => a.kind === "restore" && a.level === 1 && a.step === 0);
    expect(run.counts.filesRead).toBe((checked.reads[1] ?? 0) - fromStart.length);
    const plain = await longRun({ ...heavy, steps: 120, memory: "1MB" });
    expect(numbers([run.value, run.gradients])).toEqual(numbers([plain.value, plain.gradients]));
    expect(readdirSync(directory).sort()).toEqual(["adjoint-0.tide", "run.json", "state-120.tide"]);
  });

  it("measures what files cost unless that is given", async () => {
    const run = await longRun({ ...heavy, steps: 40, memory: "300KB", directory: folder(), disk: {} });
    const plain = await longRun({ ...heavy, steps: 40, memory: "1MB" });
    expect(numbers([run.value, run.gradients])).toEqual(numbers([plain.value, plain.gradients]));
  });

  it("is told apart in reports: forward, then backward", async () => {
    const seen: Progress[] = [];
    await longRun({ ...wave, steps: 50, memory: SMALL, onProgress: (progress) => seen.push(progress) });
    const first = seen.findIndex(({ phase }) => phase === "backward");
    expect(seen[first]).toMatchObject({ step: 50, steps: 50, reversedSteps: 0 });
    expect(seen.slice(first).every(({ phase }) => phase === "backward")).toBe(true);
  });
});

describe("wrong arguments", () => {
  const wrong = (change: object): Promise<unknown> =>
    longRun({ ...wave, steps: 10, memory: "1MB", ...change } as never);

  it("are refused with what to do", async () => {
    await expect(wrong({ steps: -1 })).rejects.toThrow("longRun: steps is -1");
    await expect(wrong({ every: 0 })).rejects.toThrow("longRun: every is 0");
    await expect(wrong({ loss: undefined })).rejects.toThrow("there is no loss");
    await expect(wrong({ disk: {} })).rejects.toThrow("disk without a directory");
    await expect(wrong({ memroy: 1 })).rejects.toThrow("memory");
    await expect(wrong({ constants: speed })).rejects.toThrow("give a list");
    await expect(wrong({ loss: (s: Wave) => s.now })).rejects.toThrow("the loss must be a float scalar, got f64[24]");
    await expect(wrong({ step: (s: Wave) => ({ now: s.now.sum(), before: s.now }) })).rejects.toThrow("longRun: step");
    await expect(wrong({ step: (s: Wave) => s.now })).rejects.toMatchObject({ code: "InvalidTree" });
  });

  it("such as too little memory are refused with the bytes that would do", async () => {
    const error: Error = await longRun({ ...wave, steps: 100, memory: "2KB" }).then(
      () => new Error("it ran"),
      (reason: Error) => reason,
    );
    expect(error).toMatchObject({ code: "PlanInfeasible" });
    const least = Number(/raise memory to ([\d,]+)/.exec(error.message)?.[1]?.replaceAll(",", ""));
    await expect(longRun({ ...wave, steps: 100, memory: least - 1 })).rejects.toMatchObject({ code: "PlanInfeasible" });
    expect((await longRun({ ...wave, steps: 100, memory: least })).memoryBytes).toBe(least);
  });
});
