/**
 * @file Devices in a real browser: the workers of a page that is isolated from other origins train together with the bits of one device; one that
 * throws, or is ended, ends all; another page is told what it lacks.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { build } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, launch, NO_BROWSER } from "./support/browser.ts";
import { patience } from "./support/patience.ts";
import { ROOT } from "./support/project.ts";

const path = browserPath();
if (path === null) {
  if (process.env.CI) throw new Error(NO_BROWSER);
  console.warn(NO_BROWSER);
}

const ISOLATED = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

/** Pages under /isolated/ are; others are not. */
function serve(script: string): Promise<Server> {
  const server = createServer((request, response) => {
    const headers = request.url?.startsWith("/isolated/") ? ISOLATED : {};
    const isScript = request.url?.endsWith(".js");
    response.writeHead(200, { "Content-Type": isScript ? "text/javascript" : "text/html", ...headers });
    response.end(
      isScript ? script : '<!doctype html><title>devices</title><script type="module" src="devices.js"></script>',
    );
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

describe.runIf(path !== null)("devices in a browser", () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-devices-"));
  let server: Server;
  let browser: Browser;

  async function inPage<R>(folderName: string, text: string): Promise<R> {
    const page = await browser.newPage();
    page.setDefaultTimeout(patience(60_000));
    const { address, port } = server.address() as AddressInfo;
    await page.goto(`http://${address}:${port}/${folderName}/`);
    const found = await page.evaluate<R>(text);
    await page.close();
    return found;
  }

  beforeAll(async () => {
    const file = join(folder, "devices.js");
    const input = join(ROOT, "tests", "support", "devices-page.ts");
    const output = { file, format: "esm", codeSplitting: false } as const;
    // methods of tensors are an effect
    await build({ input, output, treeshake: { moduleSideEffects: (id) => id.startsWith(ROOT) }, logLevel: "silent" });
    [server, browser] = await Promise.all([serve(readFileSync(file, "utf8")), launch(path as string)]);
  }, patience(120_000));

  afterAll(async () => {
    server?.close();
    await browser?.close();
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
