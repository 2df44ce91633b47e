/**
 * @file The work of a kernel on a processor with vector registers. It is derived from the kernel as it runs: what is free once
 * fused (views, broadcasts, constants, operands that never reach memory) is free here because it is not in the kernel, and
 * what the kernel does beyond the mathematics (packing, padding, single elements at the ends of rows) counts.
 *
 *   fused(x, w, b) { h = relu(x); y = matmul(h, w); z = add(y, broadcast(b)) }
 *
 *   productFlops   of the product, its sides rounded up to the target's tile
 *   arithmetic     max where x is packed, add where z is stored, the packing and storing themselves
 *   bytes          x, w, b read, z written: h and y are not in memory
 *   calls          1
 */
import { bytesOf } from "../../kernel/dtype.ts";
import type { Kernel } from "../../kernel/loops.ts";
import { exchangeWork } from "../../target/exchange.ts";
import { addWork, NO_WORK, type Work } from "../../target/work.ts";
import { isWide } from "../operand-addresses.ts";
import { nestWork, type ProductTile } from "./nests.ts";
import { kernelTraffic, runningNests } from "./traffic.ts";

/** The work of kernels whose products are blocked so. Answers are remembered for as long as their kernels live. */
export function cpuWork(tile: ProductTile): (kernel: Kernel, inPlace: boolean) => Work {
  const known = [new WeakMap<Kernel, Work>(), new WeakMap<Kernel, Work>()] as const;
  return (kernel, inPlace) => {
    const works = known[inPlace ? 1 : 0];
    const work = works.get(kernel) ?? countWork(kernel, tile, inPlace);
    works.set(kernel, work);
    return work;
  };
}

function countWork(kernel: Kernel, tile: ProductTile, inPlace: boolean): Work {
  const nests = runningNests(kernel, inPlace);
  const computed = nests.reduce((sum, nest) => {
    const elementBytes = "dtype" in nest ? bytesOf(nest.dtype) : 4;
    const { productFlops, arithmetic } = nestWork(nest, tile, elementBytes);
    // registers hold half as many elements of 64 bits, and everything in such a nest keeps step with them
    const wide = isWide(kernel, nest) ? 2 : 1;
    const exchanged = nest.kind === "collective" ? exchangeWork(nest) : {};
    const computed = { productFlops: wide * productFlops, arithmetic: wide * arithmetic };
    return addWork(sum, { ...computed, bytes: 0, calls: 1, ...exchanged });
  }, NO_WORK);
  return { ...computed, bytes: kernelTraffic(kernel, nests).least };
}
