/**
 * @file A `while` that keeps some of its states on the way, for a reverse that starts from them (`rewind`, rewind.ts). How
 * many turns there will be shows at the end alone, so which states are kept is decided as they come: a new one may take the
 * place of an older one (loops/lower/keeper.ts).
 *
 *   record_while   carries c…, constants k…
 *                  test(c…, k…) → bool
 *                  body(i, c…, k…) → c…, y…                 → c…, ys…, held…, places, count
 *
 *     rows of held    [ s₀ │ s₉ │ s₄ │ s₁₁ ]                states lie where there was room
 *     places          turns of what is held, in order:  0 4 9, and how many these are
 *                     rows of them:                     0 2 1, and that of the state before the last turn: 3
 *
 * `held` has a row for each of `slots` states and one more for the state before the last turn, which is where the reverse
 * begins. Only carries named in `kept` are held.
 */
import { at } from "../base/invariant.ts";
import type { Node, Value } from "../ir/graph.ts";
import type { OpDef, Reference } from "../ir/op.ts";
import { byteLength } from "../ir/type.ts";
import { graphCost } from "./control.ts";
import { defineOp } from "./define.ts";
import { assumedTurns, MOST_TURNS, type WhileAttrs, type WhileParts, whileLoop, whileParts } from "./loops.ts";
import { emptyStacks, putRows, requireCount, stackType, typesOf } from "./region-checks.ts";
import { placesType } from "./rewind.ts";

/** `slots`: states that are held, beside that of the last turn. */
export type RecordWhileAttrs = WhileAttrs & { readonly kept: readonly number[] };

export interface RecordWhileParts extends WhileParts {
  /** The carries that are held. */
  readonly kept: readonly number[];
  readonly held: readonly Value[];
  readonly places: Value;
}

export function recordWhileParts(node: Node): RecordWhileParts {
  const { kept } = node.attrs as RecordWhileAttrs;
  const parts = whileParts(node);
  const own = parts.ys.length - kept.length - 1;
  const { ys } = parts;
  return { ...parts, ys: ys.slice(0, own), kept, held: ys.slice(own, -1), places: at(ys, ys.length - 1) };
}

/** A while that keeps states for its reverse. */
export const recordWhile: OpDef<RecordWhileAttrs> = defineOp<RecordWhileAttrs>({
  name: "record_while",
  defaults: { carries: 0, length: 0 },
  infer(inputs, attrs, regions) {
    const { kept, carries, slots } = attrs;
    requireCount("record_while", "slots", slots - 1, MOST_TURNS - 2);
    for (const k of kept) requireCount("record_while", "kept", k, carries - 1);
    const plain = whileLoop.infer(inputs, attrs, regions);
    const held = kept.map((k) => stackType(at(inputs, k), slots + 1));
    return [...plain.slice(0, -1), ...held, placesType(slots), at(plain, plain.length - 1)];
  },
  derivative: { kind: "region" },
  cost: (_, __, { length }, regions) => ({
    flops: assumedTurns(length) * regions.reduce((sum, region) => sum + graphCost(region).flops, 0),
  }),
  lower: {
    kind: "control",
    form: "record-while",
    runs: ({ length }) => [assumedTurns(length), assumedTurns(length)],
    // The state before each turn, in case it is to be kept.
    copied: ({ kept, length }, inputs) =>
      assumedTurns(length) * kept.reduce((sum, k) => sum + byteLength(at(inputs, k)), 0),
  },
  evaluate({ inputs, attrs: { carries, length, kept, slots }, regions, run }) {
    const [test, body] = [at(regions, 0), at(regions, 1)];
    const consts = inputs.slice(carries);
    const ys = emptyStacks(typesOf(body.results.slice(carries)), length);
    const held = emptyStacks(typesOf(kept.map((k) => at(body.params, 1 + k))), slots + 1);
    let state: readonly Reference[] = inputs.slice(0, carries);
    const first = kept.map((k) => at(state, k));
    let turn = 0;
    const most = length === 0 ? MOST_TURNS : length;
    for (; turn < most && at(run(test, [...state, ...consts]), 0)[0] !== 0; turn++) {
      const made = run(body, [Float64Array.of(turn), ...state, ...consts]);
      state = made.slice(0, carries);
      putRows(ys, made.slice(carries), turn);
    }
    // The reference of the reverse starts from the first state, whatever else is held.
    putRows(held, first, 0);
    return [...state, ...ys, ...held, new Float64Array(2 * (slots + 1)), Float64Array.of(turn)];
  },
  // Samples have no regions; record-while.test.ts tests it in programs.
  samples: () => [],
});
