/**
 * @file Floats of sixteen bits in registers of f32, by integer operations: WebAssembly has no conversions of them. Four lanes at
 * a time:
 *
 *   memory         b0 b1 | b2 b3 | b4 b5 | b6 b7
 *   widened        0 0 b0 b1 | 0 0 b2 b3 | …         a bf16 is the upper half of an f32
 *                  b0 b1 0 0 | b2 b3 0 0 | …         an f16 becomes one by arithmetic
 */
import { F16_NORMAL_BITS, F16_OVERFLOW_BITS } from "../../kernel/half.ts";
import type { ElementForm } from "./elements.ts";
import type { Code } from "./encoder.ts";
import { splatConstant } from "./scalar.ts";

const word = (value: number): Uint8Array => splatConstant("i32", value);
const ZEROS = word(0);
/** The lower halves of all lanes, one after the other. */
const LOW_HALVES = [0, 1, 4, 5, 8, 9, 12, 13, 0, 1, 4, 5, 8, 9, 12, 13];
const FIRST_LANE = [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3];

/** Consecutive elements from the address on the stack, each in the lower half of a lane. */
function loadLow(code: Code, offset: number, count: number): void {
  if (count === 1) code.v128Const(ZEROS).memory("load16_lane", offset, 0);
  else code.loadBytes(2 * count, offset);
  code.simd("i32x4_extend_low_i16x8_u");
}

/** Leaves the bits in a local, rounded to the nearest without the lowest `count`, ties to even, shifted down. */
function shiftEven(code: Code, local: number, count: number): void {
  code
    .get(local)
    .v128Const(word(2 ** (count - 1) - 1))
    .simd("i32x4_add");
  code.get(local).i32Const(count).simd("i32x4_shr_u").v128Const(word(1)).simd("and").simd("i32x4_add");
  code.i32Const(count).simd("i32x4_shr_u");
}

/** Replaces what is on the stack by the one NaN of a type where a local is NaN; then joins the lower halves. */
function finishNarrow(code: Code, local: number, nan: number): void {
  const rounded = code.local("v128");
  code.set(rounded).v128Const(word(nan)).get(rounded);
  code.get(local).get(local).simd("f32x4_ne").simd("bitselect");
  code.v128Const(ZEROS).shuffle(LOW_HALVES);
}

export const BF16: ElementForm = {
  loadLane: (code, offset, lane) => code.memory("load16_lane", offset, 2 * lane + 1),
  widen: () => undefined,
  loadSplat(code, offset) {
    code.v128Const(ZEROS).memory("load16_lane", offset, 1);
    code.v128Const(ZEROS).shuffle(FIRST_LANE);
  },
  loadDense(code, offset, count) {
    loadLow(code, offset, count);
    code.i32Const(16).simd("i32x4_shl");
  },
  narrow(code, local) {
    shiftEven(code, local, 16);
    finishNarrow(code, local, 0x7fc0);
  },
};

/** Fraction and exponent at their places in an f32, times 2¹¹² for the difference of the biases; exact, also for subnormals. */
function widenHalf(code: Code): void {
  const [half, rest] = [code.local("v128"), code.local("v128")];
  code.tee(half).v128Const(word(0x7fff)).simd("and").tee(rest);
  code
    .i32Const(13)
    .simd("i32x4_shl")
    .v128Const(splatConstant("f32", 2 ** 112))
    .simd("f32x4_mul");
  // an exponent of all ones is one in f32 too
  code.v128Const(word(0x7bff)).get(rest).simd("i32x4_lt_s").v128Const(word(0x7f800000)).simd("and").simd("or");
  code.get(half).v128Const(word(0x8000)).simd("and").i32Const(16).simd("i32x4_shl").simd("or");
}

export const F16: ElementForm = {
  loadLane: (code, offset, lane) => code.memory("load16_lane", offset, 2 * lane),
  widen: widenHalf,
  loadSplat(code, offset) {
    code.v128Const(ZEROS).memory("load16_lane", offset, 0);
    code.v128Const(ZEROS).shuffle(FIRST_LANE);
    widenHalf(code);
  },
  loadDense(code, offset, count) {
    loadLow(code, offset, count);
    widenHalf(code);
  },
  narrow(code, local) {
    const bits = code.local("v128");
    code.get(local).v128Const(word(0x7fffffff)).simd("and").set(bits);
    // below 2⁻¹⁴: a multiple of 2⁻²⁴, the last place of an f32 between 1/2 and 1
    code.get(bits).v128Const(splatConstant("f32", 0.5)).simd("f32x4_add").v128Const(word(0x3f000000)).simd("i32x4_sub");
    code.v128Const(word(0x7c00));
    shiftEven(code, bits, 13);
    code.v128Const(word(112 << 10)).simd("i32x4_sub");
    code
      .v128Const(word(F16_OVERFLOW_BITS - 1))
      .get(bits)
      .simd("i32x4_lt_s")
      .simd("bitselect");
    code.get(bits).v128Const(word(F16_NORMAL_BITS)).simd("i32x4_lt_s").simd("bitselect");
    code.get(local).i32Const(16).simd("i32x4_shr_u").v128Const(word(0x8000)).simd("and").simd("or");
    finishNarrow(code, local, 0x7e00);
  },
};
