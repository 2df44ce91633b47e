/**
 * @file When the gradient of a convolution to its weights is computed by Winograd's algorithm, and in which blocks. It is the
 * transpose of the convolution's (winograd-transforms.ts), with the tiles summed over in place of the channels:
 *
 *   dg = Gᵀ [ Σ over tiles of (A dY Aᵀ) ⊙ (Bᵀ d B) ] G             dY 4 × 4 of the gradient, d 6 × 6 of the image
 *
 *   for blocks of channels, and of rows of the result
 *     for blocks of strips (rows of tiles of one image)
 *       transform the channels' image, the rows' gradient     w_v [36][tile][channel], w_d [36][tile][row]
 *       36 products over the tiles                            w_m [36][row][channel] +=
 *     transform the sums and store them
 *
 * Both sides have channels in the lanes, so rows of the image are turned round before they are transformed, and tiles need not
 * fill registers.
 *
 * Invariant: the strips of a block, which are a run of the sum, follow from extents alone; so do the choice and its bits.
 */
import type { Product } from "./contract-plan.ts";
import type { NativeOptions } from "./options.ts";
import { total, WORTH, whole } from "./winograd-plan.ts";
import { POSITIONS, TILE } from "./winograd-transforms.ts";

export interface WinogradWeightsPlan {
  readonly lanes: number;
  /** Rows of the result, channels of the image. */
  readonly rows: number;
  readonly channels: number;
  readonly places: readonly [number, number];
  readonly tiles: readonly [number, number];
  readonly images: number;
  /** Strips of all images, and of a block. */
  readonly strips: number;
  readonly blockStrips: number;
  /** Channels of a block, whole registers; registers of rows in all, and of a block. */
  readonly blockChannels: number;
  readonly panels: number;
  readonly blockPanels: number;
  /** Elements between positions ξ. */
  readonly steps: { readonly v: number; readonly d: number; readonly m: number };
  /** Elements of a row of the image with what is around it. */
  readonly line: number;
  /** Elements of the parts of one thread's workspace. */
  readonly parts: Readonly<Record<"v" | "d" | "m" | "plane" | "rows" | "seen" | "sums" | "tables", number>>;
}

/** Channels and rows of a block, and tiles of it. */
const BLOCK = 64;
const MOST_TILES = 64;

/**
 * Cycles, as in winograd-plan.ts: of a register of channels of one tile transformed on either side, and of a register of sums.
 * Fitted to 26 layers, within a tenth of most.
 */
const CYCLES = { multiply: 1.17, direct: 1.1, image: 240, gradient: 210, sums: 450 };

type Shape = Omit<WinogradWeightsPlan, "parts">;

function gain(shape: Shape): number {
  const { lanes, rows, channels, places, tiles, strips, images, panels, blockPanels, blockChannels } = shape;
  const all = strips * tiles[1];
  const blocks = Math.ceil(channels / blockChannels);
  const wide = (blocks * blockChannels) / lanes;
  const plain = (images * places[0] * places[1] * 9 * channels * rows) / lanes;
  return (
    (CYCLES.direct * plain) /
    (CYCLES.multiply * POSITIONS * all * wide * panels * lanes +
      CYCLES.image * all * wide * Math.ceil(panels / blockPanels) +
      CYCLES.gradient * all * panels * blocks +
      CYCLES.sums * rows * wide)
  );
}

function partsOf(shape: Shape): WinogradWeightsPlan["parts"] {
  const { lanes, tiles, blockStrips, blockChannels, steps, line } = shape;
  return {
    v: whole(POSITIONS * steps.v, lanes),
    d: whole(POSITIONS * steps.d, lanes),
    m: whole(POSITIONS * steps.m, lanes),
    plane: whole((TILE * Math.min(blockStrips, tiles[0]) + 2) * line * lanes, lanes),
    rows: whole(line * lanes, lanes),
    seen: whole(line * lanes, lanes),
    sums: whole(9 * blockChannels, lanes),
    tables: whole(2 * blockStrips * tiles[1], lanes),
  };
}

/** The extents of a gradient to the weights of a convolution of 3 × 3 over f32, or null. */
function extentsOf({ window, split, dtype, rows, cols, depth }: Product) {
  if (!window || !split || dtype !== "f32" || window.sums !== "places" || window.slides !== 1) return null;
  const { places, taps } = window;
  const [height = 0, across = 0] = places;
  if (places.length !== 2 || taps.length !== 2 || taps.some((n) => n !== 3)) return null;
  if (height * across * rows.extent * cols.extent * depth.extent === 0 || split[1].extent !== across) return null;
  const images = depth.extent / (height * across);
  return { rows: rows.extent, channels: cols.extent / 9, places: [height, across] as const, images };
}

/** How it is computed, or null where a plain product is better or it is none. */
export function planWinogradWeights(nest: Product, options: NativeOptions): WinogradWeightsPlan | null {
  const extents = options.winograd ? extentsOf(nest) : null;
  if (!extents) return null;
  const { lanes } = options;
  const { rows, channels, places, images } = extents;
  const tiles = [Math.ceil(places[0] / TILE), Math.ceil(places[1] / TILE)] as const;
  if (tiles[1] > MOST_TILES) return null;
  const strips = images * tiles[0];
  const blockStrips = Math.ceil(strips / Math.ceil(strips / Math.floor(MOST_TILES / tiles[1])));
  const blockChannels = Math.ceil(channels / Math.ceil(channels / BLOCK) / lanes) * lanes;
  const panels = Math.ceil(rows / lanes);
  const blockPanels = Math.min(panels, BLOCK / lanes);
  const width = blockStrips * tiles[1];
  const line = Math.ceil((TILE * tiles[1] + 2) / lanes) * lanes;
  // A register more, so that they are no multiples of the cache's period.
  const [v, d] = [width * blockChannels + lanes, width * blockPanels * lanes + lanes];
  const steps = { v, d, m: blockPanels * lanes * blockChannels + lanes };
  const blocks = { strips, blockStrips, blockChannels, panels, blockPanels };
  const shape: Shape = { lanes, rows, channels, places, tiles, images, ...blocks, steps, line };
  const parts = partsOf(shape);
  const layer = images * places[0] * places[1] * (channels + rows) + 9 * channels * rows;
  const pays = gain(shape) >= WORTH && total(parts) <= layer;
  return pays || options.winograd === "always" ? { ...shape, parts } : null;
}
