/** @file The fuzz suite itself: programs are functions of their seeds, and its checks fail where something is wrong. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { tensor } from "../../src/api/index.ts";
import { bitsOf, difference } from "./checks/session.ts";
import { programText, recipeOf } from "./minimise.ts";
import { Child } from "./pool.ts";
import { drawRecipe, fuzzProgram } from "./program.ts";
import { commandOf, reported, reportOf } from "./report.ts";

const folder = mkdtempSync(join(tmpdir(), "tidemark-fuzz-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("random programs", () => {
  test("are functions of their seeds alone", () => {
    const [first, again, other] = [3, 3, 4].map((seed) => programText(recipeOf({ seed })));
    expect(first).toBe(again);
    expect(first).not.toBe(other);
    const args = (number: number) => bitsOf(fuzzProgram(drawRecipe(3)).args(number) as never);
    expect(difference(args(0), args(0))).toBeNull();
    expect(difference(args(0), args(1))).toMatch(/^result \d+ from byte/);
  });

  test("draw the steps that are left as before when others are left out", () => {
    const [all, part] = [drawRecipe(5), drawRecipe(5, { without: new Set([0, 2]) })];
    expect(part.steps.map(({ seed }) => seed)).toEqual(all.steps.map(({ seed }) => seed));
    expect(programText(part)).not.toBe(programText(all));
  });

  test("have bits that differ when one does, and NaNs that are alike", () => {
    const nan = new Float32Array(new Uint32Array([0x7fc00001, 0xffc00000]).buffer);
    expect(difference(bitsOf([tensor(nan)]), bitsOf([tensor(Float32Array.of(Number.NaN, Number.NaN))]))).toBeNull();
    expect(difference(bitsOf([tensor([0, 1])]), bitsOf([tensor([-0, 1])]))).toBe("result 0 from byte 3 of 8");
  });
});

describe("child processes", () => {
  const outcomeOf = async (text: string) => {
    const script = join(folder, "child.mjs");
    writeFileSync(script, text);
    const child = new Child(script, { cpuSeconds: 1, residentBytes: 2 ** 30 });
    try {
      return await child.run({ seed: 7, target: "wasm" });
    } finally {
      child.close();
    }
  };
  const saying = (end: string): string =>
    `process.stdin.once("data", () => { console.log('{"stage":"half way"}'); setTimeout(() => { ${end} }, 50); });`;

  test("that crash are findings about their programs", async () => {
    const { seed, findings } = await outcomeOf(saying("process.exit(3)"));
    expect(seed).toBe(7);
    expect(findings).toMatchObject([{ kind: "crash", what: expect.stringContaining("exit code 3 in half way") }]);
  });

  test("that never end are findings too", async () => {
    const { findings } = await outcomeOf(saying("while (true);"));
    expect(findings).toEqual([{ kind: "slow", what: "more than 1 s of processor time, in half way" }]);
  });
});

test("a report has the command that shows a finding again", () => {
  const outcome = {
    ...{ seed: 7, target: "wasm", about: "", cpuSeconds: 1 },
    counts: { plans: 1, runs: 2, refusals: 3, references: 4 },
    findings: [{ kind: "bits", what: "result 0" }] as const,
  };
  const findings = reported({ seed: 7, size: "wide", without: [1, 4] }, outcome);
  const command = "npm run test:fuzz -- --seeds 7:8 --target wasm --size wide --without 1,4";
  expect(findings).toMatchObject([{ kind: "bits", seed: 7, command }]);
  expect(reportOf([outcome, outcome], findings)).toMatchObject({
    programs: 2,
    counts: { runs: 4 },
    byKind: { bits: 1 },
  });
  expect(commandOf({ seed: 1 })).toBe("npm run test:fuzz -- --seeds 1:2");
});
