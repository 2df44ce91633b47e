/**
 * @file The phases of a program along the time axis. A plan runs updates between the steps of the backward pass, as soon as
 * that frees memory, so a phase is not one interval: the time axis is divided into at most three bands, each named after
 * the phase that most of its steps belong to, and single steps keep their own colour.
 *
 *   steps   f f f f f f b u b u u b b u
 *   bands   └ forward ┘ └ backward, update ┘
 */
import type { PictureStep } from "./picture.ts";

export const PHASES = ["forward", "backward", "update"] as const;
export type Phase = (typeof PHASES)[number];

/** Steps [from, to) of one phase. */
export interface Run {
  readonly phase: Phase;
  readonly from: number;
  readonly to: number;
}

export interface Band {
  /** The phase, and others that a good part of its steps belong to. */
  readonly label: string;
  readonly phase: Phase;
  readonly from: number;
  readonly to: number;
}

/** A share of the steps of a band that is named beside its phase. */
const NAMED = 0.15;

const phaseOf = ({ phase }: PictureStep): number => PHASES.indexOf(phase as Phase);

/** Maximal runs of steps of one phase; steps without a phase are in none. */
export function phaseRuns(steps: readonly PictureStep[]): readonly Run[] {
  const runs: { phase: Phase; from: number; to: number }[] = [];
  steps.forEach((step, s) => {
    const phase = PHASES[phaseOf(step)];
    const last = runs.at(-1);
    if (!phase) return;
    if (last?.phase === phase && last.to === s) last.to = s + 1;
    else runs.push({ phase, from: s, to: s + 1 });
  });
  return runs;
}

/** Bands in order; none for a program of one phase. */
export function phaseBands(steps: readonly PictureStep[]): readonly Band[] {
  const phases = steps.map(phaseOf);
  if (new Set(phases.filter((p) => p >= 0)).size < 2) return [];
  const [second, third] = splits(phases);
  const ends = [0, second, third, steps.length];
  return PHASES.flatMap((phase, p) => {
    const [from = 0, to = 0] = [ends[p], ends[p + 1]];
    if (to <= from) return [];
    const inside = phases.slice(from, to);
    const named = PHASES.filter((_, q) => q === p || inside.filter((x) => x === q).length > NAMED * (to - from));
    return [{ phase, from, to, label: named.join(", ") }];
  });
}

/** Where the second and the third band begin, so that as many steps as possible are in the band of their phase. */
function splits(phases: readonly number[]): readonly [number, number] {
  // best[p]: the most steps in place if the current step is in band p; begins[p]: where the bands up to p begin
  let best = [0, 0, 0];
  let begins: (readonly number[])[] = [[], [0], [0, 0]];
  phases.forEach((phase, s) => {
    const nextBest: number[] = [];
    const nextBegins: (readonly number[])[] = [];
    for (let p = 0; p < PHASES.length; p++) {
      const stay = best[p] ?? 0;
      const enter = p > 0 ? (nextBest[p - 1] ?? 0) - (phase === p - 1 ? 1 : 0) : -1;
      const moves = p > 0 && enter > stay;
      nextBest.push((moves ? enter : stay) + (phase === p ? 1 : 0));
      nextBegins.push(moves ? [...(nextBegins[p - 1] ?? []).slice(0, p - 1), s] : (begins[p] ?? []));
    }
    [best, begins] = [nextBest, nextBegins];
  });
  // Ties go to fewer bands.
  const last = best.indexOf(Math.max(...best));
  const [second = phases.length, third = phases.length] = (begins[last] ?? []).slice(0, last);
  return [second, third];
}
