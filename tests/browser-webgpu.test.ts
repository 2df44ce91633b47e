/**
 * @file The target `webgpu` in a real browser, in a page and in a worker: Chromium with SwiftShader, which needs no GPU. SwiftShader flushes
 * small numbers, which its target says; the numbers here are not so small.
 */
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
import type { WebgpuOutcome } from "./support/webgpu-page.ts";

const path = browserPath();
if (path === null) {
  if (process.env.CI) throw new Error(NO_BROWSER);
  console.warn(NO_BROWSER);
}

function serve(script: string): Promise<Server> {
  const server = createServer((request, response) => {
    const isScript = request.url?.endsWith(".js");
    response.writeHead(200, { "Content-Type": isScript ? "text/javascript" : "text/html" });
    response.end(isScript ? script : '<!doctype html><title>webgpu</title><script src="page.js"></script>');
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

describe.runIf(path !== null)("webgpu in a browser", () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-webgpu-"));
  let server: Server;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    const file = join(folder, "page.js");
    const input = join(ROOT, "tests", "support", "webgpu-page.ts");
    const { workerSource } = await import(new URL("../scripts/worker-source.mjs", import.meta.url).href);
    const define = { TIDEMARK_SOURCES: JSON.stringify("test") };
    const output = { file, format: "iife", codeSplitting: false } as const;
    // the methods of tensors are installed by a module without names
    await build({
      input,
      output,
      plugins: [workerSource()],
      transform: { define },
      treeshake: false,
      logLevel: "silent",
    });
    const gpu = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];
    [server, browser] = await Promise.all([serve(readFileSync(file, "utf8")), launch(path as string, gpu)]);
    page = await (await browser.newContext()).newPage();
    page.setDefaultTimeout(patience(60_000));
    const { address, port } = server.address() as AddressInfo;
    await page.goto(`http://${address}:${port}/`);
  }, patience(120_000));

  afterAll(async () => {
    server?.close();
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function expectOutcome({ arithmetic, byObject, byName, later, onWasm, tooEarly, notReady }: WebgpuOutcome): void {
    expect(arithmetic).toMatch(/^webgpu, /);
    expect(byObject).toHaveLength(3);
    for (const losses of [byName, later]) expect(losses).toEqual(byObject);
    byObject.forEach((loss, i) => {
      expect(loss).toBeCloseTo(onWasm[i] ?? Number.NaN, 5);
    });
    expect(tooEarly).toContain("write `await webgpu()` once");
    expect(notReady).toContain("NotReady");
  }

  it("trains in a page", { timeout: patience(120_000) }, async () => {
    expectOutcome(await page.evaluate<WebgpuOutcome>("webgpuOutcome()"));
  });

  it("trains in a worker", { timeout: patience(120_000) }, async () => {
    const done = await page.evaluate<WebgpuOutcome | string>(
      `new Promise((resolve) => { new Worker("page.js").onmessage = ({ data }) => resolve(data); })`,
    );
    if (typeof done === "string") throw new Error(done);
    expectOutcome(done);
  });
});
