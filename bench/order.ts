/**
 * @file The benefit of ordering steps: peaks of live bytes in program order, with steps that free memory run early, and
 * as planned; the lower bound over all orders by minimum cuts; how many peaks are proved to be optimal; processor time.
 * For built-in programs, also the least peak without further copies at the end and with any ("=" where it is proved).
 *
 *   node bench/order.ts                                                                 Node 22.18 or newer
 *   npx rolldown bench/order.ts -p node --file dist/bench.mjs && node dist/bench.mjs    Node 20
 *
 * Words after the command choose among the tables: `programs`, `random`, `large`.
 */
import "../src/api/index.ts";
import { traceProgram } from "../src/api/traced-program.ts";
import { type AnyProgram, BUILT_IN } from "../src/cli/programs/built-in.ts";
import { wasmDescription } from "../src/codegen/wasm/description.ts";
import { assemble } from "../src/compiler/assemble.ts";
import type { Graph } from "../src/ir/graph.ts";
import type { Pass } from "../src/passes/pass.ts";
import { fusedPipeline } from "../src/passes/pipeline.ts";
import { assignBuffers } from "../src/plan/alias.ts";
import { boundOf } from "../src/plan/bound.ts";
import { minimumCut } from "../src/plan/order/cut.ts";
import { ListScheduler } from "../src/plan/order/list.ts";
import { type Model, modelOf } from "../src/plan/order/model.ts";
import { findOrders, orderSteps, SLACKS } from "../src/plan/order.ts";
import { planProgram } from "../src/plan/plan.ts";
import { problemIn } from "../src/plan/problem.ts";
import type { Program } from "../src/plan/program.ts";
import { flattenArguments } from "../src/trace/function.ts";
import { branchedProgram, layeredProgram, trainingProgram, treeProgram } from "./order-programs.ts";

/** A built-in training step as it is handed to the planner, before its steps are ordered. */
function traced({ step, init, batch }: AnyProgram): Program {
  const fn = step as Parameters<typeof flattenArguments>[0];
  const source = traceProgram(fn, flattenArguments(fn, [init(), ...batch()]), { donate: [0] });
  const made: Graph[] = [];
  const look: Pass = {
    name: "look",
    run: (g) => {
      made.push(g);
      return g;
    },
  };
  const { program } = assemble(source, wasmDescription(), { passes: [...fusedPipeline, look] }).plan;
  const position = new Map(made[0]!.nodes.map((node, i) => [node, i]));
  return {
    ...program,
    steps: [...program.steps].sort((a, b) => position.get(a.node)! - position.get(b.node)!),
  };
}

const peak = (program: Program): number => boundOf(problemIn(assignBuffers(program).problem)).bytes;

/** The lowest peak that list scheduling reaches alone. */
function earlyPeak(program: Program, model: Model): number {
  const given = Array.from({ length: model.steps }, (_, i) => i);
  const lists = new ListScheduler(model);
  const peaks = SLACKS.map((share) => {
    const order = lists.order(given, Math.floor(peak(program) * share));
    return peak({ ...program, steps: Array.from(order, (i) => program.steps[i]!) });
  });
  return Math.min(peak(program), ...peaks);
}

/** The largest of all steps' minimum cuts. */
function lowerBound(model: Model): number {
  let bound = 0;
  for (let step = 0; step < model.steps; step++) bound = Math.max(bound, minimumCut(model, step, 1e8).cut?.bytes ?? 0);
  return bound;
}

function cpuMs<T>(run: () => T): readonly [T, number] {
  const before = process.cpuUsage();
  const result = run();
  const { user, system } = process.cpuUsage(before);
  return [result, (user + system) / 1000];
}

const line = (cells: readonly (string | number)[]): void =>
  console.log(cells.map((c, i) => (i === 0 ? String(c).padEnd(18) : String(c).padStart(13))).join(""));

function programs(): void {
  line(["program", "steps", "given", "early", "ordered", "copied", "no copies", "with copies", "arena", "ms"]);
  for (const builtIn of BUILT_IN) {
    const program = traced(builtIn);
    const model = modelOf(program);
    const least = [model, modelOf(program, "allow")].map((m) => {
      const { bytes, optimal } = findOrders(m);
      return `${optimal ? "=" : "≤"} ${bytes}`;
    });
    const [ordered, ms] = cpuMs(() => orderSteps(program));
    const { problem, copies } = assignBuffers(ordered);
    const copied = copies.reduce((sum, { from }) => sum + problem.buffers[from]!.bytes, 0);
    const peaks = [peak(program), earlyPeak(program, model), peak(ordered)];
    line([builtIn.name, model.steps, ...peaks, copied, ...least, planProgram(program).height, ms.toFixed(0)]);
  }
}

/** Geometric means over seeds, relative to program order. */
function random(): void {
  line(["random", "steps", "early", "ordered", "lower bound", "optimal", "ms"]);
  const kinds: readonly (readonly [string, number, (seed: number) => Program])[] = [
    ["layered, reach 8", 20, (seed) => layeredProgram(50, 8, seed)],
    ["layered, reach 30", 20, (seed) => layeredProgram(50, 30, seed)],
    ["layered, reach 10", 20, (seed) => layeredProgram(100, 10, seed)],
    ["layered, reach 12", 20, (seed) => layeredProgram(200, 12, seed)],
    ["layered, reach 60", 10, (seed) => layeredProgram(200, 60, seed)],
    ["branched", 20, (seed) => branchedProgram(4, seed)],
    ["branched", 20, (seed) => branchedProgram(12, seed)],
    ["tree", 20, (seed) => treeProgram(150, seed)],
  ];
  for (const [name, seeds, make] of kinds) {
    const sums = [0, 0, 0, 0, 0, 0];
    for (let seed = 1; seed <= seeds; seed++) {
      const program = make(seed);
      const model = modelOf(program);
      const [{ bytes, optimal }, ms] = cpuMs(() => findOrders(model));
      const given = peak(program);
      const shares = [earlyPeak(program, model), bytes, lowerBound(model)].map((x) => Math.log(x / given));
      [model.steps, ...shares, optimal ? 1 : 0, ms].forEach((x, i) => {
        sums[i]! += x;
      });
    }
    const [steps, ...rest] = sums.map((sum) => sum / seeds);
    const shares = rest.slice(0, 3).map((mean) => Math.exp(mean).toFixed(3));
    line([name, steps!.toFixed(0), ...shares, `${sums[4]}/${seeds}`, rest[4]!.toFixed(0)]);
  }
}

function large(): void {
  line(["large", "steps", "given", "ordered", "ms"]);
  for (const steps of [5000, 20_000, 50_000]) {
    const made = [trainingProgram(steps / 5), layeredProgram(steps, 40, 1), branchedProgram(Math.floor(steps / 15), 1)];
    for (const program of made) {
      const [ordered, ms] = cpuMs(() => orderSteps(program));
      line([program.name, program.steps.length, peak(program), peak(ordered), ms.toFixed(0)]);
    }
  }
}

const tables = { programs, random, large };
const wanted = process.argv.slice(2);
for (const [name, table] of Object.entries(tables)) if (wanted.length === 0 || wanted.includes(name)) table();
