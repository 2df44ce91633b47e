/**
 * @file The loops whose reversal the planner decides, and the graph rewritten as decided. Loops of equal sizes at the
 * same nesting depth form a group and get the same form.
 *
 *   counted   a loop whose number of iterations is known or bounded: it stacks rows of all iterations (all that its
 *             reverse reads, or those worth their bytes), or keeps some states; or rows of its last iterations and states
 *             for the others
 *   open      a `while` without a bound: it keeps some states (unbounded.ts)
 */
import { at } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { nodesFor } from "../ir/walk.ts";
import { DEFAULT_CHECKPOINTS, type ScanAttrs } from "../ops/loops.ts";
import type { NodeCosts } from "../plan/cost/model.ts";
import { cutPair } from "./cut-pair.ts";
import { type LoopPair, rowsOf } from "./pairs.ts";
import { type LoopDecisions, type LoopSite, type OpenLoopSite, rewindLoops } from "./rewrite.ts";
import { type RowCut, recomputeMs, rowCut } from "./row-cut.ts";
import { binomialSchedule, type LoopSchedule } from "./schedules.ts";

/** Loops that get the same form. */
export interface LoopGroup {
  readonly key: string;
  /** The number of iterations has no bound; `length` is then one more than the largest useful number of states. */
  readonly isOpen: boolean;
  /** Whether rows of the last iterations can be stacked while the others use states. */
  readonly tapes: boolean;
  readonly count: number;
  readonly length: number;
  readonly stateBytes: number;
  /** All rows first, then smaller and smaller selections. */
  readonly rows: readonly RowSelection[];
  /**
   * Time to recompute one iteration, and to recompute the rows of all iterations, summed over all runs of all loops.
   */
  readonly stepMs: number;
  readonly tapesMs: number;
}

/** The rows kept at a price in milliseconds per byte, and the time to recompute the others in all iterations. */
export interface RowSelection {
  readonly price: number;
  /** Of one iteration. */
  readonly bytes: number;
  readonly recomputeMs: number;
}

/**
 * How many states a loop keeps, for how many of its last iterations it stacks rows, and at which price those rows were
 * chosen.
 */
export interface LoopForm {
  readonly checkpoints: number;
  /** Equal to the number of iterations if no states are kept. */
  readonly taped: number;
  readonly price: number;
}

/** The form of each group's loops; loops of groups that are absent keep their stacks. */
export type LoopChoice = ReadonlyMap<string, LoopForm>;

/**
 * The most states of a loop without a bound: enough to reverse half a million iterations with one recomputation each,
 * 180 million with two.
 */
export const MOST_OPEN = 1024;

/**
 * Requires that the last iteration is known beforehand and that there is a state: rows computed from inputs alone need
 * none.
 */
const canTape = ({ states, backwardParts }: LoopPair): boolean => states.length > 0 && backwardParts.count === null;

const keyOf = ({ pair, depth }: LoopSite): string =>
  `${depth} deep, ${pair.length}${canTape(pair) ? "" : " at most"} × ${pair.tapeBytes}, ${pair.stateBytes}`;

const isFree = ({ pair: { forward } }: LoopSite): boolean =>
  ((forward.attrs as Partial<ScanAttrs>).reversal ?? "auto") === "auto";

const openKey = ({ pair: { stateBytes }, depth }: OpenLoopSite): string => `${depth} deep, open, ${stateBytes}`;

const isFreeOpen = ({ pair: { reversal } }: OpenLoopSite): boolean => reversal.checkpoints === 0;

/** The graph with loops in their chosen form; loops without a bound must keep some states. */
export function withChoice(graph: Graph, choice: LoopChoice, costs: NodeCosts): Graph {
  const decide: LoopDecisions = {
    counted(loop) {
      const form = isFree(loop) ? choice.get(keyOf(loop)) : undefined;
      if (!form) return null;
      const { checkpoints, taped, price } = form;
      const { length } = loop.pair;
      const pair = price > 0 ? cutOnce(loop.pair, price, costs) : loop.pair;
      return { pair, schedule: taped === length ? null : binomialSchedule(length, checkpoints, taped) };
    },
    open: (loop) => (isFreeOpen(loop) ? (choice.get(openKey(loop))?.checkpoints ?? DEFAULT_CHECKPOINTS) : 0),
  };
  return rewindLoops(graph, decide);
}

/** The graph with one schedule rule for all loops; `open` is the number of states of loops without a bound. */
export function withSchedules(graph: Graph, scheduleOf: (length: number) => LoopSchedule, open: number): Graph {
  return rewindLoops(graph, {
    counted: (loop) => (isFree(loop) ? { pair: loop.pair, schedule: scheduleOf(loop.pair.length) } : null),
    open: (loop) => (isFreeOpen(loop) ? open : 0),
  });
}

/** The graph with loops as the user asked, or with all rows stacked. */
export const withoutChoice = (graph: Graph, costs: NodeCosts): Graph => withChoice(graph, new Map(), costs);

/** Prices from the cost of an addition to that of a product over thousands, per byte of a four-byte element. */
const PRICES: readonly number[] = Array.from({ length: 20 }, (_, n) => 1e-9 * 2 ** n);

const cutAt = (pair: LoopPair, price: number, costs: NodeCosts): RowCut =>
  rowCut(pair, price, (node) => recomputeMs(node, costs));

/** Keyed by the reverse node of a pair. */
const cutPairs = new WeakMap<Node, Map<string, { readonly from: LoopPair; readonly pair: LoopPair }>>();

/** The pair with the rows chosen at a price; cached, so that its bodies are planned only once. */
function cutOnce(from: LoopPair, price: number, costs: NodeCosts): LoopPair {
  const cutsOfPair = cutPairs.get(from.backward) ?? new Map();
  cutPairs.set(from.backward, cutsOfPair);
  const key = `${price} of ${costs.key}`;
  const cached = cutsOfPair.get(key);
  if (cached?.from.stacks.every((stack: Value, n: number) => stack === from.stacks[n])) return cached.pair;
  const pair = cutPair(from, cutAt(from, price, costs));
  cutsOfPair.set(key, { from, pair });
  return pair;
}

/**
 * All rows of a loop, then the selections at increasing prices that take fewer bytes; `allMs` is the time to recompute
 * all rows. A selection that recomputes everything and is no smaller than a state has no advantage over states.
 */
function rowSelections({ pair, runs }: LoopSite, allMs: number, costs: NodeCosts): readonly RowSelection[] {
  const selections: RowSelection[] = [{ price: 0, bytes: pair.tapeBytes, recomputeMs: 0 }];
  for (const price of PRICES) {
    const { rows, again } = cutAt(pair, price, costs);
    const bytes = rows.reduce((sum, { type }) => sum + byteLength(type), 0);
    const ms = again.reduce((sum, node) => sum + recomputeMs(node, costs), 0) * runs * pair.length;
    if (bytes >= pair.stateBytes && ms >= allMs * (1 - 1e-9)) continue;
    if (bytes < (selections.at(-1) as RowSelection).bytes) selections.push({ price, bytes, recomputeMs: ms });
  }
  return selections;
}

/** The groups of loops whose form the planner chooses, largest stacks first. */
export function loopGroups(graph: Graph, costs: NodeCosts): readonly LoopGroup[] {
  const groups = new Map<string, LoopGroup>();
  const msOfNodes = (nodes: Iterable<Node>): number =>
    [...nodes].reduce((sum, node) => sum + recomputeMs(node, costs), 0);
  const decide: LoopDecisions = {
    counted: (loop) => (isFree(loop) ? { pair: loop.pair, schedule: binomialSchedule(loop.pair.length, 1) } : null),
    open(loop) {
      if (!isFreeOpen(loop)) return 0;
      const { pair, runs } = loop;
      const key = openKey(loop);
      const earlier = groups.get(key);
      const { step } = pair.reversal;
      groups.set(key, {
        key,
        isOpen: true,
        tapes: false,
        count: (earlier?.count ?? 0) + 1,
        length: MOST_OPEN + 1,
        stateBytes: pair.stateBytes,
        rows: [{ price: 0, bytes: 0, recomputeMs: 0 }],
        stepMs: (earlier?.stepMs ?? 0) + runs * msOfNodes(step.nodes),
        tapesMs: 0,
      });
      return DEFAULT_CHECKPOINTS;
    },
  };
  rewindLoops(graph, decide, (loop) => {
    const { pair, runs, step } = loop;
    const { length, stateBytes } = pair;
    const sum = (a: RowSelection, b: RowSelection): RowSelection => ({
      ...a,
      recomputeMs: a.recomputeMs + b.recomputeMs,
    });
    const key = keyOf(loop);
    const previous = groups.get(key);
    const { body } = pair.forwardParts;
    const again = runs * length * msOfNodes(nodesFor(body, rowsOf(pair.forwardParts, pair.stacks)));
    const selections = rowSelections(loop, again, costs);
    groups.set(key, {
      key,
      isOpen: false,
      tapes: canTape(pair),
      count: (previous?.count ?? 0) + 1,
      length,
      stateBytes,
      rows: previous
        ? previous.rows.map((rows, n) => sum(rows, at(selections, Math.min(n, selections.length - 1))))
        : selections,
      stepMs: (previous?.stepMs ?? 0) + runs * msOfNodes(step.nodes),
      tapesMs: (previous?.tapesMs ?? 0) + again,
    });
  });
  const bytes = ({ count, length, rows }: LoopGroup): number => count * length * at(rows, 0).bytes;
  return [...groups.values()].sort((a, b) => bytes(b) - bytes(a) || (a.key < b.key ? -1 : 1));
}
