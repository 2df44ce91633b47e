/** @file Values and state in a file of a real browser: in a worker of a page, with the bits of a program without it. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { build } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, launch, NO_BROWSER } from "./support/browser.ts";
import { patience } from "./support/patience.ts";
import { ROOT } from "./support/project.ts";
import type { Outcome } from "./support/spill-page.ts";

const path = browserPath();
if (path === null) {
  if (process.env.CI) throw new Error(NO_BROWSER);
  console.warn(NO_BROWSER);
}

function serve(script: string): Promise<Server> {
  const server = createServer((request, response) => {
    const isScript = request.url?.endsWith(".js");
    response.writeHead(200, { "Content-Type": isScript ? "text/javascript" : "text/html" });
    response.end(isScript ? script : '<!doctype html><title>files</title><script src="spill.js"></script>');
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

describe.runIf(path !== null)("a file in a browser", () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-page-file-"));
  let server: Server;
  let browser: Browser;
  let page: Page;

  /** The answer of a new worker, which is ended then. */
  const inWorker = <T>(how: string): Promise<T> =>
    page.evaluate<T>(`new Promise((resolve, reject) => {
      const worker = new Worker("spill.js");
      const end = (settle, value) => { worker.terminate(); settle(value); };
      worker.onmessage = ({ data }) => data.failed ? end(reject, new Error(data.failed)) : end(resolve, data);
      worker.onerror = (event) => end(reject, new Error(event.message));
      worker.postMessage(${JSON.stringify(how)});
    })`);

  beforeAll(async () => {
    const file = join(folder, "spill.js");
    const input = join(ROOT, "tests", "support", "spill-page.ts");
    await build({ input, treeshake: false, output: { file, format: "iife" }, logLevel: "silent" });
    [server, browser] = await Promise.all([serve(readFileSync(file, "utf8")), launch(path as string)]);
    page = await browser.newPage();
    page.setDefaultTimeout(patience(60_000));
    const { address, port } = server.address() as AddressInfo;
    await page.goto(`http://${address}:${port}/`);
  }, patience(120_000));

  afterAll(async () => {
    server?.close();
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it(
    "changes no bit, has the planned size, and is removed",
    async () => {
      // a worker that is ended leaves its file, until the next one is made
      const [left] = await inWorker<readonly string[]>("killed");
      const stored = await inWorker<Outcome>("stored");
      expect(stored.after).toEqual([left]);
      const spilled = await inWorker<Outcome>("file");
      expect(spilled).toMatchObject({ losses: stored.losses, weights: stored.weights });
      expect(spilled.arenaBytes).toBeLessThanOrEqual(0.5 * stored.arenaBytes + 1);
      expect(spilled.persistentBytes + spilled.spillPersistentBytes).toBe(stored.persistentBytes);
      expect(spilled.spillPersistentBytes).toBeGreaterThan(0);
      expect(spilled.fileBytes).toBe(spilled.spillBytes);
      expect(spilled.during).toHaveLength(1);
      expect(spilled.during).not.toContain(left);
      expect(spilled.after).toEqual([]);
      expect(spilled.errors).toEqual([
        expect.stringMatching(/StorageError: spill: the file .* belongs to another function/),
        expect.stringMatching(/InvalidArgument: spill without a budget in bytes/),
        expect.stringMatching(/TargetUnsupported: spill: wasm on 2 threads moves no values to files/),
        expect.stringMatching(/StorageError: spill: the file .* has no room for 1,125,899,906,842,624 bytes/),
        "no error",
        expect.stringMatching(/StorageError: spill: the file .* was closed/),
      ]);
    },
    patience(120_000),
  );

  it("is for workers alone", async () => {
    const text = "pageFile().then(() => 'none', (error) => String(error))";
    expect(await page.evaluate<string>(text)).toMatch(/TargetUnsupported: pageFile: only workers have files/);
  });
});
