/** @file The page of devices side by side: columns add up, memory is drawn where it is, and names are text. */
import { expect, it } from "vitest";
import { type DeviceColumn, type DevicesData, devicesHtml } from "./devices-page.ts";

const column = (name: string, terms: Readonly<Record<string, number>>): DeviceColumn => {
  const bytes = Object.values(terms).reduce((sum, x) => sum + x, 0);
  return { name, notes: [`of ${name}`], terms, bytes };
};
const first = column("first", { parameters: 3000, activations: 5000 });
const last = column("last", { parameters: 3000, logits: 1000, buckets: 0 });
const data: DevicesData = { title: "model", lines: ["said"], memoryBytes: null, devices: [first, last], ways: [first] };

/** By bar, the heights of its parts in per cent, from the top. */
const bars = (html: string): readonly (readonly number[])[] =>
  [...html.matchAll(/<div class="bar">.*?<\/div>/g)].map(([bar]) =>
    [...bar.matchAll(/height:([\d.]+)%/g)].map(([, height]) => Number(height)),
  );
const lineOf = (html: string): number => Number(/class="memory" style="bottom:([\d.]+)%/.exec(html)?.[1]);

it("columns are stacks of terms on one scale", () => {
  const html = devicesHtml(data);
  const [a = [], b = []] = bars(html);
  const full = 100 / 1.04;
  expect(a).toEqual([(full * 5) / 8, (full * 3) / 8].map((x) => Number(x.toFixed(3))));
  expect(b).toEqual([(full * 1) / 8, (full * 3) / 8].map((x) => Number(x.toFixed(3))));
  // one way is no choice, and terms of no bytes are not listed
  expect(bars(html)).toHaveLength(2);
  expect(html).not.toContain("buckets");
  expect(bars(devicesHtml({ ...data, ways: [first, last] }))).toHaveLength(4);
});

it("memory is a line where there is room for it, and what does not fit is marked", () => {
  const half = devicesHtml({ ...data, memoryBytes: 4000 });
  expect(lineOf(half)).toBeCloseTo(50 / 1.04, 2);
  expect(half.match(/class="over"/g)).toHaveLength(1);
  expect(lineOf(devicesHtml({ ...data, memoryBytes: 16000 }))).toBeCloseTo(100 / 1.04, 2);
  expect(lineOf(devicesHtml({ ...data, memoryBytes: 1e9 }))).toBeNaN();
});

it("names are text, and nothing runs or is loaded", () => {
  const html = devicesHtml({ ...data, title: "</title><script>", devices: [column("<b onclick=x>", { '"><i': 5 })] });
  expect(html).not.toContain("<script");
  expect(html).not.toContain("<b onclick");
  expect(html).not.toContain('"><i');
  expect(html).toContain("default-src 'none'; style-src");
  expect(html).not.toContain("script-src");
});

it("devices without bytes are columns without parts", () => {
  expect(bars(devicesHtml({ ...data, devices: [column("none", {})] }))).toEqual([[]]);
});
