/**
 * @file Time over queues. Queue 0 runs kernels one after the other; a copy begins when queue 0 has reached its start
 * step and its queue has finished the previous copy; a wait blocks queue 0 until the copy is done:
 *
 *     queue 0   │ matmul │ relu │ matmul │░░│ matmul │      ░ waits
 *     queue 1            └── h → host ──────┘
 *
 * This is list scheduling in the given order. With one queue, times simply add up. Collectives in flight are on a queue too.
 */
import type { Value } from "../../ir/graph.ts";
import { byteLength } from "../../ir/type.ts";
import type { CostModel } from "../../target/work.ts";
import type { CopyStep, Flight, PlanStep } from "../program.ts";

/** Milliseconds of a copy between memory spaces on its own. */
export function copyMs({ from }: CopyStep, { linkRate, byteRate, callSeconds }: CostModel): number {
  return 1000 * (byteLength(from.type) / (linkRate ?? byteRate) + callSeconds);
}

/** Whether a step hands something to another queue and continues; whether it waits for that. */
export const isStart = ({ copy, exchange }: PlanStep): boolean => (copy ?? exchange)?.kind === "start";
export const isWait = ({ copy, exchange }: PlanStep): boolean => (copy ?? exchange)?.kind === "wait";

/** Start and end times of copies and collectives, on the clock of queue 0, in any unit. */
export class CopyClock {
  /** Per queue, the end of what it did last. */
  readonly #free = new Map<number, number>();
  readonly #done = new Map<Value | Flight | null | undefined, number>();

  /** The start time of what queue 0 issues at `now` and that takes `time`. */
  start({ copy, exchange, queue = 0 }: PlanStep, now: number, time: number): number {
    const begin = Math.max(now, this.#free.get(queue) ?? 0);
    this.#free.set(queue, begin + time);
    this.#done.set(copy?.to ?? exchange?.flight, begin + time);
    return begin;
  }

  /** The time at which queue 0 continues after a wait that begins at `now`. */
  wait({ copy, exchange }: PlanStep, now: number): number {
    return Math.max(now, this.#done.get(copy?.to ?? exchange?.flight) ?? now);
  }
}
