/**
 * @file The two nodes that a loop and its reverse become when the stacks between them are not kept.
 *
 *   rows from nothing but inputs   scan     and  scan       no state is needed: rows are made again in place
 *   the number of turns is known   record   and  rewind     the forward loop holds states on its way
 *   it shows at the end (while)    record_while and rewind  the same; which states these are is decided as they come
 */
import { at, invariant } from "../base/invariant.ts";
import { type Graph, type Node, newValue, type Value } from "../ir/graph.ts";
import type { AnyOp, Attrs } from "../ir/op.ts";
import { tensorType } from "../ir/type.ts";
import { type FullAttrs, full } from "../ops/create.ts";
import { type ScanAttrs, type WhileAttrs, whileLoop } from "../ops/loops.ts";
import { type RecordWhileAttrs, recordWhile } from "../ops/record-while.ts";
import { INDEX, stackType } from "../ops/region-checks.ts";
import { NOT_TAPED, placesType, type RecordAttrs, type RewindAttrs, record, rewind } from "../ops/rewind.ts";
import { dce } from "../passes/dce.ts";
import { type LoopPair, rowsOf } from "./pairs.ts";
import type { Inputs } from "./regions.ts";
import type { Schedule } from "./schedules.ts";

/** Bodies by what they were made from and for which stacks: made once, so that whoever plans them can plan them once. */
const known = new WeakMap<Graph, { readonly stacks: readonly Value[]; readonly lean: Graph; readonly full: Graph }>();

/** The forward body without rows of the stacks, and with these rows last. */
function bodiesOf({ forwardParts, stacks }: LoopPair): { readonly lean: Graph; readonly full: Graph } {
  const { body, carries, ys } = forwardParts;
  const found = known.get(body);
  if (found?.stacks.length === stacks.length && found.stacks.every((stack, n) => stack === stacks[n])) return found;
  const own = ys.flatMap((y, n) => (stacks.includes(y) ? [] : [at(body.results, carries.length + n)]));
  const results = [...body.results.slice(0, carries.length), ...own];
  const lean = dce.run({ ...body, results });
  const full = { ...body, name: `${body.name}_full`, results: [...results, ...rowsOf(forwardParts, stacks)] };
  known.set(body, { stacks, lean, full });
  return { lean, full };
}

/** A forward loop without the stacks, with results of its own at the end. */
function withoutStacks(pair: LoopPair): Node {
  const { forward, stacks } = pair;
  const last = forward.regions.length - 1;
  const regions = forward.regions.map((region, n) => (n === last ? bodiesOf(pair).lean : region));
  return { ...forward, outputs: forward.outputs.filter((value) => !stacks.includes(value)), regions };
}

/** What stands in the places of the two loops. */
export interface Replacement {
  readonly forward: Node;
  readonly backward: readonly Node[];
}

/** A constant beside a node. */
function constantFor(node: Node, attrs: FullAttrs): Node {
  const type = tensorType(attrs.dtype, attrs.shape);
  return { ...node, op: full as AnyOp, inputs: [], attrs: { ...attrs }, outputs: [newValue(type)], regions: [] };
}

/** First adjoints, each a value of its own where it is a constant: one that is read twice cannot be written over. */
function ownAdjoints({ backward, backwardParts }: LoopPair, producer: ReadonlyMap<Value, Node>) {
  const constants: Node[] = [];
  const adjoints = backwardParts.carries.map((value, i, all) => {
    const made = producer.get(value);
    if (made?.op !== full || all.indexOf(value) === i) return value;
    const constant = constantFor(backward, made.attrs as FullAttrs);
    constants.push(constant);
    return at(constant.outputs, 0);
  });
  return { adjoints, constants };
}

/** A pair in its new form; `regions` are step and back. */
export function replacementOf(
  pair: LoopPair,
  schedule: Schedule,
  { rows, consts }: Inputs,
  regions: StepAndBack,
  producer: ReadonlyMap<Value, Node>,
): Replacement {
  const { adjoints, constants } = ownAdjoints(pair, producer);
  const given: Given = { adjoints, rest: [...rows.outer, ...consts.outer], xs: rows.outer.length };
  const held = pair.forward.op === whileLoop ? unwound : rewound;
  const make = pair.kept.length === 0 ? rescanned : held;
  const { forward, backward } = make(pair, schedule, given, regions);
  return { forward, backward: [...constants, ...backward] };
}

interface StepAndBack {
  readonly step: Graph;
  readonly back: Graph;
  readonly tail: Graph;
}

/** Inputs of the reverse; the first `xs` of `rest` are stacks. */
interface Given {
  readonly adjoints: readonly Value[];
  readonly rest: readonly Value[];
  readonly xs: number;
}

function rescanned(pair: LoopPair, _: Schedule, { adjoints, rest, xs }: Given, { back }: StepAndBack): Replacement {
  const { backward, backwardParts } = pair;
  const { count } = backwardParts;
  const attrs = { ...(backward.attrs as ScanAttrs), xs };
  const inputs = [...(count ? [count] : []), ...adjoints, ...rest];
  return { forward: withoutStacks(pair), backward: [{ ...backward, inputs, attrs, regions: [back] }] };
}

/** A `while` that holds states as they come: it does not know which turn is its last. */
function unwound(
  pair: LoopPair,
  { slots, advances }: Schedule,
  { adjoints, rest, xs }: Given,
  made: StepAndBack,
): Replacement {
  const { backward, backwardParts, forward: loop, kept, length } = pair;
  const { count } = backwardParts;
  invariant(count, () => "the reverse of a while has no count");
  const storage = (): readonly Value[] => [
    ...kept.map((k) => newValue(stackType(at(loop.outputs, k).type, slots + 1), "held")),
    newValue(placesType(slots), "places"),
  ];
  const [held, after] = [storage(), storage()];
  const plain = withoutStacks(pair);
  const recordAttrs: RecordWhileAttrs = { ...(plain.attrs as WhileAttrs), slots, kept };
  const forward: Node = {
    ...plain,
    op: recordWhile as AnyOp,
    attrs: recordAttrs as Attrs,
    outputs: [...plain.outputs.slice(0, -1), ...held, ...plain.outputs.slice(-1)],
  };
  const shape = { states: kept.length, adjoints: adjoints.length, xs, length, reverse: false };
  const attrs: RewindAttrs = { ...shape, ...NOT_TAPED, slots, split: "online", every: 0, advances };
  const node: Node = {
    ...backward,
    op: rewind as AnyOp,
    inputs: [count, at(held, held.length - 1), ...held.slice(0, -1), ...adjoints, ...rest],
    attrs: attrs as Attrs,
    outputs: [...backward.outputs, ...after],
    regions: [made.step, made.back],
  };
  return { forward, backward: [node] };
}

function rewound(pair: LoopPair, schedule: Schedule, { adjoints, rest, xs }: Given, made: StepAndBack): Replacement {
  const { forward, backward, backwardParts, kept, length, stacks } = pair;
  const { advances, taped, ...rule } = schedule;
  const rows = rule.slots + 1;
  const storage = (): readonly Value[] => [
    ...kept.map((k) => newValue(stackType(at(forward.outputs, k).type, rows), "held")),
    newValue(tensorType("i32", [rows]), "turns"),
  ];
  const [held, after] = [storage(), storage()];
  const plain = withoutStacks(pair);
  const { reversal: _, snapshots: __, ...own } = plain.attrs as ScanAttrs;
  const recordAttrs: RecordAttrs = { ...own, ...rule, kept, taped };
  const tapes =
    taped === 0
      ? []
      : rowsOf(pair.forwardParts, stacks).map((row, n) => newValue(stackType(row.type, taped), at(stacks, n).name));
  const recorded: Node = {
    ...plain,
    op: record as AnyOp,
    attrs: recordAttrs as Attrs,
    outputs: [...plain.outputs, ...tapes, ...held],
    regions: taped === 0 ? plain.regions : [...plain.regions, bodiesOf(pair).full],
  };
  const counter = backwardParts.count ? [] : [constantFor(backward, { ...INDEX, value: length })];
  const count = backwardParts.count ?? at(at(counter, 0).outputs, 0);
  const shape = { states: kept.length, adjoints: adjoints.length, xs, length, reverse: own.reverse };
  const attrs: RewindAttrs = { ...shape, ...rule, advances, taped, tapes: tapes.length };
  const node: Node = {
    ...backward,
    op: rewind as AnyOp,
    inputs: [count, at(held, held.length - 1), ...held.slice(0, -1), ...adjoints, ...rest, ...tapes],
    attrs: attrs as Attrs,
    outputs: [...backward.outputs, ...after],
    regions: taped === 0 ? [made.step, made.back] : [made.step, made.back, made.tail],
  };
  return { forward: recorded, backward: [...counter, node] };
}
