/** @file Pickles that Python wrote, read; and those that would run code, refused. */
import { describe, expect, it } from "vitest";
import { readPickle, utf8 } from "./pickle.ts";

const bytes = (base64: string): Uint8Array => Uint8Array.from(Buffer.from(base64, "base64"));

/** The same object by `pickle.dumps(data, protocol=0 … 5)`. */
const SAME = [
  "KGRwMApWYQpwMQoobHAyCkkxCmFJLTIKYUkyNTUKYUkyNTYKYUk2NTUzNgphSS03MDAwMAphTDEwOTk1MTE2Mjc3NzZMCmFMMTE4MDU5MTYyMDcxNzQxMTMwMzQyNEwKYUYxLjUKYUkwMQphSTAwCmFOYXNWdApwMwooSTEKdHA0CnNWdQpwNQooSTEKSTIKdHA2CnNWdgpwNwooSTEKSTIKSTMKdHA4CnNWdwpwOQooSTEKSTIKSTMKSTQKdHAxMApzVnMKcDExClZo6Vx1NGUxNlx1MDAwYSdxJwpwMTIKc1ZlCnAxMwooZHAxNApzVmwKcDE1CihscDE2CnNWYgpwMTcKKGRwMTgKVngKcDE5CihkcDIwClZ5CnAyMQoobHAyMgpWegpwMjMKYXNzc1ZwCnAyNAoobHAyNQoobHAyNgpWc2FtZQpwMjcKYWFnMjYKYXMu",
  "fXEAKFgBAAAAYXEBXXECKEsBSv7///9L/00AAUoAAAEASpDu/v9MMTA5OTUxMTYyNzc3NkwKTDExODA1OTE2MjA3MTc0MTEzMDM0MjRMCkc/+AAAAAAAAEkwMQpJMDAKTmVYAQAAAHRxAyhLAXRxBFgBAAAAdXEFKEsBSwJ0cQZYAQAAAHZxByhLAUsCSwN0cQhYAQAAAHdxCShLAUsCSwNLBHRxClgBAAAAc3ELWAoAAABow6nkuJYKJ3EncQxYAQAAAGVxDX1xDlgBAAAAbHEPXXEQWAEAAABicRF9cRJYAQAAAHhxE31xFFgBAAAAeXEVXXEWWAEAAAB6cRdhc3NYAQAAAHBxGF1xGShdcRpYBAAAAHNhbWVxG2FoGmV1Lg==",
  "gAJ9cQAoWAEAAABhcQFdcQIoSwFK/v///0v/TQABSgAAAQBKkO7+/4oGAAAAAAABigkAAAAAAAAAAEBHP/gAAAAAAACIiU5lWAEAAAB0cQNLAYVxBFgBAAAAdXEFSwFLAoZxBlgBAAAAdnEHSwFLAksDh3EIWAEAAAB3cQkoSwFLAksDSwR0cQpYAQAAAHNxC1gKAAAAaMOp5LiWCidxJ3EMWAEAAABlcQ19cQ5YAQAAAGxxD11xEFgBAAAAYnERfXESWAEAAAB4cRN9cRRYAQAAAHlxFV1xFlgBAAAAenEXYXNzWAEAAABwcRhdcRkoXXEaWAQAAABzYW1lcRthaBpldS4=",
  "gASVuQAAAAAAAAB9lCiMAWGUXZQoSwFK/v///0v/TQABSgAAAQBKkO7+/4oGAAAAAAABigkAAAAAAAAAAEBHP/gAAAAAAACIiU5ljAF0lEsBhZSMAXWUSwFLAoaUjAF2lEsBSwJLA4eUjAF3lChLAUsCSwNLBHSUjAFzlIwKaMOp5LiWCidxJ5SMAWWUfZSMAWyUXZSMAWKUfZSMAXiUfZSMAXmUXZSMAXqUYXNzjAFwlF2UKF2UjARzYW1llGFoGmV1Lg==",
];

/** `{"x": E()}` where unpickling `E` calls os.system, by protocols 0, 2 and 4. */
const HOSTILE = [
  "KGRwMApWeApwMQpjcG9zaXgKc3lzdGVtCnAyCihWZWNobyBvd25lZApwMwp0cDQKUnA1CnMu",
  "gAJ9cQBYAQAAAHhxAWNwb3NpeApzeXN0ZW0KcQJYCgAAAGVjaG8gb3duZWRxA4VxBFJxBXMu",
  "gASVLAAAAAAAAAB9lIwBeJSMBXBvc2l4lIwGc3lzdGVtlJOUjAplY2hvIG93bmVklIWUUpRzLg==",
];

describe("a pickle", () => {
  it.each(SAME)("of every protocol is read as the data it was written from (%#)", (text) => {
    const data = readPickle(bytes(text)) as Map<string, unknown>;
    expect(data.get("a")).toEqual([1, -2, 255, 256, 65536, -70000, 2 ** 40, 2n ** 70n, 1.5, true, false, null]);
    expect(["t", "u", "v", "w"].map((key) => data.get(key))).toEqual([[1], [1, 2], [1, 2, 3], [1, 2, 3, 4]]);
    expect(data.get("s")).toBe("hé世\n'q'");
    expect([data.get("e"), data.get("l")]).toEqual([new Map(), []]);
    expect(data.get("b")).toEqual(new Map([["x", new Map([["y", ["z"]]])]]));
    const [first, second] = data.get("p") as unknown[];
    expect(first).toEqual(["same"]);
    expect(second).toBe(first);
  });

  it("holds sets and bytes", () => {
    const data = readPickle(bytes("gAWVIQAAAAAAAABdlCiPlChLAZAoSwKRlEMCYWKUlgIAAAAAAAAAY2SUZS4="));
    expect(data).toEqual([new Set([1]), new Set([2]), Uint8Array.of(97, 98), Uint8Array.of(99, 100)]);
  });

  it.each(HOSTILE)("that would call a function is refused where it asks for it (%#)", (text) => {
    expect(() => readPickle(bytes(text))).toThrow(/instruction (GLOBAL|STACK_GLOBAL) at byte \d+ would run code/);
  });

  it("that is cut off anywhere is refused with a message", () => {
    for (const text of SAME) {
      const whole = bytes(text);
      for (let length = 0; length < whole.length; length++) {
        expect(() => readPickle(whole.subarray(0, length)), `${length}`).toThrow(/^ParseError: pickle: /);
      }
    }
  });

  it("with any byte changed is read or refused, and nothing else happens", () => {
    const whole = bytes(SAME[3] ?? "");
    for (let at = 0; at < whole.length; at++) {
      for (const value of [0, 0x28, 0x65, 0x75, 0x94, 0xff]) {
        const changed = whole.slice();
        changed[at] = value;
        try {
          readPickle(changed);
        } catch (error) {
          expect(String(error)).toMatch(/^TidemarkError: ParseError: pickle: /);
        }
      }
    }
  });
});

describe("a text of many bytes", () => {
  it("is what was written, wherever characters lie", () => {
    for (const shift of [0, 1, 2, 3]) {
      const text = `${"x".repeat(shift)}${"aé世😀".repeat(3000)}`;
      expect(utf8(Buffer.from(text))).toBe(text);
    }
  });

  it("that is no UTF-8 is taken byte by byte, in a time that grows with it", () => {
    const bytes = new Uint8Array(2 ** 20).fill(0x80);
    expect(utf8(bytes)).toBe("\x80".repeat(2 ** 20));
    expect(utf8(Uint8Array.of(0x61, 0xff))).toBe("a\xff");
  });
});
