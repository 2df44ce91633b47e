/**
 * @file Control around kernel calls: a small language of whole numbers, so that a loop of the program is a loop of the
 * module. Addresses are numbers like any other, computed from counters where a kernel reads row after row:
 *
 *   i = 0
 *   while i < 1000:
 *     kernel at 4096, 64 + i · 256, 8192 + i · 1024
 *     i = i + 1
 *
 * Counters are locals of the function, everything else is in the arena. The size of the code has nothing to do with how
 * often it runs. Numbers are as wide as addresses of the target; counters and loaded numbers have 32 bits.
 */
import type { Kernel } from "../kernel/loops.ts";
import type { ExchangeStep } from "../plan/program.ts";

/** A variable, of 32 bits or wider; told apart by identity. */
export interface Local {
  readonly name: string;
}

/** Wrapping arithmetic; `div` is that of numbers that are not negative, comparisons are signed and give 0 or 1. */
export type IntOp = "add" | "sub" | "mul" | "div" | "and" | "eq" | "lt" | "le";

export type Int =
  | { readonly kind: "const"; readonly value: number }
  | { readonly kind: "local"; readonly local: Local }
  /** One byte or four of the arena. */
  | { readonly kind: "load"; readonly at: Int; readonly bytes: 1 | 4 }
  | { readonly kind: "op"; readonly op: IntOp; readonly a: Int; readonly b: Int };

/** A kernel with the addresses of its operands. */
export interface KernelCall {
  readonly kernel: Kernel;
  readonly addresses: readonly Int[];
}

/**
 * Part of a collective that is in flight while the statements go on (plan/program.ts): `start` begins it, `wait` continues when it is
 * done, `test` lets all that are in flight make progress. Both halves of one have the same `flight`, and stand in one list of
 * statements. Where collectives are done when their call returns, a start is the kernel and the others are nothing.
 */
export type ExchangeStatement =
  | ({ readonly kind: "start"; readonly flight: object } & KernelCall)
  | { readonly kind: "wait"; readonly flight: object }
  | { readonly kind: "test" };

export type Statement =
  | ({ readonly kind: "kernel" } & KernelCall)
  | ExchangeStatement
  | { readonly kind: "copy"; readonly to: Int; readonly from: Int; readonly bytes: number }
  | { readonly kind: "store"; readonly at: Int; readonly value: Int }
  | { readonly kind: "set"; readonly local: Local; readonly value: Int }
  | { readonly kind: "while"; readonly test: Int; readonly body: readonly Statement[] }
  | {
      readonly kind: "if";
      readonly test: Int;
      readonly then: readonly Statement[];
      readonly else: readonly Statement[];
    };

export const int = (value: number): Int => ({ kind: "const", value });
export const read = (local: Local): Int => ({ kind: "local", local });
export const loadAt = (at: Int, bytes: 1 | 4 = 4): Int => ({ kind: "load", at, bytes });
export const set = (local: Local, value: Int): Statement => ({ kind: "set", local, value });
export const store = (at: Int, value: Int): Statement => ({ kind: "store", at, value });
export const repeatWhile = (test: Int, body: readonly Statement[]): Statement => ({ kind: "while", test, body });

export const choose = (test: Int, then: readonly Statement[], otherwise: readonly Statement[] = []): Statement => ({
  kind: "if",
  test,
  then,
  else: otherwise,
});

export function intOp(op: IntOp, a: Int, b: Int): Int {
  return { kind: "op", op, a, b };
}

export function plus(a: Int, b: Int | number): Int {
  const right = typeof b === "number" ? int(b) : b;
  if (right.kind === "const" && right.value === 0) return a;
  if (a.kind === "const" && right.kind === "const") return int(a.value + right.value);
  // constants come last, so that they meet
  if (a.kind === "op" && a.op === "add" && a.b.kind === "const" && right.kind === "const") {
    return plus(a.a, a.b.value + right.value);
  }
  return a.kind === "const" ? plus(right, a) : intOp("add", a, right);
}

export function times(a: Int, b: number): Int {
  if (a.kind === "const") return int(a.value * b);
  return b === 1 ? a : intOp("mul", a, int(b));
}

/** Whether two numbers are equal for all values of the locals. */
export function sameInt(a: Int, b: Int): boolean {
  if (a === b) return true;
  if (a.kind === "const") return b.kind === "const" && a.value === b.value;
  if (a.kind === "local") return b.kind === "local" && a.local === b.local;
  if (a.kind === "op") return b.kind === "op" && a.op === b.op && sameInt(a.a, b.a) && sameInt(a.b, b.b);
  return false;
}

/** The kernel that a statement calls, at once or begins to. */
export const callOf = (statement: Statement): KernelCall | null =>
  statement.kind === "kernel" || statement.kind === "start" ? statement : null;

/** The code of a part of a collective in flight; `calls` is what its node is where it is done at once. */
export function exchangeStatements(part: ExchangeStep, calls: readonly Statement[]): readonly Statement[] {
  if (part.kind === "test") return [{ kind: "test" }];
  const { kind, flight } = part;
  if (kind === "wait") return [{ kind, flight }];
  return calls.flatMap((call) => (call.kind === "kernel" ? [{ ...call, kind, flight }] : []));
}

/** Whether a kernel that the statements call, in loops and branches too, is such a one. */
export function someKernel(statements: readonly Statement[], test: (kernel: Kernel) => boolean): boolean {
  return statements.some((statement) => {
    if (statement.kind === "while") return someKernel(statement.body, test);
    if (statement.kind === "if") return someKernel(statement.then, test) || someKernel(statement.else, test);
    const call = callOf(statement);
    return call !== null && test(call.kernel);
  });
}

/** A copy, unless both are one place or there is nothing to copy. */
export function copy(to: Int, from: Int, bytes: number): readonly Statement[] {
  return bytes === 0 || sameInt(to, from) ? [] : [{ kind: "copy", to, from, bytes }];
}
