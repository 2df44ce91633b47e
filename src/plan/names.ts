/**
 * @file Names of values in the text of plans: the same rules as in the text of graphs, applied to all values of the
 * schedule in order. Equal programs get equal names whatever their values' ids are.
 */
import type { Value } from "../ir/graph.ts";
import { namer } from "../ir/print.ts";
import type { Program } from "./program.ts";

export type NameOf = (value: Value) => string;

/** Names every value that a program or one of its nodes mentions, stored or not. */
export function nameValues(program: Program): NameOf {
  const nodes = program.steps.map((step) => ({
    ...step.node,
    outputs: [...step.node.inputs, ...step.writes, ...step.node.outputs],
  }));
  return namer({ name: program.name, params: program.params, nodes, results: program.results });
}
