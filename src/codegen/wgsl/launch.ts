/**
 * @file One launch of a block program as a WGSL module: operands are bindings of one group, in the order in which the launch
 * uses them; a phase is straight code with barriers after it.
 *
 *   @group(0) @binding(0) var<storage, read_write> global_1: array<f32>;
 *   var<workgroup> shared_3: array<f32, 1056>;
 *   @compute @workgroup_size(256) fn main(…) {
 *     let thread_5: i32 = i32(local);
 *     …
 *     workgroupBarrier(); storageBarrier();
 *
 * Blocks are numbered along two axes, since one has at most 65,535. Whether a launch is skipped because operands share storage
 * is decided where it is dispatched.
 */
import { at } from "../../base/invariant.ts";
import { memoriesIn } from "../block/print-c.ts";
import { type Dialect, type Place, StatementPrinter } from "../block/print-c-like.ts";
import type { Launch, Memory, Part, Statement } from "../block/program.ts";
import { CCode } from "../native/c-code.ts";
import { product } from "../units.ts";
import { elementTypes, isPacked, type PackedPlace, WGSL_PRELUDE, wgslDialect } from "./dialect.ts";

/** Blocks along one axis of a dispatch. */
const MOST_BLOCKS = 65_535;

export interface WgslModule {
  readonly text: string;
  /** The operand of each binding. */
  readonly operands: readonly number[];
  /** Blocks along the axes of the dispatch. */
  readonly dispatch: readonly [number, number];
}

const statementsIn = (parts: readonly Part[]): readonly Statement[] =>
  parts.flatMap((part) => (part.kind === "phase" ? part.body : statementsIn(part.body)));

class LaunchPrinter {
  readonly #launch: Launch;
  readonly #code = new CCode();
  readonly #names: readonly string[];
  readonly #dialect: Dialect;
  readonly #printer: StatementPrinter;

  constructor(launch: Launch) {
    this.#launch = launch;
    this.#names = launch.memories.map(({ scope }) => this.#code.name(scope));
    const packed = new Map<string, PackedPlace>();
    this.#dialect = wgslDialect(packed);
    const place: Place = (number, index) => {
      const [array, memory] = [at(this.#names, number), at(launch.memories, number)];
      const text = `${array}[${index}]`;
      if (memory.scope === "global" && isPacked(memory.dtype)) packed.set(text, { array, index });
      return text;
    };
    this.#printer = new StatementPrinter(this.#dialect, this.#code, launch, place);
  }

  #part(part: Part, isLast: boolean): void {
    if (part.kind === "repeat") {
      this.#printer.loop(part, () => {
        for (const inner of part.body) this.#part(inner, false);
      });
      return;
    }
    this.#code.block("", () => {
      for (const line of this.#declared("local", memoriesIn(part.body))) this.#code.line(line);
      this.#printer.statements(part.body);
    });
    if (!isLast) this.#code.line("workgroupBarrier(); storageBarrier();");
  }

  /** Arrays of a scope that are used. */
  #declared(scope: Exclude<Memory["scope"], "global">, used: ReadonlySet<number>): readonly string[] {
    const head = scope === "shared" ? "var<workgroup>" : "var";
    return this.#launch.memories.flatMap((memory, i) => {
      if (memory.scope !== scope || !used.has(i)) return [];
      return [`${head} ${at(this.#names, i)}: array<${elementTypes(memory.dtype).own}, ${memory.elements}>;`];
    });
  }

  print(): WgslModule {
    const { grid, thread, memories, body } = this.#launch;
    const used = memoriesIn(statementsIn(body));
    const blocks = product(grid);
    const rows = Math.ceil(blocks / MOST_BLOCKS);
    const columns = Math.ceil(blocks / rows);
    // a dispatch is one block deep, which compilers do not know
    this.#code.line("zero = group.z;");
    for (const line of this.#declared("register", used)) this.#code.line(line);
    this.#code.line(`let block: i32 = i32(group.x + ${columns}u * group.y);`);
    if (rows * columns > blocks) this.#code.line(`if (block >= ${blocks}) { return; }`);
    this.#code.line(this.#dialect.constant("i32", this.#printer.counter(thread), "i32(local)"));
    this.#printer.splitBlock(grid, "block");
    body.forEach((part, i) => {
      this.#part(part, i === body.length - 1);
    });
    const bound = memories.flatMap((memory, i) => (memory.scope === "global" && used.has(i) ? [{ memory, i }] : []));
    const bindings = bound.map(({ memory, i }, binding) => {
      const type = elementTypes(memory.dtype).global;
      return `@group(0) @binding(${binding}) var<storage, read_write> ${at(this.#names, i)}: array<${type}>;`;
    });
    const head = "@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32";
    const text = [
      ...bindings,
      ...this.#declared("shared", used),
      WGSL_PRELUDE,
      `@compute @workgroup_size(${thread.extent}) fn main(${head}) {`,
      ...this.#code.lines,
      "}\n",
    ];
    return {
      text: text.join("\n"),
      operands: bound.map(({ memory }) => memory.operand),
      dispatch: [columns, rows],
    };
  }
}

export const printWgsl = (launch: Launch): WgslModule => new LaunchPrinter(launch).print();
