/** @file The hash against Node's. */
import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { sha256 } from "./sha256.ts";

it("is SHA-256 of the pieces one after the other, whatever their lengths", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 150 }), { maxLength: 4 }), (pieces) => {
      const hash = createHash("sha256");
      for (const piece of pieces) hash.update(piece);
      expect(sha256(pieces)).toBe(hash.digest("hex"));
    }),
    { seed: 7, numRuns: 200 },
  );
});
