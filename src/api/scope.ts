/** @file Names for parts of a program: segments of recomputation end where parts end, and reports can say where. */
import { fail, requireFunction } from "../trace/arguments.ts";
import { currentTrace } from "../trace/trace.ts";

/**
 * Runs a function as a named part of the program; parts nest. Outside of a traced function it only runs it.
 *
 * @memory None of its own. In a program, segments of recomputation end where parts end.
 *
 * @example
 * import { grad, scope, type Tensor, tensor } from "tidemark";
 *
 * const block = (x: Tensor) => scope("block", () => x.sin().exp());
 * console.log(grad((x) => block(x).sum())(tensor([0])).toArray()); // [1]
 */
export function scope<T>(name: string, fn: () => T): T {
  if (typeof name !== "string" || !/^[\w.-]+$/.test(name)) {
    const help = "name a part with letters, digits, _, - and dots: block3";
    fail("InvalidArgument", `scope: ${JSON.stringify(name)} is not a name`, help);
  }
  requireFunction("scope", "its second argument", fn);
  const trace = currentTrace();
  return trace ? trace.inScope(name, fn) : fn();
}
