/** @file The page of `tidemark scale --html` in a browser: columns and the line of memory are as high as they say. */
import { expect, it } from "vitest";
import { type DeviceColumn, devicesHtml } from "../src/view/devices-page.ts";
import { browserPath, launch, NO_BROWSER } from "./support/browser.ts";

const path = browserPath();
if (path === null) {
  if (process.env.CI) throw new Error(NO_BROWSER);
  console.warn(NO_BROWSER);
}

it.skipIf(path === null)("columns and the line of memory have one scale", async () => {
  const column = (name: string, bytes: number): DeviceColumn => ({
    ...{ name, notes: [], bytes, terms: { parameters: bytes / 4, activations: (3 * bytes) / 4 } },
  });
  const sizes = [84.7, 79.4, 18.6].map((x) => x * 2 ** 30);
  const devices = sizes.map((bytes, i) => column(`stage ${i}`, bytes));
  const memoryBytes = 74.5 * 2 ** 30;
  const browser = await launch(path as string);
  try {
    const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
    const errors: string[] = [];
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    await page.setContent(devicesHtml({ title: "page", lines: [], memoryBytes, devices, ways: [] }));
    const heights = await page.evaluate(`(() => {
      const floor = document.querySelector(".bars").getBoundingClientRect().bottom - 1;
      const up = (y) => floor - y;
      const tops = [...document.querySelectorAll(".bar")].map((bar) => up(bar.querySelector("i").getBoundingClientRect().top));
      const line = document.querySelector(".memory").getBoundingClientRect();
      const label = document.querySelector(".bar b").getBoundingClientRect();
      const frame = document.querySelector(".wide").getBoundingClientRect();
      return { tops, line: up(line.bottom), isShown: label.top >= frame.top };
    })()`);
    const { tops, line, isShown } = heights as { tops: number[]; line: number; isShown: boolean };
    const most = tops[0] as number;
    expect(most).toBeGreaterThan(250);
    tops.forEach((top, i) => {
      expect(Math.abs(top - (most * (sizes[i] as number)) / (sizes[0] as number))).toBeLessThan(1);
    });
    expect(Math.abs(line - (most * memoryBytes) / (sizes[0] as number))).toBeLessThan(1);
    expect([isShown, errors]).toEqual([true, []]);
  } finally {
    await browser.close();
  }
});
