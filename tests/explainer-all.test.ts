/**
 * @file The whole explainer: every figure drawn, in light and dark, wide and on a phone, with the tables open; sliders and keys; Debian's
 * Firefox. With SCREENSHOTS=FOLDER every page is kept as a picture. Part of `npm run test:explainer`.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { leastAdvances } from "../src/loops/binomial.ts";
import { browserPath, launch } from "./support/browser.ts";
import {
  accessibilityProblems,
  buildPages,
  openPage,
  type PageLook,
  PHONE,
  SLUGS,
  shownNumbers,
  WIDE,
} from "./support/explainer.ts";
import { FIGURES } from "./support/explainer-figures.ts";
import { firefoxPath, launchFirefox } from "./support/firefox.ts";
import { patience } from "./support/patience.ts";

const path = browserPath();
const firefox = firefoxPath();
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const pictures = process.env.SCREENSHOTS ?? null;

const LOOKS: Readonly<Record<string, PageLook>> = {
  "wide-light": WIDE,
  "wide-dark": { ...WIDE, dark: true },
  "phone-light": { ...PHONE, dark: false },
  "phone-dark": PHONE,
};

/** Goes through the page, so that figures which wait to be seen are drawn. */
async function lookAround(page: Page): Promise<void> {
  const code = `(async () => {
    for (const figure of document.querySelectorAll("figure")) {
      figure.scrollIntoView();
      await new Promise((done) => setTimeout(done, 100));
    }
    scrollTo(0, 0);
  })()`;
  await page.evaluate(code);
  await page.waitForFunction(`document.querySelectorAll(".plot:empty").length === 0`);
}

describe.runIf(path !== null)("the whole explainer", () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-explainer-"));
  const address = (slug: string): string => pathToFileURL(join(folder, "explainer", `${slug}.html`)).href;
  let browser: Browser;
  let page: Page;
  let problems: readonly string[] = [];

  const open = async (slug: string, look = WIDE): Promise<void> => {
    ({ page, problems } = await openPage(browser, address(slug), look));
  };
  const shows = (name: string, value: number): Promise<unknown> =>
    expect.poll(async () => (await shownNumbers(page)).get(name), { timeout: patience(60_000) }).toBeCloseTo(value, 9);

  beforeAll(async () => {
    await buildPages(folder);
    browser = await launch(path as string);
    if (pictures) mkdirSync(pictures, { recursive: true });
  });

  afterEach(async () => {
    await page?.close();
    expect(problems).toEqual([]);
  });

  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it.each(SLUGS.flatMap((slug) => Object.keys(LOOKS).map((look) => [slug, look] as const)))(
    "%s, %s",
    async (slug, look) => {
      await open(slug, LOOKS[look]);
      await lookAround(page);
      await page.evaluate(`for (const part of document.querySelectorAll("details")) part.open = true`);
      expect(await accessibilityProblems(page, axe)).toEqual([]);
      // nothing sticks out to the side
      const [inside, all] = await page.evaluate<[number, number]>(
        "[document.documentElement.clientWidth, document.documentElement.scrollWidth]",
      );
      expect(all).toBeLessThanOrEqual(inside);
      const closed = `for (const part of document.querySelectorAll("details.numbers")) part.open = false`;
      await page.evaluate(closed);
      if (pictures) await page.screenshot({ path: join(pictures, `${slug}-${look}.png`), fullPage: true });
    },
  );

  it("says at every slider where it stands", async () => {
    for (const slug of SLUGS) {
      await open(slug);
      const code = `[...document.querySelectorAll("input[type=range]")].map((e) => [e.labels.length + (e.ariaLabel ? 1 : 0), e.ariaValueText])`;
      for (const [labels, text] of await page.evaluate<[number, string | null][]>(code)) {
        expect(labels, slug).toBeGreaterThan(0);
        expect(text, slug).toBeTruthy();
      }
      await page.close();
    }
  });

  it("follows the arrow keys: a schedule of one step more", async () => {
    await open("schedules");
    await page.focus("#steps");
    await page.keyboard.press("ArrowRight");
    await shows("recomputed", leastAdvances(36, 4));
    await page.focus("#slots");
    await page.keyboard.press("ArrowRight");
    await shows("recomputed", leastAdvances(36, 5));
  });

  it("evaluates the program where the sliders stand", async () => {
    await open("tape");
    await page.focus("#a");
    await page.keyboard.press("Home");
    await shows("f", Math.sin(-3 * 0.7) + 9);
    await shows("db", Math.cos(-3 * 0.7) * -3);
  });

  it("packs the arena by keys, and by the planner's addresses", async () => {
    await open("packing");
    const before = (await shownNumbers(page)).get("puzzle.height") ?? 0;
    const bound = (await shownNumbers(page)).get("puzzle.bound") ?? 0;
    expect(before).toBeGreaterThan(bound);
    const pieces = page.locator(".piece");
    for (let i = 0; i < (await pieces.count()); i++) {
      await pieces.nth(i).focus();
      await page.keyboard.press("Enter");
    }
    const fallen = (await shownNumbers(page)).get("puzzle.height") ?? 0;
    expect(fallen).toBeLessThan(before);
    expect(fallen).toBeGreaterThanOrEqual(bound);
    await pieces.first().focus();
    await page.keyboard.press("ArrowUp");
    expect(await page.textContent("#puzzle .says")).toContain("overlap");
    await page.click("#planned");
    await shows("puzzle.height", bound);
  });

  it("plans what is typed, and tells an error", async () => {
    await open("your-function");
    const before = (await shownNumbers(page)).get("own.arena") ?? 0;
    await page.selectOption("#example", { label: "attention" });
    await expect
      .poll(async () => (await shownNumbers(page)).get("own.arena"), { timeout: patience(60_000) })
      .not.toBe(before);
    await page.click(".cm-content");
    await page.keyboard.press("Control+End");
    await page.keyboard.type("\nexport const loss = 3 +;");
    await page.locator("#complaint").getByText("SyntaxError").waitFor({ state: "attached" });
  });

  it("plays nothing where the system asks for reduced motion", async () => {
    await open("schedules");
    await page.emulateMedia({ reducedMotion: "reduce" });
    await page.focus("#move");
    await page.keyboard.press("Home");
    await page.getByRole("button", { name: "Play" }).click();
    expect(await page.inputValue("#move")).toBe(await page.getAttribute("#move", "max"));
  });

  it.runIf(firefox !== null)("shows the same numbers in Firefox, without errors", async () => {
    const other = await launchFirefox(firefox as string);
    try {
      for (const slug of SLUGS) {
        await other.open(address(slug));
        const waited = `new Promise((done) => { const look = () => document.documentElement.matches("[data-ready],[data-failed]") ? done(true) : setTimeout(look, 50); look(); })`;
        await other.evaluate(waited);
        const numbers = `[...document.querySelectorAll("[data-number]")].map((e) => [e.dataset.number, Number(e.dataset.value)])`;
        const shown = new Map(await other.evaluate<[string, number][]>(numbers));
        expect(shown.size, slug).toBeGreaterThan(0);
        for (const [name, value] of Object.entries(FIGURES[slug]?.() ?? {})) {
          expect(shown.get(name), `${slug}: ${name}`).toBeCloseTo(value, 9);
        }
        expect(other.problems(), slug).toEqual([]);
      }
    } finally {
      other.close();
    }
  });
});
