/**
 * @file WGSL as a dialect of what block programs are printed in (codegen/block/print-c-like.ts). It has f32, i32 and bool, and
 * integers that wrap by themselves.
 *
 * Drivers may take it that there are neither NaN nor infinities; so NaN is told by its bits, and constants that are not finite
 * are the bits of a number that a function is given, which no compiler rejects. They may also take sums apart and fuse products
 * with sums ((a + b) - b becomes a, which undoes what the mathematical functions do); so a result of arithmetic that goes straight
 * into more of it, or a product that waits in a register for its sum, passes through an exclusive or with a zero that only a run
 * knows.
 */
import { InternalError } from "../../base/invariant.ts";
import { type DType, isBool, isFloatScalar, kindOf, type ScalarType } from "../../kernel/dtype.ts";
import type { Expr, ScalarFn } from "../../kernel/expr.ts";
import type { Dialect, ElementText } from "../block/print-c-like.ts";
import { literalText, type ScalarCall } from "../block/scalar-text.ts";
import { INFIX } from "../native/scalar.ts";
import { type ElementAccess, elementTypes } from "./elements.ts";
import { EXACT_PRELUDE } from "./exact.ts";
import { HALF_PRELUDE } from "./halves.ts";

/** Numbers that are not finite, by their bits. */
const wordBits = (number: number): number => new Int32Array(Float32Array.of(number).buffer)[0] ?? 0;

const LITERALS: Readonly<Record<ScalarType, (value: number | bigint) => string>> = {
  f32(value) {
    const number = Math.fround(Number(value));
    return Number.isFinite(number) ? literalText("f32", number) : `f32_bits(${wordBits(number)})`;
  },
  i32: (value) => `i32(${Number(value) | 0})`,
  bool: (value) => (value ? "true" : "false"),
  f64: () => missing("f64"),
  i64: () => missing("i64"),
};

function missing(type: string): never {
  throw new InternalError(`WGSL has no ${type}`);
}

const COMPARISONS: ReadonlySet<ScalarFn> = new Set(["eq", "ne", "lt", "le"]);

/** What drivers take apart where one is an argument of another. */
const ARITHMETIC: ReadonlySet<ScalarFn> = new Set(["add", "sub", "mul", "div"]);

/** Whether a value is the result of some of these functions, maybe with another sign or only under a condition. */
function comesFrom(value: Expr, fns: ReadonlySet<ScalarFn>): boolean {
  if (value.kind === "guard") return comesFrom(value.then, fns) || comesFrom(value.otherwise, fns);
  if (value.kind !== "call" || !isFloatScalar(value.dtype)) return false;
  const { fn, args } = value;
  return fns.has(fn) || ((fn === "neg" || fn === "pick") && args.some((arg) => comesFrom(arg, fns)));
}

/** An argument of arithmetic, as it was rounded. */
const kept = (arg: Expr, text: string): string => (comesFrom(arg, ARITHMETIC) ? `f32_kept(${text})` : text);

const PRODUCT: ReadonlySet<ScalarFn> = new Set(["mul"]);

function shiftText({ fn, args }: ScalarCall, [a = "", b = ""]: readonly string[]): string {
  const count = args[1];
  const by = count?.kind === "const" ? `${Number(count.value) & 31}u` : `u32(${b})`;
  if (fn === "shl") return `(${a} << ${by})`;
  return fn === "shr_s" ? `(${a} >> ${by})` : `bitcast<i32>(bitcast<u32>(${a}) >> ${by})`;
}

function convertText(from: Expr | undefined, to: ScalarType, a: string): string {
  const type = from?.dtype ?? to;
  if (isBool(to)) {
    if (isBool(type)) return a;
    return isFloatScalar(type) ? `f32_ne(${a}, 0.0f)` : `(${a} != 0)`;
  }
  return isFloatScalar(type) && kindOf(to) === "integer" ? `i32_of_f32(${a})` : `${to}(${a})`;
}

/** Sums, products and quotients of floats. */
function arithmeticText({ fn, args }: ScalarCall, texts: readonly string[], exactly: boolean): string {
  const operands = args.map((arg, i) => kept(arg, texts[i] ?? ""));
  return exactly && fn === "div" ? `f32_div(${operands.join(", ")})` : `(${operands.join(` ${INFIX[fn]} `)})`;
}

function applyText(call: ScalarCall, texts: readonly string[], exactly: boolean): string {
  const { fn, args, dtype } = call;
  const [a = "", b = "", c = ""] = texts;
  const from = args[0]?.dtype ?? dtype;
  switch (fn) {
    case "pick":
      return `select(${c}, ${b}, ${a})`;
    case "convert":
      return convertText(args[0], dtype, a);
    case "bitcast":
      return `${dtype}_bits(${a})`;
    case "not":
      return isBool(dtype) ? `(!${a})` : `(~${a})`;
    case "neg":
      return `(-${a})`;
    case "shl":
    case "shr_u":
    case "shr_s":
      return shiftText(call, texts);
    case "xor":
      return isBool(dtype) ? `(${a} != ${b})` : `(${a} ^ ${b})`;
  }
  if (isFloatScalar(dtype) && ARITHMETIC.has(fn)) return arithmeticText(call, texts, exactly);
  const asFunction = COMPARISONS.has(fn) ? isFloatScalar(from) : kindOf(dtype) === "integer" && fn === "div";
  const infix = INFIX[fn];
  if (infix && !asFunction) return `(${a} ${infix} ${b})`;
  return `${from}_${fn}(${texts.join(", ")})`;
}

/** The functions that the text calls, but for roots. */
const PRELUDE = `fn f32_bits(a: i32) -> f32 { return bitcast<f32>(a); }
fn i32_bits(a: f32) -> i32 { return bitcast<i32>(a); }
var<private> zero: u32;
fn f32_kept(a: f32) -> f32 { return bitcast<f32>(bitcast<u32>(a) ^ zero); }
fn f32_nan(a: f32) -> bool { return (bitcast<u32>(a) & 0x7fffffffu) > 0x7f800000u; }
fn f32_known(a: f32, b: f32) -> bool { return !(f32_nan(a) || f32_nan(b)); }
fn f32_eq(a: f32, b: f32) -> bool { return f32_known(a, b) && a == b; }
fn f32_ne(a: f32, b: f32) -> bool { return !f32_eq(a, b); }
fn f32_lt(a: f32, b: f32) -> bool { return f32_known(a, b) && a < b; }
fn f32_le(a: f32, b: f32) -> bool { return f32_known(a, b) && a <= b; }
fn f32_min(a: f32, b: f32) -> f32 {
  if (f32_nan(a)) { return a; }
  if (f32_nan(b)) { return b; }
  if (a == b) { return bitcast<f32>(bitcast<u32>(a) | bitcast<u32>(b)); }
  return select(b, a, a < b);
}
fn f32_max(a: f32, b: f32) -> f32 {
  if (f32_nan(a)) { return a; }
  if (f32_nan(b)) { return b; }
  if (a == b) { return bitcast<f32>(bitcast<u32>(a) & bitcast<u32>(b)); }
  return select(b, a, a > b);
}
fn f32_abs(a: f32) -> f32 { return bitcast<f32>(bitcast<u32>(a) & 0x7fffffffu); }
fn f32_floor(a: f32) -> f32 { return floor(a); }
fn f32_ceil(a: f32) -> f32 { return ceil(a); }
fn f32_nearest(a: f32) -> f32 { return round(a); }
fn f32_trunc(a: f32) -> f32 { return trunc(a); }
fn i32_of_f32(a: f32) -> i32 {
  if (f32_nan(a)) { return 0; }
  if (a < -2147483648.0f) { return i32(-2147483648); }
  if (a >= 2147483648.0f) { return 2147483647; }
  return i32(a);
}
fn i32_abs(a: i32) -> i32 { return abs(a); }
fn i32_min(a: i32, b: i32) -> i32 { return min(a, b); }
fn i32_max(a: i32, b: i32) -> i32 { return max(a, b); }
fn i32_div(a: i32, b: i32) -> i32 {
  if (b == 0) { return 0; }
  if (b == -1) { return -a; }
  return a / b;
}
`;

/** The functions that the text calls; `exactly`: quotients and roots are not those of the adapter. */
export const wgslPrelude = (exactly: boolean): string =>
  `${PRELUDE}${HALF_PRELUDE}${exactly ? EXACT_PRELUDE : "fn f32_sqrt(a: f32) -> f32 { return sqrt(a); }\n"}`;

/** Types of values. */
const TYPES: Dialect["types"] = {
  f32: "f32",
  i32: "i32",
  bool: "bool",
  get f64() {
    return missing("f64");
  },
  get i64() {
    return missing("i64");
  },
};

/**
 * Statements of a loop that is written out, so that elements of a thread's arrays have constant numbers: compilers keep them in registers,
 * and do not check whether they are inside.
 */
const MOST_WRITTEN_OUT = 160;

/** The dialect of one launch; `accesses` has the elements that are not just an element of an array, by the text of their place. */
export function wgslDialect(accesses: ReadonlyMap<string, ElementAccess>, exactly: boolean): Dialect {
  const element = (dtype: DType): ElementText => ({
    type: elementTypes(dtype).own,
    value: (text) => accesses.get(text)?.read ?? text,
    element: (value) => value,
  });
  return {
    types: TYPES,
    index: "i32",
    element,
    literal: (dtype, value) => LITERALS[dtype](value),
    apply: (call, texts) => applyText(call, texts, exactly),
    ownCall: () => null,
    fma: (_, a, b, c) => `fma(${a}, ${b}, ${c})`,
    quotient: ({ of, sign, by }) => `i32(u32(${of}) ${sign} ${by}u)`,
    convert: { toWord: (index) => index, toIndex: (word) => word },
    constant: (type, name, text) => `let ${name}: ${type} = ${text};`,
    variable: (type, name) => `var ${name}: ${type};`,
    least: (a, b) => `min(${a}, ${b})`,
    loop: (name, end) => `for (var ${name}: i32 = 0; ${name} < ${end}; ${name}++)`,
    unroll: () => null,
    writesOut: (statements) => statements <= MOST_WRITTEN_OUT,
    // sums in registers are left to the compiler: they are most of a product's time
    held: (value, text) => (comesFrom(value, PRODUCT) ? `f32_kept(${text})` : text),
    assign: (text, value) => accesses.get(text)?.write(value) ?? `${text} = ${value};`,
    copy: () => null,
  };
}
