/**
 * @file Block programs as C: the emulator. Each launch is a function that computes blocks [lo, hi) of its grid, so that threads
 * of the machine share blocks as they share units of any nest (codegen/units.ts). Within a block a phase is a loop over its
 * threads; memory that is a thread's own for longer than a phase becomes an array over threads:
 *
 *   static void tide_launch_3(idx lo, idx hi, int worker, f32 *p_1, f32 *p_2) {
 *     for (idx block_3 = lo; …) {
 *       f32 shared_4[1056]; f32 register_5[256][64];
 *       for (idx thread_6 = 0; thread_6 < 256; thread_6++) { f32 local_7[8]; … }
 *       for (idx thread_8 = 0; …
 *
 * Launches with equal text are one function, wherever their data is.
 */
import { at } from "../../base/invariant.ts";
import { walkExpr } from "../../kernel/expr.ts";
import type { Kernel } from "../../kernel/loops.ts";
import { CCode } from "../native/c-code.ts";
import type { CLibrary, NativeFunction } from "../native/kernel.ts";
import { fileName } from "../native/names.ts";
import { heading } from "../native/sections.ts";
import { product } from "../units.ts";
import { type Place, StatementPrinter } from "./print-c-like.ts";
import type { DeviceClass, Element, Launch, Memory, Part, Statement } from "./program.ts";
import { C_DIALECT, scalarPrelude } from "./scalar-text.ts";
import { blockProgram } from "./schedule.ts";

/** Elements that a statement reads or writes, those inside of it too. */
function elementsOf(statement: Statement): readonly Element[] {
  const found: Element[] = [];
  const loads = (expr: Parameters<typeof walkExpr>[0]): void =>
    walkExpr(expr, (e) => {
      if (e.kind === "load") found.push(e);
    });
  const index = (i: Element["index"]): void => loads({ kind: "index", dtype: "i32", index: i });
  switch (statement.kind) {
    case "store":
      for (const store of statement.stores) {
        found.push(store);
        index(store.index);
        loads(store.value);
      }
      break;
    case "fma":
      found.push(statement.sum);
      loads(statement.a);
      loads(statement.b);
      break;
    case "copy":
      found.push(statement.to, statement.from);
      break;
    case "for":
      if (statement.limit) index(statement.limit);
      break;
    case "if":
      for (const bound of statement.bounds) index(bound.index);
  }
  return "body" in statement ? [...found, ...statement.body.flatMap(elementsOf)] : found;
}

/** Numbers of the memories that statements use. */
export const memoriesIn = (statements: readonly Statement[]): ReadonlySet<number> =>
  new Set(statements.flatMap(elementsOf).map(({ operand }) => operand));

const statementsIn = (parts: readonly Part[]): readonly Statement[] =>
  parts.flatMap((part) => (part.kind === "phase" ? part.body : statementsIn(part.body)));

class LaunchPrinter {
  readonly #launch: Launch;
  readonly #code = new CCode();
  readonly #printer: StatementPrinter;
  readonly #names: readonly string[];
  #thread = "";

  constructor(launch: Launch) {
    this.#launch = launch;
    this.#names = launch.memories.map(({ scope }) => this.#code.name(scope));
    const place: Place = (memory, index) => {
      const own = at(launch.memories, memory).scope === "register" ? `[${this.#thread}]` : "";
      return `${at(this.#names, memory)}${own}[${index}]`;
    };
    this.#printer = new StatementPrinter(C_DIALECT, this.#code, launch, place);
  }

  #type({ dtype }: Memory): string {
    return C_DIALECT.element(dtype).type;
  }

  #declare(scopes: readonly Memory["scope"][], used: ReadonlySet<number>): void {
    this.#launch.memories.forEach((memory, i) => {
      if (!scopes.includes(memory.scope) || !used.has(i)) return;
      const threads = memory.scope === "register" ? `[${this.#launch.thread.extent}]` : "";
      this.#code.line(`${this.#type(memory)} ${at(this.#names, i)}${threads}[${memory.elements}];`);
    });
  }

  #part(part: Part): void {
    if (part.kind === "repeat") {
      this.#printer.loop(part, () => {
        for (const inner of part.body) this.#part(inner);
      });
      return;
    }
    const thread = this.#printer.counter(this.#launch.thread);
    this.#thread = thread;
    this.#code.block(C_DIALECT.loop(thread, String(this.#launch.thread.extent)), () => {
      this.#declare(["local"], memoriesIn(part.body));
      this.#printer.statements(part.body);
    });
  }

  /** Parameters and body, and the memories that the parameters point to. */
  print(): { readonly params: string; readonly body: string; readonly used: readonly number[] } {
    const { body, grid, memories, skipIfAliased } = this.#launch;
    const all = memoriesIn(statementsIn(body));
    const used = memories.flatMap(({ scope }, i) =>
      scope === "global" && (all.has(i) || skipIfAliased?.includes(i)) ? [i] : [],
    );
    if (skipIfAliased) {
      const [a, b] = skipIfAliased.map((i) => at(this.#names, i));
      this.#code.line(`if ((void *)${a} == (void *)${b}) return;`);
    }
    const block = this.#code.name("block");
    this.#code.block(`for (idx ${block} = lo; ${block} < hi; ${block}++)`, () => {
      this.#printer.splitBlock(grid, block);
      this.#declare(["shared", "register"], all);
      for (const part of body) this.#part(part);
    });
    const params = used.map((i) => `, ${this.#type(at(memories, i))} *${at(this.#names, i)}`).join("");
    return { params, body: this.#code.lines.join("\n"), used };
  }
}

/** Scalar operations of a block, roughly: whether launches are worth sharing. */
const WORK_OF_BLOCK = 4096;

/** Launches of kernels, each distinct one once. */
export class BlockLibrary implements CLibrary {
  readonly #device: DeviceClass;
  readonly #texts = new Map<string, string>();
  readonly #byKernel = new Map<Kernel, readonly NativeFunction[]>();

  constructor(device: DeviceClass) {
    this.#device = device;
  }

  get count(): number {
    return this.#texts.size;
  }

  /** One section: launches are compiled with their program. */
  text(): string {
    const functions = [...this.#texts].map(([text, name]) => `static NOINLINE void ${name}${text}`);
    return [heading("program"), scalarPrelude("INLINE"), ...functions].join("\n");
  }

  functions(kernel: Kernel): readonly NativeFunction[] {
    const known = this.#byKernel.get(kernel);
    if (known) return known;
    const made = blockProgram(kernel, this.#device).launches.map((launch) => this.#function(launch));
    this.#byKernel.set(kernel, made);
    return made;
  }

  #function(launch: Launch): NativeFunction {
    const { params, body, used } = new LaunchPrinter(launch).print();
    const text = `(idx lo, idx hi, int worker${params}) {\n${body}\n}\n`;
    const name = this.#texts.get(text) ?? fileName(`launch_${this.#texts.size}`);
    this.#texts.set(text, name);
    const memories = used.map((i) => at(launch.memories, i));
    const count = product(launch.grid);
    return {
      name,
      addresses: memories.map((memory, i) => ({
        operand: memory.scope === "global" ? memory.operand : at(used, i),
        offset: 0,
      })),
      types: memories.map(({ dtype }) => C_DIALECT.element(dtype).type),
      units: { count, grain: 1 },
      work: count * WORK_OF_BLOCK,
    };
  }
}
