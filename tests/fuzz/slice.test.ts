/**
 * @file A slice of the fuzz suite (main.ts): short programs, in this process. What the suite itself adds is longer programs,
 * native code, more seeds, and the end of a process as a finding.
 */
import { describe, expect, test } from "vitest";
import { checkProgram } from "./check.ts";
import type { Group } from "./findings.ts";
import { commandOf } from "./report.ts";

/** Some, but for those that take several seconds each. */
const SEEDS = Array.from({ length: 25 }, (_, i) => 12 + i).filter((seed) => ![17, 29, 36].includes(seed));
const MOST_STEPS = 4;

/** What is asserted of every program: all but what a process may do. */
const ASSERTED: readonly Group[] = ["bits", "plans", "least", "order"];

describe("random programs", () => {
  test.each(SEEDS)("of seed %i keep their bits and their budgets", (seed) => {
    const { findings, counts } = checkProgram(seed, { target: "wasm", groups: ASSERTED, mostSteps: MOST_STEPS });
    expect(findings, commandOf({ seed, target: "wasm", mostSteps: MOST_STEPS })).toEqual([]);
    expect(counts.runs).toBeGreaterThan(0);
  });
});
