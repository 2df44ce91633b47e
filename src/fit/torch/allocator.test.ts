/** @file The modelled allocator against rules of PyTorch's, computed by hand. */
import { describe, expect, it } from "vitest";
import { CachingAllocator } from "./allocator.ts";

const MIB = 2 ** 20;

describe("the caching allocator", () => {
  it("counts whole multiples of 512 bytes", () => {
    const a = new CachingAllocator();
    a.allocate(1);
    a.allocate(513);
    expect(a.allocated).toBe(512 + 1024);
    expect(a.reserved).toBe(2 * MIB);
  });

  it("cuts requests of 1 to 10 MiB from segments of 20 MiB, and gives larger ones their own", () => {
    const a = new CachingAllocator();
    a.allocate(3 * MIB);
    a.allocate(3 * MIB);
    expect(a.reserved).toBe(20 * MIB);
    a.allocate(15 * MIB);
    expect(a.reserved).toBe(36 * MIB);
    // what is left of the segment of 16 MiB is not more than 1 MiB, so the block is not split
    expect(a.allocated).toBe(22 * MIB);
  });

  it("takes the best fit again, with up to 1 MiB more than asked for", () => {
    const a = new CachingAllocator();
    const blocks = [3 * MIB, 2 * MIB, 4 * MIB, 2 * MIB].map((bytes) => a.allocate(bytes));
    for (const i of [0, 2]) a.free(blocks[i] as NonNullable<(typeof blocks)[0]>);
    expect(a.allocated).toBe(4 * MIB);
    expect(a.allocate(2.25 * MIB).size).toBe(3 * MIB);
    expect(a.allocate(2.25 * MIB).size).toBe(2.25 * MIB);
  });

  it("merges free neighbours", () => {
    const a = new CachingAllocator();
    const blocks = Array.from({ length: 4 }, () => a.allocate(5 * MIB));
    for (const block of blocks) a.free(block);
    expect(a.allocated).toBe(0);
    a.allocate(20 * MIB - 512);
    expect(a.reserved).toBe(20 * MIB);
  });
});
