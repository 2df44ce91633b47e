/**
 * @file The explainer in a real browser, from files: no page throws or asks for anything elsewhere, its numbers are the library's,
 * and names and contrasts are in order. `npm run test:explainer` looks at the rest (explainer-all.test.ts).
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, launch } from "./support/browser.ts";
import { accessibilityProblems, buildPages, openPage, SLUGS, shownNumbers, WIDE } from "./support/explainer.ts";
import { FIGURES } from "./support/explainer-figures.ts";

const path = browserPath();
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What a page may take, in compressed kilobytes. The editor's page has all names of the library and an editor. */
const MOST_KB = 400;
const MOST_KB_WITH_EDITOR = 720;

describe.runIf(path !== null)("the explainer", () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-explainer-"));
  let browser: Browser;
  let sizes: Awaited<ReturnType<typeof buildPages>> = [];

  beforeAll(async () => {
    [browser, sizes] = await Promise.all([launch(path as string), buildPages(folder)]);
  });

  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it("has pages of a few hundred kilobytes", () => {
    for (const { slug, bytes } of sizes) {
      expect(bytes, slug).toBeLessThan(1000 * (slug === "your-function" ? MOST_KB_WITH_EDITOR : MOST_KB));
    }
  });

  it.each(SLUGS)("%s opens from a file, with the library's numbers, names and contrasts", async (slug) => {
    const { page, problems } = await openPage(
      browser,
      pathToFileURL(join(folder, "explainer", `${slug}.html`)).href,
      WIDE,
    );
    try {
      const shown = await shownNumbers(page);
      expect(shown.size).toBeGreaterThan(0);
      for (const [name, value] of Object.entries(FIGURES[slug]?.() ?? {})) {
        expect(shown.get(name), `${slug}: ${name}`).toBeCloseTo(value, Number.isInteger(value) ? 9 : 10);
      }
      expect(await accessibilityProblems(page, axe)).toEqual([]);
      expect(problems).toEqual([]);
    } finally {
      await page.close();
    }
  });
});
