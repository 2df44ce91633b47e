/**
 * @file What the schedule of moves knows of values whose home is another memory (homes.ts): the bytes of the arena without them, the
 * gaps in which they are not needed there, and from the gaps that were used their visits.
 *
 *     uses of w     ·   ·   u1  u2  ·   ·   ·   u3  r   ·   ·       r: what replaces it is written
 *     gaps          ├───────┤       ├───────────┤   ├───────────
 *                     visit             visit          store        the first one is used always, and so is the last
 */
import { at } from "../base/invariant.ts";
import type { Home, Homeable, Visit } from "./homes.ts";
import { visitsOf } from "./homes.ts";
import type { IdleValue } from "./move.ts";
import { alignUp, type Plan, type Step } from "./problem.ts";
import { returnStepOf } from "./program.ts";

/**
 * A gap in which a value is not needed: between two uses, for which it is copied out and back (`trip`); before a use, when it is the
 * same at home (`visit`); after the last one, when it has to be stored at home (`store`).
 */
export interface Gap extends Omit<IdleValue, "idleSteps"> {
  readonly kind: "trip" | "visit" | "store";
}

/** The gaps of a value at home. `end` is behind the return step. */
export function gapsOf({ param, bytes, uses, replacement }: Homeable, end: Step): readonly Gap[] {
  const visits = visitsOf(uses).map((group, i, all): Gap => {
    const last = all[i - 1]?.at(-1) ?? -1;
    return { value: param, bytes, written: -1, last, next: at(group, 0), kind: "visit" };
  });
  if (!replacement) {
    const last = uses.at(-1);
    return last === undefined
      ? visits
      : [...visits, { value: param, bytes, written: -1, last, next: end, kind: "visit" }];
  }
  const { value, written, last } = replacement;
  return [...visits, { value, bytes, written, last, next: end, kind: "store" }];
}

/** Bytes of the arena at each step, the return step included; values at home only while they are used, or replaced. */
export function bytesByStep({ program, problem, bufferOf }: Plan, atHome: readonly Homeable[]): Float64Array {
  const live = new Float64Array(returnStepOf(program) + 1);
  const { alignment } = program.spaces[0];
  const isAtHome = new Set(atHome.map(({ param }) => bufferOf.get(param)));
  for (const { id, lifespan, bytes, space } of problem.buffers) {
    if (space !== 0 || isAtHome.has(id)) continue;
    const taken = alignUp(bytes, alignment);
    for (let k = lifespan.start; k < lifespan.end; k++) live[k] = (live[k] ?? 0) + taken;
  }
  for (const one of atHome) {
    const taken = alignUp(one.bytes, alignment);
    stepsHere(one, live.length).forEach((isHere, k) => {
      if (isHere) live[k] = (live[k] ?? 0) + taken;
    });
  }
  return live;
}

/** Steps at which something is in the storage of a value at home, if it is freed only before its first use. */
function stepsHere({ uses, replacement, others }: Homeable, end: Step): readonly boolean[] {
  const isHere = new Array<boolean>(end).fill(false);
  const first = uses[0];
  const last = uses.at(-1);
  if (first !== undefined && last !== undefined) isHere.fill(true, first, replacement ? last + 1 : end);
  for (const { start, end: until } of others) isHere.fill(true, start, until);
  if (replacement) isHere.fill(true, replacement.written, end);
  return isHere;
}

/** A gap and whether the value was away in it. */
interface UsedGap extends Gap {
  readonly outStart: Step;
  readonly outWait: Step;
  readonly backStart: Step;
}

/** Visits between the gaps in which values were away. */
export function homesOf(atHome: readonly Homeable[], used: readonly UsedGap[]): readonly Home[] {
  return atHome.map(({ param, uses, replacement }): Home => {
    const away = used
      .filter(({ value, kind }) => value === param && kind === "visit" && uses.length > 0)
      .sort((a, b) => a.next - b.next);
    const visits = away.flatMap(({ backStart, next }, i): readonly Visit[] => {
      if (!uses.includes(next)) return [];
      const following = away[i + 1];
      return [{ start: backStart, wait: next, last: following?.last ?? at(uses, uses.length - 1) }];
    });
    const store = used.find(({ value, kind }) => value === replacement?.value && kind === "store");
    return { param, visits, store: store ? { start: store.outStart, wait: store.outWait } : null };
  });
}
