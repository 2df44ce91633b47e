/**
 * @file Loops and their reverses in a graph: a loop stacks one row a turn of what its reverse reads, and nobody else reads
 * these stacks. Instead of keeping them, some states of the loop can be kept, and the rows made again from those:
 *
 * ```
 *   forward   c₀ ─ turn ─ turn ─ … ─ c        stacks   [ r₀ │ r₁ │ … ]     length rows of `tapeBytes`
 *   reverse   a₀ ─ nrut ─ nrut ─ … ─ a        reads them from the last to the first
 * ```
 *
 * Of the loop's state only that is needed which rows depend on, at once or through later turns: the carries in `states`.
 */
import { at, invariant } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { producersOf, usersOf } from "../ir/walk.ts";
import { type LoopParts, type ScanAttrs, scan, scanParts, whileLoop, whileParts } from "../ops/loops.ts";
import { neededCarries, readsFor } from "../passes/narrow.ts";
import { alignUp } from "../plan/problem.ts";

/** Rows and states lie one after the other at multiples of this. */
const ALIGN = 4;

export interface LoopPair {
  readonly forward: Node;
  readonly backward: Node;
  /** The parts of both; `forwardParts.count` of a `while` is the number of turns it made. */
  readonly forwardParts: LoopParts;
  readonly backwardParts: LoopParts;
  /** Stacks of the forward loop that its reverse alone reads. */
  readonly stacks: readonly Value[];
  /** Carries of the forward loop that rows of these depend on, by number. */
  readonly states: readonly number[];
  readonly length: number;
  /** Of one state, and of one row of all stacks. */
  readonly stateBytes: number;
  readonly tapeBytes: number;
}

interface Side {
  readonly node: Node;
  readonly parts: LoopParts;
  /** From the last row to the first. */
  readonly reverse: boolean;
  readonly length: number;
}

function sideOf(node: Node): Side | null {
  if (node.op === scan) {
    const { length, reverse } = node.attrs as ScanAttrs;
    return { node, parts: scanParts(node), reverse, length };
  }
  if (node.op !== whileLoop) return null;
  const parts = whileParts(node);
  return { node, parts: { ...parts, count: parts.iterations }, reverse: false, length: Number(node.attrs.length) };
}

/** The rows that a loop's body makes for some of its stacks. */
export function rowsOf({ body, carries, ys }: LoopParts, stacks: readonly Value[]): readonly Value[] {
  return stacks.map((stack) => at(body.results, carries.length + ys.indexOf(stack)));
}

const bytesOf = (values: readonly Value[]): number =>
  values.reduce((sum, { type }) => sum + alignUp(byteLength(type), ALIGN), 0);

/** What there is to know of a loop, its reverse, and the stacks between them. */
export function pairOf(loop: Node, reversed: Node, stacks: readonly Value[]): LoopPair {
  const [forward, backward] = [sideOf(loop), sideOf(reversed)];
  invariant(forward && backward, () => `${loop.op.name} and ${reversed.op.name} are not a loop and its reverse`);
  const { parts, node, length } = forward;
  const rows = rowsOf(parts, stacks);
  const carries = parts.body.params.slice(1, 1 + parts.carries.length);
  const read = readsFor(parts.body, rows);
  const needed = neededCarries(
    parts.body,
    carries,
    carries.map((carry) => read.has(carry)),
    [],
  );
  const states = carries.flatMap((_, k) => (needed[k] ? [k] : []));
  return {
    forward: node,
    backward: backward.node,
    forwardParts: parts,
    backwardParts: backward.parts,
    stacks,
    states,
    length,
    stateBytes: bytesOf(states.map((k) => at(carries, k))),
    tapeBytes: bytesOf(rows),
  };
}

/** Every pair in a graph, not in its regions. A loop is in one pair at most. */
export function findPairs(graph: Graph): readonly LoopPair[] {
  const loops = graph.nodes.flatMap((node) => sideOf(node) ?? []);
  if (loops.length < 2) return [];
  const producer = producersOf(graph);
  const users = usersOf(graph);
  const results = new Set(graph.results);
  const sides = new Map(loops.map((side) => [side.node, side]));
  const taken = new Set<Node>();
  const pairs: LoopPair[] = [];
  for (const backward of loops) {
    const { node, parts, reverse, length } = backward;
    const onlyHere = (stack: Value): boolean =>
      !results.has(stack) &&
      (users.get(stack) ?? []).every((use) => use.node === node) &&
      node.inputs.filter((input) => input === stack).length === parts.xs.filter((x) => x === stack).length;
    for (const made of new Set(parts.xs.flatMap((x) => producer.get(x) ?? []))) {
      const forward = sides.get(made);
      if (!forward || taken.has(made) || taken.has(node)) continue;
      const fits = forward.length === length && forward.reverse !== reverse && forward.parts.count === parts.count;
      const stacks = forward.parts.ys.filter((y) => parts.xs.includes(y) && onlyHere(y));
      if (!fits || stacks.length === 0) continue;
      taken.add(made).add(node);
      pairs.push(pairOf(made, node, stacks));
    }
  }
  return pairs;
}
