/**
 * @file Operations that are defined by regions: calls, fusion groups, and functions with user-defined derivatives.
 * Each computes its results by running its first region on its inputs; they differ in how other layers treat them.
 *
 *   call         a function applied; with `checkpoint` a request to recompute its inside in the backward pass
 *   fused        nodes that become one kernel; made by the fusion pass, never by users
 *   gated        body     x… → counts, y…            nothing flows back through y… where counts is false
 *   custom_vjp   forward  x… → y…, saved…            backward  saved…, ct of y… → ct of x…
 *   custom_jvp   forward  x… → y…                    tangent   x…, t of x… → t of y…
 *
 * Cotangents and tangents exist only for floats: `ct of y…` has one entry for each float among y…, in order. The saved
 * values are further results of the node, so that the planner sees them like any other.
 */
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import type { Graph } from "../ir/graph.ts";
import type { Cost, EvaluateContext, NoAttrs, OpDef, Reference } from "../ir/op.ts";
import type { TensorType } from "../ir/type.ts";
import { defineOp } from "./define.ts";
import { floats, requireRegions, requireTypes, TRUTH, typesOf } from "./region-checks.ts";

/** Cache of a pure function: a graph never changes. */
const costs = new WeakMap<Graph, Cost>();

/** Floating-point operations of everything in a graph; computed once for each. */
export function graphCost(graph: Graph): Cost {
  const known = costs.get(graph);
  if (known) return known;
  let flops = 0;
  for (const { op, inputs, outputs, attrs, regions } of graph.nodes) {
    flops += op.cost(typesOf(inputs), typesOf(outputs), attrs, regions).flops;
  }
  costs.set(graph, { flops });
  return { flops };
}

/** Checks the region that computes the results and gives their types. */
function inferBody(name: string, inputs: readonly TensorType[], body: Graph): readonly TensorType[] {
  requireTypes(`${name}: region ${body.name} takes`, typesOf(body.params), inputs);
  return typesOf(body.results);
}

/** Fields that all operations with a body share. */
const bodied = {
  lower: { kind: "region" },
  cost: (_: readonly TensorType[], __: readonly TensorType[], ___: unknown, regions: readonly Graph[]): Cost =>
    graphCost(at(regions, 0)),
  evaluate: (c: EvaluateContext<unknown>): readonly Reference[] => c.run(at(c.regions, 0), c.inputs),
  // Samples have no regions; control.test.ts tests these operations in programs.
  samples: () => [],
} as const;

export type CallAttrs = { readonly checkpoint: boolean; readonly name: string };

/** A function applied to the inputs. */
export const call: OpDef<CallAttrs> = defineOp<CallAttrs>({
  ...bodied,
  name: "call",
  defaults: { checkpoint: false, name: "" },
  derivative: {
    kind: "region",
    rule: ({ attrs, regions }) => ({ kind: attrs.checkpoint ? "replay" : "inline", body: at(regions, 0) }),
  },
  infer(inputs, _, regions) {
    requireRegions("call", regions, 1);
    return inferBody("call", inputs, at(regions, 0));
  },
  inlines: 0,
});

/**
 * A function whose first result, a bool, says whether the others count. Where it is false nothing flows back: not even the
 * NaN that zero times an overflow would be.
 */
export const gated: OpDef<NoAttrs> = defineOp<NoAttrs>({
  ...bodied,
  name: "gated",
  derivative: { kind: "region", rule: ({ regions }) => ({ kind: "gated", body: at(regions, 0) }) },
  infer(inputs, _, regions) {
    requireRegions("gated", regions, 1);
    const results = inferBody("gated", inputs, at(regions, 0));
    requireTypes("gated: the first result is", results.slice(0, 1), [TRUTH]);
    return results;
  },
  inlines: 0,
});

/** Nodes that run as one kernel. */
export const fused: OpDef<NoAttrs> = defineOp<NoAttrs>({
  ...bodied,
  name: "fused",
  derivative: { kind: "region" },
  infer(inputs, _, regions) {
    requireRegions("fused", regions, 1);
    return inferBody("fused", inputs, at(regions, 0));
  },
});

/** `results` is the number of results proper; those after them are saved for the backward region. */
export type CustomVjpAttrs = {
  readonly results: number;
  /** The function of the API that made it, as errors name it. */
  readonly maker?: string;
};

/** A function with a user-defined reverse derivative. */
export const customVjp: OpDef<CustomVjpAttrs> = defineOp<CustomVjpAttrs>({
  ...bodied,
  name: "custom_vjp",
  defaults: { maker: "customVjp" },
  derivative: {
    kind: "region",
    rule({ attrs, regions }) {
      const { results, maker = "customVjp" } = attrs as CustomVjpAttrs;
      return { kind: "custom_vjp", maker, results, forward: at(regions, 0), backward: at(regions, 1) };
    },
  },
  infer(inputs, { results }, regions) {
    requireRegions("custom_vjp", regions, 2);
    const all = inferBody("custom_vjp", inputs, at(regions, 0));
    if (!Number.isInteger(results) || results < 1 || results > all.length) {
      const summary = `custom_vjp: results=${results}, but the forward region gives ${all.length}`;
      throw new TidemarkError("InvalidGraph", summary, { help: "results counts the results before the saved values" });
    }
    const backward = at(regions, 1);
    const expected = [...all.slice(results), ...floats(all.slice(0, results))];
    requireTypes(`custom_vjp: region ${backward.name} takes`, typesOf(backward.params), expected);
    requireTypes(`custom_vjp: region ${backward.name} returns`, typesOf(backward.results), floats(inputs));
    return all;
  },
  inlines: 0,
});

/** A function with a user-defined forward derivative. */
export const customJvp: OpDef<NoAttrs> = defineOp<NoAttrs>({
  ...bodied,
  name: "custom_jvp",
  derivative: { kind: "region", rule: ({ regions }) => ({ kind: "custom_jvp", tangent: at(regions, 1) }) },
  infer(inputs, _, regions) {
    requireRegions("custom_jvp", regions, 2);
    const results = inferBody("custom_jvp", inputs, at(regions, 0));
    const tangent = at(regions, 1);
    requireTypes(`custom_jvp: region ${tangent.name} takes`, typesOf(tangent.params), [...inputs, ...floats(inputs)]);
    requireTypes(`custom_jvp: region ${tangent.name} returns`, typesOf(tangent.results), floats(results));
    return results;
  },
  inlines: 0,
});
