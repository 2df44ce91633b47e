/**
 * @file One launch of a block program as a WGSL module: the parts of the arena that its operands lie in are bindings of one group
 * (bindings.ts), then come the elements that operands start at where that is not the start of a part; a phase is straight code
 * with a barrier after it.
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
import type { DType } from "../../kernel/dtype.ts";
import { memoriesIn } from "../block/print-c.ts";
import { type Dialect, type Place, StatementPrinter } from "../block/print-c-like.ts";
import type { Launch, Memory, Part, Phase, Repeat, Statement } from "../block/program.ts";
import { CCode } from "../native/c-code.ts";
import { product } from "../units.ts";
import { type Layout, partType } from "./bindings.ts";
import { wgslDialect, wgslPrelude } from "./dialect.ts";
import { accessTo, type ElementAccess, elementTypes, pieceFunctions, pieceName } from "./elements.ts";

/** Blocks along one axis of a dispatch. */
const MOST_BLOCKS = 65_535;
/** Numbers in an element of an array that is the same for all threads. */
const SHIFTS_OF_VECTOR = 4;
const WORD_BYTES = 4;

export interface WgslModule {
  readonly text: string;
  /** Blocks along the axes of the dispatch. */
  readonly dispatch: readonly [number, number];
}

const phasesIn = (parts: readonly Part[]): readonly Phase[] =>
  parts.flatMap((part) => (part.kind === "phase" ? [part] : phasesIn(part.body)));

/** The limits of loops around phases, each as a loop that does nothing: what it reads is what they read. */
const limitsIn = (parts: readonly Part[]): readonly Statement[] =>
  parts.flatMap((part) => {
    if (part.kind === "phase") return [];
    const { counter, limit } = part;
    const read: Statement = { kind: "for", counter, ...(limit ? { limit } : {}), unroll: false, body: [] };
    return [read, ...limitsIn(part.body)];
  });

/** Numbers of the memories that a statement writes. */
function writtenBy(statement: Statement): readonly number[] {
  switch (statement.kind) {
    case "store":
      return statement.stores.map(({ operand }) => operand);
    case "fma":
      return [statement.sum.operand];
    case "copy":
      return [statement.to.operand];
    case "for":
    case "if":
      return statement.body.flatMap(writtenBy);
  }
}

/** An operand that a launch uses, maybe as elements of another type. */
export interface UsedOperand {
  /** Its number among the memories of the launch, and among the operands of the kernel. */
  readonly memory: number;
  readonly operand: number;
  readonly dtype: DType;
  readonly elements: number;
  readonly isWritten: boolean;
}

export function operandsOf({ memories, body }: Launch): readonly UsedOperand[] {
  const statements = phasesIn(body).flatMap((phase) => phase.body);
  const used = memoriesIn([...statements, ...limitsIn(body)]);
  const written = new Set(statements.flatMap(writtenBy));
  return memories.flatMap((memory, i) => {
    if (memory.scope !== "global" || !used.has(i)) return [];
    const { operand, dtype, elements } = memory;
    return [{ memory: i, operand, dtype, elements, isWritten: written.has(i) }];
  });
}

class LaunchPrinter {
  readonly #launch: Launch;
  readonly #layout: Layout;
  readonly #exactly: boolean;
  readonly #code = new CCode();
  readonly #names: readonly string[];
  /** Of the arrays of parts: each has the name of its first operand. */
  readonly #arrays: readonly string[];
  readonly #operands: readonly UsedOperand[];
  readonly #dialect: Dialect;
  readonly #printer: StatementPrinter;
  readonly #accesses = new Map<string, ElementAccess>();
  /** Conditions of the phases that are printed now. */
  readonly #guards: string[] = [];

  constructor(launch: Launch, layout: Layout, exactly: boolean) {
    this.#exactly = exactly;
    this.#launch = launch;
    this.#layout = layout;
    this.#names = launch.memories.map(({ scope }) => this.#code.name(scope));
    this.#operands = operandsOf(launch);
    this.#arrays = layout.parts.map((_, part) => {
      const first = layout.spans.findIndex((span) => span.part === part);
      return at(this.#names, at(this.#operands, first).memory);
    });
    this.#dialect = wgslDialect(this.#accesses, exactly);
    this.#printer = new StatementPrinter(this.#dialect, this.#code, launch, this.#place());
  }

  /** Elements of memories; those of operands wherever they lie. */
  #place(): Place {
    const number = new Map(this.#operands.map(({ memory }, i) => [memory, i]));
    return (memory, index) => {
      const name = at(this.#names, memory);
      const text = `${name}[${index}]`;
      const i = number.get(memory);
      if (i === undefined) return text;
      const { part, isShifted } = at(this.#layout.spans, i);
      const type = at(this.#layout.parts, part);
      const from = isShifted ? `${name}_at + ${index}` : index;
      const place = { array: at(this.#arrays, part), type, index: from, isCut: at(this.#layout.pieces, part) > 1 };
      this.#accesses.set(text, accessTo(at(this.#operands, i).dtype, place));
      return text;
    };
  }

  #part(part: Part, isLast: boolean): void {
    if (part.kind === "repeat") {
      this.#repeat(part);
      return;
    }
    this.#code.block(this.#guards.length === 0 ? "" : `if (${this.#guards.join(" && ")})`, () => {
      for (const line of this.#declared("local", memoriesIn(part.body))) this.#code.line(line);
      this.#printer.statements(part.body);
    });
    if (!isLast) this.#code.line(this.#barrier);
  }

  /**
   * A loop around phases. The language does not know that a limit that is read from memory is the same for all threads, which
   * barriers inside of the loop need: such a loop runs to its end, and its phases ask for the limit.
   */
  #repeat(part: Repeat): void {
    const readsMemory = memoriesIn(limitsIn([{ ...part, body: [] }])).size > 0;
    const limit = readsMemory ? this.#printer.end(part) : null;
    this.#printer.loop(limit === null ? part : { counter: part.counter }, (counter) => {
      if (limit !== null) this.#guards.push(`${counter} < ${limit}`);
      for (const inner of part.body) this.#part(inner, false);
      if (limit !== null) this.#guards.pop();
    });
  }

  /** Of shared memory, and of operands where one phase may read what another has written. */
  get #barrier(): string {
    const phases = phasesIn(this.#launch.body).map(({ body }) => memoriesIn(body));
    const operandOf = new Map(this.#operands.map(({ memory, operand }) => [memory, operand]));
    const written = this.#operands.filter(({ isWritten }) => isWritten);
    const passesOn = written.some(({ operand }) => {
      const uses = phases.filter((used) => [...used].some((memory) => operandOf.get(memory) === operand));
      return uses.length > 1;
    });
    return passesOn ? "workgroupBarrier(); storageBarrier();" : "workgroupBarrier();";
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
    const { grid, thread, body } = this.#launch;
    const used = memoriesIn(phasesIn(body).flatMap((phase) => phase.body));
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
    const head = "@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32";
    const text = [
      ...this.#bindings(),
      ...this.#declared("shared", used),
      wgslPrelude(this.#exactly),
      `@compute @workgroup_size(${thread.extent}) fn main(${head}) {`,
      ...this.#shifts(),
      ...this.#code.lines,
      "}\n",
    ];
    return { text: text.join("\n"), dispatch: [columns, rows] };
  }

  /** Operands that do not start where their part does. */
  get #shifted(): readonly string[] {
    return this.#operands.flatMap(({ memory }, i) =>
      at(this.#layout.spans, i).isShifted ? [at(this.#names, memory)] : [],
    );
  }

  #bindings(): readonly string[] {
    const { parts, pieces, pieceBytes } = this.#layout;
    const arrays = parts.flatMap((type, i) =>
      Array.from({ length: at(pieces, i) }, (_, piece) => `${pieceName(at(this.#arrays, i), piece)}: array<${type}>;`),
    );
    const bound = arrays.map((array, i) => `@group(0) @binding(${i}) var<storage, read_write> ${array}`);
    const functions = parts.flatMap((type, i) => {
      const sizes = { pieces: at(pieces, i), elements: pieceBytes / WORD_BYTES };
      return sizes.pieces === 1 ? [] : pieceFunctions(at(this.#arrays, i), type, sizes);
    });
    const vectors = Math.ceil(this.#shifted.length / SHIFTS_OF_VECTOR);
    const shifts = `@group(0) @binding(${bound.length}) var<uniform> shifts: array<vec4<i32>, ${vectors}>;`;
    return [...bound, ...(vectors === 0 ? [] : [shifts]), ...functions];
  }

  #shifts(): readonly string[] {
    return this.#shifted.map((name, i) => {
      return `let ${name}_at: i32 = shifts[${Math.floor(i / SHIFTS_OF_VECTOR)}][${i % SHIFTS_OF_VECTOR}];`;
    });
  }
}

/** Every operand in a part of its own, from its start. */
export function separateLayout(launch: Launch): Layout {
  const operands = operandsOf(launch);
  return {
    parts: operands.map(({ dtype, isWritten }) => partType([{ dtype, isWritten }])),
    pieces: operands.map(() => 1),
    pieceBytes: Number.MAX_SAFE_INTEGER,
    spans: operands.map((_, part) => ({ part, isShifted: false })),
  };
}

/** `exactly`: quotients and roots are the nearest numbers also where those of the adapter are not. */
export const printWgsl = (launch: Launch, layout: Layout, exactly: boolean): WgslModule =>
  new LaunchPrinter(launch, layout, exactly).print();
