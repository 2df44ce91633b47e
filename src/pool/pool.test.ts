/** @file Pools against a model of them, their limit, generations, statistics, and files of their state. */
import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { TidemarkError } from "../base/errors.ts";
import { threefry } from "../base/random.ts";
import { readPickle } from "../view/pickle.ts";
import { readSnapshot } from "../view/snapshot.ts";
import { Pool } from "./pool.ts";
import { largestBlocks } from "./refusal.ts";
import { poolSnapshot } from "./snapshot.ts";

/** Numbers in [0, 1) from a seed. */
function randomFrom(seed: number): () => number {
  let count = 0;
  return () => (threefry([seed, 0], [count++, 0])[0] >>> 0) / 2 ** 32;
}

/** Blocks by address, side by side, with nothing free beside something free. */
function checkBlocks(pool: Pool, live: ReadonlyMap<number, number>): void {
  let next = 0;
  let wasFree = false;
  let found = 0;
  for (const { handle, address, bytes, asked, live: isLive } of pool.walk()) {
    expect(address).toBe(next);
    expect(bytes % 64).toBe(0);
    expect(isLive || !wasFree).toBe(true);
    if (isLive) {
      expect(live.get(handle)).toBe(asked);
      expect(pool.address(handle)).toBe(address);
      found += 1;
    }
    wasFree = !isLive;
    next += bytes;
  }
  expect(found).toBe(live.size);
  expect(pool.stats().reserved).toBe(next);
}

it("agrees with a model of it over random calls", () => {
  const random = randomFrom(7);
  for (let round = 0; round < 20; round++) {
    const pool = new Pool();
    const live = new Map<number, number>();
    const largest = 2 ** (4 + round);
    for (let call = 0; call < 300; call++) {
      if (live.size > 0 && random() < 0.48) {
        const handle = [...live.keys()][Math.floor(random() * live.size)] as number;
        pool.free(handle);
        live.delete(handle);
      } else {
        const bytes = Math.floor(random() * largest);
        live.set(pool.allocate(bytes), bytes);
      }
      if (call % 10 === 0) checkBlocks(pool, live);
    }
    const allocated = [...live.values()].reduce((sum, bytes) => sum + bytes, 0);
    expect(pool.stats()).toMatchObject({ allocated, blocks: live.size });
    for (const handle of live.keys()) pool.free(handle);
    expect(pool.stats()).toMatchObject({ allocated: 0, blocks: 0, largestFree: pool.stats().reserved });
    pool.trim();
    expect(pool.stats()).toMatchObject({ allocated: 0, active: 0, reserved: 0, blocks: 0, largestFree: 0 });
  }
});

it("takes the smallest gap that is large enough, the lowest of equal ones", () => {
  const pool = new Pool();
  const KIB = 1024;
  const sizes = [100, 1, 80, 1, 90, 1, 80, 1].map((kib) => kib * KIB);
  const handles = sizes.map((bytes) => pool.allocate(bytes));
  const address = (i: number): number => pool.address(handles[i] as number);
  const places = [0, 2, 4, 6].map(address);
  for (const i of [0, 2, 4, 6]) pool.free(handles[i] as number);
  expect(pool.stats().largestFree).toBe(100 * KIB);
  expect(pool.address(pool.allocate(80 * KIB))).toBe(places[1]);
  expect(pool.address(pool.allocate(75 * KIB))).toBe(places[3]);
  expect(pool.address(pool.allocate(95 * KIB))).toBe(places[0]);
  // of small gaps the one that was freed last
  expect(pool.address(pool.allocate(2 * KIB))).toBe(95 * KIB);
  expect(pool.address(pool.allocate(200 * KIB))).toBe(354 * KIB);
});

it("never passes its limit, and says what is live when it refuses", () => {
  const reserved: number[] = [];
  const pool = new Pool({ name: "pool of the test", limitBytes: 3072, reserve: (bytes) => reserved.push(bytes) });
  const first = pool.allocate(1000, pool.tag("model.ts:21:14 in decoder"));
  for (let i = 0; i < 11; i++) pool.allocate(100 + i, pool.tag(`model.ts:${i}:1`));
  expect(pool.refuses(1024)).toBe(true);
  const before = pool.stats();
  let message = "";
  try {
    pool.allocate(1024, pool.tag("loss.ts:3:7"));
  } catch (error) {
    message = (error as Error).message;
  }
  expect(message).toBe(
    [
      "PoolExhausted: pool of the test: 1,024 bytes do not fit into the limit of 3,072; 2,155 are in live values; the range is 2,432 long; the largest gap in it has 0",
      "  the largest of 12 live values:",
      "              1,000 bytes  model.ts:21:14 in decoder",
      ...[10, 9, 8, 7, 6, 5, 4, 3, 2].map((i) => `                ${100 + i} bytes  model.ts:${i}:1`),
      "  at loss.ts:3:7",
      "  help: raise the limit, or compute with less at a time",
    ].join("\n"),
  );
  expect(pool.stats()).toEqual(before);
  pool.free(first);
  expect(pool.refuses(1024)).toBe(false);
  expect(Math.max(...reserved)).toBeLessThanOrEqual(3072);
});

it("says what is live where the memory behind it has no more", () => {
  const pool = new Pool({
    reserve: (bytes) => {
      if (bytes > 4096) throw new TidemarkError("TargetUnsupported", `an arena of ${bytes} bytes cannot be allocated`);
    },
  });
  pool.allocate(1000, pool.tag("train.ts:21:3"));
  expect(() => pool.allocate(8000)).toThrow(
    /PoolExhausted: the pool: 8,000 bytes do not fit; an arena of 9024 bytes cannot be allocated; 1,000 are in live values[\s\S]*train\.ts:21:3/,
  );
  expect(pool.stats()).toMatchObject({ allocated: 1000, reserved: 1024, blocks: 1 });
  expect(pool.address(pool.allocate(3000))).toBe(1024);
});

it("moves live blocks together before it refuses, where it can move bytes", () => {
  const random = randomFrom(11);
  const limitBytes = 64 * 200;
  const bytes = new Uint8Array(limitBytes);
  const pool = new Pool({ limitBytes, move: (from, to, size) => bytes.copyWithin(to, from, from + size) });
  const live = new Map<number, number>();
  let refused = 0;
  for (let i = 0; i < 5000; i++) {
    const handles = [...live.keys()];
    if (live.size > 0 && random() < 0.45) {
      const handle = handles[Math.floor(random() * handles.length)]!;
      pool.free(handle);
      live.delete(handle);
      continue;
    }
    const size = 1 + Math.floor(random() ** 3 * 3000);
    const fits = pool.stats().active + Math.ceil(size / 64) * 64 <= limitBytes;
    expect(pool.refuses(size)).toBe(!fits);
    if (!fits) {
      expect(() => pool.allocate(size)).toThrow("PoolExhausted");
      refused += 1;
      continue;
    }
    const handle = pool.allocate(size);
    live.set(handle, size);
    bytes.fill(handle & 255, pool.address(handle), pool.address(handle) + size);
    if (i % 50 > 0) continue;
    checkBlocks(pool, live);
    for (const [block, own] of live) {
      const from = pool.address(block);
      expect(bytes.subarray(from, from + own).every((byte) => byte === (block & 255))).toBe(true);
    }
  }
  expect(refused).toBeGreaterThan(20);
  expect(pool.stats().moved).toBeGreaterThan(limitBytes);
});

it("frees a generation at once, but what is carried out of it", () => {
  const pool = new Pool();
  const outer = pool.allocate(100);
  const generation = pool.begin();
  const handles = Array.from({ length: 50 }, (_, i) => pool.allocate(100 * (i + 1)));
  pool.begin();
  pool.allocate(5000);
  for (const i of [3, 4, 5, 30]) pool.free(handles[i] as number);
  pool.carry(handles[10] as number, generation);
  pool.end(generation);
  expect([...pool.walk()].filter((b) => b.live).map((b) => b.handle)).toEqual([outer, handles[10]]);
  pool.free(handles[10] as number);
  expect(pool.trim()).toBeGreaterThan(0);
  expect(pool.stats()).toMatchObject({ allocated: 100, reserved: 128, blocks: 1 });
  expect(pool.trim()).toBe(0);
});

it("does not grow over many calls", () => {
  const pool = new Pool();
  const random = randomFrom(11);
  const handles = new Int32Array(64).fill(-1);
  let rows = 0;
  for (let call = 0; call < 200_000; call++) {
    const slot = Math.floor(random() * 64);
    const handle = handles[slot] as number;
    if (handle >= 0) pool.free(handle);
    handles[slot] = handle >= 0 ? -1 : pool.allocate(4 * 2 ** (16 * random()));
    if (call === 20_000) rows = pool.rows;
  }
  expect(rows).toBeLessThanOrEqual(129);
  expect(pool.rows).toBeLessThanOrEqual(129);
});

it("refuses what it cannot do, and stays as it was", () => {
  const pool = new Pool({ limitBytes: "64KiB" });
  const handle = pool.allocate(10);
  const other = pool.allocate(10);
  pool.free(handle);
  const before = pool.stats();
  for (const wrong of [handle, -1, 0.5, 1e6, undefined as never]) {
    for (const call of [
      () => pool.free(wrong),
      () => pool.address(wrong),
      () => pool.bytes(wrong),
      () => pool.carry(wrong, 1),
    ]) {
      expect(call).toThrow(/InvalidArgument: the pool: block .* is not in use/);
    }
  }
  for (const wrong of [-1, Number.NaN, 1e300, Number.POSITIVE_INFINITY, "8" as never, undefined as never]) {
    expect(() => pool.allocate(wrong)).toThrow(/InvalidArgument: the pool: an allocation of .* bytes/);
  }
  expect(() => pool.allocate(65536)).toThrow("PoolExhausted");
  expect(pool.stats()).toEqual(before);
  expect(pool.address(other)).toBe(64);
  expect(() => new Pool({ limit: 5 } as never)).toThrow(
    /InvalidArgument: Pool: there is no option limit[\s\S]*limitBytes/,
  );
  expect(() => new Pool({ limitBytes: "much" })).toThrow("InvalidArgument: byte size");
  for (const limit of ["much", Number.NaN, -1]) {
    expect(() => {
      pool.limitBytes = limit;
    }).toThrow("InvalidArgument: byte size");
  }
  pool.limitBytes = "1KiB";
  expect(pool.limitBytes).toBe(1024);
  expect(() => new Pool({ history: 0.5 })).toThrow("InvalidArgument: the pool: a history of 0.5");
});

it("becomes a snapshot that is read as one of PyTorch's", () => {
  const pool = new Pool({ history: 8 });
  const a = pool.allocate(100, pool.tag("train.ts:21:3 in step"));
  pool.allocate(2 ** 20, pool.tag("train.ts:22:3"));
  pool.free(a);
  pool.allocate(64);
  const bytes = poolSnapshot(pool);
  const [picture] = readSnapshot(bytes, "pool");
  expect(picture).toMatchObject({ source: "snapshot", columns: 5, heightBytes: 2 ** 20 + 128 });
  expect(picture?.steps.map((step) => step.text)).toEqual(["alloc 128 B", "alloc 1 MiB", "free 128 B", "alloc 64 B"]);
  expect(picture?.steps[0]?.where).toBe("train.ts:21 in step");
  expect(largestBlocks(pool, 1)).toMatchObject([{ asked: 2 ** 20, tag: "train.ts:22:3" }]);
  for (let i = 0; i < 20; i++) pool.free(pool.allocate(2 ** 33));
  expect(readSnapshot(poolSnapshot(pool), "pool")[0]?.columns).toBe(9);
});

interface SnapshotEvent {
  readonly action: string;
  readonly addr: number;
  readonly size: number;
}

/**
 * What memory_viz does: it goes back from the blocks at the end, event by event, and draws every block in its segment, those that wait to be
 * freed in another color.
 */
function requireHistory(file: Uint8Array): number {
  const data = readPickle(file) as Map<string, never>;
  const plain = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(plain);
    return value instanceof Map ? Object.fromEntries([...value].map(([key, item]) => [key, plain(item)])) : value;
  };
  const { segments, device_traces: traces } = plain(data) as {
    segments: { address: number; total_size: number; blocks: { address: number; size: number; state: string }[] }[];
    device_traces: SnapshotEvent[][];
  };
  const [segment] = segments;
  const live = new Map<number, { size: number; waits: boolean }>();
  let end = segment!.address;
  for (const { address, size, state } of segment!.blocks) {
    expect(address).toBe(end);
    end += size;
    if (state === "active_allocated") live.set(address, { size, waits: false });
  }
  expect(end).toBe(segment!.address + segment!.total_size);
  for (const { action, addr, size } of [...traces[0]!].reverse()) {
    expect(addr).toBeGreaterThanOrEqual(segment!.address);
    expect(addr + size).toBeLessThanOrEqual(end);
    const block = live.get(addr);
    if (action === "alloc") {
      expect(block).toEqual({ size, waits: false });
      live.delete(addr);
    } else if (action === "free_completed") {
      expect(block).toBeUndefined();
      for (const [other, { size: bytes }] of live) expect(addr + size <= other || other + bytes <= addr).toBe(true);
      live.set(addr, { size, waits: true });
    } else {
      expect([action, block?.waits]).toEqual(["free_requested", true]);
      block!.waits = false;
    }
  }
  expect([...live.values()].some(({ waits }) => waits)).toBe(false);
  return traces[0]!.length;
}

it("has a history in snapshots that leads back from its blocks, also after moves and trims", () => {
  const random = randomFrom(23);
  const pool = new Pool({ history: 400, limitBytes: 60_000, move: () => undefined });
  const live: number[] = [];
  for (let call = 0; call < 1500; call++) {
    if (random() < 0.5 || live.length === 0) {
      const bytes = 1 + Math.floor(5000 * random());
      if (!pool.refuses(bytes)) live.push(pool.allocate(bytes, pool.tag(`a.ts:${call}:1`)));
    } else pool.free(live.splice(Math.floor(random() * live.length), 1)[0]!);
    if (call % 100 === 99) expect(requireHistory(poolSnapshot(pool))).toBeGreaterThan(50);
  }
  expect(pool.stats().moved).toBeGreaterThan(0);
  for (const handle of live) pool.free(handle);
  pool.trim();
  expect(requireHistory(poolSnapshot(pool))).toBeGreaterThan(400);
  expect(readSnapshot(poolSnapshot(pool), "pool")[0]!.columns).toBe(401);
});

it.skipIf(!hasPython())("is a pickle that Python loads", () => {
  const pool = new Pool({ history: 8 });
  pool.allocate(2 ** 33, pool.tag("träin.ts:21:3 in step, from outside"));
  const program =
    "import pickle, sys; d = pickle.load(sys.stdin.buffer); b = d['segments'][0]['blocks'][0]; print(b['size'], b['frames'][0] == {'filename': 'träin.ts', 'line': 21, 'name': 'step, from outside'}, d['device_traces'][0][0]['size'])";
  const text = execFileSync("python3", ["-c", program], { input: poolSnapshot(pool), encoding: "utf8" });
  expect(text.trim()).toBe("8589934592 True 8589934592");
});

function hasPython(): boolean {
  try {
    execFileSync("python3", ["-c", "0"]);
    return true;
  } catch {
    return false;
  }
}
