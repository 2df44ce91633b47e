/** @file What is read of the processor's caches, and what is left unread because it is no size. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { USUAL_SECOND_CACHE } from "../../codegen/native/options.ts";
import { cachesIn, smallSecondCache } from "./processor.ts";
import { nativeTarget } from "./target.ts";

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** A folder like the one of Linux: level, type and size of each cache. */
function folderOf(...caches: readonly (readonly [level: string, type: string, size: string])[]): string {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-caches-"));
  folders.push(folder);
  caches.forEach((values, i) => {
    mkdirSync(join(folder, `index${i}`));
    for (const [j, name] of ["level", "type", "size"].entries()) {
      writeFileSync(join(folder, `index${i}`, name), `${values[j]}\n`);
    }
  });
  return folder;
}

const FIRST = [
  ["1", "Data", "32K"],
  ["1", "Instruction", "64K"],
] as const;

describe("caches of the processor", () => {
  it("are those of data, of the first two levels", () => {
    const folder = folderOf(...FIRST, ["2", "Unified", "512K"], ["3", "Unified", "16384K"]);
    expect(cachesIn(folder)).toEqual({ first: 32 * 1024, second: 512 * 1024 });
  });

  it("are not known where they are not listed, or not as numbers", () => {
    expect(cachesIn(join(tmpdir(), "no such folder"))).toBe(null);
    expect(cachesIn(folderOf(...FIRST))).toBe(null);
    expect(cachesIn(folderOf(...FIRST, ["2", "Unified", "much"]))).toBe(null);
    expect(cachesIn(folderOf(...FIRST, ["2", "Unified", "99999999999K"]))).toBe(null);
  });

  it("count where they are smaller than usual, and not as less than blocks need", () => {
    const of = (kibibytes: number) => smallSecondCache({ first: 32768, second: kibibytes * 1024 }, USUAL_SECOND_CACHE);
    expect([4, 256, 500, 512, 1024, 2048].map((n) => (of(n) ?? 0) / 1024)).toEqual([128, 256, 448, 512, 0, 0]);
    expect(smallSecondCache(null, USUAL_SECOND_CACHE)).toBe(undefined);
  });

  it.skipIf(typeof nativeTarget() === "string")("are part of what a plan is kept under", () => {
    const [usual, small] = [USUAL_SECOND_CACHE, 262144].map((secondCache) => nativeTarget({ secondCache }));
    if (typeof usual !== "object" || typeof small !== "object") throw new Error("no target");
    expect(small.description.key).not.toBe(usual.description.key);
  });
});
