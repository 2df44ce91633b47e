/**
 * @file The call tree: named parts of a program and checkpoints, each reversed *jointly* (what it made inside is kept) or
 * *split* (only what goes out is kept, and its inside is recomputed when backward reaches it): Volin and Ostrovskii,
 * "Automatic computation of derivatives with the use of the multilevel differentiating technique", 1985.
 *
 * ```
 *   model ─┬─ block  ─┬─ attention   split      kept: what leaves attention
 *          │          ╰─ feed        joint      kept: everything inside
 *          ╰─ block#2                split      kept: what leaves the block; its inside runs again at once
 * ```
 *
 * A split part needs no snapshot beyond what its replay reads, and values here are never overwritten: what goes in is
 * kept as long as the replay is due. Parts are split one by one, the most bytes for the least
 * time first, until the whole is within the budget; parts that would save less than a hundredth are left alone.
 */
import { at } from "../../base/invariant.ts";
import { baseSequence, type RecomputeProblem, type Sequence } from "./problem.ts";
import { forwardOps, keepOnly } from "./segments.ts";
import { simulate } from "./simulate.ts";

interface Part {
  readonly path: string;
  /** Forward values that do not leave it. */
  readonly inside: readonly number[];
  readonly bytes: number;
  readonly cost: number;
}

/** Of all bytes that are kept; smaller parts are not worth a decision. */
const SMALL = 0.01;

/** All parts with something inside, outer ones after inner ones. */
function partsOf(problem: RecomputeProblem, forward: number): readonly Part[] {
  const ops = problem.ops.slice(0, forward);
  const makers = new Map(ops.flatMap((op, k) => op.outputs.map((value) => [value, k] as const)));
  const within = (op: number, path: string): boolean => {
    const scope = at(ops, op).scope;
    return scope === path || (scope?.startsWith(`${path}/`) ?? false);
  };
  const paths = new Set(
    ops.flatMap(({ scope }) => {
      const names = scope === undefined ? [] : scope.split("/");
      return names.map((_, depth) => names.slice(0, names.length - depth).join("/"));
    }),
  );
  const readers = new Map<number, number[]>();
  ops.forEach((op, k) => {
    for (const value of op.inputs) readers.set(value, [...(readers.get(value) ?? []), k]);
  });
  const results = new Set(problem.results);
  return [...paths].flatMap((path): Part[] => {
    const inside = [...makers].flatMap(([value, op]) => {
      if (!within(op, path) || results.has(value)) return [];
      return (readers.get(value) ?? []).every((reader) => within(reader, path)) ? [value] : [];
    });
    const bytes = inside.reduce((sum, value) => sum + at(problem.bytes, value), 0);
    const cost = [...new Set(inside.map((value) => makers.get(value) ?? 0))].reduce(
      (sum, k) => sum + at(ops, k).cost,
      0,
    );
    return inside.length > 0 ? [{ path, inside, bytes, cost }] : [];
  });
}

/** Plans from all parts joint to all split, each with one more part split than the one before. */
export function callPlans(problem: RecomputeProblem): readonly Sequence[] {
  const forward = forwardOps(problem);
  const all = new Set(problem.ops.slice(0, forward).flatMap((op) => op.outputs));
  const total = [...all].reduce((sum, value) => sum + at(problem.bytes, value), 0);
  const parts = partsOf(problem, forward)
    .filter(({ bytes }) => bytes >= SMALL * total)
    .sort((a, b) => b.bytes * a.cost - a.bytes * b.cost || (a.path < b.path ? -1 : 1));
  const plans: Sequence[] = [baseSequence(problem)];
  const kept = new Set(all);
  for (const { inside } of parts) {
    const before = kept.size;
    for (const value of inside) kept.delete(value);
    if (kept.size < before) plans.push(keepOnly(problem, kept));
  }
  return plans;
}

/** The cheapest of them within the budget, or null. */
export function calls(problem: RecomputeProblem, budget: number): Sequence | null {
  let best: { readonly sequence: Sequence; readonly cost: number } | null = null;
  for (const sequence of callPlans(problem)) {
    const { cost, peakBytes } = simulate(problem, sequence);
    if (peakBytes <= budget && (best === null || cost < best.cost)) best = { sequence, cost };
  }
  return best?.sequence ?? null;
}
