/** @file Caches of compiled programs and measurements in a folder of a test file's own. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";

/** The folder that caches are in while the tests of this file run; it is removed after them. */
export function useOwnCache(): string {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-cache-"));
  const before = process.env.TIDEMARK_CACHE;
  beforeAll(() => {
    process.env.TIDEMARK_CACHE = folder;
  });
  afterAll(() => {
    if (before === undefined) delete process.env.TIDEMARK_CACHE;
    else process.env.TIDEMARK_CACHE = before;
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}
