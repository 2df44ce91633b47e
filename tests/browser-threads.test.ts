/**
 * @file Threads in a real browser: a page that is isolated from other origins shares programs with its workers, on its own
 * thread, which may not sleep, and in a worker, which may; another page runs the same program alone and says why. All end in
 * the same bits.
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
import type { Outcome } from "./support/threads-page.ts";

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
    response.end(isScript ? script : '<!doctype html><title>threads</title><script src="threads.js"></script>');
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

describe.runIf(path !== null)("threads in a browser", () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-threads-"));
  let server: Server;
  let browser: Browser;
  let alone: Outcome;

  /** Runs text in a page, which gives an outcome. */
  async function inPage(folderName: string, text: string): Promise<Outcome> {
    const page = await browser.newPage();
    page.setDefaultTimeout(patience(60_000));
    const { address, port } = server.address() as AddressInfo;
    await page.goto(`http://${address}:${port}/${folderName}/`);
    const outcome = await page.evaluate<Outcome>(text);
    await page.close();
    return outcome;
  }

  const inWorker = (threads: number): string => `new Promise((resolve, reject) => {
    const worker = new Worker("threads.js");
    worker.onmessage = (event) => resolve(event.data);
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage(${threads});
  })`;

  beforeAll(async () => {
    const file = join(folder, "threads.js");
    const input = join(ROOT, "tests", "support", "threads-page.ts");
    await build({ input, output: { file, format: "iife" }, logLevel: "silent" });
    [server, browser] = await Promise.all([serve(readFileSync(file, "utf8")), launch(path as string)]);
    alone = await inPage("isolated", "compute(1)");
  }, patience(120_000));

  afterAll(async () => {
    server?.close();
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it(
    "end in the bits of one thread on the page's own thread, which may not sleep",
    async () => {
      expect(await inPage("isolated", "compute(3)")).toEqual({ ...alone, threads: 3, helped: true });
    },
    patience(120_000),
  );

  it(
    "and in a worker of the page",
    async () => {
      expect(await inPage("isolated", inWorker(2))).toEqual({ ...alone, threads: 2, helped: true });
    },
    patience(120_000),
  );

  it(
    "are one where the page is not isolated, which it says",
    async () => {
      const outcome = await inPage("open", "compute(2)");
      expect(outcome).toEqual({ ...alone, note: expect.stringContaining("not cross-origin isolated") });
      expect(alone).toMatchObject({ threads: 1, helped: false, note: null });
    },
    patience(120_000),
  );
});
