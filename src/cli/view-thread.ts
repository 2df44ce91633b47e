/**
 * @file Plans for the page, made in worker threads: meanwhile the server answers requests that need no search. A
 * thread loads the program again, since plans cannot be sent to it.
 */
import { Worker } from "node:worker_threads";
import { InternalError } from "../base/invariant.ts";
import type { StrategyName } from "../plan/recompute/strategy.ts";
import type { LivePlans } from "../view/plans.ts";
import { type NamedPlans, storyOf } from "../view/stories.ts";

/** The page's requests, answered synchronously or asynchronously. */
export type PlanAnswers = {
  readonly [K in keyof LivePlans]: (
    ...args: Parameters<LivePlans[K]>
  ) => ReturnType<LivePlans[K]> | Promise<ReturnType<LivePlans[K]>>;
};

/** The input from which the thread repeats the command's planning. */
export interface ViewTask {
  readonly program: string;
  /** Options as they were given; true for a switch. */
  readonly options: Readonly<Record<string, string | true>>;
  readonly points: number;
  /** Strategies drawn beside `auto`. */
  readonly strategies: readonly StrategyName[];
}

export interface ViewQuestion {
  readonly id: number;
  readonly ask: keyof LivePlans;
  readonly args: readonly unknown[];
}

export type ViewAnswer = { readonly id: number } & ({ readonly answer: unknown } | { readonly failure: string });

interface PendingAnswer {
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

interface Thread {
  ask<T>(ask: keyof LivePlans, ...args: readonly unknown[]): Promise<T>;
  close(): void;
}

function threadOf(task: ViewTask): Thread {
  const worker = new Worker(new URL("./view-worker.js", import.meta.url), { workerData: task, execArgv: [] });
  const waiting = new Map<number, PendingAnswer>();
  let asked = 0;
  let ended: Error | null = null;
  const end = (error: Error): void => {
    ended ??= error;
    for (const { reject } of waiting.values()) reject(ended);
    waiting.clear();
  };
  worker.on("message", (answer: ViewAnswer) => {
    const { resolve, reject } = waiting.get(answer.id) as PendingAnswer;
    waiting.delete(answer.id);
    if ("failure" in answer) reject(new InternalError(answer.failure));
    else resolve(answer.answer);
  });
  worker.on("error", end);
  worker.on("exit", () => end(new InternalError("the planning thread ended")));
  return {
    ask: <T>(ask: keyof LivePlans, ...args: readonly unknown[]): Promise<T> =>
      new Promise<T>((resolve, reject) => {
        if (ended) {
          reject(ended);
          return;
        }
        const id = asked++;
        waiting.set(id, { resolve: resolve as (answer: unknown) => void, reject });
        worker.postMessage({ id, ask, args } satisfies ViewQuestion);
      }),
    close: () => void worker.terminate(),
  };
}

/**
 * Answers from two threads: the points of the curve take long, and the plan of a budget should not wait for them.
 * @param known plans available in this thread: their explanations need no worker
 */
export function plansInThread(
  task: ViewTask,
  known: NamedPlans,
): { readonly plans: PlanAnswers; readonly close: () => void } {
  const plans = threadOf(task);
  let curve: Thread | null = null;
  return {
    plans: {
      curve() {
        curve ??= threadOf(task);
        return curve.ask("curve");
      },
      within: (budgetBytes) => plans.ask("within", budgetBytes),
      story: (asks, value) => storyOf(known, asks, value) ?? plans.ask("story", asks, value),
    },
    close() {
      plans.close();
      curve?.close();
    },
  };
}
