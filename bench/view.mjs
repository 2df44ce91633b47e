/**
 * @file The speed of the page: time to the first picture and time of a frame while zooming and panning, for 1, 10 and
 * 100 thousand rectangles, in a real browser without a graphics processor. Needs a build and Chromium (CHROMIUM, or on
 * the path).
 *
 *   node bench/view.mjs [RECTANGLES …]
 *
 * `first` is from the start of the navigation to the first drawing, with reading and unpacking of the data. `work` is
 * the time of the page's scripts per frame; a 60 Hz screen leaves 16.7 ms for it and for the browser's painting, and
 * `frame` is from one frame to the next. Every frame zooms or moves, so nothing is drawn from what was there before.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { pageOf } from "../dist/bench/insides.js";

const SIZES = process.argv.slice(2).map(Number);
const FRAMES = 120;

/** Lanes of buffers one after the other, with gaps, from a seed. */
function picture(count) {
  let state = 1;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const lanes = Math.round(Math.sqrt(count) * 0.8);
  const rects = { start: [], end: [], from: [], bytes: [], kind: [] };
  const steps = 4 * Math.ceil(count / lanes) + 8;
  for (let i = 0; i < count; i++) {
    const lane = i % lanes;
    const start = 4 * Math.floor(i / lanes) + Math.floor(random() * 2);
    rects.start.push(start);
    rects.end.push(start + 1 + Math.floor(random() * 3));
    rects.from.push(lane * 4096);
    rects.bytes.push(512 + 64 * Math.floor(random() * 55));
    rects.kind.push(Math.floor(random() * 9));
  }
  const writes = Array.from({ length: steps }, () => []);
  const values = rects.start.map((start, rect) => {
    writes[start].push(rect);
    return { name: `v${rect}`, type: "f32[128]", rect, over: null, written: start, story: [] };
  });
  const step = { phase: "forward", where: null, reads: [], scratch: [], alias: false, again: false, bodies: [] };
  return {
    ...{ name: `${count} rectangles`, source: "plan", heightBytes: lanes * 4096, budgetBytes: null, alignment: 64 },
    ...{ boundBytes: lanes * 4096, boundStep: 0, strategy: "made up", columns: steps + 1, rects, values },
    steps: writes.map((made) => ({ ...step, text: "f()", writes: made })),
  };
}

const browserPath = () => {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const folders = (process.env.PATH ?? "").split(delimiter);
  return folders.map((folder) => join(folder, "chromium")).find((path) => existsSync(path));
};

/** Runs in the page: zooms in and out and moves, one change a frame. */
const FRAME_TIMES = `(async () => {
  const canvas = document.querySelector("canvas.map");
  canvas.focus();
  const box = canvas.getBoundingClientRect();
  const at = { clientX: box.left + box.width * 0.6, clientY: box.top + box.height * 0.4 };
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const nativeFrame = window.requestAnimationFrame.bind(window);
  const work = [];
  window.requestAnimationFrame = (does) => nativeFrame((now) => {
    const started = performance.now();
    does(now);
    work.push(performance.now() - started);
  });
  const frames = [];
  let before = performance.now();
  for (let i = 0; i < ${FRAMES}; i++) {
    const deltaY = i % 40 < 20 ? -25 : 25;
    if (i % 3 === 2) canvas.dispatchEvent(new KeyboardEvent("keydown", { key: i % 2 ? "ArrowLeft" : "ArrowRight", bubbles: true }));
    else canvas.dispatchEvent(new WheelEvent("wheel", { deltaY, ...at, bubbles: true, cancelable: true }));
    await new Promise((resolve) => nativeFrame(resolve));
    frames.push(performance.now() - before);
    before = performance.now();
  }
  return { frames, work, first: performance.getEntriesByName("first-picture")[0].startTime };
})()`;

const quantile = (times, q) => [...times].sort((a, b) => a - b)[Math.floor(q * (times.length - 1))];

const folder = mkdtempSync(join(tmpdir(), "tidemark-view-"));
const browser = await chromium.launch({
  executablePath: browserPath(),
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});
console.log("rectangles  first ms  work ms p50  p95  frame ms p50  p95");
for (const count of SIZES.length > 0 ? SIZES : [1000, 10_000, 100_000]) {
  const entry = { label: "made up", budgetBytes: null, predictedMs: null, asks: null, picture: picture(count) };
  const data = { version: 1, title: "bench", entries: [entry], first: 0, second: null, curve: null, live: false };
  const file = join(folder, `${count}.html`);
  writeFileSync(file, pageOf(data));
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  await page.goto(pathToFileURL(file).href);
  await page.waitForSelector("html[data-ready]");
  await page.waitForTimeout(500);
  const { frames, work, first } = await page.evaluate(FRAME_TIMES);
  const cells = [first, quantile(work, 0.5), quantile(work, 0.95), quantile(frames, 0.5), quantile(frames, 0.95)];
  console.log(`${count}`.padStart(10), ...cells.map((ms, i) => ms.toFixed(1).padStart([8, 11, 5, 12, 5][i] + 1)));
  await page.close();
}
await browser.close();
rmSync(folder, { recursive: true, force: true });
