/** @file A larger program on four processes: stages of a pipeline, each of two devices with halves of its weights. */
import { beforeAll, describe, expect, it } from "vitest";
import { tidemark } from "./support/command.ts";
import { bundleRanks, type Ended, mpiProblem, runRanks } from "./support/mpi-run.ts";

const problem = mpiProblem();
if (problem !== null) {
  if (process.env.CI) throw new Error(`tests on several processes cannot run: ${problem}`);
  console.warn(`SKIPPED: tests on several processes: ${problem} (Debian: apt-get install openmpi-bin libopenmpi-dev)`);
}

/** The JSON that rank 0 printed. */
function foundBy({ status, out, err }: Ended): Record<string, unknown> {
  if (status !== 0) expect.fail(`status ${status}\n${err}\n${out}`);
  return JSON.parse(out.trim().split("\n").at(-1) ?? "") as Record<string, unknown>;
}

describe.skipIf(problem !== null)("on several processes", () => {
  beforeAll(() => bundleRanks());

  it("gpt as two stages of halves of its weights has the losses of one process", async () => {
    const run = ["bench", "gpt", "--steps", "2", "--json"];
    const mesh = ["--mesh", "pipeline=2,tensor=2", "--microbatches", "2", "--schedule", "zero-bubble"];
    const four = foundBy(await runRanks(4, [...run, ...mesh]));
    const { out } = await tidemark(...run, "--target", "native");
    const one = JSON.parse(out) as Record<string, unknown>;
    (four.losses as readonly number[]).forEach((loss, i) => {
      expect(Math.abs(loss - ((one.losses as readonly number[])[i] as number))).toBeLessThan(1e-4);
    });
    expect(four.persistentBytes as number).toBeLessThan(0.4 * (one.persistentBytes as number));
    expect((four.mesh as Record<string, unknown>).axes).toBe("pipeline=2,tensor=2, 2 microbatches, zero-bubble");
  });
});
