/** @file Messages between devices, all on one thread: nothing here has to wait. */
import { describe, expect, it } from "vitest";
import { announceFailure, blockBytes, failureIn, Mailbox } from "./mailbox.ts";

const [SIZE, ROOM, TAG] = [3, 64, 7];

const newBlock = (): ArrayBuffer => new SharedArrayBuffer(blockBytes(SIZE, ROOM)) as unknown as ArrayBuffer;
const mailboxes = (block: ArrayBuffer): Mailbox[] => [0, 1, 2].map((rank) => new Mailbox(block, rank, SIZE));

function send(from: Mailbox, to: readonly number[], text: string): void {
  from.clear();
  new Uint8Array(from.block, from.roomAt(from.rank), from.roomBytes).set(new TextEncoder().encode(text));
  from.post(to, TAG);
}

function receive(by: Mailbox, from: number, length: number): string {
  by.receive(from, TAG);
  const bytes = new Uint8Array(by.block, by.roomAt(from), length).slice();
  by.take(from);
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

describe("a mailbox", () => {
  it("has rooms of its own for every device", () => {
    const [a] = mailboxes(newBlock()) as [Mailbox];
    expect(a.roomBytes).toBe(ROOM);
    expect(new Set([0, 1, 2].map((rank) => a.roomAt(rank) % 64))).toEqual(new Set([0]));
    expect(a.roomAt(2) + ROOM).toBe(blockBytes(SIZE, ROOM));
  });

  it("takes messages of pairs and groups in any order", () => {
    const [a, b, c] = mailboxes(newBlock()) as [Mailbox, Mailbox, Mailbox];
    send(a, [1, 2], "all");
    expect(receive(b, 0, 3)).toBe("all");
    send(b, [0], "one");
    expect(receive(a, 1, 3)).toBe("one");
    expect(receive(c, 0, 3)).toBe("all");
    send(a, [2], "next");
    expect(receive(c, 0, 4)).toBe("next");
  });

  it("goes on when its counters begin again", () => {
    const block = newBlock();
    const words = new Int32Array(block);
    const [, before] = mailboxes(block) as [Mailbox, Mailbox];
    // find the counters of the pair 0 → 1 by what a message changes
    const old = words.slice();
    send(mailboxes(block)[0] as Mailbox, [1], "x");
    receive(before, 0, 1);
    const counters = [...words.keys()].filter((i) => i < before.roomAt(0) / 4 && words[i] === 1 && old[i] === 0);
    expect(counters).toHaveLength(2);
    for (const i of counters) words[i] = 2 ** 31 - 2;
    const [a, b] = mailboxes(block) as [Mailbox, Mailbox];
    for (let i = 0; i < 5; i++) {
      send(a, [1], `${i}`);
      expect(receive(b, 0, 1)).toBe(`${i}`);
    }
    expect(counters.map((i) => words[i])).toEqual([-(2 ** 31) + 3, -(2 ** 31) + 3]);
  });

  it("ends a wait where the other one has returned, is elsewhere, or any has failed", () => {
    const block = newBlock();
    const [a, b, c] = mailboxes(block) as [Mailbox, Mailbox, Mailbox];
    a.post([1], TAG + 1);
    expect(() => b.receive(0, TAG)).toThrow("DeviceFailed: rank 0 is at another collective than rank 1");
    a.leave();
    expect(() => c.receive(0, TAG)).toThrow("rank 2 waits for rank 0, which has returned");
    expect(failureIn(block)).toBeNull();
    expect(announceFailure(block, { rank: 1, text: "no more data: ∅" }, SIZE)).toBe(true);
    expect(announceFailure(block, { rank: 2, text: "later" }, SIZE)).toBe(false);
    expect(failureIn(block)).toEqual({ rank: 1, text: "no more data: ∅" });
    expect(() => c.receive(1, TAG)).toThrow("DeviceFailed: no more data: ∅; rank 2 waited for rank 1");
  });

  it("keeps the beginning of a long text", () => {
    const block = newBlock();
    announceFailure(block, { rank: 0, text: "x".repeat(5000) }, SIZE);
    expect(failureIn(block)?.text).toBe("x".repeat(1024));
  });
});
