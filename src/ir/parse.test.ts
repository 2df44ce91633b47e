/** @file What the parser refuses: each problem with its place, all of one kind at once. */
import { describe, expect, test } from "vitest";
import { TidemarkError } from "../base/errors.ts";
import { DTYPES } from "../kernel/dtype.ts";
import { allOps } from "../ops/all.ts";
import { parse } from "./parse.ts";
import { print } from "./print.ts";

function refusal(text: string): { code: string; summary: string } {
  try {
    parse(text, allOps);
  } catch (error) {
    if (error instanceof TidemarkError) return { code: error.code, summary: error.summary };
    throw error;
  }
  throw new Error("accepted");
}

/** One function f of x: f32[4] and y: f32[3] around the lines. */
function inFunction(...lines: readonly string[]): string {
  return ["func f(x: f32[4], y: f32[3]) {", ...lines.map((line) => `  ${line}`), "  return x", "}"].join("\n");
}

describe("meaningless text", () => {
  test.each([
    ["z: f32[4] = tanhh(x)", "2:15: unknown operation tanhh"],
    ["z: f32[4] = tanh(q)", "2:20: unknown value q: it is not defined above"],
    ["z: f32[4] = tanh(z)", "2:20: unknown value z: it is not defined above"],
    ["z: f32[5] = tanh(x)", "2:3: z is written as f32[5], tanh makes f32[4]"],
    ["z: f64[4] = tanh(x)", "2:3: z is written as f64[4], tanh makes f32[4]"],
    ["x: f32[4] = tanh(x)", "2:3: x is defined twice"],
    ["z: f32[4] = add(x, y)", "2:15: ShapeMismatch: add: shapes differ: f32[4], f32[3]"],
    ["z: f32[4], w: f32[4] = tanh(x)", "2:26: tanh has 1 results, 2 are named"],
    ["z: f32[4] = clamp(x) {min=0}", "2:15: clamp needs the attribute max"],
    ["z: f32[4] = clamp(x) {min=0, max=[1]}", "2:15: attribute max of clamp is a number, got [1]"],
    ["z: f32[4] = tanh(x) {axis=1}", "2:15: tanh has no attribute axis (it has none)"],
    ["z: f32[] = sum(x) {axis=0, axes=[0]}", "2:14: sum has no attribute axis (it has axes)"],
    ["z: f32[] = sum(x) {axes=[0], axes=[0]}", "2:32: attribute axes is given twice"],
    ["z: f32[4] = call(x)", "2:15: InvalidGraph: call: has 0 regions, needs 1"],
  ])("%s", (line, message) => {
    expect(refusal(inFunction(line))).toEqual({ code: "InvalidGraph", summary: message });
  });

  test("is reported all at once, and one mistake is one message", () => {
    const text = inFunction(
      "a: f32[4] = tanhh(x)",
      "b: f32[4] = tanh(a)",
      "c: f32[4] = add(q, r)",
      "b: f32[4] = neg(b)",
    );
    expect(refusal(text).summary).toBe(`4 problems
  2:15: unknown operation tanhh
  4:19: unknown value q: it is not defined above
  4:22: unknown value r: it is not defined above
  5:3: b is defined twice`);
  });

  test("includes functions and regions", () => {
    const region = "z: f32[4] = call(x) { func g(p: f32[4]) { return x } }";
    expect(refusal(inFunction(region)).summary).toBe("2:52: unknown value x: it is not defined above");
    expect(refusal("func f() { return }\nfunc f() { return }").summary).toBe("2:6: function f is defined twice");
    expect(refusal("func f() { return x }").summary).toBe("1:19: unknown value x: it is not defined above");
  });

  test("names the file when it is known", () => {
    expect(() => parse("func f() { return x }", allOps, { file: "a.ir" })).toThrow(
      "InvalidGraph: a.ir:1:19: unknown value x",
    );
  });
});

describe("unreadable text", () => {
  test.each([
    ["z f32[4] = tanh(x)", '2:5: expected ":" and a type after the name, found "f32"'],
    ["z: f8[4] = tanh(x)", `2:6: expected an element type (${DTYPES.join(", ")}), found "f8"`],
    ["z: f32[-4] = tanh(x)", '2:10: expected a whole number as extent, found "-4"'],
    ["z: f32[4] tanh(x)", '2:13: expected "=" after the type, found "tanh"'],
    ["z: f32[4] = tanh x", '2:20: expected "(" after the operation, found "x"'],
    ["z: f32[4] = tanh(3)", '2:20: expected the name of a value, found "3"'],
    ["z: f32[4] = tanh(x) {a=}", '2:26: expected a number, word, string or list, found "}"'],
    ["z: f32[4] = tanh(x) ~0", '2:24: expected a replay number ≥ 1, found "0"'],
    ["z: f32[4] = tanh(x) $", '2:23: expected a name, found "$"'],
  ])("%s", (line, message) => {
    expect(refusal(inFunction(line))).toEqual({ code: "ParseError", summary: message });
  });

  test("is reported line by line", () => {
    const text = inFunction("a f32[4] = tanh(x)", "b: f32[4] = tanh(x)", "c: f32[4] = tanh(3)");
    expect(refusal(text).summary).toBe(`2 problems
  2:5: expected ":" and a type after the name, found "f32"
  4:20: expected the name of a value, found "3"`);
  });

  test("may end too early", () => {
    expect(refusal("func f(x: f32[4]) {").summary).toBe(
      '1:20: expected a statement or "return", found the end of the text',
    );
    expect(refusal("fun f() { }").summary).toBe('1:1: expected "func", found "fun"');
  });
});

describe("text without measure", () => {
  test("is refused where things are inside of each other more than a hundred times", () => {
    const regions = (levels: number): string => {
      const open = "  v: f32[4] = call(a) { func f(a: f32[4]) {\n".repeat(levels);
      return `func t(a: f32[4]) {\n${open}  v: f32[4] = tanh(a)\n${"return v } }\n".repeat(levels)}return v\n}\n`;
    };
    expect(parse(regions(100), allOps)).toHaveLength(1);
    expect(() => parse(regions(5000), allOps)).toThrow("more than 100 levels inside of each other");
    const list = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
    const text = `func t(a: f32[4]) {\n  v: f32[] = sum(a) {axes=${list}}\n  return v\n}\n`;
    expect(() => parse(text, allOps)).toThrow("more than 100 levels inside of each other");
  });

  test("is refused where a tensor has more elements than any can have", () => {
    const text = "func t(a: f32[99999999,99999999,99999999]) {\n  return a\n}\n";
    expect(() => parse(text, allOps)).toThrow("1:11: more than 2,147,483,647 elements");
  });
});

describe("free text", () => {
  test("comments, spaces and line breaks do not matter", () => {
    const loose = `
      // a sentence; backward is only a phase when it stands alone
      func f(x: f32[4]) { // the square
        z: f32[4]=mul(x,x)   // not a location
        return z }`;
    expect(print(parse(loose, allOps))).toBe("func f(x: f32[4]) {\n  z: f32[4] = mul(x, x)\n  return z\n}\n");
  });

  test("written defaults are read and left out again", () => {
    const text = "func f() {\n  z: f32[] = full() {value=2, dtype=f32, shape=[]}\n  return z\n}\n";
    expect(print(parse(text, allOps))).toContain("full() {value=2}");
  });

  test("phases and locations are read back", () => {
    const text = "func f(x: f32[4]) {\n  // update\n  z: f32[4] = neg(x)  // m.ts:4:1 in decoder\n  return z\n}\n";
    const [graph] = parse(text, allOps);
    expect(graph?.nodes[0]).toMatchObject({ phase: "update", where: "m.ts:4:1 in decoder", replay: 0 });
  });

  test("nothing is a module of no functions", () => {
    expect(parse("// nothing\n", allOps)).toEqual([]);
  });
});
