/** @file `tapeAccount`: the account (account.ts) of a function, and of each order of differentiation where it takes gradients itself. */
import { jointOf } from "../autodiff/vjp.ts";
import { at } from "../base/invariant.ts";
import type { Graph } from "../ir/graph.ts";
import { typeText } from "../ir/type.ts";
import { isFloat } from "../kernel/dtype.ts";
import { fail, requireFunction } from "../trace/arguments.ts";
import { type AnyFunction, type Traced, traceFunction } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import { type AccountTotals, accountOf, type TapeAccount } from "./account.ts";
import { planOf, programAccount, totalsOf } from "./account-program.ts";

/** What a tape, and what the plan, would hold for the backward pass of a function. */
export interface FunctionAccount extends TapeAccount {
  /**
   * Of a function that takes gradients itself: what those hold for their backward passes, then what the gradient of the whole holds.
   * Otherwise there is one order.
   */
  readonly orders: readonly AccountTotals[];
}

/** The function and its reverse, with everything that the function does as the forward pass, its own gradients too. */
function withReverse({ graph, leaves }: Traced): Graph {
  const active = graph.params.map((_, i) => leaves[i]?.argument === 0);
  const joint = jointOf(graph, { active, seeds: ["one"] });
  const cotangents = joint.cotangents.flatMap((value) => value ?? []);
  const { name, params, nodes, results } = joint.b.finish([...joint.results, ...cotangents]);
  const phased = nodes.map((node, i) => ({ ...node, phase: i < joint.forwardNodes ? "forward" : "backward" }) as const);
  return { name, params, nodes: phased, results };
}

/**
 * What four ways of differentiating a function hold between its forward and its backward pass. The function returns a scalar, and is
 * differentiated with respect to its first argument; nothing runs, so arguments may be specs.
 *
 * @memory Nothing is allocated for the function: arguments may be specs.
 *
 * @example
 * import { spec, type Tensor } from "tidemark";
 * import { tapeAccount } from "tidemark/tape";
 *
 * const loss = (w: Tensor, x: Tensor) => x.matmul(w).relu().square().sum();
 * const { overloadBytes, namedSavesBytes, tapeBytes, plannedBytes } = tapeAccount(loss)(spec([64, 16]), spec([32, 64]));
 * console.log(overloadBytes, namedSavesBytes, tapeBytes, plannedBytes); // 6148 2048 2048 2048
 */
export function tapeAccount<Args extends readonly Tree[]>(
  fn: (...args: Args) => Tensor,
): (...args: Args) => FunctionAccount {
  requireFunction("tapeAccount", "its argument", fn);
  return (...args) => {
    const traced = traceFunction(fn as AnyFunction, args);
    const { type } = at(traced.graph.results, 0);
    if (traced.graph.results.length !== 1 || type.shape.length > 0 || !isFloat(type.dtype)) {
      fail(
        "ShapeMismatch",
        `tapeAccount: the function must return one scalar, got ${typeText(type)}`,
        "reduce it with sum()",
      );
    }
    const whole = withReverse(traced);
    const account = accountOf(whole, planOf(whole));
    const hasOwn = traced.graph.nodes.some(({ phase }) => phase === "backward");
    const inner = hasOwn ? programAccount(traced.graph, planOf(traced.graph)).passes : [];
    return { ...account, orders: [...inner, totalsOf(account)] };
  };
}
