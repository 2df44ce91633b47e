/**
 * @file Control around kernel calls: a small language of whole numbers, so that a loop of the program is a loop of the
 * module. Addresses are numbers like any other, worked out from counters where a kernel reads row after row:
 *
 *   i = 0
 *   while i < 1000:
 *     kernel at 4096, 64 + i · 256, 8192 + i · 1024
 *     i = i + 1
 *
 * Counters are locals of the function, everything else is in the arena. The size of the code has nothing to do with how
 * often it runs. A run of many calls inside a loop becomes functions of their own, so that no engine meets a function too
 * large to optimise.
 */
import { invariant } from "../../base/invariant.ts";
import type { Kernel } from "../../kernel/loops.ts";
import { Code, type ModuleBuilder, OP } from "./encoder.ts";
import { type KernelLibrary, slotBytes } from "./kernel.ts";

/** A variable of 32 bits; told apart by identity. */
export interface Local {
  readonly name: string;
}

/** Wrapping arithmetic of 32 bits; comparisons are signed and give 0 or 1. */
const INT_OPS = {
  add: OP.i32Add,
  sub: OP.i32Sub,
  mul: OP.i32Mul,
  div: OP.i32DivU,
  and: OP.i32And,
  eq: OP.i32Eq,
  lt: OP.i32LtS,
  le: OP.i32LeS,
} as const;

export type Int =
  | { readonly kind: "const"; readonly value: number }
  | { readonly kind: "local"; readonly local: Local }
  /** One byte or four of the arena. */
  | { readonly kind: "load"; readonly at: Int; readonly bytes: 1 | 4 }
  | { readonly kind: "op"; readonly op: keyof typeof INT_OPS; readonly a: Int; readonly b: Int };

export type Statement =
  | { readonly kind: "kernel"; readonly kernel: Kernel; readonly addresses: readonly Int[] }
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

export function intOp(op: keyof typeof INT_OPS, a: Int, b: Int): Int {
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

/** Whether two numbers are the same whatever the locals hold. */
export function sameInt(a: Int, b: Int): boolean {
  if (a === b) return true;
  if (a.kind === "const") return b.kind === "const" && a.value === b.value;
  if (a.kind === "local") return b.kind === "local" && a.local === b.local;
  if (a.kind === "op") return b.kind === "op" && a.op === b.op && sameInt(a.a, b.a) && sameInt(a.b, b.b);
  return false;
}

/** A copy, unless both are one place or there is nothing to copy. */
export function copy(to: Int, from: Int, bytes: number): readonly Statement[] {
  return bytes === 0 || sameInt(to, from) ? [] : [{ kind: "copy", to, from, bytes }];
}

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
