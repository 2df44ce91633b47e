/**
 * @file The process that checks programs, one line of JSON after the other: jobs come in, stages and outcomes go out. It
 * writes at once and without an event loop, so that its last word is known when it has to be ended.
 */
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { checkProgram } from "./check.ts";
import type { Job, Word } from "./jobs.ts";

const STDOUT = 1;

const say = (word: Word): void => void writeSync(STDOUT, `${JSON.stringify(word)}\n`);

export function runChild(): void {
  createInterface({ input: process.stdin })
    .on("line", (line) => {
      const { seed, without, ...options } = JSON.parse(line) as Job;
      const left = new Set(without ?? []);
      say({ outcome: checkProgram(seed, { ...options, without: left, begin: (stage) => say({ stage }) }) });
    })
    .on("close", () => process.exit(0));
}
