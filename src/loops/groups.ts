/**
 * @file The loops of a program that are the planner's to decide about, and a graph in which they are as decided. Loops of
 * equal sizes at one depth are a group and are treated alike.
 *
 *   counted   a loop whose number of turns is known, or bounded: it keeps rows of all turns (all that its reverse reads, or
 *             those that are worth their bytes), or holds some states; or keeps rows of its last turns and states for the
 *             others
 *   open      a `while` without a bound: it holds some states (unbounded.ts)
 */
import { at } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { nodesFor } from "../ir/walk.ts";
import { DEFAULT_CHECKPOINTS, type ScanAttrs } from "../ops/loops.ts";
import type { NodeCosts } from "../plan/cost/model.ts";
import { cutPair } from "./cut-pair.ts";
import { type LoopPair, rowsOf } from "./pairs.ts";
import { type Decide, type FoundLoop, type FoundOpen, rewindLoops } from "./rewrite.ts";
import { againMs, type RowCut, rowCut } from "./row-cut.ts";
import { binomialSchedule, type Schedule } from "./schedules.ts";

/** Loops that are treated alike. */
export interface LoopGroup {
  readonly key: string;
  /** Nobody bounds the number of turns: `length` is one more than the most states that are of use. */
  readonly isOpen: boolean;
  /** Rows of some turns can be kept, and states for the others. */
  readonly tapes: boolean;
  readonly count: number;
  readonly length: number;
  readonly stateBytes: number;
  /** Rows as they are, then fewer of them. */
  readonly rows: readonly Rows[];
  /** Of one turn again, and of the rows of all turns again, in all runs of all loops. */
  readonly stepMs: number;
  readonly tapesMs: number;
}

/** Rows that are kept at a price in milliseconds a byte, and how long the others take, in all turns. */
export interface Rows {
  readonly price: number;
  /** Of one turn. */
  readonly bytes: number;
  readonly againMs: number;
}

/** States that a loop holds, and turns at its end whose rows are kept: those that are worth a price. */
export interface LoopForm {
  readonly checkpoints: number;
  /** The number of turns where no states are held. */
  readonly taped: number;
  readonly price: number;
}

/** What loops of each group hold; loops of the others keep their stacks. */
export type LoopChoice = ReadonlyMap<string, LoopForm>;

/** States of a loop without a bound: with as many, half a million turns are made again once, 180 million twice. */
export const MOST_OPEN = 1024;

/** The last turn must be known beforehand, and the others need states: rows that come from inputs alone need none. */
const canTape = ({ states, backwardParts }: LoopPair): boolean => states.length > 0 && backwardParts.count === null;

const keyOf = ({ pair, depth }: FoundLoop): string =>
  `${depth} deep, ${pair.length}${canTape(pair) ? "" : " at most"} × ${pair.tapeBytes}, ${pair.stateBytes}`;

const isFree = ({ pair: { forward } }: FoundLoop): boolean =>
  ((forward.attrs as Partial<ScanAttrs>).reversal ?? "auto") === "auto";

const openKey = ({ pair: { stateBytes }, depth }: FoundOpen): string => `${depth} deep, open, ${stateBytes}`;

const isFreeOpen = ({ pair: { reversal } }: FoundOpen): boolean => reversal.checkpoints === 0;

/** A graph whose loops hold what is chosen; those without a bound have to hold some states. */
export function withChoice(graph: Graph, choice: LoopChoice, costs: NodeCosts): Graph {
  const decide: Decide = {
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

/** A graph whose loops hold states by one rule for all; `open` is how many those without a bound hold. */
export function withSchedules(graph: Graph, scheduleOf: (length: number) => Schedule, open: number): Graph {
  return rewindLoops(graph, {
    counted: (loop) => (isFree(loop) ? { pair: loop.pair, schedule: scheduleOf(loop.pair.length) } : null),
    open: (loop) => (isFreeOpen(loop) ? open : 0),
  });
}

/** A graph whose loops are as users asked for, or keep everything. */
export const withoutChoice = (graph: Graph, costs: NodeCosts): Graph => withChoice(graph, new Map(), costs);

/** Prices from that of an addition to that of a product of thousands, for elements of four bytes. */
const PRICES: readonly number[] = Array.from({ length: 20 }, (_, n) => 1e-9 * 2 ** n);

const cutAt = (pair: LoopPair, price: number, costs: NodeCosts): RowCut =>
  rowCut(pair, price, (node) => againMs(node, costs));

/** By the reverse of a pair. */
const known = new WeakMap<Node, Map<string, { readonly from: LoopPair; readonly pair: LoopPair }>>();

/** A pair with the rows of a price: made once, so that whoever plans its bodies can plan them once. */
function cutOnce(from: LoopPair, price: number, costs: NodeCosts): LoopPair {
  const own = known.get(from.backward) ?? new Map();
  known.set(from.backward, own);
  const key = `${price} of ${costs.key}`;
  const found = own.get(key);
  if (found?.from.stacks.every((stack: Value, n: number) => stack === from.stacks[n])) return found.pair;
  const pair = cutPair(from, cutAt(from, price, costs));
  own.set(key, { from, pair });
  return pair;
}

/**
 * The rows of a loop as they are, and those that are worth higher and higher prices, where these are fewer; `allMs` is how
 * long all rows take. With what makes them all, and is no less than a state, nothing is gained over states.
 */
function rowsFor({ pair, runs }: FoundLoop, allMs: number, costs: NodeCosts): readonly Rows[] {
  const found: Rows[] = [{ price: 0, bytes: pair.tapeBytes, againMs: 0 }];
  for (const price of PRICES) {
    const { rows, again } = cutAt(pair, price, costs);
    const bytes = rows.reduce((sum, { type }) => sum + byteLength(type), 0);
    const ms = again.reduce((sum, node) => sum + againMs(node, costs), 0) * runs * pair.length;
    if (bytes >= pair.stateBytes && ms >= allMs * (1 - 1e-9)) continue;
    if (bytes < (found.at(-1) as Rows).bytes) found.push({ price, bytes, againMs: ms });
  }
  return found;
}

/** The loops of a graph that are the planner's to decide, those with the largest stacks first. */
export function loopGroups(graph: Graph, costs: NodeCosts): readonly LoopGroup[] {
  const groups = new Map<string, LoopGroup>();
  const msOfNodes = (nodes: Iterable<Node>): number => [...nodes].reduce((sum, node) => sum + againMs(node, costs), 0);
  const decide: Decide = {
    counted: (loop) => (isFree(loop) ? { pair: loop.pair, schedule: binomialSchedule(loop.pair.length, 1) } : null),
    open(loop) {
      if (!isFreeOpen(loop)) return 0;
      const { pair, runs } = loop;
      const key = openKey(loop);
      const known = groups.get(key);
      const { step } = pair.reversal;
      groups.set(key, {
        key,
        isOpen: true,
        tapes: false,
        count: (known?.count ?? 0) + 1,
        length: MOST_OPEN + 1,
        stateBytes: pair.stateBytes,
        rows: [{ price: 0, bytes: 0, againMs: 0 }],
        stepMs: (known?.stepMs ?? 0) + runs * msOfNodes(step.nodes),
        tapesMs: 0,
      });
      return DEFAULT_CHECKPOINTS;
    },
  };
  rewindLoops(graph, decide, (loop) => {
    const { pair, runs, step } = loop;
    const { length, stateBytes } = pair;
    const sum = (a: Rows, b: Rows): Rows => ({ ...a, againMs: a.againMs + b.againMs });
    const key = keyOf(loop);
    const known = groups.get(key);
    const { body } = pair.forwardParts;
    const again = runs * length * msOfNodes(nodesFor(body, rowsOf(pair.forwardParts, pair.stacks)));
    const own = rowsFor(loop, again, costs);
    groups.set(key, {
      key,
      isOpen: false,
      tapes: canTape(pair),
      count: (known?.count ?? 0) + 1,
      length,
      stateBytes,
      rows: known ? known.rows.map((rows, n) => sum(rows, at(own, Math.min(n, own.length - 1)))) : own,
      stepMs: (known?.stepMs ?? 0) + runs * msOfNodes(step.nodes),
      tapesMs: (known?.tapesMs ?? 0) + again,
    });
  });
  const bytes = ({ count, length, rows }: LoopGroup): number => count * length * at(rows, 0).bytes;
  return [...groups.values()].sort((a, b) => bytes(b) - bytes(a) || (a.key < b.key ? -1 : 1));
}
