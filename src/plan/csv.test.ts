/** @file MiniMalloc's format is read and written without loss, and faults are named by line. */
import { describe, expect, it } from "vitest";
import { boundOf } from "./bound.ts";
import { parseCsv, printCsv } from "./csv.ts";
import { place } from "./place.ts";

const text = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n";

describe("MiniMalloc's format", () => {
  it("reads and writes problems unchanged", () => {
    const { problem, names, offsets } = parseCsv(text, 12);
    expect(problem.capacity).toBe(12);
    expect(offsets).toBeNull();
    expect(printCsv(problem, undefined, names)).toBe(text);
    expect(place(problem, boundOf(problem).bytes).height).toBe(12);
  });

  it("writes offsets and reads them back", () => {
    const { problem } = parseCsv(text);
    const { offsets } = place(problem, 0);
    const again = parseCsv(printCsv(problem, offsets));
    expect(again.offsets).toEqual(offsets);
    expect(again.problem).toEqual(problem);
  });

  it("finds columns by name", () => {
    expect(parseCsv("size,id,upper,lower\r\n7,x,5,2\r\n").problem.buffers[0]).toMatchObject({
      bytes: 7,
      lifespan: { start: 2, end: 5 },
    });
  });

  it("refuses sizes whose sum is beyond what is exact", () => {
    expect(() => parseCsv("id,lower,upper,size\na,0,3,9007199254740991\nb,1,2,2\n")).toThrow(/all sizes together/);
  });

  it("reports all faulty lines at once", () => {
    expect(() => parseCsv("id,lower,upper,size\na,0,1,x\nb,3,3,1\nc,0,1,2\n")).toThrow(
      'ParseError: csv: line 2: not a whole number in "a,0,1,x"\n  line 3: lower 3 is not below upper 3',
    );
    expect(() => parseCsv("id,start,end,size\n")).toThrow(/no column lower, upper/);
  });

  it("reports twenty of many, each cut to a length that can be read", () => {
    const lines = Array.from({ length: 1000 }, (_, i) => `b${i},0,1,${"x".repeat(10_000)}`);
    const refused = (): unknown => parseCsv(`id,lower,upper,size\n${lines.join("\n")}`);
    expect(refused).toThrow(/line 21: .*\n {2}and 980 more/);
    expect(refused).not.toThrow(/x{201}/);
  });
});
