/**
 * @file Pages of the site in browsers, opened from the folder: none throws or asks for anything else, the search works from the
 * keyboard, and axe-core finds nothing wrong on narrow and wide screens, light and dark. Pictures of them are kept in dist-site-pictures/, or in SCREENSHOTS=FOLDER.
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, launch, NO_BROWSER } from "../support/browser.ts";
import { firefoxPath, launchFirefox } from "../support/firefox.ts";
import { patience } from "../support/patience.ts";
import { ROOT } from "../support/project.ts";
import { builtSite, CLOSELY } from "./built.ts";

const NO_FIREFOX =
  "no Firefox found: apt-get install firefox-esr, or set FIREFOX to one. Its tests of the site did not run.";

const PICTURES = process.env.SCREENSHOTS ?? join(ROOT, "dist-site-pictures");
mkdirSync(PICTURES, { recursive: true });

const site = builtSite();
const chromium = browserPath();
const firefox = firefoxPath();
const urlOf = (page: string): string => pathToFileURL(join(site.folder, page)).href;

/** All guides and modules, and every twentieth of the others: what they consist of is the same. */
const opened = site.pages.filter(
  (page, i) => /^(index|documents\/[^.]*\.html|modules|plans|explainer|playground)/.test(page) || i % 20 === 0,
);

/** Pages that compute say when they have. */
const computes = (page: string): boolean => /^(playground\/|explainer\/[^/]*$)/.test(page);
const READY = 'document.documentElement.matches("[data-ready]")';

for (const [path, message] of [
  [chromium, NO_BROWSER],
  [firefox, NO_FIREFOX],
] as const) {
  if (path === null) console.error(message);
  it.runIf(path === null && Boolean(process.env.CI))("has its browsers on a build machine", () => expect.fail(message));
}

/** Entries of the navigation that have others below them are links within the heading that opens them: typedoc's, and both work by Tab. */
const AXE = 'axe.run({ resultTypes: ["violations"], rules: { "nested-interactive": { enabled: false } } })';

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** What a page of Chromium says that it should not, and what it loads from outside of the site. */
function watch(page: Page): string[] {
  const said: string[] = [];
  page.on("pageerror", (error) => said.push(`${page.url()}: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") said.push(`${page.url()}: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(urlOf("")))
      said.push(`${page.url()} loads ${request.url()}`);
  });
  return said;
}

describe.runIf(chromium !== null)("in Chromium", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch(chromium as string);
  });
  afterAll(() => browser.close());

  it("no page throws or loads anything from elsewhere", async () => {
    const page = await browser.newPage();
    const said = watch(page);
    for (const path of opened) {
      await page.goto(urlOf(path));
      if (computes(path)) await page.waitForFunction(READY, null, { timeout: patience(60_000) });
    }
    expect(opened.length).toBeGreaterThan(100);
    expect(said).toEqual([]);
    await page.close();
  });

  it("the search works without a server, from the keyboard", async () => {
    const page = await browser.newPage();
    const said = watch(page);
    await page.goto(urlOf("documents/Quickstart.html"));
    await page.keyboard.press("/");
    await page.locator("#tsd-search-input").fill("softmax");
    await page.locator("#tsd-search-results li a").first().waitFor();
    expect(await page.locator("#tsd-search-results").textContent()).toContain("softmax");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL(/softmax/i);
    expect(said).toEqual([]);
    await page.close();
  });

  it("the focus moves through a page in the order of its parts, and can be seen", async () => {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await page.goto(urlOf("functions/tidemark.softmax.html"));
    await page.locator("#tsd-nav-container a.current").waitFor();
    const order: string[] = [];
    for (let i = 0; i < 400; i++) {
      await page.keyboard.press("Tab");
      const part = await page.evaluate(`(() => {
        const focused = document.activeElement;
        if (!focused || focused === document.body) return null;
        if (getComputedStyle(focused).outlineStyle === "none") return "unseen " + focused.outerHTML.slice(0, 80);
        return ["header", ".col-content", ".page-menu", ".site-menu"].find((part) => focused.closest(part)) ?? "elsewhere";
      })()`);
      if (part === null) break;
      if (order.at(-1) !== part) order.push(String(part));
    }
    expect(order.filter((part) => part.startsWith("unseen"))).toEqual([]);
    expect(new Set(order).size, order.join(" ")).toBe(order.length);
    expect(order).toContain(".col-content");
    await page.close();
  });

  const axe = join(ROOT, "site", "node_modules", "axe-core", "axe.min.js");
  for (const [width, colorScheme] of [
    [390, "light"],
    [390, "dark"],
    [1440, "light"],
    [1440, "dark"],
  ] as const) {
    it(`axe-core finds nothing wrong at ${width} pixels, ${colorScheme}`, async () => {
      expect(existsSync(axe)).toBe(true);
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
      const wrong: string[] = [];
      for (const path of CLOSELY) {
        await page.goto(urlOf(path));
        if (computes(path)) await page.waitForFunction(READY, null, { timeout: patience(60_000) });
        await page.evaluate(readFileSync(axe, "utf8"));
        const { violations } = await page.evaluate<{ violations: Violation[] }>(AXE);
        const serious = violations.filter(({ impact }) => /serious|critical/.test(impact));
        wrong.push(
          ...serious.map(({ id, nodes }) => `${path}: ${id}: ${nodes.length} × ${nodes[0]?.html.slice(0, 160)}`),
        );
        const wider = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
        if (wider > 0) wrong.push(`${path}: ${wider} pixels wider than the screen`);
        const name = `${path.replace(/\W+/g, "-")}-${width}-${colorScheme}.png`;
        await page.screenshot({ path: join(PICTURES, name) });
      }
      expect(wrong).toEqual([]);
      await page.close();
    });
  }
});

describe.runIf(firefox !== null)("in Firefox", () => {
  it("no page throws, and pages are drawn", async () => {
    const browser = await launchFirefox(firefox as string);
    try {
      // a page that throws is seen as one
      await browser.open("data:text/html,<script>throw new Error('on purpose')</script>");
      await expect.poll(() => browser.problems().join()).toContain("on purpose");
      for (const page of new Set([
        ...CLOSELY,
        ...opened.filter((page) => /^(plans|explainer|playground)/.test(page)),
      ])) {
        await browser.open(urlOf(page));
        if (computes(page))
          await expect.poll(() => browser.evaluate(READY), { timeout: patience(60_000), message: page }).toBe(true);
        expect(await browser.evaluate("document.body.innerText.length"), page).toBeGreaterThan(50);
        expect(browser.problems(), page).toEqual([]);
      }
    } finally {
      browser.close();
    }
  });
});
