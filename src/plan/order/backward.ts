/**
 * @file List scheduling from the end: chooses the step that runs last, then the one before it, and so on. A step is
 * scheduled once all its dependents are scheduled and less is live before it than after it. This moves producers
 * towards their readers, while forward list scheduling moves readers towards their producers.
 *
 *     program order    big1 big2 big3  use1 use2 use3        all three live at once
 *     end first        big1 use1  big2 use2  big3 use3
 *
 * Scheduling a step backward removes the values it writes and makes those it reads live, unless a later reader already
 * did. Slots cost nothing. Ties go to the step that is later in the given order. O((n + edges) log n).
 */
import { at } from "../../base/invariant.ts";
import { StepHeap } from "../heap.ts";
import { fromOf, lengthOf, lengthsOf, listOf } from "./lists.ts";
import type { Model } from "./model.ts";

/** An order built from its end; `base` is any valid order. */
export function backwardOrder(model: Model, base: ArrayLike<number>): Int32Array {
  const { steps: n, reads, readers, predecessors, successors, bytes, kept, isSlot, claims, writes } = model;
  const rank = new Int32Array(n);
  for (let k = 0; k < n; k++) rank[base[k] as number] = k;
  const waiting = lengthsOf(successors);
  /** Live storages: those read by scheduled steps, and those kept. */
  const isLive = Uint8Array.from({ length: model.storages }, (_, id) => (kept[id] || isSlot[id] ? 1 : 0));
  const free = (id: number): boolean => isSlot[id] === 1 || lengthOf(claims, id) > 0;
  const balance = (i: number): number => {
    let sum = 0;
    for (let k = fromOf(reads, i); k < fromOf(reads, i + 1); k++) {
      const id = at(reads.items, k);
      if (!isLive[id]) sum += at(bytes, id);
    }
    for (const id of listOf(writes, i)) if (isLive[id] && !free(id)) sum -= at(bytes, id);
    return sum;
  };
  const [early, ready] = [new StepHeap(), new StepHeap()];
  const placed = new Uint8Array(n);
  const announce = (i: number): void => {
    if (placed[i] || at(waiting, i) > 0) return;
    const cost = balance(i);
    if (cost <= 0) early.push(i, cost);
    else ready.push(i, -at(rank, i));
  };
  for (let i = 0; i < n; i++) announce(i);
  const order = new Int32Array(n);
  for (let left = n; left > 0; ) {
    const step = early.pop() ?? ready.pop() ?? -1;
    if (placed[step]) continue;
    placed[step] = 1;
    left -= 1;
    order[left] = step;
    for (const before of listOf(predecessors, step)) {
      waiting[before] = at(waiting, before) - 1;
      announce(before);
    }
    for (const id of listOf(reads, step)) {
      if (isLive[id]) continue;
      isLive[id] = 1;
      for (const reader of listOf(readers, id)) announce(reader);
    }
  }
  return order;
}
