/**
 * @file The programs of a step, each with its own arena in one shared memory, and the state that is passed between
 * them. Values are copied from arena to arena; nothing is allocated after construction.
 *
 * ```
 *   advance   x ⟲               tape   x ⟲ ─→ r               reverse   r ─→ a ⟲             loss   x ─→ value, d_x, d_k
 *             ╰── current ──────────╯   ╰──── slot or straight ────╯      ╰── begun by ───────────────────╯
 * ```
 */
import { at } from "../base/invariant.ts";
import type { PlacedProgram } from "../codegen/placed.ts";
import { ProgramPlans } from "../compiler/assemble.ts";
import type { PlannerHost } from "../compiler/host.ts";
import { PLAIN_REQUEST } from "../compiler/request.ts";
import type { Graph } from "../ir/graph.ts";
import { byteLength, type TensorType } from "../ir/type.ts";
import { bytesOf, elementsIn, elementWriter, isFloat } from "../kernel/dtype.ts";
import { alignUp } from "../plan/problem.ts";
import type { DeviceMemory, Target } from "../runtime/device.ts";
import { Executable, notReadable } from "../runtime/executable.ts";
import { arenaSpace } from "../target/description.ts";
import type { Tensor } from "../trace/tensor.ts";
import {
  arrayPart,
  bytesOfPart,
  copySection,
  gather,
  type Layout,
  layoutOf,
  type Part,
  type Section,
  scatter,
  sectionOf,
} from "./layout.ts";
import type { BoundGraph, LossGraph, ReverseGraphs } from "./step-graphs.ts";

const typesOf = (values: readonly { readonly type: TensorType }[]): readonly TensorType[] => values.map((v) => v.type);

/** A program with an assigned address range, not loaded yet. */
interface PlannedGraph extends BoundGraph {
  readonly placed: PlacedProgram;
}

/**
 * The shared memory of a run's programs, one after the other; on WebAssembly it has pages of 64 KiB. All programs get
 * their addresses before the first one is loaded, so that the memory is allocated once.
 */
class ProgramMemory {
  readonly #target: Target;
  readonly #host: PlannerHost;
  readonly #memory: DeviceMemory;
  #bytes = 0;

  constructor(target: Target, host: PlannerHost) {
    this.#target = target;
    this.#host = host;
    this.#memory = target.allocate();
  }

  /** Of all arenas. */
  get bytes(): number {
    return this.#bytes;
  }

  /** `first`, `count`: the parameters that results 0 … count - 1 replace. */
  plan({ graph, constants }: BoundGraph, first: number, count: number): PlannedGraph {
    const donated = new Map(Array.from({ length: count }, (_, k) => [first + k, k]));
    const fixed = graph.params.length - constants.length;
    const persistent = new Set([...donated.keys(), ...constants.map((_, k) => fixed + k)]);
    const { description } = this.#target;
    const started = performance.now();
    const plans = new ProgramPlans({ graph, donated, persistent }, description, PLAIN_REQUEST, this.#host);
    const chosen = plans.choose();
    const base = this.#take(chosen.arenaBytes);
    return { graph, constants, placed: plans.placed(chosen, performance.now() - started, base) };
  }

  #take(bytes: number): number {
    const base = alignUp(this.#bytes, arenaSpace(this.#target.description).alignment);
    this.#bytes = base + bytes;
    return base;
  }

  load({ placed }: PlannedGraph): Executable {
    this.#memory.reserve(this.#bytes);
    return new Executable(placed, this.#target, { memory: this.#memory });
  }
}

/** One of the programs: its parameters are values that change between runs, then constants that are written once. */
class HostProgram {
  readonly #executable: Executable;
  readonly #graph: Graph;

  constructor(space: ProgramMemory, planned: PlannedGraph) {
    const { graph, constants } = planned;
    this.#graph = graph;
    this.#executable = space.load(planned);
    copySection(sectionOf(constants), this.params(graph.params.length - constants.length, constants.length));
  }

  params(first: number, count: number): Section {
    return this.#parts(this.#graph.params, this.#executable.placed.params, first, count);
  }

  results(numbers: readonly number[]): Section {
    return numbers.flatMap((n) => this.#parts(this.#graph.results, this.#executable.placed.results, n, 1));
  }

  #parts(
    values: readonly { readonly type: TensorType }[],
    addresses: readonly number[],
    first: number,
    count: number,
  ): Section {
    const { memory } = this.#executable;
    return values.slice(first, first + count).map(({ type }, k): Part => {
      const [address, bytes] = [at(addresses, first + k), byteLength(type)];
      return {
        bytes,
        readInto(into) {
          if (!memory.readInto) throw notReadable(type);
          memory.readInto(address, into);
        },
        write: (fill) => memory.write(address, bytes, fill),
      };
    });
  }

  run(): void {
    this.#executable.run();
  }
}

/** The first parameter of a step's programs: its number. */
class Counter {
  readonly #part: Part;
  readonly #bytes = new Uint8Array(4);

  constructor(program: HostProgram) {
    this.#part = at(program.params(0, 1), 0);
  }

  set(step: number): void {
    new DataView(this.#bytes.buffer).setInt32(0, step, true);
    this.#part.write((into) => into.set(this.#bytes));
  }
}

/** A program of one step with its number. */
class StepProgram extends HostProgram {
  readonly #counter: Counter;

  constructor(space: ProgramMemory, planned: PlannedGraph) {
    super(space, planned);
    this.#counter = new Counter(this);
  }

  runAt(step: number): void {
    this.#counter.set(step);
    this.run();
  }
}

/** Steps forward. The state is current in one of the programs. */
export class ForwardPrograms {
  readonly state: Layout;
  readonly #advance: StepProgram;
  readonly #home: Section;
  readonly #space: ProgramMemory;
  protected current: Section;

  protected constructor(space: ProgramMemory, advance: PlannedGraph, states: number) {
    this.#space = space;
    this.state = layoutOf(typesOf(advance.graph.params.slice(1, 1 + states)));
    this.#advance = new StepProgram(space, advance);
    this.#home = this.#advance.params(1, states);
    this.current = this.#home;
  }

  static load(advance: BoundGraph, states: number, target: Target, host: PlannerHost): ForwardPrograms {
    const space = new ProgramMemory(target, host);
    return new ForwardPrograms(space, space.plan(advance, 1, states), states);
  }

  get arenaBytes(): number {
    return this.#space.bytes;
  }

  advance(step: number): void {
    this.moveTo(this.#home);
    this.#advance.runAt(step);
  }

  readState(block: Uint8Array): void {
    gather(this.state, this.current, block);
  }

  writeState(block: Uint8Array): void {
    this.current = this.#home;
    scatter(this.state, block, this.#home);
  }

  /** From tensors, in the order of the leaves. */
  startFrom(tensors: readonly Tensor[]): void {
    this.current = this.#home;
    copySection(sectionOf(tensors), this.#home);
  }

  protected moveTo(section: Section): void {
    if (this.current === section) return;
    copySection(this.current, section);
    this.current = section;
  }
}

interface ReverseParts {
  readonly advance: BoundGraph;
  readonly reverse: ReverseGraphs;
  readonly loss: LossGraph;
  readonly states: number;
  readonly constants: readonly Tensor[];
  readonly target: Target;
  readonly host: PlannerHost;
}

/** Steps forward and back. */
export class ReversePrograms extends ForwardPrograms {
  readonly tapeLayout: Layout;
  /** The reverse's state, the loss, and the loss's cotangents of leaves that the reverse does not touch. */
  readonly adjoint: Layout;
  readonly #parts: ReverseParts;
  readonly #tape: StepProgram;
  readonly #tapeState: Section;
  readonly #tapeOut: Section;
  readonly #reverse: StepProgram;
  readonly #tapeIn: Section;
  readonly #adjoint: Section;
  readonly #loss: HostProgram;
  /** Leaves that the reverse does not touch. */
  readonly #others: readonly number[];
  /** The loss, then cotangents of `#others`. */
  readonly #outcome: Section;

  constructor(parts: ReverseParts) {
    const { reverse, loss, states } = parts;
    const space = new ProgramMemory(parts.target, parts.host);
    const { graph } = loss.bound;
    const planned = {
      advance: space.plan(parts.advance, 1, states),
      tape: space.plan(reverse.tape, 1, states),
      reverse: space.plan(reverse.reverse, 1, reverse.adjoint.length),
      loss: space.plan({ graph, constants: [...parts.constants, ...loss.bound.constants] }, 0, 0),
    };
    super(space, planned.advance, states);
    this.#parts = parts;
    this.#tape = new StepProgram(space, planned.tape);
    this.#tapeState = this.#tape.params(1, states);
    this.#tapeOut = this.#tape.results(reverse.residuals);
    const { params } = reverse.reverse.graph;
    const [adjoints, rows] = [reverse.adjoint.length, reverse.residuals.length];
    this.#reverse = new StepProgram(space, planned.reverse);
    this.#adjoint = this.#reverse.params(1, adjoints);
    this.#tapeIn = this.#reverse.params(1 + adjoints, rows);
    this.tapeLayout = layoutOf(typesOf(params.slice(1 + adjoints, 1 + adjoints + rows)));
    this.#loss = new HostProgram(space, planned.loss);
    const leaves = graph.params.slice(0, states + parts.constants.length);
    this.#others = leaves.flatMap(({ type }, leaf) => (isFloat(type.dtype) && this.#roleOf(leaf) < 0 ? [leaf] : []));
    const outcome = [at(graph.results, 0), ...this.#others.map((leaf) => at(leaves, leaf))];
    this.#outcome = outcome.map(({ type }) => arrayPart(new Uint8Array(byteLength(type))));
    this.adjoint = layoutOf([...typesOf(params.slice(1, 1 + adjoints)), ...typesOf(outcome)]);
  }

  /** Runs a step; its tape stays in the arena. */
  tape(step: number): void {
    this.moveTo(this.#tapeState);
    this.#tape.runAt(step);
  }

  readTape(block: Uint8Array): void {
    gather(this.tapeLayout, this.#tapeOut, block);
  }

  /** Runs the reverse of a step on a tape, or on the tape of the last `tape` call. */
  reverse(step: number, tape: Uint8Array | null): void {
    if (tape) scatter(this.tapeLayout, tape, this.#tapeIn);
    else copySection(this.#tapeOut, this.#tapeIn);
    this.#reverse.runAt(step);
  }

  readAdjoint(block: Uint8Array): void {
    gather(this.adjoint, [...this.#adjoint, ...this.#outcome], block);
  }

  writeAdjoint(block: Uint8Array): void {
    scatter(this.adjoint, block, [...this.#adjoint, ...this.#outcome]);
  }

  /** Computes the loss of the current state and initializes the adjoint. */
  begin(): void {
    const { states, loss, reverse } = this.#parts;
    copySection(this.current, this.#loss.params(0, states));
    this.#loss.run();
    reverse.adjoint.forEach((role, k) => {
      const into = at(this.#adjoint, k);
      const copy = (from: Part): void => copySection([from], [into]);
      if (role.kind === "state") copy(at(this.current, role.leaf));
      else if (role.kind === "cotangent") copy(this.#lossCotangent(role.leaf));
      else if (loss.reaches[role.constant]) copy(this.#lossCotangent(states + role.constant));
      else into.write((bytes) => fillMinusZero(bytes, at(this.adjoint.types, k)));
    });
    copySection([...this.#loss.results([0]), ...this.#others.map((leaf) => this.#lossCotangent(leaf))], this.#outcome);
  }

  #lossCotangent(leaf: number): Part {
    const { params } = this.#parts.loss.bound.graph;
    const before = params.slice(0, leaf).filter(({ type }) => isFloat(type.dtype)).length;
    return at(this.#loss.results([1 + before]), 0);
  }

  /** The part of the adjoint that is the cotangent of a leaf of state and constants, or -1. */
  #roleOf(leaf: number): number {
    const { reverse, states } = this.#parts;
    return reverse.adjoint.findIndex(
      (role) =>
        (role.kind === "cotangent" && role.leaf === leaf) || (role.kind === "sum" && role.constant === leaf - states),
    );
  }

  get value(): Uint8Array {
    return bytesOfPart(at(this.#outcome, 0));
  }

  /** The cotangent of a leaf of state and constants; null is zero. `stepped`: whether any step has been reversed. */
  cotangent(leaf: number, stepped: boolean): Uint8Array | null {
    const part = this.#roleOf(leaf);
    if (part >= 0) return bytesOfPart(at(this.#adjoint, part));
    const other = this.#others.indexOf(leaf);
    // a leaf of the state that no step passes on influences the loss only if there are no steps
    return other < 0 || (stepped && leaf < this.#parts.states) ? null : bytesOfPart(at(this.#outcome, 1 + other));
  }
}

/** Fills with -0, the neutral element of addition that preserves the sign of zero. */
function fillMinusZero(bytes: Uint8Array, { dtype }: TensorType): void {
  const count = bytes.byteLength / bytesOf(dtype);
  elementsIn(dtype, bytes.buffer as ArrayBuffer, bytes.byteOffset, count).fill(elementWriter(dtype)(-0));
}
