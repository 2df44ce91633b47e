/** @file Lifespans and renamed storage of small programs. */
import { describe, expect, it } from "vitest";
import { ProgramBuilder } from "../../tests/support/plan-programs.ts";
import { liveness, storagesOf } from "./liveness.ts";

describe("liveness", () => {
  it("lasts from the writing step to the last reader, half-open", () => {
    const b = new ProgramBuilder();
    const x = b.param("x", [4]);
    const unused = b.param("unused", [4]);
    const y = b.call("f", [x]);
    const dead = b.call("f", [x]);
    const z = b.call("g", [y]);
    const spans = liveness(b.finish("p", [z]));
    expect([x, unused, y, dead, z].map((v) => spans.get(v))).toEqual([
      { start: 0, end: 2 },
      { start: 0, end: 1 },
      { start: 0, end: 3 },
      { start: 1, end: 2 },
      { start: 2, end: 4 },
    ]);
  });

  it("keeps persistent parameters for the whole run, donated ones to their last use", () => {
    const b = new ProgramBuilder();
    const [kept, state, given] = [b.param("kept", [4]), b.param("state", [4]), b.param("given", [4])];
    const y = b.call("f", [kept, state, given]);
    const z = b.call("f", [y]);
    const spans = liveness(
      b.finish("p", [z], {
        persistent: [kept, state],
        donated: [
          [state, 0],
          [given, -1],
        ],
      }),
    );
    expect([kept, state, given].map((v) => spans.get(v)?.end)).toEqual([3, 1, 1]);
  });
});

describe("storagesOf", () => {
  it("joins a value and all its renamings, which live as long as any of them", () => {
    const b = new ProgramBuilder();
    const x = b.param("x", [4]);
    const y = b.call("f", [x]);
    const flat = b.rename(y);
    const flatter = b.rename(flat);
    const z = b.call("g", [x]);
    const r = b.call("g", [flatter, z]);
    const { all, of } = storagesOf(b.finish("p", [r]));
    expect(of(flatter)).toBe(of(y));
    expect(of(y).values).toEqual([y, flat, flatter]);
    expect(of(y).lifespan).toEqual({ start: 0, end: 5 });
    expect(all.map((s) => s.isParam)).toEqual([true, false, false, false]);
  });
});
