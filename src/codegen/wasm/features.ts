/**
 * @file Features of the WebAssembly engine, detected once per process. Whether an instruction exists is decided by
 * validating a module that uses it, never by names or versions of engines.
 *
 * Relaxed multiply-add may round once or twice, as the engine likes. It counts only where a run shows a single
 * rounding:
 *
 *   x = 1 + 2⁻¹²:  x² = 1 + 2⁻¹¹ + 2⁻²⁴,  which is half-way between two f32 and rounds to 1 + 2⁻¹¹
 *   x² − (1 + 2⁻¹¹)  is then 0 when the product is rounded and 2⁻²⁴ when it is not; f64 likewise with x = 1 + 2⁻²⁷
 *
 * Then results are the same bits in every run on this machine, and those of the exact multiply-add of IEEE 754.
 */
import type { PlainBytes } from "../../base/bytes.ts";
import { Code, ModuleBuilder, type SimdOp, type VectorMemoryOp } from "./encoder.ts";

export interface Features {
  /** 128-bit vectors. */
  readonly simd: boolean;
  /** Relaxed multiply-add exists, for f32 and f64, and rounds once. */
  readonly relaxedMadd: boolean;
}

/** Detected once: the engine does not change. */
let detected: Features | undefined;

/** The features of this process's engine; the answer never changes. */
export function detectFeatures(): Features {
  detected ??= probeFeatures();
  return detected;
}

/** Detects the features of the engine again. */
export function probeFeatures(): Features {
  const simd = WebAssembly.validate(probe((code) => code.i32Const(0).i32Const(0).memory("load", 0).memory("store", 0)));
  const relaxedMadd =
    simd &&
    fuses(2 ** -12, "load32_splat", "f32x4_relaxed_madd") &&
    fuses(2 ** -27, "load64_splat", "f64x2_relaxed_madd");
  return { simd, relaxedMadd };
}

/** Whether x · x + y, with x = 1 + ε and y = −(1 + 2ε), is ε² in every lane. */
function fuses(epsilon: number, splat: VectorMemoryOp, madd: SimdOp): boolean {
  const bytes = probe((code) => {
    const x = (): Code => code.i32Const(0).memory(splat, 0);
    code.i32Const(0);
    x();
    x();
    code.i32Const(0).memory(splat, 8).simd(madd).memory("store", 16);
  });
  if (!WebAssembly.validate(bytes)) return false;
  const memory = new WebAssembly.Memory({ initial: 1 });
  const numbers = splat === "load32_splat" ? new Float32Array(memory.buffer) : new Float64Array(memory.buffer);
  const at = (byte: number): number => byte / numbers.BYTES_PER_ELEMENT;
  numbers[at(0)] = 1 + epsilon;
  numbers[at(8)] = -(1 + 2 * epsilon);
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env: { memory } });
  (exports.probe as () => void)();
  return numbers.subarray(at(16), at(32)).every((lane) => lane === epsilon * epsilon);
}

function probe(body: (code: Code) => void): PlainBytes {
  const module = new ModuleBuilder();
  const code = new Code([]);
  body(code);
  module.export("probe", module.add(code));
  return module.finish(1);
}
