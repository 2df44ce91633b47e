/**
 * @file Names of values in the text of plans. A value that the user named has that name; any other one is named after what
 * made it (ir/label.ts):
 *
 *   block0.attention.qkv          made in scope `block`, by the library's attention, from parameter `qkv`
 *   d_block0.attention.qkv        its cotangent, or a value on the way to it
 *   block0.attention.qkv_re       the same value, recomputed
 *   state_params_w.new            replaces parameter `state_params_w`
 *
 * Names are made unique as in the text of graphs, in the order of the schedule: equal programs get equal names whatever
 * their values' ids are. They are made when something is printed, and no decision of the planner reads them.
 */
import { at } from "../base/invariant.ts";
import type { Node, Value } from "../ir/graph.ts";
import { cotangentOrigin, labelOf, originOf, repeatedParts, type Surroundings, shownValue } from "../ir/label.ts";
import { valueNames } from "../ir/print.ts";
import { allNodes } from "../ir/walk.ts";
import { type PlanStep, type Program, replacementOf } from "./program.ts";

export type NameOf = (value: Value) => string;

type HintOf = (value: Value) => string | undefined;

/** Names every value that a program or one of its nodes mentions, stored or not. */
export function nameValues(program: Program): NameOf {
  const nodes = program.steps.map((step) => ({
    ...step.node,
    outputs: [...step.node.inputs, ...step.writes, ...step.node.outputs],
  }));
  const graph = { name: program.name, params: program.params, nodes, results: program.results };
  const names = valueNames(graph, hintsOf(program));
  return (value) => names.get(value) ?? `#${value.id}`;
}

/** Every node of a program, without those of loops and branches, which are programs with names of their own. */
function nodesOf({ steps }: Program): readonly Node[] {
  const own = steps.map(({ node, bodies }) => (bodies ? { ...node, regions: [] } : node));
  return [...allNodes({ name: "", params: [], nodes: own, results: [] })];
}

function hintsOf(program: Program): HintOf {
  const repeated = repeatedParts(new Set(nodesOf(program).flatMap(({ within }) => within ?? [])));
  const stepOf = new Map(program.steps.flatMap((step) => step.node.outputs.map((value) => [value, step] as const)));
  const replaced = new Map(program.params.map((param) => [replacementOf(program, param), param]));
  const around = surroundingsOf(program);
  const hintOf: HintOf = (value) => {
    if (value.name) return value.name;
    const param = replaced.get(value);
    if (param?.name) return `${param.name}.new`;
    const step = stepOf.get(value);
    if (!step) return paramHint(value);
    const same = step.copy?.from ?? step.alias?.[0];
    if (same) return hintOf(same);
    return bodyHint(step, value) ?? madeName(value, around, repeated);
  };
  const hintsOfBody = new Map<PlanStep, HintOf>();
  /** A result of a loop or branch is named after the result of its body. */
  const bodyHint = (step: PlanStep, value: Value): string | undefined => {
    const { node, bodies: [body] = [] } = step;
    const result = body?.program.results[node.outputs.indexOf(value)];
    if (!body || !result || body.program.results.length !== node.outputs.length) return undefined;
    const inside = hintsOfBody.get(step) ?? hintsOf(body.program);
    hintsOfBody.set(step, inside);
    return resultName(node, inside(result) ?? "", repeated);
  };
  /** Of parameters without names, which bodies of loops have: storage of a result, or an input. */
  const paramHint = (param: Value): string => {
    const result = program.empty?.has(param) ? replacementOf(program, param) : undefined;
    return result && replaced.get(result) === param && !result.name ? `${hintOf(result) ?? "value"}.out` : "input";
  };
  return hintOf;
}

/** Of a loop or branch, for a result that has a name in its body. */
function resultName({ within, op }: Node, inside: string, repeated: ReadonlySet<string>): string | undefined {
  const [, cotangent = "", own] = /^(d_)?(.*?)(?:\.new)?$/.exec(inside) ?? [];
  const loop = labelOf(cotangentOrigin(within)?.within ?? within ?? "", { op: op.name }, repeated);
  return own ? `${cotangent}${loop}.${own}` : undefined;
}

/** Parameters that values are named after: those that stay, where there are any; otherwise all. */
function weightsOf({ params, persistent, donated }: Program): HintOf {
  const staying = params.filter((param) => persistent.has(param) || donated.has(param));
  const weights = new Set((staying.length > 0 ? staying : params).filter(({ name }) => name !== CAPTURED));
  return (value) => (weights.has(value) ? value.name : undefined);
}

/** The name of tensors that a function closes over, which says nothing about them. */
const CAPTURED = "captured";

/** Nodes by the values that they make, through the borders of kernels: as if nothing had been fused. */
function surroundingsOf(program: Program): Surroundings {
  const makers = new Map<Value, Node>();
  /** What a result of a kernel, or a parameter of its nodes, is outside or inside of it. */
  const same = new Map<Value, Value>();
  for (const { node, bodies } of program.steps) {
    const [region] = bodies ? [] : node.regions;
    if (!region) for (const value of node.outputs) makers.set(value, node);
    region?.params.forEach((param, i) => void same.set(param, at(node.inputs, i)));
    region?.results.forEach((result, i) => void same.set(at(node.outputs, i), result));
    for (const inner of region?.nodes ?? []) for (const value of inner.outputs) makers.set(value, inner);
  }
  const source = (value: Value): Value => {
    let now = value;
    for (let next = same.get(now); next; next = same.get(now)) now = next;
    return now;
  };
  const weight = weightsOf(program);
  return { producer: (value) => makers.get(source(value)), weight: (value) => weight(source(value)) };
}

function madeName(value: Value, around: Surroundings, repeated: ReadonlySet<string>): string | undefined {
  const node = around.producer(value);
  if (!node) return undefined;
  const within = (around.producer(shownValue(value, around)) ?? node).within ?? "";
  const cotangent = cotangentOrigin(node.within) ?? cotangentOrigin(within);
  const label = labelOf(cotangent?.within ?? within, cotangent ?? originOf(value, around), repeated);
  if (label === undefined) return undefined;
  if (node.replay > 0) return `${label}_re`;
  return cotangent || node.phase === "backward" ? `d_${label}` : label;
}
