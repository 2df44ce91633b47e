/**
 * @file Loops without a bound on their number of iterations, and their reverses. Autodiff produces a `while` and a
 * `rewind` that recomputes states from the first one. If both are in one graph, the `while` may keep states as it runs:
 *
 * ```
 *   while ── count ──> rewind                 →      record ── count, checkpoints ──> rewind {recorded}
 *   c₀ ──────────────────╯
 *   iterations:  l  +  l - 1 + t(l, s) - …    →      l  +  recomputation of the online schedule: one sweep less
 * ```
 *
 * The passes may have removed carries of the `while` that only its reverse needs, and the correspondence between the
 * two loops' carries is not recorded. Carries with the same initial value whose next values are computed by equal nodes
 * are the same; any other carry of the reverse is added to the loop that keeps states.
 */
import { at } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import { type Loop, loopOf, type Reversal, reversalOf } from "../ir/control.ts";
import { type Graph, type Node, newValue, type Value } from "../ir/graph.ts";
import type { AnyOp, Attrs } from "../ir/op.ts";
import { byteLength } from "../ir/type.ts";
import { usersOf } from "../ir/walk.ts";
import { assumedIterations } from "../ops/loops.ts";
import { type RecordAttrs, record } from "../ops/record.ts";
import { INDEX } from "../ops/region-checks.ts";
import { cse } from "../passes/cse.ts";
import { dce } from "../passes/dce.ts";
import { readsFor } from "../passes/narrow.ts";
import { leastAdvances } from "./binomial.ts";
import { rewindFrom, storeFor } from "./replacement.ts";

/** A reverse without a bound, and its loop if that can keep states for it. */
export interface OpenPair {
  readonly forward: Node | null;
  readonly backward: Node;
  readonly reversal: Reversal;
  /** Of one state of the reverse. */
  readonly stateBytes: number;
}

/** Iterations recomputed with a number of states, for the number of iterations that cost estimates assume. */
export const openAdvances = (checkpoints: number): number => {
  const iterations = assumedIterations(0);
  return Math.max(0, leastAdvances(iterations, Math.min(checkpoints, iterations)) - (iterations - 1));
};

/** A reverse without a bound that recomputes states from the first one. */
function openReversal(node: Node): Reversal | null {
  const reversal = reversalOf(node);
  return reversal && !reversal.isRecorded && reversal.length === 0 ? reversal : null;
}

/** Every reverse without a bound in a graph, excluding its regions. */
export function findOpenPairs(graph: Graph): readonly OpenPair[] {
  const backwards = graph.nodes.filter((node) => openReversal(node) !== null);
  if (backwards.length === 0) return [];
  const users = usersOf(graph);
  const loops = graph.nodes.filter((node) => {
    const loop = loopOf(node);
    return loop && !loop.isBounded && !loop.recording;
  });
  const makerOf = new Map(loops.map((node) => [loopOf(node)?.iterations, node]));
  return backwards.flatMap((backward) => {
    const reversal = openReversal(backward);
    if (!reversal) return [];
    const { count, states } = reversal;
    // If a loop has several reverses, each recomputes states from the first one.
    const isOnly = (users.get(count) ?? []).filter(({ node }) => reversalOf(node)?.isRecorded === false).length === 1;
    const forward = (isOnly ? makerOf.get(count) : undefined) ?? null;
    const stateBytes = states.reduce((sum, { type }) => sum + byteLength(type), 0);
    return [{ forward, backward, reversal, stateBytes }];
  });
}

/** A reverse with `checkpoints` states, of a loop that keeps none. */
export function withCheckpoints(node: Node, checkpoints: number): Node {
  const iterations = assumedIterations(0);
  return { ...node, attrs: { ...node.attrs, checkpoints, advances: openAdvances(checkpoints) + iterations - 1 } };
}

/** The joined body, and for each carry of the reverse the loop's carry that equals it, or null if it has none. */
interface Joined {
  readonly body: Graph;
  readonly same: readonly (number | null)[];
  readonly consts: readonly Value[];
}

/** Joins the two bodies assuming the correspondence `same`; wrong entries are null in the result. */
function joinOnce(loop: Loop, back: Reversal, same: readonly (number | null)[]): Joined {
  const { carries, consts, body } = loop;
  const { states, consts: backConsts, step } = back;
  const b = new Build(body.name);
  const index = b.param(INDEX, "i");
  const ownCarries = carries.map(({ type, name }) => b.param(type, name));
  const extra = new Map(states.flatMap((s, k) => (same[k] === null ? [[k, b.param(s.type, s.name)] as const] : [])));
  const wanted = step.results.filter((_, k) => same[k] === null);
  const read = readsFor(step, wanted);
  const firstConst = 1 + states.length;
  const more = backConsts.filter((value, k) => read.has(at(step.params, firstConst + k)) && !consts.includes(value));
  const all = [...new Set([...consts, ...more])];
  const bound = new Map(all.map((value) => [value, b.param(value.type, value.name)]));
  const constant = (value: Value): Value => bound.get(value) ?? value;
  const inlined = b.inline(body, [index, ...ownCarries, ...consts.map(constant)]);
  const state = states.map((_, k) => at(ownCarries, same[k] ?? 0)).map((own, k) => extra.get(k) ?? own);
  const again = b.inline(step, [index, ...state, ...backConsts.map(constant)]);
  const { results, ...graph } = cse.run(b.finish([...inlined, ...again]));
  const kept = results.slice(0, inlined.length);
  const next = results.slice(inlined.length);
  const agreed = same.map((j, k) => (j !== null && kept[j] === next[k] ? j : null));
  const added = next.filter((_, k) => same[k] === null);
  return { body: dce.run({ ...graph, results: [...kept, ...added] }), same: agreed, consts: all };
}

function joinBodies(loop: Loop, back: Reversal): Joined {
  const { carries } = loop;
  const taken = new Set<number>();
  let same: readonly (number | null)[] = back.states.map((value) => {
    const j = carries.findIndex((carry, n) => carry === value && !taken.has(n));
    taken.add(j);
    return j < 0 ? null : j;
  });
  for (;;) {
    const joined = joinOnce(loop, back, same);
    if (joined.same.every((j, k) => j === same[k])) return joined;
    same = joined.same;
  }
}

/** The test with additional, unused carries and constants. */
function widened(test: Graph, { carries, consts }: Loop, extra: readonly Value[], all: readonly Value[]): Graph {
  const constParams = test.params.slice(carries.length);
  const unread = ({ type, name }: Value): Value => newValue(type, name);
  const rest = all.map((value) => constParams[consts.indexOf(value)] ?? unread(value));
  return { ...test, params: [...test.params.slice(0, carries.length), ...extra.map(unread), ...rest] };
}

/** The nodes that replace the two; null if the loop would need a value that is computed after it. */
export function recordOpen(
  graph: Graph,
  loop: Node,
  { backward: back, reversal }: OpenPair,
  checkpoints: number,
): { readonly forward: Node; readonly backward: Node } | null {
  const parts = loopOf(loop);
  if (!parts?.test || !parts.iterations) return null;
  const { states, adjoints, consts, count } = reversal;
  const { body, same, consts: all } = joinBodies(parts, reversal);
  const extra = states.filter((_, k) => same[k] === null);
  const before = new Set(graph.nodes.slice(0, graph.nodes.indexOf(loop)).flatMap(({ outputs }) => outputs));
  if (![...extra, ...all].every((value) => before.has(value) || graph.params.includes(value))) return null;
  const carries = [...parts.carries, ...extra];
  const added = states.flatMap((_, k) => (same[k] === null ? [k] : []));
  const split = { checkpoints, split: "online", every: 0 };
  const store = storeFor(
    states.map(({ type }) => type),
    split,
  );
  const shape = { xs: 0, length: 0, reverse: false, taped: 0 };
  const recordAttrs: RecordAttrs = {
    ...{ ...shape, ...split, carries: carries.length, counted: false },
    states: states.map((_, k) => same[k] ?? parts.carries.length + added.indexOf(k)),
  };
  const last = extra.map(({ type, name }) => newValue(type, name));
  const forward: Node = {
    ...loop,
    op: record as AnyOp,
    inputs: [...carries, ...all],
    attrs: recordAttrs as Attrs,
    outputs: [...parts.last, ...last, ...store, parts.iterations],
    regions: [widened(parts.test, parts, extra, all), body],
  };
  const backward = rewindFrom(back, {
    count,
    store,
    rest: [...adjoints, ...consts],
    attrs: { ...shape, ...split, adjoints: adjoints.length, advances: openAdvances(checkpoints), tapes: 0 },
    regions: back.regions,
  });
  return { forward, backward };
}
