/** @file What a run of the command line comes to, and what tests expect of it. */
import { expect } from "vitest";

export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The JSON object that is the last line. */
export function lastLine(out: string): Record<string, unknown> {
  expect(out.endsWith("}\n")).toBe(true);
  return JSON.parse(out.trimEnd().split("\n").at(-1) ?? "") as Record<string, unknown>;
}

/** A mistake of the user's: exit code 1, a message that starts with its code, no stack. */
export function expectRefusal({ code, err }: Outcome, start: string): void {
  expect(err).toContain(start);
  expect(err.startsWith(start.split(":")[0] as string)).toBe(true);
  expect(err).not.toMatch(/^\s+at .*:\d+:\d+\)$/m);
  expect(code).toBe(1);
}
