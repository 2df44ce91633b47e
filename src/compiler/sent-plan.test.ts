/** @file Under which key a plan is kept that a worker made: that of the planner at hand, and of the same request on this thread. */
import { expect, it } from "vitest";
import { parseCompile } from "../api/request.ts";
import { traceProgram } from "../api/traced-program.ts";
import { ALL_PROGRAMS } from "../cli/programs/built-in.ts";
import { wasmTarget } from "../runtime/wasm-target.ts";
import { type AnyFunction, flattenArguments } from "../trace/function.ts";
import { OPS } from "./known-ops.ts";
import { PlanCache, type PlanStore, settingsOf } from "./plan-cache.ts";
import { memoryKey } from "./request.ts";
import { planTask, storeKey } from "./sent-plan.ts";

const store = (planner: string, digest?: (text: string) => string): PlanStore => ({
  ...{ ops: OPS, planner, leastMs: 0, read: () => null, write: () => undefined },
  ...(digest ? { digest } : {}),
});

it("plans of another planner, and of other digests, are kept under other keys", () => {
  const program = ALL_PROGRAMS.find(({ name }) => name === "gpt");
  if (!program) throw new Error("there is no program gpt");
  const request = parseCompile("compile", { donate: [0] });
  const step = program.step as AnyFunction;
  const args = [program.init(), ...program.batch()];
  const source = traceProgram(step, flattenArguments(step, args), request);
  const { description } = wasmTarget();
  const task = planTask(source, description, request);
  if (typeof task === "string") throw new Error(task);
  const keys = [store("one"), store("other"), store("one", (text) => `${text.length}`)].map((kept) =>
    storeKey(kept, source, task),
  );
  expect(new Set(keys).size).toBe(3);
  expect(keys).not.toContain(null);
  const settings = settingsOf(source, description.key ?? "", description.rates);
  expect(PlanCache.of(store("one"), source.graph, settings)?.keyOf(memoryKey(request.memory))).toBe(keys[0]);
});
