/**
 * @file The playground on a GPU: on lavapipe in Node, and offered by the page in Chromium with SwiftShader. Both trainings have the same
 * bits within any budget, and the page trains on WebAssembly where there is no GPU.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tensor } from "../src/api/index.ts";
import { at } from "../src/base/invariant.ts";
import { sgd } from "../src/optim/sgd.ts";
import { GpuTrainer } from "../src/playground/gpu-trainer.ts";
import { playgroundModel } from "../src/playground/model.ts";
import { browserPath, launch } from "./support/browser.ts";
import { patience } from "./support/patience.ts";
import { type Playground, servePlayground } from "./support/playground.ts";
import "./support/host.ts";
import { adapterHere, missingGpu } from "./support/webgpu-here.ts";

const numbers = (count: number): Float32Array => Float32Array.from({ length: count }, (_, i) => Math.sin(i) / 4);

/** A chain of small layers, of which most values can be computed again. */
const chain = playgroundModel({
  name: "chain",
  title: "a chain",
  optimizer: sgd({ lr: 0.1 }),
  inputs: [
    { dtype: "f32", shape: [8, 8] },
    { dtype: "f32", shape: [8, 8] },
  ],
  params: () => ({ w: tensor(numbers(64)).reshape([8, 8]) }),
  batch: () => [numbers(64), new Float32Array(64)],
  loss: ({ w }, x, y) =>
    [1, 2, 3, 4]
      .reduce((h) => h.matmul(w).tanh().add(h), x)
      .sub(y)
      .square()
      .mean(),
});

describe.skipIf(missingGpu !== null)("training on a GPU", () => {
  it("has the same bits within a budget that changes midway", async () => {
    const trainer = await GpuTrainer.on(await adapterHere(), chain);
    const reports = [await trainer.step()];
    for (const share of [0.8, 0.001]) {
      await trainer.change(share);
      reports.push(await trainer.step());
    }
    for (const { loss, storedLoss } of reports) expect(loss).toBe(storedLoss);
    expect(reports[2]?.loss).toBeLessThan(at(reports, 0).loss);
    const { step, hash, storedHash } = await trainer.hashes();
    expect([step, hash]).toEqual([3, storedHash]);
    trainer.dispose();
  });
});

const path = browserPath();
const SWIFTSHADER = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];

describe.runIf(path !== null)("the page", () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-playground-gpu-"));
  let served: Playground;

  beforeAll(async () => {
    served = await servePlayground(folder);
  });

  afterAll(() => {
    served?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function opened(browser: Browser) {
    const page = await browser.newPage();
    page.setDefaultTimeout(patience(120_000));
    await page.goto(`${served.url}index.html#model=cnn&run=off&budget=999999999`);
    await page.waitForSelector("html[data-ready]");
    return page;
  }

  it("offers the GPU where there is one", async () => {
    const browser = await launch(path as string, SWIFTSHADER);
    try {
      const page = await opened(browser);
      expect(await page.locator("#engine option").allTextContents()).toEqual([
        "WebAssembly",
        expect.stringMatching(/^WebGPU: ./),
      ]);
    } finally {
      await browser.close();
    }
  });

  // the smaller model: SwiftShader takes long to compile
  it.runIf(process.env.WEBGPU_ALL)("trains on it", async () => {
    const browser = await launch(path as string, SWIFTSHADER);
    try {
      const page = await opened(browser);
      await page.selectOption("#engine", "webgpu");
      await page.fill("#until", "1");
      await page.click("#start");
      await page.waitForSelector('.hashes[data-step="1"]');
      expect(await page.inputValue("#engine")).toBe("webgpu");
      expect(await page.textContent("#hash")).toMatch(/^[0-9a-f]/);
    } finally {
      await browser.close();
    }
  });

  it("offers none where there is none", async () => {
    const browser = await launch(path as string);
    try {
      const page = await opened(browser);
      expect(await page.locator("#engine").count()).toBe(0);
    } finally {
      await browser.close();
    }
  });
});
