/**
 * @file The two nodes that replace a loop and its reverse when the stacks between them are not kept.
 *
 *   rows computed from inputs only  scan   and  scan         no state is needed: rows are recomputed in the reverse
 *   any other                       record and  rewind       the forward loop keeps states as it runs
 */
import { at } from "../base/invariant.ts";
import { type Graph, type Node, newValue, type Value } from "../ir/graph.ts";
import type { AnyOp, Attrs } from "../ir/op.ts";
import { type TensorType, tensorType } from "../ir/type.ts";
import { type FullAttrs, full } from "../ops/create.ts";
import type { ScanAttrs } from "../ops/loops.ts";
import { positionsType, type RecordAttrs, record, type SplitAttrs } from "../ops/record.ts";
import { INDEX, stackType } from "../ops/region-checks.ts";
import { type RewindAttrs, rewind } from "../ops/rewind.ts";
import { dce } from "../passes/dce.ts";
import { type LoopPair, rowsOf } from "./pairs.ts";
import type { RegionInputs } from "./regions.ts";
import type { LoopSchedule } from "./schedules.ts";

/** Cached bodies, keyed by the forward body and its stacks, so that each is planned only once. */
const bodiesByGraph = new WeakMap<
  Graph,
  { readonly stacks: readonly Value[]; readonly lean: Graph; readonly full: Graph }
>();

/** The forward body without the stacks' rows, and with these rows as its last results. */
function bodiesOf({ forwardParts, stacks }: LoopPair): { readonly lean: Graph; readonly full: Graph } {
  const { body, carries, ys } = forwardParts;
  const cached = bodiesByGraph.get(body);
  if (cached?.stacks.length === stacks.length && cached.stacks.every((stack, n) => stack === stacks[n])) return cached;
  const otherRows = ys.flatMap((y, n) => (stacks.includes(y) ? [] : [at(body.results, carries.length + n)]));
  const results = [...body.results.slice(0, carries.length), ...otherRows];
  const lean = dce.run({ ...body, results });
  const full = { ...body, name: `${body.name}_full`, results: [...results, ...rowsOf(forwardParts, stacks)] };
  bodiesByGraph.set(body, { stacks, lean, full });
  return { lean, full };
}

/** The forward loop without the stacks. */
function withoutStacks(pair: LoopPair): Node {
  const { forward, stacks } = pair;
  const last = forward.regions.length - 1;
  const regions = forward.regions.map((region, n) => (n === last ? bodiesOf(pair).lean : region));
  return { ...forward, outputs: forward.outputs.filter((value) => !stacks.includes(value)), regions };
}

/** The nodes that replace the two loops. */
export interface Replacement {
  readonly forward: Node;
  readonly backward: readonly Node[];
}

/** A constant node next to `node`. */
function constantFor(node: Node, attrs: FullAttrs): Node {
  const type = tensorType(attrs.dtype, attrs.shape);
  return { ...node, op: full as AnyOp, inputs: [], attrs: { ...attrs }, outputs: [newValue(type)], regions: [] };
}

/**
 * Initial adjoints, with a separate constant node for each constant: a value that is read twice cannot be overwritten.
 */
function distinctAdjoints({ backward, backwardParts }: LoopPair, producer: ReadonlyMap<Value, Node>) {
  const constants: Node[] = [];
  const adjoints = backwardParts.carries.map((value, i, all) => {
    const producerNode = producer.get(value);
    const number = producerNode?.op.facts?.constant?.(producerNode.attrs);
    if (number === undefined || all.indexOf(value) === i) return value;
    const constant = constantFor(backward, { ...value.type, value: number });
    constants.push(constant);
    return at(constant.outputs, 0);
  });
  return { adjoints, constants };
}

/** The replacement of a pair. */
export function replacementOf(
  pair: LoopPair,
  schedule: LoopSchedule,
  { inputs: { rows, consts }, regions }: ReverseRegions,
  producer: ReadonlyMap<Value, Node>,
): Replacement {
  const { adjoints, constants } = distinctAdjoints(pair, producer);
  const given: ReverseInputs = { adjoints, rest: [...rows.outer, ...consts.outer], xs: rows.outer.length };
  const make = pair.states.length === 0 ? rescanned : recorded;
  const { forward, backward } = make(pair, schedule, given, regions);
  return { forward, backward: [...constants, ...backward] };
}

/** Regions and inputs of a reverse from states, for any number of states. */
export interface ReverseRegions {
  readonly inputs: RegionInputs;
  readonly regions: StepAndBack;
}

interface StepAndBack {
  readonly step: Graph;
  readonly back: Graph;
  readonly tail: Graph;
}

/** Inputs of the reverse; the first `xs` of `rest` are stacks. */
interface ReverseInputs {
  readonly adjoints: readonly Value[];
  readonly rest: readonly Value[];
  readonly xs: number;
}

function rescanned(
  pair: LoopPair,
  _: LoopSchedule,
  { adjoints, rest, xs }: ReverseInputs,
  { back }: StepAndBack,
): Replacement {
  const { backward, backwardParts } = pair;
  const { count } = backwardParts;
  const attrs = { ...(backward.attrs as ScanAttrs), xs };
  const inputs = [...(count ? [count] : []), ...adjoints, ...rest];
  return { forward: withoutStacks(pair), backward: [{ ...backward, inputs, attrs, regions: [back] }] };
}

/** The values of a store: a stack of states, and the list of their positions. */
export function storeFor(states: readonly TensorType[], split: SplitAttrs): readonly Value[] {
  const stacks = states.map((type) => newValue(stackType(type, split.checkpoints + 1), "store"));
  return [...stacks, newValue(positionsType(split), "positions")];
}

/** Parts of a reverse that starts from a store; `rest` are its inputs from the adjoints on. */
interface FromStore {
  readonly count: Value;
  readonly store: readonly Value[];
  readonly rest: readonly Value[];
  readonly attrs: Omit<RewindAttrs, "recorded" | "wrt" | "states">;
  readonly regions: readonly Graph[];
}

/** A reverse that starts from a store and updates it in place. */
export function rewindFrom(backward: Node, { count, store, rest, attrs, regions }: FromStore): Node {
  const [states, positions] = [store.slice(0, -1), at(store, store.length - 1)];
  const after = store.map(({ type, name }) => newValue(type, name));
  const all: RewindAttrs = { ...attrs, recorded: true, wrt: [], states: states.length };
  return {
    ...backward,
    op: rewind as AnyOp,
    inputs: [count, positions, ...states, ...rest],
    attrs: all as Attrs,
    outputs: [...backward.outputs, ...after],
    regions,
  };
}

/**
 * A `while` selects states online, because its last iteration is not known beforehand; any other loop follows a
 * schedule.
 */
function recorded(
  pair: LoopPair,
  schedule: LoopSchedule,
  { adjoints, rest, xs }: ReverseInputs,
  regions: StepAndBack,
): Replacement {
  const { forward, backward, backwardParts, states, length, stacks } = pair;
  const { advances, taped, ...rule } = schedule;
  const isOnline = pair.forwardParts.test !== null;
  const split: SplitAttrs = isOnline ? { checkpoints: rule.checkpoints, split: "online", every: 0 } : rule;
  const store = storeFor(
    states.map((k) => at(forward.outputs, k).type),
    split,
  );
  const plain = withoutStacks(pair);
  const {
    carries,
    xs: read,
    reverse,
    counted,
  } = { xs: 0, reverse: false, counted: false, ...plain.attrs } as ScanAttrs;
  const recordAttrs: RecordAttrs = { carries, xs: read, length, reverse, counted, ...split, states, taped };
  const tapes =
    taped === 0
      ? []
      : rowsOf(pair.forwardParts, stacks).map((row, n) => newValue(stackType(row.type, taped), at(stacks, n).name));
  // The number of iterations of a while is its last result.
  const ownOutputs = plain.outputs.length - (isOnline ? 1 : 0);
  const loop: Node = {
    ...plain,
    op: record as AnyOp,
    attrs: recordAttrs as Attrs,
    outputs: [...plain.outputs.slice(0, ownOutputs), ...tapes, ...store, ...plain.outputs.slice(ownOutputs)],
    regions: taped === 0 ? plain.regions : [...plain.regions, bodiesOf(pair).full],
  };
  const counter = backwardParts.count ? [] : [constantFor(backward, { ...INDEX, value: length })];
  const node = rewindFrom(backward, {
    count: backwardParts.count ?? at(at(counter, 0).outputs, 0),
    store,
    rest: [...adjoints, ...rest, ...tapes],
    attrs: { adjoints: adjoints.length, xs, length, reverse, ...split, advances, taped, tapes: tapes.length },
    regions: taped === 0 ? [regions.step, regions.back] : [regions.step, regions.back, regions.tail],
  });
  return { forward: loop, backward: [...counter, node] };
}
