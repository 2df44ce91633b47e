/**
 * @file Time over queues. Queue 0 runs kernels one after the other; a copy begins when queue 0 has come to its start and
 * its own queue is done with the copy before; a wait holds queue 0 until the copy is done:
 *
 *     queue 0   │ matmul │ relu │ matmul │░░│ matmul │      ░ waits
 *     queue 1            └── h → host ──────┘
 *
 * That is the list schedule of the steps in their order. The times of a plan with one queue add up.
 */
import { invariant } from "../../base/invariant.ts";
import type { Value } from "../../ir/graph.ts";
import { byteLength } from "../../ir/type.ts";
import type { CostModel } from "../../target/work.ts";
import type { CopyStep, PlanStep } from "../program.ts";

/** Milliseconds of a copy between memory spaces on its own. */
export function copyMs({ from }: CopyStep, { linkRate, byteRate, callSeconds }: CostModel): number {
  return 1000 * (byteLength(from.type) / (linkRate ?? byteRate) + callSeconds);
}

/** When copies begin and are done; times are those of queue 0, in any unit. */
export class CopyClock {
  /** Per queue, when its last copy is done. */
  readonly #free = new Map<number, number>();
  readonly #done = new Map<Value, number>();

  /** When a copy begins that queue 0 hands over at `now` and that takes `time`. */
  start({ copy, queue = 0 }: PlanStep, now: number, time: number): number {
    invariant(copy, () => "a step that is no copy is started");
    const begin = Math.max(now, this.#free.get(queue) ?? 0);
    this.#free.set(queue, begin + time);
    this.#done.set(copy.to, begin + time);
    return begin;
  }

  /** When queue 0 goes on that waits from `now` on. */
  wait({ to }: CopyStep, now: number): number {
    return Math.max(now, this.#done.get(to) ?? now);
  }
}
