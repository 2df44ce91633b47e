/**
 * @file Final copies: donated parameters whose replacement could not be written over them receive it after the last
 * step. They form a parallel move, so they are ordered such that no copy overwrites a value that is still needed:
 *
 *     p ← q, r ← p     r ← p goes first
 *     p ← q, q ← p     a swap: t ← p, p ← q, q ← t, with a temporary t
 *     p ← r, and p itself is also a result: t ← p, and the result is then t
 *
 * Each storage is written by at most one copy, so this is the classic sequencing of a parallel move. Temporaries live
 * for the return step only. Rare in real programs; constant work when there is nothing to copy.
 */
import { at } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import type { BufferId, Copy } from "./problem.ts";
import { type Program, replacementOf } from "./program.ts";

export interface FinalCopies {
  readonly copies: readonly Copy[];
  readonly resultBuffers: readonly BufferId[];
}

interface Move {
  readonly value: Value;
  readonly param: Value;
  readonly from: BufferId;
  readonly to: BufferId;
}

/** `aside` allocates a temporary buffer for a value whose buffer is overwritten. */
export function finalCopies(
  program: Program,
  pending: readonly Value[],
  bufferOf: ReadonlyMap<Value, BufferId>,
  aside: (value: Value, isResult: boolean) => BufferId,
): FinalCopies {
  const home = (value: Value): BufferId => bufferOf.get(value) ?? -1;
  const moves: Move[] = [];
  for (const param of pending) {
    const value = replacementOf(program, param);
    if (value) moves.push({ value, param, from: home(value), to: home(param) });
  }
  const copies: Copy[] = [];
  /** Overwritten buffer → the temporary with its content. */
  const moved = new Map<BufferId, BufferId>();
  const putAside = (value: Value, isResult: boolean): void => {
    const from = home(value);
    if (moved.has(from)) return;
    const to = aside(value, isResult);
    moved.set(from, to);
    copies.push({ value, from, to, param: null });
  };
  // A result whose storage is overwritten is read from another copy of it if there is one, otherwise from a temporary.
  const overwritten = new Set(moves.map((move) => move.to));
  for (const result of program.results) {
    const copied = moves.some((move) => move.from === home(result));
    if (overwritten.has(home(result)) && !copied) putAside(result, true);
  }

  let waiting = moves;
  while (waiting.length > 0) {
    const needed = new Set(waiting.map((move) => move.from).filter((from) => !moved.has(from)));
    const ready = waiting.filter((move) => !needed.has(move.to));
    for (const { value, param, from, to } of ready) copies.push({ value, from: moved.get(from) ?? from, to, param });
    waiting = waiting.filter((move) => needed.has(move.to));
    // Only cycles are left: break one with a temporary.
    if (ready.length === 0) {
      const blocked = at(waiting, 0);
      const reader = waiting.find((move) => move.from === blocked.to) ?? blocked;
      putAside(reader.value, false);
    }
  }
  const resultBuffers = program.results.map((result) => {
    if (!overwritten.has(home(result))) return home(result);
    const move = moves.find(({ from }) => from === home(result));
    return move?.to ?? moved.get(home(result)) ?? home(result);
  });
  return { copies, resultBuffers };
}
