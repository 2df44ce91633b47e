/**
 * @file The derivative of one node from its operation's declaration, in both modes. Every form gives both:
 *
 *                   forward                              reverse
 *   elementwise     t_y = Σ ∂y/∂xᵢ · t_xᵢ                d_xᵢ = d_y · ∂y/∂xᵢ
 *   multilinear     t_y = Σ f(x₀, …, t_xᵢ, …)            d_xᵢ = fᵢᵀ(d_y)
 *   jointly linear  t_y = f(t_x₀, t_x₁, …)               the same
 *   linear          the same, for several results too    all d_x = fᵀ(all d_y)
 *   general         given by the rule
 */
import { invariant } from "../base/invariant.ts";
import type { Build } from "../ir/build.ts";
import type { Node, Value } from "../ir/graph.ts";
import { resultOf } from "../ir/graph.ts";
import type { Derivative, Partial } from "../ir/op.ts";
import { fullLike } from "../ops/create.ts";
import { apply } from "../ops/define.ts";
import { add, mul, neg } from "../ops/elementwise.ts";
import { nameLast } from "./build-aids.ts";

/** v · ∂y/∂xᵢ, for a cotangent or a tangent v: the diagonal is its own transpose. */
function scaled(b: Build, v: Value, partial: Partial<never>, node: Node): Value | null {
  if (partial === "zero") return null;
  if (partial === "one") return v;
  if (partial === "minus_one") return apply(b, neg, v);
  return apply(b, mul, v, partial(b, node.inputs, resultOf(node), node.attrs as never));
}

type AnyDerivative = Derivative<never>;

const hint = (prefix: string, value: Value): string | undefined => (value.name ? prefix + value.name : undefined);

/** A node in reverse mode. */
interface Pulled {
  readonly node: Node;
  readonly active: readonly number[];
  /** The part that nodes of a value's cotangent belong to. */
  cotangentWithin(value: Value): string;
}

/** Cotangents of the inputs in `active` from those of the outputs; null elsewhere and for zero. */
export function pullbackOfNode(b: Build, pulled: Pulled, cts: readonly (Value | null)[]): readonly (Value | null)[] {
  const { node, active, cotangentWithin } = pulled;
  const { derivative, name } = node.op;
  if (derivative.kind === "linear") return pullbackOfLinear(b, pulled, derivative, cts);
  const made: (Value | null)[] = node.inputs.map(() => null);
  const [ct] = cts;
  if (!ct) return made;
  const { inputs: x, attrs } = node;
  for (const i of active) {
    const since = b.nodes.length;
    let value: Value | null = null;
    b.within = cotangentWithin(node.inputs[i] as Value);
    if (derivative.kind === "elementwise") value = scaled(b, ct, derivative.partials[i] ?? "zero", node);
    else if (derivative.kind === "multilinear") value = derivative.transpose(b, { x, ct, input: i, attrs });
    else if (derivative.kind === "general") value = derivative.vjp(b, { x, y: resultOf(node), ct, input: i, attrs });
    else invariant(false, () => `${name} has no derivative of its own`);
    made[i] = value && nameLast(b, value, hint("d_", node.inputs[i] as Value), since);
  }
  return made;
}

function pullbackOfLinear(
  b: Build,
  { node, active, cotangentWithin }: Pulled,
  { transpose }: Extract<AnyDerivative, { kind: "linear" }>,
  cts: readonly (Value | null)[],
): readonly (Value | null)[] {
  const since = b.nodes.length;
  b.within = cotangentWithin(node.inputs[active[0] ?? 0] as Value);
  const given = node.outputs.map((y, i) => cts[i] ?? fullLike(b, y, 0));
  const made = transpose(b, { x: node.inputs, cts: given, attrs: node.attrs as never });
  return node.inputs.map((x, i) => {
    const value = active.includes(i) ? made[i] : undefined;
    return value ? nameLast(b, value, hint("d_", x), since) : null;
  });
}

/** Tangents of the outputs from those of the inputs in `active`; null for zero. */
export function pushforwardOfNode(
  b: Build,
  node: Node,
  active: readonly number[],
  tangents: readonly (Value | null)[],
): readonly (Value | null)[] {
  if (node.op.derivative.kind !== "linear") return [pushforwardOfResult(b, node, active, tangents)];
  const since = b.nodes.length;
  const inputs = node.inputs.map((x, i) => tangents[i] ?? fullLike(b, x, 0));
  const made = b.callAll(node.op, inputs, node.attrs);
  return made.map((value, i) => nameLast(b, value, hint("t_", node.outputs[i] as Value), since));
}

/** That of the only output. */
function pushforwardOfResult(
  b: Build,
  node: Node,
  active: readonly number[],
  tangents: readonly (Value | null)[],
): Value | null {
  const { derivative, name } = node.op;
  const y = resultOf(node);
  const since = b.nodes.length;
  let sum: Value | null = null;
  const accumulate = (term: Value | null): void => {
    if (term) sum = sum ? apply(b, add, sum, term) : term;
  };
  if (derivative.kind === "general") sum = derivative.jvp(b, { x: node.inputs, y, tangents, attrs: node.attrs });
  else if (derivative.kind === "multilinear" && derivative.jointly) {
    // inputs it is not linear in (conditions, indices) stay; those without a tangent have a tangent of zero
    const linear = (i: number): boolean => derivative.linear?.includes(i) ?? true;
    const inputs = node.inputs.map((x, i) => (linear(i) ? (tangents[i] ?? fullLike(b, x, 0)) : x));
    sum = b.call(node.op, inputs, node.attrs);
  } else {
    for (const i of active) {
      const t = tangents[i] as Value;
      if (derivative.kind === "elementwise") accumulate(scaled(b, t, derivative.partials[i] ?? "zero", node));
      else if (derivative.kind === "multilinear") {
        accumulate(
          b.call(
            node.op,
            node.inputs.map((x, j) => (j === i ? t : x)),
            node.attrs,
          ),
        );
      } else invariant(false, () => `${name} has no derivative of its own`);
    }
  }
  return sum && nameLast(b, sum, hint("t_", y), since);
}
