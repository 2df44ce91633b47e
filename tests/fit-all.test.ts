/** @file Every peak that was measured for a large model, beside the modelled one, and batches of all small ones. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tidemark } from "./support/command.ts";
import { expectMeasured, hasLarge, peaks } from "./support/measured-peaks.ts";
import { lastLine } from "./support/outcome.ts";
import { MODELS, NAMES } from "./support/recorded-models.ts";

describe.runIf(hasLarge)("peaks of PyTorch's allocator", () => {
  for (const one of peaks) {
    it(`are those that were measured: ${one.case}, batch ${one.batch}, ${one.optimizer}`, () => expectMeasured(one));
  }
});

describe.runIf(hasLarge)("tidemark fit", () => {
  for (const name of NAMES) {
    for (const file of ["model.pt2", "model.core.pt2", "model.onnx"]) {
      it(`changes the batch of ${name}/${file}`, async () => {
        const { code, out } = await tidemark(
          "fit",
          join(MODELS, name, file),
          "--batch",
          "6",
          "--points",
          "2",
          "--json",
        );
        expect(code).toBe(0);
        const report = lastLine(out) as { readonly unknown: string[]; readonly planPeakBytes: number | null };
        expect(report.unknown).toEqual([]);
        expect(report.planPeakBytes).toBeGreaterThan(0);
      });
    }
  }
});
