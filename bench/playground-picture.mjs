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
const page = await browser.newPage({ viewport: { width: 1180, height: 980 }, colorScheme: "light" });
await page.goto(url);
await page.waitForSelector("html[data-ready]");
// The whole curve has nine points; until then it grows.
await page.locator(".curve .point").nth(7).waitFor({ timeout: 120_000 });

/** Trains to a step. */
async function trainUntil(step) {
  await page.fill("#until", `${step}`);
  await page.click("#start");
  await page.waitForSelector(`.hashes[data-step="${step}"]`, { timeout: 120_000 });
  await page.locator("#start").getByText("train", { exact: true }).waitFor();
}

/** Moves the budget and waits for its plan. */
async function slide(share) {
  const before = await page.textContent('[data-figure="budget"] b');
  await page.locator("#budget").fill(`${share}`);
  await page.waitForFunction((old) => document.querySelector('[data-figure="budget"] b').textContent !== old, before, {
    timeout: 60_000,
  });
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
