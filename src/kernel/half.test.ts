/** @file Numbers as floats of sixteen bits: every one of them, and what is between them. */
import { describe, expect, test } from "vitest";
import { brainToNumber, halfToNumber, numberToBrain, numberToHalf } from "./half.ts";

const FORMATS = [
  { name: "f16", read: halfToNumber, write: numberToHalf, infinity: 0x7c00, nan: 0x7e00 },
  { name: "bf16", read: brainToNumber, write: numberToBrain, infinity: 0x7f80, nan: 0x7fc0 },
] as const;

describe.each(FORMATS)("$name", ({ read, write, infinity, nan }) => {
  test("has every number of its bits, and one NaN", () => {
    for (let bits = 0; bits < 0x10000; bits++) {
      const x = read(bits);
      if ((bits & 0x7fff) > infinity) {
        expect(x).toBeNaN();
        expect(write(x)).toBe(nan);
      } else if (write(x) !== bits) expect(write(x), `0x${bits.toString(16)}`).toBe(bits);
    }
    expect(Object.is(read(0x8000), -0)).toBe(true);
  });

  test("rounds to the nearest, ties to even, and beyond the largest to infinity", () => {
    for (let bits = 0; bits < infinity; bits++) {
      const low = read(bits);
      // the step beyond the largest number is as large as the one before
      const high = bits + 1 === infinity ? low + (low - read(bits - 1)) : read(bits + 1);
      const middle = (low + high) / 2;
      const even = bits % 2 === 0 ? bits : bits + 1;
      // of the least steps of bf16 a quarter is no f32
      const quarter = Math.fround(low + (high - low) * 0.25);
      const found = [write(middle), write(-middle), write(quarter), write(Math.fround(low + (high - low) * 0.75))];
      const wanted = [even, even | 0x8000, bits, bits + 1];
      if (found.join() !== wanted.join()) expect(found, `0x${bits.toString(16)}`).toEqual(wanted);
    }
    expect(write(Number.POSITIVE_INFINITY)).toBe(infinity);
    expect(write(-1e300)).toBe(infinity | 0x8000);
  });
});
