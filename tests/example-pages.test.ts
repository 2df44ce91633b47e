/**
 * @file The examples that are pages, in a real browser on the built package: nothing is planned on the page's thread, losses fall,
 * a checkpoint that the page saves is read in Node and goes on there with the numbers that the page would have had.
 */
import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fileInfo, load, type Tensor } from "../src/api/index.ts";
import type { LoraParams } from "../src/nn/index.ts";
import { browserPath, launch, NO_BROWSER } from "./support/browser.ts";
import { patience } from "./support/patience.ts";
import { hasModels, MODELS } from "./support/recorded-models.ts";

const path = browserPath();
if (path === null) {
  if (process.env.CI) throw new Error(NO_BROWSER);
  console.warn(NO_BROWSER);
}

/** The built package, which the examples import. */
const built = (name: string): Promise<typeof import("../src/api/index.ts")> =>
  import(new URL(`../dist/${name}/index.js`, import.meta.url).href);
const GPT2 = new URL("../examples/lora/gpt2.mjs", import.meta.url).href;

interface Served {
  readonly server: Server;
  readonly address: string;
}

describe.runIf(path !== null)("the examples in a page", () => {
  let served: Served;
  let browser: Browser;
  const failures: string[] = [];

  const open = async (name: string): Promise<Page> => {
    const page = await (await browser.newContext()).newPage();
    page.setDefaultTimeout(patience(60_000));
    page.on("pageerror", (error) => failures.push(error.message));
    // counts plans that are made on the page's own thread
    await page.route("**/dist/shared/tidemark-plan.js", async (route) => {
      const text = await (await route.fetch()).text();
      const counting = text.replace(
        /^(function planUnlimited\(.*\{)$/m,
        "$1 globalThis.planned = (globalThis.planned ?? 0) + 1;",
      );
      if (counting === text) failures.push("planUnlimited is not where plans are made any more");
      await route.fulfill({ contentType: "text/javascript", body: counting });
    });
    await page.goto(`${served.address}/examples/${name}/`);
    await page.waitForFunction("globalThis.example !== undefined");
    return page;
  };

  beforeAll(async () => {
    const { serve } = await import(new URL("../examples/serve.mjs", import.meta.url).href);
    [served, browser] = await Promise.all([serve() as Promise<Served>, launch(path as string)]);
  }, patience(60_000));

  afterAll(async () => {
    served?.server.close();
    await browser?.close();
  });

  it(
    "train a GPT under a budget, save it, and go on from the file with the same bits",
    async () => {
      const page = await open("char-gpt");
      await page.fill("#steps", "12");
      const losses = await page.evaluate<number[]>("example.begin()");
      expect(losses).toHaveLength(12);
      expect(losses.at(-1)).toBeLessThan(losses[0] as number);
      expect(await page.textContent("#result")).toMatch(/^[\d.]+ MiB instead of [\d.]+ MiB, for \d+ % more time/);
      expect(await page.textContent("#sample")).toHaveLength(220);
      const half = await page.evaluate<number[]>("example.begin(5)");
      const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save")]);
      const bytes = readFileSync(await download.path());
      await page.setInputFiles("#file", { name: "half.safetensors", mimeType: "", buffer: bytes });
      const rest = await page.evaluate<number[]>("example.begin()");
      expect([...half, ...rest]).toEqual(losses);
      const saved = load(bytes) as Readonly<Record<string, Tensor>>;
      expect(saved.step?.item()).toBe(5);
      expect(fileInfo(bytes).metadata.format).toBe("char-gpt");
      expect([await page.evaluate("globalThis.planned"), failures]).toEqual([undefined, []]);
    },
    patience(120_000),
  );

  it(
    "find a medium through 400 time steps under a budget",
    async () => {
      const page = await open("wave-inversion");
      await page.fill("#iterations", "6");
      const misfits = await page.evaluate<number[]>("example.begin()");
      expect(misfits).toHaveLength(6);
      expect(misfits.at(-1)).toBeLessThan(misfits[0] as number);
      expect(await page.textContent("#result")).toMatch(/^[\d.]+ MiB instead of [\d.]+ MiB, for \d+ % more time/);
      expect([await page.evaluate("globalThis.planned"), failures]).toEqual([undefined, []]);
    },
    patience(120_000),
  );

  it(
    "recognise a digit with weights from PyTorch",
    async () => {
      const page = await open("foreign-weights");
      const one = await page.evaluate<number[]>("example.stroke([[14, 5], [14, 22]])");
      await page.click("#clear");
      const seven = await page.evaluate<number[]>("example.stroke([[8, 7], [19, 7], [12, 22]])");
      expect([one, seven].map((chances) => chances.indexOf(Math.max(...chances)))).toEqual([1, 7]);
      expect([await page.evaluate("globalThis.planned"), failures]).toEqual([undefined, []]);
    },
    patience(60_000),
  );

  it.runIf(hasModels)(
    "fine-tune GPT-2 by adapters from a file that the user chooses, and download the adapter",
    async () => {
      const page = await open("lora");
      await page.setInputFiles("#file", join(MODELS, "gpt2/model.safetensors"));
      await page.waitForSelector("#start:not([disabled])");
      expect(await page.textContent("#status")).toBe("2 blocks of 64, vocabulary 256");
      await page.fill("#heads", "4");
      await page.fill("#text", "the same few words again and again, ".repeat(20));
      await page.fill("#steps", "30");
      const { losses, arenaBytes } = await page.evaluate<{ losses: number[]; arenaBytes: number }>("example.begin()");
      expect(losses).toHaveLength(30);
      expect(losses.at(-1)).toBeLessThan((losses[0] as number) - 0.3);
      expect(await page.textContent("#status")).toMatch(/^30 steps, loss [\d.]+ → [\d.]+$/);
      expect(await page.textContent("#result")).toMatch(/^[\d.]+ KiB for everything, (5[5-9]|6\d) % less than the/);
      const [saved] = await Promise.all([page.waitForEvent("download"), page.click("#save")]);
      const [settings] = await Promise.all([page.waitForEvent("download"), page.click("#config")]);
      // what was downloaded is read here, and merged into the model
      const { load: read, plan, spec } = await built("api");
      const params = read(readFileSync(join(MODELS, "gpt2/model.safetensors")));
      const { adapting, batches, tokensOf, wholeTraining } = await import(GPT2);
      const { tuned } = adapting(params, { heads: 4 });
      const adapter = tuned.load(readFileSync(await saved.path()));
      expect(JSON.parse(readFileSync(await settings.path(), "utf8"))).toMatchObject({ r: 8, lora_alpha: 16 });
      expect(Object.values(adapter as LoraParams).every(({ b }) => b.abs().max().item() > 0)).toBe(true);
      const [x] = batches(tokensOf("one and the same text, again and again"), { batch: 1, time: 16 })(0);
      const merged = tuned.merge(params, adapter);
      const [before, after, whole] = [
        tuned.apply(params, tuned.init(0), x),
        tuned.apply(params, adapter, x),
        tuned.apply(merged, tuned.init(0), x),
      ] as [Tensor, Tensor, Tensor];
      expect(after.sub(whole).abs().max().item()).toBeLessThan(1e-5);
      expect(after.sub(before).abs().max().item()).toBeGreaterThan(1e-2);
      const all = wholeTraining(params, { heads: 4 });
      const ids = spec([2, 16], "i32");
      const most = plan<readonly object[]>(all.step, { donate: [0], target: "wasm" })(all.init(), ids, ids).arenaBytes;
      expect(arenaBytes).toBeLessThan(0.45 * most);
      expect([await page.evaluate("globalThis.planned"), failures]).toEqual([undefined, []]);
    },
    patience(120_000),
  );
});
