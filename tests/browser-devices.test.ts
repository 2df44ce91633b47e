/**
 * @file Devices in a real browser: the workers of a page that is isolated from other origins train together with the bits of one device; one that
 * throws, or is ended, ends all; another page is told what it lacks.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, NO_BROWSER } from "./support/browser.ts";
import { type IsolatedPages, isolatedPages } from "./support/isolated-pages.ts";
import { patience } from "./support/patience.ts";
import { ROOT } from "./support/project.ts";

const path = browserPath();
if (path === null) {
  if (process.env.CI) throw new Error(NO_BROWSER);
  console.warn(NO_BROWSER);
}

describe.runIf(path !== null)("devices in a browser", () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-devices-"));
  let pages: IsolatedPages;

  const inPage = <R>(folderName: string, text: string): Promise<R> => pages.inPage(folderName, text);

  beforeAll(async () => {
    const file = join(folder, "devices.js");
    const input = join(ROOT, "tests", "support", "devices-page.ts");
    const output = { file, format: "esm", codeSplitting: false } as const;
    // methods of tensors are an effect
    await build({ input, output, treeshake: { moduleSideEffects: (id) => id.startsWith(ROOT) }, logLevel: "silent" });
    const html = '<!doctype html><title>devices</title><script type="module" src="devices.js"></script>';
    pages = await isolatedPages(path as string, { html, script: readFileSync(file, "utf8") });
  }, patience(120_000));

  afterAll(async () => {
    await pages?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it(
    "train with the bits of one device",
    async () => {
      type Found = Record<"alone" | "found", readonly (readonly number[])[]>;
      const { alone, found } = await inPage<Found>("isolated", "devices.train(3)");
      expect(alone[0]?.length).toBe(3 + 32 * 32);
      expect(found).toEqual([alone[0], alone[0], alone[0]]);
    },
    patience(120_000),
  );

  it(
    "end when one throws, or is ended by someone",
    async () => {
      const thrown = await inPage<string>("isolated", "devices.throws()");
      expect(thrown).toMatch(
        /^DeviceFailed: rank 1 of 3: Error: no more data\n {2}in sums, last collective: 0: all_reduce of 16 f32/,
      );
      const { text, ms } = await inPage<{ text: string; ms: number }>("isolated", "devices.ended()");
      expect(text).toContain("rank 2 of 3 did not return: it was ended; the other devices are ended too");
      expect(ms).toBeLessThan(patience(5000));
    },
    patience(120_000),
  );

  it(
    "are refused where a page is not isolated, with what it lacks",
    async () => {
      expect(await inPage("open", "devices.refused()")).toMatch(
        /^TargetUnsupported: runDevices: 2 devices share memory, and the page is not/,
      );
    },
    patience(120_000),
  );
});
