/** @file Plans that recompute and move are as fast on chains as an exact dynamic program finds, to 2 %. */
import { expect, it } from "vitest";
import { leastOffloadTime, type OffloadChain } from "./support/offload-chain.ts";
import { expectNearLeast } from "./support/offload-plans.ts";

it("a chain of 100 stages at a quarter of its memory, copies as long as a stage", () => expectNearLeast(1));

it("the dynamic program agrees with what can be said without it", () => {
  const chain: OffloadChain = { stages: 20, slots: 5, forward: 1, backward: 2, copy: 1 };
  // a link as fast as a stage hides everything
  expect(leastOffloadTime(chain)).toBe(60);
  // one that is never done in time is waited for, or values are computed again
  const slow = leastOffloadTime({ ...chain, copy: 40 });
  expect(slow).toBeGreaterThan(60);
  expect(slow).toBeLessThanOrEqual(leastOffloadTime({ ...chain, copy: 80 }));
  expect(leastOffloadTime({ ...chain, slots: 20, copy: 40 })).toBe(60);
});
