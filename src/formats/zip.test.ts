/** @file Archives: written and read back, deflated by another program, and damaged in every way that can be thought of. */
import { deflateRawSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TidemarkError } from "../base/errors.ts";
import { crc32 } from "./crc32.ts";
import { inflate } from "./inflate.ts";
import { readZip, writeZip } from "./zip.ts";

const text = (words: string): Uint8Array => new TextEncoder().encode(words);

describe("deflated bytes", () => {
  it("become what they were", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 3000 }), fc.integer({ min: 0, max: 9 }), (bytes, level) => {
        const doubled = new Uint8Array([...bytes, ...bytes.subarray(0, 100), ...bytes]);
        expect(inflate(deflateRawSync(doubled, { level }), doubled.length)).toEqual(doubled);
      }),
      { numRuns: 60, seed: 1 },
    );
  });

  it("end in an error where they were changed or announce another length", () => {
    const packed = new Uint8Array(deflateRawSync(text("abcabcabcabcabc ".repeat(40))));
    expect(() => inflate(packed, 639)).toThrow("longer");
    expect(() => inflate(packed, 641)).toThrow("shorter");
    expect(() => inflate(packed.subarray(0, 5), 640)).toThrow("cut off");
    for (let i = 0; i < packed.length * 8; i++) {
      const changed = packed.slice();
      changed[i >> 3] = (changed[i >> 3] as number) ^ (1 << (i & 7));
      try {
        expect(inflate(changed, 640).length).toBe(640);
      } catch (error) {
        expect(error).toBeInstanceOf(TidemarkError);
      }
    }
  });
});

describe("an archive", () => {
  const file = writeZip([
    { name: "a.npy", bytes: text("first") },
    { name: "data/ü", bytes: new Uint8Array(0) },
  ]);

  it("is read back, and the same parts give the same bytes", () => {
    const entries = readZip(file);
    expect([...entries.keys()]).toEqual(["a.npy", "data/ü"]);
    expect(entries.get("a.npy")?.read()).toEqual(text("first"));
    expect(entries.get("data/ü")?.read().length).toBe(0);
    expect(writeZip([{ name: "x", bytes: text("y") }])).toEqual(writeZip([{ name: "x", bytes: text("y") }]));
    expect(crc32(text("123456789"))).toBe(0xcbf43926);
  });

  it("with a changed bit or cut off is read as it was or refused", () => {
    for (let i = 0; i < file.length * 8; i++) {
      const changed = file.slice();
      changed[i >> 3] = (changed[i >> 3] as number) ^ (1 << (i & 7));
      try {
        for (const entry of readZip(changed).values()) entry.read();
      } catch (error) {
        expect(error).toBeInstanceOf(TidemarkError);
      }
    }
    for (let length = 0; length < file.length; length++) {
      expect(() => readZip(file.subarray(0, length))).toThrow(TidemarkError);
    }
  });

  it("whose entries leave it, come twice, or would become terabytes is refused", () => {
    for (const name of ["../up", "a/../../b", "/root", "C:\\x", "a\\..\\b", ""]) {
      expect(() => readZip(writeZip([{ name, bytes: text("x") }]))).toThrow("leads out of it");
    }
    const twice = [1, 2].map(() => ({ name: "a", bytes: text("x") }));
    expect(() => readZip(writeZip(twice))).toThrow("twice");
    const bomb = writeZip([{ name: "a", bytes: text("x") }]);
    const view = new DataView(bomb.buffer);
    const directory = bomb.length - 22 - 47;
    view.setUint16(directory + 10, 8, true);
    view.setUint32(directory + 24, 0xfffffff0, true);
    expect(() => readZip(bomb)).toThrow("more than deflate can give");
  });
});
