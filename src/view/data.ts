/**
 * @file The page's data: pictures, their trade-off curve, and whether a server can make more plans. A page in a file
 * contains all its plans; a page from the server requests the plan of a budget:
 *
 *   GET curve                     → CurveReply, with one more point each time until it has no progress
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
  /** Of the same program with everything stored. */
  readonly stored?: StoredFigures;
}

/** The figures of a plan, for instance the one with everything stored. */
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

/** The plans of another strategy. */
export interface CurveStrategy {
  readonly name: string;
  /** Index into the palette of curves; 0 is the colour of text. */
  readonly colour: number;
  readonly mark: "circle" | "triangle" | "square" | "diamond" | "cross" | "ring";
  readonly points: readonly StoredFigures[];
}

/** How far a curve is. */
export interface CurveProgress {
  readonly done: number;
  readonly of: number;
  /** What is being computed. */
  readonly doing: string;
}

export interface ViewCurve {
  /** From everything stored to the smallest. */
  readonly points: readonly CurvePoint[];
  /** A lower bound of all plans: the bytes of one operation and the state. */
  readonly floorBytes: number;
  /** The points are complete; they may be shown earlier. */
  readonly whole: boolean;
  /** The plans of other strategies so far. */
  readonly others?: readonly CurveStrategy[];
  /** While more is to come. */
  readonly progress?: CurveProgress;
}

/** What four ways of differentiating a program hold when a backward pass begins. */
export interface HeldBytes {
  /** Inputs and outputs of every operation. */
  readonly overloadBytes: number;
  /** What derivatives name, and the storage that views are of. */
  readonly namedSavesBytes: number;
  readonly tapeBytes: number;
  readonly plannedBytes: number;
}

/** The same for all operations, by operation, and for each backward pass where there are several. */
export interface HeldAccount extends HeldBytes {
  readonly rows: readonly (HeldBytes & { readonly operation: string; readonly count: number })[];
  readonly passes: readonly HeldBytes[];
}

export interface ViewData {
  readonly version: 1;
  readonly title: string;
  readonly entries: readonly ViewEntry[];
  /** Indices into the entries: the one shown first, and the one it is compared with. */
  readonly first: number;
  readonly second: number | null;
  readonly curve: ViewCurve | null;
  /** Plans for other budgets can be requested. */
  readonly live: boolean;
  /** Of a program with a backward pass. */
  readonly held?: HeldAccount;
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
