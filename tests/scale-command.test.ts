/** @file `tidemark scale`: what it finds, and what it refuses. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { tidemark } from "./support/command.ts";

const folder = mkdtempSync(join(tmpdir(), "tidemark-scale-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("scale", () => {
  const config = join(folder, "config.json");
  const llama = { model_type: "llama", hidden_size: 4096, num_hidden_layers: 32, num_attention_heads: 32 };
  writeFileSync(config, JSON.stringify({ ...llama, intermediate_size: 11008, vocab_size: 32000 }));

  it("finds the fastest way that fits, and says what a device of each role takes", async () => {
    const { code, out } = await tidemark(
      "scale",
      config,
      "--devices",
      "16",
      "--memory",
      "40GB",
      "--batch",
      "32",
      "--json",
    );
    expect(code).toBe(0);
    const found = JSON.parse(out) as { fits: boolean; bytes: number; devices: number; roles: { terms: object }[] };
    expect(found).toMatchObject({ fits: true, devices: 16 });
    expect(found.bytes).toBeLessThan(40e9);
    expect(found.roles[0]?.terms).toHaveProperty("activations");
  });

  it("says what is wrong with a mesh, and that nothing fits", async () => {
    expect((await tidemark("scale", config, "--mesh", "rows=2")).err).toContain(
      "give extents of data, tensor, pipeline, context",
    );
    expect((await tidemark("scale", config, "--devices", "8", "--mesh", "data=4")).err).toContain(
      "--devices 8 with a mesh of 4",
    );
    expect((await tidemark("scale", config, "--memory", "1GB")).err).toContain(
      "no way of sharing it among these devices fits",
    );
  });
});
