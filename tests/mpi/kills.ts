/** @file Kills of one rank, or of mpirun itself, at moments drawn from a seed, of training runs that go on with another number of processes. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, it } from "vitest";
import { hostRandom } from "../../src/base/random.ts";
import { bundleRanks, type Ended, mpiProblem, ranksCommand, runAlone, runRanks } from "../support/mpi-run.ts";

const root = mkdtempSync(join(tmpdir(), "tidemark-rank-kills-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const KILLS = 12;
const STEPS = 300;

interface Found {
  readonly hash: string;
  readonly ran: number;
}

const foundBy = ({ status, out, err }: Ended): Found => {
  if (status !== 0) expect.fail(`status ${status}\n${err}`);
  return JSON.parse(out.trim().split("\n").at(-1) ?? "") as Found;
};

/** Runs processes that say their numbers, and kills one of them after some time; whether it was still there. */
async function killed(
  part: readonly string[],
  random: ReturnType<typeof hostRandom>,
  wholeMs: number,
): Promise<boolean> {
  const [command, args] = ranksCommand(4, part);
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "pipe"] });
  const ranks: number[] = [];
  let text = "";
  let isOver = false;
  const over = new Promise<void>((resolve) => child.on("close", () => resolve())).then(() => {
    isOver = true;
  });
  child.stderr.on("data", (bytes: Buffer) => {
    text += bytes.toString();
    ranks.splice(0, ranks.length, ...[...text.matchAll(/^process (\d+)$/gm)].map(([, pid]) => Number(pid)));
  });
  while (ranks.length < 4 && !isOver) await sleep(5);
  await sleep(random.next() * wholeMs);
  const targets = [...ranks, child.pid as number];
  const target = targets[Math.floor(random.next() * targets.length)] as number;
  if (isOver) return false;
  process.kill(target, "SIGKILL");
  await over;
  // those of a killed mpirun notice that by themselves
  for (let i = 0; i < 500 && ranks.some(isThere); i++) await sleep(10);
  expect(ranks.filter(isThere)).toEqual([]);
  return true;
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

it.skipIf(mpiProblem() !== null)(
  "ends with the same bits after each kill of a rank or of mpirun",
  { timeout: 1_800_000 },
  async () => {
    await bundleRanks();
    const random = hostRandom(7);
    const steps = String(STEPS);
    const whole = foundBy(await runAlone(["trainLong", join(root, "whole"), "0", steps]));
    const begun = performance.now();
    expect(foundBy(await runRanks(4, ["trainLong", join(root, "four"), "2", steps])).hash).toBe(whole.hash);
    const wholeMs = performance.now() - begun;
    let [kills, runs, torn, tries] = [0, 0, 0, 0];
    let directory = join(root, "0");
    while (kills < KILLS) {
      const isKilled = await killed(["trainLong", directory, String(tries++ % 4), steps], random, wholeMs * 0.25);
      if (isKilled) kills++;
      if (existsSync(directory) && readdirSync(directory).some((name) => name.endsWith(".tmp"))) torn++;
      if (isKilled && kills % 3 > 0) continue;
      // to the end, on four processes or on one; nothing is left to run where it came to it before it was killed
      const part = ["trainLong", directory, String(tries % 4), steps];
      const last = foundBy(runs % 2 === 0 ? await runAlone(part) : await runRanks(4, part));
      expect(last.hash).toBe(whole.hash);
      runs++;
      directory = join(root, String(runs));
    }
    console.log(
      `${kills} kills, ${runs} runs brought to their end, all with the same bits; ${torn} left a half-written file`,
    );
  },
);
