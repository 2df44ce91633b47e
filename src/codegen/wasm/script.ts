/**
 * @file Control around kernel calls as WebAssembly: loops and branches of the program are those of the module. A run of many
 * calls inside a loop becomes functions of their own, so that no engine meets a function too large to optimise.
 */
import { at, invariant } from "../../base/invariant.ts";
import type { CollectiveNest } from "../../kernel/collective.ts";
import { addressBytes } from "../operand-addresses.ts";
import { type Int, type IntOp, type Local, plus, type Statement } from "../script.ts";
import { piecesOf } from "../units.ts";
import { Code, type ModuleBuilder, OP } from "./encoder.ts";
import type { Exchanges } from "./exchange.ts";
import type { KernelFunction, KernelLibrary } from "./kernel.ts";
import type { TeamEmitter } from "./team.ts";

const INT_OPS: Readonly<Record<IntOp, number>> = {
  add: OP.i32Add,
  sub: OP.i32Sub,
  mul: OP.i32Mul,
  div: OP.i32DivU,
  and: OP.i32And,
  eq: OP.i32Eq,
  lt: OP.i32LtS,
  le: OP.i32LeS,
};

/** Calls in one function inside a loop. */
const CALLS_PER_FUNCTION = 512;

/** Threads of a program, and from how many scalar operations on they share a call. */
export interface Sharing {
  readonly team: TeamEmitter;
  readonly threads: number;
  readonly from: number;
  /** Where the arena starts in the memory. */
  readonly start: number;
}

/** What calls are written with. */
export interface ScriptTools {
  readonly module: ModuleBuilder;
  readonly library: KernelLibrary;
  readonly sharing?: Sharing | null;
  /** Of a program with collectives. */
  readonly exchanges?: Exchanges | null;
}

/** Writes statements into a function. */
export class ScriptEmitter {
  readonly #tools: ScriptTools;
  readonly #code: Code;
  readonly #sharing: Sharing | null;
  readonly #locals = new Map<Local, number>();

  constructor(tools: ScriptTools, code: Code) {
    this.#tools = tools;
    this.#code = code;
    this.#sharing = tools.sharing ?? null;
  }

  emit(statements: readonly Statement[]): void {
    for (let from = 0; from < statements.length; ) {
      let to = from;
      while (statements[to]?.kind === "kernel" || statements[to]?.kind === "copy") to++;
      if (to - from > CALLS_PER_FUNCTION) {
        this.#outline(statements.slice(from, from + CALLS_PER_FUNCTION));
        from += CALLS_PER_FUNCTION;
        continue;
      }
      this.#statement(statements[from] as Statement);
      from++;
    }
  }

  /** Calls as a function of their own, which gets the locals it may read. */
  #outline(statements: readonly Statement[]): void {
    const locals = [...this.#locals.keys()];
    const code = new Code(locals.map(() => "i32" as const));
    const inner = new ScriptEmitter(this.#tools, code);
    locals.forEach((local, i) => {
      inner.#locals.set(local, i);
    });
    for (const statement of statements) inner.#statement(statement);
    for (const local of locals) this.#code.get(this.#local(local));
    this.#code.call(this.#tools.module.add(code));
  }

  #local(local: Local): number {
    const known = this.#locals.get(local) ?? this.#code.local("i32");
    this.#locals.set(local, known);
    return known;
  }

  #statement(statement: Statement): void {
    const code = this.#code;
    switch (statement.kind) {
      case "start":
      case "kernel": {
        const { kernel, addresses } = statement;
        const [first] = kernel.nests;
        if (first?.kind === "collective") {
          this.#exchange(first, addresses);
          return;
        }
        for (const made of this.#tools.library.functions(kernel)) {
          this.#call(made, (i) => {
            const address = at(made.addresses, i);
            this.#address(plus(at(addresses, address.operand), addressBytes(kernel, address)));
          });
        }
        return;
      }
      case "copy":
        this.#address(statement.to);
        this.#address(statement.from);
        code.i32Const(statement.bytes).memoryCopy();
        return;
      case "store":
        this.#address(statement.at);
        this.#int(statement.value);
        code.i32Store();
        return;
      case "set":
        this.#int(statement.value);
        code.set(this.#local(statement.local));
        return;
      case "while":
        code.while(
          () => this.#int(statement.test),
          () => this.emit(statement.body),
        );
        return;
      case "if":
        this.#int(statement.test);
        code.if(
          null,
          () => this.emit(statement.then),
          statement.else.length > 0 ? () => this.emit(statement.else) : undefined,
        );
    }
  }

  #exchange(nest: CollectiveNest, addresses: readonly Int[]): void {
    const { exchanges } = this.#tools;
    invariant(exchanges, () => `${nest.what} in a program that imports nothing`);
    exchanges.call(this.#code, nest, addresses, (address) => this.#address(address));
  }

  /** Calls a nest's function, shared where that is worth its while. `push` leaves the address of that number. */
  #call({ fn, addresses, units, work }: KernelFunction, push: (argument: number) => void): void {
    const code = this.#code;
    const sharing = this.#sharing;
    const pieces = sharing && units && work >= sharing.from ? piecesOf(sharing.threads, units) : 1;
    if (sharing && units && pieces > 1 && sharing.team.takes(addresses.length)) {
      sharing.team.call(code, { fn, args: addresses.length, units, pieces }, push);
      return;
    }
    addresses.forEach((_, i) => {
      push(i);
    });
    if (units) code.i32Const(0).i32Const(units.count).i32Const(0);
    code.call(fn);
  }

  /** The address in the memory of an address in the arena. */
  #address(value: Int): void {
    this.#int(plus(value, this.#sharing?.start ?? 0));
  }

  #int(value: Int): void {
    const code = this.#code;
    switch (value.kind) {
      case "const":
        code.i32Const(value.value);
        return;
      case "local":
        code.get(this.#local(value.local));
        return;
      case "load":
        this.#address(value.at);
        if (value.bytes === 1) code.i32Load8();
        else code.i32Load();
        return;
      case "op":
        this.#int(value.a);
        this.#int(value.b);
        code.op(INT_OPS[value.op]);
    }
  }
}
