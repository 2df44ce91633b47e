/** @file A hundred kills at moments drawn from a seed, over the way forward, the way back, simulations, training and writes of files. */
import { afterAll, expect, it } from "vitest";
import { KINDS, KillRange, killRuns } from "./kill.ts";

const range = new KillRange();
afterAll(() => range.close());

const KILLS = 26;

it("ends with the same bits after each of a hundred kills", { timeout: 1_800_000 }, async () => {
  const seen: Record<string, number> = {};
  let [kills, inWrites] = [0, 0];
  for (const [n, kind] of KINDS.entries()) {
    const whole = await range.run(kind, range.runFolder(), null);
    expect(whole.last).toMatch(/^done [0-9a-f]{64}$/);
    const killed = await killRuns(range, kind, KILLS, whole.ms, 2000 + n);
    expect(new Set(killed.ends)).toEqual(new Set([whole.last]));
    for (const [what, count] of Object.entries(killed.during)) seen[what] = (seen[what] ?? 0) + count;
    [kills, inWrites] = [kills + killed.kills, inWrites + killed.inWrites];
    console.log(
      `${kind}: ${killed.kills} kills, ${killed.ends.length} runs brought to their end, all with the same bits`,
    );
  }
  console.log(`${kills} kills: ${JSON.stringify(seen)}; ${inWrites} left a half-written file`);
  expect(kills).toBeGreaterThanOrEqual(100);
  for (const phase of ["forward", "backward", "training", "simulating"]) expect(seen[phase] ?? 0).toBeGreaterThan(0);
  expect(inWrites).toBeGreaterThan(0);
});
