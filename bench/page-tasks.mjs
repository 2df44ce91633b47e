/**
 * @file How long the pages of the examples keep their thread busy at a time, from the click to the first steps: the longest task, as
 * the browser reports it, and where the time went. Needs a build and Chromium (CHROMIUM, or on the path as `chromium`).
 *
 *   node bench/page-tasks.mjs
 */
import { execFileSync } from "node:child_process";
import { chromium } from "playwright-core";
import { serve } from "../examples/serve.mjs";

const PAGES = [
  ["char-gpt", { "#steps": "12" }],
  ["wave-inversion", { "#iterations": "5" }],
];

/** In the page: tasks of more than 50 ms while the example runs. */
const MEASURE = `(async () => {
  const tasks = [];
  const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration)));
  observer.observe({ type: "longtask" });
  const started = performance.now();
  await example.begin();
  await new Promise((resolve) => setTimeout(resolve, 100));
  return { tasks, ms: performance.now() - started };
})()`;

const executablePath = process.env.CHROMIUM ?? execFileSync("which", ["chromium"], { encoding: "utf8" }).trim();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const { server, address } = await serve();
for (const [name, fields] of PAGES) {
  const page = await browser.newPage();
  await page.goto(`${address}/examples/${name}/`);
  await page.waitForFunction("globalThis.example !== undefined");
  for (const [field, value] of Object.entries(fields)) await page.fill(field, value);
  const { tasks, ms } = await page.evaluate(MEASURE);
  const longest = Math.max(0, ...tasks);
  console.log(
    `${name}: ${ms.toFixed(0)} ms in all, ${tasks.length} tasks over 50 ms, the longest ${longest.toFixed(0)} ms`,
  );
  console.log(`  ${await page.textContent("#result")}`);
}
await browser.close();
server.close();
