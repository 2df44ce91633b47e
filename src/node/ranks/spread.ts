/**
 * @file The files of a snapshot over several devices. Every tensor of the whole state is cut into as many runs of elements as
 * there are devices along the batch, and each device writes one file with its run of every tensor, whatever part of them it keeps:
 *
 *   w, 7 elements    file 0: w0 w1 w2    file 1: w3 w4 w5    file 2: w6 0 0
 *
 * So the files are the same for all stages of ZeRO, together as large as the state, and another number of devices reads from them the
 * runs that it needs. Along other axes devices may have parameters of their own, and each of them has its files.
 */
import { at } from "../../base/invariant.ts";
import { byteLength, elementsOf, type TensorType, tensorType } from "../../ir/type.ts";
import { type DeviceGroup, groupRanks, groupSize, meshSize } from "../../kernel/device-group.ts";
import { bytesOf } from "../../kernel/dtype.ts";
import type { StateTensor } from "../../parallel/state-layout.ts";
import { type Layout, layoutOf } from "../layout.ts";

/** A mesh with the axes along which devices have parts of the batch. */
export type Spread = DeviceGroup;

/** A run of elements, from the first up to, not including, the last. */
export interface Run {
  readonly from: number;
  readonly to: number;
}

/** Which of so many runs of a tensor. */
function runOf({ type }: StateTensor, number: number, parts: number): Run {
  const count = elementsOf(type.shape);
  const width = Math.ceil(count / parts);
  return { from: Math.min(count, number * width), to: Math.min(count, (number + 1) * width) };
}

/** What a device keeps of a tensor. */
export function keptBy(tensor: StateTensor, spread: Spread, rank: number): Run {
  if (!tensor.isCut) return { from: 0, to: elementsOf(tensor.type.shape) };
  return runOf(tensor, partAt(spread, rank), groupSize(spread));
}

/** The number of a device among those with other parts of the batch. */
export const partAt = (spread: Spread, rank: number): number => groupRanks(spread, rank).indexOf(rank);

const widthOf = ({ type }: StateTensor, spread: Spread): number =>
  Math.ceil(elementsOf(type.shape) / groupSize(spread));

/** The contents of a file: a run of each tensor, and behind them the loss. */
export function fileLayout(tensors: readonly StateTensor[], spread: Spread, loss: TensorType): Layout {
  return layoutOf([...tensors.map((tensor) => tensorType(tensor.type.dtype, [widthOf(tensor, spread)])), loss]);
}

/** Copies a device's run of each tensor into a file, from what it keeps of them; what is behind the last element is zero. */
export function writeRuns(
  tensors: readonly StateTensor[],
  { spread, rank, layout }: { readonly spread: Spread; readonly rank: number; readonly layout: Layout },
  kept: readonly Uint8Array[],
  block: Uint8Array,
): void {
  block.fill(0);
  tensors.forEach((tensor, k) => {
    const bytes = bytesOf(tensor.type.dtype);
    const run = runOf(tensor, partAt(spread, rank), groupSize(spread));
    const first = keptBy(tensor, spread, rank).from;
    block.set(at(kept, k).subarray((run.from - first) * bytes, (run.to - first) * bytes), at(layout.offsets, k));
  });
  block.set(at(kept, tensors.length), at(layout.offsets, tensors.length));
}

/** A file that a device reads, and what of each tensor is in it. */
export interface SourceFile {
  readonly rank: number;
  readonly runs: readonly Run[];
}

/** Where a device of a mesh is in another one: at the same place along axes of one extent in both. */
function placeIn(other: Spread, spread: Spread, rank: number): number {
  const placeAlong = (axis: string): number => groupRanks({ ...spread, over: [axis] }, rank).indexOf(rank);
  const extents = new Map(spread.mesh);
  return other.mesh.reduce((base, [axis, extent]) => {
    const isSame = extents.get(axis) === extent && !other.over.includes(axis);
    return base * extent + (isSame ? placeAlong(axis) : 0);
  }, 0);
}

/** The files of a snapshot by another mesh that have something of what a device is to keep; always the first, which has the loss. */
export function sourcesOf(
  tensors: readonly StateTensor[],
  written: Spread,
  kept: { readonly spread: Spread; readonly rank: number },
): readonly SourceFile[] {
  const ranks = groupRanks(written, placeIn(written, kept.spread, kept.rank));
  const files = ranks.map((rank, number) => ({
    rank,
    runs: tensors.map((tensor) => {
      const [there, wanted] = [runOf(tensor, number, ranks.length), keptBy(tensor, kept.spread, kept.rank)];
      return { from: Math.max(there.from, wanted.from), to: Math.min(there.to, wanted.to) };
    }),
  }));
  return files.filter(({ runs }, number) => number === 0 || runs.some(({ from, to }) => from < to));
}

/** Copies what a file has into what a device keeps. */
export function readRuns(
  tensors: readonly StateTensor[],
  from: { readonly file: SourceFile; readonly written: Spread; readonly layout: Layout },
  into: { readonly spread: Spread; readonly rank: number; readonly kept: readonly Uint8Array[] },
  block: Uint8Array,
): void {
  const { file, written, layout } = from;
  tensors.forEach((tensor, k) => {
    const bytes = bytesOf(tensor.type.dtype);
    const run = at(file.runs, k);
    if (run.from >= run.to) return;
    const inFile = run.from - runOf(tensor, partAt(written, file.rank), groupSize(written)).from;
    const inKept = run.from - keptBy(tensor, into.spread, into.rank).from;
    const start = at(layout.offsets, k) + inFile * bytes;
    at(into.kept, k).set(block.subarray(start, start + (run.to - run.from) * bytes), inKept * bytes);
  });
  const { types, offsets } = layout;
  const start = at(offsets, tensors.length);
  if (partAt(written, file.rank) > 0) return;
  at(into.kept, tensors.length).set(block.subarray(start, start + byteLength(at(types, tensors.length))));
}

/** Axes of a mesh as text, `tensor=2`; those of one device are as good as none. */
export function extentsText({ mesh }: Spread, own: readonly string[]): string {
  return mesh
    .filter(([axis, extent]) => own.includes(axis) && extent > 1)
    .map(([axis, extent]) => `${axis}=${extent}`)
    .join(",");
}

export const isSpread = (value: unknown): value is Spread => {
  const { mesh, over } = (value ?? {}) as Partial<Spread>;
  const isAxis = (axis: unknown): boolean =>
    Array.isArray(axis) && typeof axis[0] === "string" && Number.isInteger(axis[1]) && axis[1] >= 1;
  return Array.isArray(mesh) && mesh.every(isAxis) && Array.isArray(over) && meshSize({ mesh }) >= 1;
};
