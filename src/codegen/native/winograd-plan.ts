/**
 * @file What the code of Winograd's convolutions follows: their blocks (codegen/cpu/winograd-choice.ts), how weights are packed before they
 * are transformed, and the workspace of one thread.
 */
import type { LoopVar } from "../../kernel/expr.ts";
import type { Operand } from "../../kernel/loops.ts";
import { type WinogradShape, whole, winogradParts, winogradShape } from "../cpu/winograd-choice.ts";
import {
  sharedByThreads,
  type WinogradWeightsShape,
  winogradWeightsParts,
  winogradWeightsShape,
} from "../cpu/winograd-weights-choice.ts";
import { live, product } from "../units.ts";
import type { PanelPlan } from "./contract-panel.ts";
import { type Product, planPanels } from "./contract-plan.ts";
import type { NativeOptions } from "./options.ts";

export interface WinogradPlan extends PanelPlan, WinogradShape {
  readonly lanes: number;
  /** Counters of products of their own (groups), and of images that share weights. */
  readonly batch: readonly LoopVar[];
  readonly folded: readonly LoopVar[];
  readonly slides: 1 | -1;
  readonly parts: ReturnType<typeof winogradParts> & Readonly<Record<"rows" | "tables", number>>;
}

export interface WinogradWeightsPlan extends WinogradWeightsShape {
  readonly batch: readonly LoopVar[];
  readonly parts: ReturnType<typeof winogradWeightsParts>;
}

/** How a convolution is computed, or null where a plain product is better or it is none. */
export function planWinograd(nest: Product, operands: readonly Operand[], options: NativeOptions): WinogradPlan | null {
  const shape = options.winograd ? winogradShape(nest, options.lanes, options.winograd) : null;
  if (!shape) return null;
  const { rows, tables, ...side } = planPanels(nest, operands, options);
  const more = { rows: whole(rows, shape.lanes), tables: whole(tables, shape.lanes) };
  const counters = { batch: live(nest.batch.slice(1)), folded: nest.batch.slice(0, 1) };
  const slides = nest.window?.slides ?? 1;
  return { ...side, ...shape, ...counters, slides, parts: { ...winogradParts(shape), ...more } };
}

/** The same of a gradient to weights. */
export function planWinogradWeights(nest: Product, options: NativeOptions): WinogradWeightsPlan | null {
  const whole = options.winograd ? winogradWeightsShape(nest, options.lanes, options.winograd) : null;
  if (!whole) return null;
  const shape = sharedByThreads(whole, options.threads, product(nest.batch));
  return { ...shape, batch: live(nest.batch), parts: winogradWeightsParts(shape) };
}
