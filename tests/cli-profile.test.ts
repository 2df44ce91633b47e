/** @file What the command line says about speed beside the step: bytes moved, a roofline, a profile with its trace. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { main } from "../src/cli/main.ts";

interface Event {
  readonly ph: string;
  readonly dur?: number;
}
type Figures = Readonly<Record<string, unknown>>;

const folder = mkdtempSync(join(tmpdir(), "tidemark-profile-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The JSON that a command prints. */
async function figuresOf(...argv: readonly string[]): Promise<Figures> {
  let out = "";
  const io = {
    out: (text: string) => {
      out += text;
    },
    err: () => {},
  };
  expect(await main([...argv, "--json"], io)).toBe(0);
  return JSON.parse(out) as Figures;
}

it("counts the bytes that a program moves beside the fewest it could", async () => {
  const { persistentBytes, leastBytes, kernelBytes, movedBytes } = await figuresOf("plan", "mlp");
  // the state is read and written; images and classes are read, the loss is written
  expect(leastBytes).toBe(2 * (persistentBytes as number) + 4 * (128 * 784 + 128 + 1));
  expect(kernelBytes).toBeGreaterThan(leastBytes as number);
  expect(movedBytes).toBeGreaterThanOrEqual(kernelBytes as number);
});

it("adds a roofline and a profile with its trace", async () => {
  const trace = join(folder, "trace.json");
  const flags = ["--roofline", "--profile", "--chrome-trace", trace];
  const figures = await figuresOf("bench", "mlp", "--steps", "1", ...flags);
  const { roofline, profile } = figures as Readonly<Record<"roofline" | "profile", Figures>>;
  // three products forward, five backward
  expect(roofline.productFlops).toBe(2 * 128 * (2 * 784 * 512 + 3 * 512 * 512 + 3 * 512 * 10));
  for (const name of ["roofMs", "share", "flopShare", "byteShare"]) expect(roofline[name], name).toBeGreaterThan(0);
  for (const name of ["ms", "wholeMs", "bytes", "movedBytes"]) expect(profile[name], name).toBeGreaterThan(0);
  const { traceEvents, otherData } = JSON.parse(readFileSync(trace, "utf8")) as {
    readonly traceEvents: readonly Event[];
    readonly otherData: Figures;
  };
  expect(otherData).toMatchObject({ program: "mlp", time: "measured" });
  const slices = traceEvents.filter(({ ph }) => ph === "X");
  expect(slices).toHaveLength((profile.steps as unknown[]).length);
  expect(slices.reduce((sum, { dur }) => sum + (dur ?? 0), 0)).toBeCloseTo(1000 * (profile.ms as number), 3);
});
