/**
 * @file Checks the collectives in flight of a program: a start, later exactly one wait, nothing that touches what is written in
 * between; what is read lives to the wait, or the start may write over it.
 */
import { invariant } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import type { Flight, PlanStep, Program } from "./program.ts";

export function checkExchanges(program: Program): void {
  const inFlight = new Map<Flight, PlanStep>();
  program.steps.forEach((step, i) => {
    const message = (what: string) => `${program.name}: step ${i} (${step.node.op.name}): ${what}`;
    const { exchange } = step;
    if (exchange?.kind === "wait") checkWait(step, exchange.flight, inFlight, message);
    const touched = [...step.reads, ...step.writes];
    for (const { writes } of inFlight.keys()) {
      const early = touched.find((value) => writes.includes(value));
      invariant(!early, () => message(`touches ${early?.name ?? "a value"}, whose collective is not waited for`));
    }
    if (exchange?.kind === "test")
      invariant(isBare(step) && touched.length === 0, () => message("a test has no operands"));
    if (exchange?.kind !== "start") return;
    const { flight } = exchange;
    const isOwn =
      flight.reads.every((v) => step.reads.includes(v)) && flight.writes.every((v) => step.writes.includes(v));
    invariant(isOwn && flight.node === step.node, () => message("starts another collective than it says"));
    invariant(step.scratch.length === 0 && !step.alias, () =>
      message("a collective has no workspace and renames nothing"),
    );
    invariant(!inFlight.has(flight), () => message("starts a collective again"));
    inFlight.set(flight, step);
  });
  invariant(inFlight.size === 0, () => `${program.name}: a collective is never waited for`);
}

type Message = (what: string) => string;

function checkWait(step: PlanStep, flight: Flight, inFlight: Map<Flight, PlanStep>, message: Message): void {
  const start = inFlight.get(flight);
  invariant(start, () => message("waits for a collective that was not started"));
  invariant(isBare(step) && !step.queue && step.writes.length === 0, () => message("a wait does nothing else"));
  const isHeld = (value: Value): boolean =>
    step.reads.includes(value) || (start?.inPlace.some(([read]) => read === value) ?? false);
  const lost = [...flight.writes.filter((v) => !step.reads.includes(v)), ...flight.reads.filter((v) => !isHeld(v))][0];
  invariant(!lost, () => message(`a wait reads what is in flight: not ${lost?.name ?? "a value"}`));
  inFlight.delete(flight);
}

const isBare = ({ scratch, inPlace, alias, bodies, copy }: PlanStep): boolean =>
  scratch.length === 0 && inPlace.length === 0 && alias === null && bodies === undefined && copy === undefined;
