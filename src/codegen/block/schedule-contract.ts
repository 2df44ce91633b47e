/**
 * @file Products. A block computes a tile of the result; its threads are a square of 16 × 16 (8 × 8), each with up to 8 × 8 sums
 * in registers. Along the depth, sixteen at a time, tiles of both sides go through shared memory:
 *
 *                  ┌── cols ──┐           a thread's rows and columns, for 8 × 8: two groups of four each way, so that
 *            depth │    b     │           neighbouring threads read neighbouring elements of shared memory, four at once
 *        ┌ depth ┐ ├──────────┤             row    = 64 g + 4 · (thread div 16) + v      g < 2, v < 4
 *   rows │   a   │ │   sums   │             column = 64 h + 4 · (thread mod 16) + w
 *        └───────┘ └──────────┘
 *
 * While a block multiplies one pair of tiles, its threads hold the next one in registers and put it into the other half of
 * shared memory, so that global memory is read ahead and one barrier a step is enough:
 *
 *   step 3     read tile 4 → registers    multiply tile 3 (half 1)    registers → half 0     barrier
 *   step 4     read tile 5 → registers    multiply tile 4 (half 0)    registers → half 1     barrier
 *
 * Sums go up along the depth in runs of `depthRun`, each from zero, and the runs are added in order (kernel/loops.ts). Where
 * the tiles are too few to keep the device busy, each run is a block's own: its sums go to the workspace, and a second launch
 * adds them in order. How the result is cut into tiles and whether runs are cut changes no bit.
 */
import { bytesOf, isFloatScalar, laneBytes } from "../../kernel/dtype.ts";
import { type Bound, call, type Expr, type Index, type LoopVar, walkExpr } from "../../kernel/expr.ts";
import {
  addIndex,
  constIndex,
  divIndex,
  linearIndex,
  modIndex,
  offsetIndex,
  scaleIndex,
  varIndex,
  ZERO,
} from "../../kernel/index-math.ts";
import { type ContractNest, depthRun, type Operand } from "../../kernel/loops.ts";
import { Interner, linearCoefficient } from "../intern.ts";
import { live, product } from "../units.ts";
import { below, counter, countersAt, equals, isEmpty, Memories, Replacement, rowOf } from "./counters.ts";
import { type DeviceClass, type Launch, loop, type Part, phase, type Statement, storing, where } from "./program.ts";
import { withSpanGuards } from "./span.ts";

/** Depth of a tile in shared memory. */
const DEPTH = 16;
/** Elements after each row of a tile, so that columns of it lie in different banks; a multiple of the widest copy. */
const PADDING = 4;
/** Elements of partial sums that are worth the blocks they keep busy. */
const MOST_WORKSPACE = 2 ** 22;

type Product = Omit<ContractNest, "scratch">;

interface Tiling {
  /** Threads of one side of the square. */
  readonly side: number;
  /** Rows and columns of a thread. */
  readonly rows: number;
  readonly cols: number;
  readonly run: number;
  readonly runs: number;
  /** Every run is a block's own. */
  readonly apart: boolean;
  /** Shared memory holds two pairs of tiles, else one. */
  readonly ahead: boolean;
}

/** From row to row of a tile in shared memory. */
const pitchOf = (each: number, side: number): number => each * side + PADDING;

/** The least power of two, up to `most`, with which one tile covers an extent. */
function eachFor(extent: number, side: number, most: number): number {
  let each = 1;
  while (each < most && side * each < extent) each *= 2;
  return each;
}

function tilingOf(nest: Product, { threads, multiprocessors, sharedBytes }: DeviceClass): Tiling {
  const side = threads >= 256 ? 16 : 8;
  const most = laneBytes(nest.dtype) === 8 ? 4 : 8;
  let [rows, cols] = [eachFor(nest.rows.extent, side, most), eachFor(nest.cols.extent, side, most)];
  const batch = product(nest.batch);
  const blocks = (): number =>
    batch * Math.ceil(nest.rows.extent / (side * rows)) * Math.ceil(nest.cols.extent / (side * cols));
  const shrinkTo = (least: number): void => {
    while (blocks() < multiprocessors && Math.max(rows, cols) > least) {
      if (rows >= cols) rows /= 2;
      else cols /= 2;
    }
  };
  const tileBytes = (): number => DEPTH * (pitchOf(rows, side) + pitchOf(cols, side)) * bytesOf(nest.dtype);
  while (tileBytes() > sharedBytes) [rows, cols] = [Math.max(1, rows / 2), Math.max(1, cols / 2)];
  shrinkTo(4);
  const run = depthRun(nest.depth.extent);
  const runs = nest.depth.extent === 0 ? 0 : Math.ceil(nest.depth.extent / run);
  const elements = runs * batch * nest.rows.extent * nest.cols.extent;
  const apart = runs > 1 && blocks() < multiprocessors && elements <= MOST_WORKSPACE;
  if (!apart) shrinkTo(2);
  return { side, rows, cols, run, runs, apart, ahead: 2 * tileBytes() <= sharedBytes };
}

/** Elements of workspace: the sums of every run where they are apart. */
export function contractWorkspace(nest: Product, device: DeviceClass): number {
  const { runs, apart } = tilingOf(nest, device);
  return apart ? runs * product([...nest.batch, nest.rows, nest.cols]) : 0;
}

/** One side of a product as its tiles see it. */
interface Side {
  readonly expr: Expr;
  /** The counter of the nest that is not the depth, and its tile's. */
  readonly along: LoopVar;
  readonly tile: LoopVar;
  /** Elements of a thread, of a tile, and from row to row of the tile in shared memory. */
  readonly each: number;
  readonly length: number;
  readonly pitch: number;
  /** Shared memory, a thread's own elements of one row of it, and those of the next tile that it has read. */
  readonly shared: number;
  readonly own: number;
  readonly next: number;
  /** Counter of the elements that a thread reads of a tile. */
  readonly read: LoopVar;
  /** Number of a thread in its row or column. */
  readonly place: Index;
  /** Counters of groups and of neighbours in them. */
  readonly group: LoopVar;
  readonly neighbour: LoopVar;
}

/** How many neighbours a thread has in one group. */
const widthOf = (each: number): number => Math.min(4, each);

/** A thread's element in the tile. */
function elementOf({ each, length, place, group, neighbour }: Side): Index {
  const width = widthOf(each);
  return addIndex(scaleIndex(varIndex(group), (length / each) * width), scaleIndex(place, width), varIndex(neighbour));
}

/** A thread's element among its own. */
const ownElement = ({ each, group, neighbour }: Side): Index =>
  addIndex(scaleIndex(varIndex(group), widthOf(each)), varIndex(neighbour));

class ContractSchedule {
  readonly nest: ContractNest;
  readonly device: DeviceClass;
  readonly tiling: Tiling;
  readonly operands: readonly Operand[];
  readonly memories: Memories;
  readonly thread: LoopVar;
  readonly left: Side;
  readonly right: Side;
  /** Which run, which tile of its depth. */
  readonly run: LoopVar;
  readonly step: LoopVar;
  readonly sum: number;

  constructor(given: ContractNest, operands: readonly Operand[], device: DeviceClass) {
    const nest = withSpanGuards(given);
    this.nest = nest;
    this.operands = operands;
    this.device = device;
    const room = operands[nest.scratch]?.elements ?? 0;
    const tiling = tilingOf(nest, device);
    this.tiling = room >= contractWorkspace(nest, device) ? tiling : { ...tiling, apart: false };
    this.memories = new Memories(operands);
    const { side, rows, cols, run, runs } = tiling;
    this.thread = counter("thread", side * side);
    const t = varIndex(this.thread);
    this.left = this.#side("row", nest.a, nest.rows, { each: rows, place: divIndex(t, side) });
    this.right = this.#side("col", nest.b, nest.cols, { each: cols, place: modIndex(t, side) });
    this.run = counter("run", runs);
    this.step = counter("step", Math.ceil(run / DEPTH));
    this.sum = this.memories.add({ scope: "register", dtype: nest.dtype, elements: rows * cols });
  }

  #side(name: string, expr: Expr, along: LoopVar, { each, place }: Pick<Side, "each" | "place">): Side {
    const { dtype } = this.nest;
    const { side, ahead } = this.tiling;
    const length = each * side;
    const pitch = pitchOf(each, side);
    const width = widthOf(each);
    const reads = (DEPTH * length) / side ** 2;
    return {
      ...{ expr, along, each, place, length, pitch },
      tile: counter(`${name}_tile`, Math.ceil(along.extent / length)),
      shared: this.memories.add({ scope: "shared", dtype, elements: (ahead ? 2 : 1) * DEPTH * pitch }),
      own: this.memories.add({ scope: "local", dtype, elements: each }),
      next: this.memories.add({ scope: "local", dtype, elements: reads }),
      read: counter(`${name}_read`, reads),
      group: counter(`${name}_group`, each / width),
      neighbour: counter(`${name}_next`, width),
    };
  }

  /** Number along the depth of place l of a step's tile. */
  #depth(step: Index, l: Index): Index {
    return addIndex(scaleIndex(varIndex(this.run), this.tiling.run), scaleIndex(step, DEPTH), l);
  }

  /** That place l of a step's tile is in the run, where runs are not whole tiles. */
  #inRun(step: Index, l: Index): readonly Bound[] {
    const { run, runs } = this.tiling;
    const { extent } = this.nest.depth;
    const last = extent - (runs - 1) * run;
    if (run % DEPTH === 0 && last % DEPTH === 0) return [];
    const within = addIndex(scaleIndex(step, DEPTH), l);
    return [...below(within, run), ...(runs > 1 ? below(this.#depth(step, l), extent) : [])];
  }

  /** That a step's tile has terms of the span. */
  #inSpan(step: Index): readonly Bound[] {
    const { span, depth } = this.nest;
    if (!span) return [];
    const [first, beyond] = [this.#depth(step, ZERO), DEPTH + depth.extent];
    return [
      { index: addIndex(first, constIndex(DEPTH), scaleIndex(span.from, -1)), lo: 1, hi: beyond + DEPTH },
      { index: addIndex(span.to, scaleIndex(first, -1)), lo: 1, hi: beyond },
    ];
  }

  // ---- tiles --------------------------------------------------------------------------------------------------------

  /** Which half of shared memory has the tiles of a step. */
  #half({ pitch }: Side, step: Index): Index {
    return this.tiling.ahead ? scaleIndex(modIndex(step, 2), DEPTH * pitch) : ZERO;
  }

  /** The elements of a tile that a thread reads: along the side, and along the depth. */
  #placeOf(side: Side): { readonly x: Index; readonly l: Index } {
    const e = addIndex(scaleIndex(varIndex(side.read), this.tiling.side ** 2), varIndex(this.thread));
    if (this.#deepFirst(side)) return { x: divIndex(e, DEPTH), l: modIndex(e, DEPTH) };
    return { x: modIndex(e, side.length), l: divIndex(e, side.length) };
  }

  /** An element of a step's tile; what is beyond the edge is 0. */
  #elementAt(side: Side, step: Index): Expr {
    const { nest } = this;
    const { x, l } = this.#placeOf(side);
    const at = addIndex(scaleIndex(varIndex(side.tile), side.length), x);
    const counters = new Map([[side.along, at], ...countersAt(nest.split ?? [nest.depth], this.#depth(step, l))]);
    const then = new Replacement(counters).expr(side.expr);
    const bounds = [...below(at, side.along.extent), ...this.#inRun(step, l)];
    const otherwise: Expr = { kind: "const", dtype: nest.dtype, value: 0 };
    return bounds.length === 0 ? then : { kind: "guard", dtype: nest.dtype, bounds, then, otherwise };
  }

  /** Each thread puts some elements into the tiles of a step in shared memory. */
  #put(step: Index, value: (side: Side) => Expr): readonly Statement[] {
    return [this.left, this.right].flatMap((side) => {
      const { x, l } = this.#placeOf(side);
      const index = addIndex(this.#half(side, step), scaleIndex(l, side.pitch), x);
      return loop(side.read, [storing({ operand: side.shared, index, value: value(side) })], true);
    });
  }

  #fill(step: Index): readonly Statement[] {
    return this.#put(step, (side) => this.#elementAt(side, step));
  }

  /** Each thread reads its elements of a step's tiles, to be put there later. */
  #fetch(step: Index): readonly Statement[] {
    return [this.left, this.right].flatMap((side) => {
      const index = varIndex(side.read);
      return loop(side.read, [storing({ operand: side.next, index, value: this.#elementAt(side, step) })], true);
    });
  }

  /** Whether neighbours along the depth are neighbours in memory, so that neighbouring threads should read them. */
  #deepFirst({ expr, along }: Side): boolean {
    const interner = new Interner();
    const depth = this.nest.split?.[1] ?? this.nest.depth;
    let [deep, wide] = [false, false];
    walkExpr(expr, (e) => {
      if (e.kind !== "load") return;
      deep ||= Math.abs(linearCoefficient(interner, e.index, depth) ?? 0) === 1;
      wide ||= Math.abs(linearCoefficient(interner, e.index, along) ?? 0) === 1;
    });
    return deep && !wide;
  }

  /** A thread's elements of one row of a tile. */
  #take(side: Side, l: Index): readonly Statement[] {
    const width = widthOf(side.each);
    const first = elementOf({ ...side, neighbour: counter("none", 1) });
    const from = addIndex(this.#half(side, varIndex(this.step)), scaleIndex(l, side.pitch), first);
    const to = scaleIndex(varIndex(side.group), width);
    const one: Statement =
      width === 1
        ? storing({ operand: side.own, index: to, value: this.memories.read(side.shared, from) })
        : {
            kind: "copy",
            to: { operand: side.own, index: to },
            from: { operand: side.shared, index: from },
            count: width === 2 ? 2 : 4,
          };
    return loop(side.group, [one], true);
  }

  /** For all sums of a thread. */
  #sums(body: readonly Statement[]): readonly Statement[] {
    const { left, right } = this;
    const counters = [left.group, left.neighbour, right.group, right.neighbour];
    return counters.reduceRight<readonly Statement[]>((inside, v) => loop(v, inside, true), body);
  }

  get #own(): Index {
    return addIndex(scaleIndex(ownElement(this.left), this.tiling.cols), ownElement(this.right));
  }

  #multiply(): readonly Statement[] {
    const { left, right, memories, nest } = this;
    const l = counter("l", DEPTH);
    const sum = { operand: this.sum, index: this.#own };
    const [a, b] = [memories.read(left.own, ownElement(left)), memories.read(right.own, ownElement(right))];
    const fused = this.device.fma && isFloatScalar(nest.dtype);
    const one: Statement = fused
      ? { kind: "fma", sum, a, b }
      : storing({ ...sum, value: call("add", [memories.read(this.sum, sum.index), call("mul", [a, b])]) });
    const body = [...this.#take(left, varIndex(l)), ...this.#take(right, varIndex(l)), ...this.#sums([one])];
    // written out, so that compilers read the elements of one place while they multiply those of the one before
    return loop(l, where(this.#inRun(varIndex(this.step), varIndex(l)), body), true);
  }

  /** What one step does, from tile to sums. */
  #oneStep(): readonly Part[] {
    const step = varIndex(this.step);
    const here = this.#inSpan(step);
    const multiply = where(here, this.#multiply());
    if (!this.tiling.ahead) return [phase(...where(here, this.#fill(step))), phase(...multiply)];
    const next = offsetIndex(step, 1);
    const { extent } = this.nest.depth;
    const more = [...below(next, this.step.extent), ...below(this.#depth(next, ZERO), extent), ...this.#inSpan(next)];
    const put = this.#put(next, (side) => this.memories.read(side.next, varIndex(side.read)));
    return this.step.extent === 1
      ? [phase(...multiply)]
      : [phase(...where(more, this.#fetch(next)), ...multiply, ...where(more, put))];
  }

  /** The sums of one run. */
  #oneRun(): readonly Part[] {
    const { run, runs, ahead } = this.tiling;
    const { extent } = this.nest.depth;
    const zero: Expr = { kind: "const", dtype: this.nest.dtype, value: 0 };
    const start = this.#sums([storing({ operand: this.sum, index: this.#own, value: zero })]);
    if (runs === 0) return [phase(...start)];
    const left = addIndex(constIndex(extent + DEPTH - 1), scaleIndex(varIndex(this.run), -run));
    const limit = extent === runs * run ? {} : { limit: divIndex(left, DEPTH) };
    const steps: Part = { kind: "repeat", counter: this.step, ...limit, body: this.#oneStep() };
    return [phase(...start, ...(ahead ? where(this.#inSpan(ZERO), this.#fill(ZERO)) : [])), steps];
  }

  /** A thread's place in the result, and that it is inside. */
  get #result(): { readonly row: Index; readonly col: Index; readonly bounds: readonly Bound[] } {
    const at = (side: Side): Index => addIndex(scaleIndex(varIndex(side.tile), side.length), elementOf(side));
    const [row, col] = [at(this.left), at(this.right)];
    return { row, col, bounds: [...below(row, this.nest.rows.extent), ...below(col, this.nest.cols.extent)] };
  }

  // ---- launches -----------------------------------------------------------------------------------------------------

  launches(): readonly Launch[] {
    return this.tiling.apart ? this.#apart() : [this.#whole()];
  }

  #launch(more: readonly LoopVar[], body: readonly Part[]): Launch {
    const grid = live([...more, ...this.nest.batch, this.left.tile, this.right.tile]);
    return { grid, thread: this.thread, memories: this.memories.list, body };
  }

  /** A block goes through all runs. */
  #whole(): Launch {
    const { nest, memories } = this;
    const { rows, cols, runs } = this.tiling;
    const { row, col, bounds } = this.#result;
    const total = runs > 1 ? memories.add({ scope: "register", dtype: nest.dtype, elements: rows * cols }) : this.sum;
    const counters = new Map([
      [nest.rows, row],
      [nest.cols, col],
    ]);
    const stores = new Replacement(counters, memories.read(total, this.#own)).stores(nest.stores);
    const end = phase(...this.#sums(where(bounds, [storing(...stores)])));
    if (runs <= 1) return this.#launch([], [...this.#oneRun(), end]);
    const [sum, before] = [memories.read(this.sum, this.#own), memories.read(total, this.#own)];
    const set = (value: Expr): readonly Statement[] =>
      this.#sums([storing({ operand: total, index: this.#own, value })]);
    const run = varIndex(this.run);
    const add = phase(
      ...where([equals(run, 0)], set(sum)),
      ...where([{ index: run, lo: 1, hi: runs }], set(call("add", [before, sum]))),
    );
    return this.#launch([], [{ kind: "repeat", counter: this.run, body: [...this.#oneRun(), add] }, end]);
  }

  /** A block for each run, then a thread for each element of the result. */
  #apart(): readonly Launch[] {
    const { nest, memories } = this;
    const { row, col, bounds } = this.#result;
    const loops = [...nest.batch, nest.rows, nest.cols];
    const elements = product(loops);
    const at = linearIndex(
      [varIndex(this.run), ...nest.batch.map(varIndex), row, col],
      [this.run, ...loops].map((v) => v.extent),
    );
    const put = storing({ operand: nest.scratch, index: at, value: memories.read(this.sum, this.#own) });
    const first = this.#launch([this.run], [...this.#oneRun(), phase(...this.#sums(where(bounds, [put])))]);
    return [first, this.#adding(loops, elements)];
  }

  /** Adds up what the blocks of all runs left, in order, and stores. */
  #adding(loops: readonly LoopVar[], elements: number): Launch {
    const { nest } = this;
    const { grid, thread, element, each } = rowOf(elements, this.device, 1);
    const memories = new Memories(this.operands);
    const total = memories.add({ scope: "local", dtype: nest.dtype, elements: 1 });
    const acc = memories.read(total, ZERO);
    const part = (run: Index): Expr => memories.read(nest.scratch, addIndex(scaleIndex(run, elements), element));
    const set = (value: Expr): Statement => storing({ operand: total, index: ZERO, value });
    const later = counter("later", this.tiling.runs - 1);
    const add = loop(later, [set(call("add", [acc, part(addIndex(varIndex(later), constIndex(1)))]))]);
    const stores = new Replacement(countersAt(loops, element), acc).stores(nest.stores);
    const body = [phase(...each([set(part(ZERO)), ...add, storing(...stores)]))];
    return { grid, thread, memories: memories.list, body };
  }
}

export function scheduleContract(
  nest: ContractNest,
  operands: readonly Operand[],
  device: DeviceClass,
): readonly Launch[] {
  if (isEmpty([...nest.batch, nest.rows, nest.cols])) return [];
  return new ContractSchedule(nest, operands, device).launches();
}
