/**
 * @file Steps of a program as C: kernel calls, copies, loops and branches over numbers. Every thread executes all of it.
 * A large call is shared (team.ts); a run of small ones is one piece, executed by one thread without synchronisation in
 * between. Each thread has its own copy of numbers; after one is read from the arena, all threads meet at a barrier.
 */
import { at, invariant } from "../../base/invariant.ts";
import type { CollectiveNest } from "../../kernel/collective.ts";
import { Flights } from "../flights.ts";
import { addressBytes } from "../operand-addresses.ts";
import type { ExchangeStatement, Int, IntOp, Local, Statement } from "../script.ts";
import { plus } from "../script.ts";
import { piecesOf, type Units } from "../units.ts";
import type { CCode } from "./c-code.ts";
import { aloneCall, type Exchanges, TESTED_WORK, testedPieces } from "./exchange.ts";
import type { CLibrary } from "./kernel.ts";
import type { NativeEmitOptions } from "./options.ts";

/** A call of fewer scalar operations runs on one thread: synchronising would take longer than the call. */
const WORTH_SHARING = 20_000;
/** Iterations of a loop, where nothing is known about them. */
const ITERATIONS = 64;
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

const reads = (value: Int): boolean =>
  value.kind === "load" || (value.kind === "op" && (reads(value.a) || reads(value.b)));

export class NativeScript {
  readonly #library: CLibrary;
  readonly #options: NativeEmitOptions;
  readonly #exchanges: Exchanges;
  #code: CCode;
  #locals = new Map<Local, string>();
  /** Collectives in flight. */
  readonly #flights = new Flights();
  /** Scalar operations since the last call of the library, roughly, those of loops as often as they run. */
  #untested = 0;
  /** How often the last start runs. */
  #timesOfStart = 1;
  /** Small calls that one thread will run. */
  #small: string[] = [];
  /** How often the statements at hand run, roughly. */
  #times = 1;
  /** Scalar operations of all calls of each function in one run, roughly, by its name. */
  readonly work = new Map<string, number>();

  constructor(library: CLibrary, code: CCode, options: NativeEmitOptions, exchanges: Exchanges) {
    this.#library = library;
    this.#exchanges = exchanges;
    this.#options = options;
    this.#code = code;
  }

  /** Continues in another function. */
  continueIn(code: CCode): void {
    this.#code = code;
    this.#locals = new Map();
  }

  emit(statements: readonly Statement[]): void {
    this.add(statements);
    this.#flush();
  }

  /** The same without an end: the next ones may be on the same thread. */
  add(statements: readonly Statement[]): void {
    for (const statement of statements) this.#statement(statement);
  }

  /** One call, on one thread, after those before it. */
  call(text: string): void {
    this.#small.push(text);
  }

  /** Parts of collectives in flight (exchange.ts): of the first thread alone, after all that comes before. */
  #part(statement: ExchangeStatement): void {
    this.#flush();
    if (statement.kind === "test") this.#test();
    else if (statement.kind === "wait") this.#onFirst(`mpi->wait(${this.#flights.end(statement.flight)});`);
    else {
      const { kernel, addresses, flight } = statement;
      const [nest] = kernel.nests;
      invariant(nest?.kind === "collective", () => "only collectives are in flight");
      const slot = this.#flights.begin(flight);
      this.#timesOfStart = this.#times;
      this.#code.line(`if (thread == 0) ${this.#exchanges.call(nest, ...this.#operandsOf(nest, addresses), slot)}`);
      this.#untested = 0;
    }
  }

  /** Lets what is in flight make progress. */
  #test(): void {
    this.#code.line("if (thread == 0) mpi->test();");
    this.#untested = 0;
  }

  /** Small calls while something is in flight, in a loop perhaps, in which the plan has no tests for it. */
  #testAfter(work: number): void {
    if (this.#flights.count === 0) return;
    this.#untested += work * (this.#times / this.#timesOfStart);
    if (this.#untested < TESTED_WORK) return;
    this.#flush();
    this.#test();
  }

  /** A call of the first thread, which the others wait for. */
  #onFirst(call: string): void {
    this.#code.block("if (TAKE_FIRST())", () => {
      this.#code.line(call);
      this.#code.line("DONE_ALL();");
    });
    this.#code.line("NEXT();");
  }

  /** A collective that is done when its call returns. */
  #exchange(nest: CollectiveNest, addresses: readonly Int[]): void {
    const operands = this.#operandsOf(nest, addresses);
    const alone = aloneCall(nest, ...operands);
    if (alone !== null) {
      this.#small.push(alone);
      return;
    }
    this.#flush();
    this.#onFirst(this.#exchanges.call(nest, ...operands));
  }

  #operandsOf({ to, read }: CollectiveNest, addresses: readonly Int[]): readonly [to: string, from: string | null] {
    const place = (operand: number): string => this.#place(at(addresses, operand));
    return [place(to), read && place(read.operand)];
  }

  /** Writes the small calls so far as one piece. */
  #flush(): void {
    if (this.#small.length === 0) return;
    const calls = this.#small;
    this.#small = [];
    this.#code.block("if (TAKE_ALL())", () => {
      for (const call of calls) this.#code.line(call);
      this.#code.line("DONE_ALL();");
    });
    this.#code.line("NEXT();");
  }

  #statement(statement: Statement): void {
    switch (statement.kind) {
      case "kernel":
        this.#kernel(statement);
        return;
      case "start":
      case "wait":
      case "test":
        this.#part(statement);
        return;
      case "copy":
        this.#copy(statement);
        return;
      case "store":
        this.#small.push(`*(i32 *)${this.#place(statement.at)} = (i32)(${this.#int(statement.value)});`);
        return;
      case "set": {
        const local = this.#local(statement.local);
        this.#read(statement.value, (value) => this.#code.line(`${local} = ${value};`));
        return;
      }
      case "while":
        this.#flush();
        this.#code.block("for (;;)", () => {
          this.#read(statement.test, (test) => this.#code.line(`if (!(${test})) break;`));
          this.#times *= ITERATIONS;
          this.emit(statement.body);
          this.#times /= ITERATIONS;
        });
        return;
      case "if":
        this.#read(statement.test, (test) => {
          this.#code.block(`if (${test})`, () => this.emit(statement.then));
          if (statement.else.length > 0) this.#code.block("else", () => this.emit(statement.else));
        });
    }
  }

  /** Uses a number. If it is read from the arena, all steps before it end first, and no thread continues until all have read it. */
  #read(value: Int, use: (text: string) => void): void {
    this.#flush();
    if (!reads(value)) {
      use(this.#int(value));
      return;
    }
    const name = this.#code.name("read");
    this.#code.line(`const idx ${name} = ${this.#int(value)};`);
    this.#code.line("MEET();");
    use(name);
  }

  #kernel({ kernel, addresses }: Extract<Statement, { kind: "kernel" }>): void {
    const [first] = kernel.nests;
    if (first?.kind === "collective") {
      this.#exchange(first, addresses);
      return;
    }
    for (const [i, { name, addresses: pointers, types, units, work }] of this.#library.functions(kernel).entries()) {
      if (units.count === 0) continue;
      this.work.set(name, (this.work.get(name) ?? 0) + work * this.#times);
      const args = pointers.map((address, k) => {
        return `(${at(types, k)} *)${this.#place(plus(at(addresses, address.operand), addressBytes(kernel, address)))}`;
      });
      const { threads, shareFrom = WORTH_SHARING } = this.#options;
      const pieces = work >= shareFrom ? piecesOf(threads, units) : 1;
      const tested =
        this.#flights.count > 0 ? testedPieces(at(kernel.nests, i), work, units, this.#options.shareFrom) : 1;
      const most = Math.max(pieces, tested);
      if (most > 1) this.#share(units, most, name, args);
      else this.#small.push(`${name}(${[0, units.count, "thread", ...args].join(", ")});`);
      if (most === 1) this.#testAfter(work);
    }
  }

  #copy({ to, from, bytes }: Extract<Statement, { kind: "copy" }>): void {
    const apart = to.kind === "const" && from.kind === "const" && Math.abs(to.value - from.value) >= bytes;
    const [target, source] = [this.#place(to), this.#place(from)];
    const units = { count: bytes, grain: 64 };
    const pieces = apart && bytes >= LONG_COPY ? piecesOf(this.#options.threads, units) : 1;
    if (pieces > 1) this.#share(units, pieces, "copy_bytes", [target, source]);
    else this.#small.push(`memmove(${target}, ${source}, ${bytes});`);
  }

  #share({ count, grain }: Units, pieces: number, name: string, args: readonly string[]): void {
    this.#flush();
    const how = this.#flights.count > 0 ? "SHARE_TESTED" : "SHARE";
    this.#untested = 0;
    this.#code.line(`${how}(${[count, grain, pieces, name, ...args].join(", ")});`);
    this.#code.line("NEXT();");
  }

  #local(local: Local): string {
    const known = this.#locals.get(local);
    if (known) return known;
    const name = this.#code.name(local.name);
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
