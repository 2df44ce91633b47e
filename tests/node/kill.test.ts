/** @file A few kills of every kind of run, and a disk that is really full; `npm run test:kill` has a hundred kills. */
import { spawnSync } from "node:child_process";
import { afterAll, describe, expect, it } from "vitest";
import { KINDS, KillRange, killRuns } from "./kill.ts";

const range = new KillRange();
afterAll(() => range.close());

describe("a killed process", () => {
  for (const [n, kind] of KINDS.entries()) {
    it(`goes on to the same bits: ${kind}`, async () => {
      const whole = await range.run(kind, range.runFolder(), null);
      expect(whole.last).toMatch(/^done [0-9a-f]{64}$/);
      const { kills, ends } = await killRuns(range, kind, 3, whole.ms, 100 + n);
      expect(kills).toBe(3);
      expect(ends.filter((end) => end !== whole.last)).toEqual([]);
    });
  }
});

/** A file system of our own, where the system lets us have one. */
const mayMount = spawnSync("unshare", ["-rm", "mount", "-t", "tmpfs", "none", range.runFolder()]).status === 0;

describe.runIf(mayMount)("a disk that is really full", () => {
  it("stops the run with a clear error; with more room it goes on to the same bits", async () => {
    const whole = await range.run("disk", range.runFolder(), null);
    // $0 the folder, $1 node, $2 the child; it is unmounted when the shell is gone
    const script = [
      'mount -t tmpfs -o size=300k none "$0"',
      '"$1" "$2" disk "$0"',
      'ls "$0"',
      'mount -o remount,size=64m "$0"',
      '"$1" "$2" disk "$0"',
    ].join("\n");
    const args = ["-rm", "sh", "-c", script, range.runFolder(), process.execPath, range.child];
    const lines = spawnSync("unshare", args, { encoding: "utf8" }).stdout.trimEnd().split("\n");
    const failure = lines.find((line) => line.startsWith("failed"));
    expect(failure).toMatch(
      /^failed StorageError: cannot write .*state-\d+\.tide: the disk is full {3}help: free some/,
    );
    // nothing half-written takes space, and what was durable before is there
    expect(lines.filter((line) => line.endsWith(".tmp"))).toEqual([]);
    expect(lines.filter((line) => /^state-\d+\.tide$/.test(line)).length).toBeGreaterThan(0);
    expect(lines.at(-1)).toBe(whole.last);
  });
});
