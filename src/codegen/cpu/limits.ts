/** @file What all targets on processors have in common. */
import type { ScalarType } from "../../kernel/dtype.ts";

/** Types that their kernels compute in. */
export const CPU_SCALARS: readonly ScalarType[] = ["f32", "f64", "i32", "i64", "bool"];
