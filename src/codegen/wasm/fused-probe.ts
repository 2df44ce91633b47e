/**
 * @file Whether relaxed multiply-add rounds once on an engine, shown by a run of two small modules. The modules are data here:
 * features.ts generates them, and programs that were built ahead of time contain them.
 *
 *   x = 1 + 2⁻¹²:  x² = 1 + 2⁻¹¹ + 2⁻²⁴,  which is half-way between two f32 and rounds to 1 + 2⁻¹¹
 *   x² − (1 + 2⁻¹¹)  is then 0 when the product is rounded and 2⁻²⁴ when it is not; f64 likewise with x = 1 + 2⁻²⁷
 */
import type { PlainBytes } from "../../base/bytes.ts";

/** Bytes of modules that compute x · x + y from x at byte 0 and y at byte 8 into the 16 bytes from byte 16. */
export interface FusedProbes {
  readonly f32: PlainBytes;
  readonly f64: PlainBytes;
}

/** Whether x · x + y, with x = 1 + ε and y = −(1 + 2ε), is ε² in every lane. */
function fuses(
  bytes: PlainBytes,
  epsilon: number,
  numbersIn: (memory: ArrayBuffer) => Float32Array | Float64Array,
): boolean {
  if (!WebAssembly.validate(bytes)) return false;
  const memory = new WebAssembly.Memory({ initial: 1 });
  const numbers = numbersIn(memory.buffer);
  const at = (byte: number): number => byte / numbers.BYTES_PER_ELEMENT;
  numbers[at(0)] = 1 + epsilon;
  numbers[at(8)] = -(1 + 2 * epsilon);
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env: { memory } });
  (exports.probe as () => void)();
  return numbers.subarray(at(16), at(32)).every((lane) => lane === epsilon * epsilon);
}

/** Relaxed multiply-add exists, for f32 and f64, and rounds once. */
export function roundsOnce({ f32, f64 }: FusedProbes): boolean {
  return (
    fuses(f32, 2 ** -12, (memory) => new Float32Array(memory)) &&
    fuses(f64, 2 ** -27, (memory) => new Float64Array(memory))
  );
}
