/**
 * @file `compileAsync` in a real browser: a page compiles a transformer with a budget, its thread plans nothing and stays free, and
 * plan and losses are those of `compile`. The second time the plan comes from the page's database. A page whose policy forbids
 * workers from text plans on its thread and says so.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { build } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AsyncOutcome } from "./support/async-page.ts";
import { browserPath, launch, NO_BROWSER } from "./support/browser.ts";
import { patience } from "./support/patience.ts";
import { ROOT } from "./support/project.ts";

const path = browserPath();
if (path === null) {
  if (process.env.CI) throw new Error(NO_BROWSER);
  console.warn(NO_BROWSER);
}

/** Counts every plan that the bundle makes on its own thread; workers have a text that was bundled before. */
const countPlans = {
  name: "count-plans",
  transform(code: string, id: string): string | null {
    if (id !== join(ROOT, "src", "plan", "plan.ts")) return null;
    const counting = code.replace(
      /^(export function planUnlimited\(.*\{)$/m,
      "$1 globalThis.planned = (globalThis.planned ?? 0) + 1;",
    );
    if (counting === code) throw new Error("planUnlimited is not where plans are made any more");
    return counting;
  },
};

/** Pages under /strict/ take no workers from text. */
function serve(script: string): Promise<Server> {
  const server = createServer((request, response) => {
    const isScript = request.url?.endsWith(".js");
    const strict = "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'";
    const policy = request.url?.startsWith("/strict/") ? { "Content-Security-Policy": strict } : {};
    response.writeHead(200, { "Content-Type": isScript ? "text/javascript" : "text/html", ...policy });
    response.end(isScript ? script : '<!doctype html><title>async</title><script src="async.js"></script>');
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

const BUDGET = "1MiB";

describe.runIf(path !== null)("compileAsync in a page", () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-async-"));
  let server: Server;
  let browser: Browser;
  let page: Page;

  const open = async (name: string): Promise<Page> => {
    const opened = await (await browser.newContext()).newPage();
    opened.setDefaultTimeout(patience(60_000));
    const { address, port } = server.address() as AddressInfo;
    await opened.goto(`http://${address}:${port}/${name}/`);
    return opened;
  };

  beforeAll(async () => {
    const file = join(folder, "async.js");
    const input = join(ROOT, "tests", "support", "async-page.ts");
    const { workerSource } = await import(new URL("../scripts/worker-source.mjs", import.meta.url).href);
    const define = { TIDEMARK_SOURCES: JSON.stringify("test") };
    const output = { file, format: "iife", codeSplitting: false } as const;
    const plugins = [workerSource(), countPlans];
    // the methods of tensors are installed by a module without names
    await build({ input, output, plugins, transform: { define }, treeshake: false, logLevel: "silent" });
    [server, browser] = await Promise.all([serve(readFileSync(file, "utf8")), launch(path as string)]);
    page = await open("plain");
  }, patience(120_000));

  afterAll(async () => {
    server?.close();
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it(
    "plans in a worker, and leaves the thread free",
    async () => {
      const later = await page.evaluate<AsyncOutcome>(`compileLater("${BUDGET}", true)`);
      const now = await page.evaluate<AsyncOutcome>(`compileNow("${BUDGET}")`);
      const { longestGapMs, longestTaskMs, compileMs } = later;
      const ms = [longestGapMs, longestTaskMs, compileMs, now.compileMs, later.traceMs].map(Math.round);
      console.log(
        `longest gap ${ms[0]} ms, longest task ${ms[1]} ms, of ${ms[2]} ms, tracing ${ms[4]} ms; compile: one task of ${ms[3]} ms`,
      );
      expect(later.planned).toBe(0);
      expect(now.planned).toBeGreaterThan(0);
      expect(later.progress.flatMap(({ note }) => note ?? [])).toEqual([]);
      expect(later.slowdown).toBeGreaterThan(1);
      expect([later.arenaBytes, later.losses]).toEqual([now.arenaBytes, now.losses]);
      expect(later.planCached).toBe(false);
      expect(longestGapMs).toBeLessThan(compileMs / 2);
    },
    patience(120_000),
  );

  it(
    "finds the plan in the page's database after that, also when the page is loaded again",
    async () => {
      const first = await page.evaluate<AsyncOutcome>(`compileLater("${BUDGET}", true)`);
      await page.reload();
      const again = await page.evaluate<AsyncOutcome>(`compileLater("${BUDGET}", true)`);
      const without = await page.evaluate<AsyncOutcome>(`compileLater("${BUDGET}", false)`);
      expect([first.planCached, again.planCached, without.planCached]).toEqual([true, true, false]);
      expect([again.arenaBytes, again.losses]).toEqual([without.arenaBytes, without.losses]);
      expect(again.planned).toBe(0);
    },
    patience(120_000),
  );

  it(
    "plans on the page's thread where its policy forbids workers from text, and says so",
    async () => {
      const strict = await open("strict");
      const outcome = await strict.evaluate<AsyncOutcome>(`compileLater("${BUDGET}", false)`);
      expect(outcome.planned).toBeGreaterThan(0);
      expect(outcome.progress.at(-1)?.note).toContain("planned on this thread");
      expect(outcome.losses).toEqual((await page.evaluate<AsyncOutcome>(`compileNow("${BUDGET}")`)).losses);
    },
    patience(120_000),
  );
});
