/**
 * @file What tensor cores multiply: f32 rounded to tf32, and floats of sixteen bits as they are; sums are f32. A row of a stage in
 * shared memory has 128 bytes, whatever the type, and four instructions take all of it.
 */
import { bytesOf, type DType } from "../../kernel/dtype.ts";
import type { ContractNest } from "../../kernel/loops.ts";

export type FactorType = "tf32" | "bf16" | "f16";

interface Factor {
  /** The type in memory. */
  readonly storage: DType;
  /** The ends of an instruction's name: depth and types. */
  readonly instruction: string;
  /** Number of the type in `cuTensorMapEncodeTiled`: the copy engine rounds f32 to tf32. */
  readonly map: number;
  /** A matrix may lie across the depth in shared memory too. */
  readonly eitherOrder: boolean;
}

export const FACTORS: Readonly<Record<FactorType, Factor>> = {
  tf32: { storage: "f32", instruction: "k8.f32.tf32.tf32", map: 11, eitherOrder: false },
  bf16: { storage: "bf16", instruction: "k16.f32.bf16.bf16", map: 9, eitherOrder: true },
  f16: { storage: "f16", instruction: "k16.f32.f16.f16", map: 6, eitherOrder: true },
};

/** What tensor cores add up in. */
const SUMS: DType = "f32";

/** Bytes of a row of a stage. */
export const ROW_BYTES = 128;

/** Elements of a row of a stage. */
export const rowElements = (type: FactorType): number => ROW_BYTES / bytesOf(FACTORS[type].storage);

/** Elements that rows of a matrix start at multiples of for the copy engine. */
export const rowUnit = (type: FactorType): number => 16 / bytesOf(FACTORS[type].storage);

/** What the factors of a product are on tensor cores; null where they are none for them. */
export function factorsOf({ dtype, factors }: Pick<ContractNest, "dtype" | "factors">): FactorType | null {
  const types = Object.keys(FACTORS) as FactorType[];
  if (dtype !== SUMS) return null;
  return types.find((type) => FACTORS[type].storage === (factors ?? dtype)) ?? null;
}
