/**
 * @file The scalar functions on single values, in the syntax of C: operators, and calls of functions that are named after a
 * type and what they do (`f32_max`, `i32_div`, `i32_of_f32`). `scalarPrelude` is those functions, for C and for languages that
 * have its declarations (CUDA). Nothing here rounds otherwise than the scalar language says; integers wrap because they are
 * added and multiplied as unsigned ones.
 */
import { InternalError } from "../../base/invariant.ts";
import {
  type DType,
  type FloatScalar,
  isBool,
  isFloatScalar,
  kindOf,
  laneBytes,
  type ScalarType,
  twinOf,
  typeOf,
} from "../../kernel/dtype.ts";
import type { Expr, ScalarFn } from "../../kernel/expr.ts";
import { elementForm } from "../native/elements.ts";
import { INFIX, literal } from "../native/scalar.ts";
import type { Dialect } from "./print-c-like.ts";

/** As much of a call as its text depends on. */
export type ScalarCall = Pick<Extract<Expr, { kind: "call" }>, "fn" | "args" | "dtype">;

/** Functions on integers that wrap or shift zeros in: done on the unsigned type. */
const UNSIGNED: ReadonlySet<ScalarFn> = new Set(["add", "sub", "mul", "shl", "shr_u"]);
const SHIFTS: Partial<Record<ScalarFn, string>> = { shl: "<<", shr_u: ">>", shr_s: ">>" };

const unsignedOf = (dtype: ScalarType): string => (laneBytes(dtype) === 8 ? "u64" : "u32");

/** The count of a shift: a constant, or an index in [0, 32). */
function shiftCount({ fn, args, dtype }: ScalarCall, text: string): string {
  const count = args[1];
  if (fn === "shl" && count?.kind === "index") return `(u32)${text}`;
  if (count?.kind !== "const") throw new InternalError("a shift by something that is not constant");
  return String(Number(count.value) & (8 * laneBytes(dtype) - 1));
}

function convertText(from: ScalarType, to: ScalarType, a: string): string {
  if (isBool(to)) return `(${a} != 0)`;
  const saturates = isFloatScalar(from) && kindOf(to) === "integer";
  return saturates ? `${to}_of_${from}(${a})` : `(${to})${a}`;
}

function integerText(call: ScalarCall, [a = "", b = ""]: readonly string[]): string {
  const { fn, dtype } = call;
  const shift = SHIFTS[fn];
  const [sign, right] = shift ? [shift, shiftCount(call, b)] : [INFIX[fn] ?? "", b];
  if (!UNSIGNED.has(fn)) return `(${a} ${sign} ${right})`;
  const word = unsignedOf(dtype);
  return `(${dtype})((${word})${a} ${sign} ${shift ? right : `(${word})${right}`})`;
}

/** Applies a function; `texts` are the arguments. */
export function applyText(call: ScalarCall, texts: readonly string[]): string {
  const { fn, args, dtype } = call;
  const [a = "", b = "", c = ""] = texts;
  const from = args[0]?.dtype ?? dtype;
  switch (fn) {
    case "pick":
      return `(${a} ? ${b} : ${c})`;
    case "convert":
      return convertText(from, dtype, a);
    case "bitcast":
      return `${dtype}_bits(${a})`;
    case "wrap":
    case "extend":
      return `(${dtype})${a}`;
    case "not":
      return isBool(dtype) ? `(!${a})` : `(~${a})`;
    case "neg":
      return isFloatScalar(dtype) ? `(-${a})` : `(${dtype})(0 - (${unsignedOf(dtype)})${a})`;
  }
  const isInteger = kindOf(dtype) === "integer";
  if (isInteger && fn !== "div" && (INFIX[fn] || SHIFTS[fn])) return integerText(call, texts);
  if (INFIX[fn] && !(isInteger && fn === "div")) return `(${a} ${INFIX[fn]} ${b})`;
  return `${dtype}_${fn}(${texts.join(", ")})`;
}

/** A constant, every bit of it. */
export function literalText(dtype: ScalarType, value: number | bigint): string {
  return isBool(dtype) ? String(typeOf(dtype).round(Number(value))) : literal(dtype, value);
}

/** Elements in memory as single values: a bool is 0 or 1 in both. */
export function elementText(dtype: DType): ReturnType<Dialect["element"]> {
  const { c, lane, element } = elementForm(dtype);
  const value = isBool(typeOf(dtype).compute) ? (text: string): string => text : lane;
  return { type: c, value, element };
}

const LETTER: Readonly<Record<FloatScalar, string>> = { f32: "f", f64: "" };
/** Of a float that becomes an integer: where it is below and above all of them. */
const BEYOND: Readonly<Record<FloatScalar, readonly [string, string]>> = {
  f32: ["a < -2147483648.0f", "a >= 2147483648.0f"],
  f64: ["a <= -2147483649.0", "a >= 2147483648.0"],
};

function floatPrelude(qualifier: string, t: FloatScalar): string {
  const [bits, letter] = [twinOf(t), LETTER[t]];
  const library = { sqrt: "sqrt", floor: "floor", ceil: "ceil", nearest: "rint", trunc: "trunc" };
  const unary = Object.entries(library).map(
    ([name, fn]) => `${qualifier} ${t} ${t}_${name}(${t} a) { return ${fn}${letter}(a); }`,
  );
  const [low, high] = BEYOND[t];
  // of equals only zeros differ in bits: -0 is less than 0
  return `${qualifier} ${bits} ${bits}_bits(${t} a) { ${bits} b; memcpy(&b, &a, sizeof a); return b; }
${qualifier} ${t} ${t}_bits(${bits} a) { ${t} b; memcpy(&b, &a, sizeof a); return b; }
${unary.join("\n")}
${qualifier} ${t} ${t}_abs(${t} a) { return ${t}_bits(${bits}_bits(a) & (${bits})(~(${unsignedOf(t)})0 >> 1)); }
${qualifier} ${t} ${t}_min(${t} a, ${t} b) {
  return a < b ? a : b < a ? b : a == b ? ${t}_bits(${bits}_bits(a) | ${bits}_bits(b)) : a + b;
}
${qualifier} ${t} ${t}_max(${t} a, ${t} b) {
  return a > b ? a : b > a ? b : a == b ? ${t}_bits(${bits}_bits(a) & ${bits}_bits(b)) : a + b;
}
${qualifier} i32 i32_of_${t}(${t} a) {
  return a != a ? 0 : ${low} ? (i32)0x80000000u : ${high} ? 0x7fffffff : (i32)a;
}
`;
}

/** The functions that the text calls; `qualifier` is what stands before each. */
export function scalarPrelude(qualifier: string): string {
  return `${floatPrelude(qualifier, "f32")}${floatPrelude(qualifier, "f64")}${qualifier} i32 i32_abs(i32 a) { return a < 0 ? (i32)(0u - (u32)a) : a; }
${qualifier} i32 i32_min(i32 a, i32 b) { return a < b ? a : b; }
${qualifier} i32 i32_max(i32 a, i32 b) { return a > b ? a : b; }
${qualifier} i32 i32_div(i32 a, i32 b) { return b == 0 ? 0 : b == -1 ? (i32)(0u - (u32)a) : a / b; }
`;
}

/** What C and its relatives have in common; types are those that the prelude names. */
export const C_DIALECT: Dialect = {
  types: { f32: "f32", f64: "f64", i32: "i32", i64: "i64", bool: "i32" },
  index: "idx",
  element: elementText,
  literal: literalText,
  apply: applyText,
  ownCall: () => null,
  fma: (dtype, a, b, c) => `fma${isFloatScalar(dtype) ? LETTER[dtype] : ""}(${a}, ${b}, ${c})`,
  quotient({ of, sign, by, most }) {
    const [word, suffix] = most < 2 ** 32 ? ["u32", "u"] : ["u64", "ull"];
    return `(idx)((${word})(${of}) ${sign} ${by}${suffix})`;
  },
  convert: { toWord: (index) => `(i32)(${index})`, toIndex: (word) => `(idx)${word}` },
  constant: (type, name, text) => `const ${type} ${name} = ${text};`,
  variable: (type, name) => `${type} ${name};`,
  least: (a, b) => `(${a} < ${b} ? ${a} : ${b})`,
  loop: (name, end) => `for (idx ${name} = 0; ${name} < ${end}; ${name}++)`,
  // longer loops around others are more code than they are worth on a processor
  unroll: (times) => (times > 8 ? null : `#pragma GCC unroll ${times}`),
  writesOut: () => false,
  held: (_, text) => text,
  assign: (place, element) => `${place} = ${element};`,
  copy: () => null,
};
