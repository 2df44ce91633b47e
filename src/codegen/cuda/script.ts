/**
 * @file Control around kernels, run by the host: what a script does becomes a row of commands for the device. Where nothing in
 * it depends on data, the row is the same for every run and can be made once; else words are read back from the device
 * while the script runs.
 */
import type { Kernel } from "../../kernel/loops.ts";
import type { Int, IntOp, Local, Statement } from "../script.ts";

/** What a script asks of the device. */
export interface ScriptDevice {
  kernel(kernel: Kernel, addresses: readonly number[]): void;
  copy(to: number, from: number, bytes: number): void;
  /** A word of 32 bits. */
  store(at: number, value: number): void;
  load(at: number, bytes: 1 | 4): number;
}

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
    case "kernel":
      return statement.addresses.some(loads);
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

export function runScript(statements: readonly Statement[], device: ScriptDevice): void {
  new ScriptRun(device).run(statements);
}

class ScriptRun {
  readonly #device: ScriptDevice;
  readonly #locals = new Map<Local, number>();

  constructor(device: ScriptDevice) {
    this.#device = device;
  }

  run(statements: readonly Statement[]): void {
    for (const statement of statements) this.#statement(statement);
  }

  #statement(statement: Statement): void {
    switch (statement.kind) {
      case "kernel":
        this.#device.kernel(
          statement.kernel,
          statement.addresses.map((address) => this.#value(address)),
        );
        return;
      case "copy":
        this.#device.copy(this.#value(statement.to), this.#value(statement.from), statement.bytes);
        return;
      case "store":
        this.#device.store(this.#value(statement.at), this.#value(statement.value));
        return;
      case "set":
        this.#locals.set(statement.local, this.#value(statement.value));
        return;
      case "while":
        while (this.#value(statement.test) !== 0) this.run(statement.body);
        return;
      case "if":
        this.run(this.#value(statement.test) !== 0 ? statement.then : statement.else);
    }
  }

  #value(int: Int): number {
    switch (int.kind) {
      case "const":
        return int.value;
      case "local":
        return this.#locals.get(int.local) ?? 0;
      case "load":
        return this.#device.load(this.#value(int.at), int.bytes);
      case "op":
        return OPS[int.op](this.#value(int.a), this.#value(int.b));
    }
  }
}
