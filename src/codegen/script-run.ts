/**
 * @file Control around kernels, run by the host: what a script does becomes actions for a device, in order. Where nothing in it depends
 * on data, the actions are the same for every run and can be listed once; else words are asked for while the script runs:
 *
 *   runScript(script) ── kernel, copy, store ──→ device          load ──→ device ──→ the word, now or after waiting for it
 */
import type { Kernel } from "../kernel/loops.ts";
import type { Int, IntOp, Local, Statement } from "./script.ts";

export type Action =
  /** With a flight it is a collective that is begun, and waited for by that flight. */
  | {
      readonly kind: "kernel";
      readonly kernel: Kernel;
      readonly addresses: readonly number[];
      readonly flight?: object;
    }
  | { readonly kind: "wait"; readonly flight: object }
  | { readonly kind: "copy"; readonly to: number; readonly from: number; readonly bytes: number }
  /** A word of 32 bits. */
  | { readonly kind: "store"; readonly at: number; readonly value: number }
  /** The script goes on with what is there. */
  | { readonly kind: "load"; readonly at: number; readonly bytes: 1 | 4 };

/** Actions; the numbers that it is given are those that the last `load` asked for. */
export type ScriptRun = Generator<Action, void, number | undefined>;

const OPS: Readonly<Record<IntOp, (a: number, b: number) => number>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => Math.floor(a / b),
  and: (a, b) => a & b,
  eq: (a, b) => Number(a === b),
  lt: (a, b) => Number(a < b),
  le: (a, b) => Number(a <= b),
};

const loads = (int: Int): boolean => int.kind === "load" || (int.kind === "op" && (loads(int.a) || loads(int.b)));

/** Whether anything that a script does depends on the arena's content, but for what its kernels compute. */
export const readsData = (statements: readonly Statement[]): boolean => statements.some(readsIn);

function readsIn(statement: Statement): boolean {
  switch (statement.kind) {
    case "start":
    case "kernel":
      return statement.addresses.some(loads);
    case "wait":
    case "test":
      return false;
    case "copy":
      return loads(statement.to) || loads(statement.from);
    case "store":
      return loads(statement.at) || loads(statement.value);
    case "set":
      return loads(statement.value);
    case "while":
      return loads(statement.test) || readsData(statement.body);
    case "if":
      return loads(statement.test) || readsData(statement.then) || readsData(statement.else);
  }
}

export const runScript = (statements: readonly Statement[]): ScriptRun => new Runner().run(statements);

class Runner {
  readonly #locals = new Map<Local, number>();

  *run(statements: readonly Statement[]): ScriptRun {
    for (const statement of statements) yield* this.#statement(statement);
  }

  *#statement(statement: Statement): ScriptRun {
    switch (statement.kind) {
      case "start":
      case "kernel": {
        const addresses: number[] = [];
        for (const address of statement.addresses) addresses.push(this.#now(address) ?? (yield* this.#asked(address)));
        const { kernel } = statement;
        yield { kind: "kernel", kernel, addresses, ...(statement.kind === "start" && { flight: statement.flight }) };
        return;
      }
      case "wait":
        yield statement;
        return;
      case "test":
        return;
      case "copy": {
        const to = this.#now(statement.to) ?? (yield* this.#asked(statement.to));
        const from = this.#now(statement.from) ?? (yield* this.#asked(statement.from));
        yield { kind: "copy", to, from, bytes: statement.bytes };
        return;
      }
      case "store": {
        const place = this.#now(statement.at) ?? (yield* this.#asked(statement.at));
        const value = this.#now(statement.value) ?? (yield* this.#asked(statement.value));
        yield { kind: "store", at: place, value };
        return;
      }
      case "set":
        this.#locals.set(statement.local, this.#now(statement.value) ?? (yield* this.#asked(statement.value)));
        return;
      case "while":
        while ((this.#now(statement.test) ?? (yield* this.#asked(statement.test))) !== 0)
          yield* this.run(statement.body);
        return;
      case "if": {
        const test = this.#now(statement.test) ?? (yield* this.#asked(statement.test));
        yield* this.run(test !== 0 ? statement.then : statement.else);
      }
    }
  }

  /** A number that depends on no word of the device, which most do not; else null. */
  #now(int: Int): number | null {
    switch (int.kind) {
      case "const":
        return int.value;
      case "local":
        return this.#locals.get(int.local) ?? 0;
      case "load":
        return null;
      case "op": {
        const [a, b] = [this.#now(int.a), this.#now(int.b)];
        return a === null || b === null ? null : OPS[int.op](a, b);
      }
    }
  }

  *#asked(int: Int): Generator<Action, number, number | undefined> {
    switch (int.kind) {
      case "const":
      case "local":
        return this.#now(int) ?? 0;
      case "load":
        return (yield { kind: "load", at: yield* this.#asked(int.at), bytes: int.bytes }) ?? 0;
      case "op":
        return OPS[int.op](yield* this.#asked(int.a), yield* this.#asked(int.b));
    }
  }
}

/** Runs a script on a device that does not have to be waited for. */
export function driveScript(
  statements: readonly Statement[],
  act: (action: Exclude<Action, { kind: "load" }>) => void,
  load: (at: number, bytes: 1 | 4) => number,
): void {
  const run = runScript(statements);
  let next = run.next();
  while (!next.done) {
    const action = next.value;
    if (action.kind === "load") next = run.next(load(action.at, action.bytes));
    else {
      act(action);
      next = run.next();
    }
  }
}
