/** @file `tidemark tape`: what is held for the backward pass, counted in four ways. */
import { describe, expect, it } from "vitest";
import { tidemark } from "./support/command.ts";
import { lastLine } from "./support/outcome.ts";

describe("tidemark tape", () => {
  it("compares what is held for the backward pass, as a table and as JSON", async () => {
    const { code, out } = await tidemark("tape", "mlp", "--json");
    expect(code).toBe(0);
    const { overloadBytes, namedSavesBytes, tapeBytes, plannedBytes, rows } = lastLine(out) as Record<
      string,
      number
    > & {
      rows: { operation: string; count: number; tapeBytes: number }[];
    };
    // two hidden layers and what the loss reads
    expect(namedSavesBytes).toBeGreaterThan(2 * 4 * 128 * 512);
    expect(overloadBytes).toBeGreaterThan(2 * namedSavesBytes!);
    expect(tapeBytes).toBeLessThanOrEqual(namedSavesBytes!);
    // the plan may hold the losses of a batch, which are small, in place of what they are made of
    expect(plannedBytes).toBeLessThan(1.01 * tapeBytes!);
    expect(rows.find(({ operation }) => operation === "relu")).toMatchObject({
      count: 2,
      tapeBytes: 2 * 4 * 128 * 512,
    });
    expect((await tidemark("tape", "mlp")).out).toContain("named saves");
  });
});
