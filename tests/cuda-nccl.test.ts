/**
 * @file Collectives of the target `cuda`, with a device and an NCCL that are none (support/emulated-nccl.ts).
 */
import { describe, expect, it } from "vitest";
import { nativeTarget } from "../src/node/native/target.ts";
import { cudaTarget } from "../src/node/cuda/target.ts";
import type { Target, TargetAnswer } from "../src/runtime/device.ts";
import { collectives } from "./mpi/collectives.ts";
import { type Emulated, emulatedPlaces } from "./support/emulated-cuda.ts";
import { type EmulatedNccl, emulatedNccl } from "./support/emulated-nccl.ts";
import "./support/host.ts";
import { bundleRanks, runRanks } from "./support/mpi-run.ts";

function found<T>(answer: T | string): T {
  if (typeof answer === "string") throw new Error(answer);
  return answer;
}
const missing = typeof nativeTarget() === "string" && !process.env.CI;

function device(how: Emulated & EmulatedNccl = {}): Target {
  const places = found(emulatedPlaces(how));
  return found<Target>(cudaTarget({ ...places, nccl: emulatedNccl(places.driver, how), alone: true }) as TargetAnswer as Target);
}

describe("several", () => {
  it("runs", async () => {
    await bundleRanks();
    const places = found(emulatedPlaces());
    const all = { ...places, nccl: emulatedNccl(places.driver) };
    const t = Date.now();
    const r = await runRanks(4, ["nccl"], [], { EMULATED_CUDA: JSON.stringify(all) });
    console.log(Date.now() - t, r.status, r.out, r.err.slice(0, 5000));
  });
});
describe.skipIf(missing)("one device", () => {
  it.each(["early", "late"] as const)("carries out every collective, %s", (copies) => {
    const target = device({ copies });
    const { cases } = collectives({ rank: 0, size: 1 }, () => target);
    expect(cases).toBeGreaterThan(40);
  });
});
