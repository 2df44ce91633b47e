/**
 * @file How convolutions of 3 × 3 are cut up for Winograd's algorithm, what that costs, and whether it pays: functions of
 * extents and of the width of registers alone. Code follows it (codegen/native/winograd.ts, which says what is transformed
 * into what), and so does the prediction of a program's time (plan/cost).
 *
 * Results are computed in tiles of 4 × 4, which read 6 × 6 of the image: 36 products in place of 144. A strip is a row of tiles
 * of one image, or a piece of one where images are wide; a block is as many strips as fit into some cache.
 *
 *   for blocks of strips
 *     transform the image's channels                            v [36][channel][tile]
 *     for panels of rows of the result, one register of them
 *       transform the weights, unless they were kept            u [36][channel][row]
 *       36 products over the channels                           m [36][row][tile]
 *       transform the sums, a strip at a time, and store them
 *
 * Transforming a whole layer before multiplying it would take four times the layer as workspace; this takes less than 2 MB, and
 * no more than image, weights and result do.
 *
 * Invariant: nothing here looks at an expression, so what is fused in front or behind, budgets and threads change no bit; and
 * a sum over channels is made of runs that follow from their number alone.
 */
import type { ProductType } from "../../kernel/dtype.ts";
import type { ContractNest } from "../../kernel/loops.ts";

/** Results along an axis of a tile, elements of the image that they read, and positions of a transformed tile. */
export const TILE = 4;
export const SPAN = TILE + 2;
export const POSITIONS = SPAN * SPAN;

/** Where it pays, or wherever it can be done, for tests. */
export type WinogradUse = "paying" | "always";

/** How many times less work it has to be: it rounds more, and takes workspace. */
const WORTH = 1.2;

/** The extents that strips depend on. */
export interface Strips {
  /** Lanes of a register. */
  readonly lanes: number;
  readonly images: number;
  /** Places of the result, and tiles that cover them: rows, columns. */
  readonly places: readonly [number, number];
  readonly tiles: readonly [number, number];
  /** Pieces of a row of tiles, and tiles of one; the last may have fewer. */
  readonly pieces: number;
  readonly across: number;
  /** Strips of all images, numbered by image, piece and row; and of a block. */
  readonly strips: number;
  readonly blockStrips: number;
  /** Elements of a row of the image with what is around it. */
  readonly line: number;
}

export interface WinogradShape extends Strips {
  /** Rows of the result. */
  readonly rows: number;
  readonly channels: number;
  /** Channels that are summed in one run. */
  readonly chunk: number;
  /** Rows of a panel, whole registers; panels; whether all of them are transformed once and kept. */
  readonly panelRows: number;
  readonly panels: number;
  readonly resident: boolean;
  /** Tiles of a block, in whole registers. */
  readonly width: number;
  /** Elements between positions of the transformed image, weights and sums. */
  readonly steps: { readonly v: number; readonly u: number; readonly m: number };
  /** Elements of a row of results. */
  readonly sumsLine: number;
}

/** The fields of a product that the choice depends on. */
export type Extents = Pick<ContractNest, "window" | "split" | "dtype" | "rows" | "cols" | "depth" | "batch">;

/** Bytes of a block's transformed image, and of transformed weights that are kept. */
const IMAGE_BYTES = 1200 * 1024;
const RESIDENT_BYTES = 640 * 1024;
/** Tiles of a block, at most: their products are 36 rows of a panel. */
const MOST_TILES = 112;
/** Channels of a run: the weights of one take 36 registers. */
const LONGEST_CHUNK = 128;

/**
 * Cycles: of a multiplication of registers here and in a product whose operands are read in place; of a register of tiles, of sums
 * and of weights transformed. Fitted to thirty layers, within a tenth (bench/native-conv.ts; Zen 4).
 */
const CYCLES = { multiply: 1.14, direct: 1.08, image: 240, sums: 200, weights: 80 };

function cyclesOf(shape: WinogradShape): number {
  const { rows, lanes, channels, strips } = shape;
  const blocks = Math.ceil(strips / shape.blockStrips);
  const registers = strips * Math.ceil(shape.across / lanes);
  const multiply = (POSITIONS * blocks * shape.width * channels * rows) / lanes;
  const weights = ((shape.resident ? 1 : blocks) * shape.panels * channels * shape.panelRows) / lanes;
  return (
    CYCLES.multiply * multiply +
    CYCLES.image * registers * channels +
    CYCLES.sums * registers * rows +
    CYCLES.weights * weights
  );
}

/** Whole lines of the cache, and a register that is read or written beyond the end. */
export const whole = (elements: number, lanes: number): number =>
  elements === 0 ? 0 : Math.ceil((elements + lanes) / 16) * 16;

/** Elements of all parts of a workspace. */
export const total = (parts: Readonly<Record<string, number>>): number =>
  Object.values(parts).reduce((sum, n) => sum + n, 0);

/** Elements of the parts of one thread's workspace. */
export function winogradParts(
  shape: WinogradShape,
): Readonly<Record<"v" | "u" | "m" | "panel" | "plane" | "lines" | "sums" | "along", number>> {
  const { lanes, tiles, channels, chunk, panelRows, panels, resident, blockStrips, steps, line, sumsLine } = shape;
  return {
    v: whole(POSITIONS * steps.v, lanes),
    u: whole(POSITIONS * steps.u * (resident ? panels : 1), lanes),
    m: whole(POSITIONS * steps.m, lanes),
    panel: whole(9 * channels * panelRows, lanes),
    plane: whole((TILE * Math.min(blockStrips, tiles[0]) + 2) * line, lanes),
    lines: whole(SPAN * line, lanes),
    sums: whole(panelRows * TILE * sumsLine, lanes),
    along: whole(chunk, lanes),
  };
}

/** Of one group: rows of the result, channels, images, places; where it is a convolution of 3 × 3 over f32 and has any. */
interface Layer {
  readonly rows: number;
  readonly channels: number;
  readonly images: number;
  readonly places: readonly [number, number];
}

/** Where the transforms lose little: not among integers, and for f64 it is not measured. */
const ROUNDS_WELL: Readonly<Record<ProductType, boolean>> = { f32: true, f64: false, i32: false, i64: false };

export function layerOf(nest: Extents): Layer | null {
  const { window, split, dtype, rows, cols, depth, batch } = nest;
  if (!window || !split || !ROUNDS_WELL[dtype]) return null;
  const { sums, taps } = window;
  const [height = 0, across = 0] = window.places;
  if (window.places.length !== 2 || taps.length !== 2 || taps.some((n) => n !== 3)) return null;
  const overPlaces = sums === "places";
  const images = overPlaces ? depth.extent / Math.max(1, height * across) : (batch[0]?.extent ?? 1);
  const channels = overPlaces ? cols.extent / 9 : split[1].extent;
  const places = [height, across] as const;
  return rows.extent * channels * images * height * across > 0 ? { rows: rows.extent, channels, images, places } : null;
}

/** How many times the work of a plain product is a number of cycles. */
export const gainOver = ({ rows, channels, images, places }: Layer, lanes: number, cycles: number): number =>
  (CYCLES.direct * images * places[0] * places[1] * 9 * channels * rows) / lanes / cycles;

/** Whether it is that much less work, in no more workspace than the layer itself takes. */
export function pays(layer: Layer, lanes: number, cycles: number, workspace: number): boolean {
  const { rows, channels, images, places } = layer;
  const elements = images * places[0] * places[1] * (channels + rows) + 9 * channels * rows;
  return gainOver(layer, lanes, cycles) >= WORTH && workspace <= elements;
}

/** Rows of tiles, in pieces of at most `most`. */
export function stripsOf({ images, places }: Layer, lanes: number, most: number): Omit<Strips, "blockStrips"> {
  const tiles = [Math.ceil(places[0] / TILE), Math.ceil(places[1] / TILE)] as const;
  const across = Math.ceil(tiles[1] / Math.ceil(tiles[1] / most));
  const pieces = Math.ceil(tiles[1] / across);
  const line = Math.ceil((TILE * tiles[1]) / lanes) * lanes + TILE * lanes;
  return { lanes, images, places, tiles, pieces, across, strips: images * pieces * tiles[0], line };
}

/**
 * The blocks of a convolution that are the least work; null where a plain product is better, or it is none. A panel has a
 * register of rows, or as many as are given.
 */
export function winogradShape(
  nest: Extents,
  lanes: number,
  use: WinogradUse,
  panelRows: number = lanes,
): WinogradShape | null {
  const layer = nest.window?.sums === "channels" ? layerOf(nest) : null;
  if (!layer) return null;
  const { rows, channels } = layer;
  const chunk = Math.ceil(channels / Math.ceil(channels / LONGEST_CHUNK));
  const panels = Math.ceil(rows / panelRows);
  const small = 4 * POSITIONS * channels * panels * panelRows <= RESIDENT_BYTES;
  const most = Math.min(MOST_TILES, Math.floor(IMAGE_BYTES / (4 * POSITIONS * channels)));
  if (most === 0) return null;
  const strips = stripsOf(layer, lanes, most);
  const sumsLine = TILE * Math.ceil(strips.across / lanes) * lanes;
  let best: WinogradShape | null = null;
  for (let blockStrips = 1; blockStrips <= Math.min(strips.strips, most / strips.across); blockStrips++) {
    const width = Math.ceil((blockStrips * strips.across) / lanes) * lanes;
    const resident = small && blockStrips < strips.strips;
    const kept = (resident ? channels : chunk) * panelRows;
    // A register more, so that they are no multiples of the cache's period.
    const steps = { v: channels * width + lanes, u: kept + lanes, m: panelRows * width + lanes };
    const blocks = { blockStrips, width, resident, steps };
    const shape: WinogradShape = { ...strips, rows, channels, chunk, panelRows, panels, sumsLine, ...blocks };
    const cycles = cyclesOf(shape);
    if (use !== "always" && !pays(layer, lanes, cycles, total(winogradParts(shape)))) continue;
    if (!best || cycles <= cyclesOf(best)) best = shape;
  }
  return best;
}

/** Cycles of a convolution that is computed so, groups together; null where it is not. */
export function winogradCycles(nest: Extents, lanes: number, panelRows: number = lanes): number | null {
  const shape = winogradShape(nest, lanes, "paying", panelRows);
  return shape && cyclesOf(shape) * nest.batch.slice(1).reduce((n, v) => n * v.extent, 1);
}
