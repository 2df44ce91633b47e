/**
 * @file Regions of images, divided into cells of which each is the mean or the maximum of samples between pixels (RoiAlign). Regions are
 * known when the program is made, so which pixels are read, and how much of each, is a table.
 */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import type { Tensor } from "../../trace/tensor.ts";

export interface Regions {
  /** [x1, y1, x2, y2] of each. */
  readonly rois: readonly (readonly number[])[];
  readonly batches: readonly number[];
  readonly size: readonly [height: number, width: number];
  /** Along each axis of a cell; 0 for as many as there are pixels. */
  readonly samples: number;
  readonly scale: number;
  readonly isMax: boolean;
  /** Of the centres of pixels. */
  readonly offset: number;
}

/** Two neighbours of a place along an axis, with their weights; none outside. */
function neighbours(place: number, extent: number): readonly (readonly [number, number])[] {
  if (place < -1 || place > extent) return [];
  const inside = Math.min(Math.max(place, 0), extent - 1);
  const low = Math.floor(inside);
  const high = Math.min(low + 1, extent - 1);
  return [
    [low, 1 - (inside - low)],
    [high, inside - low],
  ];
}

/** One side of a region, divided into cells. */
interface Side {
  readonly start: number;
  readonly length: number;
  readonly cells: number;
}

/** Places of the samples of cell c along a side. */
function samplesOf({ start, length, cells }: Side, c: number, samples: number): readonly number[] {
  const cell = length / cells;
  const count = samples > 0 ? samples : Math.max(1, Math.ceil(cell));
  return Array.from({ length: count }, (_, i) => start + c * cell + ((i + 0.5) * cell) / count);
}

type Tap = readonly [pixel: number, weight: number];

function cellSamples(
  of: Regions,
  r: number,
  cell: readonly [number, number],
  image: readonly [number, number],
): readonly Tap[][] {
  const [x1, y1, x2, y2] = at(of.rois, r).map((v) => v * of.scale - of.offset) as [number, number, number, number];
  const least = of.offset === 0 ? 1 : 0;
  const [width, height] = [Math.max(x2 - x1, least), Math.max(y2 - y1, least)];
  const first = at(of.batches, r) * image[0] * image[1];
  const rows = samplesOf({ start: y1, length: height, cells: of.size[0] }, cell[0], of.samples);
  const columns = samplesOf({ start: x1, length: width, cells: of.size[1] }, cell[1], of.samples);
  return rows.flatMap((row) =>
    columns.map((column) =>
      neighbours(row, image[0]).flatMap(([i, v]) =>
        neighbours(column, image[1]).map(([j, h]) => [first + i * image[1] + j, v * h] as const),
      ),
    ),
  );
}

export function regionsOf(x: Tensor, of: Regions): Tensor {
  const [batch, channels, height, width] = x.shape as [number, number, number, number];
  const [rows, columns] = of.size;
  const cells = of.rois.flatMap((_, r) =>
    Array.from({ length: rows * columns }, (__, c) =>
      cellSamples(of, r, [Math.floor(c / columns), c % columns], [height, width]),
    ),
  );
  const most = Math.max(1, ...cells.map((samples) => samples.length));
  const flat = t.reshape(t.transpose(x, [0, 2, 3, 1]), [batch * height * width, channels]);
  const tap = (k: number) => {
    const entry = (samples: readonly Tap[][], s: number): Tap =>
      samples[Math.min(s, samples.length - 1)]?.[k] ?? [0, 0];
    const all = cells.flatMap((samples) => Array.from({ length: most }, (_, s) => entry(samples, s)));
    const shape = [cells.length, most];
    const shareOf = (samples: readonly Tap[][], s: number): number => {
      if (of.isMax) return 1;
      return s < samples.length ? 1 / samples.length : 0;
    };
    const share = cells.flatMap((samples) => Array.from({ length: most }, (_, s) => shareOf(samples, s)));
    const weights = Float64Array.from(all, ([, weight], i) => weight * (share[i] ?? 0));
    const read = t.take(
      flat,
      t.tensor(
        Int32Array.from(all, ([pixel]) => pixel),
        { shape },
      ),
    );
    return t.mul(read, t.tensor(weights, { dtype: x.dtype, shape: [...shape, 1] }));
  };
  const taps = [0, 1, 2, 3].map(tap);
  const reduced = of.isMax
    ? t.max(
        taps.reduce((a, b) => t.maximum(a, b)),
        1,
      )
    : t.sum(
        taps.reduce((a, b) => t.add(a, b)),
        1,
      );
  return t.transpose(t.reshape(reduced, [of.rois.length, rows, columns, channels]), [0, 3, 1, 2]);
}
