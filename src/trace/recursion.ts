/**
 * @file Functions that call themselves while they are traced. Tracing follows every call, and it knows no values: a
 * condition over tensors, or a `cond`, of which both branches are traced, never ends a recursion. An overflow of
 * the call stack becomes an error that explains this.
 */
import { TidemarkError } from "../base/errors.ts";
import type { Build } from "../ir/build.ts";
import { lineOf, sourceLocation } from "./source-location.ts";

/**
 * Most functions that are traced inside one another (branches, bodies of loops, functions given to `grad` and
 * `checkpoint`). Half of what the call stack has room for, of passes over regions as well as of traces.
 */
export const MOST_NESTED = 256;

const HELP = `tensors have no values while they are traced, and cond traces both branches: neither ends a recursion. Write a \
loop: whileLoop(test, body, state), or scan or forLoop for a known number of steps. A recursion that a plain number ends is \
unrolled, up to ${MOST_NESTED} levels through cond, grad, checkpoint or loops, else as deep as the call stack allows`;

/** Throws where `name` would be traced deeper than is possible. */
export function requireDepth(name: string, depth: number): void {
  if (depth < MOST_NESTED) return;
  const summary = `${MOST_NESTED} functions are traced inside one another, the innermost is ${name}: infinite recursion?`;
  throw new TidemarkError("EndlessRecursion", summary, { where: sourceLocation(), help: HELP });
}

/** V8 and JavaScriptCore; SpiderMonkey. */
const OVERFLOW = /call stack|too much recursion/i;

/** The error to throw for one that a traced function threw: a stack overflow is explained. */
export function explained(error: unknown, { name, nodes }: Build): unknown {
  if (!(error instanceof Error) || error instanceof TidemarkError || !OVERFLOW.test(error.message)) return error;
  // The frames of an error are few, and may all be internal.
  const where = lineOf(error) ?? nodes[nodes.length - 1]?.where;
  const summary = `the call stack overflowed while ${name} was traced: recursion is infinite or too deep`;
  return new TidemarkError("EndlessRecursion", summary, { where, help: HELP });
}
