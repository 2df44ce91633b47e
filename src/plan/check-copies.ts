/**
 * @file Checks the copies of a program: a start, later exactly one wait, no reader of the destination before the wait,
 * two different spaces; every step that is not a copy stays in the first space, on queue 0.
 */
import { invariant } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import { sameType } from "../ir/type.ts";
import type { PlanStep, Program } from "./program.ts";
import { spaceOf } from "./space.ts";

export function checkCopies(program: Program): void {
  for (const space of program.spaceOf?.values() ?? [])
    invariant(program.spaces[space], () => `${program.name}: there is no memory space ${space}`);
  const inFlight = new Map<Value, Value>();
  program.steps.forEach((step, i) => {
    const message = (what: string) => `${program.name}: step ${i} (${step.node.op.name}): ${what}`;
    if (!step.copy) checkKernel(program, step, message);
    else if (step.copy.kind === "start") checkStart(program, step, message);
    else checkWait(step, inFlight, message);
    const early = step.copy?.kind === "wait" ? undefined : step.reads.find((value) => inFlight.has(value));
    invariant(!early, () => message(`reads ${early?.name ?? "a value"}, whose copy is not waited for`));
    if (step.copy?.kind === "start") inFlight.set(step.copy.to, step.copy.from);
  });
  invariant(inFlight.size === 0, () => `${program.name}: a copy is never waited for`);
}

type Message = (what: string) => string;

function checkKernel(program: Program, { reads, writes, exchange, queue = 0 }: PlanStep, message: Message): void {
  const isQueued = queue === 0 || exchange?.kind === "start";
  invariant(isQueued, () => message(`only copies and collectives run on queue ${queue}`));
  if (!program.spaceOf) return;
  const outside = [...reads, ...writes].find((value) => spaceOf(program, value) !== 0);
  invariant(!outside, () => message(`${outside?.name ?? "a value"} is not in the first memory space`));
}

function checkStart(program: Program, step: PlanStep, message: Message): void {
  const { copy, reads, writes } = step;
  invariant(copy && isBare(step), () => message("a copy has no workspace and shares nothing"));
  const plain = reads.length === 1 && reads[0] === copy.from && writes.length === 1 && writes[0] === copy.to;
  invariant(plain, () => message("a copy that starts reads its source and writes its destination"));
  invariant(sameType(copy.from.type, copy.to.type), () => message("a copy is of another type"));
  const spaces = [spaceOf(program, copy.from), spaceOf(program, copy.to)];
  invariant(spaces[0] !== spaces[1], () => message("a copy stays in its memory space"));
}

function checkWait(step: PlanStep, inFlight: Map<Value, Value>, message: Message): void {
  const { copy, reads, writes, queue = 0 } = step;
  invariant(copy && isBare(step) && queue === 0, () => message("a wait is on queue 0 and does nothing else"));
  const plain = reads.length === 2 && reads[0] === copy.from && reads[1] === copy.to && writes.length === 0;
  invariant(plain, () => message("a wait reads the copy's source and destination"));
  invariant(inFlight.get(copy.to) === copy.from, () => message("waits for a copy that was not started"));
  inFlight.delete(copy.to);
}

const isBare = ({ scratch, inPlace, alias, bodies }: PlanStep): boolean =>
  scratch.length === 0 && inPlace.length === 0 && alias === null && bodies === undefined;
