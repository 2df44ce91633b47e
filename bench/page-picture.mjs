/**
 * @file The picture of the README: the page of `gpt` under a budget, with its largest recomputed value selected. Needs a
 * build and Chromium (CHROMIUM, or on the path as `chromium`).
 *
 *   node bench/page-picture.mjs [FILE.png]
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { VIEW_KINDS } from "../dist/bench/insides.js";

const file = process.argv[2] ?? fileURLToPath(new URL("../docs/figures/page.png", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tidemark-picture-"));
const html = join(folder, "page.html");
const tidemark = fileURLToPath(new URL("../bin/tidemark.js", import.meta.url));
execFileSync(process.execPath, [tidemark, "view", "gpt", "--html", html, "--budget", "26MiB"], { stdio: "inherit" });

const json = /<script type="application\/json" id="data">(.*)<\/script>/.exec(readFileSync(html, "utf8"))[1];
const { values, rects } = JSON.parse(json).entries[0].picture;
const recomputed = values.filter(({ rect }) => VIEW_KINDS[rects.kind[rect]] === "recomputed");
const area = ({ rect }) => rects.bytes[rect] * (rects.end[rect] - rects.start[rect]);
const largest = recomputed.reduce((a, b) => (area(b) > area(a) ? b : a));

const executablePath = process.env.CHROMIUM ?? execFileSync("which", ["chromium"], { encoding: "utf8" }).trim();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const page = await browser.newPage({ viewport: { width: 1440, height: 940 }, colorScheme: "light" });
await page.goto(pathToFileURL(html).href);
await page.waitForSelector("html[data-ready]");
await page.fill("input[type=search]", largest.name);
await page.keyboard.press("Enter");
await page.waitForSelector(".story h3");
await page.fill("input[type=search]", "");
await page.locator("input[type=search]").blur();
await page.screenshot({ path: file });
await browser.close();
rmSync(folder, { recursive: true, force: true });
