/**
 * @file The most bytes that are live at once: no placement of these buffers needs a smaller arena. Sizes count rounded
 * up to the problem's alignment, because every offset and the height are multiples of it.
 *
 *     bytes     ┌──┐
 *               │b2│           live: 2 4 7 4 2        bound = 7 at step 2
 *          ┌────┴──┴──┐
 *       ┌──┴────b1────┴──┐
 *       └───────b0───────┘
 *          0  1  2  3  4
 *
 * The maximum is reached where some buffer starts, so only those steps are examined: O(n log n).
 */
import type { Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { alignUp, type Bound, type Problem } from "./problem.ts";
import { type Program, replacementOf } from "./program.ts";
import { spaceOf } from "./space.ts";

/**
 * The most live bytes, the first step with that many, and the buffers live there.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { boundOf, problemIn } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(boundOf(problemIn(plan.problem)).bytes === plan.bound.bytes); // → true
 */
export function boundOf(problem: Problem): Bound {
  const { buffers, alignment } = problem;
  const starts = [...buffers].sort((a, b) => a.lifespan.start - b.lifespan.start);
  const ends = [...buffers].sort((a, b) => a.lifespan.end - b.lifespan.end);
  let live = 0;
  let freed = 0;
  let best = { bytes: 0, step: 0 };
  starts.forEach((buffer, i) => {
    const step = buffer.lifespan.start;
    for (let next = ends[freed]; next && next.lifespan.end <= step; next = ends[freed]) {
      live -= alignUp(next.bytes, alignment);
      freed += 1;
    }
    live += alignUp(buffer.bytes, alignment);
    const lastOfStep = starts[i + 1]?.lifespan.start !== step;
    if (lastOfStep && live > best.bytes) best = { bytes: live, step };
  });
  const alive = buffers.filter((b) => b.lifespan.start <= best.step && best.step < b.lifespan.end && b.bytes > 0);
  return { ...best, live: alive.map((b) => b.id) };
}

/**
 * Live bytes at every step of [0, steps), rounded up to the alignment.
 *
 * @example
 * import { liveBytes, parseCsv } from "tidemark/plan";
 *
 * const text = "id,lower,upper,size\na,0,2,64\nb,1,3,64";
 * const { problem } = parseCsv(text);
 * console.log([...liveBytes(problem, 3)]); // → [64, 128, 64]
 */
export function liveBytes(problem: Problem, steps: number): Float64Array {
  const change = new Float64Array(steps + 1);
  for (const { lifespan, bytes } of problem.buffers) {
    const rounded = alignUp(bytes, problem.alignment);
    change[lifespan.start] = (change[lifespan.start] ?? 0) + rounded;
    change[lifespan.end] = (change[lifespan.end] ?? 0) - rounded;
  }
  let live = 0;
  return change.map((delta) => (live += delta)).subarray(0, steps);
}

/**
 * Bytes live before the first step and after the last one, whatever the schedule: all parameters; then persistent
 * storage and all results stored outside it. No plan of a program with these parameters and results has a smaller
 * arena.
 */
export function endsBytes(program: Program): number {
  const { params, results, persistent, steps } = program;
  const { alignment } = program.spaces[0];
  const renamed = new Map(steps.flatMap(({ alias }) => (alias ? [[alias[1], alias[0]] as const] : [])));
  const rootOf = (value: Value): Value => {
    let root = value;
    for (let next = renamed.get(root); next; next = renamed.get(root)) root = next;
    return root;
  };
  const sum = (values: Iterable<Value>): number =>
    [...values].reduce(
      (bytes, v) => bytes + (spaceOf(program, v) === 0 ? alignUp(byteLength(v.type), alignment) : 0),
      0,
    );
  const replacing = new Set(params.map((param) => replacementOf(program, param)));
  const separate = new Set(results.filter((value) => !replacing.has(value)).map(rootOf));
  for (const value of persistent) separate.delete(value);
  return Math.max(sum(params), sum(persistent) + sum(separate));
}
