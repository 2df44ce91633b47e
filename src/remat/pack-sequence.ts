/**
 * @file Addresses for a sequence of a problem that knows no tensors: its lifetimes are packed, and where the packing is
 * above the target, it says where.
 */
import { at } from "../base/invariant.ts";
import { boundOf } from "../plan/bound.ts";
import { searchPlacement } from "../plan/place/search.ts";
import type { Realised } from "../plan/recompute/arena.ts";
import { conflictsOf } from "../plan/recompute/conflicts.ts";
import { lifetimesOf } from "../plan/recompute/lifetimes.ts";
import type { RecomputeProblem, Sequence } from "../plan/recompute/problem.ts";

/** Where everything of a sequence lies. */
export interface PackedSequence {
  /** `offsets[step][i]`: where the step's i-th output lies. */
  readonly offsets: readonly (readonly number[])[];
  /** Constants: bytes from `fromStep` up to `toStep`. */
  readonly constants: readonly {
    readonly fromStep: number;
    readonly toStep: number;
    readonly bytes: number;
    readonly offset: number;
  }[];
}

export interface PackOptions {
  /** Of the search for a placement, in its own unit: 2 · 10⁸ is about a second. */
  readonly workLimit?: number;
  readonly timeoutMs?: number;
}

const WORK_LIMIT = 4e7;

/** Packs `sequence`, aiming at `targetBytes`. */
export function packSequence(
  problem: RecomputeProblem,
  sequence: Sequence,
  targetBytes: number,
  { workLimit = WORK_LIMIT, timeoutMs }: PackOptions = {},
): Realised<PackedSequence> {
  const lifetimes = lifetimesOf(problem, sequence);
  const { buffers, outputs, pinned } = lifetimes;
  const packing = { buffers, capacity: targetBytes, alignment: 1 };
  const { offsets, height } = searchPlacement(packing, {
    targetBytes: boundOf(packing).bytes,
    capacityBytes: targetBytes,
    workLimit,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  const constants = pinned.map((id) => {
    const { lifespan, bytes } = at(buffers, id);
    return { fromStep: lifespan.start, toStep: lifespan.end, bytes, offset: at(offsets, id) };
  });
  return {
    arenaBytes: height,
    result: { offsets: outputs.map((ids) => ids.map((id) => at(offsets, id))), constants },
    conflicts: conflictsOf(lifetimes, offsets, targetBytes),
  };
}
