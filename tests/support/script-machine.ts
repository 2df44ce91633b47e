/**
 * @file Runs the control of a compiled program without its kernels: counters, addresses, loops and branches as the module
 * has them. What kernels and copies would do is the caller's to say, or just counted; memory is the caller's too where it
 * says how words are loaded and stored.
 */
import type { Int, Local, Statement } from "../../src/codegen/script.ts";
import type { Kernel } from "../../src/kernel/loops.ts";

export interface MachineEvents {
  onCopy?(to: number, from: number, bytes: number): void;
  onKernel?(kernel: Kernel, addresses: readonly number[]): void;
  /** Halves of collectives in flight; without them a start is its kernel. */
  onStart?(kernel: Kernel, addresses: readonly number[], flight: object): void;
  onWait?(flight: object): void;
  load?(at: number, bytes: 1 | 4): number;
  store?(at: number, value: number): void;
}

/** Numbers of 32 bits, and words of memory that were stored. */
export class ScriptMachine {
  readonly locals = new Map<Local, number>();
  readonly memory = new Map<number, number>();
  readonly #events: MachineEvents;

  constructor(events: MachineEvents = {}) {
    this.#events = events;
  }

  value(e: Int): number {
    if (e.kind === "const") return e.value;
    if (e.kind === "local") return this.locals.get(e.local) ?? 0;
    if (e.kind === "load") {
      const at = this.value(e.at);
      return this.#events.load ? this.#events.load(at, e.bytes) : (this.memory.get(at) ?? 0);
    }
    const [a, b] = [this.value(e.a), this.value(e.b)];
    switch (e.op) {
      case "add":
        return (a + b) | 0;
      case "sub":
        return (a - b) | 0;
      case "mul":
        return Math.imul(a, b);
      case "div":
        return Math.floor((a >>> 0) / (b >>> 0)) | 0;
      case "and":
        return a & b;
      case "eq":
        return Number(a === b);
      case "lt":
        return Number(a < b);
      case "le":
        return Number(a <= b);
    }
  }

  run(statements: readonly Statement[]): void {
    for (const s of statements) {
      if (s.kind === "set") this.locals.set(s.local, this.value(s.value));
      else if (s.kind === "if") this.run(this.value(s.test) !== 0 ? s.then : s.else);
      else if (s.kind === "while") while (this.value(s.test) !== 0) this.run(s.body);
      else if (s.kind === "store") this.#store(this.value(s.at), this.value(s.value));
      else if (s.kind === "copy") this.#events.onCopy?.(this.value(s.to), this.value(s.from), s.bytes);
      else if (s.kind === "kernel" || s.kind === "start") {
        const addresses = s.addresses.map((address) => this.value(address));
        if (s.kind === "start" && this.#events.onStart) this.#events.onStart(s.kernel, addresses, s.flight);
        else this.#events.onKernel?.(s.kernel, addresses);
      } else if (s.kind === "wait") this.#events.onWait?.(s.flight);
    }
  }

  #store(at: number, value: number): void {
    if (this.#events.store) this.#events.store(at, value);
    else this.memory.set(at, value);
  }
}
