/**
 * @file The picture of the playground in the README: the transformer in training, its budget moved twice on the way. Needs
 * Chromium (CHROMIUM, or on the path as `chromium`).
 *
 *   node bench/playground-picture.mjs [FILE.png]
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const file = process.argv[2] ?? fileURLToPath(new URL("../docs/figures/playground.png", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tidemark-picture-"));
const script = fileURLToPath(new URL("../scripts/playground.mjs", import.meta.url));
const server = spawn(process.execPath, [script, "--port", "0", "--out", folder], {
  stdio: ["ignore", "pipe", "ignore"],
});
const url = await new Promise((resolve) => server.stdout.once("data", (text) => resolve(String(text).trim())));

const executablePath = process.env.CHROMIUM ?? execFileSync("which", ["chromium"], { encoding: "utf8" }).trim();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const page = await browser.newPage({ viewport: { width: 1180, height: 1060 }, colorScheme: "light" });
page.setDefaultTimeout(300_000);
// Everything stored first, and nothing runs before the curve is there: planning would slow down the steps.
await page.goto(`${url}#v1&run=off&budget=999999999`);
await page.waitForSelector("html[data-ready]");
await page.waitForSelector('.curve[aria-busy="false"]');
await page.locator(".budget-text ~ .quiet").filter({ hasText: /^$/ }).first().waitFor({ state: "attached" });

/** Trains to a step. */
async function trainUntil(step) {
  await page.fill("#until", `${step}`);
  await page.click("#start");
  await page.waitForSelector(`.hashes[data-step="${step}"]`);
  await page.locator("#start").getByText("train", { exact: true }).waitFor();
}

/** Moves the budget and waits for its plan. */
async function slide(share) {
  const before = await page.textContent('[data-figure="budget"] b');
  await page.locator("#budget").fill(`${share}`);
  await page.waitForFunction((old) => document.querySelector('[data-figure="budget"] b').textContent !== old, before);
}

await trainUntil(60);
await slide(450);
await trainUntil(120);
await slide(0);
await trainUntil(180);
await page.locator("#budget").blur();
await page.screenshot({ path: file });
await browser.close();
server.kill("SIGTERM");
rmSync(folder, { recursive: true, force: true });
