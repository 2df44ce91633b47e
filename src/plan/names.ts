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
import type { Value } from "../ir/graph.ts";
import { nodeNames } from "../ir/node-names.ts";
import { namer } from "../ir/print.ts";
import { type PlanStep, type Program, replacementOf } from "./program.ts";

export type NameOf = (value: Value) => string;

type HintOf = (value: Value) => string | undefined;

/** Names every value that a program or one of its nodes mentions, stored or not. */
export function nameValues(program: Program): NameOf {
  const nodes = program.steps.map((step) => ({
    ...step.node,
    outputs: [...step.node.inputs, ...step.writes, ...step.node.outputs],
  }));
  return namer({ name: program.name, params: program.params, nodes, results: program.results }, hintsOf(program));
}

function hintsOf(program: Program): HintOf {
  const names = nodeNames(
    program.steps.map(({ node }) => node),
    weightsOf(program),
  );
  const stepOf = new Map(program.steps.flatMap((step) => step.node.outputs.map((value) => [value, step] as const)));
  const replaced = new Map(program.params.map((param) => [replacementOf(program, param), param]));
  const hintOf: HintOf = (value) => {
    if (value.name) return value.name;
    const param = replaced.get(value);
    if (param?.name) return `${param.name}.new`;
    const step = stepOf.get(value);
    if (!step) return paramHint(value);
    const same = step.copy?.from ?? step.alias?.[0];
    if (same) return hintOf(same);
    return bodyHint(step, value) ?? names.value(value);
  };
  const hintsOfBody = new Map<PlanStep, HintOf>();
  /** A result of a loop or branch is named after the result of its body. */
  const bodyHint = (step: PlanStep, value: Value): string | undefined => {
    const { node, bodies: [body] = [] } = step;
    const result = body?.program.results[node.outputs.indexOf(value)];
    if (!body || !result || body.program.results.length !== node.outputs.length) return undefined;
    const inside = hintsOfBody.get(step) ?? hintsOf(body.program);
    hintsOfBody.set(step, inside);
    const [, cotangent = "", own] = /^(d_)?(.*?)(?:\.new)?$/.exec(inside(result) ?? "") ?? [];
    return own ? `${cotangent}${names.node(node)}.${own}` : undefined;
  };
  /** Of parameters without names, which bodies of loops have: storage of a result, or an input. */
  const paramHint = (param: Value): string => {
    const result = program.empty?.has(param) ? replacementOf(program, param) : undefined;
    return result && replaced.get(result) === param && !result.name ? `${hintOf(result) ?? "value"}.out` : "input";
  };
  return hintOf;
}

/** Parameters that values are named after: those that stay, where there are any; otherwise all. */
function weightsOf({ params, persistent, donated, steps }: Program): HintOf {
  const staying = params.filter((param) => persistent.has(param) || donated.has(param));
  const weights = new Set((staying.length > 0 ? staying : params).filter(({ name }) => name !== CAPTURED));
  // fetched from another memory they are what they are there
  for (const { copy } of steps) if (copy && weights.has(copy.from)) weights.add(copy.to);
  return (value) => (weights.has(value) ? value.name : undefined);
}

/** The name of tensors that a function closes over, which says nothing about them. */
const CAPTURED = "captured";
