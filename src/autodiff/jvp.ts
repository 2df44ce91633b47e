/**
 * @file Forward mode as a transformation of graphs: params ++ tangents of the active parameters → results ++ tangents of
 * the float results. A node's tangent follows the node directly, so that memory is that of the primals plus one
 * tangent for each live primal. A tangent of zero is null, and becomes a tensor only if it is a result.
 */

import { TidemarkError } from "../base/errors.ts";
import { invariant } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { newValue, nodeLike } from "../ir/graph.ts";
import type { RegionRule } from "../ir/op.ts";
import { isFloat } from "../kernel/dtype.ts";
import { full, fullAttrs, fullLike } from "../ops/create.ts";
import { activeInputs, usefulNodes } from "./activity.ts";
import { type Pushed, pushControl, type Transformed } from "./jvp-control.ts";
import { pushforwardOfNode } from "./local.ts";
import { regionRule } from "./region.ts";

const tangentName = (value: Value): string => `t_${value.name ?? "value"}`;

function noForwardMode(maker: string, { where }: Node): TidemarkError {
  const other =
    maker === "customVjp"
      ? "give the rule with customJvp, which serves both modes"
      : "apply the plain function in its place, which has both modes";
  const help = `use reverse mode (grad, vjp), or ${other}`;
  return new TidemarkError("NotDifferentiable", `a ${maker} function has no forward-mode derivative`, { where, help });
}

/** Nodes that compute the same as an operation without regions, whose tangents are its tangents. */
function expansionOf(rule: RegionRule, node: Node): Graph | null {
  if (node.regions.length > 0) return null;
  if (rule.kind === "custom_vjp") return rule.expansion ?? null;
  return rule.kind === "replay" ? rule.body : null;
}

class Forward {
  readonly b: Build;
  readonly #map = new Map<Value, Value>();
  /** By value of the new graph. */
  readonly #tangents = new Map<Value, Value>();

  constructor(graph: Graph) {
    this.b = new Build(`${graph.name}_jvp`);
  }

  #resolve(value: Value): Value {
    const found = this.#map.get(value);
    invariant(found, () => `value ${value.name ?? value.id} is not defined before its use`);
    return found;
  }

  #define(node: Node, outputs: readonly Value[]): void {
    node.outputs.forEach((value, i) => {
      this.#map.set(value, outputs[i] as Value);
    });
  }

  #copy(node: Node, inputs: readonly Value[]): Node {
    const outputs = node.outputs.map((value) => newValue(value.type, value.name));
    const copy = nodeLike(node, { inputs, outputs });
    this.b.append(copy);
    this.#define(node, outputs);
    return copy;
  }

  #step(node: Node, useful: boolean): void {
    const { b } = this;
    const inputs = node.inputs.map((value) => this.#resolve(value));
    const active = activeInputs(node, inputs, (value) => this.#tangents.has(value));
    if (active.length === 0 || !useful) {
      this.#copy(node, inputs);
      return;
    }
    b.phase = node.phase;
    b.where = node.where;
    b.within = node.within;
    b.replay = node.replay;
    const rule = regionRule(node);
    if (rule) {
      this.#region(rule, nodeLike(node, { inputs }), active);
      return;
    }
    const copy = this.#copy(node, inputs);
    const tangents = inputs.map((value) => this.#tangents.get(value) ?? null);
    pushforwardOfNode(b, copy, active, tangents).forEach((tangent, i) => {
      if (tangent) this.#tangents.set(copy.outputs[i] as Value, tangent);
    });
  }

  /** Tangents of a node's results from nodes that compute the same. */
  #tangentsThrough(body: Graph, { inputs, outputs, phase, where }: Node, active: readonly number[]) {
    const which = inputs.map((_, i) => active.includes(i));
    const { graph, tangentOf } = transform(body, which, false);
    const given = active.map((i) => this.#tangents.get(inputs[i] as Value) as Value);
    const made = this.b.inline(graph, [...inputs, ...given], { phase, where });
    return tangentOf.map((at) => (at === null ? undefined : made[outputs.length + at]));
  }

  #region(rule: RegionRule, node: Node, active: readonly number[]): void {
    const { b } = this;
    const { inputs } = node;
    const bind = (outputs: readonly Value[], tangents: readonly (Value | undefined)[]): void => {
      this.#define(node, outputs);
      outputs.forEach((value, i) => {
        const tangent = tangents[i];
        if (tangent) this.#tangents.set(value, tangent);
      });
    };
    const expansion = expansionOf(rule, node);
    if (expansion) {
      // the node itself keeps its bits; of the expansion only tangents are used
      const copy = this.#copy(node, inputs);
      bind(copy.outputs, this.#tangentsThrough(expansion, node, active));
      return;
    }
    switch (rule.kind) {
      case "custom_vjp":
        throw noForwardMode(rule.maker, node);
      case "custom_jvp": {
        // the primal keeps its rule, for derivatives of higher order
        const copy = this.#copy(node, inputs);
        const given = inputs.flatMap((x) =>
          isFloat(x.type.dtype) ? [this.#tangents.get(x) ?? fullLike(b, x, 0)] : [],
        );
        const made = b.inline(rule.tangent, [...inputs, ...given], { phase: node.phase, where: node.where });
        let next = 0;
        bind(
          copy.outputs,
          copy.outputs.map((value) => (isFloat(value.type.dtype) ? made[next++] : undefined)),
        );
        return;
      }
      case "inline":
      case "gated":
      case "replay": {
        const { graph, tangentOf } = transform(
          rule.body,
          inputs.map((_, i) => active.includes(i)),
          false,
        );
        const given = active.map((i) => this.#tangents.get(inputs[i] as Value) as Value);
        const made = b.callAll(node.op, [...inputs, ...given], node.attrs, { regions: [graph] });
        const tangents = tangentOf.map((at) => (at === null ? undefined : made[node.outputs.length + at]));
        bind(made.slice(0, node.outputs.length), tangents);
        return;
      }
      case "control": {
        const given = inputs.map((value) => this.#tangents.get(value) ?? null);
        const made: Pushed = pushControl(b, node, given, transform);
        bind(made.outputs, made.tangents);
      }
    }
  }

  run(graph: Graph, active: readonly boolean[], allResults: boolean): Transformed {
    const { b } = this;
    const params = graph.params.map((param) => b.param(param.type, param.name));
    graph.params.forEach((param, i) => {
      const value = params[i] as Value;
      this.#map.set(param, value);
      if (active[i] && isFloat(param.type.dtype)) this.#tangents.set(value, b.param(param.type, tangentName(param)));
    });
    const useful = usefulNodes(graph);
    for (const node of graph.nodes) this.#step(node, useful.has(node));
    b.where = undefined;
    b.within = undefined;
    const results = graph.results.map((value) => this.#resolve(value));
    const tangents: Value[] = [];
    const tangentOf = results.map((value) => {
      if (!isFloat(value.type.dtype)) return null;
      let tangent = this.#tangents.get(value);
      if (!tangent && allResults) tangent = b.call(full, [], fullAttrs(value.type, 0), { name: tangentName(value) });
      return tangent ? tangents.push(tangent) - 1 : null;
    });
    return { graph: b.finish([...results, ...tangents]), tangentOf };
  }
}

function transform(graph: Graph, active: readonly boolean[], allResults: boolean): Transformed {
  return new Forward(graph).run(graph, active, allResults);
}

/**
 * params ++ tangents of the float parameters marked active → results ++ tangents of the float results, each group in its
 * order.
 */
export function jvp(graph: Graph, active: readonly boolean[]): Graph {
  return transform(graph, active, true).graph;
}
