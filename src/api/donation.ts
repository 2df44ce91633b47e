/** @file Donated arguments: which result takes over the storage of which, and what stays in the arena between runs. */
import { at } from "../base/invariant.ts";
import type { Graph } from "../ir/graph.ts";
import { sameType, type TensorType, tensorType } from "../ir/type.ts";

/** Parameters that stay in the arena between runs: those that a result replaces, and captured constants. */
export function persistentParams(
  graph: Graph,
  donated: ReadonlyMap<number, number>,
  firstCapture: number,
): ReadonlySet<number> {
  const persistent = new Set([...donated].flatMap(([param, result]) => (result >= 0 ? [param] : [])));
  for (let i = firstCapture; i < graph.params.length; i++) persistent.add(i);
  return persistent;
}

/**
 * Which result takes over which donated argument: the one at the same path below its own root, else the first of the
 * same type that is left.
 */
export function matchDonated(
  params: readonly { readonly index: number; readonly path: string; readonly type: TensorType }[],
  results: readonly { readonly path: string; readonly type: TensorType }[],
): ReadonlyMap<number, number> {
  const taken = new Set<number>();
  const matched = new Map<number, number>();
  const find = (test: (result: { readonly path: string; readonly type: TensorType }) => boolean): number =>
    results.findIndex((result, i) => !taken.has(i) && test(result));
  const take = (index: number, result: number): void => {
    taken.add(result);
    matched.set(index, result);
  };
  const byPath = new Map<string, number[]>();
  // Only paths that are looked for: every result ends in the empty one.
  const wanted = new Set(params.map(({ path }) => belowRoot(path)));
  results.forEach((result, i) => {
    for (const tail of tails(result.path)) {
      if (!wanted.has(tail)) continue;
      const found = byPath.get(tail);
      if (found) found.push(i);
      else byPath.set(tail, [i]);
    }
  });
  for (const { index, path, type } of params) {
    const found = (byPath.get(belowRoot(path)) ?? []).find((i) => !taken.has(i) && sameType(at(results, i).type, type));
    if (found !== undefined) take(index, found);
  }
  for (const { index, type } of params) {
    if (matched.has(index)) continue;
    const found = find((result) => sameType(result.type, tensorType(type.dtype, type.shape)));
    matched.set(index, -1);
    if (found >= 0) take(index, found);
  }
  return matched;
}

/** `state.params.w` → `.params.w`. */
const belowRoot = (path: string): string => path.replace(/^[^.[]+/, "");

/** `result[0].params.w` → itself and what is left after each step from the root. */
function tails(path: string): readonly string[] {
  const steps = path.match(/^[^.[]+|\.[^.[]+|\[[^\]]*\]/g) ?? [];
  return steps.map((_, i) => steps.slice(i + 1).join(""));
}
