/** @file Simulations forward alone: the bits of a `scan`, killed at changes of the disk, with damaged files, and longer later. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { Crash, crashAfter } from "../../tests/node/files.ts";
import { waveStart, waveStep } from "../../tests/node/wave.ts";
import { forLoop, type Tensor, tensor } from "../api/index.ts";
import { simulate } from "./simulate.ts";

const root = mkdtempSync(join(tmpdir(), "tidemark-simulate-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const folder = (): string => mkdtempSync(join(root, "run-"));

const STEPS = 60;
const { state, speed } = waveStart(8);
const options = { step: waveStep, state, constants: [speed] as const, steps: STEPS };

type State = typeof state;
const bits = (last: State): readonly string[] =>
  [last.now, last.before].map((one) => Buffer.from(one.data().buffer as ArrayBuffer).toString("hex"));

const expected = bits(forLoop(STEPS, state, (i, now) => waveStep(now, i, speed)));

describe("a simulation", () => {
  it("has the bits of a loop in a program, with a folder and without", async () => {
    const plain = await simulate(options);
    expect(bits(plain.state)).toEqual(expected);
    expect(plain).toMatchObject({ ran: STEPS, resumed: false, damaged: [] });
    const kept = await simulate({ ...options, directory: folder(), every: 7 });
    expect(bits(kept.state)).toEqual(expected);
    expect(kept.memoryBytes).toBeGreaterThan(plain.memoryBytes);
  });

  it("stopped at a change of the disk goes on from the last state that is durable", async () => {
    let [stops, saved] = [0, 0];
    for (let operations = 0; ; operations += 6) {
      const directory = folder();
      const { files, crashed } = crashAfter(operations);
      const outcome = await simulate({ ...options, directory, every: 7 }, files).catch((error: unknown) => error);
      if (!crashed()) break;
      expect(outcome).toBeInstanceOf(Crash);
      stops += 1;
      const again = await simulate({ ...options, directory, every: 7 });
      expect(bits(again.state), `stopped after ${operations} changes`).toEqual(expected);
      if (again.ran < STEPS) saved += 1;
    }
    expect(stops).toBeGreaterThan(4);
    expect(saved).toBeGreaterThan(2);
  });

  it("passes over a file that is damaged", async () => {
    const directory = folder();
    await simulate({ ...options, directory, every: 7 });
    const files = readdirSync(directory).filter((name) => name.endsWith(".tide"));
    for (const name of files) {
      const bytes = readFileSync(join(directory, name));
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
      writeFileSync(join(directory, name), bytes);
    }
    const again = await simulate({ ...options, directory });
    expect(bits(again.state)).toEqual(expected);
    expect(again).toMatchObject({ ran: STEPS, resumed: false });
    expect(again.damaged.length).toBe(files.length);
  });

  it("is finished at once when it was before, and goes on when more is asked for", async () => {
    const directory = folder();
    await simulate({ ...options, steps: 40, directory });
    const more = await simulate({ ...options, directory });
    expect(bits(more.state)).toEqual(expected);
    expect(more).toMatchObject({ ran: 20, resumed: true });
    expect(await simulate({ ...options, directory })).toMatchObject({ ran: 0, resumed: true });
  });

  it("is refused where the question is wrong", async () => {
    const directory = folder();
    await simulate({ ...options, directory });
    const other = simulate({ ...options, directory, constants: [speed.mul(2)] });
    await expect(other).rejects.toThrow("contains another run: different constants");
    await expect(simulate({ ...options, steps: -1 })).rejects.toThrow("simulate: steps is -1");
    const step = (x: Tensor): Tensor => x.sum();
    await expect(simulate({ step, steps: 2, state: tensor([1, 2]) })).rejects.toThrow("simulate: step returns f32[]");
  });
});
