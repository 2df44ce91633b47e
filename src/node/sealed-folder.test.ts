/** @file Folders that others could write are refused; files that this user's processes did not write are not there. */
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { cacheFolder } from "./cache-folder.ts";
import { SealedFolder } from "./sealed-folder.ts";

const root = mkdtempSync(join(tmpdir(), "tidemark-sealed-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.warn("tests of folders that belong to others are skipped: only root can make them");

let count = 0;
const newCache = (): string => join(root, `cache-${count++}`);
const modeOf = (path: string): number => lstatSync(path).mode & 0o7777;

function opened(cache: string): SealedFolder {
  const folder = SealedFolder.open(cache, "things");
  if (typeof folder === "string") throw new Error(folder);
  return folder;
}

const bytes = (text: string): Uint8Array => Buffer.from(text);
const textOf = (content: Uint8Array | null): string | null => content && Buffer.from(content).toString();

describe("a folder of the cache", () => {
  it("is this user's alone, whatever the mask is", () => {
    const before = process.umask(0);
    try {
      const cache = join(newCache(), "below", "cache");
      opened(cache).write("a", bytes("text"));
      const paths = [join(cache, "..", ".."), join(cache, ".."), cache, join(cache, "things")];
      expect(paths.map(modeOf)).toEqual([0o700, 0o700, 0o700, 0o700]);
      expect([join(cache, "seal-key"), join(cache, "things", "a")].map(modeOf)).toEqual([0o600, 0o600]);
    } finally {
      process.umask(before);
    }
  });

  it.each([0o777, 0o775, 0o720, 0o1777])("is refused where others can write to it: mode %o", (mode) => {
    for (const open of ["", "things"]) {
      const cache = newCache();
      opened(cache);
      chmodSync(join(cache, open), mode);
      expect(SealedFolder.open(cache, "things")).toMatch(/others can write to it \(mode \d+; chmod 700\)/);
    }
  });

  it("is taken, and closed, where others could only read it", () => {
    const cache = newCache();
    mkdirSync(join(cache, "things"), { recursive: true, mode: 0o755 });
    expect(textOf(opened(cache).read("a"))).toBeNull();
    expect(modeOf(join(cache, "things"))).toBe(0o700);
  });

  it("is refused as a link, as a file and where there is no such place", () => {
    const [real, cache] = [newCache(), newCache()];
    opened(real);
    symlinkSync(real, cache);
    expect(SealedFolder.open(cache, "things")).toBe(`${cache}: it is a link`);
    const inside = newCache();
    mkdirSync(inside, { mode: 0o700 });
    symlinkSync(join(real, "things"), join(inside, "things"));
    expect(SealedFolder.open(inside, "things")).toBe(`${join(inside, "things")}: it is a link`);
    writeFileSync(join(root, "file"), "");
    expect(SealedFolder.open(join(root, "file"), "things")).toMatch(/file: it is not a folder/);
    expect(SealedFolder.open(join(root, "file", "below"), "things")).toMatch(/a part of the path is not a folder/);
  });

  it("is refused below a folder in which others can put another in its place", () => {
    const open = join(newCache(), "open");
    opened(join(open, "cache"));
    chmodSync(open, 0o777);
    expect(SealedFolder.open(join(open, "cache"), "things")).toMatch(/others can write to .*open \(mode 777\)/);
    chmodSync(open, 0o1777);
    expect(typeof SealedFolder.open(join(open, "cache"), "things")).toBe("object");
  });

  it.skipIf(!isRoot)("is refused where it, or what is above, belongs to another user", () => {
    const cache = newCache();
    opened(cache);
    chownSync(cache, 12345, 12345);
    expect(SealedFolder.open(cache, "things")).toBe(`${cache}: it belongs to user 12345`);
    expect(SealedFolder.open(join(cache, "below"), "things")).toMatch(/cache-\d+ belongs to user 12345$/);
  });
});

describe("a file of the cache", () => {
  it("is what was written, by any process of the user", () => {
    const cache = newCache();
    for (const text of ["", "text", "x".repeat(100_000)]) {
      expect(opened(cache).write("a", bytes(text))).toBe(true);
      expect(textOf(opened(cache).read("a"))).toBe(text);
    }
    expect(readdirSync(cache).sort()).toEqual(["seal-key", "things"]);
    expect(readdirSync(join(cache, "things"))).toEqual(["a"]);
  });

  it("is not there under another name, in another folder, as a link, or writable by others", () => {
    const cache = newCache();
    const folder = opened(cache);
    folder.write("a", bytes("text"));
    const path = folder.pathOf("a");
    writeFileSync(folder.pathOf("b"), readFileSync(path));
    expect(folder.read("b")).toBeNull();
    const other = SealedFolder.open(cache, "others") as SealedFolder;
    writeFileSync(other.pathOf("a"), readFileSync(path));
    expect(other.read("a")).toBeNull();
    chmodSync(path, 0o666);
    expect(folder.read("a")).toBeNull();
    chmodSync(path, 0o600);
    expect(textOf(folder.read("a"))).toBe("text");
    renameSync(path, join(root, "elsewhere"));
    symlinkSync(join(root, "elsewhere"), path);
    expect(folder.read("a")).toBeNull();
  });

  it.skipIf(!isRoot)("is not there where it belongs to another user", () => {
    const folder = opened(newCache());
    folder.write("a", bytes("text"));
    chownSync(folder.pathOf("a"), 12345, 12345);
    expect(folder.read("a")).toBeNull();
  });
});

describe("the key of the cache", () => {
  it("is created again, and files sealed with it are ignored, if it is lost, truncated, or readable by others", () => {
    const cache = newCache();
    const key = join(cache, "seal-key");
    const spoil: readonly (() => void)[] = [
      () => rmSync(key),
      () => writeFileSync(key, "short"),
      () => chmodSync(key, 0o644),
      () => {
        rmSync(key);
        writeFileSync(join(root, "known-key"), new Uint8Array(32), { mode: 0o600 });
        symlinkSync(join(root, "known-key"), key);
      },
      ...(isRoot ? [() => chownSync(key, 12345, 12345)] : []),
    ];
    for (const each of spoil) {
      opened(cache).write("a", bytes("text"));
      expect(textOf(opened(cache).read("a"))).toBe("text");
      const before = readFileSync(key);
      each();
      expect(opened(cache).read("a")).toBeNull();
      expect(readFileSync(key).equals(before)).toBe(false);
      expect([lstatSync(key).isFile(), modeOf(key), lstatSync(key).uid]).toEqual([true, 0o600, process.getuid?.()]);
    }
  });

  it("refuses the folder where something stands in its place that cannot be replaced", () => {
    const cache = newCache();
    mkdirSync(join(cache, "seal-key", "full"), { recursive: true, mode: 0o700 });
    expect(typeof SealedFolder.open(cache, "things")).toBe("string");
  });
});

describe("the place of the cache", () => {
  it("is never below the folder where a command happens to run", () => {
    const home = process.env.HOME;
    try {
      process.env.HOME = "";
      expect([null, expect.stringMatching(/^\//)]).toContainEqual(cacheFolder({}));
      process.env.HOME = "relative";
      expect(cacheFolder({})).toBeNull();
      expect(cacheFolder({ XDG_CACHE_HOME: "relative" })).toBeNull();
      expect(cacheFolder({ XDG_CACHE_HOME: "/x" })).toBe("/x/tidemark");
    } finally {
      if (home === undefined) delete process.env.HOME;
      else process.env.HOME = home;
    }
  });
});
