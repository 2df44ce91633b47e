/**
 * @file Plans in a page's database, on one that is made up of a map: what is written is read, the plan that was not used for longest
 * is dropped, and a page that refuses has no plans and no errors. A real database: tests/browser-async.test.ts.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { pagePlans } from "./page-plans.ts";

type Scope = NonNullable<Parameters<typeof pagePlans>[0]>;

/** A request that is answered after the handlers are set. */
function request<T>(result: T, isRefused = false) {
  const made = { result, onsuccess: null, onerror: null, onupgradeneeded: null, onblocked: null } as {
    result: T;
    onsuccess: (() => void) | null;
    onerror: (() => void) | null;
    onupgradeneeded: (() => void) | null;
    onblocked: null;
  };
  queueMicrotask(() => {
    if (!isRefused) made.onupgradeneeded?.();
    (isRefused ? made.onerror : made.onsuccess)?.();
  });
  return made;
}

function pageWith(stored: Map<string, { text: string; used: number }>, refuses: "open" | "put" | null = null): Scope {
  const byUse = (): readonly string[] => [...stored].sort((a, b) => a[1].used - b[1].used).map(([key]) => key);
  const plans = {
    get: (key: string) => request(stored.get(key)),
    put(value: { text: string; used: number }, key: string) {
      if (refuses === "put") throw new RangeError("the quota is used up");
      return request(stored.set(key, value));
    },
    delete: (key: string) => request(stored.delete(key)),
    index: () => ({ getAllKeys: () => request(byUse()) }),
  };
  const database = {
    createObjectStore: () => ({ createIndex: () => undefined }),
    transaction: () => ({ objectStore: () => plans }),
  };
  const indexedDB = { open: () => request(database, refuses === "open") };
  return { indexedDB, crypto: globalThis.crypto as never, navigator: { userAgent: "an engine" } };
}

let now = 0;

beforeEach(() => {
  vi.stubGlobal("TIDEMARK_SOURCES", "a build");
  vi.spyOn(Date, "now").mockImplementation(() => ++now);
});

afterEach(() => {
  vi.unstubAllGlobals();
});

describe("plans in a page", () => {
  it("are read as they were written, by the whole key", async () => {
    const stored = new Map();
    const store = await pagePlans(pageWith(stored));
    await store?.write("one key", "one plan");
    await store?.write("another key", "another plan");
    expect(await store?.read("one key")).toBe("one plan");
    expect(await store?.read("no key")).toBeNull();
    expect([store?.planner, stored.size]).toEqual(["a build an engine", 2]);
    expect([...stored.keys()].every((key) => /^[0-9a-f]{64}$/.test(key))).toBe(true);
  });

  it("are the 128 that were used last", async () => {
    const stored = new Map();
    const store = await pagePlans(pageWith(stored));
    for (let i = 0; i < 128; i++) await store?.write(`key ${i}`, `plan ${i}`);
    expect(await store?.read("key 0")).toBe("plan 0");
    await store?.write("key 128", "plan 128");
    expect(stored.size).toBe(128);
    const left = await Promise.all(["key 0", "key 1", "key 128"].map((key) => store?.read(key)));
    expect(left).toEqual(["plan 0", null, "plan 128"]);
  });

  it("are not kept where the page refuses, which is no error", async () => {
    expect(await pagePlans(pageWith(new Map(), "open"))).toBeNull();
    expect(await pagePlans({ ...pageWith(new Map()), crypto: {} })).toBeNull();
    expect(await pagePlans({})).toBeNull();
    const full = await pagePlans(pageWith(new Map(), "put"));
    await full?.write("key", "plan");
    expect(await full?.read("key")).toBeNull();
  });

  it("are not kept by unbuilt sources", async () => {
    vi.unstubAllGlobals();
    expect(await pagePlans(pageWith(new Map()))).toBeNull();
  });
});
