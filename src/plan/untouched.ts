/**
 * @file Parameters whose storage a run leaves as it was: nothing is written over them or placed where they were. Their elements
 * are there for the next run, which need not be given them again.
 */
import { at } from "../base/invariant.ts";
import type { Buffer, Plan } from "./problem.ts";

const overlaps = (from: number, bytes: number, other: number, otherBytes: number): boolean =>
  from < other + otherBytes && other < from + bytes;

/** Numbers of these parameters, those that stay in the arena among them; not those that are donated. */
export function untouchedParams(plan: Plan): readonly number[] {
  const { program, problem, bufferOf, offsets, copies } = plan;
  const written = new Set(program.steps.flatMap(({ alias, writes }) => (alias ? [] : writes)));
  const filled = new Set(copies.map(({ to }) => to));
  const isAlone = ({ id, bytes, space }: Buffer & { readonly space: number }): boolean =>
    problem.buffers.every((other) => {
      if (other.id === id || other.space !== space) return true;
      return !overlaps(at(offsets, id), bytes, at(offsets, other.id), other.bytes);
    });
  return program.params.flatMap((param, i) => {
    const id = bufferOf.get(param);
    if (id === undefined || program.donated.has(param)) return [];
    if (program.persistent.has(param)) return [i];
    const buffer = at(problem.buffers, id);
    const isOwn = buffer.space === 0 && !filled.has(id) && !buffer.values.some((value) => written.has(value));
    return isOwn && isAlone(buffer) ? [i] : [];
  });
}
