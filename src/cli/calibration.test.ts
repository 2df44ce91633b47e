/** @file Rates come out of measured times as they went in; and a real, short calibration is a usable model. */
import { describe, expect, it } from "vitest";
import type { ProductTile } from "../codegen/cpu/nests.ts";
import { blockingOf } from "../codegen/wasm/blocking.ts";
import { wasmDescription, wasmTile } from "../codegen/wasm/description.ts";
import { type CostModel, msOf, type Work } from "../target/work.ts";
import { calibrate, type Families, modelFrom } from "./calibration.ts";

const MiB = 2 ** 20;

/** What programs of known work would take on a machine of known rates. */
function samplesOn(model: CostModel): Families {
  const sample = (work: Partial<Work>) => {
    const whole: Work = { productFlops: 0, arithmetic: 0, bytes: 0, calls: 1, ...work };
    return { name: "", work: whole, seconds: msOf(whole, model) / 1000 };
  };
  return new Map([
    ["calls", [sample({ calls: 500 })]],
    ["arithmetic", [sample({ arithmetic: 1e6 }), sample({ arithmetic: 3e6 }), sample({ arithmetic: 9e6 })]],
    ["product", [sample({ productFlops: 1e9, arithmetic: 1e7 }), sample({ productFlops: 3e8, arithmetic: 1e6 })]],
    ["cached", [sample({ bytes: MiB, calls: 0 })]],
    ["memory", [sample({ bytes: 64 * MiB, calls: 0 })]],
  ]);
}

describe("calibration", () => {
  const { rates: wasmRates } = wasmDescription(false);

  it("finds the rates of a machine that follows the model exactly", () => {
    const machine: CostModel = {
      ...{ name: "made", productRate: 7e9, arithmeticRate: 3e9, byteRate: 2e9, cachedByteRate: 5e9 },
      ...{ cacheBytes: wasmRates.cacheBytes ?? 0, callSeconds: 2e-7 },
    };
    const found = modelFrom(samplesOn(machine), machine);
    for (const key of ["productRate", "arithmeticRate", "byteRate", "cachedByteRate", "callSeconds"] as const) {
      expect(found[key] as number).toBeCloseTo(
        machine[key] as number,
        -Math.floor(Math.log10(machine[key] as number)) + 6,
      );
    }
    expect(found).toMatchObject({ name: "made" });
  });

  it("stays with positive rates where times make no sense", () => {
    const work: Work = { productFlops: 1e6, arithmetic: 1e6, bytes: 1e6, calls: 10 };
    const odd = { name: "", work, seconds: 1e-9 };
    const families: Families = new Map(
      (["calls", "arithmetic", "product", "cached", "memory"] as const).map((family) => [family, [odd]]),
    );
    const { name: _, ...rates } = modelFrom(families, wasmRates);
    for (const rate of Object.values(rates)) expect(rate).toBeGreaterThan(0);
  });

  it("knows how the code generator blocks products", () => {
    const tileOf = (fma: boolean): ProductTile => {
      const { mr, nr, mc, kc } = blockingOf("f32", fma, [2 ** 20, 2 ** 20, 512]);
      return { rows: mr, columns: nr, blockBytes: mc * kc * Float32Array.BYTES_PER_ELEMENT, even: true };
    };
    expect(wasmTile(false)).toEqual(tileOf(false));
    expect(wasmTile(true)).toEqual(tileOf(true));
  });

  it("measures real programs", async () => {
    const { model, samples } = await calibrate({ msEach: 1, streamBytes: MiB });
    expect(samples.length).toBeGreaterThan(10);
    for (const { seconds, work } of samples) {
      expect(seconds).toBeGreaterThan(0);
      expect(work.calls).toBeGreaterThan(0);
    }
    const { name, ...rates } = model;
    expect(name).toBe(wasmDescription().rates.name);
    for (const rate of Object.values(rates)) expect(Number.isFinite(rate) && rate > 0).toBe(true);
  });
});
