/**
 * @file The page's data: pictures, their trade-off curve, and whether a server can make more plans. A page in a file
 * contains all its plans; a page from the server requests the plan of a budget:
 *
 *   GET curve                     → CurveReply, with one more point each time until it is complete
 *   GET plan?budget=BYTES         → PlanReply
 *   GET story?plan=ASKS&value=N   → StoryReply
 */
import type { Picture } from "./picture.ts";

export interface ViewEntry {
  readonly label: string;
  /** The requested budget; null: everything stored, or not a plan. */
  readonly budgetBytes: number | null;
  readonly predictedMs: number | null;
  readonly picture: Picture;
  /** The plan's name in requests for explanations; null: they are included, or there are none. */
  readonly asks: string | null;
  /** What its loops keep for their reverses, if it has any. */
  readonly loops?: readonly string[];
}

/** The figures of the plan with everything stored. */
export interface StoredFigures {
  readonly arenaBytes: number;
  readonly predictedMs: number;
}

export interface CurvePoint {
  readonly budgetBytes: number;
  readonly arenaBytes: number;
  readonly predictedMs: number;
  /** Index into the entries if the plan is available. */
  readonly entry: number | null;
}

export interface ViewCurve {
  /** From everything stored to the smallest. */
  readonly points: readonly CurvePoint[];
  /** A lower bound of all plans: the bytes of one operation and the state. */
  readonly floorBytes: number;
  /** The curve is complete; it may be shown earlier. */
  readonly whole: boolean;
}

export interface ViewData {
  readonly version: 1;
  readonly title: string;
  readonly entries: readonly ViewEntry[];
  /** Indices into the entries: the one shown first, and the one it is compared with. */
  readonly first: number;
  readonly second: number | null;
  readonly curve: ViewCurve | null;
  /** Of the program that the first entry is a plan of. */
  readonly stored?: StoredFigures;
  /** Plans for other budgets can be requested. */
  readonly live: boolean;
}

export type PlanReply = { readonly entry: ViewEntry } | { readonly refusal: string };
export interface StoryReply {
  readonly story: readonly string[];
}
export interface CurveReply {
  readonly curve: ViewCurve;
}

/** The fastest available plan within a budget; null if none fits. */
export function pointWithin({ points }: ViewCurve, budgetBytes: number): CurvePoint | null {
  const fitting = points.filter((p) => p.arenaBytes <= budgetBytes && p.entry !== null);
  return fitting.reduce<CurvePoint | null>((best, p) => (best && best.predictedMs <= p.predictedMs ? best : p), null);
}
