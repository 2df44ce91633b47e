/**
 * @file The pictures of the README and of docs/view.md: the page of `gpt` under a budget, with its largest recomputed
 * value selected, on a wide screen and on a phone, light and dark. Needs a build and Chromium (CHROMIUM, or on the path as
 * `chromium`).
 *
 *   node bench/page-picture.mjs [FOLDER] [PAGE.html]
 *
 * PAGE.html is a page that `tidemark view gpt --budget 26MiB --html` wrote before; without it, it is written first.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { VIEW_KINDS } from "../dist/bench/insides.js";

const PICTURES = [
  ["page.png", 1440, 1000, "light"],
  ["page-dark.png", 1440, 1000, "dark"],
  ["page-phone.png", 390, 844, "light"],
  ["page-phone-dark.png", 390, 844, "dark"],
];

const to = process.argv[2] ?? fileURLToPath(new URL("../docs/figures", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tidemark-picture-"));
const html = process.argv[3] ?? join(folder, "page.html");
const tidemark = fileURLToPath(new URL("../bin/tidemark.js", import.meta.url));
if (!process.argv[3]) {
  execFileSync(process.execPath, [tidemark, "view", "gpt", "--html", html, "--budget", "26MiB"], { stdio: "inherit" });
}

const json = /<script type="application\/json" id="data">(.*)<\/script>/.exec(readFileSync(html, "utf8"))[1];
const { values, rects } = JSON.parse(json).entries[0].picture;
const recomputed = values.filter(({ rect }) => VIEW_KINDS[rects.kind[rect]] === "recomputed");
const area = ({ rect }) => rects.bytes[rect] * (rects.end[rect] - rects.start[rect]);
const largest = recomputed.reduce((a, b) => (area(b) > area(a) ? b : a));

const executablePath = process.env.CHROMIUM ?? execFileSync("which", ["chromium"], { encoding: "utf8" }).trim();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const hash = `#v1&value=${encodeURIComponent(largest.name)}`;
for (const [name, width, height, colorScheme] of PICTURES) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme });
  await page.goto(`${pathToFileURL(html).href}${hash}`);
  await page.waitForSelector("html[data-ready]");
  await page.waitForSelector(".story h3");
  // The reasons are unpacked and drawn after the selection.
  await page.waitForSelector(".reasons li");
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
  await page.screenshot({ path: join(to, name) });
  await page.close();
}
await browser.close();
rmSync(folder, { recursive: true, force: true });
