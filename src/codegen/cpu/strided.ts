/**
 * @file Loads and stores that step over memory, as columns of short rows do: registers along memory and shuffles in place of one
 * access for each lane.
 *
 *   step 2, 4 lanes     memory        a0 b0 a1 b1 | a2 b2 a3 b3         two loads
 *                       values        a0 a1 a2 a3   b0 b1 b2 b3         two shuffles
 *
 * Accesses of one operand whose offsets are less than a step apart belong together: a cluster.
 */
import { at } from "../../base/invariant.ts";
import { typeOf } from "../../kernel/dtype.ts";
import type { Expr, Index } from "../../kernel/expr.ts";
import { offsetIndex } from "../../kernel/index-math.ts";
import type { Store } from "../../kernel/loops.ts";

/** Elements from lane to lane, at most. */
const LONGEST_STEP = 8;

export type Load = Extract<Expr, { kind: "load" }>;

/** Accesses of which lane l is element step · l + distance from the first lane of the first one. */
export interface Cluster<T> {
  readonly step: number;
  /** In order of distance. */
  readonly members: readonly { readonly access: T; readonly distance: number }[];
}

interface Access {
  readonly operand: number;
  readonly index: Index;
}

/** Groups accesses; `stepOf` says how an index grows from lane to lane, null where that is not even. */
function clustersOf<T extends Access>(
  accesses: readonly T[],
  stepOf: (index: Index) => number | null,
): readonly Cluster<T>[] {
  const families = new Map<string, { step: number; accesses: T[] }>();
  for (const access of accesses) {
    const step = stepOf(access.index);
    if (step === null || step < 2 || step > LONGEST_STEP) continue;
    const key = `${access.operand} ${offsetIndex(access.index, -access.index.offset).key}`;
    const family = families.get(key) ?? { step, accesses: [] };
    family.accesses.push(access);
    families.set(key, family);
  }
  return [...families.values()].flatMap(({ step, accesses: unordered }) => {
    const ordered = [...unordered].sort((a, b) => a.index.offset - b.index.offset);
    const clusters: { step: number; members: { access: T; distance: number }[] }[] = [];
    let first = Number.NEGATIVE_INFINITY;
    for (const access of ordered) {
      const { offset } = access.index;
      if (offset - first >= step) {
        clusters.push({ step, members: [] });
        first = offset;
      }
      clusters.at(-1)?.members.push({ access, distance: offset - first });
    }
    return clusters;
  });
}

/** Clusters of the loads that are always made: not those behind a bound, whose neighbours need not be there. */
export function loadClusters(
  roots: readonly Expr[],
  stepOf: (index: Index) => number | null,
): readonly Cluster<Load>[] {
  const plain = plainLoads(roots).filter((load) => typeOf(load.storage).plain);
  const distinct = new Map(plain.map((load) => [`${load.operand} ${load.index.key}`, load]));
  return clustersOf([...distinct.values()], stepOf);
}

/** Loads that are always made, in order: not those behind a bound. */
export function plainLoads(roots: readonly Expr[]): readonly Load[] {
  const seen = new Set<Expr>();
  const visit = (expr: Expr): void => {
    if (seen.has(expr)) return;
    seen.add(expr);
    if (expr.kind === "call") expr.args.forEach(visit);
  };
  roots.forEach(visit);
  return [...seen].filter((expr) => expr.kind === "load");
}

/** Clusters of stores that fill memory: one for each place of a step. */
export function storeClusters(
  stores: readonly Store[],
  stepOf: (index: Index) => number | null,
): readonly Cluster<Store>[] {
  return clustersOf(stores, stepOf).filter(
    ({ step, members }) => members.length === step && members.every(({ distance }, i) => distance === i),
  );
}

/** Elements from the first to the last of the first `count` lanes of a cluster. */
export const spanOf = ({ step, members }: Cluster<unknown>, count: number): number =>
  step * (count - 1) + at(members, members.length - 1).distance + 1;

/** Where the registers that hold a cluster start, from its first element on; where that many are there, the last ends with it. */
export function registerStarts(cluster: Cluster<unknown>, lanes: number, count: number = lanes): readonly number[] {
  const span = spanOf(cluster, count);
  const last = Math.max(0, span - lanes);
  return Array.from({ length: Math.ceil(span / lanes) }, (_, r) => Math.min(r * lanes, last));
}

/** A lane of one of several registers. */
export type Source = readonly [register: number, lane: number];

/** Where the lanes of a member come from. */
export function memberSources(starts: readonly number[], step: number, distance: number, lanes: number): Source[] {
  return Array.from({ length: lanes }, (_, l) => {
    const element = step * l + distance;
    const found = starts.findIndex((start) => start <= element && element < start + lanes);
    // Lanes beyond the last are of no account.
    const register = found < 0 ? starts.length - 1 : found;
    if (found < 0) return [register, l] as const;
    return [register, element - at(starts, register)] as const;
  });
}

/** Where the lanes of a register of interleaved values come from, its first being element `from` of them. */
export function interleavedSources(step: number, from: number, lanes: number): Source[] {
  return Array.from({ length: lanes }, (_, l) => [(from + l) % step, Math.floor((from + l) / step)] as const);
}

/** Lanes of two registers, the second's numbered from `lanes` on; the first is a source, or what came of the step before. */
export interface Shuffle {
  readonly first: number | "before";
  readonly second: number;
  readonly lanes: readonly number[];
}

/** Shuffles of two registers at a time that gather lanes; none where they are those of one register in order. */
export function shufflesOf(sources: readonly Source[], lanes: number): readonly Shuffle[] {
  const registers = [...new Set(sources.map(([register]) => register))];
  const [first = 0, ...others] = registers;
  if (others.length === 0) {
    const order = sources.map(([, lane]) => lane);
    return order.every((lane, l) => lane === l) ? [] : [{ first, second: first, lanes: order }];
  }
  return others.map((second, i) => ({
    first: i === 0 ? first : "before",
    second,
    lanes: sources.map(([register, lane], l) => {
      if (register === second) return lanes + lane;
      return i === 0 && register === first ? lane : l;
    }),
  }));
}
