/**
 * @file A loop that keeps some of its states on the way, and its reverse, which starts from them: what a `scan` and the
 * reversed `scan` over its stacks become when there is no room for the stacks (plan/budget/rewind.ts).
 *
 *   record   [count,] carries c…, stacks xs…, constants k…
 *            body(i, c…, x…, k…) → c…, y…                   → c…, ys…, held…, turns
 *   rewind   count, turns, held…, adjoints a…, stacks xs…, constants k…
 *            step(i, s…, x…, k…)       → s…                 one turn forward, of the carries that are held
 *            back(i, s…, a…, x…, k…)   → a…, w…             one turn backward, at the state s before that turn
 *                                                           → a…, ws…, held…, turns
 *
 *     record    s₀ ▪─ body ─ body ─ s₂ ▪─ body ─ s₃ ▫─ body ─ s₄           ▪ held in slots, ▫ held in the last row
 *     rewind    a₀ ──────────────────────── back(1) ─ back(2) ─ back(3) ── a
 *                    └ s₁ is computed again, from s₀
 *
 * `held` has a row for each of `slots` states and one more for the state that turns work on; row 0 is the first state.
 * `turns` says which turn each row's state is before, and in its last place how many are held. Which states these are is
 * the schedule's business (runtime/splits.ts) and changes no result: a state computed again is the same state. A rewind
 * writes over what is held; its last results are the storage for that and are not to be read.
 *
 * Only carries named in `kept` are held: those that the reverse depends on. Constants and rows are read where they are.
 */
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import type { OpDef, Reference } from "../ir/op.ts";
import { byteLength, type TensorType, tensorType } from "../ir/type.ts";
import { graphCost } from "./control.ts";
import { defineOp } from "./define.ts";
import { type LoopParts, MOST_TURNS, type ScanAttrs, scan, scanParts } from "./loops.ts";
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

/** How far to go from a held state to the next one that is held. */
export const SPLITS = ["binomial", "binary", "periodic"] as const;
export type SplitName = (typeof SPLITS)[number];

/** Which states are held. `every`: turns between two of them, for `periodic`. */
export type SplitAttrs = { readonly slots: number; readonly split: string; readonly every: number };

export type RecordAttrs = Omit<ScanAttrs, "reversal" | "snapshots"> & SplitAttrs & { readonly kept: readonly number[] };

/** `advances`: how many turns forward its schedule makes, for what it costs. */
export type RewindAttrs = SplitAttrs & {
  readonly states: number;
  readonly adjoints: number;
  readonly xs: number;
  readonly length: number;
  readonly reverse: boolean;
  readonly advances: number;
};

export interface RecordParts extends LoopParts {
  /** The carries that are held. */
  readonly kept: readonly number[];
  readonly held: readonly Value[];
  readonly turns: Value;
}

export function recordParts(node: Node): RecordParts {
  const { kept } = node.attrs as RecordAttrs;
  const parts = scanParts(node);
  const own = parts.ys.length - kept.length - 1;
  const { ys } = parts;
  return { ...parts, ys: ys.slice(0, own), kept, held: ys.slice(own, -1), turns: at(ys, ys.length - 1) };
}

export interface RewindParts {
  readonly count: Value;
  readonly turns: Value;
  readonly held: readonly Value[];
  readonly adjoints: readonly Value[];
  readonly xs: readonly Value[];
  readonly consts: readonly Value[];
  readonly step: Graph;
  readonly back: Graph;
  readonly last: readonly Value[];
  readonly ws: readonly Value[];
  /** The storage of `held` and `turns`. */
  readonly heldAfter: readonly Value[];
  readonly turnsAfter: Value;
}

export function rewindParts({ inputs, outputs, attrs, regions }: Node): RewindParts {
  const { states, adjoints, xs } = attrs as RewindAttrs;
  const [a, x, k] = [2 + states, 2 + states + adjoints, 2 + states + adjoints + xs];
  const rows = outputs.length - states - 1;
  return {
    count: at(inputs, 0),
    turns: at(inputs, 1),
    held: inputs.slice(2, a),
    adjoints: inputs.slice(a, x),
    xs: inputs.slice(x, k),
    consts: inputs.slice(k),
    step: at(regions, 0),
    back: at(regions, 1),
    last: outputs.slice(0, adjoints),
    ws: outputs.slice(adjoints, rows),
    heldAfter: outputs.slice(rows, -1),
    turnsAfter: at(outputs, outputs.length - 1),
  };
}

function requireSplit(name: string, { slots, split, every }: SplitAttrs): void {
  requireCount(name, "slots", slots - 1, MOST_TURNS - 2);
  requireCount(name, "every", every, MOST_TURNS);
  if ((SPLITS as readonly string[]).includes(split) && !(split === "periodic" && every === 0)) return;
  throw new TidemarkError("InvalidGraph", `${name}: there is no split ${split} every ${every}`);
}

const turnsType = (slots: number): TensorType => tensorType("i32", [slots + 1]);

/** A scan that keeps states for its reverse. */
export const record: OpDef<RecordAttrs> = defineOp<RecordAttrs>({
  name: "record",
  defaults: { carries: 0, xs: 0, reverse: false, counted: false, every: 0 },
  infer(inputs, attrs, regions) {
    requireSplit("record", attrs);
    const { kept, carries, slots } = attrs;
    const states = inputs.slice(attrs.counted ? 1 : 0);
    for (const k of kept) requireCount("record", "kept", k, carries - 1);
    const plain = scan.infer(inputs, { ...attrs, reversal: "auto", snapshots: 0 }, regions);
    return [...plain, ...kept.map((k) => stackType(at(states, k), slots + 1)), turnsType(slots)];
  },
  derivative: { kind: "region" },
  cost: (_, __, { length }, regions) => ({ flops: length * graphCost(at(regions, 0)).flops }),
  lower: { kind: "control", form: "record", runs: ({ length }) => [length] },
  evaluate({ inputs, attrs: { carries, xs, length, reverse, counted, kept, slots }, regions, run }) {
    const body = at(regions, 0);
    const turns = counted ? Math.min(Math.max(at(at(inputs, 0), 0), 0), length) : length;
    const given = counted ? inputs.slice(1) : inputs;
    const [stacks, consts] = [given.slice(carries, carries + xs), given.slice(carries + xs)];
    const ys = emptyStacks(typesOf(body.results.slice(carries)), length);
    const rows = kept.map((k) => at(body.params, 1 + k).type);
    const held = emptyStacks(rows, slots + 1);
    let state: readonly Reference[] = given.slice(0, carries);
    const hold = (row: number): void =>
      putRows(
        held,
        kept.map((k) => at(state, k)),
        row,
      );
    hold(0);
    for (let turn = 0; turn < turns; turn++) {
      const i = reverse ? turns - 1 - turn : turn;
      if (turn === turns - 1) hold(slots);
      const made = run(body, [
        Float64Array.of(i),
        ...state,
        ...stacks.map((stack) => rowOf(stack, i, length)),
        ...consts,
      ]);
      state = made.slice(0, carries);
      putRows(ys, made.slice(carries), i);
    }
    return [...state, ...ys, ...held, new Float64Array(slots + 1)];
  },
  // Samples have no regions; rewind.test.ts tests both in programs.
  samples: [],
});

/** The reverse of a recorded loop. */
export const rewind: OpDef<RewindAttrs> = defineOp<RewindAttrs>({
  name: "rewind",
  defaults: { adjoints: 0, xs: 0, reverse: false, every: 0 },
  infer([count, turns, ...given], attrs, regions) {
    const { states, adjoints, xs, length, slots } = attrs;
    requireRegions("rewind", regions, 2);
    requireSplit("rewind", attrs);
    requireTypes("rewind: the count and turns are", count && turns ? [count, turns] : [], [INDEX, turnsType(slots)]);
    requireCount("rewind", "length", length, MOST_TURNS);
    requireCount("rewind", "states", states, given.length);
    requireCount("rewind", "adjoints", adjoints, given.length - states);
    requireCount("rewind", "xs", xs, given.length - states - adjoints);
    const held = given.slice(0, states);
    const state = held.map((stack) => rowType("rewind", stack, slots + 1));
    const cts = given.slice(states, states + adjoints);
    const rows = given.slice(states + adjoints, states + adjoints + xs).map((s) => rowType("rewind", s, length));
    const rest = [...rows, ...given.slice(states + adjoints + xs)];
    const [step, back] = [at(regions, 0), at(regions, 1)];
    requireTypes(`rewind: region ${step.name} takes`, typesOf(step.params), [INDEX, ...state, ...rest]);
    requireTypes(`rewind: region ${step.name} returns`, typesOf(step.results), state);
    requireTypes(`rewind: region ${back.name} takes`, typesOf(back.params), [INDEX, ...state, ...cts, ...rest]);
    const results = typesOf(back.results);
    requireTypes(`rewind: region ${back.name} returns`, results.slice(0, adjoints), cts);
    const ws = results.slice(adjoints).map((row) => stackType(row, length));
    return [...cts, ...ws, ...held, turnsType(slots)];
  },
  derivative: { kind: "region" },
  cost: (_, __, { length, advances }, regions) => ({
    flops: advances * graphCost(at(regions, 0)).flops + length * graphCost(at(regions, 1)).flops,
  }),
  lower: {
    kind: "control",
    form: "rewind",
    runs: ({ length, advances }) => [advances, length],
    // Each turn starts from a held state, and a state is held for about every turn that is not the last of its sweep.
    copied: ({ states, slots, length, advances }, inputs) => {
      const bytes = inputs.slice(2, 2 + states).reduce((sum, held) => sum + byteLength(held) / (slots + 1), 0);
      return bytes * (length + Math.min(length, advances));
    },
  },
  evaluate({ inputs, attrs: { states, adjoints, xs, length, reverse, slots }, regions, run }) {
    const [step, back] = [at(regions, 0), at(regions, 1)];
    const count = Math.min(Math.max(0, at(at(inputs, 0), 0)), length);
    const given = inputs.slice(2);
    const stacks = given.slice(states + adjoints, states + adjoints + xs);
    const consts = given.slice(states + adjoints + xs);
    const row = (turn: number): number => (reverse ? count - 1 - turn : turn);
    const rest = (i: number): readonly Reference[] => [...stacks.map((s) => rowOf(s, i, length)), ...consts];
    const held = given.slice(0, states);
    const all: (readonly Reference[])[] = [held.map((stack) => rowOf(stack, 0, slots + 1))];
    for (let turn = 0; turn + 1 < count; turn++) {
      all.push(run(step, [Float64Array.of(row(turn)), ...at(all, turn), ...rest(row(turn))]));
    }
    const ws = emptyStacks(typesOf(back.results.slice(adjoints)), length);
    let a: readonly Reference[] = given.slice(states, states + adjoints);
    for (let turn = count - 1; turn >= 0; turn--) {
      const i = row(turn);
      const made = run(back, [Float64Array.of(i), ...at(all, turn), ...a, ...rest(i)]);
      a = made.slice(0, adjoints);
      putRows(ws, made.slice(adjoints), i);
    }
    return [...a, ...ws, ...held, at(inputs, 1)];
  },
  samples: [],
});
