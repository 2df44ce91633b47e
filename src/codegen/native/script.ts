/**
 * @file Steps of a program as C: kernel calls, copies, loops and branches over numbers. Every thread goes through all of
 * it; calls are shared or left to the first thread, and threads meet only where it matters:
 *
 *   before a shared call      if anything was written since they last met
 *   before a call of thread 0 if a shared call wrote, or numbers were read, since they last met
 *   before a number is read   if anything was written since they last met
 *
 * A run of small kernels is thread 0's alone and costs no meeting. Loops and branches begin and end met, all but for the
 * numbers that decide about them.
 */
import { at, invariant } from "../../base/invariant.ts";
import type { Int, IntOp, Local, Statement } from "../script.ts";
import { plus } from "../script.ts";
import { slotBytes } from "../slots.ts";
import type { CCode } from "./c-code.ts";
import type { NativeLibrary } from "./kernel.ts";
import type { NativeOptions } from "./options.ts";

/** Bytes of a copy that threads share. */
const LONG_COPY = 256 * 1024;

const INT_OPS: Readonly<Record<IntOp, string>> = {
  add: "+",
  sub: "-",
  mul: "*",
  div: "/",
  and: "&",
  eq: "==",
  lt: "<",
  le: "<=",
};

/** What happened since the threads last met: nothing, work of thread 0 alone, work (or reads) of all. */
type Since = "nothing" | "first" | "all";

const reads = (value: Int): boolean =>
  value.kind === "load" || (value.kind === "op" && (reads(value.a) || reads(value.b)));

export class NativeScript {
  readonly #library: NativeLibrary;
  readonly #shareFrom: number;
  #code: CCode;
  #locals = new Map<Local, string>();
  #since: Since = "nothing";

  constructor(library: NativeLibrary, code: CCode, { shareFrom }: NativeOptions) {
    this.#library = library;
    this.#shareFrom = shareFrom;
    this.#code = code;
  }

  /** Goes on in another function. */
  continueIn(code: CCode): void {
    this.#code = code;
    this.#locals = new Map();
  }

  meet(): void {
    if (this.#since !== "nothing") this.#code.line("MEET();");
    this.#since = "nothing";
  }

  /** The end of the program: whoever called may read and write the arena again. */
  finish(): void {
    this.#since = "all";
    this.meet();
  }

  emit(statements: readonly Statement[]): void {
    for (const statement of statements) this.#statement(statement);
  }

  #statement(statement: Statement): void {
    switch (statement.kind) {
      case "kernel":
        this.#kernel(statement);
        return;
      case "copy":
        this.#copy(statement);
        return;
      case "store":
        this.#alone(`*(i32 *)${this.#place(statement.at)} = (i32)(${this.#int(statement.value)});`);
        return;
      case "set": {
        this.#beforeReading(statement.value);
        this.#code.line(`${this.#local(statement.local)} = ${this.#int(statement.value)};`);
        return;
      }
      case "while":
        this.meet();
        this.#code.block("for (;;)", () => {
          this.#beforeReading(statement.test);
          this.#code.line(`if (!(${this.#int(statement.test)})) break;`);
          this.emit(statement.body);
          this.meet();
        });
        this.#since = reads(statement.test) ? "all" : "nothing";
        return;
      case "if":
        this.#if(statement);
    }
  }

  #if({ test, then, else: otherwise }: Extract<Statement, { kind: "if" }>): void {
    this.#beforeReading(test);
    if (!reads(test)) this.meet();
    const entered = this.#since;
    const branch = (body: readonly Statement[]): void => {
      this.#since = entered;
      this.emit(body);
      if (this.#since !== entered) this.meet();
    };
    this.#code.block(`if (${this.#int(test)})`, () => branch(then));
    if (otherwise.length > 0) this.#code.block("else", () => branch(otherwise));
    this.#since = entered;
  }

  /** All threads are about to look at the arena. */
  #beforeReading(value: Int): void {
    if (!reads(value)) return;
    this.meet();
    this.#since = "all";
  }

  #kernel({ kernel, addresses }: Extract<Statement, { kind: "kernel" }>): void {
    for (const { name, slots, types, units, work } of this.#library.functions(kernel)) {
      if (units.count === 0) continue;
      const args = slots.map((slot, i) => {
        return `(${at(types, i)} *)${this.#place(plus(at(addresses, slot.operand), slotBytes(kernel, slot)))}`;
      });
      const shared = units.count > units.grain && work >= this.#shareFrom;
      if (shared) this.#together(`SHARE(${[units.count, units.grain, name, ...args].join(", ")});`);
      else this.#alone(`${name}(${[0, units.count, "thread", ...args].join(", ")});`);
    }
  }

  #copy({ to, from, bytes }: Extract<Statement, { kind: "copy" }>): void {
    const apart = to.kind === "const" && from.kind === "const" && Math.abs(to.value - from.value) >= bytes;
    const [target, source] = [this.#place(to), this.#place(from)];
    if (apart && bytes >= LONG_COPY) this.#together(`SHARE(${bytes}, 64, copy_bytes, ${target}, ${source});`);
    else this.#alone(`memmove(${target}, ${source}, ${bytes});`);
  }

  #together(text: string): void {
    this.meet();
    this.#code.line(text);
    this.#since = "all";
  }

  #alone(text: string): void {
    if (this.#since === "all") this.meet();
    this.#code.line(`if (FIRST) ${text}`);
    this.#since = "first";
  }

  #local(local: Local): string {
    const known = this.#locals.get(local);
    if (known) return known;
    const name = this.#code.name(`${local.name}_`);
    this.#code.lines.unshift(`  idx ${name} = 0;`);
    this.#locals.set(local, name);
    return name;
  }

  /** A pointer into the arena. */
  #place(address: Int): string {
    return `(A + (${this.#int(address)}))`;
  }

  #int(value: Int): string {
    switch (value.kind) {
      case "const":
        invariant(Number.isSafeInteger(value.value), () => `${value.value} is no address`);
        return String(value.value);
      case "local":
        return this.#local(value.local);
      case "load":
        return `(idx)*(${value.bytes === 1 ? "u8" : "i32"} *)${this.#place(value.at)}`;
      case "op":
        return `(${this.#int(value.a)} ${INT_OPS[value.op]} ${this.#int(value.b)})`;
    }
  }
}
