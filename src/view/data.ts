/**
 * @file What the page is given: pictures, the trade-off curve they lie on, and whether there is somebody to ask for more.
 * A page in a file has all its plans with it; a page from the server asks for the plan of a budget:
 *
 *   GET curve                     → CurveReply, with one point more each time until it is whole
 *   GET plan?budget=BYTES         → PlanReply
 *   GET story?plan=ASKS&value=N   → StoryReply
 */
import type { Picture } from "./picture.ts";

export interface ViewEntry {
  readonly label: string;
  /** What was asked for; null: everything stored, or not a plan. */
  readonly budgetBytes: number | null;
  readonly predictedMs: number | null;
  readonly picture: Picture;
  /** What to ask for reasons of its values by; null: they are with it, or there are none. */
  readonly asks: string | null;
}

export interface CurvePoint {
  readonly budgetBytes: number;
  readonly arenaBytes: number;
  readonly predictedMs: number;
  /** Index into the entries where the plan is at hand. */
  readonly entry: number | null;
}

export interface ViewCurve {
  /** From everything stored to the smallest. */
  readonly points: readonly CurvePoint[];
  /** No plan is smaller: what one operation and the state need. */
  readonly floorBytes: number;
  /** Nothing is to come; a curve may be shown while it is being found. */
  readonly whole: boolean;
}

export interface ViewData {
  readonly version: 1;
  readonly title: string;
  readonly entries: readonly ViewEntry[];
  /** Indices into the entries: what is shown first, and what it is compared with. */
  readonly first: number;
  readonly second: number | null;
  readonly curve: ViewCurve | null;
  /** Plans for other budgets can be asked for. */
  readonly live: boolean;
}

export type PlanReply = { readonly entry: ViewEntry } | { readonly refusal: string };
export interface StoryReply {
  readonly story: readonly string[];
}
export interface CurveReply {
  readonly curve: ViewCurve;
}

/** The fastest plan at hand within a budget; null where none fits. */
export function pointWithin({ points }: ViewCurve, budgetBytes: number): CurvePoint | null {
  const fitting = points.filter((p) => p.arenaBytes <= budgetBytes && p.entry !== null);
  return fitting.reduce<CurvePoint | null>((best, p) => (best && best.predictedMs <= p.predictedMs ? best : p), null);
}
