/** @file The page's table of what is held for the backward pass, in a real browser, from the page that `tidemark view` writes. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pageOf } from "../src/cli/page.ts";
import type { HeldAccount, HeldBytes, ViewData } from "../src/view/data.ts";
import { entriesOfFile } from "../src/view/read-file.ts";
import { browserPath } from "./support/browser.ts";
import { viewPages } from "./support/view-pages.ts";

const path = browserPath();
const folder = mkdtempSync(join(tmpdir(), "tidemark-held-"));
const CSV = "id,lower,upper,size,offset\na,0,1,4,0\n";

const bytes = ([overloadBytes, namedSavesBytes, tapeBytes, plannedBytes]: readonly number[]): HeldBytes =>
  ({ overloadBytes, namedSavesBytes, tapeBytes, plannedBytes }) as HeldBytes;
const [totals, small] = [bytes([4096, 2048, 1024, 512]), bytes([8, 4, 2, 1])];
const rows = Array.from({ length: 14 }, (_, i) => ({ ...small, operation: `<b>op${i}</b>`, count: i + 1 }));

describe.runIf(path !== null)("the page of a program that takes gradients", () => {
  const pages = viewPages(path as string);
  let script: string;

  beforeAll(async () => {
    script = await pages.script();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function linesOf(held?: HeldAccount): Promise<readonly string[]> {
    const entries = entriesOfFile("a.csv", new TextEncoder().encode(CSV));
    const data: ViewData = { version: 1, title: "a", entries, first: 0, second: null, curve: null, live: false };
    const file = join(folder, "page.html");
    writeFileSync(file, pageOf({ ...data, ...(held ? { held } : {}) }, new Map(), script));
    await pages.open(pathToFileURL(file).href);
    return pages.page.locator("table.held tbody tr").allInnerTexts();
  }

  it("shows what four ways of differentiating hold: totals, backward passes, operations", async () => {
    const lines = await linesOf({ ...totals, rows, passes: [small, totals] });
    expect(lines[0]).toMatch(/^all\s+4 KiB\s+2 KiB\s+1 KiB\s+512 B$/);
    const names = lines.slice(1, 4).map((line) => line.split("\t")[0]);
    expect(names).toEqual(["backward pass 1", "backward pass 2", "<b>op0</b> × 1"]);
    expect(lines.at(-1)).toMatch(/^2 other operations\s+16 B\s+8 B\s+4 B\s+2 B$/);
    expect((await linesOf({ ...totals, rows: [], passes: [totals] })).length).toBe(1);
    expect(await linesOf()).toEqual([]);
  });
});
