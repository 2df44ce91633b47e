/** @file Two runs in one folder: the second is refused while the first is at work, and not when it is gone. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Tensor, tensor } from "../api/index.ts";
import { NODE_FILES } from "./files.ts";
import { inFolder } from "./folder-lock.ts";
import { longRun } from "./long-run.ts";
import { simulate } from "./simulate.ts";
import { train } from "./train.ts";

const folder = (): string => mkdtempSync(join(tmpdir(), "tidemark-lock-"));
const lockOf = (directory: string): string => join(directory, "run.lock");

const training = (directory: string, onStep?: () => void) =>
  train({
    step: (w: Tensor, x: Tensor) => [w.add(x), w.sum()],
    state: tensor([0, 0]),
    steps: 3,
    batch: async (i) => [tensor([1, i])],
    directory,
    ...(onStep ? { onStep } : {}),
  });

const RUNS: Readonly<Record<string, (directory: string) => Promise<unknown>>> = {
  train: (directory) => training(directory),
  simulate: (directory) => simulate({ step: (x: Tensor) => x.mul(0.5), steps: 3, state: tensor([1, 2]), directory }),
  longRun: (directory) =>
    longRun({
      step: (x: Tensor) => x.mul(0.5),
      steps: 3,
      state: tensor([1, 2]),
      loss: (x: Tensor) => x.sum(),
      memory: "1MB",
      directory,
    }),
};

describe("a folder", () => {
  for (const [name, run] of Object.entries(RUNS)) {
    it(`takes one ${name} at a time`, async () => {
      const directory = folder();
      const outcomes = await Promise.allSettled([run(directory), run(directory)]);
      expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      const { reason } = outcomes.find(({ status }) => status === "rejected") as PromiseRejectedResult;
      expect(reason).toMatchObject({
        code: "StorageError",
        summary: expect.stringMatching(/is in use by another call/),
      });
      expect(existsSync(lockOf(directory))).toBe(false);
      await run(directory);
    });
  }

  it("is free again after a run that failed", async () => {
    const directory = folder();
    const failing = training(directory, () => {
      throw new Error("stop");
    });
    await expect(failing).rejects.toThrow("stop");
    await expect(training(directory)).resolves.toMatchObject({ ran: 3 });
  });

  it("of a process that lives is refused, of one that is gone taken over", async () => {
    const directory = folder();
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    const gone = new Promise((done) => child.on("exit", done));
    const lock = { pid: child.pid, thread: 0, host: hostname(), started: null };
    for (const owner of [lock, { ...lock, ranks: [lock, lock] }]) {
      writeFileSync(lockOf(directory), JSON.stringify(owner));
      await expect(training(directory)).rejects.toMatchObject({
        code: "StorageError",
        summary: expect.stringContaining(`is in use by process ${child.pid}`),
      });
    }
    child.kill();
    await gone;
    await expect(training(directory)).resolves.toMatchObject({ ran: 3 });
  });

  it("of several processes, the first of which was killed and the last not yet, is free when all are gone", async () => {
    const directory = folder();
    const child = spawn(process.execPath, ["-e", "setTimeout(() => {}, 500)"], { stdio: "ignore" });
    const last = { pid: child.pid, thread: 0, host: hostname(), started: null };
    const owner = { ...last, pid: 2 ** 30, ranks: [{ ...last, pid: 2 ** 30 + 1 }, last] };
    writeFileSync(lockOf(directory), JSON.stringify(owner));
    await expect(training(directory)).resolves.toMatchObject({ ran: 3 });
    expect(child.exitCode).toBe(0);
  });

  it("is taken over from an earlier process of the same number, another machine, and a lock that is not whole", async () => {
    const owners = [
      { pid: process.pid, thread: 0, host: hostname(), started: "1" },
      { pid: process.ppid, thread: 0, host: `not-${hostname()}`, started: null },
      null,
    ];
    for (const owner of owners) {
      const directory = folder();
      writeFileSync(lockOf(directory), owner === null ? '{"pid":' : JSON.stringify(owner));
      await expect(inFolder(NODE_FILES, "train", directory, async () => "ran")).resolves.toBe("ran");
      expect(existsSync(lockOf(directory))).toBe(false);
    }
  });
});
