/**
 * @file The steps of a collective in flight. The start has the collective's own node, which has a kernel; those of waits and tests
 * are in no graph.
 */
import type { Phase, Value } from "../ir/graph.ts";
import { identityOp, nodeOf, WAIT } from "./copy-step.ts";
import type { Plan } from "./problem.ts";
import type { Flight, PlanStep } from "./program.ts";

/** The queue of collectives: one after the other. */
export const NETWORK = 1;

const TEST = identityOp("test");
const BARE = { scratch: [], inPlace: [], alias: null } as const;

/** Whether a step is an exchange with other devices that is done when the step is. */
export function isBlockingExchange({ node, exchange, bodies }: PlanStep): boolean {
  if (exchange || bodies) return false;
  const what = node.op.facts?.collective?.what;
  return what !== undefined && what !== "mark" && what !== "device_index";
}

/** Whether a plan exchanges anything with other devices, in loops and branches too, that is done when its step is. */
export const hasBlockingExchanges = ({ program }: Plan): boolean =>
  program.steps.some((step) => isBlockingExchange(step) || step.bodies?.some(hasBlockingExchanges));

export const flightOf = ({ node, reads, writes }: PlanStep): Flight => ({ node, reads, writes });

/** Begins a collective; `isOver`: it may be written over what it reads, which nothing else needs. */
export function startExchange(step: PlanStep, flight: Flight, isOver: boolean): PlanStep {
  const inPlace = isOver ? step.inPlace : [];
  return { ...step, inPlace, queue: NETWORK, exchange: { kind: "start", flight } };
}

/** Continues when it is done. */
export function waitExchange(flight: Flight, isOver: boolean, phase: Phase): PlanStep {
  const reads: Value[] = isOver ? [...flight.writes] : [...new Set([...flight.writes, ...flight.reads])];
  return {
    node: nodeOf(WAIT, flight.writes, [], phase),
    reads,
    writes: [],
    ...BARE,
    exchange: { kind: "wait", flight },
  };
}

/** Lets all that is in flight make progress. */
export const testExchanges = (phase: Phase): PlanStep => ({
  node: nodeOf(TEST, [], [], phase),
  reads: [],
  writes: [],
  ...BARE,
  exchange: { kind: "test", flight: null },
});
