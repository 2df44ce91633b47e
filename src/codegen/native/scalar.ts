/**
 * @file The scalar functions as C expressions over registers. Operators where C has them on vector types, functions of the
 * prelude otherwise. Signed integers wrap (`-fwrapv`), nothing is contracted (`-ffp-contract=off`).
 */
import { InternalError } from "../../base/invariant.ts";
import {
  type FloatScalar,
  isBool,
  isFloatScalar,
  kindOf,
  laneBytes,
  longOf,
  type ScalarType,
  typeOf,
} from "../../kernel/dtype.ts";
import type { Expr, ScalarFn } from "../../kernel/expr.ts";
import type { Combine } from "../../kernel/loops.ts";
import { vectorType } from "./options.ts";

export const INFIX: Partial<Record<ScalarFn, string>> = {
  add: "+",
  sub: "-",
  mul: "*",
  div: "/",
  and: "&",
  or: "|",
  xor: "^",
  eq: "==",
  ne: "!=",
  lt: "<",
  le: "<=",
};

const COMPARISONS: ReadonlySet<ScalarFn> = new Set(["eq", "ne", "lt", "le"]);
const PREFIX: Partial<Record<ScalarFn, string>> = { neg: "-", not: "~" };
const isLong = (dtype: ScalarType): boolean => laneBytes(dtype) === 8;

/** A number as C text, every bit of it. */
export function literal(dtype: ScalarType, value: number | bigint): string {
  return LITERALS[dtype](value);
}

const LITERALS: Readonly<Record<ScalarType, (value: number | bigint) => string>> = {
  f32: (value) => floatText(Math.fround(Number(value)), "f"),
  f64: (value) => floatText(Number(value), ""),
  i32: (value) => `(i32)${Number(value) >>> 0}u`,
  i64: (value) => `(i64)UINT64_C(${BigInt.asUintN(64, longOf(value))})`,
  bool: (value) => (value ? "-1" : "0"),
};

function floatText(number: number, letter: "f" | ""): string {
  if (Number.isNaN(number)) return `__builtin_nan${letter}("")`;
  if (!Number.isFinite(number)) return `${number < 0 ? "-" : ""}__builtin_inf${letter}()`;
  const text = Object.is(number, -0) ? "-0" : String(number);
  return `${/[.e]/.test(text) ? text : `${text}.0`}${letter}`;
}

/** A register with a constant in every lane. */
export function constantText(dtype: ScalarType, value: number | bigint, lanes: number): string {
  return `${vectorType(dtype, lanes)}_of(${literal(dtype, value)})`;
}

/** 1 where a mask holds, else 0. */
const FROM_MASK: Readonly<Record<Exclude<ScalarType, "bool">, (a: string, type: string) => string>> = {
  f32: (a, type) => `(${type})(${a} & 0x3f800000)`,
  f64: (a, type) => `__builtin_convertvector(${a} & 1, ${type})`,
  i32: (a) => `(${a} & 1)`,
  i64: (a, type) => `__builtin_convertvector(${a} & 1, ${type})`,
};

function convertText(from: ScalarType, to: ScalarType, a: string, lanes: number): string {
  const type = vectorType(to, lanes);
  if (isBool(to)) return mask(`${a} != ${constantText(from, 0, lanes)}`, from, lanes);
  if (isBool(from)) return FROM_MASK[to](a, type);
  if (kindOf(to) === "integer") return `${type}_of_${from}(${a})`;
  return `__builtin_convertvector(${a}, ${type})`;
}

/** A comparison of operands of a type, as a mask. */
function mask(text: string, operands: ScalarType, lanes: number): string {
  return isLong(operands) ? `__builtin_convertvector(${text}, ${vectorType("bool", lanes)})` : `(${text})`;
}

/** A constant that something is at most, or at least. */
interface Limit {
  readonly fn: "min" | "max";
  readonly dtype: FloatScalar;
  readonly value: number;
}

/**
 * min and max with a constant need one instruction: which operand is answered for NaN and for equals is known. For a zero,
 * `max(x, 0)` is 0 where x is -0, which adding 0 brings about.
 */
function limitText(x: string, { fn, dtype, value }: Limit, lanes: number): string | null {
  const limit = typeOf(dtype).round(value);
  if (Number.isNaN(limit)) return null;
  const text = `${vectorType(dtype, lanes)}_${fn}2(${constantText(dtype, limit, lanes)}, ${x})`;
  if (limit !== 0) return text;
  const plain = Object.is(limit, 0) === (fn === "min");
  if (plain) return text;
  return fn === "max" ? `(${text} + 0)` : null;
}

/** As much of a call as its text depends on. */
export type ScalarCall = Pick<Extract<Expr, { kind: "call" }>, "fn" | "args" | "dtype">;

/** Applies a function to registers. `texts` are the C names of the arguments. */
export function scalarText(call: ScalarCall, texts: readonly string[], lanes: number): string {
  const { fn, args, dtype: result } = call;
  const [a = "", b = "", c = ""] = texts;
  const from = args[0]?.dtype ?? result;
  const type = vectorType(result, lanes);
  switch (fn) {
    case "pick":
      return `${type}_pick(${a}, ${b}, ${c})`;
    case "convert":
      return convertText(from, result, a, lanes);
    case "bitcast":
      return `(${type})${a}`;
    case "wrap":
    case "extend":
      return `__builtin_convertvector(${a}, ${type})`;
    case "shl":
    case "shr_u":
    case "shr_s": {
      const count = args[1];
      const unsigned = vectorType(result, lanes).replace("i", "u");
      if (fn === "shl" && count?.kind === "index") return `(${type})((${unsigned})${a} << (${unsigned})${b})`;
      if (count?.kind !== "const") throw new InternalError("a shift by something that is not constant");
      const by = Number(count.value) & (isLong(result) ? 63 : 31);
      if (fn === "shr_s") return `(${a} >> ${by})`;
      return `(${type})((${unsigned})${a} ${fn === "shl" ? "<<" : ">>"} ${by})`;
    }
    case "min":
    case "max": {
      if (!isFloatScalar(result)) return `${type}_${fn}(${a}, ${b})`;
      const at = args.findIndex((arg) => arg.kind === "const");
      const limit = args[at];
      const limited =
        limit?.kind === "const"
          ? limitText(texts[1 - at] ?? "", { fn, dtype: result, value: Number(limit.value) }, lanes)
          : null;
      return limited ?? `${type}_${fn}(${a}, ${b})`;
    }
  }
  if (fn === "div" && kindOf(result) === "integer") return `${type}_div(${a}, ${b})`;
  const prefix = PREFIX[fn];
  if (prefix) return `(${prefix}${a})`;
  const infix = INFIX[fn];
  if (!infix) return `${type}_${fn}(${a})`;
  return COMPARISONS.has(fn) ? mask(`${a} ${infix} ${b}`, from, lanes) : `(${a} ${infix} ${b})`;
}

/** Two registers combined. */
export function combineText(
  { combine, dtype }: { readonly combine: Combine; readonly dtype: ScalarType },
  a: string,
  b: string,
  lanes: number,
): string {
  const args = [0, 1].map(() => ({ kind: "acc", dtype }) as const);
  return scalarText({ fn: combine, args, dtype }, [a, b], lanes);
}
