/** @file Orders for tests of the scheduler: one at random, and the best of all by a search without any rules. */
import { listOf } from "../../src/plan/order/lists.ts";
import { Memory } from "../../src/plan/order/memory.ts";
import type { Model } from "../../src/plan/order/model.ts";

/** A valid order, chosen at random. */
export function randomOrder({ steps, predecessors, successors }: Model, random: (n: number) => number): number[] {
  const missing = Array.from({ length: steps }, (_, i) => listOf(predecessors, i).length);
  const ready = missing.flatMap((count, i) => (count === 0 ? [i] : []));
  const order: number[] = [];
  while (ready.length > 0) {
    const [step] = ready.splice(random(ready.length), 1);
    order.push(step!);
    for (const next of listOf(successors, step!)) {
      missing[next]! -= 1;
      if (missing[next] === 0) ready.push(next);
    }
  }
  return order;
}

/** The lowest peak of all orders: tries every step in every state, and remembers states. */
export function leastPeak(model: Model): number {
  const memory = new Memory(model);
  const known = new Map<string, number>();
  const least = (): number => {
    if (memory.ran === model.steps) return 0;
    const state = `${memory.done.join("")} ${memory.home.join()}`;
    const before = known.get(state);
    if (before !== undefined) return before;
    let best = Number.POSITIVE_INFINITY;
    for (let step = 0; step < model.steps; step++) {
      const ready = listOf(model.predecessors, step).every((i) => memory.done[i] === 1);
      if (memory.done[step] || !ready) continue;
      const live = memory.live;
      const during = memory.run(step);
      best = Math.min(best, Math.max(during, least()));
      memory.undo(step, live);
    }
    known.set(state, best);
    return best;
  };
  return least();
}
