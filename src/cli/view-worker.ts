/** @file The worker of view-thread.ts: plans a program again and answers requests one after the other. */
import { parentPort, workerData } from "node:worker_threads";
import { installPart } from "../api/host.ts";
import { nodeHost } from "../node/host.ts";
import { livePlans } from "../view/plans.ts";
import type { Arguments } from "./command.ts";
import { loadProgram } from "./load.ts";
import { planLoaded, planSettings } from "./plan-figures.ts";
import type { ViewAnswer, ViewQuestion, ViewTask } from "./view-thread.ts";

const { program, options, points, strategies } = workerData as ViewTask;
const taskArguments: Arguments = {
  positionals: [program],
  value: (name) => (typeof options[name] === "string" ? options[name] : undefined),
  has: (name) => options[name] !== undefined,
};
const silent = { out: () => undefined, err: () => undefined };

installPart("host", nodeHost);
const loaded = await loadProgram(program);
const settings = await planSettings(taskArguments, silent, loaded);
const { plans } = planLoaded(loaded, settings);
const live = livePlans(plans, points, new Map(), { strategies, allowed: settings.memory });

function answerTo({ id, ask, args }: ViewQuestion): ViewAnswer {
  try {
    return { id, answer: (live[ask] as (...all: readonly unknown[]) => unknown)(...args) };
  } catch (error) {
    return { id, failure: error instanceof Error ? error.message : String(error) };
  }
}

parentPort?.on("message", (question: ViewQuestion) => parentPort?.postMessage(answerTo(question)));
