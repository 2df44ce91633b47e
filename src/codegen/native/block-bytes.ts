/**
 * @file How large blocks of a product may be, so that they stay in the second-level cache of a core while they are read again. The shares
 * were found by measuring on caches of a mebibyte; what smaller ones miss is counted by bench/cache-misses.ts.
 */
import { type NativeOptions, USUAL_SECOND_CACHE } from "./options.ts";

/** Bytes of blocks and panels, by the second-level cache. */
export interface BlockBytes {
  /** Of a packed block of the broadcast side, of one that is read in place, and of partial sums. */
  readonly packed: number;
  readonly read: number;
  readonly sums: number;
  /** Of several copies of images that are padded with zeros, where they are small. */
  readonly images: number;
  /** A larger vector side is packed if more than a few rows read it: its steps are pages apart. */
  readonly near: number;
  /** Panels up to this are packed once and kept if several blocks read them. */
  readonly resident: number;
}

export function blockBytesOf({ secondCache = USUAL_SECOND_CACHE }: NativeOptions): BlockBytes {
  const [packed, sums] = [(secondCache / 16) * 9, secondCache / 4];
  const near = secondCache < USUAL_SECOND_CACHE ? secondCache / 2 : secondCache;
  return { packed, read: secondCache, sums, images: secondCache / 2, near, resident: secondCache / 4 };
}
