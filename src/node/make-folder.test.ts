/** @file Folders are created with those above them, and a refusal of the system is an error, not a loop. */
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { makeFolder } from "./make-folder.ts";

const root = mkdtempSync(join(tmpdir(), "make-folder-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("makeFolder", () => {
  it("creates a folder and those above it with the mode, and accepts one that exists", () => {
    const path = join(root, "a", "b", "c");
    makeFolder(path, 0o700);
    makeFolder(path);
    for (const made of [path, join(root, "a")]) {
      expect(statSync(made).isDirectory()).toBe(true);
      if (process.platform !== "win32") expect(statSync(made).mode & 0o777).toBe(0o700);
    }
  });

  it("refuses a file at the path or above it", () => {
    const file = join(root, "file");
    writeFileSync(file, "");
    expect(() => makeFolder(file)).toThrow("EEXIST");
    expect(() => makeFolder(join(file, "below"))).toThrow(/ENOTDIR|ENOENT/);
  });

  it.skipIf(!existsSync("/proc/self"))("ends where a folder exists in which nothing can be created", () => {
    expect(() => makeFolder("/proc/tidemark")).toThrow("ENOENT");
    expect(() => makeFolder("/proc/tidemark/below")).toThrow("ENOENT");
  });
});
