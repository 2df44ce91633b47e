/**
 * @file Which convolutions WebAssembly computes by Winograd's algorithm, and in which workspace: the blocks of
 * codegen/cpu/winograd-choice.ts for registers of four lanes. A panel has as many rows as several tiles of the micro kernel, so
 * that a transformed image is read less often.
 */
import { bytesOf } from "../../kernel/dtype.ts";
import type { LoopVar } from "../../kernel/expr.ts";
import type { ContractNest } from "../../kernel/loops.ts";
import type { ProductCycles } from "../cpu/nests.ts";
import {
  total,
  type WinogradShape,
  type WinogradUse,
  whole,
  winogradCycles,
  winogradParts,
  winogradShape,
} from "../cpu/winograd-choice.ts";
import {
  type WinogradWeightsShape,
  winogradWeightsCycles,
  winogradWeightsParts,
  winogradWeightsShape,
} from "../cpu/winograd-weights-choice.ts";
import { live } from "../units.ts";

export const LANES = 4;

/** Rows of a panel, and of a tile. */
const PANEL_ROWS = { plain: 16, fused: 12 } as const;
export const tileRowsOf = (fma: boolean): number => (fma ? 6 : 4);
const panelRowsOf = (fma: boolean): number => (fma ? PANEL_ROWS.fused : PANEL_ROWS.plain);

type Product = Omit<ContractNest, "scratch">;
type Parts = Readonly<Record<string, number>>;

export interface WinogradPlan extends WinogradShape {
  /** Counters of products of their own (groups), and of images that share weights. */
  readonly batch: readonly LoopVar[];
  readonly folded: readonly LoopVar[];
  readonly slides: 1 | -1;
  /** Elements of the parts of one thread's workspace. */
  readonly parts: Parts;
}

export interface WinogradWeightsPlan extends WinogradWeightsShape {
  readonly batch: readonly LoopVar[];
  readonly parts: Parts;
}

/** What the choice depends on beside extents. */
export interface WinogradOptions {
  readonly fma: boolean;
  /** Default: none. */
  readonly winograd?: WinogradUse | undefined;
}

/** How a convolution is computed, or null where a plain product is better or it is none. */
export function planWinograd(nest: Product, { fma, winograd }: WinogradOptions): WinogradPlan | null {
  const shape = winograd ? winogradShape(nest, LANES, winograd, panelRowsOf(fma)) : null;
  if (!shape) return null;
  const { along: _, ...parts } = winogradParts(shape);
  const kept = { kept: whole(shape.resident ? shape.panels : 0, LANES) };
  const counters = { batch: live(nest.batch.slice(1)), folded: nest.batch.slice(0, 1) };
  return { ...shape, ...counters, slides: nest.window?.slides ?? 1, parts: { ...parts, ...kept } };
}

/** The same of a gradient to weights. */
export function planWinogradWeights(nest: Product, { winograd }: WinogradOptions): WinogradWeightsPlan | null {
  const shape = winograd ? winogradWeightsShape(nest, LANES, winograd) : null;
  if (!shape) return null;
  const { tables: _, ...parts } = winogradWeightsParts(shape);
  return { ...shape, batch: live(nest.batch), parts };
}

/** Bytes of one thread's workspace. */
export const threadBytes = (parts: Parts): number => bytesOf("f32") * total(parts);

/** Elements of the workspace of all threads; null where a product is computed otherwise. */
export function winogradScratch(nest: Product, options: WinogradOptions, threads: number): number | null {
  const plan = planWinograd(nest, options) ?? planWinogradWeights(nest, options);
  return plan && threads * total(plan.parts);
}

/** Its cycles, where it pays. */
export function winogradWork(nest: ContractNest, fma: boolean): ProductCycles | null {
  const cycles = winogradCycles(nest, LANES, panelRowsOf(fma)) ?? winogradWeightsCycles(nest, LANES);
  return cycles === null ? null : { cycles, lanes: LANES };
}

/** Sums of an image are its own, those of weights go over all images. */
export function winogradOrder(nest: Product, fma: boolean): string | null {
  if (winogradWeightsCycles(nest, LANES) !== null) return `winograd of ${nest.depth.extent}`;
  return winogradCycles(nest, LANES, panelRowsOf(fma)) === null ? null : "winograd";
}
