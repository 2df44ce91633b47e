/** @file Limits shared by all CPU targets. */
import type { ScalarType } from "../../kernel/dtype.ts";

/** Types that their kernels compute in. */
export const CPU_SCALARS: readonly ScalarType[] = ["f32", "f64", "i32", "i64", "bool"];
