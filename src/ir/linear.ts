/**
 * @file Whether results of a node are linear in some of its operands, from what its operation declares. If they are, operands that
 * are rounded at random, with the exact values expected, give results with the exact values expected.
 */
import type { Node, Value } from "./graph.ts";

/** Linear in all values of the set that it reads, together: there is no product of two of them. */
export function isLinearIn({ op, inputs }: Node, values: ReadonlySet<Value>): boolean {
  const read = inputs.flatMap((input, i) => (values.has(input) ? [i] : []));
  const { derivative, facts } = op;
  const areIn = (all: readonly number[]): boolean => read.every((i) => all.includes(i));
  if (read.length === 0 || facts?.coefficients || (facts?.linearIn && areIn(facts.linearIn))) return true;
  if (facts?.isProduct) return read.length === 1;
  if (facts?.isSelection) return !read.includes(0);
  if (derivative.kind === "linear") return true;
  if (derivative.kind !== "multilinear") return false;
  const linear = derivative.linear ?? inputs.map((_, i) => i);
  return areIn(linear) && (read.length === 1 || derivative.jointly === true);
}
