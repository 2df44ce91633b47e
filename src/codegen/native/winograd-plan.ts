/**
 * @file When a convolution is computed by Winograd's algorithm (winograd-transforms.ts), and in which blocks.
 *
 *   for blocks of strips (a strip is one row of tiles of one image)
 *     transform the image's channels                            w_v [36][channel][tile]
 *     for panels of rows of the result, one register of them
 *       transform the weights, unless they were kept            w_u [36][channel][row]
 *       36 products over the channels                           w_m [36][row][tile]
 *       transform the sums, a strip at a time, and store them
 *
 * Transforming a whole layer before multiplying it would take four times the layer as workspace. A block is as many strips as
 * fit into some cache; its workspace is less than 2 MB whatever the layer.
 *
 * Whether it pays follows from extents alone, as a count of rough cycles of either way. So what is fused in front or behind,
 * budgets and threads change no bit.
 *
 * Invariant: a sum over channels is made of runs that follow from their number alone, added in order.
 */
import type { LoopVar } from "../../kernel/expr.ts";
import type { Operand } from "../../kernel/loops.ts";
import { product } from "../units.ts";
import type { PanelPlan } from "./contract-panel.ts";
import { type Product, planPanels } from "./contract-plan.ts";
import type { NativeOptions, WinogradUse } from "./options.ts";
import { POSITIONS, SPAN, TILE } from "./winograd-transforms.ts";

/** What follows from extents alone. */
interface Shape {
  /** Rows of the result, lanes of a register. */
  readonly rows: number;
  readonly lanes: number;
  /** Places of the result, and tiles that cover them: rows, columns. */
  readonly places: readonly [number, number];
  readonly tiles: readonly [number, number];
  readonly channels: number;
  /** Channels that are summed in one go. */
  readonly chunk: number;
  /** Strips of all images, and of a block. */
  readonly strips: number;
  readonly blockStrips: number;
  /** Panels of rows; whether all of them are transformed once and kept. */
  readonly panels: number;
  readonly resident: boolean;
  /** Tiles of a block, in whole registers. */
  readonly width: number;
  /** Elements between positions ξ of the transformed image, weights and sums. */
  readonly steps: { readonly v: number; readonly u: number; readonly m: number };
  /** Elements of a row of the image with what is around it, and of a row of results. */
  readonly line: number;
  readonly sumsLine: number;
}

type Parts = Readonly<Record<"v" | "u" | "m" | "panel" | "plane" | "lines" | "sums" | "along", number>>;

export interface WinogradPlan extends PanelPlan, Shape {
  readonly lanes: number;
  /** Counters of products of their own (groups), and of images that share weights. */
  readonly batch: readonly LoopVar[];
  readonly folded: readonly LoopVar[];
  readonly slides: 1 | -1;
  /** Elements of the parts of one thread's workspace. */
  readonly parts: Parts & Readonly<Record<"rows" | "tables", number>>;
}

/** Bytes of a block's transformed image, and of transformed weights that are kept. */
const IMAGE_BYTES = 1200 * 1024;
const RESIDENT_BYTES = 640 * 1024;
/** Tiles of a block, at most: their products are 36 rows of a panel. */
const MOST_TILES = 112;
/** Channels of a run: the weights of one take 36 registers. */
const LONGEST_CHUNK = 128;
/** How many times less work it has to be: it rounds more, and takes workspace. */
export const WORTH = 1.2;

/**
 * Cycles: of a multiplication of registers here and in a product that is read where it lies; of a register of tiles, of sums
 * and of weights transformed. Fitted to thirty layers, within a tenth (bench/native-conv.ts; Zen 4).
 */
const CYCLES = { multiply: 1.14, direct: 1.08, image: 240, sums: 200, weights: 80 };

/** How many times the work of a plain product is that of this. */
function gain(shape: Shape): number {
  const { rows, lanes, places, tiles, channels, strips } = shape;
  const blocks = Math.ceil(strips / shape.blockStrips);
  const images = strips / tiles[0];
  const registers = strips * Math.ceil(tiles[1] / lanes);
  const multiply = (POSITIONS * blocks * shape.width * channels * rows) / lanes;
  const weights = (shape.resident ? 1 : blocks) * shape.panels * channels;
  const plain = (images * places[0] * places[1] * 9 * channels * rows) / lanes;
  return (
    (CYCLES.direct * plain) /
    (CYCLES.multiply * multiply +
      CYCLES.image * registers * channels +
      CYCLES.sums * registers * rows +
      CYCLES.weights * weights)
  );
}

/** Whole lines of the cache, and a register that is read or written beyond the end. */
export const whole = (elements: number, lanes: number): number =>
  elements === 0 ? 0 : Math.ceil((elements + lanes) / 16) * 16;

function partsOf(shape: Shape): Parts {
  const { lanes, tiles, channels, chunk, panels, resident, blockStrips, steps, line, sumsLine } = shape;
  return {
    v: whole(POSITIONS * steps.v, lanes),
    u: whole(POSITIONS * steps.u * (resident ? panels : 1), lanes),
    m: whole(POSITIONS * steps.m, lanes),
    panel: whole(9 * channels * lanes, lanes),
    plane: whole((TILE * Math.min(blockStrips, tiles[0]) + 2) * line, lanes),
    lines: whole(SPAN * line, lanes),
    sums: whole(lanes * TILE * sumsLine, lanes),
    along: whole(chunk, lanes),
  };
}

/** Elements of all parts of a workspace. */
export const total = (parts: Readonly<Record<string, number>>): number =>
  Object.values(parts).reduce((sum, n) => sum + n, 0);

/** Elements of the image, the weights and the result: no more workspace than that. */
function layerElements({ rows, places, channels, strips, tiles }: Shape): number {
  return (strips / tiles[0]) * places[0] * places[1] * (channels + rows) + 9 * channels * rows;
}

/** The places of a convolution of 3 × 3 over f32 that has any, or null. */
function placesOf({ window, split, dtype, rows }: Product): readonly [number, number] | null {
  if (!window || !split || dtype !== "f32" || rows.extent === 0) return null;
  const { sums, places, taps } = window;
  const [height = 0, across = 0] = places;
  const square = sums === "channels" && places.length === 2 && taps.length === 2 && taps.every((n) => n === 3);
  return square && height > 0 && across > 0 ? [height, across] : null;
}

/** The blocks that are the least work, of those whose workspace is not too much; null where it does not pay. */
function shapeOf(nest: Product, lanes: number, images: number, use: WinogradUse): Shape | null {
  const places = placesOf(nest);
  if (!places || images === 0) return null;
  const rows = nest.rows.extent;
  const tiles = [Math.ceil(places[0] / TILE), Math.ceil(places[1] / TILE)] as const;
  const channels = nest.split?.[1].extent ?? 0;
  const chunk = Math.ceil(channels / Math.ceil(channels / LONGEST_CHUNK));
  const strips = images * tiles[0];
  const panels = Math.ceil(rows / lanes);
  const small = 4 * POSITIONS * channels * panels * lanes <= RESIDENT_BYTES;
  const most = Math.min(MOST_TILES, Math.floor(IMAGE_BYTES / (4 * POSITIONS * channels))) / tiles[1];
  const sumsLine = TILE * Math.ceil(tiles[1] / lanes) * lanes;
  const same = { rows, lanes, places, tiles, channels, chunk, strips, panels, line: sumsLine + 2 * lanes, sumsLine };
  let best: Shape | null = null;
  for (let blockStrips = 1; blockStrips <= Math.min(strips, most); blockStrips++) {
    const width = Math.ceil((blockStrips * tiles[1]) / lanes) * lanes;
    const resident = small && blockStrips < strips;
    const kept = (resident ? channels : chunk) * lanes;
    // A register more, so that they are no multiples of the cache's period.
    const steps = { v: channels * width + lanes, u: kept + lanes, m: lanes * width + lanes };
    const shape: Shape = { ...same, blockStrips, width, resident, steps };
    const pays = gain(shape) >= WORTH && total(partsOf(shape)) <= layerElements(shape);
    if ((pays || use === "always") && (!best || gain(shape) >= gain(best))) best = shape;
  }
  return best;
}

/** How a convolution is computed by Winograd's algorithm, or null where a plain product is better or it is none. */
export function planWinograd(nest: Product, operands: readonly Operand[], options: NativeOptions): WinogradPlan | null {
  if (!options.winograd || !nest.window) return null;
  const folded = nest.batch.slice(0, 1);
  const shape = shapeOf(nest, options.lanes, product(folded), options.winograd);
  if (!shape) return null;
  const { rows, tables, ...side } = planPanels(nest, operands, options);
  const batch = nest.batch.filter((b) => b.extent !== 1 && !folded.includes(b));
  const more = { rows: whole(rows, shape.lanes), tables: whole(tables, shape.lanes) };
  return { ...side, ...shape, batch, folded, slides: nest.window.slides, parts: { ...partsOf(shape), ...more } };
}
