/**
 * @file Attention. A block of threads is one unit of kernel/attend.ts; each of its stages is a phase, on tiles in shared memory
 * or, where they do not fit, in the workspace:
 *
 *   map       element e of the tile: thread e mod threads
 *   reduce    a thread for each column
 *   product   a square of threads, each with every sixteenth row and column; the tile's side from shared memory, the other
 *             from its operand, sums in registers
 *
 * Queries, or keys, that do not fill a block are units of a launch of their own.
 */
import { at, InternalError, invariant } from "../../base/invariant.ts";
import { attendStages } from "../../kernel/attend.ts";
import type { AttendStages, Repeat, Stage, StagedUnits } from "../../kernel/attend-stages.ts";
import { bytesOf, isFloatScalar } from "../../kernel/dtype.ts";
import { type Bound, call, constant, type Expr, type Index, type LoopVar } from "../../kernel/expr.ts";
import {
  addIndex,
  constIndex,
  divIndex,
  modIndex,
  rangeOf,
  scaleIndex,
  valueIndex,
  varIndex,
} from "../../kernel/index-math.ts";
import {
  type AttendNest,
  asExpr,
  type ContractNest,
  depthRun,
  identityOf,
  type MapNest,
  type Operand,
  type ReduceNest,
} from "../../kernel/loops.ts";
import { live, product } from "../units.ts";
import { below, counter, countersAt, Memories, Replacement } from "./counters.ts";
import { type DeviceClass, type Launch, loop, type Part, phase, type Statement, storing, where } from "./program.ts";

/** Stages with as many tiles in shared memory as fit, those first that are read most. */
function stagesOn(nest: AttendNest, operands: number, { sharedBytes }: DeviceClass): AttendStages {
  let free = sharedBytes;
  return attendStages(nest, operands, (elements) => {
    const bytes = elements * bytesOf(nest.dtype);
    if (bytes > free) return true;
    free -= bytes;
    return false;
  });
}

/** Elements of workspace: the tiles that are not in shared memory, of every unit. */
export function attendWorkspace(nest: AttendNest, device: DeviceClass): number {
  const { unitElements, programs } = stagesOn(nest, MANY_OPERANDS, device);
  return unitElements * Math.max(0, ...programs.map(({ units }) => product(units)));
}

/** Tiles are numbered behind the operands of any kernel. */
const MANY_OPERANDS = 2 ** 20;

type Counters = ReadonlyMap<LoopVar, Index>;

/** A thread's part of a product: counters of its rows and columns, their places in the tile, and its own memories. */
interface Square {
  readonly u: LoopVar;
  readonly v: LoopVar;
  readonly row: Index;
  readonly col: Index;
  /** Number of a sum among the thread's. */
  readonly own: Index;
  /** Sums of one run and of those before; elements of both sides. */
  readonly sum: number;
  readonly total: number;
  readonly left: number;
  readonly right: number;
  /** For all sums. */
  all(body: readonly Statement[]): readonly Statement[];
  set(to: number, value: Expr): readonly Statement[];
}

/** The least of some indices; null of none. */
function least([first, ...rest]: readonly Index[]): Index | null {
  return rest.reduce<Index | null>((a, b) => a && lesser(a, b), first ?? null);
}

function lesser(a: Index, b: Index): Index {
  const [[loA, hiA], [loB, hiB]] = [rangeOf(a), rangeOf(b)];
  return valueIndex(call("min", [asExpr(a), asExpr(b)]), Math.min(loA, loB), Math.min(hiA, hiB));
}

class AttendSchedule {
  readonly nest: AttendNest;
  readonly device: DeviceClass;
  readonly side: number;
  readonly thread: LoopVar;
  readonly memories: Memories;
  /** Counters of loops around, whose indices stand in place of the nest's. */
  readonly places: Map<LoopVar, Index> = new Map();
  #names = 0;

  constructor(nest: AttendNest, operands: readonly Operand[], device: DeviceClass, stages: AttendStages) {
    this.nest = nest;
    this.device = device;
    this.side = device.threads >= 256 ? 16 : 8;
    this.thread = counter("thread", this.side ** 2);
    this.memories = new Memories(operands);
    stages.tiles.forEach((elements, t) => {
      const { dtype, scratch = 0 } = nest;
      const whole = operands[scratch]?.elements ?? 0;
      const isApart = stages.apart.has(operands.length + t);
      const number = this.memories.add(
        isApart
          ? { scope: "global", operand: scratch, dtype, elements: whole }
          : { scope: "shared", dtype, elements: Math.max(1, elements) },
      );
      invariant(number === operands.length + t, () => "tiles are numbered behind the operands");
    });
  }

  launch({ units, body }: StagedUnits): Launch {
    const parts = body.flatMap((stage) => this.part(stage, []));
    return { grid: live(units), thread: this.thread, memories: this.memories.list, body: parts };
  }

  #counter(name: string, extent: number): LoopVar {
    return counter(`${name}_${this.#names++}`, extent);
  }

  /** `bounds`: where the stage runs at all. */
  part(stage: Stage, bounds: readonly Bound[]): readonly Part[] {
    switch (stage.kind) {
      case "repeat":
        return this.repeat(stage, bounds);
      case "map":
        return [phase(...where(bounds, this.map(stage)))];
      case "reduce":
        return [phase(...where(bounds, this.reduce(stage)))];
      case "contract":
        return [phase(...where(bounds, this.contract(stage)))];
      default:
        throw new InternalError(`attention has no stage ${stage.kind}`);
    }
  }

  /** A loop from its first value on; one that may begin before it does nothing until then. */
  repeat({ counter: own, first, last, from, to, body }: Repeat, bounds: readonly Bound[]): readonly Part[] {
    const start = from ?? constIndex(first);
    const lowest = Math.min(first, rangeOf(start)[0]);
    const step = this.#counter("step", last - lowest);
    if (step.extent <= 0) return [];
    const at = addIndex(start, varIndex(step));
    this.places.set(own, at);
    const end = least(to);
    const length = addIndex(end ?? constIndex(last), scaleIndex(start, -1));
    const beyond = [...(from ? [{ index: at, lo: first, hi: last }] : []), ...(end && !from ? below(at, last) : [])];
    const limit = from || end ? { limit: length } : {};
    const parts = body.flatMap((stage) => this.part(stage, [...bounds, ...beyond]));
    return [{ kind: "repeat", counter: step, ...limit, body: parts }];
  }

  #replaced(counters: Counters, acc: Expr | null = null): Replacement {
    return new Replacement(new Map([...this.places, ...counters]), acc);
  }

  map({ loops, stores }: MapNest): readonly Statement[] {
    const elements = product(loops);
    if (elements === 0) return [];
    const threads = this.thread.extent;
    const next = this.#counter("next", Math.ceil(elements / threads));
    const element = addIndex(scaleIndex(varIndex(next), threads), varIndex(this.thread));
    const made = this.#replaced(countersAt(loops, element)).stores(stores);
    return loop(next, where(below(element, elements), [storing(...made)]));
  }

  reduce({ loops, reduce, combine, dtype, body, stores }: ReduceNest): readonly Statement[] {
    const [x, y] = [at(loops, 0), at(reduce, 0)];
    const { memories, thread } = this;
    const acc = memories.add({ scope: "local", dtype, elements: 1 });
    const [zero, column] = [constIndex(0), this.#counter("column", Math.ceil(x.extent / thread.extent))];
    const place = addIndex(scaleIndex(varIndex(column), thread.extent), varIndex(thread));
    const row = this.#counter("row", y.extent);
    const places = this.#replaced(
      new Map([
        [x, place],
        [y, varIndex(row)],
      ]),
    );
    const set = (value: Expr): Statement => storing({ operand: acc, index: zero, value });
    const combined = call(combine, [memories.read(acc, zero), places.expr(body)]);
    return loop(
      column,
      where(below(place, x.extent), [
        set(constant(dtype, identityOf(combine, dtype))),
        ...loop(row, [set(combined)]),
        storing(...places.with(memories.read(acc, zero)).stores(stores)),
      ]),
    );
  }

  // ---- products -----------------------------------------------------------------------------------------------------

  contract(nest: ContractNest): readonly Statement[] {
    const { memories } = this;
    const { rows, cols, depth } = nest;
    if (rows.extent === 0 || cols.extent === 0) return [];
    const square = this.#square(nest);
    const { sum, total, own } = square;
    const run = Math.max(1, depthRun(depth.extent));
    const runs = Math.max(1, Math.ceil(depth.extent / run));
    const first = this.#oneRun(nest, square, constIndex(0));
    if (runs === 1) return [...first, ...this.#ends(nest, square, sum)];
    const later = this.#counter("run", runs - 1);
    const addition = call("add", [memories.read(total, own), memories.read(sum, own)]);
    return [
      ...first,
      ...square.set(total, memories.read(sum, own)),
      ...loop(later, [
        ...this.#oneRun(nest, square, addIndex(varIndex(later), constIndex(1))),
        ...square.set(total, addition),
      ]),
      ...this.#ends(nest, square, total),
    ];
  }

  /** Rows and columns of a thread, and where its sums are. */
  #square({ rows, cols, dtype }: ContractNest): Square {
    const { side, memories } = this;
    const [high, wide] = [Math.ceil(rows.extent / side), Math.ceil(cols.extent / side)];
    const local = (elements: number): number => memories.add({ scope: "local", dtype, elements });
    const [u, v] = [this.#counter("u", high), this.#counter("v", wide)];
    const t = varIndex(this.thread);
    const own = addIndex(scaleIndex(varIndex(u), wide), varIndex(v));
    const all = (body: readonly Statement[]): readonly Statement[] => loop(u, loop(v, body, true), true);
    return {
      ...{ u, v, own, all },
      ...{ sum: local(high * wide), total: local(high * wide), left: local(high), right: local(wide) },
      row: addIndex(scaleIndex(varIndex(u), side), divIndex(t, side)),
      col: addIndex(scaleIndex(varIndex(v), side), modIndex(t, side)),
      set: (to, value) => all([storing({ operand: to, index: own, value })]),
    };
  }

  /** Sums of one run along the depth, from zero. */
  #oneRun(nest: ContractNest, square: Square, number: Index): readonly Statement[] {
    const { memories } = this;
    const { dtype, rows, cols, depth } = nest;
    const { u, v, row, col, own, sum, left, right } = square;
    const run = Math.max(1, depthRun(depth.extent));
    const k = this.#counter("k", Math.min(run, depth.extent));
    const places = this.#replaced(
      new Map([
        [rows, row],
        [cols, col],
        [depth, addIndex(scaleIndex(number, run), varIndex(k))],
      ]),
    );
    const zero = constant(dtype, 0);
    const guarded = (expr: Expr, bounds: readonly Bound[]): Expr =>
      bounds.length === 0 ? expr : { kind: "guard", dtype, bounds, then: expr, otherwise: zero };
    const [a, b] = [
      guarded(places.expr(nest.a), below(row, rows.extent)),
      guarded(places.expr(nest.b), below(col, cols.extent)),
    ];
    const [x, y] = [memories.read(left, varIndex(u)), memories.read(right, varIndex(v))];
    const element = { operand: sum, index: own };
    const added: Statement =
      this.device.fma && isFloatScalar(dtype)
        ? { kind: "fma", sum: element, a: x, b: y }
        : storing({ ...element, value: call("add", [memories.read(sum, own), call("mul", [x, y])]) });
    const limit = addIndex(constIndex(depth.extent), scaleIndex(number, -run));
    const body = [
      ...loop(u, [storing({ operand: left, index: varIndex(u), value: a })], true),
      ...loop(v, [storing({ operand: right, index: varIndex(v), value: b })], true),
      ...square.all([added]),
    ];
    const steps: Statement = {
      ...{ kind: "for", counter: k, unroll: false, body },
      ...(depth.extent % run === 0 ? {} : { limit }),
    };
    return [...square.set(sum, zero), ...(k.extent > 0 ? [steps] : [])];
  }

  /** What follows the sums, which are in `of`. */
  #ends({ rows, cols, stores }: ContractNest, { row, col, own, all }: Square, of: number): readonly Statement[] {
    const counters = new Map([
      [rows, row],
      [cols, col],
    ]);
    const made = this.#replaced(counters, this.memories.read(of, own)).stores(stores);
    return all(where([...below(row, rows.extent), ...below(col, cols.extent)], [storing(...made)]));
  }
}

export function scheduleAttend(nest: AttendNest, operands: readonly Operand[], device: DeviceClass): readonly Launch[] {
  const stages = stagesOn(nest, operands.length, device);
  return stages.programs
    .filter(({ units }) => product(units) > 0)
    .map((units) => new AttendSchedule(nest, operands, device, stages).launch(units));
}
