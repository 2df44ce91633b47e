/**
 * @file Resident memory follows the plan: the peak of a training process over what it was after the import is at most the
 * arena and 24 MiB, and no smaller budget raises it. Each figure is the kernel's own, of a process of its own.
 */

import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildPackage } from "./support/build.ts";
import { patience } from "./support/patience.ts";
import { ROOT } from "./support/project.ts";
import { plainTargets } from "./support/targets.ts";

const MEBIBYTE = 2 ** 20;
/** Newer engines take more for themselves: docs/decisions/0031-resident-memory.md has the figures. */
const IS_NEWER = Number.parseInt(process.versions.node, 10) > 20;
const MOST_OUTSIDE = (IS_NEWER ? 48 : 24) * MEBIBYTE;
const MOST_WORKER = (IS_NEWER ? 16 : 10) * MEBIBYTE;
/** Allocators and collectors differ by this much from run to run. */
const NOISE = 2 * MEBIBYTE;

const PROGRAMS = ["mlp", "cnn", "gpt", ...["resnet18", "vit", "unet", "mobilenet"].map((n) => `networks/${n}.mjs`)];

const folder = mkdtempSync(join(tmpdir(), "tidemark-memory-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(() => {
  buildPackage(join(folder, "dist"));
  // the networks import the package by its name, which a package may do of itself
  for (const name of ["package.json", "bin"]) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  cpSync(join(ROOT, "bench/networks"), join(folder, "networks"), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
}, patience(300_000));

interface Figures {
  readonly arenaBytes: number;
  readonly peakRssBytes: number;
  readonly baselineRssBytes: number;
  readonly outsideArenaBytes: Readonly<Record<string, number>>;
}

/** Plans are new in every run; a budget's plan goes through a cache of this test's own. */
function benched(program: string, ...words: readonly string[]): Promise<Figures> {
  const argv = [join(folder, "bin/tidemark.js"), "bench", program, "--steps", "3", "--json", ...words];
  const plans = words.includes("--budget") ? { TIDEMARK_CACHE: join(folder, "cache") } : { TIDEMARK_PLAN_CACHE: "off" };
  const env = { ...process.env, NETWORKS: "small", NODE_OPTIONS: "", ...plans };
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, argv, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
    let [out, err] = ["", ""];
    child.stdout.on("data", (text) => {
      out += text;
    });
    child.stderr.on("data", (text) => {
      err += text;
    });
    child.on("close", (code) => {
      if (code === 0) resolve(JSON.parse(out) as Figures);
      else reject(new Error(`${program}: ${err}`));
    });
  });
}

const peakOf = ({ peakRssBytes, baselineRssBytes }: Figures): number => peakRssBytes - baselineRssBytes;

// When a collector runs is the engine's affair: what is meant is the peak that processes have as a rule.
describe.skipIf(process.platform !== "linux")("the peak of resident memory", { retry: 4 }, () => {
  describe.each(["wasm", "native"])("on %s", (target) => {
    const missing = target === "native" && Boolean(plainTargets[1]?.missing);

    it.skipIf(missing).each(PROGRAMS)(
      `of %s is at most its arena and ${MOST_OUTSIDE / MEBIBYTE} MiB`,
      async (program) => {
        const figures = await benched(program, "--target", target);
        const outside = peakOf(figures) - figures.arenaBytes;
        expect(outside, JSON.stringify(figures.outsideArenaBytes)).toBeLessThanOrEqual(MOST_OUTSIDE);
        const parts = Object.values(figures.outsideArenaBytes).reduce((sum, bytes) => sum + bytes, 0);
        expect(parts).toBe(outside);
      },
    );
  });

  it.each([
    ["cnn", ["min", 0.95]],
    ["networks/unet.mjs", ["min", 0.7]],
  ] as const)("of %s is not raised by a budget", async (program, shares) => {
    const storeAll = await benched(program);
    for (const share of shares) {
      const budget = share === "min" ? share : `${Math.round(share * storeAll.arenaBytes)}`;
      const within = await benched(program, "--budget", budget);
      expect(peakOf(within), budget).toBeLessThanOrEqual(peakOf(storeAll) + NOISE);
    }
  });

  it(`grows by at most ${MOST_WORKER / MEBIBYTE} MiB for a further worker on WebAssembly`, async () => {
    const [one, two] = [await benched("cnn"), await benched("cnn", "--threads", "2")];
    const more = peakOf(two) - two.arenaBytes - (peakOf(one) - one.arenaBytes);
    expect(more).toBeLessThanOrEqual(MOST_WORKER);
    expect(two.outsideArenaBytes.workers).toBeGreaterThan(0);
  });
});
