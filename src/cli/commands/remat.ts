/** @file `tidemark remat`: plans recomputation for a graph in a file, within a number of bytes. */
import { parseBytes } from "../../base/bytes.ts";
import { counted, grouped, TidemarkError } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";
import { findSolver } from "../../node/highs.ts";
import { fitArena } from "../../plan/recompute/arena.ts";
import type { Answer } from "../../plan/recompute/auto.ts";
import { baseSequence, leastBytes, type RecomputeProblem, type Sequence } from "../../plan/recompute/problem.ts";
import { readGraph } from "../../plan/recompute/read-graph.ts";
import { simulate } from "../../plan/recompute/simulate.ts";
import { answerOf, auto, graphStrategy, planRecompute } from "../../plan/recompute/strategies.ts";
import type { RecomputeOptions, Strategy } from "../../plan/recompute/strategy.ts";
import { ALL_STRATEGIES } from "../../remat/exact-planner.ts";
import { type PackedSequence, packSequence } from "../../remat/pack-sequence.ts";
import { planGraph } from "../../remat/plan-graph.ts";
import { graphPortfolio } from "../../remat/portfolio.ts";
import { type Command, type Io, usageError, writeJson } from "../command.ts";
import { readText } from "../files.ts";

/** Those that are not about loops, of which graphs have none. */
const GRAPH_STRATEGIES = ALL_STRATEGIES.filter(({ loopsOnly }) => !loopsOnly);

/** Bytes, or below 1 a fraction of the peak without recomputation. */
function budgetOf(problem: RecomputeProblem, text: string | undefined): number {
  if (text === undefined) throw usageError("remat: no budget given", "--budget 256MB, or --budget 0.8 of the peak");
  if (/^0?\.[0-9]+$/.test(text)) return Math.floor(Number(text) * simulate(problem, baseSequence(problem)).peakBytes);
  return parseBytes(text);
}

function secondsOf(text: string | undefined): number {
  const seconds = Number(text ?? "10");
  if (!(seconds > 0)) throw usageError(`remat: invalid --timeout ${text}`, "give seconds, as in --timeout 10");
  return seconds;
}

/** The cost of a plan over the bound, minus 1. */
const gapOf = ({ cost, boundCost, proven }: Answer): number => (proven ? 0 : cost / boundCost - 1);

/** A plan, with offsets of its values under `--arena`. */
interface PlannedGraph {
  readonly answer: Answer;
  readonly arenaBytes?: number;
  readonly packed?: PackedSequence;
}

/** A plan whose values have addresses below `budget`. */
function planArena(
  problem: RecomputeProblem,
  budget: number,
  strategy: Strategy,
  options: RecomputeOptions,
): PlannedGraph {
  // a tenth of the time for each packing, so that several plans can be packed
  const timeoutMs = (options.seconds ?? 10) * 100;
  const pack = (sequence: Sequence) => packSequence(problem, sequence, budget, { timeoutMs });
  const portfolio = graphPortfolio(options);
  const fit = fitArena(problem, budget, pack, { ...options, strategy, portfolio, thorough: true });
  if (fit) return { answer: fit.plan, arenaBytes: fit.realised.arenaBytes, packed: fit.realised.result };
  return { answer: { ...answerOf(problem, budget, null), feasible: false, strategy: strategy.name } };
}

/** A free strategy has all searches here, and the order of first executions where that is free too. */
function planLive(
  problem: RecomputeProblem,
  budget: number,
  strategy: Strategy,
  options: RecomputeOptions,
): PlannedGraph {
  if (!strategy.isFree) return { answer: planRecompute(problem, budget, strategy, options) };
  return { answer: planGraph(problem, budget, { ...options, order: "any" }) };
}

/** A plan with its budget and the time it took. */
interface Outcome extends PlannedGraph {
  readonly budget: number;
  readonly ms: number;
}

function writeWords(io: Io, problem: RecomputeProblem, { answer, arenaBytes, budget, ms }: Outcome): void {
  const { sequence, peakBytes, cost, baseCost, boundCost, proven, feasible } = answer;
  const ratio = (n: number): string => (n / Math.max(baseCost, Number.MIN_VALUE)).toFixed(4);
  const repeated = sequence.length - problem.ops.length;
  io.out(`${counted(problem.ops.length, "operation")}, ${counted(repeated, "repetition")}, by ${answer.strategy}\n`);
  const arena = arenaBytes === undefined ? "" : ` live, an arena of ${grouped(arenaBytes)}`;
  io.out(`${grouped(peakBytes)} of ${grouped(budget)} bytes${arena}, ${ms.toFixed(0)} ms\n`);
  io.out(`cost ${ratio(cost)}, bound ${ratio(boundCost)}${proven && feasible ? ", optimal" : ""}\n`);
}

export const remat: Command = {
  name: "remat",
  positionals: ["GRAPH.json"],
  summary: "schedule a graph with recomputation within a number of bytes, at the least cost",
  details: [
    "GRAPH.json is node-link JSON (nodes: id, cost_cpu, cost_ram; links: source, target) or a trace (size, const,",
    "outputs, ops). A value lives from one of its computations to its last use before the next one. Exit code 1 if no plan",
    "fits. First executions are in the order of the file; if auto finds no plan, it tries another order, unless constants",
    "appear after the start or --arena is given. With --arena, JSON has `offsets` (of each output, per entry of the sequence) and",
    "`constants`.",
    `Strategies: ${GRAPH_STRATEGIES.map(({ name }) => name).join(", ")}.`,
  ].join("\n"),
  options: {
    budget: {
      value: "SIZE",
      help: "limit on live bytes; a number below 1 is a fraction of the peak without recomputation",
    },
    strategy: { value: "NAME", help: "default: auto" },
    timeout: { value: "S", help: "limit on planning time in seconds, default: 10" },
    arena: { help: "apply the budget to the packed arena, with fragmentation, instead of live bytes" },
    json: { help: "print one line of JSON" },
  },
  async run(args, io) {
    const file = args.positionals[0] as string;
    const problem = readGraph(readText(file, ".json"));
    const budget = budgetOf(problem, args.value("budget"));
    const strategy = graphStrategy(args.value("strategy") ?? auto.name, ALL_STRATEGIES);
    const seconds = secondsOf(args.value("timeout"));
    const started = performance.now();
    const solver = strategy.solver === undefined ? undefined : findSolver()?.solve;
    const options = { seconds, solver };
    const plan = args.has("arena") ? planArena : planLive;
    const planned = plan(problem, budget, strategy, options);
    const ms = performance.now() - started;
    const { peakBytes, cost, baseCost, boundCost, feasible, proven } = planned.answer;
    if (args.has("json")) {
      const sequence = planned.answer.sequence.map((op) => at(problem.ops, op).id);
      const bound = Number.isFinite(boundCost) ? boundCost : null;
      const gap = feasible && boundCost > 0 ? gapOf(planned.answer) : null;
      const costs = { cost, baseCost, boundCost: bound, gap, feasible, proven };
      const bytes = { budgetBytes: budget, peakBytes, arenaBytes: planned.arenaBytes };
      // undefined properties are omitted
      writeJson(io, { strategy: planned.answer.strategy, ...bytes, ...costs, ms, sequence, ...planned.packed });
    } else {
      writeWords(io, problem, { ...planned, budget, ms });
    }
    if (feasible) return;
    const needs = proven ? "no plan fits" : "no plan was found that fits";
    throw new TidemarkError("PlanInfeasible", `${needs} ${grouped(budget)} bytes`, {
      help: `one operation alone needs ${grouped(leastBytes(problem))} bytes; without recomputation it is ${grouped(
        simulate(problem, baseSequence(problem)).peakBytes,
      )}`,
    });
  },
};
