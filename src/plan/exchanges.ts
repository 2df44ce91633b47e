/** @file The collectives of a plan, for reports: what they give, over which axes, and whether they are in flight beside other steps. */
import { byteLength } from "../ir/type.ts";
import { isBlockingExchange } from "./exchange-step.ts";
import type { Step } from "./problem.ts";
import type { PlanStep, Program } from "./program.ts";

export interface ExchangeReport {
  /** The step that starts it, and the one that waits for it; null: it is done when its step is. */
  readonly start: Step;
  readonly wait: Step | null;
  readonly op: string;
  /** Names of axes. */
  readonly over: string;
  /** Of what it gives. */
  readonly bytes: number;
}

function reportOf({ steps }: Program, step: PlanStep, start: Step): ExchangeReport {
  const { node, writes, exchange } = step;
  const group = node.op.facts?.collective?.group?.(node.attrs);
  const bytes = writes.reduce((sum, { type }) => sum + byteLength(type), 0);
  const isWait = (other: PlanStep): boolean =>
    other.exchange?.kind === "wait" && other.exchange.flight === exchange?.flight;
  return {
    start,
    wait: exchange ? steps.findIndex(isWait) : null,
    op: node.op.name,
    over: group?.over.join() ?? "",
    bytes,
  };
}

/** Those inside of loops and branches, each once, however often it runs. */
export const exchangesInBodies = ({ steps }: Program): readonly ExchangeReport[] =>
  steps
    .flatMap(({ bodies = [] }) => bodies)
    .flatMap(({ program }) => [...exchangesOf(program), ...exchangesInBodies(program)]);

/** In the order of their starts; those inside of loops and branches are in the plans of these. */
export const exchangesOf = (program: Program): readonly ExchangeReport[] =>
  program.steps.flatMap((step, i) =>
    isBlockingExchange(step) || step.exchange?.kind === "start" ? [reportOf(program, step, i)] : [],
  );
