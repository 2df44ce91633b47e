/**
 * @file The reverse of a loop that starts from states. It replaces the reversed `scan` over the stacks of a loop if these are
 * not kept (loops/rewrite.ts), and is the reverse of a `while` without a bound, which has no stacks.
 *
 *   rewind   count, first states s…, adjoints a…, stacks xs…, constants k…
 *            step(i, s…, x…, k…)       → s…                 one iteration forward
 *            back(i, s…, a…, x…, k…)   → a…, w…             one iteration backward, at the state s before it
 *                                                           → a…, ws…
 *
 *     s₀ ─ step ─ s₁ ─ step ─ s₂                            count = 3
 *                             │
 *     a₀ ─ back ── back ── back ── a                        back runs at s₂, s₁, s₀ in this order
 *
 * `checkpoints` states are stored at once: with as many as iterations every state is computed once, beyond that some are
 * computed several times. Which ones is decided at run time from the count (loops/lower/checkpoints.ts) and changes no
 * result: a recomputed state is the same state. Rows beyond the count are unspecified. Without rows `length` may be 0: the
 * number of iterations has no bound.
 *
 * With `recorded` the loop was a `record` (record.ts), whose checkpoints are where the reverse starts. The store is written
 * over; the last results are the storage for that and are not to be read. Rows of the last `taped` iterations are read
 * where they were stacked, by `tail` in the place of back.
 *
 *   rewind   count, positions, store…, a…, xs…, k…, tapes…
 *            tail(i, a…, x…, k…, r…) → a…, w…               → a…, ws…, store…, positions
 *
 *     record    s₀ ▪─ body ─ body ─ s₂ ▪─ body ─ s₃ ▫─ body ─ s₄           ▪ a checkpoint, ▫ the last row of the store
 *     rewind    a₀ ──────────────────────── back(1) ─ back(2) ─ back(3) ── a
 *                    └ s₁ is recomputed, from s₀
 */
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { type Group, ONE, type Reversal, type Wiring } from "../ir/control.ts";
import type { Node } from "../ir/graph.ts";
import type { OpDef, Reference } from "../ir/op.ts";
import { byteLength, type TensorType } from "../ir/type.ts";
import { graphCost } from "./control.ts";
import { defineOp } from "./define.ts";
import { assumedIterations, MOST_ITERATIONS } from "./loops.ts";
import { positionsType, requireSplit, requireTaped, type SplitAttrs } from "./record.ts";
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
 * `checkpoints`: 0 leaves their number to the planner, of a reverse that is not recorded. `advances`: how many iterations
 * forward its schedule makes, for what it costs. `wrt`: where back is known to be the transposed derivative of step, the
 * number of the state or, after these, of the constant that each adjoint is the cotangent of; else empty.
 */
export type RewindAttrs = SplitAttrs & {
  readonly recorded: boolean;
  readonly states: number;
  readonly adjoints: number;
  readonly xs: number;
  readonly length: number;
  readonly reverse: boolean;
  readonly advances: number;
  readonly taped: number;
  /** How many stacks of rows there are. */
  readonly tapes: number;
  readonly wrt: readonly number[];
};

/** The attributes of a reverse that starts from the first state alone. */
export const NOT_RECORDED = {
  ...{ recorded: false, reverse: false, split: "binomial", every: 0, advances: 0, taped: 0, tapes: 0 },
} as const;

/** The groups of inputs and results of a reverse. */
export function rewindReversal({ inputs, outputs, attrs, regions }: Node): Reversal {
  const { recorded, states, adjoints, xs, tapes, length, checkpoints } = attrs as RewindAttrs;
  const s = recorded ? 2 : 1;
  const [a, x, k] = [s + states, s + states + adjoints, s + states + adjoints + xs];
  const [end, t] = [outputs.length - (recorded ? states + 1 : 0), inputs.length - tapes];
  return {
    count: at(inputs, 0),
    isRecorded: recorded,
    states: inputs.slice(s, a),
    positions: recorded ? at(inputs, 1) : null,
    adjoints: inputs.slice(a, x),
    xs: inputs.slice(x, k),
    consts: inputs.slice(k, t),
    tapes: inputs.slice(t),
    step: at(regions, 0),
    back: at(regions, 1),
    tail: regions[2] ?? null,
    last: outputs.slice(0, adjoints),
    ws: outputs.slice(adjoints, end),
    storeAfter: outputs.slice(end, end + states),
    positionsAfter: recorded ? at(outputs, outputs.length - 1) : null,
    length,
    checkpoints,
  };
}

/** Null for the reverse of a recorded loop: the planner creates both with only the members that are needed. */
function rewindWiring({ inputs, outputs, attrs }: Node): Wiring | null {
  const { recorded, states: ns, adjoints: na, xs: nx } = attrs as RewindAttrs;
  if (recorded) return null;
  const states: Group = { kind: "carry", size: ns, attr: "states" };
  const adjoints: Group = { kind: "carry", size: na, attr: "adjoints" };
  const xs: Group = { kind: "row", size: nx, attr: "xs" };
  const consts: Group = { kind: "const", size: inputs.length - 1 - ns - na - nx };
  const ws: Group = { kind: "result", size: outputs.length - na };
  return {
    inputs: [ONE, states, adjoints, xs, consts],
    outputs: [adjoints, ws],
    regions: [
      { params: [ONE, states, xs, consts], results: [states] },
      { params: [ONE, states, adjoints, xs, consts], results: [adjoints, ws] },
    ],
    repeats: true,
    forgets: { wrt: [] },
  };
}

/** Checks attributes that differ with and without a recorded loop. */
function requireStart(attrs: RewindAttrs, count: TensorType | undefined, positions: TensorType | undefined): void {
  const { recorded, checkpoints, taped } = attrs;
  if (recorded) {
    requireSplit("rewind", attrs);
    const got = count && positions ? [count, positions] : [];
    requireTypes("rewind: the count and positions are", got, [INDEX, positionsType(attrs)]);
    return;
  }
  requireTypes("rewind: the count is", count ? [count] : [], [INDEX]);
  requireCount("rewind", "checkpoints", checkpoints, MOST_ITERATIONS - 1);
  if (taped === 0 && attrs.split === "binomial") return;
  throw new TidemarkError(
    "InvalidGraph",
    `rewind: taped=${taped}, split=${attrs.split} of a loop that is not recorded`,
  );
}

/** Iterations forward and backward; the former are unbounded for a reverse that starts from only the first state. */
function iterations({ recorded, length, advances }: RewindAttrs): readonly [number, number] {
  const backward = assumedIterations(length);
  return [recorded ? advances : Math.max(backward, advances), backward];
}

/** A loop run backwards from some of its states. */
export const rewind: OpDef<RewindAttrs> = defineOp<RewindAttrs>({
  name: "rewind",
  defaults: { ...NOT_RECORDED, states: 0, adjoints: 0, xs: 0, length: 0, checkpoints: 0, wrt: [] },
  infer(inputs, attrs, regions) {
    const { recorded, states, adjoints, xs, length, checkpoints, taped, tapes, wrt } = attrs;
    const tail = regions[2];
    requireRegions("rewind", regions, tail ? 3 : 2);
    requireStart(attrs, inputs[0], inputs[1]);
    requireTaped("rewind", taped, tail, length - 1);
    const all = inputs.slice(recorded ? 2 : 1);
    requireCount("rewind", "tapes", tapes, all.length);
    const given = all.slice(0, all.length - tapes);
    requireCount("rewind", "length", length, MOST_ITERATIONS);
    requireCount("rewind", "states", states, given.length);
    requireCount("rewind", "adjoints", adjoints, given.length - states);
    requireCount("rewind", "xs", xs, given.length - states - adjoints);
    for (const input of wrt) requireCount("rewind", "wrt", input, given.length - adjoints - 1);
    const stored = given.slice(0, states);
    const state = recorded ? stored.map((stack) => rowType("rewind", stack, checkpoints + 1)) : stored;
    const cts = given.slice(states, states + adjoints);
    const rows = given.slice(states + adjoints, states + adjoints + xs).map((s) => rowType("rewind", s, length));
    const rest = [...rows, ...given.slice(states + adjoints + xs)];
    const [step, back] = [at(regions, 0), at(regions, 1)];
    requireTypes(`rewind: region ${step.name} takes`, typesOf(step.params), [INDEX, ...state, ...rest]);
    requireTypes(`rewind: region ${step.name} returns`, typesOf(step.results), state);
    requireTypes(`rewind: region ${back.name} takes`, typesOf(back.params), [INDEX, ...state, ...cts, ...rest]);
    const results = typesOf(back.results);
    requireTypes(`rewind: region ${back.name} returns`, results.slice(0, adjoints), cts);
    if (tail) {
      const taken = all.slice(all.length - tapes).map((stack) => rowType("rewind", stack, taped));
      requireTypes(`rewind: region ${tail.name} takes`, typesOf(tail.params), [INDEX, ...cts, ...rest, ...taken]);
      requireTypes(`rewind: region ${tail.name} returns`, typesOf(tail.results), results);
    }
    const ws = results.slice(adjoints).map((row) => stackType(row, length));
    return [...cts, ...ws, ...(recorded ? [...stored, positionsType(attrs)] : [])];
  },
  derivative: {
    kind: "region",
    rule: (node) => ({ kind: "control", control: { kind: "reversal", reversal: rewindReversal(node) } }),
  },
  cost(_, __, attrs, regions) {
    const [forward, backward] = iterations(attrs);
    return { flops: forward * graphCost(at(regions, 0)).flops + backward * graphCost(at(regions, 1)).flops };
  },
  lower: {
    kind: "control",
    control: (node) => ({ kind: "reversal", reversal: rewindReversal(node) }),
    wiring: rewindWiring,
    runs(attrs) {
      const [forward, backward] = iterations(attrs);
      return [forward, backward - attrs.taped, attrs.taped];
    },
    // Each iteration starts from a checkpoint, and one is stored for about every iteration but the last of its sweep.
    copied({ recorded, states, checkpoints, length, advances, taped }, inputs) {
      if (!recorded) return 0;
      const bytes = inputs.slice(2, 2 + states).reduce((sum, stack) => sum + byteLength(stack) / (checkpoints + 1), 0);
      const early = assumedIterations(length) - taped;
      return bytes * (early + Math.min(early, advances));
    },
  },
  evaluate({ inputs, attrs: { recorded, states, adjoints, xs, length, reverse, checkpoints, tapes }, regions, run }) {
    const [step, back] = [at(regions, 0), at(regions, 1)];
    const count = Math.min(Math.max(0, at(at(inputs, 0), 0)), length || MOST_ITERATIONS);
    const given = inputs.slice(recorded ? 2 : 1, inputs.length - tapes);
    const stacks = given.slice(states + adjoints, states + adjoints + xs);
    const consts = given.slice(states + adjoints + xs);
    const row = (t: number): number => (reverse ? count - 1 - t : t);
    const rest = (i: number): readonly Reference[] => [...stacks.map((s) => rowOf(s, i, length)), ...consts];
    const stored = given.slice(0, states);
    const all: (readonly Reference[])[] = [recorded ? stored.map((stack) => rowOf(stack, 0, checkpoints + 1)) : stored];
    for (let t = 0; t + 1 < count; t++) all.push(run(step, [Float64Array.of(row(t)), ...at(all, t), ...rest(row(t))]));
    const ws = emptyStacks(typesOf(back.results.slice(adjoints)), length);
    let a: readonly Reference[] = given.slice(states, states + adjoints);
    for (let t = count - 1; t >= 0; t--) {
      const i = row(t);
      const results = run(back, [Float64Array.of(i), ...at(all, t), ...a, ...rest(i)]);
      a = results.slice(0, adjoints);
      putRows(ws, results.slice(adjoints), i);
    }
    return [...a, ...ws, ...(recorded ? [...stored, at(inputs, 1)] : [])];
  },
  // Samples have no regions; rewind.test.ts tests it in programs.
  samples: () => [],
});
