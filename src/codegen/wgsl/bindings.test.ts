/** @file Parts of the arena for the operands of a dispatch: apart, joined, shifted, refused. */
import { describe, expect, it } from "vitest";
import type { DType } from "../../kernel/dtype.ts";
import { bindingsOf, type Span } from "./bindings.ts";

const LIMITS = { storageBuffers: 8, bindingBytes: 2 ** 20 };

/** An operand that is read, or written. */
const span = (address: number, elements: number, isWritten = false, dtype: DType = "f32"): Span => ({
  ...{ address, elements, isWritten, dtype },
});

describe("parts of the arena that a dispatch is given", () => {
  it("are the operands themselves where they are apart", () => {
    expect(bindingsOf([span(0, 64), span(256, 10, true), span(1024, 3, true, "i32")], LIMITS)).toEqual({
      parts: ["f32", "f32", "i32"],
      pieces: [1, 1, 1],
      pieceBytes: 2 ** 20,
      ranges: [
        { from: 0, to: 256 },
        { from: 256, to: 296 },
        { from: 1024, to: 1036 },
      ],
      spans: [0, 1, 2].map((part) => ({ part, isShifted: false })),
      shifts: [],
    });
  });

  it("are one for a result over its operand, of words where types differ", () => {
    const { parts, spans } = bindingsOf([span(512, 8), span(512, 8, true), span(0, 1)], LIMITS);
    expect(parts).toEqual(["f32", "f32"]);
    expect(spans.map(({ part }) => part)).toEqual([1, 1, 0]);
    expect(bindingsOf([span(512, 8), span(512, 8, true, "i32")], LIMITS).parts).toEqual(["u32"]);
  });

  it("start at multiples of 256 bytes, and operands at elements of them", () => {
    const { ranges, shifts, spans } = bindingsOf([span(300, 5), span(320, 5, true), span(2000, 1)], LIMITS);
    expect(ranges).toEqual([
      { from: 256, to: 340 },
      { from: 1792, to: 2004 },
    ]);
    expect(shifts).toEqual([11, 16, 52]);
    expect(spans.every(({ isShifted }) => isShifted)).toBe(true);
  });

  it("have whole words for bytes, which are atomic where some are written", () => {
    const read = bindingsOf([span(256, 5, false, "bool")], LIMITS);
    expect([read.parts, read.ranges]).toEqual([["u32"], [{ from: 256, to: 264 }]]);
    expect(bindingsOf([span(256, 5, true, "bool")], LIMITS).parts).toEqual(["atomic<u32>"]);
    expect(bindingsOf([span(259, 5, false, "bool")], LIMITS).shifts).toEqual([3]);
  });

  it("have a word also for operands without elements", () => {
    expect(bindingsOf([span(256, 0)], LIMITS).ranges).toEqual([{ from: 256, to: 260 }]);
  });

  it("are joined across the smallest gaps where there are too many", () => {
    const spans = [0, 1024, 1536, 8192].map((address) => span(address, 64));
    const { ranges, shifts } = bindingsOf(spans, { ...LIMITS, storageBuffers: 2 });
    expect(ranges).toEqual([
      { from: 0, to: 1792 },
      { from: 8192, to: 8448 },
    ]);
    expect(shifts).toEqual([256, 384]);
  });

  it("are cut into pieces where they are larger than a binding, and counted as such", () => {
    const few = { storageBuffers: 4, bindingBytes: 1024 };
    const { parts, pieces, ranges, shifts } = bindingsOf([span(512, 600), span(4096, 10, true)], few);
    expect([parts, pieces, shifts]).toEqual([["f32", "f32"], [3, 1], []]);
    expect(ranges).toEqual([
      { from: 512, to: 1536 },
      { from: 1536, to: 2560 },
      { from: 2560, to: 2912 },
      { from: 4096, to: 4136 },
    ]);
    // three pieces and two are one too many; together with what is between them they are four
    const joined = bindingsOf([span(0, 544), span(2304, 300)], few);
    expect([joined.pieces, joined.shifts, joined.ranges.length]).toEqual([[4], [576], 4]);
  });

  it("are refused with the numbers where they need too many bindings, or indices that are too large", () => {
    expect(() => bindingsOf([span(0, 2 ** 22)], LIMITS)).toThrow(
      "TargetUnsupported: the operands of a kernel need 16 bindings of 1,048,576 bytes: webgpu has 8",
    );
    const far = [0, 2 ** 21, 2 ** 22].map((address) => span(address, 64));
    expect(() => bindingsOf(far, { ...LIMITS, storageBuffers: 2 })).toThrow(
      "TargetUnsupported: the operands of a kernel need 3 bindings of 1,048,576 bytes: webgpu has 2",
    );
    const large = { storageBuffers: 8, bindingBytes: 2 ** 30 };
    expect(() => bindingsOf([span(0, 2 ** 31, false, "bool")], large)).toThrow(
      "TargetUnsupported: an operand of 2,147,483,648 bytes: indices of webgpu reach 2,147,483,648 elements",
    );
    expect(bindingsOf([span(0, 2 ** 30)], large).pieces).toEqual([4]);
  });
});
