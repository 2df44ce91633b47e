/**
 * @file How elements of each storage type come into registers of their compute type and back. This is the one place of
 * the target that knows what memory holds; everything else deals in lanes.
 */
import { InternalError } from "../../base/invariant.ts";
import { bytesOf, DTYPES, type DType } from "../../kernel/dtype.ts";
import type { Code } from "./encoder.ts";
import { BF16, F16 } from "./halves.ts";
import { splatConstant } from "./scalar.ts";

export interface ElementForm {
  /** Puts an element into a lane of the register on the stack, above its address; `widen` makes values of the lanes. */
  loadLane(code: Code, offset: number, lane: number): void;
  widen(code: Code): void;
  /** The element at the address on the stack, in every lane. */
  loadSplat(code: Code, offset: number): void;
  /** Consecutive elements from the address on the stack; `count` is 1, 2 or 4. */
  loadDense(code: Code, offset: number, count: number): void;
  /** Leaves the elements of a register, one after the other. */
  narrow(code: Code, local: number): void;
}

const ZEROS = splatConstant("i32", 0);

/** Memory holds what a lane holds. */
function plain(bytes: 4 | 8): ElementForm {
  const [lane, splat] =
    bytes === 8 ? (["load64_lane", "load64_splat"] as const) : (["load32_lane", "load32_splat"] as const);
  return {
    loadLane: (code, offset, n) => code.memory(lane, offset, n),
    widen: () => undefined,
    loadSplat: (code, offset) => code.memory(splat, offset),
    loadDense: (code, offset, count) => code.loadBytes(count * bytes, offset),
    narrow: (code, local) => code.get(local),
  };
}

/** A byte, 0 or 1, becomes a mask. */
const BOOL: ElementForm = {
  // into the lowest byte of its 32-bit lane
  loadLane: (code, offset, lane) => code.memory("load8_lane", offset, lane * 4),
  widen: (code) => code.simd("i32x4_neg"),
  loadSplat(code, offset) {
    code.v128Const(ZEROS).memory("load8_lane", offset, 0);
    code.v128Const(ZEROS).shuffle([0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]).simd("i32x4_neg");
  },
  loadDense(code, offset, count) {
    if (count === 4) code.memory("load32_zero", offset);
    else code.v128Const(ZEROS).memory(count === 2 ? "load16_lane" : "load8_lane", offset, 0);
    code.simd("i16x8_extend_low_i8x16_u").simd("i32x4_extend_low_i16x8_u").simd("i32x4_neg");
  },
  narrow(code, local) {
    code.get(local).get(local).simd("i16x8_narrow_i32x4_s");
    const narrowed = code.local("v128");
    code.tee(narrowed).get(narrowed).simd("i8x16_narrow_i16x8_s").v128Const(new Uint8Array(16).fill(1)).simd("and");
  },
};

/** A byte becomes a word, its sign repeated or not. */
const byte = (signed: boolean): ElementForm => {
  const repeatSign = (code: Code): void => {
    if (signed) code.i32Const(24).simd("i32x4_shl").i32Const(24).simd("i32x4_shr_s");
  };
  return {
    loadLane: (code, offset, lane) => code.memory("load8_lane", offset, lane * 4),
    widen: repeatSign,
    loadSplat(code, offset) {
      code.v128Const(ZEROS).memory("load8_lane", offset, 0);
      code.v128Const(ZEROS).shuffle([0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
      repeatSign(code);
    },
    loadDense(code, offset, count) {
      if (count === 4) code.memory("load32_zero", offset);
      else code.v128Const(ZEROS).memory(count === 2 ? "load16_lane" : "load8_lane", offset, 0);
      code.simd("i16x8_extend_low_i8x16_u").simd("i32x4_extend_low_i16x8_u");
      repeatSign(code);
    },
    narrow: (code, local) =>
      code.get(local).v128Const(ZEROS).shuffle([0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12]),
  };
};

const FORMS: Readonly<Record<DType, ElementForm>> = {
  f32: plain(4),
  f64: plain(8),
  bf16: BF16,
  f16: F16,
  i32: plain(4),
  i64: plain(8),
  i8: byte(true),
  u8: byte(false),
  bool: BOOL,
};

/** Types that memory may hold. */
export const STORAGE_TYPES: readonly DType[] = DTYPES.filter((dtype) => dtype in FORMS);

export function elementForm(dtype: DType): ElementForm {
  const form: ElementForm | undefined = FORMS[dtype];
  if (!form) throw new InternalError(`WebAssembly has no loads and stores of ${dtype}`);
  return form;
}

const STORES = { 8: "store64_lane", 4: "store32_lane", 2: "store16_lane", 1: "store8_lane" } as const;

/** Elements of a register: how many, and from which lane on. */
export interface LaneRun {
  readonly lane: number;
  readonly count: number;
}

/** Stores some elements of the narrowed register on the stack, above their address. */
export function storeElements(code: Code, dtype: DType, { lane, count }: LaneRun, offset: number): void {
  const bytes = count * bytesOf(dtype);
  if (bytes === 16) {
    code.memory("store", offset);
    return;
  }
  const op = STORES[bytes as keyof typeof STORES];
  if (!op) throw new InternalError(`WebAssembly stores no ${bytes} bytes at once`);
  code.memory(op, offset, lane);
}
