/**
 * @file Scatters: updates of one element are added in the order of the nest's loops, by one thread and without atomics.
 *
 * Updates are told apart by the row of the operand that they go to; inside of a row (`inner` counters, as the columns of an
 * embedding) every column is a thread's own. Few updates are added one after the other by the threads of the columns. Many
 * are first sorted by their rows, the order of equals kept (schedule-sort.ts), and then each row that occurs is a thread's for
 * each column:
 *
 *   update      0  1  2  3  4             key: the row and 1, or 0 where nothing is added
 *   key         8  3  8  0  3
 *   in order    0  3  3  8  8
 *   update      3  1  4  0  2             the first of each row adds 1, 4 to row 2; 0, 2 to row 7
 *
 * Keys and updates in order are in the workspace, as i32.
 */
import { at, invariant } from "../../base/invariant.ts";
import { typeOf } from "../../kernel/dtype.ts";
import { call, compare, constant, type Expr, type Index, type LoopVar } from "../../kernel/expr.ts";
import {
  addIndex,
  divIndex,
  modIndex,
  offsetIndex,
  rangeOf,
  scaleIndex,
  valueIndex,
  varIndex,
  ZERO,
} from "../../kernel/index-math.ts";
import { asExpr, type Operand, type ScatterNest, type Store } from "../../kernel/loops.ts";
import { asStored } from "../../kernel/stored.ts";
import { Interner, linearCoefficient } from "../intern.ts";
import { product } from "../units.ts";
import { counter, countersAt, isEmpty, Memories, Replacement, rowOf } from "./counters.ts";
import { type DeviceClass, type Launch, loop, phase, type Statement, storing, where } from "./program.ts";
import { type Sorting, sortingOf, sortLaunches } from "./schedule-sort.ts";

/** Updates that are not worth sorting. */
const FEW = 32;

type Scatter = Omit<ScatterNest, "scratch">;

/** The counters of updates and of the columns of one. */
interface Split {
  readonly outer: readonly LoopVar[];
  readonly inner: readonly LoopVar[];
  /** Elements of a row: an update goes to row · width + a column, the columns of a row all being different. */
  readonly width: number;
}

/**
 * The last counters that number the columns of a row: they are not in the bounds, and the index is a multiple of the row's
 * length for all of them at 0.
 */
function splitOf({ loops, bounds, index }: Scatter): Split {
  const interner = new Interner();
  let [cut, width] = [loops.length, 1];
  for (let i = loops.length - 1; i >= 0; i--) {
    const v = at(loops, i);
    const own = v.extent === 1 || linearCoefficient(interner, index, v) === width;
    if (!own || bounds.some((b) => interner.ofIndex(b.index).has(v))) break;
    width *= v.extent;
    cut = i;
  }
  const inner = loops.slice(cut);
  const others = index.terms.filter(({ atom }) => !inner.includes(atom as LoopVar));
  const whole = index.offset % width === 0 && others.every(({ coef }) => coef % width === 0);
  return whole ? { outer: loops.slice(0, cut), inner, width } : { outer: loops, inner: [], width: 1 };
}

/** How the updates are sorted, or null where they are too few. */
function sortingFor(nest: Scatter, { outer, width }: Split, device: DeviceClass): Sorting | null {
  const updates = product(outer);
  const [, most] = rangeOf(nest.index);
  return updates > FEW ? sortingOf(updates, Math.floor(most / width) + 1, device) : null;
}

/** Elements of workspace: keys and updates, before and after sorting. */
export function scatterWorkspace(nest: Scatter, device: DeviceClass): number {
  return isEmpty(nest.loops) ? 0 : (sortingFor(nest, splitOf(nest), device)?.elements ?? 0);
}

class ScatterSchedule {
  readonly nest: ScatterNest;
  readonly operands: readonly Operand[];
  readonly device: DeviceClass;
  readonly split: Split;
  readonly updates: number;
  readonly columns: number;

  constructor(nest: ScatterNest, operands: readonly Operand[], device: DeviceClass) {
    this.nest = nest;
    this.operands = operands;
    this.device = device;
    this.split = splitOf(nest);
    this.updates = product(this.split.outer);
    this.columns = product(this.split.inner);
  }

  #counters(update: Index, column: Index): Map<LoopVar, Index> {
    return new Map([...countersAt(this.split.outer, update), ...countersAt(this.split.inner, column)]);
  }

  /** The element of an update's column, plus what is added, rounded as if it had been stored. */
  #sum(before: Expr, value: Expr): Expr {
    return asStored(at(this.operands, this.nest.operand).dtype, call(this.nest.combine ?? "add", [before, value]));
  }

  /** Every column is a thread's, which goes through all updates. */
  direct(): readonly Launch[] {
    const { grid, thread, element, each } = rowOf(this.columns, this.device, 1);
    const memories = new Memories(this.operands);
    const update = counter("update", this.updates);
    const here = new Replacement(this.#counters(varIndex(update), element));
    const index = here.index(this.nest.index);
    const before = memories.read(this.nest.operand, index);
    const add = storing({ operand: this.nest.operand, index, value: this.#sum(before, here.expr(this.nest.value)) });
    const bounds = this.nest.bounds.map((b) => here.bound(b));
    const body = [phase(...each(loop(update, where(bounds, [add]))))];
    return [{ grid, thread, memories: memories.list, body }];
  }

  // ---- sorted -------------------------------------------------------------------------------------------------------

  /** Memories with the workspace as i32. */
  #sorting(scratch: number, elements: number): { readonly memories: Memories; readonly words: number } {
    const memories = new Memories(this.operands);
    return { memories, words: memories.add({ scope: "global", operand: scratch, dtype: "i32", elements }) };
  }

  sorted(scratch: number, sorting: Sorting): readonly Launch[] {
    const { operands, device } = this;
    const sort = sortLaunches(sorting, { operands, scratch, device });
    return [this.#keys(scratch, sorting), ...sort, this.#adding(scratch, sorting)];
  }

  #keys(scratch: number, { elements }: Sorting): Launch {
    const { memories, words } = this.#sorting(scratch, elements);
    const { grid, thread, element, each } = rowOf(this.updates, this.device);
    const here = new Replacement(this.#counters(element, ZERO));
    const key = asExpr(offsetIndex(divIndex(here.index(this.nest.index), this.split.width), 1));
    const none = constant("i32", 0);
    const bounds = this.nest.bounds.map((b) => here.bound(b));
    const value: Expr = bounds.length === 0 ? key : { kind: "guard", dtype: "i32", bounds, then: key, otherwise: none };
    const body = [phase(...each([storing({ operand: words, index: element, value })]))];
    return { grid, thread, memories: memories.list, body };
  }

  /** A thread for each place in order and column; that of the first update of a row adds all of them. */
  #adding(scratch: number, { elements, numbers, which }: Sorting): Launch {
    const { updates, columns, nest } = this;
    const { memories, words } = this.#sorting(scratch, elements);
    const { grid, thread, element, each } = rowOf(updates * columns, this.device, 1);
    const [place, column] = [divIndex(element, columns), modIndex(element, columns)];
    const integer = (): number => memories.add({ scope: "local", dtype: "i32", elements: 1 });
    const [key, before, length] = [integer(), integer(), integer()];
    const storage = at(this.operands, nest.operand).dtype;
    const { accumulate } = typeOf(storage);
    const sum = memories.add({ scope: "local", dtype: accumulate, elements: 1 });
    const set = (operand: number, value: Expr): Store => ({ operand, index: ZERO, value });
    const keyAt = (index: Index): Expr => memories.read(words, offsetIndex(index, numbers));
    const hasBefore = { kind: "guard", dtype: "i32", bounds: [{ index: place, lo: 1, hi: updates }] } as const;
    const start = [
      storing(
        set(key, keyAt(place)),
        set(before, { ...hasBefore, then: keyAt(offsetIndex(place, -1)), otherwise: constant("i32", 0) }),
      ),
    ];
    // the first of a row has a greater key than the place before; nothing is added for 0
    const most = at(this.operands, nest.operand).elements;
    const keyIndex = valueIndex(memories.read(key, ZERO), 0, most);
    const beforeIndex = valueIndex(memories.read(before, ZERO), 0, most);
    const first = { index: addIndex(keyIndex, scaleIndex(beforeIndex, -1)), lo: 1, hi: most + 1 };
    const target = addIndex(scaleIndex(offsetIndex(keyIndex, -1), this.split.width), column);
    const nth = counter("nth", updates);
    const update = memories.read(words, offsetIndex(addIndex(place, varIndex(nth)), which));
    const here = new Replacement(this.#counters(valueIndex(update, 0, updates - 1), column));
    const add = storing(set(sum, this.#sum(memories.read(sum, ZERO), here.expr(nest.value))));
    const all: Statement = {
      kind: "for",
      counter: nth,
      limit: valueIndex(memories.read(length, ZERO), 0, updates),
      unroll: false,
      body: [add],
    };
    const body = where(
      [first],
      [
        ...this.#lengthOf({ memories, place, key, length, keyAt }),
        storing(set(sum, memories.read(nest.operand, target))),
        all,
        storing({ operand: nest.operand, index: target, value: memories.read(sum, ZERO) }),
      ],
    );
    return { grid, thread, memories: memories.list, body: [phase(...each([...start, ...body]))] };
  }

  /** How many places from this one on have its key: the greatest power of two that fits is added, then the next. */
  #lengthOf({
    memories,
    place,
    key,
    length,
    keyAt,
  }: {
    readonly memories: Memories;
    readonly place: Index;
    readonly key: number;
    readonly length: number;
    readonly keyAt: (index: Index) => Expr;
  }): readonly Statement[] {
    const { updates } = this;
    const own = memories.read(key, ZERO);
    const known = memories.read(length, ZERO);
    const set = (value: Expr): Statement => storing({ operand: length, index: ZERO, value });
    const steps: Statement[] = [set(constant("i32", 1))];
    for (let power = 2 ** Math.floor(Math.log2(updates)); power >= 1; power /= 2) {
      // with so many more, the last of them still has this key
      const last = offsetIndex(addIndex(place, valueIndex(known, 1, updates)), power - 1);
      const same = compare("eq", keyAt(last), own);
      const more = call("add", [known, call("pick", [same, constant("i32", power), constant("i32", 0)])]);
      steps.push(...where([{ index: last, lo: 0, hi: updates }], [set(more)]));
    }
    return steps;
  }
}

export function scheduleScatter(
  nest: ScatterNest,
  operands: readonly Operand[],
  device: DeviceClass,
): readonly Launch[] {
  if (isEmpty(nest.loops)) return [];
  const schedule = new ScatterSchedule(nest, operands, device);
  const sorting = sortingFor(nest, schedule.split, device);
  const { scratch } = nest;
  if (!sorting || scratch === undefined) return schedule.direct();
  const given = operands[scratch]?.elements ?? 0;
  invariant(given >= sorting.elements, () => `a scatter has ${given} elements of workspace, not ${sorting.elements}`);
  return schedule.sorted(scratch, sorting);
}
