/** @file Files given to the page in a real browser: plans, hostile plans, and snapshots of PyTorch. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatBytes } from "../src/base/bytes.ts";
import { machineModel } from "../src/cli/machine.ts";
import { pageOf } from "../src/cli/page.ts";
import { planLoaded } from "../src/cli/plan-figures.ts";
import { chain } from "../src/cli/programs/chain.ts";
import { planJson } from "../src/plan/json.ts";
import { entryOf } from "../src/view/plans.ts";
import { browserPath } from "./support/browser.ts";
import { viewPages } from "./support/view-pages.ts";

const path = browserPath();

describe.runIf(path !== null)("the page, given a file", () => {
  const pages = viewPages(path as string);
  const { open, text, figure, shows, find } = pages;
  const folder = mkdtempSync(join(tmpdir(), "tidemark-files-"));
  const htmlFile = join(folder, "page.html");
  const settings = { target: "wasm", memory: {}, machine: machineModel(() => {}) } as const;
  const program = chain(6);
  const { planned } = planLoaded({ kind: "training", name: program.name, program }, settings);
  const { plan } = planned;

  beforeAll(async () => {
    const entry = entryOf(plan, { label: "as compiled", predictedMs: null, budgetBytes: null, asks: null });
    const data = {
      version: 1,
      title: program.name,
      entries: [entry],
      first: 0,
      second: null,
      curve: null,
      live: false,
    } as const;
    writeFileSync(htmlFile, pageOf(data, new Map(), await pages.script()));
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const give = async (name: string, content: string | Buffer, as = "open"): Promise<void> => {
    const buffer = typeof content === "string" ? Buffer.from(content) : content;
    await pages.page.setInputFiles(`input[aria-label="${as}"]`, { name, mimeType: "application/octet-stream", buffer });
  };

  it("with markup in its names shows the markup as text", async () => {
    await open(pathToFileURL(htmlFile).href);
    const evil = "<img src=x onerror=\"document.title='owned'\">";
    const json = JSON.parse(JSON.stringify(planJson(plan, { stories: true })));
    json.name = evil;
    for (const value of json.values) [value.name, value.type, value.story] = [evil, evil, [evil, evil]];
    for (const step of json.steps) [step.text, step.where, step.phase] = [evil, evil, evil];
    await give(`${evil}.json`, JSON.stringify(json));
    await pages.page.locator("#step-0 .code").getByText("<img").first().waitFor();
    await pages.page.click("#step-0");
    await pages.page.waitForSelector(".story h3");
    await find("<img");
    expect(await pages.page.locator("img").count()).toBe(0);
    expect(await pages.page.title()).toBe(`${program.name} · Tidemark`);
  });

  it("that is cut off, newer, without measure or circular says so and stays as it was", async () => {
    const good = JSON.stringify(planJson(plan));
    const spoilt = [
      [good.slice(0, good.length / 2), "not JSON"],
      [good.replace('"version":1', '"version":9'), "version 9, this reads up to"],
      [good.replace(/"bytes":\d+/, '"bytes":1e300'), "is not a whole number"],
      [good.replaceAll('"over":null', '"over":0'), "leads back to itself"],
    ] as const;
    await open(pathToFileURL(htmlFile).href);
    for (const [file, message] of spoilt) {
      await give("plan.json", file);
      await pages.page.locator(".message").getByText(message).waitFor();
      expect(await figure("arena")).toBe(formatBytes(plan.height));
    }
  });

  const snapshot = (name: string): Buffer =>
    readFileSync(new URL(`fixtures/snapshots/${name}.pickle`, import.meta.url));

  it("of PyTorch's allocator shows it", async () => {
    await open(pathToFileURL(htmlFile).href);
    await give("small.pickle", snapshot("small"));
    await pages.page.waitForSelector('[data-figure="most live"]');
    expect(await figure("address range")).toBe("6 MiB");
    expect(await figure("buffers")).toBe("5");
    expect(await text("#step-0 .code")).toContain("alloc 1 MiB");
    expect(await text(".sentence")).toMatch(/^At most .* live at once, in 6 MiB of addresses\.$/);
    // A file that was opened here is not in a link, which says so.
    await pages.page.click("#step-0");
    await pages.page.click("#copy-link");
    await pages.page.locator(".message").getByText("without the plans that were opened here").waitFor();
    expect(new URL(pages.page.url()).hash).toBe("");
    await give("segments.pickle", snapshot("segments"));
    await shows("most live", "24 MiB");
  });

  it("and another one of PyTorch's shows what differs, by the line that asked for memory", async () => {
    await open(pathToFileURL(htmlFile).href);
    await give("traced.pickle", snapshot("traced"));
    await shows("most live", "140 MiB");
    await give("checkpointed.pickle", snapshot("checkpointed"), "compare file");
    await pages.page.waitForSelector(".compare table.numbers");
    expect(await text(".compare table.numbers")).toContain("-32 MiB");
    expect(await text(".compare table.lines")).toContain("train.py:23 in recompute");
    const rows = await pages.page.locator(".differences li").allTextContents();
    expect(rows.filter((row) => /only in B: .* events?, train\.py:23 in recompute/.test(row))).toHaveLength(4);
    const lives = rows.flatMap((row) => {
      const [, a, b] = /live for (\d+) events in A, for (\d+) in B, train\.py:21 in step/.exec(row) ?? [];
      return a === undefined ? [] : [{ a: Number(a), b: Number(b) }];
    });
    expect(lives.filter(({ a, b }) => b < a)).toHaveLength(4);
    expect(await pages.page.locator("canvas.map").count()).toBe(2);
    // What is in the second alone is found too, after what is in both.
    await pages.page.fill("input[type=search]", "recompute:23");
    await pages.page.locator(".hit").getByText("only in B").first().click();
    await pages.page.locator(".story dd").getByText("train.py:23 in recompute").waitFor();
    expect(await pages.page.getAttribute('[data-side="1"] canvas', "aria-label")).toContain("recompute:23");
    expect(await pages.page.locator(".reasons").count()).toBe(0);
  });
});
