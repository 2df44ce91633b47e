/**
 * @file The loop that goes through the slots of a schedule. Every device runs the same program; what it does in a slot says its row of the
 * table. Stores are carries that are written in place, and what a device does not do in a slot is a loop that does not run:
 *
 *   for each slot   take in what neighbours sent in the slot before
 *                   forward, backward or weights of one microbatch, or nothing
 *                   send the result on, and the cotangent of the operand back
 */
import { scan, whileInTurns } from "../../api/control.ts";
import { add, equal, logicalAnd, logicalNot } from "../../api/elementwise.ts";
import { valueAndGrad } from "../../api/grad.ts";
import { dynamicSlice, dynamicUpdate } from "../../api/indexing.ts";
import { vjp } from "../../api/modes.ts";
import { fullOf } from "../../api/operands.ts";
import { reshape } from "../../api/shape.ts";
import { at } from "../../base/invariant.ts";
import type { TensorType } from "../../ir/type.ts";
import { type DType, isFloat } from "../../kernel/dtype.ts";
import { type Tensor, tensorTypeOf } from "../../trace/tensor.ts";
import { flatten, type Tree, type TreeDef, unflatten } from "../../trace/tree.ts";
import { deviceIndex, permute, vary } from "../collectives.ts";
import type { Over } from "../mesh.ts";
import type { CutStage } from "./cut.ts";
import { CODES, COLUMNS, type Column, columnOf, type PipelineRows } from "./rows.ts";

type Tensors = readonly Tensor[];

/** What there is to be run: a model in parts, and a batch. */
export interface PipelineParts {
  readonly over: Over;
  readonly stages: number;
  readonly rows: PipelineRows;
  readonly cut: CutStage;
  readonly x: TensorType;
  /** Of the loss, which is added up in it. */
  readonly lossType: DType;
  readonly first: (shared: Tree, batch: readonly Tree[]) => Tensor;
  readonly last: (shared: Tree, y: Tensor, batch: readonly Tree[]) => Tensor;
  readonly shared: { readonly def: TreeDef; readonly leaves: Tensors };
  /** Leaves of the parameters of each of the device's pieces. */
  readonly own: readonly Tensors[];
  /** Arguments of the loss for a microbatch. */
  readonly batchAt: (microbatch: Tensor) => readonly Tree[];
}

/** A sum over microbatches, on this device. */
export interface PipelineSums {
  readonly loss: Tensor;
  readonly shared: Tensors;
  readonly own: readonly Tensors[];
}

interface Stores {
  readonly x: Tensor;
  readonly dy: Tensor;
  readonly kept: Tensors;
  readonly late: Tensors;
  readonly between: Tensors;
}

interface Carry extends Stores, PipelineSums {
  /** What this device sends, then what it got. */
  readonly y: Tensor;
  readonly dx: Tensor;
}

/** A constant that varies as values of this type do. */
function filled({ dtype, shape, varies }: TensorType, value: number): Tensor {
  const x = fullOf(dtype, shape, value);
  return varies ? vary(x, { over: varies.over }) : x;
}

/**
 * Two rows at least: which one is read is then a number of the slot. Rows are written before they are read, so what they begin as is
 * free: a number for each store, since equal ones would be one value that is copied.
 */
const storeOf = (type: TensorType, count: number, begin: number): Tensor =>
  filled({ ...type, shape: [Math.max(2, count), ...type.shape] }, isFloat(type.dtype) ? begin : 0);
const rowAt = (store: Tensor, row: Tensor): readonly (Tensor | number)[] => [row, ...store.shape.slice(1).map(() => 0)];

const taken = (store: Tensor, row: Tensor): Tensor =>
  reshape(dynamicSlice(store, rowAt(store, row), [1, ...store.shape.slice(1)]), store.shape.slice(1));

const put = (store: Tensor, x: Tensor, row: Tensor): Tensor =>
  dynamicUpdate(store, reshape(x, [1, ...x.shape]), rowAt(store, row));

const putAll = (stores: Tensors, all: Tensors, row: Tensor): Tensors =>
  stores.map((store, i) => put(store, at(all, i), row));
const addAll = (sums: Tensors, all: Tensors): Tensors => sums.map((sum, i) => add(sum, at(all, i)));

/** The numbers of a slot, by column. */
type Numbers = (column: Column) => Tensor;

const numbersOf =
  (row: Tensor): Numbers =>
  (column) =>
    reshape(dynamicSlice(row, [COLUMNS.indexOf(column)], [1]), []);

/** The numbers of a slot, and which slot of a period it is. */
interface Slot {
  readonly row: Tensor;
  readonly j: number;
}

/** Whether this device does something in a slot, and which devices do it in which periods (ops/loops.ts). */
interface Does {
  readonly isSo: Tensor;
  readonly row: Tensor;
  readonly turns: string;
}

/**
 * The state after `fn` where it is so, and as it is where it is not, in its place. The numbers of the slot are a part of what the loop
 * changes: what is computed from them is computed in the loop, and not in front of it.
 */
function where<S extends Tree>({ isSo, row, turns }: Does, state: S, fn: (state: S, of: Numbers) => S): S {
  type State = [left: Tensor, row: Tensor, state: S];
  const body = ([left, own, now]: State): State => [logicalNot(left), add(own, 1), fn(now, numbersOf(own))];
  const [, , made] = whileInTurns(([left]: State) => left, body, [isSo, row, state] as State, { turns });
  return made;
}

class Slots {
  readonly #parts: PipelineParts;
  readonly #me: Tensor;

  constructor(parts: PipelineParts) {
    this.#parts = parts;
    this.#me = deviceIndex({ over: parts.over });
  }

  start(): Carry {
    const { cut, x, lossType, rows, shared, own } = this.#parts;
    const { counts } = rows;
    const sums = (leaves: Tensors): Tensors => leaves.map((leaf) => filled(tensorTypeOf(leaf), -0));
    const stores = (types: readonly TensorType[], count: number, first = 0): Tensors =>
      types.map((type, n) => storeOf(type, count, first + n));
    return {
      ...{ x: storeOf(x, counts.x + 1, -1), dy: storeOf(x, counts.dy + 1, -2), y: filled(x, 1), dx: filled(x, 2) },
      kept: stores(cut.kept, counts.kept),
      late: stores(cut.late, counts.late, cut.kept.length),
      between: stores(cut.between, counts.between, cut.kept.length + cut.late.length),
      // from -0, to which adding changes no bit
      ...{ loss: filled({ ...x, dtype: lossType, shape: [] }, -0), shared: sums(shared.leaves), own: own.map(sums) },
    };
  }

  /** The slots of one period, from their rows of the table. */
  period(carry: Carry, table: Tensor): Carry {
    let now = carry;
    for (let j = 0; j < this.#parts.rows.period; j++) {
      const row = reshape(dynamicSlice(table, [j, this.#me, 0], [1, 1, COLUMNS.length]), [COLUMNS.length]);
      now = this.#slot(now, { row, j });
    }
    return now;
  }

  #slot(given: Carry, slot: Slot): Carry {
    const { over, rows, own } = this.#parts;
    const of = numbersOf(slot.row);
    const send = (x: Tensor, pairs: readonly (readonly [number, number])[]): Tensor => permute(x, { over, pairs });
    let now: Carry = { ...given, x: put(given.x, given.y, of("xIn")) };
    now = this.#begin(now, slot);
    for (const c of own.keys()) now = this.#forward(now, slot, c);
    now = { ...now, dy: put(now.dy, now.dx, of("dyIn")) };
    now = this.#end(now, slot);
    const y = send(now.y, at(rows.forward, slot.j));
    for (const c of own.keys()) now = this.#backward(now, slot, c);
    now = this.#begun(now, slot);
    const dx = send(now.dx, at(rows.backward, slot.j));
    for (const c of own.keys()) now = this.#weights(now, slot, c);
    return { ...now, y, dx };
  }

  /** `only`: no other device does it. */
  #does({ row, j }: Slot, what: keyof typeof CODES, chunk: number, only?: number): Does {
    const { rows, stages } = this.#parts;
    const of = numbersOf(row);
    const isTurn = logicalAnd(equal(of("what"), CODES[what] ?? 0), equal(of("chunk"), chunk));
    const turn = (device: number, slot: number): string => {
      const number = (column: Column): number => at(rows.table, columnOf(slot * stages + device, column));
      const isOwn = only === undefined || only === device;
      return isOwn && number("what") === CODES[what] && number("chunk") === chunk ? "1" : "0";
    };
    const periods = Array.from({ length: rows.slots / rows.period }, (_, period) => period * rows.period + j);
    const turns = Array.from({ length: stages }, (_, device) => periods.map((slot) => turn(device, slot)).join(""));
    const isSo = only === undefined ? isTurn : logicalAnd(isTurn, equal(this.#me, only));
    return { isSo, row, turns: turns.join() };
  }

  /** The operand of the first stage. */
  #begin(now: Carry, slot: Slot): Carry {
    const { first, shared, batchAt } = this.#parts;
    const x = where(this.#does(slot, "forward", 0, 0), now.x, (store, of) => {
      const made = first(unflatten(shared.def, shared.leaves) as Tree, batchAt(of("microbatch")));
      return put(store, made, of("x"));
    });
    return { ...now, x };
  }

  #forward(now: Carry, slot: Slot, c: number): Carry {
    const { cut, own } = this.#parts;
    const { y, kept, late } = now;
    const done = where(this.#does(slot, "forward", c), { y, kept, late }, (state, of) => {
      const made = cut.forward(at(own, c), taken(now.x, of("x")));
      return {
        y: made.y,
        kept: putAll(state.kept, made.kept, of("kept")),
        late: putAll(state.late, made.late, of("late")),
      };
    });
    return { ...now, ...done };
  }

  /** The loss of a microbatch behind the last stage, and the cotangent that its backward pass begins with, in the place of the result. */
  #end(now: Carry, slot: Slot): Carry {
    const { last, shared, batchAt, own, stages } = this.#parts;
    const isLast = this.#does(slot, "forward", own.length - 1, stages - 1);
    const { y, dy, loss, shared: grads } = now;
    const done = where(isLast, { y, dy, loss, shared: grads }, (state, of) => {
      const lossOf = (leaves: readonly Tensor[], y: Tensor): Tensor =>
        last(unflatten(shared.def, leaves) as Tree, y, batchAt(of("microbatch")));
      const [own, [more, cotangent]] = valueAndGrad(lossOf, { argnums: [0, 1] })(shared.leaves, state.y);
      return {
        y: cotangent,
        dy: put(state.dy, cotangent, of("dy")),
        loss: add(state.loss, own),
        shared: addAll(state.shared, more as Tensors),
      };
    });
    return { ...now, ...done };
  }

  #backward(now: Carry, slot: Slot, c: number): Carry {
    const { cut, own } = this.#parts;
    const { dx, between } = now;
    // a state that is handed through would be copied
    const sums = cut.apart ? [] : at(now.own, c);
    const done = where(this.#does(slot, "backward", c), { dx, between, sums }, (state, of) => {
      const stored = { kept: this.#read(now.kept, of("kept")), late: this.#read(now.late, of("late")) };
      const made = cut.backward(at(own, c), stored, taken(now.dy, of("dy")));
      return {
        dx: made.dx,
        between: putAll(state.between, made.between, of("between")),
        sums: addAll(state.sums, made.grads),
      };
    });
    return { ...now, dx: done.dx, between: done.between, own: cut.apart ? now.own : now.own.with(c, done.sums) };
  }

  #read(stores: Tensors, row: Tensor): Tensors {
    return stores.map((store) => taken(store, row));
  }

  /** The backward pass of what is in front of the first stage; what is sent back from here is not read. */
  #begun(now: Carry, slot: Slot): Carry {
    const { first, shared, batchAt } = this.#parts;
    const begin = { dx: now.dx, shared: now.shared };
    const { shared: sums } = where(this.#does(slot, "backward", 0, 0), begin, (state, of) => {
      const firstOf = (leaves: readonly Tensor[]): Tensor =>
        first(unflatten(shared.def, leaves) as Tree, batchAt(of("microbatch")));
      const [, back] = vjp(firstOf, shared.leaves);
      const [more] = back(state.dx);
      return { dx: now.y, shared: addAll(state.shared, flatten(more as Tree, "gradients").leaves) };
    });
    return { ...now, shared: sums };
  }

  #weights(now: Carry, slot: Slot, c: number): Carry {
    const { cut, own } = this.#parts;
    if (!cut.apart) return now;
    const sums = where(this.#does(slot, "weights", c), at(now.own, c), (state, of) => {
      const stored = { late: this.#read(now.late, of("late")), between: this.#read(now.between, of("between")) };
      return addAll(state, cut.weights(at(own, c), stored));
    });
    return { ...now, own: now.own.with(c, sums) };
  }
}

/** All slots of the schedule, one after the other. */
export function runSlots(parts: PipelineParts, table: Tensor): PipelineSums {
  const slots = new Slots(parts);
  const { period, slots: length } = parts.rows;
  const rows = reshape(table, [length / period, period, parts.stages, COLUMNS.length]);
  const [end] = scan(
    (carry: Carry, row: Tensor) => [slots.period(carry, row), []] as const,
    slots.start() as unknown as Carry & Tree,
    rows,
  );
  return end as unknown as Carry;
}
