/**
 * @file How gradients of convolutions to their weights are cut up for Winograd's algorithm, and whether that pays; see
 * winograd.ts. It is the transpose of the convolution, summed over tiles in place of channels:
 *
 *   for blocks of channels, and of rows of the result
 *     for blocks of strips
 *       transform the channels' image, the rows' gradient     v [36][tile][channel], d [36][tile][row]
 *       36 products over the tiles                            m [36][row][channel] +=
 *     transform the sums and store them
 *
 * Both sides have channels in the lanes, so rows of the image are transposed before they are transformed, and tiles need not
 * fill registers.
 *
 * Invariant: the strips of a block, which are a run of the sum, follow from extents alone.
 */
import {
  type Extents,
  layerOf,
  POSITIONS,
  pays,
  type Strips,
  stripsOf,
  TILE,
  total,
  type WinogradUse,
  whole,
} from "./winograd-choice.ts";

export interface WinogradWeightsShape extends Strips {
  /** Rows of the result, channels of the image. */
  readonly rows: number;
  readonly channels: number;
  /** Channels of a block, whole registers; registers of rows in all, and of a block. */
  readonly blockChannels: number;
  readonly panels: number;
  readonly blockPanels: number;
  /** Elements between positions of either side and of the sums. */
  readonly steps: { readonly v: number; readonly d: number; readonly m: number };
}

/** Channels and rows of a block, and tiles of it. */
const BLOCK = 64;
const MOST_TILES = 64;

/**
 * Cycles, as in winograd.ts: of a register of channels of one tile transformed on either side, and of a register of sums.
 * Fitted to 26 layers, within a tenth of most.
 */
const CYCLES = { multiply: 1.17, image: 240, gradient: 210, sums: 450 };

function cyclesOf(shape: WinogradWeightsShape): number {
  const { lanes, rows, channels, strips, across, panels, blockPanels, blockChannels } = shape;
  const tiles = strips * across;
  const blocks = Math.ceil(channels / blockChannels);
  const registers = (blocks * blockChannels) / lanes;
  return (
    CYCLES.multiply * POSITIONS * tiles * registers * panels * lanes +
    CYCLES.image * tiles * registers * Math.ceil(panels / blockPanels) +
    CYCLES.gradient * tiles * panels * blocks +
    CYCLES.sums * rows * registers
  );
}

/** Elements of the parts of one thread's workspace. */
export function winogradWeightsParts(
  shape: WinogradWeightsShape,
): Readonly<Record<"v" | "d" | "m" | "plane" | "rows" | "seen" | "sums" | "tables", number>> {
  const { lanes, tiles, across, blockStrips, blockChannels, steps, line } = shape;
  return {
    v: whole(POSITIONS * steps.v, lanes),
    d: whole(POSITIONS * steps.d, lanes),
    m: whole(POSITIONS * steps.m, lanes),
    plane: whole((TILE * Math.min(blockStrips, tiles[0]) + 2) * line * lanes, lanes),
    rows: whole(line * lanes, lanes),
    seen: whole(line * lanes, lanes),
    sums: whole(9 * blockChannels, lanes),
    tables: whole(2 * blockStrips * across, lanes),
  };
}

/** The blocks of a gradient to weights; null where a plain product is better, or it is none. */
export function winogradWeightsShape(nest: Extents, lanes: number, use: WinogradUse): WinogradWeightsShape | null {
  const layer = nest.window?.sums === "places" && nest.window.slides === 1 ? layerOf(nest) : null;
  if (!layer || nest.split?.[1].extent !== layer.places[1]) return null;
  const { rows, channels } = layer;
  const cut = stripsOf(layer, lanes, MOST_TILES);
  const { strips, across, pieces } = cut;
  // All pieces have as many tiles: beyond the image they are zero and add nothing.
  const line = Math.ceil((TILE * across * pieces + 2) / lanes) * lanes;
  const blockStrips = Math.ceil(strips / Math.ceil(strips / Math.floor(MOST_TILES / across)));
  const blockChannels = Math.ceil(channels / Math.ceil(channels / BLOCK) / lanes) * lanes;
  const panels = Math.ceil(rows / lanes);
  const blockPanels = Math.min(panels, BLOCK / lanes);
  const [width, high] = [blockStrips * across, blockPanels * lanes];
  // A register more, so that they are no multiples of the cache's period.
  const steps = { v: width * blockChannels + lanes, d: width * high + lanes, m: high * blockChannels + lanes };
  const blocks = { blockStrips, blockChannels, panels, blockPanels, steps };
  const shape: WinogradWeightsShape = { ...cut, line, rows, channels, ...blocks };
  const enough = pays(layer, lanes, cyclesOf(shape), total(winogradWeightsParts(shape)));
  return enough || use === "always" ? shape : null;
}

/** The same with smaller blocks of channels, where there would be fewer blocks of rows and channels than threads to compute them. */
export function sharedByThreads(shape: WinogradWeightsShape, threads: number, groups: number): WinogradWeightsShape {
  const { lanes, channels, panels, steps } = shape;
  const registers = Math.ceil(channels / lanes);
  const wanted = Math.min(registers, Math.ceil(threads / (panels * groups)));
  const blockChannels = Math.min(shape.blockChannels, Math.ceil(registers / wanted) * lanes);
  const ratio = blockChannels / shape.blockChannels;
  const scaled = (step: number): number => (step - lanes) * ratio + lanes;
  return { ...shape, blockChannels, steps: { ...steps, v: scaled(steps.v), m: scaled(steps.m) } };
}

/** Cycles of a gradient that is computed so, groups together; null where it is not. */
export function winogradWeightsCycles(nest: Extents, lanes: number): number | null {
  const shape = winogradWeightsShape(nest, lanes, "paying");
  return shape && cyclesOf(shape) * nest.batch.reduce((n, v) => n * v.extent, 1);
}
