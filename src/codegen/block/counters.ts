/**
 * @file Counters of a launch in place of those of a nest, and the shape that most launches have: every thread of a long row
 * of blocks computes some elements, of which neighbours lie side by side.
 *
 *   element = block · (each · threads) + u · threads + thread         u < each
 */
import { type Bound, type Expr, type Index, type LoopVar, load } from "../../kernel/expr.ts";
import { addIndex, rangeOf, scaleIndex, splitIndex, substitute, varIndex } from "../../kernel/index-math.ts";
import type { Operand, Store } from "../../kernel/loops.ts";
import { mapIndices } from "../../kernel/rewrite.ts";
import { live, product } from "../units.ts";
import { type DeviceClass, loop, type Memory, operandMemories, type Statement, where } from "./program.ts";

export const counter = (name: string, extent: number): LoopVar => ({ kind: "var", name, extent });

/** index = value, as a bound. */
export const equals = (index: Index, value: number): Bound => ({ index, lo: value, hi: value + 1 });

/** index < end, where an index can reach it at all; never negative. */
export const below = (index: Index, end: number): readonly Bound[] =>
  rangeOf(index)[1] < end ? [] : [{ index, lo: 0, hi: end }];

/** Memories of a launch under construction: the operands first. */
export class Memories {
  readonly list: Memory[];

  constructor(operands: readonly Operand[]) {
    this.list = [...operandMemories(operands)];
  }

  add(memory: Memory): number {
    return this.list.push(memory) - 1;
  }

  /** An element of a memory as a value. */
  read(memory: number, index: Index): Expr {
    const { dtype } = this.list[memory] as Memory;
    return load(dtype, memory, index);
  }
}

/** Puts indices in place of a nest's counters, and a value in place of its accumulator. */
export class Replacement {
  readonly #counters: ReadonlyMap<LoopVar, Index>;
  readonly #acc: Expr | null;

  constructor(counters: ReadonlyMap<LoopVar, Index>, acc: Expr | null = null) {
    this.#counters = counters;
    this.#acc = acc;
  }

  /** The same with a value for the accumulator. */
  with(acc: Expr): Replacement {
    return new Replacement(this.#counters, acc);
  }

  readonly #map = (index: Index, inner: (expr: Expr) => Expr): Index =>
    substitute(index, (v) => this.#counters.get(v) ?? varIndex(v), inner);

  index(index: Index): Index {
    return this.#map(index, (expr) => this.expr(expr));
  }

  expr(expr: Expr): Expr {
    return mapIndices(expr, this.#map, this.#acc);
  }

  bound(bound: Bound): Bound {
    return { ...bound, index: this.index(bound.index) };
  }

  stores(stores: readonly Store[]): readonly Store[] {
    return stores.map((s) => ({ ...s, index: this.index(s.index), value: this.expr(s.value) }));
  }
}

/** Counters of a nest from the number of an element, the last one running fastest. */
export function countersAt(loops: readonly LoopVar[], element: Index): Map<LoopVar, Index> {
  const counters = live(loops);
  const parts = splitIndex(
    element,
    counters.map((v) => v.extent),
  );
  return new Map(counters.map((v, i) => [v, parts[i] as Index]));
}

/** A row of blocks whose threads have some elements each. */
export interface Row {
  readonly grid: readonly LoopVar[];
  readonly thread: LoopVar;
  /** The number of a thread's element, for each value of the loop that `each` writes. */
  readonly element: Index;
  /** `body` for every element of a thread that is there. */
  each(body: readonly Statement[]): readonly Statement[];
}

/** Threads of a block for so many elements: whole groups of lanes, no more than there is work for. */
export const threadsFor = (elements: number, { threads, lanes }: DeviceClass): number =>
  Math.min(threads, Math.max(1, Math.ceil(elements / lanes)) * lanes);

/** Elements of a thread where there are enough to keep the device busy. */
const MOST_EACH = 4;

export function rowOf(elements: number, device: DeviceClass, most: number = MOST_EACH): Row {
  const threads = threadsFor(elements, device);
  const room = Math.floor(elements / (threads * 2 * device.multiprocessors));
  const each = Math.max(1, Math.min(most, room));
  const block = counter("block", Math.ceil(elements / (threads * each)));
  const [thread, next] = [counter("thread", threads), counter("next", each)];
  const element = addIndex(
    scaleIndex(varIndex(block), threads * each),
    scaleIndex(varIndex(next), threads),
    varIndex(thread),
  );
  return {
    grid: live([block]),
    thread,
    element,
    each: (body) => loop(next, where(below(element, elements), body), true),
  };
}

/** Whether a nest computes nothing. */
export const isEmpty = (loops: readonly LoopVar[]): boolean => product(loops) === 0;
