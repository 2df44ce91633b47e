/**
 * @file Tests only. Runs block programs, phase by phase with all threads of a block one after the other, and block after block: slow, and
 * strict. It stops at
 *
 *   races       two threads of a block touch one shared or global element between two barriers, or two blocks of a launch one
 *               global element at all, and one of them writes
 *   unset       a read of shared memory, a register or a local that nothing was written to
 *   bounds      an element that is not there
 *   registers   one that is indexed by something that only a run knows
 *
 * Operands that share storage are told by their addresses: what is in place is checked as such.
 */
import { at, InternalError, invariant } from "../../base/invariant.ts";
import {
  type DType,
  elementReader,
  elementsIn,
  elementWriter,
  newElements,
  type TypedArray,
} from "../../kernel/dtype.ts";
import type { Bound, Index } from "../../kernel/expr.ts";
import { counterCell, type Environment, Program } from "../../kernel/interpret-expr.ts";
import { Interner } from "../intern.ts";
import { fusedMultiplyAdd } from "./fma.ts";
import type { BlockProgram, Element, Launch, Memory, Part, Statement } from "./program.ts";

/** Runs a program over storage given for every operand. */
export function interpretBlocks(program: BlockProgram, buffers: readonly TypedArray[]): void {
  for (const launch of program.launches) {
    const [a, b] = (launch.skipIfAliased ?? []).map((operand) => at(buffers, operand));
    if (a && b && a.buffer === b.buffer && a.byteOffset === b.byteOffset) continue;
    new LaunchRun(launch, buffers).run();
  }
}

const NO_THREAD = -1;
const SEVERAL = -2;

/** Who has read and written each element, since some point in time. */
class Touches {
  readonly #readers: Int32Array;
  readonly #writers: Int32Array;
  readonly #since: Int32Array;

  constructor(elements: number) {
    this.#readers = new Int32Array(elements).fill(NO_THREAD);
    this.#writers = new Int32Array(elements).fill(NO_THREAD);
    this.#since = new Int32Array(elements);
  }

  #refresh(element: number, since: number): void {
    if (this.#since[element] === since) return;
    this.#since[element] = since;
    this.#readers[element] = NO_THREAD;
    this.#writers[element] = NO_THREAD;
  }

  /** Another who wrote what is read now, or null. */
  read(element: number, who: number, since: number): number | null {
    this.#refresh(element, since);
    const reader = at(this.#readers, element);
    this.#readers[element] = reader === NO_THREAD || reader === who ? who : SEVERAL;
    const writer = at(this.#writers, element);
    return writer === NO_THREAD || writer === who ? null : writer;
  }

  /** Another who read or wrote what is written now, or null. */
  write(element: number, who: number, since: number): number | null {
    this.#refresh(element, since);
    const other = [at(this.#writers, element), at(this.#readers, element)].find((x) => x !== NO_THREAD && x !== who);
    this.#writers[element] = who;
    return other ?? null;
  }
}

/** One memory while a launch runs. */
interface Cells {
  readonly memory: Memory;
  readonly array: TypedArray;
  /** Whether an element was written, where that is asked. */
  readonly isSet: Uint8Array | null;
  /** Of the threads of a block, by phases; of the blocks of a launch. */
  readonly byThread: Touches | null;
  readonly byBlock: Touches | null;
  /** From an element's number to its number among the touches: operands may share storage. */
  place(element: number): number;
}

const isPrivate = ({ scope }: Memory): boolean => scope === "register" || scope === "local";

class LaunchRun {
  readonly #launch: Launch;
  readonly #cells: readonly Cells[];
  readonly #env: Environment;
  readonly #interner = new Interner();
  /** Names of the counters of unrolled loops around what is being compiled. */
  readonly #unrolled: string[] = [];
  readonly #thread: { value: number };
  /** Numbers of the phase and block that run, over the whole launch. */
  #phase = 1;
  #block = 0;

  constructor(launch: Launch, buffers: readonly TypedArray[]) {
    this.#launch = launch;
    const touches = new Map<ArrayBufferLike, readonly [Touches, Touches]>();
    this.#cells = launch.memories.map((memory) => cellsOf(memory, launch, buffers, touches));
    this.#env = {
      buffers: this.#cells.map(({ array }) => array),
      types: launch.memories.map(({ dtype }) => dtype),
      counters: new Map(),
      acc: { value: 0 },
      locate: (operand, element) => this.#locate(operand, element, "read"),
    };
    this.#thread = counterCell(this.#env, launch.thread.name);
    const names = [launch.thread, ...launch.grid, ...countersOf(launch.body)].map((v) => v.name);
    const twice = names.find((name, i) => names.indexOf(name) !== i);
    invariant(twice === undefined, () => `two counters ${twice} in one launch`);
  }

  run(): void {
    const body = this.#launch.body.map((part) => this.#part(part));
    const cells = this.#launch.grid.map((v) => counterCell(this.#env, v.name));
    const extents = this.#launch.grid.map((v) => v.extent);
    const blocks = extents.reduce((n, extent) => n * extent, 1);
    for (this.#block = 0; this.#block < blocks; this.#block++) {
      let rest = this.#block;
      for (let i = extents.length - 1; i >= 0; i--) {
        at(cells, i).value = rest % at(extents, i);
        rest = Math.floor(rest / at(extents, i));
      }
      for (const { isSet } of this.#cells) isSet?.fill(0);
      for (const step of body) step();
    }
  }

  #fail(operand: number, element: number, what: string): never {
    const { scope, dtype, elements } = at(this.#launch.memories, operand);
    const where = `thread ${this.#thread.value} of block ${this.#block}`;
    throw new InternalError(
      `${where}, element ${element} of memory ${operand} (${scope} ${dtype}[${elements}]): ${what}`,
    );
  }

  /** Where an element is in the array of its memory, after all checks. */
  #locate(operand: number, element: number, how: "read" | "write"): number {
    const { memory, isSet, byThread, byBlock, place } = at(this.#cells, operand);
    if (!(element >= 0 && element < memory.elements)) this.#fail(operand, element, "is not there");
    const found = memory.scope === "register" ? this.#thread.value * memory.elements + element : element;
    if (isSet) {
      if (how === "read" && isSet[found] === 0) this.#fail(operand, element, "is read and was not set");
      isSet[found] = 1;
    }
    const who = place(element);
    const thread = byThread?.[how](who, this.#thread.value, this.#phase) ?? null;
    if (thread !== null) this.#fail(operand, element, `${how} in one phase with ${otherText("thread", thread)}`);
    const block = byBlock?.[how](who, this.#block, 0) ?? null;
    if (block !== null) this.#fail(operand, element, `${how} in one launch with ${otherText("block", block)}`);
    return found;
  }

  // ---- phases -------------------------------------------------------------------------------------------------------

  #part(part: Part): () => void {
    if (part.kind === "phase") return this.#phaseOf(part.body);
    const cell = counterCell(this.#env, part.counter.name);
    if (part.limit) {
      const uniform = !this.#interner.ofIndex(part.limit).has(this.#launch.thread);
      invariant(uniform, () => `${part.counter.name} is repeated as often as the thread says`);
    }
    const iterations = this.#iterations(part.counter.extent, part.limit);
    const body = part.body.map((inner) => this.#part(inner));
    return () => {
      const end = iterations();
      for (let i = 0; i < end; i++) {
        cell.value = i;
        for (const step of body) step();
      }
    };
  }

  #phaseOf(body: readonly Statement[]): () => void {
    const steps = body.map((statement) => this.#statement(statement));
    const locals = this.#cells.filter(({ memory }) => memory.scope === "local");
    return () => {
      for (let t = 0; t < this.#launch.thread.extent; t++) {
        this.#thread.value = t;
        for (const { isSet } of locals) isSet?.fill(0);
        for (const step of steps) step();
      }
      this.#phase += 1;
      this.#thread.value = 0;
    };
  }

  // ---- statements ---------------------------------------------------------------------------------------------------

  #statement(statement: Statement): () => void {
    switch (statement.kind) {
      case "store":
        return this.#store(statement);
      case "fma":
        return this.#fma(statement);
      case "copy":
        return this.#copy(statement);
      case "for":
        return this.#for(statement);
      case "if": {
        const holds = this.#holds(statement.bounds);
        const body = statement.body.map((inner) => this.#statement(inner));
        return () => {
          if (holds()) for (const step of body) step();
        };
      }
    }
  }

  /** Registers have numbers that are known when the program is written. */
  #checkIndex({ operand, index }: Element): void {
    const memory = at(this.#launch.memories, operand);
    if (!isPrivate(memory) || ("indexed" in memory && memory.indexed)) return;
    const constant = [...this.#interner.ofIndex(index)].every((v) => this.#unrolled.includes(v.name));
    invariant(constant, () => `memory ${operand} is in registers and is indexed by ${index.key}`);
  }

  #address(program: Program, element: Element): () => number {
    this.#checkIndex(element);
    return program.address(element.index);
  }

  #writer(operand: number): (element: number, value: number) => void {
    const { array, memory } = at(this.#cells, operand);
    const elementOf = elementWriter(memory.dtype);
    return (element, value) => {
      array[this.#locate(operand, element, "write")] = elementOf(value);
    };
  }

  #reader(operand: number): (element: number) => number {
    const { array, memory } = at(this.#cells, operand);
    const numberOf = elementReader(memory.dtype);
    return (element) => numberOf(at(array, this.#locate(operand, element, "read")));
  }

  #store({ stores }: Extract<Statement, { kind: "store" }>): () => void {
    const program = new Program(this.#env);
    const all = stores.map((store) => ({
      write: this.#writer(store.operand),
      address: this.#address(program, store),
      value: program.number(store.value),
    }));
    return () => {
      program.run();
      for (const { write, address, value } of all) write(address(), value());
    };
  }

  #fma({ sum, a, b }: Extract<Statement, { kind: "fma" }>): () => void {
    const memory = at(this.#launch.memories, sum.operand);
    invariant(isPrivate(memory), () => `fma into ${memory.scope} memory`);
    const program = new Program(this.#env);
    const [left, right] = [program.number(a), program.number(b)];
    const address = this.#address(program, sum);
    const [read, write] = [this.#reader(sum.operand), this.#writer(sum.operand)];
    const fma = fusedMultiplyAdd(memory.dtype);
    return () => {
      program.run();
      const i = address();
      write(i, fma(left(), right(), read(i)));
    };
  }

  #copy({ to, from, count }: Extract<Statement, { kind: "copy" }>): () => void {
    const program = new Program(this.#env);
    const [target, source] = [this.#address(program, to), this.#address(program, from)];
    const [read, write] = [this.#reader(from.operand), this.#writer(to.operand)];
    return () => {
      program.run();
      const [i, j] = [target(), source()];
      invariant(i % count === 0 && j % count === 0, () => `a copy of ${count} elements from ${j} to ${i}`);
      for (let c = 0; c < count; c++) write(i + c, read(j + c));
    };
  }

  #for({ counter, limit, unroll, body }: Extract<Statement, { kind: "for" }>): () => void {
    invariant(!(unroll && limit), () => `${counter.name} is unrolled and has a limit`);
    const cell = counterCell(this.#env, counter.name);
    const iterations = this.#iterations(counter.extent, limit);
    if (unroll) this.#unrolled.push(counter.name);
    const steps = body.map((inner) => this.#statement(inner));
    if (unroll) this.#unrolled.pop();
    return () => {
      const end = iterations();
      for (let i = 0; i < end; i++) {
        cell.value = i;
        for (const step of steps) step();
      }
    };
  }

  #iterations(extent: number, limit: Index | undefined): () => number {
    if (!limit) return () => extent;
    const program = new Program(this.#env);
    const most = program.address(limit);
    return () => {
      program.run();
      return Math.min(extent, most());
    };
  }

  #holds(bounds: readonly Bound[]): () => boolean {
    const program = new Program(this.#env);
    const all = bounds.map(({ index, lo, hi }) => ({ index: program.address(index), lo, hi }));
    return () => {
      program.run();
      return all.every(({ index, lo, hi }) => lo <= index() && index() < hi);
    };
  }
}

const otherText = (word: "thread" | "block", other: number): string =>
  other === SEVERAL ? `other ${word}s` : `${word} ${other}`;

/** Counters of loops, each once: those of two loops one after the other may be one. */
function countersOf(parts: readonly (Part | Statement)[]): readonly { readonly name: string }[] {
  const found = new Map<object, { readonly name: string }>();
  const visit = (part: Part | Statement): void => {
    if (part.kind === "repeat" || part.kind === "for") found.set(part.counter, part.counter);
    if ("body" in part) part.body.forEach(visit);
  };
  parts.forEach(visit);
  return [...found.values()];
}

/** Elements at the place of an operand, seen as a type. */
function viewOf(buffers: readonly TypedArray[], operand: number, dtype: DType, elements: number): TypedArray {
  const { buffer, byteOffset } = at(buffers, operand);
  return elementsIn(dtype, buffer as ArrayBuffer, byteOffset, elements);
}

function cellsOf(
  memory: Memory,
  { thread }: Launch,
  buffers: readonly TypedArray[],
  touches: Map<ArrayBufferLike, readonly [Touches, Touches]>,
): Cells {
  const same = (element: number): number => element;
  if (memory.scope === "global") {
    const array = viewOf(buffers, memory.operand, memory.dtype, memory.elements);
    const { buffer, byteOffset, BYTES_PER_ELEMENT } = array;
    const both = touches.get(buffer) ?? [new Touches(buffer.byteLength), new Touches(buffer.byteLength)];
    touches.set(buffer, both);
    const place = (element: number): number => byteOffset + element * BYTES_PER_ELEMENT;
    return { memory, array, isSet: null, byThread: both[0], byBlock: both[1], place };
  }
  const elements = memory.elements * (memory.scope === "register" ? thread.extent : 1);
  const byThread = memory.scope === "shared" ? new Touches(elements) : null;
  const array = newElements(memory.dtype, elements);
  return { memory, array, isSet: new Uint8Array(elements), byThread, byBlock: null, place: same };
}
