/**
 * @file Finds loops and their reverses in a graph: a loop stacks one row per iteration of the values that its reverse
 * reads, and nothing else reads these stacks. Instead of the stacks, some states of the loop can be kept and the rows
 * recomputed from them:
 *
 * ```
 *   forward   c₀ ─ step ─ step ─ … ─ c        stacks   [ r₀ │ r₁ │ … ]     length rows of `tapeBytes`
 *   reverse   a₀ ─ back ─ back ─ … ─ a        reads them from the last to the first
 * ```
 *
 * Only the part of the loop's state that rows depend on, directly or through later iterations, is needed: the carries
 * in `states`.
 */
import { at, invariant } from "../base/invariant.ts";
import { type Loop, loopOf } from "../ir/control.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { producersOf, usersOf } from "../ir/walk.ts";
import { neededCarries, readsFor } from "../passes/narrow.ts";
import { alignUp } from "../plan/problem.ts";

/** Alignment of rows and states that are stored consecutively. */
const ALIGN = 4;

export interface LoopPair {
  readonly forward: Node;
  readonly backward: Node;
  /** The operands and bodies of both loops; `forwardParts.count` of a `while` is the number of iterations it ran. */
  readonly forwardParts: Loop;
  readonly backwardParts: Loop;
  /** Stacks of the forward loop that only its reverse reads. */
  readonly stacks: readonly Value[];
  /** Indices of the forward loop's carries that rows of these stacks depend on. */
  readonly states: readonly number[];
  readonly length: number;
  /** Of one state, and of one row of all stacks. */
  readonly stateBytes: number;
  readonly tapeBytes: number;
}

/** One of the two loops; the count of a `while` is the number of iterations it ran. */
function sideOf(node: Node): Loop | null {
  const loop = loopOf(node);
  if (!loop || loop.recording || !loop.isBounded) return null;
  return loop.iterations ? { ...loop, count: loop.iterations } : loop;
}

/** The body's results that become rows of some stacks. */
export function rowsOf({ body, carries, ys }: Loop, stacks: readonly Value[]): readonly Value[] {
  return stacks.map((stack) => at(body.results, carries.length + ys.indexOf(stack)));
}

const bytesOf = (values: readonly Value[]): number =>
  values.reduce((sum, { type }) => sum + alignUp(byteLength(type), ALIGN), 0);

/** The pair of a loop and its reverse with the stacks between them. */
export function pairOf(loop: Node, reversed: Node, stacks: readonly Value[]): LoopPair {
  const [forward, backward] = [sideOf(loop), sideOf(reversed)];
  invariant(forward && backward, () => `${loop.op.name} and ${reversed.op.name} are not a loop and its reverse`);
  const { body, length } = forward;
  const rows = rowsOf(forward, stacks);
  const carries = body.params.slice(1, 1 + forward.carries.length);
  const read = readsFor(body, rows);
  const needed = neededCarries(
    body,
    carries,
    carries.map((carry) => read.has(carry)),
    [],
  );
  const states = carries.flatMap((_, k) => (needed[k] ? [k] : []));
  return {
    forward: loop,
    backward: reversed,
    forwardParts: forward,
    backwardParts: backward,
    stacks,
    states,
    length,
    stateBytes: bytesOf(states.map((k) => at(carries, k))),
    tapeBytes: bytesOf(rows),
  };
}

/** Every pair in a graph, not in its regions. A loop is in one pair at most. */
export function findPairs(graph: Graph): readonly LoopPair[] {
  const sides = new Map(
    graph.nodes.flatMap((node) => {
      const side = sideOf(node);
      return side ? [[node, side] as const] : [];
    }),
  );
  if (sides.size < 2) return [];
  const producer = producersOf(graph);
  const users = usersOf(graph);
  const results = new Set(graph.results);
  const taken = new Set<Node>();
  const pairs: LoopPair[] = [];
  for (const [node, { xs, reverse, length, count }] of sides) {
    const onlyHere = (stack: Value): boolean =>
      !results.has(stack) &&
      (users.get(stack) ?? []).every((use) => use.node === node) &&
      node.inputs.filter((input) => input === stack).length === xs.filter((x) => x === stack).length;
    for (const loop of new Set(xs.flatMap((x) => producer.get(x) ?? []))) {
      const forward = sides.get(loop);
      if (!forward || taken.has(loop) || taken.has(node)) continue;
      const fits = forward.length === length && forward.reverse !== reverse && forward.count === count;
      const stacks = forward.ys.filter((y) => xs.includes(y) && onlyHere(y));
      if (!fits || stacks.length === 0) continue;
      taken.add(loop).add(node);
      pairs.push(pairOf(loop, node, stacks));
    }
  }
  return pairs;
}
