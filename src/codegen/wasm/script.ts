/**
 * @file Control around kernel calls as WebAssembly: loops and branches of the program are those of the module. A run of many
 * calls inside a loop becomes functions of their own, so that no engine meets a function too large to optimise.
 */
import { invariant } from "../../base/invariant.ts";
import { type Int, type IntOp, type Local, plus, type Statement } from "../script.ts";
import { slotBytes } from "../slots.ts";
import { Code, type ModuleBuilder, OP } from "./encoder.ts";
import type { KernelLibrary } from "./kernel.ts";

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

/** Writes statements into a function. */
export class ScriptEmitter {
  readonly #module: ModuleBuilder;
  readonly #library: KernelLibrary;
  readonly #code: Code;
  readonly #locals = new Map<Local, number>();

  constructor(module: ModuleBuilder, library: KernelLibrary, code: Code) {
    this.#module = module;
    this.#library = library;
    this.#code = code;
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
    const inner = new ScriptEmitter(this.#module, this.#library, code);
    locals.forEach((local, i) => {
      inner.#locals.set(local, i);
    });
    for (const statement of statements) inner.#statement(statement);
    for (const local of locals) this.#code.get(this.#local(local));
    this.#code.call(this.#module.add(code));
  }

  #local(local: Local): number {
    const known = this.#locals.get(local) ?? this.#code.local("i32");
    this.#locals.set(local, known);
    return known;
  }

  #statement(statement: Statement): void {
    const code = this.#code;
    switch (statement.kind) {
      case "kernel": {
        const { kernel, addresses } = statement;
        for (const { fn, slots } of this.#library.functions(kernel)) {
          for (const slot of slots) this.#int(plus(this.#address(addresses, slot.operand), slotBytes(kernel, slot)));
          code.call(fn);
        }
        return;
      }
      case "copy":
        this.#int(statement.to);
        this.#int(statement.from);
        code.i32Const(statement.bytes).memoryCopy();
        return;
      case "store":
        this.#int(statement.at);
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

  #address(addresses: readonly Int[], operand: number): Int {
    const found = addresses[operand];
    invariant(found, () => `operand ${operand} has no address`);
    return found;
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
        this.#int(value.at);
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
