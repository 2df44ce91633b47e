/**
 * @file What a collective sends, for a device of a group of p, in the algorithms that are best for large parts of n bytes (rings, as
 * Thakur, Rabenseifner and Gropp 2005 count them); libraries choose others for small ones, where messages are what takes time.
 *
 *   all_reduce       2 n (p - 1) / p    in 2 (p - 1) messages
 *   all_gather       n (p - 1)          in p - 1
 *   reduce_scatter   n (p - 1)          in p - 1
 *   all_to_all       n (p - 1)          in p - 1
 *   permute          n                  in 1
 *   broadcast        n                  in log2 p, rounded up
 */

import type { CollectiveNest } from "../kernel/collective.ts";
import { groupSize } from "../kernel/device-group.ts";
import { bytesOf } from "../kernel/dtype.ts";
import type { Work } from "./work.ts";

export function exchangeWork({ what, group, elements, storage }: CollectiveNest): Pick<Work, "sentBytes" | "messages"> {
  const [p, n] = [groupSize(group), elements * bytesOf(storage)];
  if (p === 1 || what === "device_index") return {};
  switch (what) {
    case "all_reduce":
      return { sentBytes: (2 * n * (p - 1)) / p, messages: 2 * (p - 1) };
    case "all_gather":
    case "reduce_scatter":
    case "all_to_all":
      return { sentBytes: n * (p - 1), messages: p - 1 };
    case "permute":
      return { sentBytes: n, messages: 1 };
    case "broadcast":
      return { sentBytes: n, messages: Math.ceil(Math.log2(p)) };
  }
}
