/**
 * @file Threads in a real browser: a page that is isolated from other origins shares programs with its workers, on its own
 * thread, which may not sleep, and in a worker, which may; another page runs the same program alone and says why. All end in
 * the same bits.
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
import type { Outcome } from "./support/threads-page.ts";

const path = browserPath();
if (path === null) {
  if (process.env.CI) throw new Error(NO_BROWSER);
  console.warn(NO_BROWSER);
}

describe.runIf(path !== null)("threads in a browser", () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-threads-"));
  let pages: IsolatedPages;
  let alone: Outcome;

  const inPage = (folderName: string, text: string): Promise<Outcome> => pages.inPage(folderName, text);

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
    const html = '<!doctype html><title>threads</title><script src="threads.js"></script>';
    pages = await isolatedPages(path as string, { html, script: readFileSync(file, "utf8") });
    alone = await inPage("isolated", "compute(1)");
  }, patience(120_000));

  afterAll(async () => {
    await pages?.close();
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
