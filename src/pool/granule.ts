/** @file Addresses and sizes of blocks are multiples of this: a cache line, and the widest vector of any target. */
export const GRANULE = 64;

export function wholeGranules(bytes: number): number {
  return bytes <= GRANULE ? GRANULE : Math.ceil(bytes / GRANULE) * GRANULE;
}
