/**
 * @file Branching priorities: items that live long, are large, or conflict with many bytes. No order is best for all
 * problems, so restarts cycle through them. Priorities are logarithms, so that the same noise means the same ratio
 * everywhere.
 */
import type { Sections } from "./sections.ts";

export type Priorities = readonly { readonly name: string; readonly of: Float64Array }[];

/** One number per item and order, larger first. */
export function prioritiesOf(sections: Sections): Priorities {
  const { n, size, lo, hi } = sections;
  const largest = size.reduce((most, units) => Math.max(most, units), 1);
  const order = (name: string, of: (i: number) => number): Priorities[number] => {
    // ties: the larger first
    const values = Float64Array.from({ length: n }, (_, i) => Math.log(of(i)) + (1e-6 * (size[i] as number)) / largest);
    return { name, of: values };
  };
  const length = (i: number): number => (hi[i] as number) - (lo[i] as number);
  const bytes = (i: number): number => size[i] as number;
  // conflicting bytes = what starts before the end, less what ends before the start
  const started = new Float64Array(sections.count + 1);
  const ended = new Float64Array(sections.count + 1);
  for (let i = 0; i < n; i++) {
    started[(lo[i] as number) + 1] = (started[(lo[i] as number) + 1] as number) + bytes(i);
    ended[hi[i] as number] = (ended[hi[i] as number] as number) + bytes(i);
  }
  for (let s = 1; s <= sections.count; s++) {
    started[s] = (started[s] as number) + (started[s - 1] as number);
    ended[s] = (ended[s] as number) + (ended[s - 1] as number);
  }
  const conflicting = (i: number): number => (started[hi[i] as number] as number) - (ended[lo[i] as number] as number);
  return [
    order("length", length),
    order("total", conflicting),
    order("area", (i) => length(i) * bytes(i)),
    order("size", bytes),
    order("length-total", (i) => length(i) * conflicting(i)),
  ];
}
