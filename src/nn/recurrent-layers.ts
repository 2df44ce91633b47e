/** @file Cells on top of each other, and cells that read a sequence from both ends. */
import { concat } from "../api/join.ts";
import { flip } from "../api/shape.ts";
import { at } from "../base/invariant.ts";
import { fail } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import { type Key, partKey } from "./key.ts";
import { type Cell, scanCell } from "./recurrent.ts";

/** A cell whose parameters and state only it knows. */
interface AnyCell {
  init(key: Key): Tree;
  initState(batch: number): Tree;
  step(params: never, x: Tensor, state: never): Tree;
  output(state: never): Tensor;
}

type CellParams<C> = { readonly [K in keyof C]: C[K] extends { init(key: Key): infer P } ? P : never };
type CellStates<C> = { readonly [K in keyof C]: C[K] extends { initState(batch: number): infer S } ? S : never };

/**
 * Cells as one: each gets the output of the one before it. Parameters and states are tuples, one entry for each cell.
 *
 * @memory As part of `scanCell`, with the states of all cells.
 *
 * @example
 * import { ones } from "tidemark";
 * import { gruCell, lstmCell, scanCell, stackedCell } from "tidemark/nn";
 *
 * const cell = stackedCell(lstmCell(3, 5), gruCell(5, 4));
 * const { outputs, state } = scanCell(cell, cell.init(0), ones([2, 7, 3]));
 * console.log(outputs.shape, state[0].c.shape); // [2, 7, 4] [2, 5]
 */
export function stackedCell<const C extends readonly AnyCell[]>(
  ...cells: C
): Cell<CellParams<C> & Tree, CellStates<C> & Tree> {
  if (cells.length === 0)
    fail("InvalidArgument", "stackedCell: no cells", "give at least one: stackedCell(lstmCell(3, 4))");
  const stacked = {
    init: (key: Key) => cells.map((cell, i) => cell.init(partKey(key, i))),
    initState: (batch: number) => cells.map((cell) => cell.initState(batch)),
    step: (params: readonly never[], x: Tensor, states: readonly never[]) => {
      let y = x;
      return cells.map((cell, i) => {
        const state = cell.step(at(params, i), y, at(states, i));
        y = cell.output(state as never);
        return state;
      });
    },
    output: (states: readonly never[]) => at(cells, cells.length - 1).output(at(states, states.length - 1)),
  };
  return stacked as unknown as Cell<CellParams<C> & Tree, CellStates<C> & Tree>;
}

/** Something of each direction. */
export interface BothWays<T> {
  readonly forward: T;
  readonly backward: T;
}

/** What {@link bidirectional} returns. */
export interface Bidirectional<P extends Tree, S extends Tree> {
  init(key: Key): BothWays<P>;
  /** [batch, time, features] → [batch, time, 2 · hidden]: outputs from the start, then those from the end. */
  apply(
    params: BothWays<P>,
    inputs: Tensor,
    initial?: BothWays<S>,
  ): { readonly outputs: Tensor; readonly state: BothWays<S> };
}

/**
 * A cell that reads a sequence from its start and, with other weights, from its end.
 *
 * @example
 * import { ones } from "tidemark";
 * import { bidirectional, lstmCell } from "tidemark/nn";
 *
 * const layer = bidirectional(lstmCell(3, 5));
 * console.log(layer.apply(layer.init(0), ones([2, 7, 3])).outputs.shape); // [2, 7, 10]
 */
export function bidirectional<P extends Tree, S extends Tree>(cell: Cell<P, S>): Bidirectional<P, S> {
  return {
    init: (key) => ({ forward: cell.init(partKey(key, 0)), backward: cell.init(partKey(key, 1)) }),
    apply: (params, inputs, initial) => {
      const forward = scanCell(cell, params.forward, inputs, initial?.forward);
      const backward = scanCell(cell, params.backward, flip(inputs, 1), initial?.backward);
      const outputs = concat([forward.outputs, flip(backward.outputs, 1)], -1);
      return { outputs, state: { forward: forward.state, backward: backward.state } };
    },
  };
}
