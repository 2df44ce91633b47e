/**
 * @file Runs that stop: at changes of the disk all along the way, with a disk that is full, with files that are cut
 * short or have a bit turned. Each is called again and must end with the bits of a run that nothing happened to.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { Crash, crashAfter, fullAfter } from "../../tests/node/files.ts";
import { waveLoss, waveStart, waveStep } from "../../tests/node/wave.ts";
import { type Tensor, tensor } from "../api/index.ts";
import type { Files } from "./files.ts";
import { NODE_FILES } from "./files.ts";
import { longRun } from "./long-run.ts";
import { train } from "./train.ts";

const root = mkdtempSync(join(tmpdir(), "tidemark-recovery-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const folder = (): string => mkdtempSync(join(root, "run-"));

const STEPS = 30;
const { state, speed } = waveStart(8);
/** Files for nothing, so that there are many. */
const disk = { bytes: 4 * 224, costs: { writeCost: 0.01, readCost: 0.01 } };
const options = {
  step: waveStep,
  state,
  constants: [speed] as const,
  loss: waveLoss,
  steps: STEPS,
  memory: 0,
};
// what the programs take, and a thousand bytes for states
options.memory = (await longRun({ ...options, steps: 0, memory: "1GB" })).memoryBytes + 872;

const run = (directory: string, files: Files = NODE_FILES, change: object = {}) =>
  longRun({ ...options, directory, disk, every: 7, ...change }, files);

type Result = Awaited<ReturnType<typeof run>>;

/** Everything that must be the same, bit by bit. */
const bits = ({ value, state: last, gradients }: Result): unknown =>
  [value, last.now, last.before, gradients.state.now, gradients.state.before, gradients.constants[0]].map((tensor) =>
    Buffer.from(tensor.data().buffer as ArrayBuffer).toString("hex"),
  );

const expected = bits((await longRun({ ...options, memory: "1MB" })) as Result);

/** A folder of a run that stopped after so many changes of the disk. */
async function stopped(operations: number): Promise<string> {
  const directory = folder();
  const { files, crashed } = crashAfter(operations);
  await expect(run(directory, files)).rejects.toThrow(Crash);
  expect(crashed()).toBe(true);
  return directory;
}

const named = (directory: string, start: string): readonly string[] =>
  readdirSync(directory)
    .filter((name) => name.startsWith(start) && name.endsWith(".tide"))
    .map((name) => join(directory, name));

function flipBit(path: string, byte: number): void {
  const bytes = readFileSync(path);
  bytes[byte] = (bytes[byte] ?? 0) ^ 4;
  writeFileSync(path, bytes);
}

describe("a run that stops at a change of the disk", () => {
  it("goes on to the same bits, from all along the way", async () => {
    const { files, crashed } = crashAfter(1e9);
    let changes = 0;
    const counting: Files = { ...files, write: (path, bytes) => files.write(path, bytes).then(() => void changes++) };
    expect(bits(await run(folder(), counting))).toEqual(expected);
    expect([crashed(), changes > 10]).toEqual([false, true]);
    let stops = 0;
    // about five changes for a write; every seventh change is tried
    for (let operations = 0; ; operations += 7) {
      const directory = folder();
      const crash = crashAfter(operations);
      const outcome = await run(directory, crash.files).catch((error: unknown) => error);
      if (!crash.crashed()) break;
      expect(outcome).toBeInstanceOf(Crash);
      stops++;
      const again = await run(directory);
      expect(bits(again), `stopped after ${operations} changes`).toEqual(expected);
      expect(again.damaged).toEqual([]);
    }
    expect(stops).toBeGreaterThan(8);
  });

  it("goes on when it is stopped again and again", async () => {
    const directory = folder();
    let stops = 0;
    for (;;) {
      const { files, crashed } = crashAfter(14 + (stops % 5));
      const outcome = await run(directory, files).catch((error: unknown) => error);
      if (!crashed()) {
        expect(bits(outcome as Result)).toEqual(expected);
        break;
      }
      stops++;
      expect(stops).toBeLessThan(60);
    }
    expect(stops).toBeGreaterThan(2);
  });

  it("and is finished gives its result at once", async () => {
    const directory = folder();
    await run(directory);
    const again = await run(directory);
    expect(bits(again)).toEqual(expected);
    expect(again).toMatchObject({ resumed: true, counts: { forwardSteps: 0, reversedSteps: 0 } });
  });
});

describe("a full disk", () => {
  it("stops the run with the file's name; when there is room again it goes on", async () => {
    for (const room of [400, 1000, 1500]) {
      const directory = folder();
      const error: Error = await run(directory, fullAfter(room)).then(
        () => new Error("it ran"),
        (reason: Error) => reason,
      );
      expect(error.message).toMatch(
        /^StorageError: cannot write .*: the disk is full\n {2}help: free some space; then/,
      );
      expect(error.message).toContain(directory);
      expect(bits(await run(directory))).toEqual(expected);
    }
  });
});

describe("a damaged file", () => {
  it("of a state, truncated or with a flipped bit, is recomputed", async () => {
    for (const damage of [
      (path: string) => truncateSync(path, 100),
      (path: string) => truncateSync(path, 0),
      (path: string) => flipBit(path, 120),
      (path: string) => flipBit(path, 17),
    ]) {
      const directory = await stopped(45);
      const states = named(directory, "state");
      expect(states.length).toBeGreaterThan(0);
      for (const path of states) damage(path);
      const again = await run(directory);
      expect(bits(again)).toEqual(expected);
      expect(again.damaged.length).toBeGreaterThan(0);
      expect(again.damaged.every((text) => /state-\d+\.tide is damaged: it/.test(text))).toBe(true);
    }
  });

  it("is found while the run goes on, too", async () => {
    let flipped = 0;
    const files: Files = {
      ...NODE_FILES,
      async rename(from, to) {
        await NODE_FILES.rename(from, to);
        if (/state-\d+\.tide$/.test(to) && !to.endsWith(`-${STEPS}.tide`) && flipped++ % 3 === 1) flipBit(to, 130);
      },
    };
    const through = await run(folder(), files);
    expect(bits(through)).toEqual(expected);
    expect(through.damaged.length).toBeGreaterThan(0);
  });

  it("of cotangents has one before it to fall back to; without, the run says what to remove", async () => {
    const directory = folder();
    const { files } = crashAfter(1e9);
    let adjoints = 0;
    const stop: Files = {
      ...files,
      rename: async (from, to) => {
        if (to.includes("adjoint") && ++adjoints > 2) throw new Crash();
        await files.rename(from, to);
      },
    };
    await expect(run(directory, stop)).rejects.toThrow(Crash);
    const step = (path: string): number => Number(/-(\d+)\.tide$/.exec(path)?.[1]);
    const [last = "", before = ""] = [...named(directory, "adjoint")].sort((a, b) => step(a) - step(b));
    flipBit(last, 99);
    flipBit(before, 99);
    await expect(run(directory)).rejects.toThrow(/adjoint-\d+\.tide is damaged: its contents do not match.*\n.*remove/);
    flipBit(before, 99);
    const again = await run(directory);
    expect(bits(again)).toEqual(expected);
    expect(again.damaged).toEqual([expect.stringContaining(last)]);
  });

  it("is one that lies under another name, or belongs to another run", async () => {
    const stepOf = (path: string): number => Number(/-(\d+)\.tide$/.exec(path)?.[1]);
    const directory = await stopped(45);
    const other = folder();
    await expect(run(other, crashAfter(45).files, { constants: [speed.mul(0.5)] })).rejects.toThrow(Crash);
    const left = Math.min(STEPS, ...named(directory, "adjoint").map(stepOf));
    // on a slow machine signs of life are among the changes of the disk, so that the two do not stop at the same step
    const inOther = new Set(named(other, "state").map(stepOf));
    const states = named(directory, "state").filter((path) => stepOf(path) < left - 1);
    for (const path of states) if (!inOther.has(stepOf(path))) rmSync(path);
    const common = states.filter((path) => inOther.has(stepOf(path)));
    const nearest = common.reduce((best, path) => (stepOf(path) > stepOf(best) ? path : best));
    // the one that is tried first
    writeFileSync(join(directory, `state-${left - 1}.tide`), readFileSync(nearest));
    // the one that is tried next
    writeFileSync(nearest, readFileSync(join(other, `state-${stepOf(nearest)}.tide`)));
    const again = await run(directory);
    expect(bits(again)).toEqual(expected);
    expect(again.damaged[0]).toContain(`it holds the state of step ${stepOf(nearest)}`);
    expect(again.damaged[1]).toContain("it belongs to another run");
  });
});

describe("the folder of another run", () => {
  it("is refused with what is not the same", async () => {
    const directory = await stopped(20);
    const other = (change: object): Promise<unknown> => run(directory, NODE_FILES, change);
    const same = "contains another run: different";
    await expect(other({ steps: STEPS + 1 })).rejects.toThrow(`${same} steps`);
    await expect(other({ constants: [speed.mul(1.5)] })).rejects.toThrow(`${same} constants`);
    await expect(other({ state: { ...state, now: state.before.add(1) } })).rejects.toThrow(`${same} state`);
    await expect(other({ loss: (s: typeof state) => s.now.sum() })).rejects.toThrow(`${same} loss`);
    const step = (s: typeof state, _: Tensor, k: Tensor) => ({ now: s.now.mul(k), before: s.now });
    await expect(other({ step })).rejects.toThrow(`${same} step`);
    expect(bits(await run(directory, NODE_FILES, { every: 3, memory: "2MB" }))).toEqual(expected);
    writeFileSync(join(directory, "run.json"), "{}");
    await expect(run(directory)).rejects.toThrow("does not identify a run");
  });
});

describe("training", () => {
  const start = tensor([0.5, -1, 2], { dtype: "f64" });
  const settings = {
    step: (w: Tensor, x: Tensor): readonly [Tensor, Tensor] => {
      const error = w.sub(x);
      return [w.sub(error.mul(0.1)), error.square().sum()];
    },
    state: start,
    batch: (i: number) => [tensor([Math.sin(i), i % 3, 1], { dtype: "f64" })] as const,
    every: 3,
  };

  it("goes on from the last checkpoint that is whole, stopped at changes of the disk all along the way", async () => {
    const whole = await train({ ...settings, steps: 20, directory: folder() });
    expect(whole).toMatchObject({ ran: 20, resumed: false });
    for (let operations = 0; ; operations += 3) {
      const directory = folder();
      const { files, crashed } = crashAfter(operations);
      const outcome = await train({ ...settings, steps: 20, directory }, files).catch((error: unknown) => error);
      if (!crashed()) break;
      expect(outcome).toBeInstanceOf(Crash);
      const again = await train({ ...settings, steps: 20, directory });
      expect(again.state.data()).toEqual(whole.state.data());
      expect(again.loss?.data()).toEqual(whole.loss?.data());
    }
  });

  it("can be asked for more steps, falls back from a damaged checkpoint, and refuses another step", async () => {
    const directory = folder();
    const seen: number[] = [];
    await train({ ...settings, steps: 10, directory });
    flipBit(join(directory, "state-10.tide"), 100);
    const more = await train({ ...settings, steps: 14, directory, onStep: (i) => seen.push(i) });
    expect(more).toMatchObject({ resumed: true, ran: 5, damaged: [expect.stringContaining("state-10.tide")] });
    expect(seen).toEqual([9, 10, 11, 12, 13]);
    const whole = await train({ ...settings, steps: 14, directory: folder() });
    expect(more.state.data()).toEqual(whole.state.data());
    const none = await train({ ...settings, steps: 14, directory });
    expect([none.ran, none.loss?.data()]).toEqual([0, whole.loss?.data()]);
    for (const path of named(directory, "state")) truncateSync(path, 50);
    await expect(train({ ...settings, steps: 14, directory })).rejects.toMatchObject({ code: "StorageError" });
    const other = train({ ...settings, step: (w, x) => [w.sub(x), w.sum()], steps: 14, directory });
    await expect(other).rejects.toThrow("contains another run: different step");
  });
});
