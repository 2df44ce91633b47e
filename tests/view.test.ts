/**
 * @file The page in a real browser: every view shows the numbers of a known plan, what is selected in one is selected in
 * all, search and the slider work, keys alone are enough, and a hostile file gets a message and nothing more.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatBytes } from "../src/base/bytes.ts";
import { machineModel } from "../src/cli/machine.ts";
import { pageOf } from "../src/cli/page.ts";
import { planLoaded } from "../src/cli/plan-figures.ts";
import { chain } from "../src/cli/programs/chain.ts";
import { gpt } from "../src/cli/programs/gpt.ts";
import { serveView, type ViewServer } from "../src/cli/view-server.ts";
import { planJson } from "../src/plan/json.ts";
import { movableValues, moveValues } from "../src/plan/move.ts";
import { planProgram } from "../src/plan/plan.ts";
import { memorySpace } from "../src/plan/space.ts";
import type { ViewData } from "../src/view/data.ts";
import { curveOf, curveWithEntries, entryName, entryOf, livePlans } from "../src/view/plans.ts";
import { entriesOfFile } from "../src/view/read-file.ts";
import { browserPath, NO_BROWSER, pictureDistance } from "./support/browser.ts";
import { patience } from "./support/patience.ts";
import { trainingStep } from "./support/plan-programs.ts";
import { viewPages } from "./support/view-pages.ts";

const path = browserPath();
if (path === null) process.stderr.write(`\n*** ${NO_BROWSER} ***\n\n`);

it("there is a browser to test the page with, on a build machine", () => {
  if (process.env.CI === "true") expect(path, NO_BROWSER).not.toBeNull();
});

it("is told the curve point by point, so that whatever else is asked for waits for one point at most", () => {
  const live = livePlans(plans, 4, first);
  const curves = [live.curve()];
  while (!curves.at(-1)!.whole) curves.push(live.curve());
  const lengths = curves.slice(0, -1).map(({ points }) => points.length);
  expect(lengths[0]).toBe(1);
  expect(lengths).toEqual([...lengths].sort((a, b) => a - b));
  expect(live.curve()).toEqual(curveOf(plans, 4).curve);
});

/** Pictures that were looked at, and the plan they show; UPDATE_PICTURES=1 takes them again. */
const PICTURES = fileURLToPath(new URL("fixtures/page", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tidemark-page-"));
const htmlFile = join(folder, "page.html");
const settings = { target: "wasm", memory: {}, machine: machineModel(() => {}) } as const;
const program = chain(6);
const { plans, planned } = planLoaded({ kind: "training", name: program.name, program }, settings);
const { plan } = planned;
const whole = entryOf(plan, {
  label: "as compiled",
  predictedMs: planned.predictedMs,
  budgetBytes: null,
  asks: entryName(0),
});
const first = new Map([[entryName(0), plan]]);
const base: ViewData = {
  ...{ version: 1, title: program.name, entries: [whole], first: 0, second: null, curve: null, live: true },
};

describe.runIf(path !== null)("the page", () => {
  const pages = viewPages(path as string);
  const { open, text, figure, shows, mapLabel, find } = pages;
  let server: ViewServer;
  let script: string;
  const hash = async (): Promise<string> => new URL(pages.page.url()).hash;

  beforeAll(async () => {
    script = await pages.script();
    const { curve, entries, named } = curveWithEntries(plans, 4, 1, { strategies: ["sqrt", "selective"] });
    const inFile = { ...base, entries: [whole, ...entries], curve, live: false };
    writeFileSync(htmlFile, pageOf(inFile, new Map([...first, ...named]), script));
    server = await serveView(pageOf(base, new Map(), script), livePlans(plans, 4, first), 0);
  });

  afterAll(() => {
    server?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it("opens from disk and shows the plan's numbers in every view", async () => {
    await open(pathToFileURL(htmlFile).href);
    expect(await figure("arena")).toBe(formatBytes(plan.height));
    expect(await figure("most live")).toBe(formatBytes(plan.bound.bytes));
    expect(await figure("steps")).toBe(String(plan.program.steps.length));
    expect(await mapLabel()).toContain(
      `${plan.problem.buffers.length} buffers over ${plan.program.steps.length + 1} steps`,
    );
    const chart = await pages.page.getAttribute("canvas.chart", "aria-label");
    expect(chart).toContain(`at most ${formatBytes(plan.bound.bytes)} at step ${plan.bound.step}`);
    expect(await pages.page.locator(".curve .point").count()).toBeGreaterThan(2);
    const first = planJson(plan).steps[0]!;
    expect(await text("#step-0 .code")).toContain(first.text);
    // What is drawn is not the background alone: each kind of the legend has its colour on the map.
    const colours = await pages.page.evaluate<number[]>(`(() => {
      const { width, height } = document.querySelector("canvas.map");
      const { data } = document.querySelector("canvas.map").getContext("2d").getImageData(0, 0, width, height);
      return [...new Set(new Uint32Array(data.buffer))];
    })()`);
    expect(colours).toContain(0xffb27200); // persistent, 0xAABBGGRR
    expect(colours).toContain(0xff009fe6); // kept for backward
    expect(colours).toContain(0xffe3dfdc); // the strip of the forward pass
  });

  it("selects in all views what is selected in one", async () => {
    await open(pathToFileURL(htmlFile).href);
    const { values, steps } = planJson(plan);
    const step = Math.floor(steps.length / 2);
    const value = values[steps[step]!.writes[0]!]!;
    await pages.page.locator(".program").evaluate((list, row) => {
      list.scrollTop = row * 24 - 60;
    }, step);
    await pages.page.click(`#step-${step}`);
    await pages.page.waitForSelector(`#step-${step}.selected`);
    expect(await text(".story h3")).toContain(value.name);
    expect(await mapLabel()).toContain(formatBytes(plan.problem.buffers[value.buffer]!.bytes));
    const story = await text(".story");
    expect(story).toContain(`b${value.buffer}, 0x${value.offset.toString(16)}`);
    expect(story).toContain(value.type);
    // On to what it reads, by the story's own links.
    const read = values[steps[step]!.reads[0]!]!;
    await pages.page.click(`.story dd .link:text-is("${read.name}")`);
    await pages.page.locator(".story h3").getByText(read.name).waitFor();
  });

  it("selects the rectangle under the pointer, and moves and zooms the plane", async () => {
    await open(pathToFileURL(htmlFile).href);
    const box = (await pages.page.locator("canvas.map").boundingBox())!;
    // Persistent buffers are one band below the plane, above the strip of phases; a click there unfolds them.
    await pages.page.mouse.click(box.x + box.width / 2, box.y + box.height - 44);
    await expect.poll(hash).toBe("#v1&persistent=each");
    // Now the lowest rectangle is persistent and always there: just above the strip.
    await pages.page.mouse.click(box.x + box.width / 2, box.y + box.height - 44);
    await pages.page.waitForSelector(".story h3");
    expect(await text(".story h3 small")).toBe("persistent");
    const before = await pages.page.locator("canvas.map").screenshot();
    await pages.page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await pages.page.mouse.wheel(0, -300);
    await expect.poll(async () => before.equals(await pages.page.locator("canvas.map").screenshot())).toBe(false);
  });

  it("shows memory spaces on top of each other, and copies with both of their steps", async () => {
    const training = trainingStep(3);
    const saved = movableValues(training).filter(({ name }) => name === "h0");
    const spaces = { device: memorySpace(64, { name: "device" }), host: memorySpace(256, { name: "host" }) };
    const moved = planProgram(moveValues(training, saved, spaces));
    const file = join(folder, "spaces.html");
    const entries = [entryOf(moved, { label: "moved", predictedMs: 1, budgetBytes: null, asks: entryName(0) })];
    const data = { ...base, entries, curve: null, live: false };
    writeFileSync(file, pageOf(data, new Map([[entryName(0), moved]]), script));
    await open(pathToFileURL(file).href);
    expect(await figure("arena")).toBe(formatBytes(moved.height));
    expect(await figure("host")).toBe(formatBytes(moved.others[0]!.height));
    const used = `${formatBytes(moved.height)} of device, ${formatBytes(moved.others[0]!.height)} of host`;
    expect(await mapLabel()).toContain(used);
    await find("h0_host");
    const story = await text(".story");
    expect(story).toContain("host 0x0–0x800");
    expect(story).toContain("It is in host, which holds 2 KiB at most at once.");
    expect(story).toMatch(/queue1waited for by\d+ wait/);
    // Above the arena is the host: its only rectangle is under the pointer at the top of what is drawn.
    const box = (await pages.page.locator("canvas.map").boundingBox())!;
    await pages.page.keyboard.press("Escape");
    await pages.page.mouse.click(box.x + box.width / 2, box.y + 30);
    await pages.page.locator(".story h3").getByText("h0_host").waitFor();
  });

  it("finds values by name", async () => {
    await open(pathToFileURL(htmlFile).href);
    await pages.page.keyboard.press("/");
    await pages.page.keyboard.type("params");
    await pages.page.waitForSelector(".hit");
    const expected = planJson(plan).values.filter((v) => v.name.includes("params")).length;
    expect(await text(".results p")).toBe(`${expected} matches`);
    await pages.page.keyboard.press("Enter");
    await pages.page.waitForSelector(".story h3");
    expect(await text(".story h3")).toContain("params");
  });

  it("finds values by the parts of the program that made them, and by operations", async () => {
    const { planned: model } = planLoaded({ kind: "training", name: gpt.name, program: gpt }, settings);
    const about = { label: "gpt", predictedMs: null, budgetBytes: null, asks: null };
    const file = join(folder, "gpt.html");
    writeFileSync(file, pageOf({ ...base, entries: [entryOf(model.plan, about)], live: false }, new Map(), script));
    await open(pathToFileURL(file).href);
    const names = planJson(model.plan).values.map(({ name }) => name);
    const attention = names.filter((name) => name.includes("attention"));
    expect(attention.length).toBeGreaterThan(90);
    await pages.page.fill("input[type=search]", "attention");
    expect(await text(".results p")).toBe(`${attention.length} matches`);
    await find("block 0 attention qkv");
    expect(await text(".story h3")).toContain("block0.attention.qkv");
    expect(await text(".story dl")).toContain("block0.attention.layerNorm");
    await find("block0 matmul qkv");
    expect(await text(".story h3")).toMatch(/block0\.attention\.qkv/);
  });

  it("shows the plan of the budget at hand when the slider moves, in a file", async () => {
    await open(pathToFileURL(htmlFile).href);
    const least = Math.min(...curveWithEntries(plans, 4, 0).curve.points.map((p) => p.arenaBytes));
    await pages.page.focus("#budget");
    await pages.page.keyboard.press("Home");
    await shows("arena", formatBytes(least));
    expect(Number(await figure("recomputed"))).toBeGreaterThan(0);
    expect(await text(".legend")).toContain("recomputed");
    expect(await text(".sentence b")).toMatch(/ instead of .*: .* less, for .* more time\.$/);
    await pages.page.keyboard.press("End");
    await shows("arena", formatBytes(plan.height));
    const smallest = `A budget can go down to ${formatBytes(least)}.`;
    const plain = `${formatBytes(plan.height)} with everything stored: nothing is recomputed.`;
    expect(await text(".sentence")).toBe(`${plain} ${smallest}`);
    // The menu chooses among the same plans, and the slider goes with it.
    await pages.page.selectOption('select[aria-label="plan"]', { index: 4 });
    await shows("arena", formatBytes(least));
    await expect.poll(() => pages.page.getAttribute("#budget", "data-bytes")).toBe(`${least}`);
    await pages.page.selectOption('select[aria-label="plan"]', { index: 1 });
    await expect.poll(() => pages.page.getAttribute("#budget", "data-bytes")).toBe(`${plan.height}`);
  });

  it("draws the plans of other strategies, equal ones once, with a legend", async () => {
    await open(pathToFileURL(htmlFile).href);
    expect(await pages.page.locator(".strategies li").allTextContents()).toEqual([
      ...["auto", "sqrt", "selective", "no other plan beats these"],
    ]);
    const titles = await pages.page.locator(".curve .point title").allTextContents();
    expect(new Set(titles).size).toBe(titles.length);
    const found = (name: string): number => titles.filter((title) => title.split(":")[0]?.includes(name)).length;
    expect([found("auto"), found("sqrt"), found("selective")].every((n) => n > 0)).toBe(true);
    // everything stored is found by several, and drawn once
    expect(titles.filter((title) => title.includes(`: ${formatBytes(plan.height)}, `))).toHaveLength(1);
    expect(titles.filter((title) => title.includes("no other plan beats it")).length).toBeGreaterThan(1);
    await pages.page.hover(".strategies li:nth-child(2)");
    const faint = await pages.page.locator(".curve .point.faint").count();
    expect(faint).toBe(titles.length - found("sqrt"));
  });

  it("has its thumb and its mark in place while the curve is computed, and says how far that is", async () => {
    const live = livePlans(plans, 4, first);
    const partial = live.curve();
    const budget = Math.round(plan.height * 0.72);
    expect(budget).toBeLessThan(Math.min(...partial.points.map((p) => p.arenaBytes)));
    const chosen = plans.choose({ budgetBytes: budget });
    const about = { label: "as asked", predictedMs: chosen.predictedMs, budgetBytes: budget, asks: null };
    const data = { ...base, entries: [entryOf(chosen.result.plan, about)] };
    let asked = 0;
    const answers = {
      ...live,
      curve: () => (asked++ === 0 ? partial : new Promise<never>(() => {})),
    };
    const slow = await serveView(pageOf(data, new Map(), script), answers, 0);
    await open(slow.url);
    await pages.page.waitForSelector(".curve[aria-busy=true] .point");
    expect(await text('section[aria-label="time against memory"] p')).toBe(
      "1 of 4 plans of the curve so far; computing the next budget …",
    );
    const { floorBytes } = partial;
    const thumb = Number(await pages.page.inputValue("#budget"));
    expect(thumb).toBe(Math.round(((budget - floorBytes) / (plan.height - floorBytes)) * 1000));
    const inside = await pages.page.evaluate<boolean>(`["here", "budget", "handle"].every((name) => {
      const [mark, all] = [document.querySelector(".curve ." + name), document.querySelector(".curve")];
      const [a, b] = [mark.getBoundingClientRect(), all.getBoundingClientRect()];
      return a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;
    })`);
    expect(inside).toBe(true);
    await pages.page.focus("#budget");
    await pages.page.keyboard.press("ArrowLeft");
    await expect.poll(async () => Number(await pages.page.getAttribute("#budget", "data-bytes"))).toBeLessThan(budget);
    await expect.poll(() => text(".budget-text")).not.toContain("planning");
    await pages.page.close();
    slow.close();
  });

  it("plans for the very budget that the slider is at, from the server", async () => {
    await open(server.url);
    await pages.page.waitForSelector(".curve[aria-busy=false] .point");
    const { curve } = curveWithEntries(plans, 4, 0);
    const least = Math.min(...curve.points.map((p) => p.arenaBytes));
    await pages.page.focus("#budget");
    await pages.page.evaluate(`(() => {
      const slider = document.querySelector("#budget");
      slider.value = "437";
      slider.dispatchEvent(new Event("input", { bubbles: true }));
    })()`);
    const budget = Math.round(least + ((plan.height - least) * 437) / 1000);
    const chosen = plans.choose({ budgetBytes: budget });
    await shows("arena", formatBytes(chosen.arenaBytes));
    expect(await figure("budget")).toBe(formatBytes(budget));
    expect(await figure("predicted")).toBe(`${chosen.predictedMs.toFixed(2)} ms`);
  });

  it.each(["the server", "a file"])(
    "has reasons for what is selected, of the first plan and of later ones, in %s",
    async (where) => {
      await open(where === "a file" ? pathToFileURL(htmlFile).href : server.url);
      const { values } = planJson(plan, { stories: true });
      const name = values[values.length - 1]!.name;
      await find(name);
      await pages.page.locator(".reasons li").first().waitFor();
      const shown = (): Promise<string[]> => pages.page.locator(".reasons li").allTextContents();
      expect(await shown()).toEqual(values[values.length - 1]!.story!.slice(1));
      await pages.page.waitForSelector(".curve[aria-busy=false] .point");
      await pages.page.focus("#budget");
      await pages.page.keyboard.press("Home");
      const { points } = curveWithEntries(plans, 4, 0).curve;
      const least = plans.choose({ budgetBytes: Math.min(...points.map((p) => p.arenaBytes)) });
      await shows("arena", formatBytes(least.arenaBytes));
      await find(name);
      const now = planJson(least.result.plan, { stories: true }).values.find((v) => v.name === name)!;
      await expect.poll(shown, { timeout: patience(20_000) }).toEqual(now.story!.slice(1));
    },
  );

  it("compares two plans: numbers, values, and the same selection in both maps", async () => {
    await open(pathToFileURL(htmlFile).href);
    await pages.page.selectOption('select[aria-label="compare with"]', { index: 4 });
    await pages.page.waitForSelector(".compare table.numbers");
    expect(await pages.page.locator("canvas.map").count()).toBe(2);
    const rows = await text(".compare table.numbers");
    expect(rows).toContain(formatBytes(plan.height));
    expect(await text(".differences .count")).toMatch(/^\d+ values differ, \d+ are the same/);
    const changes = await pages.page.locator(".differences li span").allTextContents();
    expect(changes.some((words) => /^recomputed in B at step \d+: .* for \d+ steps?$/.test(words))).toBe(true);
    expect(changes.some((words) => / live for \d+ steps in A, for \d+ in B$/.test(words))).toBe(true);
    const letters = pages.page.locator('[data-figure="arena"] b');
    expect(await letters.evaluateAll((all) => all.map((b) => b.getAttribute("data-letter")))).toEqual(["A", "B"]);
    expect(await text(".sides")).toMatch(/^A: .*, filled by kindB: .*, outline$/);
    expect(await text(".sentence b")).toMatch(/^B takes .* instead of .* of A: /);
    await find("params");
    const labels = await pages.page
      .locator("canvas.map")
      .evaluateAll((all) => all.map((c) => c.getAttribute("aria-label")));
    expect(labels[0]).toContain("persistent");
    expect(labels[1]).toContain(labels[0]!.split(" · ")[0]!);
  });

  it("has its state in its address: a copied link opens the same view", async () => {
    await open(pathToFileURL(htmlFile).href);
    await pages.page.selectOption('select[aria-label="compare with"]', { index: 4 });
    await pages.page.focus("#budget");
    await pages.page.keyboard.press("Home");
    await find("params");
    const least = (await pages.page.getAttribute("#budget", "data-bytes")) ?? "";
    await pages.page.focus("canvas.map");
    await pages.page.keyboard.press("+");
    await pages.page.click("#copy-link");
    await pages.page.locator("#copy-link").getByText("copied", { exact: true }).waitFor();
    const link = pages.page.url();
    const { name } = planJson(plan).values.find((v) => v.name.includes("params"))!;
    expect(link).toMatch(/#v1&.*with=3&value=.*&zoom=0\.15,0\.85,\d+,\d+&search=params$/);
    expect(link).toContain(`value=${name}`);
    const [label, numbers] = [await mapLabel(), await text(".compare table.numbers")];
    await pages.page.close();
    await open(link);
    await pages.page.waitForSelector(".story h3");
    expect(await text(".story h3")).toContain(name);
    expect(await mapLabel()).toBe(label);
    expect(await text(".compare table.numbers")).toBe(numbers);
    expect(await pages.page.inputValue("input[type=search]")).toBe("params");
    expect(await pages.page.getAttribute("#budget", "data-bytes")).toBe(least);
    await expect.poll(() => pages.page.url()).toBe(link);
  });

  it("saves a picture of the map", async () => {
    await open(pathToFileURL(htmlFile).href, 360, true);
    const [download] = await Promise.all([pages.page.waitForEvent("download"), pages.page.click("#picture")]);
    expect(download.suggestedFilename()).toBe(`${program.name}.png`);
    const file = readFileSync(await download.path());
    // A PNG of its own size, not that of the screen: width and height are the first numbers of its header.
    expect(file.subarray(1, 4).toString()).toBe("PNG");
    expect(file.readUInt32BE(16)).toBe(2400);
    expect(file.readUInt32BE(20)).toBeGreaterThan(1300);
  });

  it("goes back and forward", async () => {
    await open(server.url);
    await pages.page.focus(".program");
    await pages.page.keyboard.press("Home");
    await expect.poll(hash).toMatch(/^#v1&value=/);
    const first = await text(".story h3");
    await pages.page.keyboard.press("End");
    await expect.poll(() => text(".story h3")).not.toBe(first);
    await expect.poll(hash).toMatch(/^#v1&value=(?!.*none)/);
    const last = await text(".story h3");
    await expect.poll(() => pages.page.evaluate("history.length")).toBe(4);
    await pages.page.goBack();
    await expect.poll(() => text(".story h3")).toBe(first);
    await pages.page.goBack();
    await pages.page.waitForSelector(".story h3", { state: "detached" });
    await pages.page.goForward();
    await pages.page.goForward();
    await expect.poll(() => text(".story h3")).toBe(last);
  });

  it("plans for the budget in its address, and selects there", async () => {
    const budget = Math.round(plan.height * 0.7);
    const chosen = plans.choose({ budgetBytes: budget });
    const { name } = planJson(chosen.result.plan).values.at(-1)!;
    await open(`${server.url}#v1&budget=${budget}&value=${encodeURIComponent(name)}`);
    await shows("arena", formatBytes(chosen.arenaBytes));
    await pages.page.locator(".story h3").getByText(name).waitFor();
    expect(await pages.page.locator(".message").isHidden()).toBe(true);
  });

  it.each([
    ["#v1&value=%E0%A4", "The address was ignored: value is damaged."],
    ["#v7&value=x", "The address was ignored: it is of version 7"],
    ["#v1&value=nothing&zoom=3,2,1", "the part of the map is damaged; the value nothing is not in this plan."],
  ])("says what is wrong with the address %s, and opens", async (wrong, said) => {
    await open(`${pathToFileURL(htmlFile).href}${wrong}`);
    await pages.page.locator(".message").getByText(said).waitFor();
    expect(await figure("arena")).toBe(formatBytes(plan.height));
  });

  it("works with keys alone", async () => {
    await open(pathToFileURL(htmlFile).href);
    const seen = new Set<string>();
    for (let i = 0; i < 24; i++) {
      await pages.page.keyboard.press("Tab");
      seen.add(
        await pages.page.evaluate("[document.activeElement.tagName, document.activeElement.className].join('.')"),
      );
    }
    for (const stop of ["CANVAS.plane map", "CANVAS.plane chart", "DIV.program", "INPUT.", "SELECT."])
      expect(seen).toContain(stop);
    await pages.page.focus("canvas.map");
    await pages.page.keyboard.press("]");
    await pages.page.waitForSelector(".story h3");
    const first = await mapLabel();
    await pages.page.keyboard.press("]");
    await expect.poll(mapLabel).not.toBe(first);
    await pages.page.keyboard.press("Escape");
    await pages.page.waitForSelector(".story h3", { state: "detached" });
    await pages.page.focus(".program");
    await pages.page.keyboard.press("End");
    await pages.page.waitForSelector(`#step-${plan.program.steps.length - 1}.selected`);
    // What is chosen from a list that goes away does not take the focus with it.
    const focused = (): Promise<string> => pages.page.evaluate("document.activeElement.tagName");
    await pages.page.focus(".story .link");
    await pages.page.keyboard.press("Enter");
    await expect.poll(focused).toBe("H3");
    await pages.page.keyboard.press("/");
    await pages.page.keyboard.type("params");
    // At once: the list is there with the last letter, not a frame later.
    await pages.page.keyboard.press("Tab");
    await pages.page.keyboard.press("Enter");
    await pages.page.locator(".story h3").getByText("params").waitFor();
    expect(await focused()).toBe("INPUT");
    await pages.page.focus("canvas.map");
    await pages.page.keyboard.press("?");
    await pages.page.waitForSelector("dialog[open]");
  });

  it("fits any screen from 360 pixels on, in light and dark", async () => {
    await open(pathToFileURL(htmlFile).href, 360, true);
    expect(await pages.page.getAttribute("html", "data-theme")).toBe("dark");
    await find("params");
    for (const width of [360, 760, 1000, 2400]) {
      await pages.page.setViewportSize({ width, height: 800 });
      expect(await pages.page.evaluate("document.documentElement.scrollWidth"), `${width}`).toBeLessThanOrEqual(width);
    }
    await pages.page.click("#theme");
    await expect.poll(() => pages.page.getAttribute("html", "data-theme")).toBe("light");
  });

  it.each([
    ["wide-light", 1300, false],
    ["phone-dark", 360, true],
  ])("looks as it did when it was last looked at: %s", async (name, width, dark) => {
    // A plan that is kept: how programs are planned may change, how a plan is drawn should not by itself.
    const entry = entriesOfFile("plan.json", readFileSync(join(PICTURES, "plan.json")))[0]!;
    const file = join(folder, `${name}.html`);
    writeFileSync(file, pageOf({ ...base, title: "kept plan", entries: [entry], live: false }, new Map(), script));
    await open(pathToFileURL(file).href, width, dark);
    const kept = join(PICTURES, `${name}.png`);
    const now = await pages.page.screenshot();
    if (process.env.UPDATE_PICTURES) writeFileSync(kept, now);
    const { mean, most } = await pictureDistance(pages.page, readFileSync(kept), now);
    expect(mean, "mean difference of blocks, of 255").toBeLessThan(3);
    expect(most, "largest difference of a block").toBeLessThan(64);
  });
});
