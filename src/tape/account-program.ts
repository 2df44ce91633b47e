/**
 * @file The account (account.ts) of a traced program, and of each of its backward passes. A step that takes gradients of gradients has
 * several; for each, everything before it is its forward pass:
 *
 *   forward │ backward 1 │ forward │ backward 2 │ update
 *   ╰ pass 1 holds ╯
 *   ╰──────────── pass 2 holds ────╯
 */
import { currentHost } from "../api/host.ts";
import { ProgramPlans } from "../compiler/assemble.ts";
import { PLAIN_REQUEST } from "../compiler/request.ts";
import type { Graph, Value } from "../ir/graph.ts";
import type { Plan } from "../plan/problem.ts";
import { wasmTarget } from "../runtime/wasm-target.ts";
import { type AccountTotals, accountOf, type TapeAccount } from "./account.ts";

export interface ProgramAccount extends TapeAccount {
  /** What each backward pass of the program holds when it begins, in their order. */
  readonly passes: readonly AccountTotals[];
}

/** The plan of a graph by itself, with everything stored. */
export function planOf(graph: Graph): Plan {
  const host = currentHost();
  const plans = new ProgramPlans({ graph }, wasmTarget().description, { ...PLAIN_REQUEST, cache: false }, host);
  return plans.choose().result.plan;
}

export const totalsOf = ({
  overloadBytes,
  namedSavesBytes,
  tapeBytes,
  plannedBytes,
}: AccountTotals): AccountTotals => ({
  ...{ overloadBytes, namedSavesBytes, tapeBytes, plannedBytes },
});

/** Positions of consecutive nodes of the backward phase. */
function backwardPasses({ nodes }: Graph): readonly (readonly [from: number, to: number])[] {
  const passes: [number, number][] = [];
  nodes.forEach(({ phase }, i) => {
    if (phase !== "backward") return;
    const last = passes.at(-1);
    if (last?.[1] === i) last[1] = i + 1;
    else passes.push([i, i + 1]);
  });
  return passes;
}

/** The program up to the end of a backward pass, with everything before the pass as its forward pass. */
function upTo({ name, params, nodes, results }: Graph, [from, to]: readonly [number, number]): Graph {
  const kept = nodes
    .slice(0, to)
    .map((node, i) => ({ ...node, phase: i < from ? ("forward" as const) : ("backward" as const) }));
  const read = new Set<Value>(kept.flatMap(({ inputs }) => inputs));
  const used = new Set<Value>([...nodes.slice(to).flatMap(({ inputs }) => inputs), ...results]);
  const made = kept.slice(from).flatMap(({ outputs }) => outputs);
  return { name, params, nodes: kept, results: made.filter((value) => used.has(value) || !read.has(value)) };
}

/** The account of a program that was traced with its backward passes, and of its plan. */
export function programAccount(graph: Graph, plan: Plan): ProgramAccount {
  const account = accountOf(graph, plan);
  const found = backwardPasses(graph);
  const passes = found.map((pass) => {
    const part = upTo(graph, pass);
    // a plan has one order of steps for all passes: what one of several holds is planned by itself
    return totalsOf(accountOf(part, found.length === 1 ? plan : planOf(part)));
  });
  return { ...account, passes };
}
