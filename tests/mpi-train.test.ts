/**
 * @file Training runs of several processes in one folder, with a real MPI: killed and continued on the same and on other meshes, to the same
 * bits, and failing in one way or another. src/node/ranks has the tests of snapshots at every change of the disk.
 */
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundleRanks, type Ended, mpiProblem, runAlone, runRanks } from "./support/mpi-run.ts";
import { ROOT } from "./support/project.ts";

const problem = mpiProblem();
const root = mkdtempSync(join(tmpdir(), "tidemark-mpi-train-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

interface Trained {
  readonly hash: string;
  readonly loss: number;
  readonly losses: readonly number[];
  readonly ran: number;
  readonly resumedFrom: string | null;
  readonly damaged: readonly string[];
}

/** The JSON that rank 0 printed. */
function foundBy<T = Trained>({ status, out, err }: Ended): T {
  if (status !== 0) expect.fail(`status ${status}\n${err}\n${out}`);
  return JSON.parse(out.trim().split("\n").at(-1) ?? "") as T;
}

const folder = (name: string): string => join(root, name);

describe.skipIf(problem !== null)("training on several processes", () => {
  beforeAll(bundleRanks);

  it("that was killed goes on to the bits of a run that was not, on the same mesh and on one process", async () => {
    // one process adds up two microbatches in the order of the ranks
    const whole = foundBy(await runAlone(["trainAlone", folder("whole"), "2"]));
    expect(whole).toMatchObject({ ran: 12, resumedFrom: null });
    const killed = await runRanks(2, ["trainKilled", folder("killed")]);
    expect(killed.status).not.toBe(0);
    const since = Date.now() - Number(/killed at (\d+)/.exec(killed.err)?.[1]);
    console.log(`milliseconds from the end of a killed process to that of all: ${since}`);
    expect(since).toBeLessThan(5000 * Number(process.env.TEST_SLOWNESS ?? 1));
    cpSync(folder("killed"), folder("moved"), { recursive: true });
    const again = foundBy(await runRanks(2, ["trainWhole", folder("killed")]));
    const moved = foundBy(await runAlone(["trainAlone", folder("moved"), "2"]));
    for (const { hash, loss, losses, ran, damaged, resumedFrom } of [again, moved]) {
      expect({ hash, loss, damaged, resumedFrom }).toEqual({
        ...{ hash: whole.hash, loss: whole.loss, damaged: [], resumedFrom: "data=2" },
      });
      expect([3, 6, 9]).toContain(ran);
      expect(losses).toEqual(whole.losses.slice(-ran));
    }
    const [files, record] = [/^state-12\.\d-of-2\.tide$/, "state-12.tide"];
    expect(readdirSync(folder("killed")).filter((name) => files.test(name) || name === record)).toHaveLength(3);
    expect(readdirSync(folder("killed")).filter((name) => /lock|tmp/.test(name))).toEqual([]);
  });

  it("has the same state on other meshes and with other stages of ZeRO; errors reach all ranks", async () => {
    const ended = await runRanks(4, ["trainSeveral", folder("several")]);
    const { first, two, more, again, parts, onOneRow } = foundBy<Record<string, Trained>>(ended);
    expect([two?.hash, two?.ran, two?.resumedFrom]).toEqual([first?.hash, 0, "data=4"]);
    expect([again?.hash, again?.ran, again?.resumedFrom]).toEqual([more?.hash, 0, "data=2"]);
    expect([more?.ran, more?.hash === first?.hash]).toEqual([2, false]);
    expect([onOneRow?.hash, onOneRow?.ran, onOneRow?.resumedFrom]).toEqual([parts?.hash, 0, "data=2,tensor=2"]);
    const said = new Map(
      [...ended.err.matchAll(/^errors (\d) (.*)$/gm)].map(([, rank, json]) => [Number(rank), JSON.parse(json ?? "")]),
    );
    expect([...said.keys()].sort()).toEqual([0, 1, 2, 3]);
    const otherParts =
      "FOLDER/parts was trained on the mesh data=1,tensor=2, with parameters in parts along tensor=2; this one is data=1,tensor=4";
    for (const [rank, errors] of said) {
      expect(errors.otherParts).toContain(otherParts);
      expect(errors.parameters).toContain("InvalidArgument: train: rank 2 starts from other parameters than rank 0");
      expect(errors.options).toContain("rank 3 has 12 steps, every 5, rank 0 12 steps, every 3");
      expect(errors.folders).toContain(`is not the folder of rank 0`);
      expect(errors.invalid).toContain(
        `${rank === 1 ? "" : "rank 1 of 4 failed: "}InvalidArgument: train: every is -1`,
      );
      expect(errors.first).toContain("batch of step 0 failed on rank 2 of 4: Error: the data is not there");
      expect(errors.loss).toContain("another run: different step");
      expect(errors.again).toBe("it ran");
    }
  });

  it("ends on all ranks where one throws in its data, with its rank, step and line", async () => {
    const data = join(ROOT, "tests", "mpi", "failing-data.mjs");
    const { status, err } = await runRanks(2, ["trainThrows", folder("throws"), data]);
    expect(status).not.toBe(0);
    expect(err).toMatch(
      /rank 1 of 2 .*DeviceFailed: train: batch of step 5 failed on rank 1 of 2: Error: the data is not there\n {2}at failing-data\.mjs:\d+:\d+ in failingRows\n/,
    );
  });

  it("ends on all ranks where a callback throws, also when that is caught", async () => {
    const { status, err } = await runRanks(2, ["trainCaught", folder("caught")]);
    expect(status).not.toBe(0);
    expect(err).toMatch(
      /rank 0 of 2 .*DeviceFailed: train: onStep of step 4 failed on rank 0 of 2: Error: no terminal/,
    );
  });

  it("ends on all ranks where one cannot write, with its rank", async () => {
    const full = await runRanks(2, ["trainFull", folder("full")]);
    expect(full.status).not.toBe(0);
    expect(full.err).toMatch(/rank 1 of 2.*StorageError: cannot write .*state-9\.1-of-2\.tide: the disk is full/);
  });
});
