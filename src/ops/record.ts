/**
 * @file A loop that keeps some of its states on the way, for a reverse that starts from them (`rewind`, rewind.ts). It replaces
 * a `scan` or a `while` if there is no memory for the rows that its reverse reads (loops/rewrite.ts).
 *
 *   record   [count,] carries c…, stacks xs…, constants k…
 *            body(i, c…, x…, k…) → c…, y…                   → c…, ys…, store…, positions
 *
 *     s₀ ▪─ body ─ body ─ s₂ ▪─ body ─ s₃ ▫─ body ─ s₄      ▪ a checkpoint, ▫ the state before the last iteration
 *
 * `store` has a row for each of `checkpoints` states and one more for the state that iterations work on, which is that
 * before the last iteration in the end; row 0 is the first state. Only carries named in `states` are stored. `positions` says
 * which iteration each row's state is before, and in its last place how many checkpoints there are. Which states these are
 * is the schedule's business (loops/lower/checkpoints.ts) and changes no result: a recomputed state is the same state.
 *
 * The residuals of the last `taped` iterations may be stacked: in these, `full` runs in place of body.
 *
 *   record   full(i, c…, x…, k…) → c…, y…, r…               → …, tapes…, store…, positions
 *
 * The number of iterations of a `while` is known only at the end. With the split `online` a record is one: it decides about
 * states as they come, and a new one may take the place of an older one (loops/lower/keeper.ts).
 *
 *   record   carries c…, constants k…
 *            test(c…, k…) → bool
 *            body(i, c…, k…) → c…, y…                       → c…, ys…, store…, positions, count
 *
 *     rows of the store    [ s₀ │ s₉ │ s₄ │ s₁₁ ]           states are in free rows, in no order
 *     positions            iterations of checkpoints, in order:  0 4 9, and how many these are
 *                          rows of them:                         0 2 1, and that of the state before the last iteration: 3
 */
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import type { Loop, Recording } from "../ir/control.ts";
import type { Graph, Node } from "../ir/graph.ts";
import type { EvaluateContext, OpDef, Reference } from "../ir/op.ts";
import { byteLength, type TensorType, tensorType } from "../ir/type.ts";
import { graphCost } from "./control.ts";
import { defineOp } from "./define.ts";
import { assumedIterations, MOST_ITERATIONS, type ScanAttrs, scan, scanLoop, whileLoop, whileOf } from "./loops.ts";
import { emptyStacks, putRows, requireCount, requireTypes, rowType, stackType, typesOf } from "./region-checks.ts";

/** How far to go from a checkpoint to the next one; `online` is for a `while`. */
const SPLITS: readonly string[] = ["binomial", "binary", "periodic", "online"];

/** Which states are kept. `every`: iterations between two of them, for `periodic`. */
export type SplitAttrs = { readonly checkpoints: number; readonly split: string; readonly every: number };

/** `states`: carries that are stored. `taped`: iterations at the end whose rows are stacked; not of a loop with a count. */
export type RecordAttrs = Omit<ScanAttrs, "reversal" | "snapshots"> &
  SplitAttrs & { readonly states: readonly number[]; readonly taped: number };

/** The groups of inputs and results of a loop that keeps states. */
export function recordLoop(node: Node): Loop & { readonly recording: Recording } {
  const { states, split, checkpoints, taped } = node.attrs as RecordAttrs;
  const isOnline = split === "online";
  const loop = isOnline ? whileOf(node) : scanLoop(node);
  const { ys, carries, body } = loop;
  const own = body.results.length - carries.length;
  const first = ys.length - states.length - 1;
  const recording: Recording = {
    states,
    checkpoints,
    store: ys.slice(first, -1),
    positions: at(ys, ys.length - 1),
    full: isOnline ? null : (node.regions[1] ?? null),
    taped,
    tapes: ys.slice(own, first),
  };
  return { ...loop, ys: ys.slice(0, own), recording };
}

export function requireSplit(name: string, { checkpoints, split, every }: SplitAttrs): void {
  requireCount(name, "checkpoints", checkpoints - 1, MOST_ITERATIONS - 2);
  requireCount(name, "every", every, MOST_ITERATIONS);
  if (SPLITS.includes(split) && !(split === "periodic" && every === 0)) return;
  throw new TidemarkError("InvalidGraph", `${name}: there is no split ${split} every ${every}`);
}

/** Taped iterations have a separate region, and at least one iteration is not taped. */
export function requireTaped(name: string, taped: number, region: Graph | undefined, most: number): void {
  requireCount(name, "taped", taped, Math.max(0, most));
  if (taped > 0 === (region !== undefined)) return;
  throw new TidemarkError("InvalidGraph", `${name}: taped=${taped} ${region ? "with" : "without"} a region for that`);
}

/** The positions of checkpoints: their iterations, and their rows if these are in no order. */
export const positionsType = ({ checkpoints, split }: SplitAttrs): TensorType =>
  tensorType("i32", [(split === "online" ? 2 : 1) * (checkpoints + 1)]);

/** The types of a loop's store, given those of its carries. */
function storeTypes(attrs: RecordAttrs, carries: readonly TensorType[]): readonly TensorType[] {
  const rows = attrs.states.map((k) => stackType(at(carries, k), attrs.checkpoints + 1));
  return [...rows, positionsType(attrs)];
}

function inferOnline(
  inputs: readonly TensorType[],
  attrs: RecordAttrs,
  regions: readonly Graph[],
): readonly TensorType[] {
  const { xs, taped, counted, reverse, carries, length } = attrs;
  if (xs > 0 || taped > 0 || counted || reverse) {
    throw new TidemarkError("InvalidGraph", "record: online is for a while, which has no rows to read and no count");
  }
  const plain = whileLoop.infer(inputs, { carries, length, checkpoints: 0 }, regions);
  return [...plain.slice(0, -1), ...storeTypes(attrs, inputs), at(plain, plain.length - 1)];
}

function evaluateOnline(c: EvaluateContext<RecordAttrs>): readonly Reference[] {
  const { carries, length, states, checkpoints } = c.attrs;
  const results = whileLoop.evaluate({ ...c, attrs: { carries, length, checkpoints: 0 } });
  const store = emptyStacks(typesOf(states.map((k) => at(at(c.regions, 1).params, 1 + k))), checkpoints + 1);
  // The reference of the reverse starts from the first state; other kept states are not used.
  putRows(
    store,
    states.map((k) => at(c.inputs, k)),
    0,
  );
  return [...results.slice(0, -1), ...store, new Float64Array(2 * (checkpoints + 1)), at(results, results.length - 1)];
}

/** A loop that keeps states for its reverse. */
export const record: OpDef<RecordAttrs> = defineOp<RecordAttrs>({
  name: "record",
  defaults: { carries: 0, xs: 0, length: 0, reverse: false, counted: false, every: 0, taped: 0 },
  infer(inputs, attrs, regions) {
    requireSplit("record", attrs);
    const { states, carries, taped, counted, length } = attrs;
    for (const k of states) requireCount("record", "states", k, carries - 1);
    if (attrs.split === "online") return inferOnline(inputs, attrs, regions);
    const [body, full] = regions;
    requireTaped("record", taped, full, counted ? 0 : length - 1);
    const inferred = (region: Graph | undefined): readonly TensorType[] =>
      scan.infer(inputs, { ...attrs, reversal: "auto", snapshots: 0 }, region ? [region] : []);
    const plain = inferred(body);
    const more = full ? inferred(full) : plain;
    requireTypes("record: the full body returns", more.slice(0, plain.length), plain);
    const tapes = more.slice(plain.length).map((stack) => stackType(rowType("record", stack, length), taped));
    return [...plain, ...tapes, ...storeTypes(attrs, inputs.slice(counted ? 1 : 0))];
  },
  derivative: { kind: "region" },
  cost(_, __, { length, split }, regions) {
    if (split !== "online") return { flops: length * graphCost(at(regions, 0)).flops };
    return { flops: assumedIterations(length) * regions.reduce((sum, region) => sum + graphCost(region).flops, 0) };
  },
  lower: {
    kind: "control",
    control: (node) => ({ kind: "loop", loop: recordLoop(node) }),
    // Created by the planner together with its reverse, with only the members that are needed.
    wiring: () => null,
    runs: ({ length, taped, split }) =>
      split === "online" ? [assumedIterations(length), assumedIterations(length)] : [length - taped, taped],
    // Of a while the state before each iteration, in case it is to be kept.
    copied: ({ states, length, split }, inputs) =>
      split === "online"
        ? assumedIterations(length) * states.reduce((sum, k) => sum + byteLength(at(inputs, k)), 0)
        : 0,
  },
  evaluate(c) {
    const { inputs, attrs, regions } = c;
    if (attrs.split === "online") return evaluateOnline(c);
    const { carries, counted, states, checkpoints, taped } = attrs;
    const body = at(regions, 0);
    // The reference of the reverse recomputes rows and states, from the first state; kept ones are not used.
    const tapes = emptyStacks(typesOf((regions[1] ?? body).results.slice(body.results.length)), taped);
    const plain = scan.evaluate({ ...c, attrs: { ...attrs, reversal: "auto", snapshots: 0 }, regions: [body] });
    const first = inputs.slice(counted ? 1 : 0).slice(0, carries);
    const store = emptyStacks(typesOf(states.map((k) => at(body.params, 1 + k))), checkpoints + 1);
    putRows(
      store,
      states.map((k) => at(first, k)),
      0,
    );
    return [...plain, ...tapes, ...store, new Float64Array(checkpoints + 1)];
  },
  // Samples have no regions; rewind.test.ts tests it in programs.
  samples: () => [],
});
