/** @file `tidemark revolve` as a user runs it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { leastAdvances } from "../../loops/binomial.ts";
import { main } from "../main.ts";

const folder = mkdtempSync(join(tmpdir(), "tidemark-revolve-"));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

async function revolve(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const code = await main(["revolve", ...argv], { out: (text) => (out += text), err: (text) => (err += text) });
  return { code, out, err };
}

async function json(...argv: string[]): Promise<Record<string, unknown>> {
  const { code, out, err } = await revolve(...argv, "--json");
  expect([code, err]).toEqual([0, ""]);
  return JSON.parse(out.trim().split("\n").at(-1) as string) as Record<string, unknown>;
}

describe("tidemark revolve", () => {
  it("counts the binomial schedule and lists its actions", async () => {
    const answer = await json("--steps", "10", "--snapshots", "3");
    const counts = { schedule: "binomial", forwardSteps: 25, recomputedSteps: 15, peakSnapshots: 3, actionCount: 50 };
    expect(answer).toMatchObject(counts);
    expect(answer.actions).toHaveLength(50);
    expect((answer.actions as readonly unknown[])[0]).toEqual({ kind: "snapshot", step: 0, level: 0, slot: 0 });
  });

  it("counts the actions of long loops unless they are wanted", async () => {
    const long = ["--steps", "500", "--snapshots", "8"];
    const answer = await json(...long);
    expect(answer).toMatchObject({ recomputedSteps: leastAdvances(500, 8), actions: answer.actionCount });
    const listed = await json(...long, "--actions");
    expect(listed.actions).toHaveLength(answer.actionCount as number);
  });

  it("knows the other schedules by what is asked", async () => {
    const costs = file("costs.txt", "1 2 3\n4, 5\n");
    expect(await json("--steps", "30", "--snapshots", "4", "--online")).toMatchObject({ schedule: "online" });
    expect(await json("--steps", "100", "--levels", "mem:5,disk:inf:w=2:r=2")).toMatchObject({ cost: 233 });
    expect(await json("--costs", costs, "--snapshots", "2")).toMatchObject({ schedule: "variable", steps: 5 });
    expect(await json("--costs", file("costs.json", "[1, 2]"), "--snapshots", "1")).toMatchObject({ cost: 1 });
    expect(await json("--steps", "10", "--snapshots", "3", "--schedule", "mixed")).toMatchObject({ forwardSteps: 19 });
    expect(await json("--steps", "64", "--schedule", "binary")).toMatchObject({ peakSnapshots: 6 });
    expect(await json("--steps", "20", "--schedule", "store-all")).toMatchObject({ recomputedSteps: 0 });
    expect(await json("--steps", "20", "--schedule", "periodic", "--every", "5")).toMatchObject({
      recomputedSteps: 15,
    });
  });

  it("reverses a loop of no steps by doing nothing", async () => {
    const answer = await json("--steps", "0", "--snapshots", "3");
    expect(answer).toMatchObject({ forwardSteps: 0, recomputedSteps: 0, peakSnapshots: 0, actions: [] });
  });

  it("draws it", async () => {
    const { code, out } = await revolve("--steps", "10", "--snapshots", "3", "--actions");
    expect(code).toBe(0);
    expect(out).toContain("25 evaluations, 2.50 a step, 15 of them recomputed; 50 actions\n");
    expect(out).toContain(" 1  ▪───▪──▪─◀\n");
    expect(out).toContain("advance  from 0, to 4\n");
    const levels = await revolve("--steps", "20", "--levels", "mem:2,disk:inf:w=1:r=1");
    expect(levels.out).toContain("disk 5 written, 5 read; cost 41\n");
    const long = await revolve("--steps", "2000", "--snapshots", "9");
    for (const line of long.out.split("\n")) expect(line.length).toBeLessThanOrEqual(110);
  });

  it.each([
    [[], "no steps given"],
    [["--steps", "5"], "no snapshots given"],
    [["--steps", "-5", "--snapshots", "2"], "--steps -5"],
    [["--steps", "5.5", "--snapshots", "2"], "--steps 5.5"],
    [["--steps", "20000000", "--snapshots", "2"], "at most 10,000,000"],
    [["--steps", "5", "--snapshots", "0"], "PlanInfeasible: 5 steps cannot be reversed without a snapshot"],
    [["--steps", "5", "--snapshots", "x"], "--snapshots x"],
    [["--steps", "5", "--snapshots", "2", "--schedule", "revolv"], "there is no schedule revolv"],
    [["--steps", "5", "--snapshots", "2", "--schedule", "mixed", "--online"], "--online with the schedule mixed"],
    [["--steps", "5", "--levels", "disk"], 'level "disk": nothing is not a number of slots'],
    [["--steps", "5", "--levels", "a:1,b:2", "--snapshots", "9"], "leave one out"],
    [["--steps", "5", "--snapshots", "2", "--every", "2"], "is for --schedule periodic"],
    [["--steps", "5", "--snapshots", "2", "--costs", "missing.txt"], "cannot read missing.txt"],
    [["--steps", "400000", "--snapshots", "9", "--json", "--actions"], "at most 1,000,000 are listed"],
  ])("refuses %j", async (argv, problem) => {
    const { code, err } = await revolve(...argv);
    expect(code).toBe(1);
    expect(err).toContain(problem);
    expect(err).not.toContain("    at ");
  });

  it("refuses costs that are not one number for each step", async () => {
    const wrong = await revolve("--costs", file("wrong.txt", "1 two 3"), "--snapshots", "2");
    expect(wrong.err).toContain("cost 2 is not a number");
    const few = await revolve("--steps", "4", "--costs", file("few.txt", "1 2"), "--snapshots", "2");
    expect(few.err).toContain("2 costs for 4 steps");
  });
});
