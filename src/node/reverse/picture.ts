/**
 * @file A schedule as text: time goes down, steps go across, one line per sweep (forward to some step, then backward
 * over the available tapes).
 *
 * ```
 *   ▪──▪─◀      ▪ state kept at the end of the sweep's forward part   ─ step run   ━ step run, its tape kept
 *   ▪──◀        ◀ step reversed                                       · step still to be reversed
 *   ▪─◀
 * ```
 *
 * Longer loops are condensed: a character stands for several steps and shows the most telling of them, and lines are
 * left out evenly.
 */
import { at } from "../../base/invariant.ts";
import type { Action, ReversalSchedule } from "./action.ts";

export interface PictureOptions {
  /** Characters across. */
  readonly columns?: number;
  readonly lines?: number;
}

interface Sweep {
  readonly index: number;
  /** Steps run without and with a tape: from, to. */
  readonly ran: readonly (readonly [number, number])[];
  readonly taped: readonly number[];
  /** Steps of the states kept when the first step was reversed. */
  readonly kept: readonly number[];
  /** Steps reversed: from, to. */
  readonly reversed: readonly [number, number];
}

/** A sweep ends when an action other than reversing or freeing follows a reversed step. */
function* sweepsOf(actions: Iterable<Action>): Generator<Sweep, void, undefined> {
  const held = new Map<string, number>();
  let index = 0;
  let ran: (readonly [number, number])[] = [];
  let taped: number[] = [];
  let kept: readonly number[] = [];
  let reversed: [number, number] | null = null;
  for (const action of actions) {
    if (reversed && action.kind !== "reverse" && action.kind !== "free") {
      yield { index: index++, ran, taped, kept, reversed };
      [ran, taped, reversed] = [[], [], null];
    }
    if (action.kind === "advance") ran.push([action.from, action.to]);
    else if (action.kind === "tape") taped.push(action.step);
    else if (action.kind === "snapshot") held.set(`${action.level}:${action.slot}`, action.step);
    else if (action.kind === "free") held.delete(`${action.level}:${action.slot}`);
    else if (action.kind === "reverse") {
      if (!reversed) kept = [...held.values()];
      reversed = [action.step, reversed ? reversed[1] : action.step + 1];
    }
  }
  if (reversed) yield { index, ran, taped, kept, reversed };
}

/** By priority: later marks hide earlier ones. */
const MARKS = [" ", "·", "─", "━", "◀", "▪"] as const;
const [, LEFT, RAN, TAPED, REVERSED, KEPT] = [0, 1, 2, 3, 4, 5] as const;

function lineOf(sweep: Sweep, steps: number, columns: number): string {
  const marks = new Uint8Array(columns);
  const paint = (from: number, to: number, mark: number): void => {
    const end = Math.floor(((to - 1) * columns) / steps);
    for (let c = Math.floor((from * columns) / steps); c <= end; c++) marks[c] = Math.max(at(marks, c), mark);
  };
  paint(0, sweep.reversed[1], LEFT);
  for (const [from, to] of sweep.ran) paint(from, to, RAN);
  for (const step of sweep.taped) paint(step, step + 1, TAPED);
  paint(...sweep.reversed, REVERSED);
  for (const step of sweep.kept) paint(step, step + 1, KEPT);
  return Array.from(marks, (mark) => at(MARKS, mark)).join("");
}

/** Every tenth step's number above its column. */
function ruler(steps: number, columns: number): string {
  let text = "";
  for (let c = 0; c < columns; c += 10) {
    const label = String(Math.floor((c * steps) / columns));
    if (text.length <= c) text = text.padEnd(c) + label;
  }
  return text;
}

/** The picture, a line break after each line; empty for a loop without steps. */
export function schedulePicture(schedule: ReversalSchedule, options: PictureOptions = {}): string {
  const { steps } = schedule;
  if (steps === 0) return "";
  const columns = Math.min(steps, options.columns ?? 100);
  let sweeps = 0;
  for (const _ of sweepsOf(schedule.actions())) sweeps++;
  const lines = Math.min(sweeps, options.lines ?? 100);
  const width = String(sweeps).length;
  const text = [`${" ".repeat(width)}  ${ruler(steps, columns)}`];
  let shown = 0;
  for (const sweep of sweepsOf(schedule.actions())) {
    // sweep 0 and the last are always shown
    const wanted = lines === 1 ? 0 : Math.round((shown * (sweeps - 1)) / (lines - 1));
    if (sweep.index !== wanted) continue;
    shown++;
    text.push(`${String(sweep.index + 1).padStart(width)}  ${lineOf(sweep, steps, columns).trimEnd()}`);
  }
  return `${text.join("\n")}\n`;
}
