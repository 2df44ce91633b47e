/** @file The window of a store: writes overlap with the caller, at most as many as there are buffers. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Files, NODE_FILES } from "./files.ts";
import { Store, WINDOW } from "./store.ts";

const root = mkdtempSync(join(tmpdir(), "tidemark-store-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const SIZE = 64;

/** A store whose writes wait until they are let go, one by one. */
function slowStore() {
  const folder = mkdtempSync(join(root, "run-"));
  const gates: (() => void)[] = [];
  const files: Files = {
    ...NODE_FILES,
    async write(path, contents) {
      await new Promise<void>((resolve) => gates.push(resolve));
      await NODE_FILES.write(path, contents);
    },
  };
  const sizes = { state: SIZE, adjoint: SIZE };
  const store = new Store(files, { folder, fingerprint: new Uint8Array(32), sizes, afterFailure: "try again" });
  return { store, folder, letGo: () => gates.shift()?.() };
}

const label = (step: number) => ({ kind: "state", step }) as const;
const put = (store: Store, step: number): Promise<string> => store.put(label(step), (block) => block.fill(step));
const eventLoop = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));

describe("a store", () => {
  it("takes as many blocks as it has buffers before any is written, then has its caller wait", async () => {
    const { store, folder, letGo } = slowStore();
    for (let step = 0; step < WINDOW; step++) await put(store, step);
    expect([store.busy, store.written, readdirSync(folder)]).toEqual([true, 0, []]);
    let taken = false;
    const next = put(store, WINDOW).then(() => {
      taken = true;
    });
    for (let i = 0; i < 20; i++) await eventLoop();
    expect(taken).toBe(false);
    letGo();
    await next;
    expect(store.written).toBe(1);
    for (let i = 0; i < WINDOW; i++) letGo();
    await store.settled();
    expect([store.written, store.busy, readdirSync(folder).length]).toEqual([WINDOW + 1, false, WINDOW + 1]);
  });

  it("reads what is still being written when it is there", async () => {
    const { store, letGo } = slowStore();
    await put(store, 7);
    const seen: number[] = [];
    const read = store.get(label(7), (block) => seen.push(...block));
    await eventLoop();
    expect(seen).toEqual([]);
    letGo();
    await read;
    expect(seen).toEqual(Array.from({ length: SIZE }, () => 7));
  });

  it("writes a fact that is on its way once", async () => {
    const { store, letGo } = slowStore();
    await put(store, 3);
    await put(store, 3);
    letGo();
    await store.settled();
    expect(store.written).toBe(1);
  });

  it("removes what a process that is gone left half-written, and no other file", async () => {
    const { store, folder } = slowStore();
    const gone = 2 ** 22 + 1;
    const theirs = [`notes.${gone}.tmp`, `state-x.tide.${gone}.tmp`, "run.json"];
    for (const name of [...theirs, `state-3.tide.${gone}.tmp`, `run.json.${gone}.tmp`])
      writeFileSync(join(folder, name), "");
    await store.labels();
    expect(readdirSync(folder).sort()).toEqual(theirs.sort());
  });
});

describe("a file of a run", () => {
  it("is not written through a link, nor waited for where a pipe is in its place", async () => {
    const folder = mkdtempSync(join(root, "run-"));
    const [link, pipe, target] = ["link", "pipe", "target"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(target, "mine");
    symlinkSync(target, link);
    execFileSync("mkfifo", [pipe]);
    await expect(NODE_FILES.write(link, new Uint8Array(8))).rejects.toMatchObject({ code: "ELOOP" });
    await expect(NODE_FILES.read(link, new Uint8Array(8))).rejects.toMatchObject({ code: "ELOOP" });
    await expect(NODE_FILES.write(pipe, new Uint8Array(8))).rejects.toMatchObject({ code: "ENXIO" });
    expect(await NODE_FILES.sizeOf(pipe)).toBe(0);
    expect(readFileSync(target, "utf8")).toBe("mine");
  });
});
