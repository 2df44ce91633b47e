/** @file Progress is one line that is written over itself, appears after a second, and is gone when other text is written. */
import { describe, expect, it } from "vitest";
import type { Arguments } from "./command.ts";
import { progressText, withProgress } from "./progress.ts";

const given = (...names: readonly string[]): Arguments => ({
  positionals: [],
  value: () => undefined,
  has: (name) => names.includes(name),
});

/** Streams that record, and a clock that is set. */
function recorded(terminal: boolean, args: Arguments) {
  const written: string[] = [];
  const clock = { ms: 0 };
  const write = (text: string): void => void written.push(text);
  const { io, end } = withProgress({ out: write, err: write, terminal }, args, () => clock.ms);
  const tell = (ms: number, share?: number): void => {
    clock.ms = ms;
    io.progress?.({ doing: "planning: 3 plans", ...(share === undefined ? {} : { share }) });
  };
  return { io, end, tell, written };
}

const ERASE = "\r\u001B[2K";

describe("progress on a terminal", () => {
  it("is written over itself after a second, ten times a second, and erased at the end", () => {
    const { tell, end, written } = recorded(true, given());
    for (const ms of [200, 900, 1100, 1150, 1300]) tell(ms, 0.25);
    end();
    end();
    expect(written).toEqual([
      `${ERASE}planning: 3 plans, 25 %, 1.1 s, about 3.3 s left`,
      `${ERASE}planning: 3 plans, 25 %, 1.3 s, about 3.9 s left`,
      ERASE,
    ]);
  });

  it("is shown at once where nothing is told until something is done", () => {
    const { io, end, written } = recorded(true, given());
    io.progress?.({ doing: "compiling", blocks: true });
    end();
    expect(written).toEqual([`${ERASE}compiling, 0.0 s`, ERASE]);
  });

  it("is erased before other text", () => {
    const { io, tell, written } = recorded(true, given());
    tell(2000);
    io.out("result\n");
    io.err("note\n");
    expect(written).toEqual([`${ERASE}planning: 3 plans, 2.0 s`, ERASE, "result\n", "note\n"]);
  });

  it("is not there with --json, unless it is asked for", () => {
    expect(recorded(true, given("json")).io.progress).toBeUndefined();
    expect(recorded(true, given("json", "progress")).io.progress).toBeDefined();
  });
});

describe("progress elsewhere", () => {
  it("is not there", () => {
    expect(recorded(false, given()).io.progress).toBeUndefined();
  });

  it("is lines of their own where it is asked for, every two seconds", () => {
    const { tell, end, written } = recorded(false, given("progress"));
    for (const ms of [1500, 2100, 3000, 4200]) tell(ms);
    end();
    expect(written).toEqual(["planning: 3 plans, 2.1 s\n", "planning: 3 plans, 4.2 s\n"]);
  });
});

it("the time that remains is not guessed from the first moments", () => {
  expect(progressText({ doing: "x", share: 0.01 }, 3000)).toBe("x, 1 %, 3.0 s");
  expect(progressText({ doing: "x", share: 1 }, 3000)).toBe("x, 100 %, 3.0 s");
});
