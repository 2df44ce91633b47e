/**
 * @file Loops as operations: a body that is planned and compiled once and runs many times inside of the program.
 *
 *   scan     carries c…, stacks xs…, constants k…        body(i, c…, x…, k…) → c…, y…        → c…, ys…
 *   while    carries c…, constants k…                    test(c…, k…) → bool
 *                                                        body(i, c…, k…) → c…, y…            → c…, ys…, count
 *
 *     xs   [ x₀ │ x₁ │ x₂ ]           one row an iteration, from the last to the first when `reverse`
 *             │    │    │
 *     c₀ ── body ─ body ─ body ── c₃
 *             │    │    │
 *     ys   [ y₀ │ y₁ │ y₂ ]           row i belongs to x's row i in either direction
 *
 * `i` is the row's number, which is the iteration's number unless the loop is reversed. A *counted* scan takes the number of
 * iterations as its first input, an i32 of at most `length`: so the rows that a `while` has written are read. Rows that were
 * not written are unspecified, and no graph that the library builds reads them. A `while` with length > 0 ends after that
 * many iterations even if the test still holds; without (0) it can have no ys, whose number of rows would be unknown.
 */
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { type Group, type Loop, ONE, type Wiring } from "../ir/control.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import type { OpDef, Reference, Turns } from "../ir/op.ts";
import type { TensorType } from "../ir/type.ts";
import { graphCost } from "./control.ts";
import { defineOp } from "./define.ts";
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
  TRUTH,
  typesOf,
} from "./region-checks.ts";

/** How the reverse of a scan gets the states of iterations: `auto` leaves it to the planner. */
export const REVERSALS = ["auto", "store-all", "binomial", "binary", "periodic", "square-root"] as const;
export type Reversal = (typeof REVERSALS)[number];

/**
 * `reversal` is one of REVERSALS, `snapshots` the number of states for it (0: as many as it needs or the planner chooses).
 * `strip` is the number of rows of a strip where the planner made the loop (loops/strips), and 0 elsewhere.
 */
export type ScanAttrs = {
  readonly carries: number;
  readonly xs: number;
  readonly length: number;
  readonly reverse: boolean;
  readonly counted: boolean;
  readonly reversal: string;
  readonly snapshots: number;
  readonly strip?: number;
};

/**
 * `checkpoints`: states that its reverse may hold when it is not bounded; 0 leaves it to the planner. `turns` is known of a loop that runs
 * once or not at all, inside of another: for each of several devices in which iterations of that one it runs, as `0110,1001`. Times are
 * predicted by it; no result depends on it.
 */
export type WhileAttrs = {
  readonly carries: number;
  readonly length: number;
  readonly checkpoints: number;
  readonly turns?: string;
};

/** Default number of states held at once: a million iterations then take 5.5 sweeps. */
export const DEFAULT_CHECKPOINTS = 32;

/** What the attribute says; null where it says nothing. */
const turnsOf = ({ turns = "" }: WhileAttrs): Turns | null =>
  turns === "" ? null : turns.split(",").map((device) => Array.from(device, (digit) => digit === "1"));

/** How often a loop runs: the mean of all devices and iterations of the loop around where they take turns. */
function whileRuns(attrs: WhileAttrs): number {
  const all = turnsOf(attrs)?.flat();
  return all ? all.filter((runs) => runs).length / all.length : assumedIterations(attrs.length);
}

/** The number of iterations that costs assume if it is not known. */
const ASSUMED_ITERATIONS = 1000;

/** `length` is 0 where it is not known. */
export const assumedIterations = (length: number): number => (length === 0 ? ASSUMED_ITERATIONS : length);

/** The most iterations of a loop: rows and iterations are numbered with i32. */
export const MOST_ITERATIONS = 2 ** 31 - 1;

/** The groups of inputs and results of a scan. */
export function scanLoop({ inputs, outputs, attrs, regions }: Node): Loop {
  const { carries, xs, counted, length, reverse, strip = 0 } = attrs as ScanAttrs;
  const first = counted ? 1 : 0;
  return {
    count: counted ? at(inputs, 0) : null,
    carries: inputs.slice(first, first + carries),
    xs: inputs.slice(first + carries, first + carries + xs),
    consts: inputs.slice(first + carries + xs),
    body: at(regions, 0),
    region: 0,
    test: null,
    last: outputs.slice(0, carries),
    ys: outputs.slice(carries),
    iterations: null,
    length,
    isBounded: true,
    reverse,
    recording: null,
    strip,
  };
}

function scanWiring({ inputs, outputs, attrs }: Node): Wiring {
  const { carries: nc, xs: nx, counted } = attrs as ScanAttrs;
  const count: Group = { kind: "fixed", size: counted ? 1 : 0 };
  const carries: Group = { kind: "carry", size: nc, attr: "carries" };
  const xs: Group = { kind: "row", size: nx, attr: "xs" };
  const consts: Group = { kind: "const", size: inputs.length - count.size - nc - nx };
  const ys: Group = { kind: "result", size: outputs.length - nc };
  return {
    inputs: [count, carries, xs, consts],
    outputs: [carries, ys],
    regions: [{ params: [ONE, carries, xs, consts], results: [carries, ys] }],
    repeats: true,
    forgets: {},
  };
}

/** The groups of inputs and results of a while. */
export function whileOf({ inputs, outputs, attrs, regions }: Node): Loop & { readonly iterations: Value } {
  const { carries, length } = attrs as WhileAttrs;
  return {
    count: null,
    carries: inputs.slice(0, carries),
    xs: [],
    consts: inputs.slice(carries),
    body: at(regions, 1),
    region: 1,
    test: at(regions, 0),
    last: outputs.slice(0, carries),
    ys: outputs.slice(carries, -1),
    iterations: at(outputs, outputs.length - 1),
    length,
    isBounded: length > 0,
    reverse: false,
    recording: null,
    strip: 0,
  };
}

function whileWiring({ inputs, outputs, attrs }: Node): Wiring {
  const { carries: nc } = attrs as WhileAttrs;
  const [truth, count]: readonly [Group, Group] = [ONE, ONE];
  const carries: Group = { kind: "carry", size: nc, attr: "carries" };
  const consts: Group = { kind: "const", size: inputs.length - nc };
  const ys: Group = { kind: "result", size: outputs.length - 1 - nc };
  return {
    inputs: [carries, consts],
    outputs: [carries, ys, count],
    regions: [
      { params: [carries, consts], results: [truth] },
      { params: [ONE, carries, consts], results: [carries, ys] },
    ],
    repeats: true,
    forgets: {},
  };
}

/** Types of the body's y…, after checking that it gives back the carries it takes. */
function requireBody(name: string, body: Graph, carries: readonly TensorType[], rest: readonly TensorType[]) {
  requireTypes(`${name}: region ${body.name} takes`, typesOf(body.params), [INDEX, ...carries, ...rest]);
  const results = typesOf(body.results);
  requireTypes(`${name}: region ${body.name} returns carries`, results.slice(0, carries.length), carries);
  return results.slice(carries.length);
}

/** A body run for the rows of stacks, with a state passed from iteration to iteration. */
export const scan: OpDef<ScanAttrs> = defineOp<ScanAttrs>({
  name: "scan",
  defaults: { carries: 0, xs: 0, reverse: false, counted: false, reversal: "auto", snapshots: 0, strip: 0 },
  infer(inputs, { carries, xs, length, counted, reversal, snapshots }, regions) {
    requireRegions("scan", regions, 1);
    requireCount("scan", "length", length, MOST_ITERATIONS);
    requireCount("scan", "snapshots", snapshots, MOST_ITERATIONS);
    if (!(REVERSALS as readonly string[]).includes(reversal)) {
      throw new TidemarkError("InvalidGraph", `scan: there is no reversal ${reversal}`);
    }
    const given = counted ? inputs.slice(1) : inputs;
    if (counted) requireTypes("scan: the count is", inputs.slice(0, 1), [INDEX]);
    requireCount("scan", "carries", carries, given.length);
    requireCount("scan", "xs", xs, given.length - carries);
    const states = given.slice(0, carries);
    const rows = given.slice(carries, carries + xs).map((stack) => rowType("scan", stack, length));
    const ys = requireBody("scan", at(regions, 0), states, [...rows, ...given.slice(carries + xs)]);
    return [...states, ...ys.map((row) => stackType(row, length))];
  },
  derivative: {
    kind: "region",
    rule: (node) => ({ kind: "control", control: { kind: "loop", loop: scanLoop(node) } }),
  },
  cost: (_, __, { length }, regions) => ({ flops: length * graphCost(at(regions, 0)).flops }),
  lower: {
    kind: "control",
    control: (node) => ({ kind: "loop", loop: scanLoop(node) }),
    wiring: scanWiring,
    runs: ({ length }) => [length],
  },
  evaluate({ inputs, attrs: { carries, xs, length, reverse, counted }, regions, run }) {
    const body = at(regions, 0);
    const iterations = counted ? Math.min(Math.max(at(at(inputs, 0), 0), 0), length) : length;
    const given = counted ? inputs.slice(1) : inputs;
    const [stacks, consts] = [given.slice(carries, carries + xs), given.slice(carries + xs)];
    const ys = emptyStacks(typesOf(body.results.slice(carries)), length);
    let state: readonly Reference[] = given.slice(0, carries);
    for (let iteration = 0; iteration < iterations; iteration++) {
      const i = reverse ? iterations - 1 - iteration : iteration;
      const rows = stacks.map((stack) => rowOf(stack, i, length));
      const made = run(body, [Float64Array.of(i), ...state, ...rows, ...consts]);
      state = made.slice(0, carries);
      putRows(ys, made.slice(carries), i);
    }
    return [...state, ...ys];
  },
  // Samples have no regions; loops.test.ts tests these operations in programs.
  samples: () => [],
});

/** A body that runs while a test of its state holds. */
export const whileLoop: OpDef<WhileAttrs> = defineOp<WhileAttrs>({
  name: "while",
  defaults: { carries: 0, length: 0, checkpoints: 0, turns: "" },
  infer(inputs, { carries, length, checkpoints, turns = "" }, regions) {
    requireRegions("while", regions, 2);
    if (!/^([01]+(,[01]+)*)?$/.test(turns)) {
      const help = "a digit 0 or 1 for each iteration of the loop around, and a comma between devices: 0110,1001";
      throw new TidemarkError("InvalidGraph", `while: turns is ${turns}`, { help });
    }
    requireCount("while", "checkpoints", checkpoints, MOST_ITERATIONS - 1);
    requireCount("while", "length", length, MOST_ITERATIONS);
    requireCount("while", "carries", carries, inputs.length);
    const test = at(regions, 0);
    requireTypes(`while: region ${test.name} takes`, typesOf(test.params), inputs);
    requireTypes(`while: region ${test.name} returns`, typesOf(test.results), [TRUTH]);
    const states = inputs.slice(0, carries);
    const ys = requireBody("while", at(regions, 1), states, inputs.slice(carries));
    if (length === 0 && ys.length > 0) {
      const summary = `while: region ${at(regions, 1).name} returns ${ys.length} rows an iteration without a length`;
      throw new TidemarkError("InvalidGraph", summary, { help: "give the maximum number of iterations as length" });
    }
    return [...states, ...ys.map((row) => stackType(row, length)), INDEX];
  },
  derivative: { kind: "region", rule: (node) => ({ kind: "control", control: { kind: "loop", loop: whileOf(node) } }) },
  // The number of iterations is not known: the most there can be are counted.
  cost: (_, __, attrs, regions) => ({
    flops: whileRuns(attrs) * regions.reduce((sum, region) => sum + graphCost(region).flops, 0),
  }),
  lower: {
    kind: "control",
    control: (node) => ({ kind: "loop", loop: whileOf(node) }),
    wiring: whileWiring,
    runs: (attrs) => [Math.max(1, whileRuns(attrs)), whileRuns(attrs)],
    turns: turnsOf,
  },
  evaluate({ inputs, attrs: { carries, length }, regions, run }) {
    const [test, body] = [at(regions, 0), at(regions, 1)];
    const consts = inputs.slice(carries);
    const ys = emptyStacks(typesOf(body.results.slice(carries)), length);
    let state: readonly Reference[] = inputs.slice(0, carries);
    let iteration = 0;
    const most = length === 0 ? MOST_ITERATIONS : length;
    while (iteration < most && at(run(test, [...state, ...consts]), 0)[0] !== 0) {
      const made = run(body, [Float64Array.of(iteration), ...state, ...consts]);
      state = made.slice(0, carries);
      putRows(ys, made.slice(carries), iteration);
      iteration++;
    }
    return [...state, ...ys, Float64Array.of(iteration)];
  },
  samples: () => [],
});
