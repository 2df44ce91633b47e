/**
 * @file The scalar functions on WebAssembly vectors. In registers an f32 or i32 fills a 32-bit lane, an f64 or i64 a
 * 64-bit lane, and a bool is a 32-bit lane mask (all ones or zero). A nest that touches any 64-bit type works on two
 * lanes, with its 32-bit values in the lower half of their registers.
 *
 * There is no scalar code at all: the last few elements of a row run through the same vector instructions with one
 * meaningful lane, so they get the same bits.
 */
import { InternalError } from "../../base/invariant.ts";
import { isBig, kindOf, laneBytes, longOf, type ScalarType } from "../../kernel/dtype.ts";
import type { ScalarFn } from "../../kernel/expr.ts";
import type { Code, SimdOp } from "./encoder.ts";
import { OP } from "./encoder.ts";

type Table = Partial<Record<ScalarFn, SimdOp>>;

const F32: Table = {
  add: "f32x4_add",
  sub: "f32x4_sub",
  mul: "f32x4_mul",
  div: "f32x4_div",
  neg: "f32x4_neg",
  abs: "f32x4_abs",
  sqrt: "f32x4_sqrt",
  min: "f32x4_min",
  max: "f32x4_max",
  floor: "f32x4_floor",
  ceil: "f32x4_ceil",
  nearest: "f32x4_nearest",
  trunc: "f32x4_trunc",
  eq: "f32x4_eq",
  ne: "f32x4_ne",
  lt: "f32x4_lt",
  le: "f32x4_le",
};

const F64: Table = {
  add: "f64x2_add",
  sub: "f64x2_sub",
  mul: "f64x2_mul",
  div: "f64x2_div",
  neg: "f64x2_neg",
  abs: "f64x2_abs",
  sqrt: "f64x2_sqrt",
  min: "f64x2_min",
  max: "f64x2_max",
  floor: "f64x2_floor",
  ceil: "f64x2_ceil",
  nearest: "f64x2_nearest",
  trunc: "f64x2_trunc",
  eq: "f64x2_eq",
  ne: "f64x2_ne",
  lt: "f64x2_lt",
  le: "f64x2_le",
};

const I32: Table = {
  add: "i32x4_add",
  sub: "i32x4_sub",
  mul: "i32x4_mul",
  neg: "i32x4_neg",
  abs: "i32x4_abs",
  min: "i32x4_min_s",
  max: "i32x4_max_s",
  eq: "i32x4_eq",
  ne: "i32x4_ne",
  lt: "i32x4_lt_s",
  le: "i32x4_le_s",
  and: "and",
  or: "or",
  xor: "xor",
  not: "not",
  shl: "i32x4_shl",
  shr_u: "i32x4_shr_u",
  shr_s: "i32x4_shr_s",
};

const I64: Table = {
  add: "i64x2_add",
  sub: "i64x2_sub",
  mul: "i64x2_mul",
  neg: "i64x2_neg",
  abs: "i64x2_abs",
  eq: "i64x2_eq",
  ne: "i64x2_ne",
  lt: "i64x2_lt_s",
  le: "i64x2_le_s",
  and: "and",
  or: "or",
  xor: "xor",
  not: "not",
  shl: "i64x2_shl",
  shr_u: "i64x2_shr_u",
  shr_s: "i64x2_shr_s",
};

const BOOL: Table = { and: "and", or: "or", xor: "xor", not: "not", eq: "i32x4_eq", ne: "i32x4_ne" };

const TABLES: Record<ScalarType, Table> = { f32: F32, f64: F64, i32: I32, i64: I64, bool: BOOL };

/** Lower 32-bit halves of two 64-bit lanes. */
const LOW_HALVES = [0, 1, 2, 3, 8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11];

/** Writes a value into a lane. */
const LANE_WRITERS: Readonly<Record<ScalarType, (view: DataView, at: number, value: number | bigint) => void>> = {
  f32: (view, at, value) => view.setFloat32(at, Number(value), true),
  f64: (view, at, value) => view.setFloat64(at, Number(value), true),
  i32: (view, at, value) => view.setInt32(at, Number(value), true),
  i64: (view, at, value) => view.setBigInt64(at, longOf(value), true),
  bool: (view, at, value) => view.setInt32(at, value ? -1 : 0, true),
};

/** A register with one value in every lane. */
export function splatConstant(dtype: ScalarType, value: number | bigint): Uint8Array {
  const view = new DataView(new ArrayBuffer(16));
  for (let at = 0; at < 16; at += laneBytes(dtype)) LANE_WRITERS[dtype](view, at, value);
  return new Uint8Array(view.buffer);
}

/** [0, step, 2 step, 3 step] as i32 lanes. */
export function rampConstant(step: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(16));
  for (let lane = 0; lane < 4; lane++) view.setInt32(lane * 4, lane * step, true);
  return new Uint8Array(view.buffer);
}

/** Turns the lane mask on the stack into one for lanes of another width. */
function widenMask(code: Code, to: ScalarType): void {
  if (laneBytes(to) === 8) code.simd("i64x2_extend_low_i32x4_s");
}

const GREATEST_INT = 0x7fffffff;

/** Converts two lanes one by one, where there is no instruction for both. */
function convertLanes(code: Code, extract: SimdOp, one: () => void, replace: SimdOp): void {
  const from = code.local("v128");
  code.set(from).v128Const(splatConstant("i64", 0));
  for (const lane of [0, 1]) {
    code.get(from).simd(extract, lane);
    one();
    code.simd(replace, lane);
  }
}

/** The lesser or greater of two i64 in each lane. */
function emitExtreme(code: Code, fn: "min" | "max"): void {
  const [a, b] = [code.local("v128"), code.local("v128")];
  code.set(b).set(a).get(a).get(b).get(a).get(b);
  code.simd(fn === "min" ? "i64x2_lt_s" : "i64x2_gt_s").simd("bitselect");
}

/** The conversions to and from i64, but of truth values. */
function convertLong(code: Code, key: string): void {
  switch (key) {
    case "i32>i64":
      code.simd("i64x2_extend_low_i32x4_s");
      return;
    case "i64>i32":
      code.v128Const(splatConstant("i64", GREATEST_INT));
      emitExtreme(code, "min");
      code.v128Const(splatConstant("i64", -GREATEST_INT - 1));
      emitExtreme(code, "max");
      code.v128Const(splatConstant("i64", 0)).shuffle(LOW_HALVES);
      return;
    case "i64>f32":
      convertLanes(code, "extract_i64", () => code.op(OP.f32ConvertI64S), "replace_f32");
      return;
    case "i64>f64":
      convertLanes(code, "extract_i64", () => code.op(OP.f64ConvertI64S), "replace_f64");
      return;
    case "f32>i64":
      code.simd("f64x2_promote_low_f32x4");
      convertLanes(code, "extract_f64", () => code.i64OfF64(), "replace_i64");
      return;
    case "f64>i64":
      convertLanes(code, "extract_f64", () => code.i64OfF64(), "replace_i64");
      return;
    default:
      throw new InternalError(`no conversion ${key} in WebAssembly`);
  }
}

function convert(code: Code, from: ScalarType, to: ScalarType): void {
  const key = `${from}>${to}`;
  switch (key) {
    case "f32>f64":
      code.simd("f64x2_promote_low_f32x4");
      return;
    case "f64>f32":
      code.simd("f32x4_demote_f64x2_zero");
      return;
    case "i32>f32":
      code.simd("f32x4_convert_i32x4_s");
      return;
    case "i32>f64":
      code.simd("f64x2_convert_low_i32x4_s");
      return;
    case "f32>i32":
      code.simd("i32x4_trunc_sat_f32x4_s");
      return;
    case "f64>i32":
      code.simd("i32x4_trunc_sat_f64x2_s_zero");
      return;
    case "bool>f32":
    case "bool>i32":
    case "bool>f64":
    case "bool>i64":
      widenMask(code, to);
      code.v128Const(splatConstant(to, 1)).simd("and");
      return;
    case "f32>bool":
    case "f64>bool":
    case "i32>bool":
    case "i64>bool":
      code.v128Const(splatConstant(from, 0));
      emitCompare(code, "ne", from);
      return;
    default:
      convertLong(code, key);
  }
}

function missing(fn: ScalarFn, operands: ScalarType): never {
  throw new InternalError(`no ${fn} on ${operands} in WebAssembly`);
}

function emitCompare(code: Code, fn: ScalarFn, operands: ScalarType): void {
  code.simd(TABLES[operands][fn] ?? missing(fn, operands));
  if (laneBytes(operands) === 8) code.v128Const(splatConstant("i64", 0)).shuffle(LOW_HALVES);
}

/** Truncating i32 division lane by lane, 0 for a zero divisor; -2³¹ / -1 wraps. */
function emitI32Div(code: Code): void {
  const [a, b, out, d] = [code.local("v128"), code.local("v128"), code.local("v128"), code.local("i32")];
  code.set(b).set(a).v128Const(splatConstant("i32", 0)).set(out);
  for (let lane = 0; lane < 4; lane++) {
    code.get(b).simd("extract_i32", lane).tee(d);
    code.if(null, () => {
      code.get(out);
      code.get(d).i32Const(-1).op(OP.i32Eq);
      // x / -1 as 0 - x, which wraps where the instruction would trap
      code.if(
        "i32",
        () => code.i32Const(0).get(a).simd("extract_i32", lane).op(OP.i32Sub),
        () => code.get(a).simd("extract_i32", lane).get(d).op(OP.i32DivS),
      );
      code.simd("replace_i32", lane).set(out);
    });
  }
  code.get(out);
}

/** The same on i64. */
function emitI64Div(code: Code): void {
  const [a, b, out, d] = [code.local("v128"), code.local("v128"), code.local("v128"), code.local("i64")];
  code.set(b).set(a).v128Const(splatConstant("i64", 0)).set(out);
  for (const lane of [0, 1]) {
    code.get(b).simd("extract_i64", lane).tee(d).op(OP.i64Eqz).op(OP.i32Eqz);
    code.if(null, () => {
      code.get(out);
      code.get(d).i64Const(-1).op(OP.i64Eq);
      code.if(
        "i64",
        () => code.i64Const(0).get(a).simd("extract_i64", lane).op(OP.i64Sub),
        () => code.get(a).simd("extract_i64", lane).get(d).op(OP.i64DivS),
      );
      code.simd("replace_i64", lane).set(out);
    });
  }
  code.get(out);
}

/**
 * Applies a function to arguments on the stack. `operands` is the type of the (last) argument, `result` that of the
 * result. Shifts expect [vector, i32 count]; `pick` expects [a, b, mask].
 */
export function emitScalarFn(code: Code, fn: ScalarFn, operands: ScalarType, result: ScalarType): void {
  switch (fn) {
    case "pick":
      widenMask(code, result);
      code.simd("bitselect");
      return;
    case "convert":
      convert(code, operands, result);
      return;
    case "bitcast":
      return;
    case "wrap":
      code.v128Const(splatConstant("i64", 0)).shuffle(LOW_HALVES);
      return;
    case "extend":
      code.simd("i64x2_extend_low_i32x4_s");
      return;
    case "min":
    case "max":
      if (isBig(operands)) emitExtreme(code, fn);
      else code.simd(TABLES[operands][fn] ?? missing(fn, operands));
      return;
    case "eq":
    case "ne":
    case "lt":
    case "le":
      emitCompare(code, fn, operands);
      return;
    default: {
      if (fn === "div" && kindOf(operands) === "integer") {
        if (isBig(operands)) emitI64Div(code);
        else emitI32Div(code);
        return;
      }
      code.simd(TABLES[operands][fn] ?? missing(fn, operands));
    }
  }
}
