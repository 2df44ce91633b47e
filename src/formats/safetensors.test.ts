/** @file Every rule of the safetensors header, broken one at a time, and what layOut writes. */
import { describe, expect, it } from "vitest";
import { type FileTensor, headerBytes, layOut, PREFIX_BYTES, parseHeader } from "./safetensors.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const header = (entries: object): Uint8Array => encode(JSON.stringify(entries));
const entry = (begin: number, end: number, more: object = {}) => ({
  dtype: "F32",
  shape: [(end - begin) / 4],
  data_offsets: [begin, end],
  ...more,
});

/** A prefix that announces a header of so many bytes. */
function prefix(bytes: bigint): Uint8Array {
  const array = new Uint8Array(PREFIX_BYTES);
  new DataView(array.buffer).setBigUint64(0, bytes, true);
  return array;
}

describe("the length of a header", () => {
  it("is refused when the file is too short, cut off, or announces more than the format allows", () => {
    expect(() => headerBytes(new Uint8Array(7), 7)).toThrow("7 bytes");
    expect(() => headerBytes(prefix(100n), 50)).toThrow("cut off");
    expect(() => headerBytes(prefix(100_000_001n), undefined)).toThrow("at most 100,000,000");
    expect(() => headerBytes(prefix(2n ** 64n - 1n), undefined)).toThrow("at most");
    expect(headerBytes(prefix(42n), 50)).toBe(42);
  });
});

describe("a header", () => {
  const broken: Readonly<Record<string, readonly [Uint8Array, number, string]>> = {
    "does not begin with a brace": [encode(" {}"), 0, "does not begin with {"],
    "is not UTF-8": [new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]), 0, "not UTF-8"],
    "is not JSON": [encode('{"w":'), 0, "not JSON"],
    "starts after byte 0": [header({ w: entry(4, 8) }), 8, "leaves a hole"],
    "has a hole": [header({ a: entry(0, 4), b: entry(8, 12) }), 12, "b leaves a hole"],
    "has an overlap": [header({ a: entry(0, 8), b: entry(4, 12) }), 12, "b overlaps"],
    "has a tensor that ends before it begins": [header({ w: entry(8, 4, { shape: [1] }) }), 8, "before it begins"],
    "has a shape that overflows": [header({ w: entry(0, 4, { shape: [2 ** 40, 2 ** 40] }) }), 4, "can be counted"],
    "has a tensor of half a byte": [header({ w: entry(0, 1, { dtype: "F4", shape: [1] }) }), 1, "whole bytes"],
    "has another size than its shape": [header({ w: entry(0, 8, { shape: [3] }) }), 8, "has 12 bytes"],
    "leaves bytes at the end": [header({ w: entry(0, 4) }), 8, "after the last tensor"],
    "has fewer bytes than tensors": [header({ w: entry(0, 8) }), 4, "cut off"],
    "names a tensor twice": [
      encode(`{"w":${JSON.stringify(entry(0, 4))},"w":${JSON.stringify(entry(0, 4))}}`),
      4,
      "twice",
    ],
    "names a tensor twice, once escaped": [
      encode(`{"w":${JSON.stringify(entry(0, 4))},"\\u0077":${JSON.stringify(entry(0, 4))}}`),
      4,
      "twice",
    ],
    "has a type that does not exist": [header({ w: entry(0, 4, { dtype: "F33" }) }), 4, "F33"],
    "has a type from Object.prototype": [header({ w: entry(0, 4, { dtype: "toString" }) }), 4, "toString"],
    "has a negative extent": [header({ w: entry(0, 4, { shape: [-1] }) }), 4, "whole numbers"],
    "has three offsets": [header({ w: entry(0, 4, { data_offsets: [0, 4, 4] }) }), 4, "data_offsets"],
    "has fractions as offsets": [header({ w: entry(0, 4, { data_offsets: [0, 4.5] }) }), 4, "data_offsets"],
    "has no entry for a tensor": [encode('{"w":null}'), 0, "undefined"],
    "has metadata of numbers": [header({ __metadata__: { epoch: 3 } }), 0, "texts to texts"],
  };
  for (const [name, [bytes, dataBytes, message]] of Object.entries(broken)) {
    it(`that ${name} is refused`, () => {
      expect(() => parseHeader(bytes, dataBytes)).toThrow(message);
      expect(() => parseHeader(bytes, dataBytes)).toThrow(/^InvalidFile/);
    });
  }

  it("may have scalars, empty tensors, metadata, padding, keys of any kind", () => {
    const bytes = encode(
      `${JSON.stringify({
        __metadata__: { "a{,b": "}" },
        ["__proto__"]: entry(0, 4),
        empty: entry(4, 4, { shape: [3, 0] }),
        scalar: entry(4, 8, { shape: [] }),
        'quo"te,{': entry(8, 12),
      })}   `,
    );
    const { tensors, metadata } = parseHeader(bytes, 12);
    expect(tensors.map(({ name }) => name)).toEqual(["__proto__", "empty", "scalar", 'quo"te,{']);
    expect(metadata).toEqual({ "a{,b": "}" });
  });

  it("of 1,137 tensors in all 22 types is read back as it was laid out", () => {
    const types = [
      "F64",
      "C64",
      "F32",
      "I64",
      "U64",
      "BF16",
      "F16",
      "I16",
      "U16",
      "I32",
      "U32",
      "U8",
      "I8",
      "BOOL",
    ] as const;
    const narrow = ["F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F6_E2M3", "F6_E3M2", "F4"] as const;
    const all = [...types, ...narrow];
    const unplaced = Array.from({ length: 1137 }, (_, i) => ({
      name: `layer.${i}`,
      type: all[i % all.length] as FileTensor["type"],
      shape: [i % 5, 8],
    }));
    const { head, tensors } = layOut(unplaced, {});
    expect(head.length % 8).toBe(0);
    const length = headerBytes(head, undefined);
    expect(PREFIX_BYTES + length).toBe(head.length);
    const read = parseHeader(head.subarray(PREFIX_BYTES), tensors.at(-1)?.end ?? 0);
    const byName = (list: readonly FileTensor[]) => [...list].sort((a, b) => (a.name < b.name ? -1 : 1));
    expect(byName(read.tensors)).toEqual(byName(tensors));
  });
});
