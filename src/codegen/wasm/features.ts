/**
 * @file Features of the WebAssembly engine, detected once per process. Whether an instruction exists is decided by
 * validating a module that uses it, never by names or versions of engines.
 *
 * Relaxed multiply-add may round once or twice, as the engine likes. It counts only where a run shows a single rounding
 * (fused-probe.ts). Then results are the same bits in every run on this machine, and those of the exact multiply-add of
 * IEEE 754.
 */
import type { PlainBytes } from "../../base/bytes.ts";
import { Code, ModuleBuilder, type SimdOp, type VectorMemoryOp } from "./encoder.ts";
import { type FusedProbes, roundsOnce } from "./fused-probe.ts";

/** What the engine can do. */
export interface Features {
  /** 128-bit vectors. */
  readonly simd: boolean;
  /** Relaxed multiply-add exists, for f32 and f64, and rounds once. */
  readonly relaxedMadd: boolean;
}

/** Detected once: the engine does not change. */
let detected: Features | undefined;

/**
 * The features of this process's engine; the answer never changes.
 *
 * @example
 * import { detectFeatures } from "tidemark/wasm";
 *
 * console.log(detectFeatures().simd); // → true
 */
export function detectFeatures(): Features {
  detected ??= probeFeatures();
  return detected;
}

/** Detects the features of the engine again. */
export function probeFeatures(): Features {
  const simd = WebAssembly.validate(probe((code) => code.i32Const(0).i32Const(0).memory("load", 0).memory("store", 0)));
  return { simd, relaxedMadd: simd && roundsOnce(fusedProbes()) };
}

/** The modules whose run shows whether multiply-add is fused. */
export function fusedProbes(): FusedProbes {
  return {
    f32: fusedProbe("load32_splat", "f32x4_relaxed_madd"),
    f64: fusedProbe("load64_splat", "f64x2_relaxed_madd"),
  };
}

function fusedProbe(splat: VectorMemoryOp, madd: SimdOp): PlainBytes {
  return probe((code) => {
    const x = (): Code => code.i32Const(0).memory(splat, 0);
    code.i32Const(0);
    x();
    x();
    code.i32Const(0).memory(splat, 8).simd(madd).memory("store", 16);
  });
}

function probe(body: (code: Code) => void): PlainBytes {
  const module = new ModuleBuilder();
  const code = new Code([]);
  body(code);
  module.export("probe", module.add(code));
  return module.finish(1);
}
