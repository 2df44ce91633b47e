/**
 * @file If steps form trees (every result has one reader), the best order is known: Liu's generalised pebbling ("An
 * application of generalized tree pebbling to sparse matrix factorization", 1987). Live bytes over a branch's own steps
 * go up hills and down into valleys:
 *
 *       H1 ╱╲                     segment = from one valley to the next. Cut at the highest hill, then at the lowest
 *         ╱  ╲   H2               valley after it, then at the highest hill after that, …: hills get lower and valleys
 *        ╱    ╲ ╱╲  ← V2          higher.
 *       ╱      V1
 *
 * Branches that meet in a step are merged segment by segment, the largest hill - valley first: a branch advances when
 * its descent is largest, and pauses in its valleys while others run. The step itself is appended and the sequence is
 * cut into segments again. Optimal for trees. In other programs, trees are connected by results with a single reader; a
 * step with several readers ends its tree, and trees keep program order, which respects every dependency.
 *
 * O(n log n) times the number of segments, which is limited.
 */
import { at } from "../../base/invariant.ts";
import { fromOf, lengthOf, listOf } from "./lists.ts";
import type { Model } from "./model.ts";

/** Steps `first`, `next[first]`, …, `last` in a row. Heights are relative to the bytes live before the branch began. */
interface Segment {
  readonly first: number;
  readonly last: number;
  readonly hill: number;
  readonly valley: number;
}

/** Beyond this number the last segments are joined: their hills are the lowest. */
const MAX_SEGMENTS = 48;
const NONE = -1;

/** An order that is best for every tree by itself. */
export function treeOrder(model: Model): Int32Array {
  const { steps: n, predecessors, successors } = model;
  const next = new Int32Array(n).fill(NONE);
  const sequences: (readonly Segment[] | null)[] = Array.from({ length: n }, () => null);
  const order = new Int32Array(n);
  let count = 0;
  for (let i = 0; i < n; i++) {
    const branches: (readonly Segment[])[] = [];
    for (const before of listOf(predecessors, i)) {
      const sequence = lengthOf(successors, before) === 1 ? sequences[before] : null;
      if (sequence) branches.push(sequence);
      if (sequence) sequences[before] = null;
    }
    const sequence = cut([...merged(branches), segmentOfStep(model, i)], next);
    if (lengthOf(successors, i) === 1) {
      sequences[i] = sequence;
      continue;
    }
    for (const { first, last } of sequence) {
      for (let step = first; ; step = at(next, step)) {
        order[count] = step;
        count += 1;
        if (step === last) break;
      }
    }
  }
  return order;
}

/** A single step: bytes live while it runs and after it, relative to before. */
function segmentOfStep(model: Model, i: number): Segment {
  const { reads, readers, writes, over, bytes, kept, isSlot, claims, scratch } = model;
  const diesHere = (id: number): boolean => lengthOf(readers, id) === 1 && !kept[id] && !isSlot[id];
  let [hill, valley] = [at(scratch, i), 0];
  for (const id of listOf(reads, i)) if (diesHere(id)) valley -= at(bytes, id);
  const taken = new Set<number>();
  for (const id of listOf(writes, i)) {
    if (lengthOf(claims, id) > 0) continue;
    let inPlace = false;
    for (let k = fromOf(over, i); k < fromOf(over, i + 1) && !inPlace; k += 2) {
      const read = at(over.items, k + 1);
      inPlace = over.items[k] === id && diesHere(read) && !taken.has(read);
      if (inPlace) taken.add(read);
    }
    if (!inPlace) hill += at(bytes, id);
    if (lengthOf(readers, id) > 0 || kept[id]) valley += at(bytes, id);
  }
  return { first: i, last: i, hill, valley };
}

/** Segments of all branches, the largest hill - valley first, with heights above the common ground. */
function merged(branches: readonly (readonly Segment[])[]): readonly Segment[] {
  if (branches.length < 2) return branches[0] ?? [];
  const all = branches.flatMap((branch, b) => branch.map((segment, k) => ({ segment, b, k })));
  const drop = ({ segment }: { readonly segment: Segment }): number => segment.hill - segment.valley;
  all.sort((x, y) => drop(y) - drop(x) || x.b - y.b || x.k - y.k);
  const rest = branches.map(() => 0);
  let ground = 0;
  return all.map(({ segment, b }) => {
    // The other branches are in their valleys.
    const others = ground - at(rest, b);
    ground = others + segment.valley;
    rest[b] = segment.valley;
    return { ...segment, hill: others + segment.hill, valley: others + segment.valley };
  });
}

/**
 * Cuts consecutive pieces into segments; heights of each piece are relative to the one before. A piece joins the
 * previous one if its hill is as high or its valley as low.
 */
function cut(pieces: readonly Segment[], next: Int32Array): readonly Segment[] {
  const segments: Segment[] = [];
  pieces.forEach((piece, k) => {
    const ground = k === pieces.length - 1 ? (pieces[k - 1]?.valley ?? 0) : 0;
    let joined: Segment = { ...piece, hill: ground + piece.hill, valley: ground + piece.valley };
    for (let above = segments.at(-1); above; above = segments.at(-1)) {
      const falls = joined.hill < above.hill && joined.valley > above.valley;
      if (falls && segments.length < MAX_SEGMENTS) break;
      next[above.last] = joined.first;
      joined = { ...joined, first: above.first, hill: Math.max(above.hill, joined.hill) };
      segments.pop();
    }
    segments.push(joined);
  });
  return segments;
}
