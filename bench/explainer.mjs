/**
 * @file Time to the first figure of the explainer's pages, opened from files in a real browser without a graphics processor: from the
 * start of the navigation to the first drawing with its numbers. Medians of new pages. Needs `npm run build` and Chromium (CHROMIUM, or
 * on the path).
 *
 *   node bench/explainer.mjs [RUNS]          3 by default
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { buildExplainer, pageBytes } from "../scripts/site-explainer.mjs";

const RUNS = Number(process.argv[2] ?? 3);

const browserPath = () => {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const folders = (process.env.PATH ?? "").split(delimiter);
  return folders.map((folder) => join(folder, "chromium")).find((path) => existsSync(path));
};

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** Milliseconds to the first figure, and until all figures have been drawn. */
async function timesOf(browser, address) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(address);
  await page.waitForSelector("html[data-ready]", { state: "attached", timeout: 120_000 });
  const [first, all] = await page.evaluate(
    "[performance.getEntriesByName('first-figure')[0].startTime, performance.now()]",
  );
  await page.close();
  return { first, all };
}

const folder = mkdtempSync(join(tmpdir(), "tidemark-explainer-"));
const browser = await chromium.launch({
  executablePath: browserPath(),
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});
try {
  const sizes = pageBytes(await buildExplainer(folder, { home: null }));
  console.log(`${availableParallelism()} cores, load ${loadavg()[0].toFixed(1)}, ${browser.version()}\n`);
  console.log("| page | first figure, ms | all figures, ms | kB gzip |\n| --- | ---: | ---: | ---: |");
  for (const { slug, bytes } of sizes) {
    const times = [];
    for (let i = 0; i < RUNS; i++) {
      times.push(await timesOf(browser, pathToFileURL(join(folder, "explainer", `${slug}.html`)).href));
    }
    const row = [slug, ...["first", "all"].map((key) => Math.round(median(times.map((one) => one[key]))))];
    console.log(`| ${[...row, Math.round(bytes / 1000)].join(" | ")} |`);
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
