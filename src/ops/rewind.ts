/**
 * @file A loop that keeps some of its states on the way, and its reverse, which starts from them: what a `scan` and the
 * reversed `scan` over its stacks become when there is no room for the stacks (loops/rewrite.ts).
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
 * What the last `taped` turns leave for their reverse may be kept as it is, in stacks of as many rows: then `full` runs in
 * these turns in the place of body, and `tail` in the place of back.
 *
 *   record   full(i, c…, x…, k…) → c…, y…, r…               → …, tapes…, held…, turns
 *   rewind   …, tapes…                                      tail(i, a…, x…, k…, r…) → a…, w…
 *
 * `held` has a row for each of `slots` states and one more for the state that turns work on; row 0 is the first state.
 * `turns` says which turn each row's state is before, and in its last place how many are held. Which states these are is
 * the schedule's business (loops/lower/checkpoints.ts) and changes no result: a state computed again is the same state. A rewind
 * writes over what is held; its last results are the storage for that and are not to be read.
 *
 * Only carries named in `kept` are held: those that the reverse depends on. Constants and rows are read where they are.
 * A rewind of a `while` (record-while.ts) has the split `online`, and length 0 where the `while` has no bound.
 */
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import type { OpDef, Reference } from "../ir/op.ts";
import { byteLength, type TensorType, tensorType } from "../ir/type.ts";
import { graphCost } from "./control.ts";
import { defineOp } from "./define.ts";
import { assumedTurns, type LoopParts, MOST_TURNS, type ScanAttrs, scan, scanParts } from "./loops.ts";
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

/** How far to go from a held state to the next one that is held; `online` is for a `while` (record-while.ts). */
export const SPLITS = ["binomial", "binary", "periodic", "online"] as const;
export type SplitName = (typeof SPLITS)[number];

/** Which states are held. `every`: turns between two of them, for `periodic`. */
export type SplitAttrs = { readonly slots: number; readonly split: string; readonly every: number };

/** `taped`: turns at the end whose rows are kept; only of a loop that is not counted. */
export type RecordAttrs = Omit<ScanAttrs, "reversal" | "snapshots"> &
  SplitAttrs & { readonly kept: readonly number[]; readonly taped: number };

/** `advances`: how many turns forward its schedule makes, for what it costs. */
export type RewindAttrs = SplitAttrs & {
  readonly states: number;
  readonly adjoints: number;
  readonly xs: number;
  readonly length: number;
  readonly reverse: boolean;
  readonly advances: number;
  readonly taped: number;
  /** How many stacks of rows there are. */
  readonly tapes: number;
};

/** The attributes of a reverse without stacks. */
export const NOT_TAPED = { taped: 0, tapes: 0 } as const;

export interface RecordParts extends LoopParts {
  /** The body of turns that are taped; null where none is. */
  readonly full: Graph | null;
  readonly tapes: readonly Value[];
  /** The carries that are held. */
  readonly kept: readonly number[];
  readonly held: readonly Value[];
  readonly turns: Value;
}

export function recordParts(node: Node): RecordParts {
  const { kept } = node.attrs as RecordAttrs;
  const parts = scanParts(node);
  const { ys, carries, body } = parts;
  const own = body.results.length - carries.length;
  const first = ys.length - kept.length - 1;
  return {
    ...parts,
    full: node.regions[1] ?? null,
    ys: ys.slice(0, own),
    tapes: ys.slice(own, first),
    kept,
    held: ys.slice(first, -1),
    turns: at(ys, ys.length - 1),
  };
}

export interface RewindParts {
  readonly count: Value;
  readonly turns: Value;
  readonly held: readonly Value[];
  readonly adjoints: readonly Value[];
  readonly xs: readonly Value[];
  readonly consts: readonly Value[];
  readonly tapes: readonly Value[];
  readonly step: Graph;
  readonly back: Graph;
  readonly tail: Graph | null;
  readonly last: readonly Value[];
  readonly ws: readonly Value[];
  /** The storage of `held` and `turns`. */
  readonly heldAfter: readonly Value[];
  readonly turnsAfter: Value;
}

export function rewindParts({ inputs, outputs, attrs, regions }: Node): RewindParts {
  const { states, adjoints, xs, tapes } = attrs as RewindAttrs;
  const [a, x, k] = [2 + states, 2 + states + adjoints, 2 + states + adjoints + xs];
  const [rows, t] = [outputs.length - states - 1, inputs.length - tapes];
  return {
    count: at(inputs, 0),
    turns: at(inputs, 1),
    held: inputs.slice(2, a),
    adjoints: inputs.slice(a, x),
    xs: inputs.slice(x, k),
    consts: inputs.slice(k, t),
    tapes: inputs.slice(t),
    step: at(regions, 0),
    back: at(regions, 1),
    tail: regions[2] ?? null,
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

/** Turns are taped by a region of their own, and there is one that is not. */
function requireTaped(name: string, taped: number, region: Graph | undefined, most: number): void {
  requireCount(name, "taped", taped, Math.max(0, most));
  if (taped > 0 === (region !== undefined)) return;
  throw new TidemarkError("InvalidGraph", `${name}: taped=${taped} ${region ? "with" : "without"} a region for that`);
}

const turnsType = (slots: number): TensorType => tensorType("i32", [slots + 1]);

/** What a `while` says of the states that it holds: turns, then rows. */
export const placesType = (slots: number): TensorType => tensorType("i32", [2 * (slots + 1)]);

/** A scan that keeps states for its reverse. */
export const record: OpDef<RecordAttrs> = defineOp<RecordAttrs>({
  name: "record",
  defaults: { carries: 0, xs: 0, reverse: false, counted: false, every: 0, taped: 0 },
  infer(inputs, attrs, [body, full]) {
    requireSplit("record", attrs);
    if (attrs.split === "online") throw new TidemarkError("InvalidGraph", "record: online is for record_while");
    const { kept, carries, slots, taped, counted, length } = attrs;
    const states = inputs.slice(counted ? 1 : 0);
    for (const k of kept) requireCount("record", "kept", k, carries - 1);
    requireTaped("record", taped, full, counted ? 0 : length - 1);
    const inferred = (region: Graph | undefined): readonly TensorType[] =>
      scan.infer(inputs, { ...attrs, reversal: "auto", snapshots: 0 }, region ? [region] : []);
    const plain = inferred(body);
    const more = full ? inferred(full) : plain;
    requireTypes("record: the full body returns", more.slice(0, plain.length), plain);
    const tapes = more.slice(plain.length).map((stack) => stackType(rowType("record", stack, length), taped));
    return [...plain, ...tapes, ...kept.map((k) => stackType(at(states, k), slots + 1)), turnsType(slots)];
  },
  derivative: { kind: "region" },
  cost: (_, __, { length }, regions) => ({ flops: length * graphCost(at(regions, 0)).flops }),
  lower: { kind: "control", form: "record", runs: ({ length, taped }) => [length - taped, taped] },
  evaluate({ inputs, attrs: { carries, xs, length, reverse, counted, kept, slots, taped }, regions, run }) {
    const body = at(regions, 0);
    // The reference of the reverse computes rows again, whatever is kept.
    const tapes = typesOf((regions[1] ?? body).results.slice(body.results.length));
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
    return [...state, ...ys, ...emptyStacks(tapes, taped), ...held, new Float64Array(slots + 1)];
  },
  // Samples have no regions; rewind.test.ts tests both in programs.
  samples: () => [],
});

/** The reverse of a recorded loop. */
export const rewind: OpDef<RewindAttrs> = defineOp<RewindAttrs>({
  name: "rewind",
  defaults: { adjoints: 0, xs: 0, reverse: false, every: 0, taped: 0, tapes: 0 },
  infer([count, turns, ...all], attrs, regions) {
    const { states, adjoints, xs, length, slots, split, taped, tapes } = attrs;
    const tail = regions[2];
    requireRegions("rewind", regions, tail ? 3 : 2);
    requireTaped("rewind", taped, tail, length - 1);
    requireCount("rewind", "tapes", tapes, all.length);
    const given = all.slice(0, all.length - tapes);
    requireSplit("rewind", attrs);
    const where = split === "online" ? placesType(slots) : turnsType(slots);
    requireTypes("rewind: the count and turns are", count && turns ? [count, turns] : [], [INDEX, where]);
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
    if (tail) {
      const kept = all.slice(all.length - tapes).map((stack) => rowType("rewind", stack, taped));
      requireTypes(`rewind: region ${tail.name} takes`, typesOf(tail.params), [INDEX, ...cts, ...rest, ...kept]);
      requireTypes(`rewind: region ${tail.name} returns`, typesOf(tail.results), results);
    }
    const ws = results.slice(adjoints).map((row) => stackType(row, length));
    return [...cts, ...ws, ...held, where];
  },
  derivative: { kind: "region" },
  cost: (_, __, { length, advances }, regions) => ({
    flops: advances * graphCost(at(regions, 0)).flops + assumedTurns(length) * graphCost(at(regions, 1)).flops,
  }),
  lower: {
    kind: "control",
    form: "rewind",
    runs: ({ length, advances, taped }) => [advances, assumedTurns(length) - taped, taped],
    // Each turn starts from a held state, and a state is held for about every turn that is not the last of its sweep.
    copied: ({ states, slots, length, advances, taped }, inputs) => {
      const bytes = inputs.slice(2, 2 + states).reduce((sum, held) => sum + byteLength(held) / (slots + 1), 0);
      const turns = assumedTurns(length) - taped;
      return bytes * (turns + Math.min(turns, advances));
    },
  },
  evaluate({ inputs, attrs: { states, adjoints, xs, length, reverse, slots, tapes }, regions, run }) {
    const [step, back] = [at(regions, 0), at(regions, 1)];
    const count = Math.min(Math.max(0, at(at(inputs, 0), 0)), length || MOST_TURNS);
    const given = inputs.slice(2, inputs.length - tapes);
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
  samples: () => [],
});
