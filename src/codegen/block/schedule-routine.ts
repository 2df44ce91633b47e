/**
 * @file Routines (kernel/routine.ts): a thread for each matrix. Single values are its own, arrays are in the workspace. What a step
 * reads to decide, and bounds that are data, are kept before the steps that may change them.
 */
import { at } from "../../base/invariant.ts";
import { type Bound, constant, type Expr, type Index, type LoopVar, load } from "../../kernel/expr.ts";
import {
  addIndex,
  constIndex,
  rangeOf,
  scaleIndex,
  substitute,
  valueIndex,
  varIndex,
  ZERO,
} from "../../kernel/index-math.ts";
import { asExpr, type Operand, type RoutineNest, type Store } from "../../kernel/loops.ts";
import { mapOperands } from "../../kernel/rewrite.ts";
import { FIRST_TILE, type Step, type Steps, tileOffsets } from "../../kernel/routine.ts";
import { convert } from "../../kernel/scalar-ops.ts";
import { product } from "../units.ts";
import { counter, countersAt, Memories, rowOf } from "./counters.ts";
import { type DeviceClass, type Launch, phase, type Statement, storing, where } from "./program.ts";

/** Elements of workspace: the arrays of every matrix. */
export const routineWorkspace = ({ loops, tiles }: Pick<RoutineNest, "loops" | "tiles">): number =>
  product(loops) * tileOffsets(tiles).elements;

const isPlain = ({ terms }: Index): boolean => terms.every(({ atom }) => atom.kind === "var");

class RoutineSchedule {
  readonly #memories: Memories;
  readonly #places: Map<LoopVar, Index>;
  /** By tile: its memory, and where in it the matrix's own part begins. */
  readonly #tiles: readonly { readonly memory: number; readonly start: Index }[];
  #names = 0;

  constructor(nest: RoutineNest, memories: Memories, element: Index) {
    this.#memories = memories;
    this.#places = countersAt(nest.loops, element);
    const { offsets, elements } = tileOffsets(nest.tiles);
    const start = scaleIndex(element, elements);
    this.#tiles = nest.tiles.map((tile, t) => {
      const offset = at(offsets, t);
      if (tile.kind === "single" || offset === null) {
        const dtype = tile.kind === "single" ? tile.dtype : nest.dtype;
        return { memory: memories.add({ scope: "local", dtype, elements: 1 }), start: ZERO };
      }
      return { memory: nest.scratch ?? 0, start: addIndex(start, constIndex(offset)) };
    });
  }

  #index(index: Index): Index {
    return substitute(
      index,
      (v) => this.#places.get(v) ?? varIndex(v),
      (expr) => this.#expr(expr),
    );
  }

  #element(operand: number, index: Index): { readonly operand: number; readonly index: Index } {
    const own = this.#tiles[operand - FIRST_TILE];
    return own
      ? { operand: own.memory, index: addIndex(own.start, this.#index(index)) }
      : { operand, index: this.#index(index) };
  }

  #expr(expr: Expr): Expr {
    return mapOperands(
      expr,
      (index) => this.#index(index),
      (operand, index) => this.#element(operand, index),
    );
  }

  /** A whole number of the thread's own. */
  #word(value: Expr): readonly [Statement, Expr] {
    const memory = this.#memories.add({ scope: "local", dtype: "i32", elements: 1 });
    return [storing({ operand: memory, index: ZERO, value }), load("i32", memory, ZERO)];
  }

  steps(steps: Steps): readonly Statement[] {
    return steps.flatMap((step) => this.#step(step));
  }

  #step(step: Step): readonly Statement[] {
    switch (step.kind) {
      case "set":
        return [storing(...step.stores.map((store): Store => this.#store(store)))];
      case "for":
      case "each":
        return this.#loop(step);
      case "if": {
        const [keep, flag] = this.#word(convert(this.#expr(step.test), "i32"));
        const is = (value: number): readonly Bound[] => [{ index: valueIndex(flag, 0, 1), lo: value, hi: value + 1 }];
        const otherwise = step.otherwise.length > 0 ? where(is(0), this.steps(step.otherwise)) : [];
        return [keep, ...where(is(1), this.steps(step.body)), ...otherwise];
      }
      case "while": {
        const [start, going] = this.#word(constant("i32", 1));
        const going1: Bound = { index: valueIndex(going, 0, 1), lo: 1, hi: 2 };
        const test = { operand: (going as Extract<Expr, { kind: "load" }>).operand, index: ZERO };
        const again = storing({ ...test, value: convert(this.#expr(step.test), "i32") });
        const body = where([going1], [again, ...where([going1], this.steps(step.body))]);
        return [start, { kind: "for", counter: this.#counter("while", step.most), unroll: false, rolled: true, body }];
      }
    }
  }

  #counter(name: string, extent: number): LoopVar {
    this.#names += 1;
    return counter(`${name}_${this.#names}`, extent);
  }

  #store({ operand, index, value }: Store): Store {
    return { ...this.#element(operand, index), value: this.#expr(value) };
  }

  /** From 0 on, as loops of launches are. */
  #loop({ counter: own, from, to, body }: Extract<Step, { kind: "for" | "each" }>): readonly Statement[] {
    const before: Statement[] = [];
    const fixed = (index: Index): Index => {
      const made = this.#index(index);
      if (isPlain(index)) return made;
      const [keep, value] = this.#word(asExpr(made));
      before.push(keep);
      return valueIndex(value, ...rangeOf(made));
    };
    const [first, end] = [fixed(from), fixed(to)];
    const count = addIndex(end, scaleIndex(first, -1));
    const most = Math.min(own.extent, rangeOf(count)[1]);
    if (most <= 0) return [];
    const next = this.#counter(own.name, most);
    this.#places.set(own, addIndex(first, varIndex(next)));
    const inside = this.steps(body);
    const isWhole = count.terms.length === 0;
    if (most === 1 && isWhole) return [...before, ...inside];
    // a counter that runs once at most is 0 wherever it stands: whether it runs is asked for
    if (most === 1) return [...before, ...where([{ index: count, lo: 1, hi: Math.max(2, own.extent + 1) }], inside)];
    return [
      ...before,
      { kind: "for", counter: next, unroll: false, rolled: true, body: inside, ...(isWhole ? {} : { limit: count }) },
    ];
  }
}

export function scheduleRoutine(
  nest: RoutineNest,
  operands: readonly Operand[],
  device: DeviceClass,
): readonly Launch[] {
  const units = product(nest.loops);
  if (units === 0) return [];
  const memories = new Memories(operands);
  const { grid, thread, element, each } = rowOf(units, device, 1);
  const body = new RoutineSchedule(nest, memories, element).steps(nest.body);
  return [{ grid, thread, memories: memories.list, body: [phase(...each(body))] }];
}
