/** @file Matrices as the copy engine of a device takes them: the driver encodes each in 128 bytes, which are arguments of a launch. */
import type { TensorMap } from "../../codegen/cuda/copied-maps.ts";
import { FACTORS } from "../../codegen/cuda/tensor-types.ts";
import { bytesOf } from "../../kernel/dtype.ts";
import type { Driver } from "./driver.ts";

const MAP_BYTES = 128;
/** Bytes that maps start at multiples of. */
const ALIGNMENT = 64;
/** Of `cuTensorMapEncodeTiled`: rows of 128 bytes in 8 orders, lines of 256 bytes in the cache. */
const SWIZZLE_128_BYTES = 3;
const CACHE_256_BYTES = 3;

export class TensorMaps {
  /** Of the host, one for each map; valid as long as this is. */
  readonly addresses: readonly bigint[];
  readonly #bytes: Uint8Array;

  constructor(driver: Driver, maps: readonly TensorMap[], matrices: readonly bigint[]) {
    this.#bytes = new Uint8Array(maps.length === 0 ? 0 : maps.length * MAP_BYTES + ALIGNMENT);
    const start = maps.length === 0 ? 0n : driver.addressOf(this.#bytes);
    const first = start + (((-start % BigInt(ALIGNMENT)) + BigInt(ALIGNMENT)) % BigInt(ALIGNMENT));
    this.addresses = maps.map(({ factors, extents, pitch, box }, i) => {
      const { storage, map } = FACTORS[factors];
      const address = first + BigInt(i * MAP_BYTES);
      const sizes = BigUint64Array.from(extents, BigInt);
      const strides = BigUint64Array.of(BigInt(bytesOf(storage) * pitch));
      const steps = Uint32Array.of(1, 1);
      const forms = [0, SWIZZLE_128_BYTES, CACHE_256_BYTES, 0];
      driver.call(
        "cuTensorMapEncodeTiled",
        address,
        map,
        2,
        matrices[i],
        sizes,
        strides,
        Uint32Array.from(box),
        steps,
        ...forms,
      );
      return address;
    });
  }
}
