/**
 * @file The playground in a real browser: training in the page ends in the bits of training in Node, whatever the budget and
 * whenever it changes; the editor shows the numbers of what is typed, its mistakes in their lines, and outlives any text.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { formatBytes } from "../src/base/bytes.ts";
import { EXAMPLES } from "../src/playground/examples.ts";
import { MODELS } from "../src/playground/models.ts";
import { Planner, type SentPlan } from "../src/playground/planner.ts";
import { type Sight, Study } from "../src/playground/study.ts";
import { Trainer } from "../src/playground/trainer.ts";
import { browserPath, launch, pictureDistance } from "./support/browser.ts";
import { patience } from "./support/patience.ts";
import { type Playground, servePlayground } from "./support/playground.ts";

const path = browserPath();
const PICTURES = fileURLToPath(new URL("fixtures/page", import.meta.url));
const STEPS = 2;

/** An address that trains nothing by itself, with everything stored. */
const STILL = "run=off&budget=999999999";

interface Opening {
  readonly width?: number;
  readonly dark?: boolean;
  readonly motion?: "reduce";
}

describe.runIf(path !== null)("the playground", () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-playground-"));
  let browser: Browser;
  let served: Playground;
  let page: Page;
  const problems: string[] = [];

  async function open(file: string, { width = 1300, dark = false, motion }: Opening = {}): Promise<void> {
    const looks = { colorScheme: dark ? "dark" : "light", reducedMotion: motion ?? null } as const;
    page = await browser.newPage({ viewport: { width, height: 900 }, ...looks });
    // Planning takes what it takes on a machine with other work to do.
    page.setDefaultTimeout(patience(120_000));
    page.on("pageerror", (error) => problems.push(error.message));
    page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    await page.goto(`${served.url}${file}`);
    await page.waitForSelector("html[data-ready]");
  }

  const text = async (selector: string): Promise<string> => (await page.textContent(selector)) ?? "";
  const shows = (name: string, value: string): Promise<void> =>
    page.locator(`[data-figure="${name}"] b`).getByText(value, { exact: true }).waitFor();
  /** Moves the budget, in thousandths from the smallest to the largest; the bytes that it is then. */
  const slide = async (share: number): Promise<number> => {
    await page.waitForSelector(".curve .point");
    await page.locator("#budget").fill(`${share}`);
    // The field says where it is in the frame after.
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
    const bytes = Number(await page.getAttribute("#budget", "data-bytes"));
    await shows("budget", share === 1000 ? "none" : formatBytes(bytes));
    return bytes;
  };
  const trainUntil = async (step: number): Promise<string> => {
    await page.fill("#until", `${step}`);
    await page.click("#start");
    await page.waitForSelector(`.hashes[data-step="${step}"]`);
    await page.locator("#start").getByText("train", { exact: true }).waitFor();
    return text("#hash");
  };
  /** The state as at the beginning, in a new training. */
  const restart = async (): Promise<void> => {
    await page.click("#reset");
    await shows("step", "0");
  };

  beforeAll(async () => {
    writeFileSync(join(folder, "other.txt"), "mine");
    [served, browser] = await Promise.all([servePlayground(folder), launch(path as string)]);
  });

  afterEach(async () => {
    await page?.close();
    expect(problems.splice(0)).toEqual([]);
  });

  afterAll(async () => {
    served?.close();
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is a few files of which the sizes are said, served to this machine alone", async () => {
    expect(served.sizes).toMatch(/total +\d+ kB +\d+ kB gzip/);
    const status = (headers: Readonly<Record<string, string>>, file: string): Promise<number | undefined> =>
      new Promise((resolve) => get(`${served.url}${file}`, { headers }, (reply) => resolve(reply.resume().statusCode)));
    expect(await status({}, "worker.js")).toBe(200);
    expect(await status({ host: "elsewhere.test" }, "worker.js")).toBe(403);
    expect(await status({}, "../package.json")).toBe(404);
    expect(await status({}, "/[")).toBe(404);
    // The folder may be one with other files: they stay and are not shown to anybody.
    expect(readFileSync(join(folder, "other.txt"), "utf8")).toBe("mine");
    expect(await status({}, "other.txt")).toBe(404);
  });

  it.each(MODELS)(
    "trains the $name to the bits of Node at every budget, also when it changes midway",
    async (model) => {
      const planner = new Planner(model);
      const stored = planner.stored();
      const trainer = new Trainer(model, stored.program);
      const losses = Array.from({ length: STEPS }, () => trainer.step().loss);
      const { hash } = trainer.hashes();

      await open(`#v1&model=${model.name}&${STILL}`);
      await shows("stored arena", formatBytes(stored.program.arenaBytes));
      await shows("budget", "none");
      for (const share of [700, 450]) {
        const bytes = await slide(share);
        const plan = planner.within(bytes) as SentPlan;
        await shows("arena", formatBytes(plan.program.arenaBytes));
        expect(await trainUntil(STEPS)).toBe(hash);
        expect(await text("#stored-hash")).toBe(hash);
        expect(await text('[data-figure="loss"] b')).toBe(losses.at(-1)?.toPrecision(6));
        expect(await page.getAttribute(".losses", "aria-label")).toContain("the same bits as with everything stored");
        expect(Number(await text('[data-figure="recomputed"] b'))).toBeGreaterThan(0);
        await restart();
      }
      await slide(1000);
      await trainUntil(STEPS / 2);
      await slide(450);
      expect(await trainUntil(STEPS)).toBe(hash);
      expect(await page.getAttribute(".losses", "aria-label")).toContain("1 changes of plan");
      expect(await text(".verdict")).toContain("the same bits");
    },
  );

  const steps = async (): Promise<number> => Number(await text('[data-figure="step"] b'));

  it("trains by itself within a budget, and at once on the second visit", async () => {
    await open("");
    await expect.poll(steps, { timeout: patience(30_000) }).toBeGreaterThan(2);
    await page.locator(".sentence").getByText("MiB instead of 7.02: 1.7 times less").waitFor();
    expect(Number(await text('[data-figure="recomputed"] b'))).toBeGreaterThan(0);
    expect(new URL(page.url()).hash).toBe("");
    await page.click("#start");
    await expect.poll(() => new URL(page.url()).hash).toBe("#v1&run=off");
    // The plans are in the browser now.
    const kept = `new Promise((done) => {
      indexedDB.open("tidemark-playground").onsuccess = ({ target: { result } }) => {
        const get = result.transaction("models").objectStore("models").get("transformer");
        get.onsuccess = () => done([...get.result.kept.budgets.keys()]);
      };
    })`;
    await expect.poll(() => page.evaluate(kept)).toEqual([4419494]);
    await page.reload();
    await page.waitForSelector("html[data-ready]");
    await page.locator(".sentence").getByText("1.7 times less").waitFor();
    expect(await steps()).toBe(0);
    await page.click("#once");
    await page.locator(".verdict").getByText("the same bits: 1 losses").waitFor();
  });

  it("shows a still picture of a run where motion is unwanted", async () => {
    await open("#v1&model=cnn", { motion: "reduce" });
    await shows("step", "40");
    expect(await page.getAttribute(".losses", "aria-label")).toContain("the same bits as with everything stored");
    expect(await text("#start")).toBe("train");
    await page.selectOption("#model", "transformer");
    await page.selectOption("#model", "cnn");
    // The last choice counts, whatever was planned in between.
    await page.locator("#about-model").getByText("Convolutional").waitFor();
    await restart();
    expect(await page.getAttribute("canvas.map", "aria-label")).toContain("cnn: ");
    await page.click("#once");
    await shows("step", "1");
    await page.locator(".verdict").getByText("the same bits: 1 losses").waitFor();
  });

  /** What the editor has, and what Node makes of a text. */
  const type = async (code: string): Promise<void> => {
    await page.focus("#code");
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText(code);
  };
  const sightOf = (code: string): Sight => new Study().look(code) as Sight;
  const [first, second] = [EXAMPLES[0]!.text, EXAMPLES[2]!.text];

  it("shows graph, gradient, plan and map of what is typed, with the numbers of Node", async () => {
    await open("edit.html");
    const shown = async ({ graph, gradient, entry }: Sight): Promise<void> => {
      await shows("arena", formatBytes(entry.picture.heightBytes));
      await shows("most live", formatBytes(entry.picture.boundBytes));
      await shows("steps", `${entry.picture.steps.length}`);
      expect(await text("#graph-text")).toBe(gradient);
      await page.click("#tab-graph");
      expect(await text("#graph-text")).toBe(graph);
      await page.click("#tab-gradient");
      const label = await page.getAttribute("canvas.map", "aria-label");
      expect(label).toContain(`${entry.picture.rects.start.length} buffers over ${entry.picture.columns} steps`);
    };
    await shown(sightOf(first));
    await type(first.replace("spec([128, 64])", "spec([256, 64])").replace("spec([128]", "spec([256]"));
    await shown(sightOf(first.replace("spec([128, 64])", "spec([256, 64])").replace("spec([128]", "spec([256]")));
    await page.selectOption("#example", { label: EXAMPLES[2]!.name });
    await shown(sightOf(second));
    await page.waitForSelector('.curve[aria-busy="false"]');
    const least = await slide(0);
    const study = new Study();
    study.look(second);
    const reply = study.within(least);
    await shows("arena", formatBytes("entry" in reply ? reply.entry.picture.heightBytes : 0));
    expect(Number(await text('[data-figure="recomputed"] b'))).toBeGreaterThan(0);
  });

  it("marks the line that what is selected comes from, and tells its story", async () => {
    await open("edit.html");
    await page.click("#step-0");
    await page.waitForSelector(".story h3");
    await page.locator(".cm-line.here").waitFor();
    expect(await text(".cm-line.here")).toBe(first.split("\n")[13]);
    await page.locator(".reasons li").first().waitFor();
    const { entry } = sightOf(first);
    const [written] = entry.picture.steps[0]!.writes;
    const study = new Study();
    study.look(first);
    expect(await page.locator(".reasons li").allTextContents()).toEqual(study.story("plan-0", written!).slice(1));
    // The same number in another text is another value.
    await page.selectOption("#example", { label: EXAMPLES[2]!.name });
    await shows("steps", `${sightOf(second).entry.picture.steps.length}`);
    await page.click("#step-0");
    study.look(second);
    const [other] = sightOf(second).entry.picture.steps[0]!.writes;
    await expect
      .poll(() => page.locator(".reasons li").allTextContents(), { timeout: patience(20_000) })
      .toEqual(study.story("plan-0", other!).slice(1));
  });

  it("says what is wrong in its line, and goes on when it is right again", async () => {
    await open("edit.html");
    await type(first.replace("h1.matmul(p.w2)", "p.w2.matmul(x)"));
    await page.locator(".cm-message").getByText("ShapeMismatch").waitFor();
    expect(await text(".cm-line.bad")).toContain("p.w2.matmul(x)");
    // The whole message is in the editor, which is as wide as its box; the alert has it for screen readers.
    expect(await text(".cm-message")).toBe(await text("#complaint"));
    expect(await text(".cm-message")).toContain("help:");
    expect(
      await page.evaluate(
        "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.cm-scroller'))",
      ),
    ).toBe(0);
    expect(await page.locator(".cm-lint-marker-error").count()).toBe(1);
    expect(await page.getAttribute("#code", "aria-invalid")).toBe("true");
    await type(first.replace("const h1 =", "const h1 = = "));
    await page.locator(".cm-message").getByText("SyntaxError").waitFor();
    expect(await text(".cm-line.bad")).toContain("const h1 = = ");
    await type(first);
    await page.waitForSelector("#complaint", { state: "hidden" });
    expect(await page.locator(".cm-line.bad").count()).toBe(0);
    await shows("arena", formatBytes(sightOf(first).entry.picture.heightBytes));
  });

  it("completes the library's names, with their imports, indents by Tab and undoes", async () => {
    await open("edit.html");
    await page.locator(".cm-line").nth(13).click();
    await page.keyboard.press("End");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.type(".softm");
    const offer = page.locator(".cm-tooltip-autocomplete li[aria-selected]");
    await offer.getByText("(axis?: number): Tensor").waitFor();
    await page.locator(".cm-completionInfo").getByText("along an axis").waitFor();
    // A list that has only just opened takes no keys.
    await page.waitForTimeout(300);
    await page.keyboard.press("Enter");
    expect(await text(".cm-line >> nth=13")).toBe("  const h1 = x.matmul(p.w1).gelu().softmax;");
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.keyboard.type("transformerBl");
    await offer.getByText("Layer<").waitFor();
    await page.locator(".cm-completionInfo").getByText("tidemark/nn").waitFor();
    await page.waitForTimeout(300);
    await page.keyboard.press("Tab");
    expect(await text(".cm-line >> nth=1")).toBe('import { transformerBlock } from "tidemark/nn";');
    expect(await text(".cm-line >> nth=15")).toBe("  transformerBlock");
    await page.keyboard.press("Tab");
    expect(await text(".cm-line >> nth=15")).toBe("    transformerBlock");
    for (let i = 0; i < 12; i++) await page.keyboard.press("Control+z");
    expect(await page.locator(".cm-line").allTextContents()).toEqual(first.split("\n"));
  });

  it("keeps text, example, budget and selection in the address; a text from a link waits for its reader", async () => {
    await open("edit.html");
    await page.selectOption("#example", { label: EXAMPLES[2]!.name });
    await shows("steps", `${sightOf(second).entry.picture.steps.length}`);
    // Nothing of the text before is left.
    expect(await text(".budget-text")).not.toContain(formatBytes(sightOf(first).entry.picture.heightBytes));
    const mine = `${second}// {"ü"}?`;
    await type(mine);
    await page.locator("html:not(.stale)").waitFor();
    await page.waitForSelector('.curve[aria-busy="false"]');
    await slide(500);
    await page.click("#step-0");
    const hash = (): string => new URL(page.url()).hash;
    await expect
      .poll(hash, { timeout: patience(10_000) })
      .toMatch(/^#v1&example=attention&code=z[\w-]+&budget=\d+&value=/);
    const link = hash();
    const budget = await text('[data-figure="budget"] b');
    await page.reload();
    await page.waitForSelector("html[data-ready]");
    await shows("budget", budget);
    expect(await page.locator(".cm-line").allTextContents()).toEqual(mine.split("\n"));
    await page.waitForSelector(".story h3");
    expect(hash()).toBe(link);
    await page.close();
    // In another tab the text is shown, and runs when it is asked to.
    await open(`edit.html${link}`);
    expect(await page.locator(".cm-line").allTextContents()).toEqual(mine.split("\n"));
    expect(await page.locator("canvas").count()).toBe(0);
    await page.click("#run");
    await shows("budget", budget);
    expect(await page.inputValue("#example")).toBe("2");
    // Damaged: a note, and the example.
    await page.goto("about:blank");
    await page.goto(`${served.url}edit.html${link.slice(0, 80)}`);
    await page.locator(".message").getByText("the program is damaged").waitFor();
    expect(await page.locator(".cm-line").allTextContents()).toEqual(second.split("\n"));
  });

  it("stops a text without an end, and shows markup as text", async () => {
    await open("edit.html");
    await type(first.replace("const h1", "for (;;) {}\n  const h1"));
    await page.locator("#complaint").getByText("stopped: the text ran for more than").waitFor();
    const evil = "<img src=x onerror=\"document.title='owned'\">";
    await type(`throw new Error(${JSON.stringify(evil)});`);
    await page.locator("#complaint").getByText("<img src=x").waitFor();
    await type(first.replace("function loss(p", `function loss(p /* ${evil} */`));
    await page.waitForSelector("#complaint", { state: "hidden" });
    expect(await page.locator("img").count()).toBe(0);
    expect(await page.title()).toBe("edit · Tidemark playground");
  });

  it("gives a text the library and no way out", async () => {
    await open("edit.html");
    const names = [
      "fetch",
      "XMLHttpRequest",
      "WebSocket",
      "importScripts",
      "Worker",
      "postMessage",
      "indexedDB",
      "close",
    ];
    await type(
      `throw new Error("left: " + ${JSON.stringify(names)}.filter((n) => globalThis[n] !== undefined) + ".");`,
    );
    await page.locator("#complaint").getByText("Error: left: .").waitFor();
    await type(
      `const postMessage = Object.getPrototypeOf(globalThis).postMessage; throw new Error("p: " + postMessage);`,
    );
    await page.locator("#complaint").getByText("p: undefined").waitFor();
    // What a text does to the language is gone with it.
    await type('Array.prototype.map = () => { throw new Error("spoilt"); }; [1].map(String);');
    await page.locator("#complaint").getByText("spoilt").waitFor();
    await type(first.replace("spec([128, 64])", "spec([64, 64])").replace("spec([128]", "spec([64]"));
    await page.waitForSelector("#complaint", { state: "hidden" });
    await shows("steps", `${sightOf(first).entry.picture.steps.length}`);
  });

  it.each([`#v1&model=cnn&${STILL}`, "edit.html"])("works with keys alone: '%s'", async (file) => {
    await open(file);
    const seen = new Set<string>();
    for (let i = 0; i < 28; i++) {
      // In the editor Tab indents.
      if (seen.has("code")) await page.keyboard.press("Escape");
      await page.keyboard.press("Tab");
      const { tag, id, kind } = await page.evaluate<{ tag: string; id: string; kind: string }>(
        "(({ tagName: tag, id, className: kind }) => ({ tag, id, kind }))(document.activeElement)",
      );
      seen.add(id || kind || tag);
    }
    const own =
      file !== "edit.html"
        ? ["model", "start", "once", "reset", "until"]
        : ["code", "example", "tab-graph", "graph-text"];
    for (const stop of [...own, "theme", "plane map", "plane chart", "program"]) expect(seen).toContain(stop);
    if (file === "edit.html") return;
    await page.focus("#once");
    await page.keyboard.press("Enter");
    await shows("step", "1");
  });

  it.each([
    ["train", `#v1&model=cnn&${STILL}`],
    ["edit", "edit.html"],
  ])("%s fits any screen from 360 pixels on, and looks as it did when it was last looked at", async (name, file) => {
    /** What a plan looks like is for the page of plans: plans change when planning does. */
    const planes = [
      ".sentence",
      ".map",
      ".chart",
      ".curve",
      ".budget-text",
      ".program",
      ".text",
      ".figure b",
      ".slider input",
    ];
    const looks = async (as: string): Promise<void> => {
      const now = await page.screenshot({ mask: planes.map((plane) => page.locator(plane)), maskColor: "#808080" });
      const kept = join(PICTURES, `${name}-${as}.png`);
      if (process.env.UPDATE_PICTURES) writeFileSync(kept, now);
      const { mean, most } = await pictureDistance(page, readFileSync(kept), now);
      expect(mean, `${as}: mean difference of blocks, of 255`).toBeLessThan(3);
      expect(most, `${as}: largest difference of a block`).toBeLessThan(64);
    };
    await open(file, { width: 360, dark: true });
    expect(await page.getAttribute("html", "data-theme")).toBe("dark");
    await page.waitForSelector(".curve:not([hidden])");
    await looks("phone-dark");
    for (const width of [360, 760, 1000, 2400]) {
      await page.setViewportSize({ width, height: 900 });
      expect(await page.evaluate("document.documentElement.scrollWidth"), `${width}`).toBeLessThanOrEqual(width);
    }
    await page.setViewportSize({ width: 1300, height: 900 });
    await page.click("#theme");
    await expect.poll(() => page.getAttribute("html", "data-theme")).toBe("light");
    await page.mouse.move(0, 0);
    await looks("wide-light");
  });
});
