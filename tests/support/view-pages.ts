/** @file Pages of `tidemark view` in a browser, for tests: one browser for a file of tests, one page at a time. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { launch } from "./browser.ts";
import { bundlePage } from "./page-bundle.ts";

export interface ViewPages {
  /** The page that was opened last. */
  readonly page: Page;
  /** The script of the page. */
  script(): Promise<string>;
  open(url: string, width?: number, dark?: boolean): Promise<void>;
  text(selector: string): Promise<string>;
  /** The number of a tile. */
  figure(name: string): Promise<string>;
  /** Waits until a number is shown. */
  shows(name: string, value: string): Promise<void>;
  mapLabel(): Promise<string>;
  /** Shows and selects what the search finds first. */
  find(name: string): Promise<void>;
}

/** To be called in a `describe`: after every test the page is closed, and errors in it fail the test. */
export function viewPages(path: string): ViewPages {
  const problems: string[] = [];
  let browser: Browser;
  let page: Page;
  beforeAll(async () => {
    browser = await launch(path);
  });
  afterEach(async () => {
    await page?.close();
    expect(problems.splice(0)).toEqual([]);
  });
  afterAll(() => browser?.close());
  const text = async (selector: string): Promise<string> => (await page.textContent(selector)) ?? "";
  return {
    get page() {
      return page;
    },
    async script() {
      const folder = mkdtempSync(join(tmpdir(), "tidemark-bundle-"));
      const bundle = join(folder, "page.js");
      await bundlePage(bundle);
      const code = readFileSync(bundle, "utf8");
      rmSync(folder, { recursive: true, force: true });
      return code;
    },
    async open(url, width = 1300, dark = false) {
      page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: dark ? "dark" : "light" });
      page.on("pageerror", (error) => problems.push(error.message));
      page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
      await page.goto(url);
      await page.waitForSelector("html[data-ready]");
    },
    text,
    figure: (name) => text(`[data-figure="${name}"] b`),
    shows: (name, value) => page.locator(`[data-figure="${name}"] b`).getByText(value, { exact: true }).waitFor(),
    mapLabel: async () => (await page.getAttribute("canvas.map", "aria-label")) ?? "",
    async find(name) {
      await page.fill("input[type=search]", name);
      await page.keyboard.press("Enter");
      await page.waitForSelector(".story h3");
    },
  };
}
