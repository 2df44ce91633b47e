/**
 * @file The reverse of a loop whose states were not kept: they are computed again, from the first one.
 *
 *   unwind   count, carries c…, adjoints a…, stacks xs…, constants k…
 *            step(i, c…, x…, k…)       → c…           one turn forward
 *            back(i, c…, a…, x…, k…)   → a…, w…       one turn backward, at the state c before that turn
 *            → a…, ws…
 *
 *     c₀ ─ step ─ c₁ ─ step ─ c₂            count = 3
 *                             │
 *     a₀ ─ back ── back ── back ── a        back runs at c₂, c₁, c₀ in this order
 *
 * `slots` states can be held at once: with count ≤ slots every state is kept, beyond that some are computed several times.
 * Which ones are held when is decided at run time from the count (loops/lower/unwind.ts), because a `while` does not say
 * beforehand how many turns it takes. The schedule changes no result: a state computed again is the same state.
 * Rows beyond the count are unspecified. Without stacks `length` is 0.
 */
import { at } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import type { OpDef, Reference } from "../ir/op.ts";
import { graphCost } from "./control.ts";
import { defineOp } from "./define.ts";
import { assumedTurns, MOST_TURNS } from "./loops.ts";
import {
  emptyStacks,
  INDEX,
  putRows,
  requireCount,
  requireRegions,
  requireTypes,
  rowOf,
  rowType,
  stackType,
  typesOf,
} from "./region-checks.ts";

/**
 * `slots`: 0 leaves their number to the planner. `advances`: how many turns forward it makes, for what it costs. `wrt`: where
 * back is known to be the transposed derivative of step, the number of the carry or, after these, of the constant that each
 * adjoint is the cotangent of; else empty.
 */
export type UnwindAttrs = {
  readonly carries: number;
  readonly adjoints: number;
  readonly xs: number;
  readonly length: number;
  readonly slots: number;
  readonly advances: number;
  readonly wrt: readonly number[];
};

export interface UnwindParts {
  readonly count: Value;
  readonly carries: readonly Value[];
  readonly adjoints: readonly Value[];
  readonly xs: readonly Value[];
  readonly consts: readonly Value[];
  readonly step: Graph;
  readonly back: Graph;
  readonly last: readonly Value[];
  readonly ws: readonly Value[];
}

export function unwindParts({ inputs, outputs, attrs, regions }: Node): UnwindParts {
  const { carries, adjoints, xs } = attrs as UnwindAttrs;
  const [a, x, k] = [1 + carries, 1 + carries + adjoints, 1 + carries + adjoints + xs];
  return {
    count: at(inputs, 0),
    carries: inputs.slice(1, a),
    adjoints: inputs.slice(a, x),
    xs: inputs.slice(x, k),
    consts: inputs.slice(k),
    step: at(regions, 0),
    back: at(regions, 1),
    last: outputs.slice(0, adjoints),
    ws: outputs.slice(adjoints),
  };
}

/** A loop run backwards over states that are computed again. */
export const unwind: OpDef<UnwindAttrs> = defineOp<UnwindAttrs>({
  name: "unwind",
  defaults: { carries: 0, adjoints: 0, xs: 0, length: 0, slots: 0, advances: 0, wrt: [] },
  infer([count, ...given], { carries, adjoints, xs, length, slots, wrt }, regions) {
    requireRegions("unwind", regions, 2);
    requireTypes("unwind: the count is", count ? [count] : [], [INDEX]);
    requireCount("unwind", "length", length, MOST_TURNS);
    requireCount("unwind", "slots", slots, MOST_TURNS - 1);
    requireCount("unwind", "carries", carries, given.length);
    requireCount("unwind", "adjoints", adjoints, given.length - carries);
    requireCount("unwind", "xs", xs, given.length - carries - adjoints);
    for (const input of wrt) requireCount("unwind", "wrt", input, given.length - adjoints - 1);
    const state = given.slice(0, carries);
    const cts = given.slice(carries, carries + adjoints);
    const rows = given.slice(carries + adjoints, carries + adjoints + xs).map((s) => rowType("unwind", s, length));
    const rest = [...rows, ...given.slice(carries + adjoints + xs)];
    const [step, back] = [at(regions, 0), at(regions, 1)];
    requireTypes(`unwind: region ${step.name} takes`, typesOf(step.params), [INDEX, ...state, ...rest]);
    requireTypes(`unwind: region ${step.name} returns`, typesOf(step.results), state);
    requireTypes(`unwind: region ${back.name} takes`, typesOf(back.params), [INDEX, ...state, ...cts, ...rest]);
    const results = typesOf(back.results);
    requireTypes(`unwind: region ${back.name} returns`, results.slice(0, adjoints), cts);
    return [...cts, ...results.slice(adjoints).map((row) => stackType(row, length))];
  },
  derivative: { kind: "region" },
  cost: (_, __, { length, advances }, regions) => ({
    flops:
      Math.max(assumedTurns(length), advances) * graphCost(at(regions, 0)).flops +
      assumedTurns(length) * graphCost(at(regions, 1)).flops,
  }),
  lower: {
    kind: "control",
    form: "unwind",
    runs: ({ length, advances }) => [Math.max(assumedTurns(length), advances), assumedTurns(length)],
  },
  evaluate({ inputs, attrs: { carries, adjoints, xs, length }, regions, run }) {
    const [step, back] = [at(regions, 0), at(regions, 1)];
    const turns = Math.max(0, at(at(inputs, 0), 0));
    const given = inputs.slice(1);
    const stacks = given.slice(carries + adjoints, carries + adjoints + xs);
    const consts = given.slice(carries + adjoints + xs);
    const rest = (i: number): readonly Reference[] => [...stacks.map((s) => rowOf(s, i, length)), ...consts];
    const states: (readonly Reference[])[] = [given.slice(0, carries)];
    for (let i = 0; i + 1 < turns; i++) states.push(run(step, [Float64Array.of(i), ...at(states, i), ...rest(i)]));
    const ws = emptyStacks(typesOf(back.results.slice(adjoints)), length);
    let a: readonly Reference[] = given.slice(carries, carries + adjoints);
    for (let i = turns - 1; i >= 0; i--) {
      const made = run(back, [Float64Array.of(i), ...at(states, i), ...a, ...rest(i)]);
      a = made.slice(0, adjoints);
      putRows(ws, made.slice(adjoints), i);
    }
    return [...a, ...ws];
  },
  // Samples have no regions; unwind.test.ts tests it in programs.
  samples: () => [],
});
