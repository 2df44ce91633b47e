/**
 * @file Values live in memory spaces: the arena of a device, the host's memory, a file. Each has its own alignment and
 * limits and is placed separately; offsets count from the start of a space. The first space of a program is the
 * default: kernels compute in it, and `plan.height` is its height. The others are reached only by copies (program.ts).
 *
 *     device  │ w │ h ──╮ │      ╭─→ h' │      capacity 24 GiB, alignment 256
 *     ────────┼───┼─────┼─┼──────┼──────┤
 *     host    │   │     ╰─→ h ───╯      │      capacity ∞, alignment 64
 */
import type { Value } from "../ir/graph.ts";
import type { Program } from "./program.ts";

export { type MemorySpace, memorySpace, type Spaces } from "../target/space.ts";

/** Index into the spaces of a program. */
export type SpaceId = number;

/** Numbers of parameters that are not in the first space: persistent values whose home is another memory (homes.ts). */
export const paramsElsewhere = (program: Program): readonly number[] =>
  program.params.flatMap((param, i) => (spaceOf(program, param) === 0 ? [] : [i]));

/**
 * The memory space that a value lives in.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { spaceOf } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(plan.program.results.map((result) => spaceOf(plan.program, result))); // → [0]
 */
export function spaceOf(program: Program, value: Value): SpaceId {
  return program.spaceOf?.get(value) ?? 0;
}
